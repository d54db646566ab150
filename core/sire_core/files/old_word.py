"""Word files of all versions before 2007: those of Word 97 and newer by kreuzberg, older ones by their text alone."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator
from pathlib import Path

from sire_core.documents.markdown_writing import plain_text
from sire_core.errors import CorpusError
from sire_core.files.conversion import note
from sire_core.files.other_formats import read_other
from sire_core.files.text_encodings import guess_encoding

_BEFORE_97 = {b"\x9b\xa5": "1", b"\xdb\xa5": "2", b"\xdc\xa5": "6 or 95"}
"""Versions by the first bytes."""
_FLAGS, _TEXT, _PIECES = 0x0A, 0x18, 0x160
"""Places in the header: of what the file is like, of where its text is, of the table of its pieces (version 6)."""
_IS_SAVED_IN_PIECES, _IS_ENCRYPTED = 0x04, 0x100
_FIELD_CODE = re.compile("\x13[^\x13-\x15]*(?:\x14|\x15)")
_FIELD_DEPTH = 5
_SIGNS = str.maketrans({"\x0b": "\n", "\x0c": "\n", "\r": "\n", "\x1e": "-", "\xa0": " "})
_WORD_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f]")


def read_doc(path: Path) -> tuple[str, str]:
    """Title and text of a Word file."""
    import olefile

    raw = path.read_bytes()
    if raw.startswith(olefile.MAGIC):
        with olefile.OleFileIO(io.BytesIO(raw)) as container:
            raw = container.openstream("WordDocument").read() if container.exists("WordDocument") else b""
    version = _BEFORE_97.get(raw[:2])
    if version is None:
        return read_other(path, ".doc")
    (flags,) = struct.unpack_from("<H", raw, _FLAGS)
    if flags & _IS_ENCRYPTED:
        raise CorpusError("the file is encrypted; save it without its password to read it")
    letters = b"".join(_pieces(raw) if flags & _IS_SAVED_IN_PIECES and "6" in version else [_main_text(raw)])
    encoding = guess_encoding(letters)
    note(f"of Word {version}, whose text alone is read, as {encoding}")
    return "", _paragraphs(letters.decode(encoding, "replace"))


def _main_text(raw: bytes) -> bytes:
    start, end = struct.unpack_from("<II", raw, _TEXT)
    return raw[start:end]


def _pieces(raw: bytes) -> Iterator[bytes]:
    """Pieces of the text in their order, each of which lies somewhere in the file."""
    offset, size = struct.unpack_from("<II", raw, _PIECES)
    end = min(len(raw), offset + size)
    while offset < end and raw[offset] == 1:  # a list of changes of looks
        offset += 3 + struct.unpack_from("<H", raw, offset + 1)[0]
    (size,) = struct.unpack_from("<I", raw, offset + 1)
    count = (size - 4) // 12
    starts = struct.unpack_from(f"<{count + 1}I", raw, offset + 5)
    for number in range(count):
        (first,) = struct.unpack_from("<I", raw, offset + 5 + 4 * (count + 1) + 8 * number + 2)
        yield raw[first : first + starts[number + 1] - starts[number]]


def _paragraphs(text: str) -> str:
    """Text without codes of fields; cells of a row stand on one line."""
    for _ in range(_FIELD_DEPTH):
        text = _FIELD_CODE.sub("", text)
    text = text.replace("\x07\x07", "\n").replace("\x07", " ; ").replace("\r\n", "\n").translate(_SIGNS)
    return plain_text(_WORD_CONTROLS.sub("", text).replace("\n", "\n\n"))
