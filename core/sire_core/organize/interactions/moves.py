"""`RowMapping`: where the passages of a corpus stand before and after a change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RowMapping"]


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
