"""Many arrays in one memory-mapped file, so that a change of it is noticed by one stamp."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ALIGNED = 64
_LENGTH = 8


def save_arrays(file: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays after a header with their positions, each aligned to 64 bytes."""
    described: dict[str, tuple[str, tuple[int, ...], int]] = {}
    end = 0
    for name, array in arrays.items():
        described[name] = (array.dtype.str, array.shape, end)
        end = _aligned(end + array.nbytes)
    header = json.dumps(described).encode()
    with file.open("wb") as written:
        written.write(len(header).to_bytes(_LENGTH, "little") + header)
        start = _aligned(written.tell())
        for (_, _, offset), array in zip(described.values(), arrays.values(), strict=True):
            written.write(b"\0" * (start + offset - written.tell()))
            array.tofile(written)


def map_arrays(file: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of `save_arrays`, read-only, mapped from the file."""
    mapped = np.asarray(np.memmap(file, dtype=np.uint8, mode="r"))
    length = int.from_bytes(mapped[:_LENGTH].tobytes(), "little")
    described = json.loads(mapped[_LENGTH : _LENGTH + length].tobytes())
    start = _aligned(_LENGTH + length)
    arrays: dict[str, NDArray[Any]] = {}
    for name, (kind, shape, offset) in described.items():
        size = np.dtype(kind).itemsize * math.prod(shape)
        arrays[name] = mapped[start + offset : start + offset + size].view(kind).reshape(shape)
    return arrays


def compress_arrays(file: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays compressed, for those that are read whole and rarely."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def decompress_arrays(file: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of `compress_arrays`."""
    with np.load(file, allow_pickle=False) as archive:
        return dict(archive)


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNED) * _ALIGNED
