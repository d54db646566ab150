"""Files of any type as Markdown, by libraries of the extra `files`; archives that expand without end are refused."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from sire_core.clean_text import clean_text
from sire_core.corpus.markdown_escapes import undo_escapes
from sire_core.corpus.titles import first_title
from sire_core.errors import CorpusError

__all__ = ["CONVERTED", "convert_file", "refuse_expanding", "with_extra"]

CONVERTED = (
    *(".pdf", ".docx", ".doc", ".odt", ".rtf", ".pptx", ".ppt", ".odp", ".xlsx", ".xls", ".ods"),
    *(".epub", ".fb2", ".msg", ".ipynb", ".xml", ".opml"),
)
"""Suffixes that need the extra `files`."""

_BYTE_ORDER_MARK = re.compile(r"\A([\s|]*)\ufeff")
_UNDERLINE = re.compile(r"\n{3,}")


_READERS = {
    ".pdf": ("pdf", "read_pdf"),
    ".docx": ("word", "read_docx"),
    ".pptx": ("slides", "read_pptx"),
    ".xlsx": ("sheets", "read_xlsx"),
    ".epub": ("xml_files", "read_epub"),
    **dict.fromkeys((".odt", ".odp", ".ods"), ("xml_files", "read_odt")),
    ".opml": ("xml_files", "read_opml"),
    ".xml": ("xml_files", "read_xml"),
    ".fb2": ("xml_files", "read_xml"),
    ".ipynb": ("notebooks", "read_notebook"),
}
"""Modules and functions that read a file with the library made for its format."""


def convert_file(path: Path, max_bytes: int) -> tuple[str, str]:
    """Convert a file."""
    refuse_expanding(path, max_bytes)
    suffix = path.suffix.lower()
    module, name = _READERS.get(suffix, ("conversion", "_by_kreuzberg"))
    title, text = with_extra(suffix, lambda: getattr(import_module(f"sire_core.corpus.{module}"), name)(path))
    if len(text) > max_bytes:
        raise CorpusError(f"its text is longer than max_bytes={max_bytes:,}; raise max_bytes or split the file")
    text = clean_text(text).replace("\r\n", "\n").replace("\r", "\n")
    text = _BYTE_ORDER_MARK.sub(r"\1", text)  # Excel begins "CSV UTF-8" with one, and it stays in the first cell
    if not text.strip():
        raise CorpusError("holds no text; a scanned document needs text recognition first")
    return clean_text(title), _UNDERLINE.sub("\n\n", text).strip()


def with_extra(suffix: str, read: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """What a reader returns that needs the extra `files`."""
    try:
        return read()
    except ImportError as error:
        raise CorpusError(
            f'files of type {suffix} need the extra "files", as new as this version: pip install -U "sire-rag[files]"'
        ) from error
    except CorpusError:
        raise
    except Exception as error:  # every format has errors of its own; one bad file must not stop a folder
        raise CorpusError(f"cannot be converted: {' '.join(str(error).split())[:300]}") from error


def _by_kreuzberg(path: Path) -> tuple[str, str]:
    """Title and Markdown of a file of one of the rarer formats."""
    # Before 4.8 there is no ContentFilterConfig.
    from kreuzberg import ContentFilterConfig, ExtractionConfig, extract_file_sync

    # What stands at the edge of a page is taken for a running header, and a title is there too: all of it stays.
    everything = ContentFilterConfig(
        include_headers=True, include_footers=True, include_watermarks=True, strip_repeating_text=False
    )

    found = extract_file_sync(str(path), config=ExtractionConfig(output_format="markdown", content_filter=everything))
    text = str(found.content)
    metadata = dict(found.metadata)
    return first_title(metadata.get("title"), metadata.get("subject")), undo_escapes(text)


_BLOCK = 1 << 20
_ENTITY = b"<!ENTITY"
_MARKUP = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx", ".svg", ".fb2", ".opml")
_MEMBERS = 100_000


def refuse_expanding(path: Path, max_bytes: int) -> None:
    """Refuse a file whose content is larger than a bound, or whose XML declares entities."""
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(0)
        if head[:2] == b"PK":
            _check_archive(file, max_bytes)
        elif path.suffix.lower() in _MARKUP:
            _check_markup(iter(lambda: file.read(_BLOCK), b""))


def _check_archive(file: BinaryIO, max_bytes: int) -> None:
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise CorpusError(f"cannot be opened: {error}") from error
    if len(members) > _MEMBERS:
        raise CorpusError(f"the file holds {len(members):,} others; that is no document")
    left = max_bytes
    for member in members:
        markup = Path(member.filename).suffix.lower() in _MARKUP
        try:
            left = _check_member(file, member, left, markup=markup)
        except (OSError, ValueError, zlib.error) as error:
            raise CorpusError(f"cannot be opened: {error}") from error
        if left < 0:
            raise CorpusError(f"the file expands to more than max_bytes={max_bytes:,}; raise max_bytes or split it")


def _check_member(file: BinaryIO, member: zipfile.ZipInfo, left: int, *, markup: bool) -> int:
    """What is left of the bytes; negative when a member needs more."""
    file.seek(member.header_offset)
    head = file.read(30)
    file.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
    if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise CorpusError(f"{member.filename[:80]!r} is packed in a way that documents do not use")
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


def _check_markup(blocks: Iterator[bytes]) -> None:
    tail = b""
    for block in blocks:
        tail = _check_block(tail, block)


def _check_block(tail: bytes, block: bytes) -> bytes:
    """Refuse entities, also in UTF-16; what the next block begins with."""
    content = tail + block.replace(b"\0", b"")
    if _ENTITY in content:
        raise CorpusError("the file declares XML entities, which may expand without end; take them out to read it")
    return content[-len(_ENTITY) :]
