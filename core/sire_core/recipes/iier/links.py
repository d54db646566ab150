"""Edges between passages as arrays, and where the passages stand before and after a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.types import Edge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pairs = NDArray[np.int64]

__all__ = ["INTERACTS", "PassageLinks", "RowMapping"]


@dataclass(frozen=True, slots=True)
class RowMapping:
    """Numbers of the same passages in two corpora.

    Attributes:
        passages: Ids after the change, `[n]`.
        place: Number after the change of every passage before it, -1 where it is gone.
        origin: Number before the change of every passage after it, -1 where it is new, `[n]`.
    """

    passages: NDArray[np.bytes_]
    place: NDArray[np.int64]
    origin: NDArray[np.int64]

    @classmethod
    def between(cls, before: NDArray[Any], after: NDArray[Any]) -> RowMapping:
        """Compare the ids of two corpora."""
        number = {passage: i for i, passage in enumerate(after.tolist())}
        place = np.array([number.get(passage, -1) for passage in before.tolist()], dtype=np.int64)
        origin = np.full(len(after), -1, dtype=np.int64)
        stayed = np.flatnonzero(place >= 0)
        origin[place[stayed]] = stayed
        return cls(after, place, origin)

    @property
    def in_order(self) -> bool:
        """Whether the passages that stayed follow one another as they did."""
        return bool((np.diff(self.place[self.place >= 0]) > 0).all())


INTERACTS = "interacts"
"""Kind of the edges between two passages, the earlier one first. Metadata: `structural` (1), `similarity` (cosine),
`near` (1 the source lists the target, 2 the other way round, 3 both), `keywords` (how many are shared); what is 0 is
left out."""
_NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class PassageLinks:
    """Pairs of passages and what joins them; 0 where something does not.

    Attributes:
        pairs: Numbers of passages, the smaller one first, distinct and ascending, `[m, 2]`.
        structural: 1 for passages beside each other in a document, `[m]`.
        similarity: Cosines of semantic edges, `[m]`.
        near: Who lists whom, see `INTERACTS`, `[m]`.
        keywords: How many keywords are shared, `[m]`.
    """

    pairs: NDArray[np.int64]
    structural: NDArray[np.int64]
    similarity: NDArray[np.float64]
    near: NDArray[np.int64]
    keywords: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        size: int,
        structural: Pairs = _NO_PAIRS,
        semantic: tuple[Pairs, NDArray[np.float64], NDArray[np.int64]] | None = None,
        shared: tuple[Pairs, NDArray[np.int64]] | None = None,
        kw_min: int = 1,
    ) -> PassageLinks:
        """Join edges of several kinds.

        Args:
            size: Number of passages.
            structural: See `structural_pairs`.
            semantic: See `semantic_pairs`.
            shared: See `keyword_pairs`.
            kw_min: Pairs that share fewer keywords are no edge, but an edge of another kind knows their number.
        """
        near_pairs, cosines, near = semantic or (_NO_PAIRS, np.zeros(0), np.zeros(0, dtype=np.int64))
        kw_pairs, counts = shared or (_NO_PAIRS, np.zeros(0, dtype=np.int64))
        by_document, by_meaning, by_keyword = (_codes(pairs, size) for pairs in (structural, near_pairs, kw_pairs))
        codes = np.concatenate([by_document, by_meaning, by_keyword[counts >= kw_min]])
        codes.sort(kind="stable")  # three runs that are in order
        codes = codes[np.diff(codes, prepend=-1) > 0]
        known = _holds(codes, by_keyword)
        return cls(
            pairs=np.stack(np.divmod(codes, max(size, 1)), axis=1).astype(np.int64),
            structural=_spread(codes, by_document, np.ones(len(by_document), dtype=np.int64)),
            similarity=_spread(codes, by_meaning, cosines),
            near=_spread(codes, by_meaning, near),
            keywords=_spread(codes, by_keyword[known], counts[known]),
        )

    def counts(self) -> dict[str, int]:
        """How many edges there are of each kind; one edge may be of several."""
        kinds = {"structural": self.structural, "similarity": self.similarity, "keywords": self.keywords}
        return {name: int(np.count_nonzero(column)) for name, column in kinds.items()}

    def edges(self, passages: NDArray[np.str_]) -> Iterator[Edge]:
        """As edges.

        Args:
            passages: Ids by number.
        """
        ends = passages[self.pairs].tolist()
        columns = [column.tolist() for column in (self.structural, self.similarity, self.near, self.keywords)]
        for (source, target), structural, similarity, near, keywords in zip(ends, *columns, strict=True):
            found = {"structural": structural, "similarity": similarity, "near": near, "keywords": keywords}
            weight = structural + similarity + keywords / 5
            yield Edge(INTERACTS, source, target, weight, {name: value for name, value in found.items() if value})

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a note."""
        return {
            "pairs": self.pairs.astype(np.int32),
            "structural": self.structural.astype(np.uint8),
            "similarity": self.similarity,
            "near": self.near.astype(np.uint8),
            "shared": self.keywords.astype(np.int32),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> PassageLinks:
        """What `arrays` gave."""
        return cls(
            pairs=arrays["pairs"].astype(np.int64),
            structural=arrays["structural"].astype(np.int64),
            similarity=arrays["similarity"],
            near=arrays["near"].astype(np.int64),
            keywords=arrays["shared"].astype(np.int64),
        )


def _codes(pairs: Pairs, size: int) -> NDArray[np.int64]:
    return np.asarray(pairs[:, 0] * max(size, 1) + pairs[:, 1], dtype=np.int64)


def _holds(codes: NDArray[np.int64], some: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of some codes are among ascending ones."""
    if not len(codes):
        return np.zeros(len(some), dtype=bool)
    return np.asarray(codes[np.minimum(np.searchsorted(codes, some), len(codes) - 1)] == some, dtype=bool)


def _spread(codes: NDArray[np.int64], some: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    """Values of some codes at the places of these among all codes, 0 elsewhere."""
    found = np.zeros(len(codes), dtype=values.dtype)
    found[np.searchsorted(codes, some)] = values
    return found
