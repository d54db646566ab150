"""Arrays as notes: what organizers remember between changes, as bytes for the store."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["pack_arrays", "unpack_arrays"]


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays by name as one note, without pickle."""
    buffer = io.BytesIO()
    np.savez(buffer, **dict(arrays))  # type: ignore[arg-type] # numpy's stub takes `allow_pickle` for an array
    return buffer.getvalue()


def unpack_arrays(note: bytes) -> dict[str, NDArray[Any]]:
    """What `pack_arrays` wrote."""
    with np.load(io.BytesIO(note), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}
