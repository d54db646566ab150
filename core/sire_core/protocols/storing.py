"""The user's own vector store, as far as writing to it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from sire_core.protocols.searching import VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sire_core.types import Unit

__all__ = ["BufferedMirror", "Mirror", "MirroredUnit", "OwnedMirror", "SharedMirror", "UnitStore", "VerifiableMirror"]


@dataclass(frozen=True, slots=True)
class MirroredUnit:
    """A unit on its way into a vector store.

    Attributes:
        unit: The unit; its id is the id in the store.
        doc_ids: Documents it stands on.
        metadata: What the metadata of all these documents agree on, so that a filter of the store never lets a unit
            through that also stands on something else.
        vector: Its vector in the index, float32 `[dimension]`.
        replaces: Whether the store may hold something under this id already.
        differs: Metadata keys on which the documents do not agree.
    """

    unit: Unit
    doc_ids: tuple[str, ...]
    metadata: Mapping[str, Any]
    vector: NDArray[np.float32]
    replaces: bool = True
    differs: tuple[str, ...] = ()


class Mirror(Protocol):
    """A vector store that follows an index. Calls may repeat after a crash: `put` and `drop` must be idempotent."""

    @property
    def name(self) -> str:
        """Tells the stores of one index apart; the same store has the same name in every process."""

    async def put(self, units: Sequence[MirroredUnit]) -> None:
        """Insert units, replacing what the store has under their ids."""

    async def drop(self, ids: Sequence[str]) -> None:
        """Delete units; those that are not there count as deleted."""


@runtime_checkable
class VerifiableMirror(Mirror, Protocol):
    """A `Mirror` whose store can lose everything, for example because it lives in memory only."""

    async def holds(self, unit: str, vector: NDArray[np.float32]) -> bool:
        """Whether the store still has a unit that was put, by id; where not, everything is put again."""


@runtime_checkable
class BufferedMirror(Mirror, Protocol):
    """A `Mirror` that keeps what was put and dropped only when it is flushed, such as a file that is written whole."""

    async def flush(self) -> None:
        """Keep it; called after the last `put` or `drop` of a push, which counts as done when this has returned."""


@runtime_checkable
class SharedMirror(Mirror, Protocol):
    """A `Mirror` whose store may hold entries of others, which are warned of before the first write."""

    async def nearest(self, unit: MirroredUnit) -> Sequence[str]:
        """The unit id of the entry that is nearest to a unit, any other text for an entry of others.

        Raises:
            Exception: Whatever the store raises; many make their collection only when something is first added.
        """


@runtime_checkable
class OwnedMirror(Mirror, Protocol):
    """A `Mirror` whose table can say which index it belongs to and what it was sent last, and can be emptied.

    A table of another index is then refused, and one that is not what was sent (another database, a restored one) is
    emptied and filled again.
    """

    async def mark(self) -> str:
        """What `leave_mark` was given last; empty where there is no table, or none was left."""

    async def leave_mark(self, text: str) -> None:
        """Keep a line with the table; nothing where there is no table."""

    async def clear(self) -> None:
        """Delete every entry."""

    async def purge(self) -> None:
        """Overwrite or give back what deleted entries left in the database's files."""


class UnitStore(VerifiableMirror, VectorIndex, Protocol):
    """A database that follows an index and finds what is nearest; see `sire_core.stores`."""
