"""`NodeCosines`: cosines of a question with the nodes of a graph, computed as far as they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.search.ranking import best_first
from sire_core.search.similarities import KnownSimilarities

if TYPE_CHECKING:
    from sire_core.protocols import BoolArray, FloatArray, IntArray, Similarities

__all__ = ["NodeCosines"]


class NodeCosines:
    """Read like an array of all of them: `cosines[nodes]`, `np.asarray(cosines)`.

    Args:
        similarities: By node.
    """

    __slots__ = ("_similarities",)

    def __init__(self, similarities: Similarities) -> None:
        self._similarities = similarities

    @classmethod
    def of(cls, similarities: Similarities, positions: IntArray) -> NodeCosines:
        """Of nodes that are units of a pool.

        Args:
            similarities: Of all units.
            positions: Unit of every node, ascending.
        """
        if len(positions) == len(similarities):
            return cls(similarities)
        return cls(KnownSimilarities(similarities.all()[positions]))

    def __len__(self) -> int:
        return len(self._similarities)

    def __getitem__(self, nodes: Any) -> Any:
        """Those of one node or of some."""
        chosen = np.asarray(nodes)
        found = self._similarities.at(chosen.ravel()).reshape(chosen.shape)
        return found if chosen.ndim else found[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        found = self._similarities.all().astype(dtype or np.float32, copy=bool(copy))
        return np.asarray(found)

    def best(self, n: int, allowed: BoolArray | None = None) -> IntArray:
        """The `n` nearest nodes, best first, ties by node.

        Args:
            n: How many.
            allowed: Nodes that may be among them, `[nodes]`; None for all.
        """
        if n < 1:
            return np.empty(0, dtype=np.int64)
        if allowed is None:
            return self._similarities.best(n)[0]
        return best_first(np.where(allowed, self._similarities.all(), -np.inf).astype(np.float32), n)
