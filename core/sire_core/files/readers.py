"""Reads files and folders as documents."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar, Union

from sire_core.documents.blocks import is_contents
from sire_core.documents.chunker import SentenceChunker, chunk_document
from sire_core.documents.front_matter import front_matter
from sire_core.documents.markdown_cleaning import clean_markdown, without_hyphenation
from sire_core.documents.markdown_sections import (
    first_heading,
    naming_heading,
    sections_of_markdown,
    with_comments_as_code,
    with_contents_as_list,
)
from sire_core.documents.markdown_writing import table, undo_escapes, undo_inline
from sire_core.documents.titles import first_title, header_title, opening_title, without_site_name
from sire_core.documents.validation import DocumentPool
from sire_core.errors import CorpusError, SireError
from sire_core.files.html import html_to_markdown
from sire_core.files.json_records import FoundRecord, holds_question, record_documents
from sire_core.files.mail import read_mail, read_outlook_mail
from sire_core.files.man_pages import NAME as MAN_PAGE
from sire_core.files.man_pages import read_man_page
from sire_core.files.office import read_values
from sire_core.files.pdf_process import one_process
from sire_core.files.reading_signs import reading_warnings
from sire_core.files.restructured import read_rst
from sire_core.files.rich_text import GAP, prepare_rtf
from sire_core.files.source_code import NOTATIONS, SOURCES, read_notation, read_source
from sire_core.files.source_files import (
    DANGLING,
    DEFAULT_MAX_BYTES,
    GENERATED,
    SourceFile,
    check_readable,
    find_files,
    holds_text,
    is_dangling,
    json_lines,
    parse_json,
    read_text,
)
from sire_core.text.pluralize import count, some
from sire_core.text.words import clean_text
from sire_core.types import Document, Failure

UNSUPPORTED = "unsupported type"
"""How the reason begins for which a file is skipped that holds no text, such as a picture."""
READING = "files-14"
"""Version of the readers; changes whenever the same file may give another document."""

CONVERTED = (
    *(".pdf", ".docx", ".doc", ".odt", ".rtf", ".pptx", ".ppt", ".odp", ".xlsx", ".xls", ".ods"),
    *(".epub", ".fb2", ".msg", ".ipynb", ".xml", ".opml"),
)
"""Suffixes that need the extra `files`."""

_BYTE_ORDER_MARK = re.compile(r"\A([\s|]*)\ufeff")
_UNDERLINE = re.compile(r"\n{3,}")

_READERS = {
    ".pdf": ("pdf_process", "read_pdf"),
    ".docx": ("office", "read_docx"),
    ".pptx": ("office", "read_pptx"),
    ".xlsx": ("office", "read_xlsx"),
    ".epub": ("xml_files", "read_epub"),
    **dict.fromkeys((".odt", ".odp", ".ods"), ("xml_files", "read_odt")),
    ".opml": ("xml_files", "read_opml"),
    ".xml": ("xml_files", "read_xml"),
    ".fb2": ("xml_files", "read_xml"),
    ".ipynb": ("source_code", "read_notebook"),
}
"""Modules and functions that read a format."""

_NEWER = {".doc": ".docx", ".rtf": ".docx", ".xls": ".xlsx", ".ppt": ".pptx", ".msg": ".eml"}
"""Formats that the programs of older ones save, too, and that are read with all that they hold."""
_MIDNIGHT = re.compile(r"(?<=^\d{4}-\d\d-\d\d) 00:00:00$")
_PICTURE = re.compile(r"!\[image\]\(image_\d+\.\w+\)")

_BLOCK = 1 << 20
_ENTITY = b"<!ENTITY"
_MARKUP = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx", ".svg", ".fb2", ".opml")
_MEMBERS = 100_000
_RATIO, _SMALL = 100, 16 << 20
"""How many times its size a file may expand to, above so many bytes; documents are packed to a tenth."""
_MARKDOWN = (".md", ".markdown", ".mdx", ".rmd", ".qmd")
_HTML = (".html", ".htm", ".xhtml")
_RECORDS = (".jsonl", ".json")
_RST = (".rst", ".rest")
_VALUES = {".csv": "", ".tsv": "\t"}
_VERBATIM = (
    *(".log", ".ini", ".cfg", ".conf", ".toml", ".yaml", ".yml", ".properties", ".env", ".diff", ".patch"),
    *(".bib", ".srt", ".vtt", ".text", ".graphql", ".proto"),
)
_SUFFIXES = (".txt", *_MARKDOWN, *_HTML, *_RECORDS, *_RST, *NOTATIONS, *SOURCES, *_VERBATIM)
_READ = frozenset((*_SUFFIXES, *_VALUES, *CONVERTED, ".eml"))
_PLAIN = re.compile(
    "(?!install)(?i:readme|changes|changelog|history|news|release_?notes|install|faq|hacking|contributing|contributors|"
    "authors|maintainers|credits|thanks|copying|copyright|licen[cs]e|notice|security|todo|bugs)"
)
"""Names of texts that have no suffix; `install` in small letters is a program."""
_SAYS = re.compile(r"[^\W\d_]")
_LISTED = 100
_SHOWN, _NAMED = 10, 3  # Reasons, and files of each
_Item = Union[FoundRecord, Failure]
_Content = TypeVar("_Content")


def convert_file(path: Path, max_bytes: int) -> tuple[str, str]:
    """Convert a file to its title and Markdown."""
    refuse_expanding(path, max_bytes)
    suffix = path.suffix.lower()
    module, name = _READERS.get(suffix, ("readers", "_by_kreuzberg"))
    title, text = with_extra(suffix, lambda: getattr(import_module(f"sire_core.files.{module}"), name)(path))
    if len(text) > max_bytes:
        raise CorpusError(f"its text is longer than max_bytes={max_bytes:,}; raise max_bytes or split the file")
    text = clean_text(text).replace("\r\n", "\n").replace("\r", "\n")
    text = _BYTE_ORDER_MARK.sub(r"\1", text)  # Excel begins "CSV UTF-8" with one, and it stays in the first cell
    if not text.strip():
        raise CorpusError("holds no text; a scanned document needs text recognition first")
    return clean_text(title), _UNDERLINE.sub("\n\n", text).strip()


def with_extra(suffix: str, read: Callable[[], _Content]) -> _Content:
    """Call a reader that needs the extra `files`."""
    try:
        return read()
    except ImportError as error:
        raise CorpusError(
            f'files of type {suffix} need the extra "files", as new as this version: pip install -U "sire-rag[files]"'
        ) from error
    except CorpusError:
        raise
    except Exception as error:  # every format has errors of its own; one bad file must not stop a folder
        advice = f"; save it as {_NEWER[suffix]} and read that" if suffix in _NEWER else ""
        raise CorpusError(f"cannot be converted: {' '.join(str(error).split())[:300].rstrip('.')}{advice}") from error


def _by_kreuzberg(path: Path) -> tuple[str, str]:
    """Title and Markdown of a file in one of the rarer formats."""
    # Before 4.8 there is no ContentFilterConfig.
    from kreuzberg import ContentFilterConfig, ExtractionConfig, extract_bytes_sync, extract_file_sync

    suffix = path.suffix.lower()
    # What stands at the edge of a page is taken for a running header, and a title is there too: all of it stays. Of
    # slides it is the words of the master ("Click to edit Master title style").
    everything = ContentFilterConfig(
        include_headers=suffix != ".ppt", include_footers=True, include_watermarks=True, strip_repeating_text=False
    )

    # Only the plain text of a .doc has its paragraphs.
    form = "plain" if suffix == ".doc" else "markdown"
    config = ExtractionConfig(output_format=form, content_filter=everything)
    if suffix == ".rtf":
        extracted = extract_bytes_sync(prepare_rtf(path.read_bytes()), "application/rtf", config=config)
    else:
        extracted = extract_file_sync(str(path), config=config)
    metadata: dict[str, Any] = dict(extracted.metadata)
    title = first_title(metadata.get("title"), metadata.get("subject"))
    if suffix == ".doc":
        return title, str(extracted.content).replace("\n", "\n\n")
    if suffix == ".xls":
        return title, _sheets(metadata.get("sheet_names", ()), extracted.tables)
    return title, undo_escapes(_PICTURE.sub("", str(extracted.content).replace(GAP, "")))


def _sheets(names: Sequence[str], tables: Sequence[Any]) -> str:
    """Sheets as tables without empty rows and columns, days without the time that they do not have."""
    rows = ([[_MIDNIGHT.sub("", cell) for cell in row] for row in found.cells] for found in tables)
    filled = [(found.page_number, text) for found, cells in zip(tables, rows, strict=True) if (text := table(cells))]
    return "\n\n".join(f"## {names[sheet - 1]}\n\n{text}" for sheet, text in filled)


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
        raise CorpusError(f"the file holds {len(members):,} members; that is not a document")
    left = max_bytes
    for member in members:
        markup = Path(member.filename).suffix.lower() in _MARKUP
        try:
            left = _check_member(file, member, left, markup=markup)
        except (OSError, ValueError, zlib.error) as error:
            raise CorpusError(f"cannot be opened: {error}") from error
        if left < 0:
            raise CorpusError(f"the file expands to more than max_bytes={max_bytes:,}; raise max_bytes or split it")
    packed, unpacked = file.seek(0, 2), max_bytes - left
    if unpacked > _SMALL and unpacked > _RATIO * packed:
        raise CorpusError(f"the file expands to {unpacked // packed:,} times its size; no document does that")


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


def _check_markup(blocks: Iterator[bytes]) -> None:
    tail = b""
    for block in blocks:
        tail = _check_block(tail, block)


def _check_block(tail: bytes, block: bytes) -> bytes:
    """Refuse entities, also in UTF-16; return the overlap with the next block."""
    content = tail + block.replace(b"\0", b"")
    if _ENTITY in content:
        raise CorpusError("the file declares XML entities, which may expand without end; take them out to read it")
    return content[-len(_ENTITY) :]


@dataclass(frozen=True, slots=True)
class LoadedDocuments:
    """Documents that were read, and failures. Iteration and length are those of `documents`.

    Attributes:
        documents: In the order of the sources, files of a folder sorted by name.
        failures: Files and lines that could not be used, and why.
        duplicates: Where an identical repeat of a document was found -> where the one that was kept was found.
        unread: Names of the files and folders that could not be used, in whole or in part.
        known: Files that were not read, as an index holds their documents; their names are the ids.
        whole: Files that were read as one document each, whose name is its id, without any failure.
        folders: Folders that ids are relative to, and what stands in front of them (`roots` of the next reading).
    """

    documents: tuple[Document, ...]
    failures: tuple[Failure, ...] = ()
    duplicates: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    known: tuple[SourceFile, ...] = ()
    whole: tuple[SourceFile, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, number: int) -> Document:
        return self.documents[number]

    @property
    def ids(self) -> set[str]:
        """Ids of all documents, known files included."""
        return {*(document.id for document in self.documents), *(file.name for file in self.known)}

    def may_hold(self, doc_id: str, *, a_file: bool = False) -> str | None:
        """Name of an unread file that may contain a document; None if there is none."""
        for name in self.unread:
            record = not a_file and name.lower().endswith(_RECORDS)
            if record or name == "." or (doc_id.startswith(name) and _ends_at_boundary(doc_id, name)):
                return name
        return None


def read_documents(
    sources: str | Path | Sequence[str | Path],
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    roots: Mapping[str, str] | Sequence[str | Path] = (),
    is_known: Callable[[SourceFile], bool] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> LoadedDocuments:
    """Read text, Markdown, HTML, source code, JSON Lines and JSON files, and folders of them; others with an extra.

    A file of prose is one document: the id is its path below the folder that was given (or one of `roots`), with the
    name of the folder in front where several are given that have files of the same path. The title is that of its page,
    else the first heading, in text files a first line that stands alone as one, else the file's name;
    `metadata["source"]` is the id again, for filters (a field `source` in the front matter of a page becomes
    `page_source`).
    In text files words that a hyphen cuts at the end of a line are put together again, and lines with `#` that are
    comments of configuration or code stand behind four blanks, so that they are no headings. Manual pages in troff
    (`.1`, `.8.gz`, ...) are read with their sections. Markdown loses comments, front
    matter, anchors, escapes and lines of navigation, HTML whatever is not content; definitions of source code become
    headings. Mails (EML, MSG) bring `from`, `to`, `cc` and `date` as metadata and attachments that are text; others are
    named in `failures`. PDF, DOCX, PPTX, XLSX, RST, EPUB and others need the extra `files`
    (`sire_core.files.readers.CONVERTED`); page numbers are left out (passages of a PDF have `page` in their
    metadata), headers and footers of pages stand in the text once. Lines of a JSON Lines file (items of a JSON list)
    are documents `{"id", "title", "text" or "chunks", "metadata"}`; further scalar keys and flat lists become metadata;
    without an id it is `<file>:<line>`. The official HotpotQA, 2WikiMultiHopQA and MuSiQue files give their pooled
    passages. Files must be UTF-8, or HTML that declares its encoding. What cannot be used is listed in `failures` and
    the rest is read. Scripts, search indexes and sources of pages (of XML those whose words the page beside them has)
    that a site generator left in a folder are skipped and listed in `failures`; a file that is named itself is read,
    and whatever its suffix where it is text. Of files without a suffix, folders give those that have a well-known name
    (`README`, `LICENSE`).

    Args:
        sources: Files and folders.
        max_bytes: Larger files are refused.
        roots: Folders that ids are relative to, whatever part of them is read: with `roots=["docs"]` the file
            `docs/api/queue.md` is `api/queue.md`, given by itself or with its folder, and however its path is written.
            A mapping says what stands in front of the ids of each (`LoadedDocuments.folders`).
        is_known: Whether an index holds the document of a file as it is; such files are not read.
        progress: Told `("reading", files read, files)`.

    Raises:
        CorpusError: A path is missing, nothing could be read, or one id has two different contents.
        ConfigurationError: `max_bytes` makes no sense.
    """
    if isinstance(sources, (str, os.PathLike)):
        sources = [sources]
    files, left, folders = find_files(sources, roots, _is_document)
    failures = [Failure(_location(file), reason) for file, reason in left]
    unread = [file.name for file, reason in left if not reason.startswith(GENERATED)]
    pool = DocumentPool()
    known = {file: None for file in files if is_known is not None and is_known(file)}
    whole: list[SourceFile] = []
    waiting = [file for file in files if file not in known]
    while waiting:
        with one_process():
            for number, file in enumerate(waiting, 1):
                failed, ids = _add_file(file, max_bytes, pool)
                if progress is not None:
                    progress("reading", number, len(waiting))
                failures.extend(_shortened(failed, file))
                unread += [file.name] if failed else []
                whole += [file] if ids == [file.name] and not failed else []
        waiting = [file for file in known if file.name in pool]  # another file has a document of the same id
        known = {file: None for file in known if file.name not in pool}
    documents = pool.documents()
    if not (documents or known):
        places: dict[str, list[str]] = {}
        for failure in failures:
            places.setdefault(failure.reason.rstrip("."), []).append(failure.where)
        reasons = [f"{some(found, _NAMED)}: {reason}" for reason, found in places.items()]
        more = f"; and {count(len(reasons) - _SHOWN, 'other reason')}" if len(reasons) > _SHOWN else ""
        raise CorpusError(f"Nothing could be read. {'; '.join(reasons[:_SHOWN])}{more}.")
    read = tuple(unread), tuple(known), tuple(whole)
    return LoadedDocuments(documents, tuple(failures), pool.duplicates, *read, folders)


def _is_document(file: SourceFile) -> bool:
    """Whether a file may be read, by its name."""
    name = file.path.name
    patterns = (MAN_PAGE, _PLAIN)
    return file.is_given or file.path.suffix.lower() in _READ or any(pattern.fullmatch(name) for pattern in patterns)


def _add_file(file: SourceFile, max_bytes: int, pool: DocumentPool) -> tuple[list[Failure], list[str]]:
    """Read a file into a pool; return what failed, and the ids of its documents."""
    failed: list[Failure] = []
    ids: list[str] = []
    for item in _read_file(file, max_bytes):
        if isinstance(item, Failure):
            failed.append(item)
        else:
            pool.add(item.document, item.origin)
            ids.append(item.document.id)
    return failed, ids


def _ends_at_boundary(doc_id: str, name: str) -> bool:
    """Whether a file or folder name ends at a boundary of the id."""
    return doc_id[len(name) : len(name) + 1] in ("", "/", ":")


def _shortened(failed: list[Failure], file: SourceFile) -> list[Failure]:
    """Limit the failures of one file; the last one counts the rest."""
    if len(failed) <= _LISTED:
        return failed
    rest = len(failed) - _LISTED
    return [*failed[:_LISTED], Failure(_location(file), f"{count(rest, 'more record')} could not be used")]


def _location(file: SourceFile) -> str:
    return clean_text(str(file.path))


def _read_file(file: SourceFile, max_bytes: int) -> Iterator[_Item]:
    """Items of a file; what cannot be read is a failure, since one file must not stop a folder."""
    try:
        yield from _file_items(file, max_bytes)
    except CorpusError as error:
        yield Failure(_location(file), str(error))
    except SireError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever is wrong in our own readers
        reason = f"{type(error).__name__}: {error}"[:200]
        yield Failure(_location(file), f"could not be read ({reason}); this is a fault of sire-rag, please report it")


def _file_items(file: SourceFile, max_bytes: int) -> Iterator[_Item]:
    suffix = file.path.suffix.lower()
    if suffix == ".jsonl":
        yield from _read_records(file, _lines(file, max_bytes))
    elif suffix == ".json":
        yield from _read_records(file, _items(file, max_bytes))
    elif suffix in _SUFFIXES or _PLAIN.fullmatch(file.path.name):
        yield _read_prose(file, max_bytes)
    elif suffix in (".eml", ".msg"):
        yield from _read_mail(file, max_bytes)
    elif suffix in _VALUES:
        yield _with_title(file, read_values(read_text(file.path, max_bytes), _VALUES[suffix]), "", headings=False)
    elif suffix in CONVERTED:
        yield _convert(file, max_bytes)
    elif MAN_PAGE.fullmatch(file.path.name):
        check_readable(file.path, max_bytes)
        title, text = read_man_page(file.path, max_bytes)
        yield _with_title(file, clean_text(text), clean_text(title))
    elif not file.path.is_file():
        yield Failure(_location(file), DANGLING if is_dangling(file.path) else "not a regular file")
    elif file.is_given and holds_text(file.path):
        yield _read_prose(file, max_bytes)
    else:
        reason = f"{UNSUPPORTED} '{suffix}'" if suffix else f"{UNSUPPORTED} (no suffix)"
        reason = f"of {reason}" if file.is_given else reason  # whoever names a file expects it to be read
        yield Failure(_location(file), f"{reason}; convert it to text, Markdown, HTML, PDF, CSV, JSON or JSON Lines")


def _read_prose(file: SourceFile, max_bytes: int) -> FoundRecord:
    suffix = file.path.suffix.lower()
    text = read_text(file.path, max_bytes, declares=suffix in _HTML)
    fields: dict[str, Any] = {}
    if suffix in _HTML:
        title, text = html_to_markdown(text)
        title = without_site_name(title, first_heading(text))
    elif suffix in _MARKDOWN:
        fields = front_matter(text)
        if "source" in fields:  # a filter for the path has to find every page
            fields.setdefault("page_source", fields.pop("source"))
        title, text = undo_inline(str(fields.pop("title", ""))), undo_escapes(clean_markdown(text))
        title = title or header_title(text)
    elif suffix in _RST:
        title, text = with_extra(suffix, lambda: read_rst(text))
    elif suffix in NOTATIONS:
        title, text = read_notation(text, suffix)
    elif suffix in SOURCES:
        title, text = file.path.name, read_source(text, suffix)
    elif suffix in _VERBATIM:
        text = with_comments_as_code(text, headings=suffix == ".text")
        return _with_title(file, text, file.path.name, headings=False)
    else:
        title, text = header_title(text) or opening_title(text), with_comments_as_code(without_hyphenation(text))
        return _with_title(file, text, title, headings=False)
    if not text.strip():
        text = next((str(fields[name]) for name in ("description", "summary", "excerpt") if fields.get(name)), "")
    if not text.strip():
        raise CorpusError("contains only markup")
    return _with_title(file, text, title, fields)


def _read_mail(file: SourceFile, max_bytes: int) -> Iterator[_Item]:
    if file.path.suffix.lower() == ".msg":
        check_readable(file.path, max_bytes)
        mail = with_extra(".msg", lambda: read_outlook_mail(file.path))
    else:
        mail = read_mail(file.path, max_bytes)
    yield _with_title(file, mail.text, mail.title, mail.fields, headings=False)
    for name, reason in mail.unread:
        yield Failure(f"{_location(file)}: {name}", reason)


def _convert(file: SourceFile, max_bytes: int) -> FoundRecord:
    check_readable(file.path, max_bytes)
    title, text = convert_file(file.path, max_bytes)
    return _with_title(file, text, title)


def _with_title(
    file: SourceFile, text: str, title: str, fields: Mapping[str, Any] | None = None, *, headings: bool = True
) -> FoundRecord:
    """A document with a title: its own, else its first heading or the file name."""
    metadata = {**(fields or {}), "source": file.name}
    text = with_contents_as_list(text) if headings else text
    if is_contents(title):
        title = ""
    if not title and headings:
        title = naming_heading(text)
        title = title if _SAYS.search(title) else ""  # "3.2.0" or a date opens a page, but is not what it is about
    title = title or PurePosixPath(file.name).stem
    return FoundRecord(Document(id=file.name, text=text, title=title, metadata=metadata), _location(file))


def _lines(file: SourceFile, max_bytes: int) -> Iterator[tuple[str, Any]]:
    for line in json_lines(file.path, max_bytes):
        yield str(line.number), Failure(f"{_location(file)}:{line.number}", line.error) if line.error else line.value


def _items(file: SourceFile, max_bytes: int) -> Iterator[tuple[str, Any]]:
    value = parse_json(read_text(file.path, max_bytes))
    for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
        yield str(number), item


def _read_records(file: SourceFile, records: Iterator[tuple[str, Any]]) -> Iterator[_Item]:
    questions = total = 0
    for number, record in records:
        total += 1
        origin = f"{_location(file)}:{number}"
        if isinstance(record, Failure):
            yield record
        elif holds_question(record):
            questions += 1
        else:
            try:
                yield from record_documents(record, origin, f"{file.name}:{number}")
            except CorpusError as error:
                yield Failure(origin, str(error))
    if questions:
        number_of_questions = count(questions, "question")
        yield Failure(
            _location(file),
            f"{number_of_questions}, not documents: for `sire eval --questions`, or read_questions in Python",
        )
    if not total:
        yield Failure(_location(file), "the file holds no records")


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document before an index is built.

    Attributes:
        id: Its id.
        title: Its title.
        headings: Its headings in order, without their marks.
        characters: Length of its text.
        passages: How many passages an index would make of it.
        warnings: Signs that it was read badly, for people.
    """

    id: str
    title: str
    headings: tuple[str, ...]
    characters: int
    passages: int
    warnings: tuple[str, ...]


def check_reading(document: Document, chunker: SentenceChunker | None) -> ReadDocument:
    """Describe a document as it was read, with warnings."""
    text = document.text or "\n\n".join(passage.text for passage in document.passages)
    sections = sections_of_markdown(text)
    headings = dict.fromkeys(heading for section in sections for heading in section.path)
    return ReadDocument(
        id=document.id,
        title=document.title,
        headings=tuple(headings),
        characters=len(text),
        passages=len(chunk_document(document, chunker)),
        warnings=tuple(reading_warnings(document)),
    )
