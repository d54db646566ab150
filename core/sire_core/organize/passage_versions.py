"""Which passages have to be read again after a change. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from sire_core.types import hash64

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sire_core.types import Unit

__all__ = ["outdated_passages", "passage_version"]


def passage_version(unit: Unit) -> int:
    """Tells chunk units of one id apart: most stand on the chunk whose id they have, and on no other."""
    return 0 if len(unit.chunk_ids) == 1 else hash64("\0".join(unit.chunk_ids))


def outdated_passages(
    units: Sequence[Unit], passages: Sequence[str], versions: NDArray[np.uint64], redone: Collection[str]
) -> list[Unit]:
    """Passages that are new, stand on other chunks than before, or have another record.

    Args:
        units: All chunk units after a change.
        passages: Ids of those that were read before.
        versions: Their versions, `[passages]`.
        redone: Ids of chunks whose records changed.
    """
    known = dict(zip(passages, versions.tolist(), strict=True))
    return [unit for unit in units if known.get(unit.id) != passage_version(unit) or unit.id in redone]
