"""`with_spread`: several builds of the same rows, as the first one with the mean and the spread of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from statistics import fmean, stdev
from typing import Any

from sire_core.evaluate.rows import EvalRow

__all__ = ["spread", "with_spread"]


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
