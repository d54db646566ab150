"""What is said of several rows together: their spread, their time per unit, and which found the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from statistics import fmean, stdev
from typing import Any

from sire_core.evaluate.rows import EvalRow

__all__ = ["mark_same", "spread", "with_spread", "with_tper"]


def mark_same(rows: Iterable[EvalRow]) -> list[EvalRow]:
    """Rows of one recipe with other settings that found exactly what an earlier one found, marked with its name.

    A switch without an effect on a data set proves nothing about the switch, and must not look as if it did.
    """
    marked: list[EvalRow] = []
    for row in rows:
        same = (old for old in marked if not old.same_as and _alike(old, row))
        first = next(same, None)
        marked.append(row if first is None else replace(row, same_as=first.setup.recipe))
    return marked


def with_tper(rows: Iterable[EvalRow]) -> list[EvalRow]:
    """Rows with TPER beside their TPQ: time per query and unit of the pool, over that of RAPTOR (SiReRAG section 5.3).

    Rows stay as they are where RAPTOR is not among them, or questions were not timed.
    """
    from sire_core.algorithms.cluster_pairs import tper

    found = list(rows)
    base = next((row for row in found if row.setup.family == "raptor" and row.answers.get("TPQ")), None)
    if base is None:
        return found
    return [
        replace(row, answers={**row.answers, "TPER": round(_tper(tper, row, base), 3)})
        if row.answers.get("TPQ") and row.setup.pool
        else row
        for row in found
    ]


def _tper(ratio: Callable[[float, float, int, int], float], row: EvalRow, base: EvalRow) -> float:
    return ratio(row.answers["TPQ"], base.answers["TPQ"], row.setup.pool, base.setup.pool)


def _alike(old: EvalRow, row: EvalRow) -> bool:
    """Whether two rows of one family stand on the same pool and found, answered and built the same."""
    return (
        (old.setup.family or old.setup.recipe) == (row.setup.family or row.setup.recipe)
        and old.setup.pool == row.setup.pool
        and old.setup.perspectives == row.setup.perspectives
        and _untimed(old.answers) == _untimed(row.answers)
        and old.evidence_match == row.evidence_match
        and [result.found for result in old.results] == [result.found for result in row.results]
    )


def _untimed(answers: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answers.items() if name not in ("TPQ", "TPER")}


def spread(values: Iterable[float | None]) -> dict[str, float]:
    """Mean and sample standard deviation (0 of a single value); empty when no value is known."""
    known = [value for value in values if value is not None]
    if not known:
        return {}
    sd = stdev(known) if len(known) > 1 else 0.0
    return {
        "mean": round(fmean(known), 2),
        "sd": round(sd, 2),
        "min": round(min(known), 2),
        "max": round(max(known), 2),
    }


def with_spread(runs: Sequence[Sequence[EvalRow]]) -> list[EvalRow]:
    """The rows of the first run; `EvalRow.repeats` has mean and spread of R@k, and of EM, F1 and Acc, over all runs.

    A run that did not come to its end has fewer rows; `repeats["builds"]` counts those that have the row.
    """
    found = ([row for row in rows if row is not None] for rows in zip_longest(*runs))
    return [replace(rows[0], repeats=_spreads(rows)) for rows in found]


def _spreads(rows: Sequence[EvalRow]) -> Mapping[str, Any]:
    recall = {str(k): spread(row.recall_passages(k) for row in rows) for k in rows[0].ks}
    answers = {
        name: spread(row.answers.get(name) for row in rows) for name in ("EM", "F1", "Acc") if name in rows[0].answers
    }
    return {"builds": len(rows), "recall_passages": {k: found for k, found in recall.items() if found}, **answers}
