"""`ModelReports`: reports on clusters of entities written by a language model (SMART, eq. 11)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel

from sire_core.algorithms.text import count_tokens, truncate_tokens
from sire_core.algorithms.wording import count
from sire_core.algorithms.worker_pool import map_all
from sire_core.errors import ModelError
from sire_core.models.base import concurrency_of, told_of
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import Prompt
from sire_core.recipes.smart.extractive_reports import Report
from sire_core.types import Failure, digest

if TYPE_CHECKING:
    from sire_core.protocols import LanguageModel
    from sire_core.recipes.smart.entity_network import EntityNetwork, NetworkStatement
    from sire_core.recipes.smart.nodes import ReportNode

__all__ = ["ModelReports", "ReportAnswer", "ReportEvidence", "gather_evidence"]

_INSTRUCTIONS = """\
The input describes a community of entities: its entities, what passages state of them and, where there are any, \
reports on its parts. Write a report on the community as a whole. `title`: a short name that holds its main entities. \
`summary`: one or two sentences, how its entities are related and what matters most about them. `findings`: up to \
{findings} insights, the most important first, numbered from 1; each a short `summary` and an `explanation` in one to \
three sentences with the names, dates and facts it rests on. At most {words} words in all. State only what follows \
from the input, in its language, and do not speak about the input."""
_WORDS_PER_TOKEN = 0.7
_SLACK = 1.5
_PLACE_FOR_JSON = 120


class _Finding(BaseModel):
    id: int
    summary: str
    explanation: str = ""


class ReportAnswer(BaseModel):
    """What the model answers."""

    shape: ClassVar[str] = '{"title":"","summary":"","findings":[{"id":1,"summary":"","explanation":""}]}'

    title: str
    summary: str
    findings: list[_Finding] = []


@dataclass(frozen=True, slots=True)
class ReportEvidence:
    """What the model is shown of a cluster.

    Attributes:
        data: The prompt's data, JSON.
        passages: Numbers of the passages whose words are in it.
        chunk_ids: Their chunks.
        statements: Numbers of the statements in it.
    """

    data: str
    passages: tuple[int, ...]
    chunk_ids: tuple[str, ...]
    statements: tuple[int, ...]

    @property
    def digest(self) -> str:
        """Changes with what is shown and with the passages it comes from."""
        return digest(self.data, *self.chunk_ids)


def gather_evidence(
    node: ReportNode, below: Sequence[Report], network: EntityNetwork, context_tokens: int
) -> ReportEvidence | None:
    """Reports on the parts, then entities and statements that join the parts, strongest first, as far as they fit.

    Args:
        node: The cluster.
        below: Reports right below it; when they do not fit, only their beginnings (titles and summaries) are shown.
        network: Entities and statements.
        context_tokens: Most tokens of the data (estimated).

    Returns:
        None when fewer than two passages say anything.
    """
    budget = _Budget(context_tokens)
    texts = [report.text for report in below]
    if sum(estimate_tokens(text) + 2 for text in texts) > context_tokens // 2:
        texts = ["\n".join(text.split("\n")[:2]) for text in texts]
    shown = [at for at, text in enumerate(texts) if budget.takes(text)]
    stated = network.statements
    order = sorted(node.statements, key=lambda number: (-_worth(number, node, network), number))
    picked = [number for number in order if budget.holds(int(stated.estimates[number]))]
    sources = [int(stated.passages[number]) for number in picked]
    passages = dict.fromkeys([*(p for at in shown for p in below[at].passages), *sources])
    if len(passages) < 2:
        return None
    said = list(network.read(picked).values())
    data: dict[str, Any] = {"entities": _entities(node, said, set(passages), network, budget)}
    data["statements"] = [statement.text for statement in said]
    if shown:
        data["reports"] = [texts[at] for at in shown]
    chunk_ids = tuple(dict.fromkeys(chunk for passage in passages for chunk in network.passages[passage]))
    return ReportEvidence(json.dumps(data, ensure_ascii=False), tuple(passages), chunk_ids, tuple(picked))


def _worth(number: int, node: ReportNode, network: EntityNetwork) -> float:
    stated = network.statements
    return float(stated.weights[number]) * sum(node.telling.get(vertex, 0.0) for vertex in stated.named(number))


def _entities(
    node: ReportNode, stated: Sequence[NetworkStatement], passages: set[int], network: EntityNetwork, budget: _Budget
) -> list[dict[str, str]]:
    """Entities that the shown statements name, by weighted degree, described where a shown passage describes them."""
    names: dict[int, str] = {}
    for statement in stated:
        for vertex, name in statement.names.items():
            if vertex in node.telling:
                names.setdefault(vertex, name)
    about = network.descriptions(names)
    found = []
    for vertex in sorted(names, key=lambda vertex: -node.telling[vertex]):  # of equals who is named first
        description, passage = about.get(vertex, ("", -1))
        entry = {"name": names[vertex], **({"description": description} if passage in passages else {})}
        if budget.takes(" ".join(entry.values())):
            found.append(entry)
    return found


class _Budget:
    """Counts down tokens."""

    def __init__(self, tokens: int) -> None:
        self._left = tokens

    def takes(self, text: str) -> bool:
        return self.holds(estimate_tokens(text))

    def holds(self, tokens: int) -> bool:
        size = tokens + 4  # quotes, comma and key
        if size > self._left:
            return False
        self._left -= size
        return True


class ModelReports:
    """Asks once per cluster, several clusters at a time.

    Args:
        language_model: Who writes. With `with_sources` (see `CachedModel`) it is told the chunks of each cluster.
        max_tokens: Length of a report that is asked for; findings beyond it are left out.
        findings: Most findings that are asked for.
    """

    def __init__(self, language_model: LanguageModel, *, max_tokens: int = 300, findings: int = 5) -> None:
        self._model = language_model
        self._max_tokens = max_tokens
        self._findings = findings

    async def write(
        self, evidence: Sequence[ReportEvidence], progress: Callable[[int, int], None] | None = None
    ) -> list[Report | Failure]:
        """A report on each cluster; a cluster that fails gets a `Failure`.

        A report stands on everything that the model was shown, since it may have used any of it.

        Args:
            evidence: What is shown of each cluster.
            progress: Called as `progress(done, total)`.

        Raises:
            LimitExceededError: A usage limit was reached.
        """
        return await map_all(self._one, evidence, concurrency_of(self._model), progress)

    async def _one(self, evidence: ReportEvidence) -> Report | Failure:
        model = told_of(self._model, evidence.chunk_ids)
        words = max(20, round(self._max_tokens * _WORDS_PER_TOKEN))
        prompt = Prompt(_INSTRUCTIONS.format(words=words, findings=self._findings), evidence.data)
        try:
            answer = await model.complete(
                prompt, schema=ReportAnswer, max_tokens=round(self._max_tokens * _SLACK) + _PLACE_FOR_JSON
            )
        except ModelError as error:
            where = f"report on {count(len(evidence.passages), 'passage')}, first {evidence.chunk_ids[0]}"
            return Failure(where, f"{type(error).__name__}: {error}"[:500])
        parsed = answer.parsed
        return Report(_line(parsed.title), self._text(parsed), evidence.passages, evidence.statements, evidence.digest)

    def _text(self, answer: ReportAnswer) -> str:
        """Title, summary, and as many findings as the length allows."""
        lines = [_line(answer.title), _line(answer.summary)]
        left = self._max_tokens - sum(map(count_tokens, lines))
        for number, finding in enumerate(answer.findings[: self._findings], 1):
            line = f"[{number}] {_line(finding.summary)}"
            if finding.explanation.strip():
                line += f": {_line(finding.explanation)}"
            left -= count_tokens(line)
            if left < 0:
                break
            lines.append(line)
        return truncate_tokens("\n".join(lines).strip(), self._max_tokens)


def _line(text: str) -> str:
    return " ".join(text.split())
