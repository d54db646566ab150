"""Word files of all versions before 2007: by kreuzberg, older ones and what it cannot read by their text alone."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator
from pathlib import Path

from sire_core.documents.markdown_writing import plain_text
from sire_core.errors import CorpusError
from sire_core.files.conversion import note
from sire_core.files.file_types import ENCRYPTED
from sire_core.files.other_formats import read_other
from sire_core.files.text_encodings import guess_encoding

_EAST_ASIAN = b"\x99\xa6"
_BEFORE_97 = {
    b"\x31\xbe": "for DOS",
    b"\x9b\xa5": "1",
    b"\xdb\xa5": "2",
    b"\xdc\xa5": "6 or 95",
    _EAST_ASIAN: "6 of the Far East",
}
"""Versions by the first bytes."""
_FLAGS, _TEXT, _PIECES, _PIECES_97 = 0x0A, 0x18, 0x160, 0x1A2
"""Places in the header: of what the file is like, of where its text is, of the table of its pieces (6, 97)."""
_DOS_TEXT, _DOS_END = 128, 0x0E  # Where the text of Word for DOS begins, and the place in the header of its end
_IS_SAVED_IN_PIECES, _IS_ENCRYPTED, _IS_TABLE_1 = 0x04, 0x100, 0x200
_IS_NARROW = 1 << 30  # Mark of a piece of Word 97 whose letters have one byte
_FIELD_CODE = re.compile("\x13[^\x13-\x15]*(?:\x14|\x15)")
_FIELD_DEPTH = 5
_SIGNS = str.maketrans({"\x0b": "\n", "\x0c": "\n", "\r": "\n", "\x1e": "-", "\xa0": " "})
_WORD_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f]")


def read_doc(path: Path) -> tuple[str, str]:
    """Title and text of a Word file."""
    import olefile

    raw, tables = path.read_bytes(), [b"", b""]
    if raw.startswith(olefile.MAGIC):
        with olefile.OleFileIO(io.BytesIO(raw)) as container:
            raw, *tables = (
                container.openstream(name).read() if container.exists(name) else b""
                for name in ("WordDocument", "0Table", "1Table")
            )
    version = _BEFORE_97.get(raw[:2])
    flags = struct.unpack_from("<H", raw, _FLAGS)[0] if len(raw) > _FLAGS + 1 else 0
    if version is None:
        return _read_newer(path, raw, tables[bool(flags & _IS_TABLE_1)])
    if flags & _IS_ENCRYPTED:
        raise CorpusError(ENCRYPTED)
    letters = b"".join(_pieces(raw) if flags & _IS_SAVED_IN_PIECES and "6" in version else [_main_text(raw)])
    text, encoding = _decoded_east_asian(letters) if raw.startswith(_EAST_ASIAN) else _decoded(letters)
    note(f"of Word {version}, whose text alone is read, as {encoding}")
    return "", _paragraphs(text)


def _decoded(letters: bytes) -> tuple[str, str]:
    encoding = guess_encoding(letters)
    return letters.decode(encoding, "replace"), encoding


def _decoded_east_asian(letters: bytes) -> tuple[str, str]:
    """Text of which each character has two bytes, the first one behind; that one is no letter's in Western words."""
    codes = [letters[start : start + 2][::-1] for start in range(0, len(letters), 2)]
    encoding = guess_encoding(b"".join(code for code in codes if code[0] >= 1 << 7))
    decoded = (
        code.decode(encoding, "replace") if code[0] >= 1 << 7 else code[1:].decode("cp1252", "replace")
        for code in codes
    )
    return "".join(decoded), encoding


def _read_newer(path: Path, raw: bytes, table: bytes) -> tuple[str, str]:
    """Word 97 and newer by kreuzberg; what it refuses or finds empty (text in margins alone) by the text in `raw`."""
    failure: Exception | None = None
    try:
        title, text = read_other(path, ".doc")
        if text.strip():
            return title, text
    except Exception as error:  # noqa: BLE001 (raised again below, unless there is text)
        failure = error
    offset, size = struct.unpack_from("<II", raw, _PIECES_97) if len(raw) > _PIECES_97 + 7 else (0, 0)
    pieces = [
        raw[(first & ~_IS_NARROW) // 2 :][:letters].decode("cp1252", "replace")
        if first & _IS_NARROW
        else raw[first : first + 2 * letters].decode("utf-16-le", "replace")
        for first, letters in _piece_table(table, offset, size)
    ]
    text = _paragraphs("".join(pieces))
    if failure is not None and not text.strip():
        raise failure
    note("the text of its pages and margins alone is read")
    return "", text


def _main_text(raw: bytes) -> bytes:
    if raw[:2] == b"\x31\xbe":
        return raw[_DOS_TEXT : struct.unpack_from("<I", raw, _DOS_END)[0]]
    start, end = struct.unpack_from("<II", raw, _TEXT)
    return raw[start:end]


def _pieces(raw: bytes) -> Iterator[bytes]:
    """Pieces of the text in their order, each of which lies somewhere in the file."""
    for first, letters in _piece_table(raw, *struct.unpack_from("<II", raw, _PIECES)):
        yield raw[first : first + letters]


def _piece_table(raw: bytes, offset: int, size: int) -> Iterator[tuple[int, int]]:
    """Place and number of letters of each piece, from a table of `size` bytes."""
    end = min(len(raw), offset + size)
    while offset < end and raw[offset] == 1:  # a list of changes of looks
        offset += 3 + struct.unpack_from("<H", raw, offset + 1)[0]
    if offset >= end:
        return
    (size,) = struct.unpack_from("<I", raw, offset + 1)
    count = (min(size, end - offset) - 4) // 12
    starts = struct.unpack_from(f"<{count + 1}I", raw, offset + 5)
    for number in range(count):
        (first,) = struct.unpack_from("<I", raw, offset + 5 + 4 * (count + 1) + 8 * number + 2)
        yield first, max(0, starts[number + 1] - starts[number])


def _paragraphs(text: str) -> str:
    """Text without codes of fields; cells of a row stand on one line."""
    for _ in range(_FIELD_DEPTH):
        text = _FIELD_CODE.sub("", text)
    text = text.replace("\x07\x07", "\n").replace("\x07", " ; ").replace("\r\n", "\n").translate(_SIGNS)
    return plain_text(_WORD_CONTROLS.sub("", text).replace("\n", "\n\n"))
