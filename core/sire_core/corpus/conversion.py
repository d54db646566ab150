"""Files of any type as Markdown, by libraries of the extra `files`; archives that expand without end are refused."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from sire_core.clean_text import clean_text
from sire_core.corpus.markdown_escapes import undo_escapes
from sire_core.corpus.titles import first_title
from sire_core.errors import CorpusError

__all__ = ["CONVERTED", "convert_file", "refuse_expanding"]

CONVERTED = (
    *(".pdf", ".docx", ".doc", ".odt", ".rtf", ".pptx", ".ppt", ".odp", ".xlsx", ".xls", ".ods"),
    *(".rst", ".org", ".tex", ".typ", ".epub", ".fb2", ".msg", ".ipynb", ".xml", ".opml", ".djot"),
)
"""Suffixes that need the extra `files`."""

_BYTE_ORDER_MARK = re.compile(r"\A([\s|]*)\ufeff")
_UNDERLINE = re.compile(r"\n{3,}")


_READERS = {
    ".docx": ("word", "read_docx"),
    ".pptx": ("slides", "read_pptx"),
    ".xlsx": ("sheets", "read_xlsx"),
}
"""Modules and functions that read a file with the library made for its format."""


def convert_file(path: Path, max_bytes: int) -> tuple[str, str]:
    """Convert a file.

    Args:
        path: The file.
        max_bytes: Most bytes that its content and its text may have when they are unpacked.

    Returns:
        Its title (of the file's own metadata, empty for none and for what a program wrote there) and its text as
        Markdown.

    Raises:
        CorpusError: The extra is missing or too old, or the file cannot be converted; the message is the reason alone.
    """
    refuse_expanding(path, max_bytes)
    suffix = path.suffix.lower()
    module, name = _READERS.get(suffix, ("conversion", "_by_kreuzberg"))
    try:
        read = getattr(import_module(f"sire_core.corpus.{module}"), name)
        title, text = read(path)
    except ImportError as error:
        raise CorpusError(
            f'files of type {suffix} need the extra "files", as new as this version: pip install -U "sire-rag[files]"'
        ) from error
    except CorpusError:
        raise
    except Exception as error:  # every format has errors of its own; one bad file must not stop a folder
        raise CorpusError(f"cannot be converted: {' '.join(str(error).split())[:300]}") from error
    if len(text) > max_bytes:
        raise CorpusError(f"its text is longer than max_bytes={max_bytes:,}; raise max_bytes or split the file")
    text = clean_text(text).replace("\r\n", "\n").replace("\r", "\n")
    text = _BYTE_ORDER_MARK.sub(r"\1", text)  # Excel begins "CSV UTF-8" with one, and it stays in the first cell
    if not text.strip():
        raise CorpusError("holds no text; a scanned document needs text recognition first")
    return clean_text(title), _UNDERLINE.sub("\n\n", text).strip()


def _by_kreuzberg(path: Path) -> tuple[str, str]:
    """Title and Markdown of a file of one of the rarer formats."""
    # Before 4.8 there is no ContentFilterConfig.
    from kreuzberg import ContentFilterConfig, ExtractionConfig, extract_bytes_sync, extract_file_sync

    # What stands at the edge of a page is taken for a running header, and a title is there too: all of it stays.
    everything = ContentFilterConfig(
        include_headers=True, include_footers=True, include_watermarks=True, strip_repeating_text=False
    )

    def pdf_as(raw: bytes, form: str) -> str:
        config = ExtractionConfig(output_format=form, content_filter=everything)
        return str(extract_bytes_sync(raw, "application/pdf", config=config).content)

    found = extract_file_sync(str(path), config=ExtractionConfig(output_format="markdown", content_filter=everything))
    text = str(found.content)
    if path.suffix.lower() == ".pdf" and text.strip():
        text = _with_words_apart(text, path.read_bytes(), pdf_as)
    metadata = dict(found.metadata)
    return first_title(metadata.get("title"), metadata.get("subject")), undo_escapes(text)


_BLOCK = 1 << 20
_ENTITY = b"<!ENTITY"
_MARKUP = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx", ".svg", ".fb2", ".opml")
_MEMBERS = 100_000


def refuse_expanding(path: Path, max_bytes: int) -> None:
    """Refuse a file whose content is larger than a bound, or whose XML declares entities.

    Args:
        path: The file. One that is no archive and no XML is fine.
        max_bytes: Most bytes of everything in an archive. They are counted, not believed.

    Raises:
        CorpusError: The file is hostile or broken; the message is the reason alone.
    """
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


_STRUCTURE = b"/StructTreeRoot"
_NO_STRUCTURE = b"/NoStructTree__"
_FEW = 20
"""Of so many lines one may seem to be glued: an address that goes over the end of a line is one word."""
_WITHOUT_SPACES = "\u0e00"
"""From here on there are scripts that write lines on without a space: Thai, Chinese, Japanese."""
_ENDS_WORD = ",.;:!?)\"'\u201d\u2019"


def _with_words_apart(markdown: str, raw: bytes, convert: Callable[[bytes, str], str]) -> str:
    """The Markdown of a PDF, from its words alone where the tree of its structure has lines without a space between.

    PDF files with tags (browsers print them) name the text of each paragraph; the converter joins its lines as they
    stand, and loses letters on the way. Without the tree it finds lines by where they are on the page. Its plain text
    has them in any case, and stands in where the tree cannot be taken out.

    Args:
        markdown: What the converter made of the file.
        raw: The file.
        convert: Text of a PDF in an output format of the converter.
    """
    plain = convert(raw, "plain")
    glued, lines = _glued(markdown, plain)
    if not glued:
        return markdown
    bare = _without_structure(raw)
    if bare != raw:
        again = convert(bare, "markdown")
        left, _ = _glued(again, plain)
        if left < glued and again.strip():
            markdown, glued = again, left
    return plain if glued * _FEW > lines else markdown


def _without_structure(raw: bytes) -> bytes:
    """A PDF that does not say which text is a paragraph or heading; every byte else stays in its place."""
    return raw.replace(_STRUCTURE, _NO_STRUCTURE)


def _glued(markdown: str, plain: str) -> tuple[int, int]:
    """How many ends of lines have their two words written as one, which the plain text nowhere has; and of how many.

    Args:
        markdown: A text.
        plain: The same, line by line.
    """
    known = set(plain.split())
    found = set(markdown.split())
    rows = [row for line in plain.split("\n") if (row := line.split())]
    ends = [(before[-1], after[0]) for before, after in pairwise(rows) if _apart(before[-1], after[0])]
    return sum(a + b in found and a + b not in known for a, b in ends), len(ends)


def _apart(last: str, first: str) -> bool:
    """Whether there is a space between two words: not within a word that a hyphen or an address cuts."""
    ends = last[-1].isalnum() or last[-1] in _ENDS_WORD
    return ends and first[0].isalnum() and max(last[-1], first[0]) < _WITHOUT_SPACES
