"""Arrays by name as one memory-mapped file, whose change one stamp shows; as a compressed file; as bytes."""

from __future__ import annotations

import io
import json
import math
import re
import struct
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
    """Return the arrays of `compress_arrays`; raise `ValueError` if they unpack to far more than any of ours."""
    return _loaded(file, MAX_RATIO * file.stat().st_size)


MAX_RATIO = 200
"""Maximum ratio of unpacked to compressed bytes; ours is 2 to 30."""


def load_arrays(note: bytes) -> dict[str, NDArray[Any]]:
    """Return copies of the arrays of `pack_arrays`, which are not compressed: they take no more than their bytes."""
    return _loaded(io.BytesIO(note), len(note))


def _loaded(source: Path | io.BytesIO, max_bytes: int) -> dict[str, NDArray[Any]]:
    with zipfile.ZipFile(source) as archive:
        if sum(member.file_size for member in archive.infolist()) > max_bytes:
            raise ValueError(f"the arrays unpack to more than {max_bytes:,} bytes")
    with np.load(source, allow_pickle=False) as arrays:
        return dict(arrays)


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNED) * _ALIGNED


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Serialize arrays by name, without pickle."""
    buffer = io.BytesIO()
    np.savez(buffer, **dict(arrays))  # type: ignore[arg-type] # numpy's stub takes `allow_pickle` for an array
    return buffer.getvalue()


def unpack_arrays(note: bytes, *, in_place: bool = False) -> dict[str, NDArray[Any]]:
    """Inverse of `pack_arrays`; `in_place` returns read-only arrays over the bytes instead of copies."""
    # numpy reads every array through a file object and adds up its checksum, which the store has done: that takes ten
    # times as long.
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(io.BytesIO(note)) as archive:
        for member in archive.infolist():
            name, extra = struct.unpack_from("<HH", note, member.header_offset + _LENGTHS)
            start = member.header_offset + _LENGTHS + 4 + name + extra
            header = _HEADER.match(note, start)
            if header is None:
                if member.compress_type != zipfile.ZIP_STORED:
                    raise ValueError("stored arrays are not compressed")
                values = np.lib.format.read_array(io.BytesIO(archive.read(member)), allow_pickle=False)
            else:
                size = int(header["size"])
                values = np.frombuffer(note, np.dtype(header["type"].decode()), size, header.end())
                values = values if in_place else values.copy()
            arrays[member.filename.removesuffix(".npy")] = values
    return arrays


_LENGTHS = 26  # Offset of the lengths of name and extra field in the header of a zip member
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(?P<type>[^']+)', 'fortran_order': False, 'shape': \((?P<size>\d+),\), \} *\n",
    re.DOTALL,
)
"""Header of a one-dimensional array in the npy format."""
