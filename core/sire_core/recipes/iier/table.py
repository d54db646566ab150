"""`InteractionTable`: an interaction graph as arrays, the only form in which it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.neighbor_updates import NeighborLists
from sire_core.knowledge.ragged import pack_arrays, unpack_arrays
from sire_core.recipes.iier.keyword_table import KeywordTable
from sire_core.recipes.iier.links import PassageLinks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.types import Edge

__all__ = ["InteractionTable"]


@dataclass(frozen=True, slots=True)
class InteractionTable:
    """Everything that an `InteractionGraph` says, and the lists that its semantic edges come from.

    Attributes:
        fingerprints: Fingerprints of the embedder and of the extractor.
        passages: Ids of the chunk units, in corpus order, `[n]`.
        links: The edges between passages, in numbers of these.
        keywords: The edges from passages to keywords.
        lists: The nearest passages of every passage; of none where there are no semantic edges, or approximate ones.
    """

    fingerprints: tuple[str, str]
    passages: NDArray[np.bytes_]
    links: PassageLinks
    keywords: KeywordTable
    lists: NeighborLists

    @classmethod
    def empty(cls, n_sim: int) -> InteractionTable:
        """No passages; `n_sim` nearest ones each."""
        return cls(
            fingerprints=("", ""),
            passages=np.zeros(0, dtype="S24"),
            links=PassageLinks.of(0),
            keywords=KeywordTable.without_keywords(0),
            lists=NeighborLists.empty(0, n_sim),
        )

    def __iter__(self) -> Iterator[Edge]:
        """All edges: between passages, and to keywords; made as they are asked for."""
        passages = self.passages.astype(str)
        yield from self.links.edges(passages)
        yield from self.keywords.edges(passages.tolist())

    def to_note(self) -> bytes:
        """Bytes for the store."""
        arrays: dict[str, NDArray[Any]] = {
            "fingerprints": np.array([maker.encode() for maker in self.fingerprints]),
            "passages": self.passages,
            "neighbors": self.lists.indices.astype(np.int32),
            "products": self.lists.products,
            "cosines": self.lists.cosines,
            **self.links.arrays(),
            **self.keywords.arrays(),
        }
        return pack_arrays(arrays)

    @classmethod
    def from_note(cls, note: bytes | None) -> InteractionTable | None:
        """What `to_note` wrote; None where nothing was."""
        if note is None:
            return None
        arrays = unpack_arrays(note)
        embedder, extractor = (maker.decode() for maker in arrays["fingerprints"].tolist())
        return cls(
            fingerprints=(embedder, extractor),
            passages=arrays["passages"],
            links=PassageLinks.of_arrays(arrays),
            keywords=KeywordTable.of_arrays(arrays),
            lists=NeighborLists(arrays["neighbors"].astype(np.int64), arrays["products"], arrays["cosines"]),
        )
