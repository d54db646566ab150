"""Figures that papers and projects print for their methods, to stand beside ours.

They come from other question samples, pools, embedders, extracting models and readers, all of which are stated. Only a
difference within one source is a finding; between sources it is an orientation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sire_core.recipes.ablations import data_set_name

__all__ = ["Published", "published_rows"]


@dataclass(frozen=True, slots=True)
class Published:
    """A method as its source prints it.

    Attributes:
        method: Name of the method.
        source: Paper or project, and the table.
        pool: Questions and passages that it was measured on.
        model: What a language model does at indexing or in a search, if anything.
        embedder: What makes the vectors.
        reader: The model that answers, and from how much.
        figures: By data set (`musique`, `2wiki`, `hotpotqa`, `multihoprag`), figures by metric, 0..100.
        note: Cost, as printed.
    """

    method: str
    source: str
    pool: str
    model: str
    embedder: str
    reader: str
    figures: Mapping[str, Mapping[str, float]]
    note: str = ""


@cache
def _all() -> tuple[Published, ...]:
    text = (Path(__file__).parent / "published.json").read_text(encoding="utf-8")
    return tuple(Published(**row) for row in json.loads(text))


def published_rows(dataset: str) -> list[tuple[Published, Mapping[str, float]]]:
    """Methods with figures for a data set, known by the start of its name, in the order of their sources."""
    name = data_set_name(dataset)
    return [(row, row.figures[name]) for row in _all() if name in row.figures]
