"""PowerPoint files before 2007: by kreuzberg; slides that it finds empty by the records of their text."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from sire_core.documents.markdown_writing import plain_text
from sire_core.files.conversion import note, spend
from sire_core.files.other_formats import read_other, read_with_edges

_IS_CONTAINER = 0xF
_SLIDE, _NOTES_PAGE = 0x03EE, 0x03F0
_WIDE_TEXT, _NARROW_TEXT = 0x0FA0, 0x0FA8
_MAX_DEPTH = 20
_LINES = str.maketrans({"\r": "\n", "\x0b": "\n"})


def read_ppt(path: Path) -> tuple[str, str]:
    """Title and text of a PowerPoint file."""
    title, text = read_other(path, ".ppt")
    if not text.strip() and (text := "\n\n".join(filter(str.strip, _texts(path)))):
        note("the text of its slides alone is read")
    if not text.strip():
        text = read_with_edges(path, ".ppt")
        note("its slides hold no text; read is that of their master")
    return title, text


def _texts(path: Path) -> Iterator[str]:
    """Texts of slides and notes; of PowerPoint 95 they stand together in a stream."""
    import olefile

    with olefile.OleFileIO(path) as container:
        if container.exists("Text_Content"):
            raw = container.openstream("Text_Content").read()
            yield plain_text(raw.decode("cp1252", "replace").replace("\r", "\n\n"))
        elif container.exists("PowerPoint Document"):
            raw = container.openstream("PowerPoint Document").read()
            yield from _texts_within(raw, 0, len(raw), 0, is_slide=False)


def _texts_within(raw: bytes, start: int, end: int, depth: int, *, is_slide: bool) -> Iterator[str]:
    """Texts of the records in a part of a file."""
    while start + 8 <= end:
        mark, kind, size = struct.unpack_from("<HHI", raw, start)
        start, stop = start + 8, min(end, start + 8 + size)
        if mark & _IS_CONTAINER == _IS_CONTAINER and depth < _MAX_DEPTH:
            of_slide = kind == _NOTES_PAGE and any(raw[start + 8 : start + 11])  # else they are the form of others
            yield from _texts_within(raw, start, stop, depth + 1, is_slide=is_slide or of_slide or kind == _SLIDE)
        elif is_slide and kind in (_WIDE_TEXT, _NARROW_TEXT):
            letters = raw[start:stop].decode("utf-16-le" if kind == _WIDE_TEXT else "cp1252", "replace")
            yield spend(plain_text(letters.translate(_LINES))) if any(map(str.isalnum, letters)) else ""
        start = stop
