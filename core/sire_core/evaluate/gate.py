"""`Gate`: conditions that a build server sets: least values, and no loss against an earlier run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError
from sire_core.evaluate.rows import BASELINES, OF_PIECES, EvalRow
from sire_core.text.pluralize import some

if TYPE_CHECKING:
    from sire_core.evaluate.runner import EvalConfig

_CONDITION = re.compile(r"\s*(recall|all|ndcg|mrr)(?:@(\d{1,4}))?\s*(?:>=|=)\s*(\d{1,3}(?:\.\d+)?)\s*")
_MEASURES = {"recall": "R", "all": "all", "ndcg": "nDCG", "mrr": "MRR"}
_ROUNDING = 0.1  # Rates in files are rounded to one decimal


@dataclass(frozen=True, slots=True)
class Condition:
    """The least value of a metric of passages, 0..100; `k` is 0 for `mrr`."""

    metric: str
    k: int
    least: float

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition such as `recall@5=80`."""
        match = _CONDITION.fullmatch(text)
        if match is None or (match[2] is None) != (match[1] == "mrr") or match[2] == "0" or float(match[3]) > 100:
            raise ConfigurationError(
                f"--fail-under {text}: write METRIC@K=PERCENT, such as recall@5=80, all@5=60, ndcg@10=70, or mrr=75."
            )
        return cls(match[1], int(match[2] or 0), float(match[3]))

    def failure(self, row: EvalRow) -> str:
        """Say by how much a row fails; empty if it does not."""
        value = row.mean(f"{_MEASURES[self.metric]}@{self.k}" if self.k else _MEASURES[self.metric])
        if value is not None and value >= self.least:
            return ""
        name = f"{self.metric}@{self.k}" if self.k else self.metric
        shown = "not measured: no question has gold" if value is None else f"{value:.1f}"
        return f"{row.label}: {name} is {shown}, below {self.least:g}."


@dataclass(frozen=True, slots=True)
class Gate:
    """Conditions that an evaluation has to meet; baselines (`bm25`, `dense`, `hybrid`) are exempt."""

    conditions: tuple[Condition, ...] = ()  # Least values
    # Rows of an earlier evaluation, as `sire eval --json` writes them: no recall may be below theirs
    baseline: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def read(cls, conditions: Sequence[str], baseline: Path | None) -> Gate:
        """Read conditions, and the file of an earlier evaluation."""
        rows: object = []
        if baseline is not None:
            try:
                rows = json.loads(baseline.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                raise ConfigurationError(f"--baseline {baseline}: {why}. Write it with sire eval --json.") from error
        if not isinstance(rows, list) or not all(isinstance(row, dict) and "recall_passages" in row for row in rows):
            raise ConfigurationError(
                f"--baseline {baseline}: not rows of an evaluation. Write it with sire eval --json."
            )
        return cls(tuple(map(Condition.parse, conditions)), tuple(rows))

    def widen(self, config: EvalConfig) -> EvalConfig:
        """Add the cut-offs of the conditions to what is measured."""
        ks = {*config.ks, *(condition.k for condition in self.conditions if condition.k)}
        if config.depth is not None and max(ks) > config.depth:
            raise ConfigurationError(f"--fail-under looks at {max(ks)} hits: give -k {max(ks)} or more, or no -k.")
        return replace(config, ks=tuple(sorted(ks)))

    def failures(self, rows: Sequence[EvalRow]) -> list[str]:
        """Say what is not met; empty if all is."""
        held = [row for row in rows if row.setup.recipe.removesuffix(OF_PIECES) not in BASELINES]
        messages = [condition.failure(row) for row in held for condition in self.conditions]
        messages += [message for row in held if self.baseline for message in self._losses(row)]
        return list(filter(None, messages))

    def _losses(self, row: EvalRow) -> list[str]:
        """Recall that is below that of the row of the same recipe; of several, the one with the same settings."""
        now = row.as_json()
        rows = [each for each in self.baseline if each["recipe"] == now["recipe"]]
        same = [each for each in rows if each.get("settings", {}) == now.get("settings", {})]
        before = next(iter(same or rows[: len(rows) == 1]), None)
        if before is None:
            rest = "no row of this recipe" if not rows else "several rows of this recipe, none with these settings"
            return [f"{row.label}: the baseline has {rest}; measure it again."]
        if before.get("questions") != now["questions"]:
            numbers = f"{before.get('questions')} questions, this run on {now['questions']}"
            return [f"{row.label}: the baseline was measured on {numbers}; measure it again."]
        measured = {result["id"] for result in before.get("results", now["results"])}
        if other := [result["id"] for result in now["results"] if result["id"] not in measured]:
            return [f"{row.label}: the baseline was measured on other questions, without {some(other)}."]
        return [
            f"{row.label}: recall@{k} is {value:.1f}, and was {before['recall_passages'][k]:.1f}"
            f"{_lost(before, now, k)}."
            for k, value in now["recall_passages"].items()
            if value is not None and value < (before["recall_passages"].get(k) or 0.0) - _ROUNDING / 2
        ]


def _lost(before: Mapping[str, Any], now: Mapping[str, Any], k: str) -> str:
    """Questions that found more before."""
    earlier = {result["id"]: result["recall"].get(k) for result in before.get("results", ())}
    worse = [result["id"] for result in now["results"] if (earlier.get(result["id"]) or 0.0) > result["recall"][k]]
    return f"; worse: {some(worse)}" if worse else ""
