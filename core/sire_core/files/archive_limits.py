"""Bounds what an archive may unpack to, by unpacking it once and counting."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

from sire_core.errors import CorpusError
from sire_core.files.conversion import ExpansionError

_BLOCK = 1 << 20
_ENTITY = b"<!ENTITY"
_MARKUP = (".xml", ".rels", ".svg")
_MEMBERS = 100_000
_RATIO, _SMALL = 100, 16 << 20
"""Factor by which a file may expand, above so many bytes; documents are packed to a tenth."""


def unpacked_size(path: Path, max_bytes: int) -> int:
    """Size of a file in bytes, of an archive that of its unpacked members; `CorpusError` if they are too large.

    Also if it cannot be opened, expands to more than documents do, or a part of an Office file declares entities.
    """
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(0)
        if head[:2] == b"PK":
            return _archive_size(file, max_bytes)
        return file.seek(0, 2)


def _archive_size(file: BinaryIO, max_bytes: int) -> int:
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise CorpusError(f"cannot be opened: damaged or cut off ({error})") from error
    if len(members) > _MEMBERS:
        raise ExpansionError(f"the file holds {len(members):,} members; that is not a document")
    left = max_bytes
    is_book = any(member.filename.lower() == "meta-inf/container.xml" for member in members)
    for member in members:
        markup = not is_book and Path(member.filename).suffix.lower() in _MARKUP
        try:
            left = _check_member(file, member, left, markup=markup)
        except (OSError, ValueError, zlib.error) as error:
            raise CorpusError(f"cannot be opened: damaged or cut off ({error})") from error
        if left < 0:
            raise ExpansionError(f"the file expands to more than max_bytes={max_bytes:,}; raise max_bytes or split it")
    packed, unpacked = file.seek(0, 2), max_bytes - left
    if unpacked > _SMALL and unpacked > _RATIO * packed:
        raise ExpansionError(f"the file expands to {unpacked // packed:,} times its size; no document does that")
    return unpacked


def _check_member(file: BinaryIO, member: zipfile.ZipInfo, left: int, *, markup: bool) -> int:
    """Return the remaining bytes after unpacking a member; negative if it needs more."""
    file.seek(member.header_offset)
    head = file.read(30)
    file.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
    if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise CorpusError(f"{member.filename[:80]!r} is compressed with an unsupported method")
    unpack = zlib.decompressobj(-15) if member.compress_type == zipfile.ZIP_DEFLATED else None
    tail = b""
    packed = member.compress_size
    while packed > 0 and left >= 0 and (block := file.read(min(_BLOCK, packed))):
        packed -= len(block)
        while block and left >= 0:
            content = block if unpack is None else unpack.decompress(block, _BLOCK)
            left -= len(content)
            if markup:
                tail = _check_block(tail, content)
            block = b"" if unpack is None else unpack.unconsumed_tail
    return left


def _check_block(tail: bytes, block: bytes) -> bytes:
    """Refuse entities, also in UTF-16; return the overlap with the next block."""
    content = tail + block.replace(b"\0", b"")
    if _ENTITY in content:
        raise ExpansionError("the file declares XML entities, which may expand without end; take them out to read it")
    return content[-len(_ENTITY) :]
