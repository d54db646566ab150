"""The chains of a question, and what led to a passage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.types import PathStep

if TYPE_CHECKING:
    from sire_core.protocols import Similarities, View
    from sire_core.recipes.iier.graph import ChainGraph
    from sire_core.recipes.iier.walk import Seeds, Walked

__all__ = ["CHAIN", "SEED", "WHOLE", "ChainReasons", "EvidenceChain", "WalkedQuestion"]

SEED = "seed"
"""Step of the passage at which a chain starts."""
CHAIN = "chain"
"""Step of every further passage of a chain."""
WHOLE = "whole_chain"
"""Step that names all passages of a chain that the hit is on; the note is the chain's name."""


@dataclass(frozen=True, slots=True)
class EvidenceChain:
    """Passages in the order in which the walk took them.

    Attributes:
        chunk_ids: Ids of the passages, the seed first.
        notes: Why each is there: what the seed holds of the question, what links the others to the one before.
    """

    chunk_ids: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def steps(self) -> tuple[PathStep, ...]:
        """The chain as the path of its last passage."""
        return tuple(
            PathStep(CHAIN if place else SEED, (chunk,), note)
            for place, (chunk, note) in enumerate(zip(self.chunk_ids, self.notes, strict=True))
        )


class WalkedQuestion:
    """The chains of a question, and where on them a passage stands first.

    Args:
        graph: What was walked on.
        cosines: Of the question with every unit.
        seeds: Where the chains start.
        chains: One per seed.
        failure: Why the model did not find the keywords; empty where it did or was not asked.
    """

    def __init__(
        self, graph: ChainGraph, cosines: Similarities, seeds: Seeds, chains: Sequence[Walked], failure: str
    ) -> None:
        self.graph = graph
        self.cosines = cosines
        self.seeds = seeds
        self.chains = chains
        self.failure = failure
        self.places: Mapping[int, tuple[int, int]] = self._places()

    def _places(self) -> dict[int, tuple[int, int]]:
        """Chain and place of every node, the earliest place, then the earliest chain."""
        found: dict[int, tuple[int, int]] = {}
        for number, chain in enumerate(self.chains):
            for place, node in enumerate(chain.nodes):
                if node not in found or place < found[node][1]:
                    found[node] = (number, place)
        return found


class ChainReasons:
    """What led to a passage: its chain up to it, one step per passage; worked out for the hits only."""

    def __init__(self, view: View, walk: WalkedQuestion, *, apart: bool = False) -> None:
        self._view = view
        self._walk = walk
        self._apart = apart

    def path(self, position: int) -> tuple[PathStep, ...]:
        """The chain, or the cosine."""
        positions = self._walk.graph.positions
        node = int(np.searchsorted(positions, position))
        if node < len(positions) and positions[node] == position and node in self._walk.places:
            number, place = self._walk.places[node]
            return (*self.chain(number, place + 1).steps, *(self._whole(node) if self._apart else ()))
        kind = self._view.kind_names[self._view.kinds[position]]
        return (PathStep(f"vector:{kind}", (self._id(position),), self._near(position)),)

    def _whole(self, node: int) -> Iterator[PathStep]:
        """Every chain that a passage is on, for a reader who is shown chains one after the other."""
        for number, chain in enumerate(self._walk.chains, 1):
            if node in chain.nodes:
                places = self._walk.graph.positions[list(chain.nodes)].tolist()
                yield PathStep(WHOLE, tuple(map(self._id, places)), f"chain of evidence {number}")

    def chain(self, number: int, length: int) -> EvidenceChain:
        """The beginning of a chain."""
        nodes = self._walk.chains[number].nodes[:length]
        places = self._walk.graph.positions[list(nodes)].tolist()
        held = self._walk.seeds.keywords[number]
        start = f"holds {_quoted(held)} of the question" if held else "among the passages most similar to the question"
        notes = [f"{start}, {self._near(places[0])}"]
        notes += [
            f"{self._link(left, right)}, {self._near(place)}"
            for left, right, place in zip(nodes[:-1], nodes[1:], places[1:], strict=True)
        ]
        return EvidenceChain(tuple(self._id(place) for place in places), tuple(notes))

    def _link(self, left: int, right: int) -> str:
        """What joins two passages. Both are allowed ones, and so is every keyword that both have."""
        graph = self._walk.graph
        structural, similarity, shared = graph.edge(left, right).tolist()
        parts = ["beside it in the document"] if structural else []
        if similarity:
            parts.append(f"cosine {similarity:.3f} with the one before")
        if shared:
            both = np.intersect1d(graph.keywords(left), graph.keywords(right)).tolist()
            parts.append(f"shares {_quoted([graph.keys[number] for number in both])}")
        return "; ".join(parts)

    def _near(self, position: int) -> str:
        return f"cosine {self._walk.cosines.at(np.array([position]))[0]:.3f} with the question"

    def _id(self, position: int) -> str:
        return str(self._view.ids[position].decode())


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
