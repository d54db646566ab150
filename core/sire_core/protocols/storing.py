"""The user's own vector store, as far as writing to it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sire_core.protocols.searching import VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sire_core.types import Unit


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
    """A vector store that follows an index. Calls may repeat after a crash: `put` and `drop` must be idempotent.

    These async methods are optional; what they do is left out for a store without them:

    - `holds(unit, vector) -> bool`: whether the store still has a unit that was put, by id; if not, everything is put
      again. For stores that can lose everything, for example because they live in memory only.
    - `flush()`: keep what was put and dropped. Called after the last `put` or `drop` of a push, which counts as done
      when this has returned. For stores such as a file that is written whole.
    - `nearest(unit) -> Sequence[str]`: the unit id of the entry that is nearest to a `MirroredUnit`, any other text for
      an entry of others, which are warned of before the first write. It may raise anything: many stores make their
      collection only when something is first added.
    - `mark() -> str`, `leave_mark(text)`, `clear()` and `purge()`, all four: a line that is kept with the table, empty
      if there is no table or none was left; delete every entry; overwrite or give back what deleted entries left in the
      database's files. A table of another index is then refused, and one that is not what was sent (another database, a
      restored one) is emptied and filled again.
    """

    @property
    def name(self) -> str:
        """Tells the stores of one index apart; the same store has the same name in every process."""

    async def put(self, units: Sequence[MirroredUnit]) -> None:
        """Insert units, replacing what the store has under their ids."""

    async def drop(self, ids: Sequence[str]) -> None:
        """Delete units; those that are not there count as deleted."""


class UnitStore(Mirror, VectorIndex, Protocol):
    """A database that follows an index and finds what is nearest; see `sire_core.stores`."""
