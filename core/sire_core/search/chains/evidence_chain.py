"""`EvidenceChain`: a chain that a user can read, and what a reader is told of chains (IIER)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.types import PathStep

if TYPE_CHECKING:
    from sire_core.protocols import View
    from sire_core.types import Hit

__all__ = ["CHAIN", "SEED", "WHOLE", "ChainLines", "EvidenceChain"]


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


@dataclass(frozen=True, slots=True)
class ChainLines:
    """Tells a reader which of the passages form a chain: a line each, so that chains stand apart (IIER 4.5.1)."""

    async def lines(self, hits: Sequence[Hit], view: View) -> list[str]:  # noqa: ARG002 - the hits know
        """One line per chain, with the numbers of its passages from 1; a passage of two chains stands in both."""
        number = {hit.unit.id: place for place, hit in enumerate(hits, 1)}
        chains = {step.note: step.ids for hit in hits for step in hit.path if step.step == WHOLE}
        return [
            f"{name}: passages {', '.join(str(number[chunk]) for chunk in chains[name] if chunk in number)}"
            for name in sorted(chains, key=lambda name: int(name.rpartition(" ")[2]))
        ]
