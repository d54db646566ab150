"""`Ablation`: a row of a paper's tables as a recipe with settings, and the figures that the paper prints for it.

A recipe's rows stand below it in its file, which calls `register_ablations`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sire_core.errors import ConfigurationError

__all__ = [
    "ABLATIONS",
    "CONTEXT",
    "Ablation",
    "ablations_of",
    "data_set_name",
    "recipes_with_ablations",
    "register_ablations",
]

ABLATIONS: dict[str, tuple[Ablation, ...]] = {}
"""Rows by the name of the recipe that the paper is about."""

CONTEXT: dict[str, int] = {}
"""By recipe how many hits the paper's reader sees."""

_SETS = {
    "musique": "musique",
    "2wiki": "2wiki",
    "hotpot": "hotpotqa",
    "quality": "quality",
    "multihop": "multihoprag",
    "asqa": "asqa",
    "iirc": "iirc",
}


@dataclass(frozen=True, slots=True)
class Ablation:
    """One row.

    Attributes:
        table: The paper's name of the table, such as `T5`.
        label: The row, in a few words.
        recipe: Name in the registry.
        settings: What differs from the recipe's defaults.
        paper: By data set (`musique`, `2wiki`, `hotpotqa`, `quality`, `multihoprag`, `asqa`, `iirc`) or `average`,
            figures by metric; empty when the paper has no such row. They come from the paper's models and readers, so
            that only their order and their differences compare with ours.
        needs: What the row cannot do without: `tokens`, an embedder with token vectors, `model`, a language model,
            `torch`, or `umap`, the extra `paper`.
        answer: Fields of `AnswerConfig` that differ for this row, such as `via`; without answers it is left out.
    """

    table: str
    label: str
    recipe: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    paper: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    needs: str = ""
    answer: Mapping[str, Any] = field(default_factory=dict)

    def figures(self, dataset: str) -> tuple[str, Mapping[str, float]]:
        """What the paper prints for a data set, known by the start of its name, else its average.

        Returns:
            Name of the set and figures by metric; an empty name where there is neither.
        """
        for name in (data_set_name(dataset), "average"):
            if name in self.paper:
                return name, self.paper[name]
        return "", {}


def data_set_name(given: str) -> str:
    """The name that papers' figures are stored by, from the start of a data set's name; empty if unknown."""
    plain = re.sub(r"[\W_]+", "", given.lower())
    return next((name for start, name in _SETS.items() if plain.startswith(start)), "")


def register_ablations(recipe: str, rows: Sequence[Ablation], context: int = 10) -> None:
    """Make the rows of a paper known under its recipe's name.

    Args:
        recipe: Name in the registry.
        rows: In the order in which they are shown.
        context: Hits that the paper's reader sees.
    """
    ABLATIONS[recipe] = tuple(rows)
    CONTEXT[recipe] = context


def ablations_of(recipe: str) -> tuple[Ablation, ...]:
    """The rows of a recipe's paper.

    Raises:
        ConfigurationError: There are none.
    """
    known = recipes_with_ablations()
    if recipe not in known:
        raise ConfigurationError(f"There are no ablations of {recipe!r}; choose one of {', '.join(known)}.")
    return ABLATIONS[recipe]


def recipes_with_ablations() -> list[str]:
    """Names of the recipes whose papers' rows are known, sorted."""
    return sorted(ABLATIONS)
