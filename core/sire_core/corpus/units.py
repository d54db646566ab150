"""From chunks to the chunk units of the pool."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sire_core.filters import comparable
from sire_core.protocols import Delta
from sire_core.types import Chunk, Unit, UnitKind

__all__ = ["PassageChange", "chunk_units", "differs"]


def chunk_units(chunks: Sequence[Chunk]) -> list[Unit]:
    """One unit per distinct passage, in corpus order.

    Passages with the same title, text and metadata are one unit that stands on all of their chunks.
    Other metadata keeps them apart, so that a filter never has to choose between two owners of one text.
    """
    groups: dict[tuple[str, str, str], list[Chunk]] = {}
    for chunk in chunks:
        metadata = json.dumps(dict(chunk.metadata), sort_keys=True) if chunk.metadata else ""
        groups.setdefault((chunk.title, chunk.text, metadata), []).append(chunk)
    return [
        Unit(
            id=same[0].id,
            kind=UnitKind.CHUNK,
            text=same[0].text,
            chunk_ids=tuple(chunk.id for chunk in same),
            title=same[0].title,
            metadata=same[0].metadata,
            source_ids=tuple(chunk.source_id for chunk in same) if any(chunk.source_id for chunk in same) else (),
        )
        for same in groups.values()
    ]


@dataclass(frozen=True, slots=True)
class PassageChange:
    """What a change of the corpus does to the chunk units.

    Attributes:
        delta: Units that come, change or go.
        regrouped: Ids of chunks that stay, but stand in one unit with others than before.
    """

    delta: Delta
    regrouped: frozenset[str]


def differs(unit: Unit, other: Unit) -> bool:
    """Whether two versions differ; `1` and `True` in metadata do, which Python takes for equal."""
    both = unit.metadata, other.metadata
    return unit != other or (both[0] is not both[1] and comparable(both[0]) != comparable(both[1]))
