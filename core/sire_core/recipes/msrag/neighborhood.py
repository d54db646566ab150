"""Relations and entities near others: the expansion of MS-RAG's recall. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Incidence", "nearby_entities", "nearby_relations"]


@dataclass(frozen=True, slots=True)
class Incidence:
    """Which relations stand at which entities.

    Attributes:
        relations_of: By entity.
        entities_of: By relation.
    """

    relations_of: Mapping[int, Sequence[int]]
    entities_of: Mapping[int, Sequence[int]]

    @classmethod
    def from_arrays(cls, relations: NDArray[np.int64], entities: NDArray[np.int64], size: int) -> Incidence:
        """From pairs in any order, repeated or not; all numbers are below `size`."""
        pairs = np.unique(relations * max(1, size) + entities)
        relations, entities = pairs // max(1, size), pairs % max(1, size)
        order = np.argsort(entities, kind="stable")
        return cls(
            _Rows(_pointers(entities, size), relations[order]),
            _Rows(_pointers(relations, size), entities),
        )


class _Rows(Mapping[int, Sequence[int]]):
    """Lists of numbers by number, ascending, those that are not empty; made when somebody asks for one."""

    def __init__(self, pointers: NDArray[np.int64], values: NDArray[np.int64]) -> None:
        self._pointers = pointers
        self._values = values

    def __getitem__(self, number: int) -> list[int]:
        found: list[int] = self._values[self._pointers[number] : self._pointers[number + 1]].tolist()
        if not found:
            raise KeyError(number)
        return found

    def __iter__(self) -> Iterator[int]:
        numbers: list[int] = np.flatnonzero(np.diff(self._pointers)).tolist()
        return iter(numbers)

    def __len__(self) -> int:
        return int(np.count_nonzero(np.diff(self._pointers)))


def _pointers(numbers: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=size))]).astype(np.int64)


def nearby_entities(
    seeds: Iterable[int],
    graph: Incidence,
    hops: int,
    fanout: int | None = None,
    similarity: Sequence[float] | None = None,
) -> tuple[dict[int, int], dict[int, int]]:
    """Entities within some hops of others, and the relations on the way.

    Args:
        seeds: Entities at distance 0.
        graph: The relations.
        hops: How far.
        fanout: At every hop only so many of the new relations are followed, the most similar first; None follows all.
        similarity: By number of relation and entity; what does not have a finite one is not entered.

    Returns:
        Distance by entity, and by relation (1 for those at a seed).
    """
    entities = dict.fromkeys(seeds, 0)
    relations: dict[int, int] = {}
    frontier = list(entities)
    for hop in range(1, hops + 1):
        new = dict.fromkeys(r for entity in frontier for r in graph.relations_of.get(entity, ()) if r not in relations)
        chosen = _best(new, fanout, similarity)
        relations.update(dict.fromkeys(chosen, hop))
        ends = dict.fromkeys(e for relation in chosen for e in graph.entities_of.get(relation, ()) if e not in entities)
        frontier = _best(ends, None, similarity)
        entities.update(dict.fromkeys(frontier, hop))
    return entities, relations


def nearby_relations(
    seeds: Iterable[int],
    graph: Incidence,
    hops: int,
    fanout: int | None = None,
    similarity: Sequence[float] | None = None,
) -> dict[int, int]:
    """Relations within some hops of others; two that share an entity are one hop apart.

    Args:
        seeds: Relations at distance 0.
        graph: The relations.
        hops: How far.
        fanout: At every hop only so many of the new relations are kept, the most similar first; None keeps all.
        similarity: By number of relation; what does not have a finite one is not entered.

    Returns:
        Distance by relation.
    """
    found = dict.fromkeys(seeds, 0)
    frontier = list(found)
    for hop in range(1, hops + 1):
        entities = dict.fromkeys(entity for relation in frontier for entity in graph.entities_of.get(relation, ()))
        new = dict.fromkeys(r for entity in entities for r in graph.relations_of.get(entity, ()) if r not in found)
        frontier = _best(new, fanout, similarity)
        found.update(dict.fromkeys(frontier, hop))
    return found


def _best(found: Iterable[int], fanout: int | None, similarity: Sequence[float] | None) -> list[int]:
    """The `fanout` most similar, ties by number; those without a similarity are left out."""
    if similarity is None:
        return sorted(found)[:fanout]
    kept = [item for item in found if similarity[item] > float("-inf")]
    return sorted(kept, key=lambda item: (-similarity[item], item))[:fanout]
