"""Reads files and folders as documents."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, Union

from sire_core.documents.block_reading import read_blocks
from sire_core.documents.chunker import SentenceChunker, chunk_document
from sire_core.documents.front_matter import front_matter
from sire_core.documents.furniture import is_contents
from sire_core.documents.markdown_cleaning import clean_markdown, without_hyphenation
from sire_core.documents.markdown_sections import heading_texts, naming_heading, with_comments_as_code
from sire_core.documents.markdown_writing import undo_escapes, undo_inline
from sire_core.documents.titles import header_title, opening_title, without_site_name
from sire_core.documents.validation import DocumentPool
from sire_core.errors import CorpusError, SireError
from sire_core.files.conversion import Converted, conversion, note
from sire_core.files.converters import with_extra
from sire_core.files.delimited import read_values
from sire_core.files.file_types import SAME_FORMATS, type_by_content
from sire_core.files.html import html_to_markdown
from sire_core.files.json_records import FoundRecord, holds_question, record_documents
from sire_core.files.mail import read_mail
from sire_core.files.notations import NOTATIONS, read_notation, tex_letters
from sire_core.files.reader_plugins import plugin_suffix
from sire_core.files.reading_process import convert_limited, one_process
from sire_core.files.reading_signs import reading_warnings
from sire_core.files.restructured import is_rst, read_rst
from sire_core.files.source_code import SOURCES, read_source
from sire_core.files.source_files import (
    DEFAULT_MAX_BYTES,
    GENERATED,
    OUTSIDE,
    VALUE_SHARE,
    SourceFile,
    check_readable,
    find_files,
    holds_text,
    json_lines,
    parse_json,
    read_text,
)
from sire_core.text.pluralize import count, some
from sire_core.text.words import clean_text
from sire_core.types import Document, Failure

UNSUPPORTED = "unsupported type"
"""Beginning of the reason for which a file is skipped that holds no text, such as a picture."""
CONVERT = "convert it to text, Markdown, HTML, PDF, CSV, JSON or JSON Lines"
_ADVICE = {
    re.compile(r"\.(?:gz|bz2|xz|zst|zip|tar|tgz|7z|rar)"): "unpack it",
    re.compile(r"\.[1-9][a-z]{0,3}"): (
        "if it is a manual page, write it as a text (man -l FILE | col -bx > FILE.txt), or install a reader of manual "
        "pages, such as examples/manual_pages in the repository"
    ),
    re.compile(""): "if it is a text, give the file itself as a source",
}
"""Advice on files of types that are not read, by patterns of suffixes."""
READING = "files-19"  # Version of the readers; changes whenever the same file may give another document

CONVERTED = (
    *(".pdf", ".docx", ".doc", ".odt", ".rtf", ".pptx", ".ppt", ".odp", ".xlsx", ".xls", ".ods"),
    *(".epub", ".fb2", ".msg", ".ipynb", ".xml", ".opml", ".mht", ".mhtml"),
)
"""Suffixes that need the extra `files`."""

_MARKDOWN = (".md", ".markdown", ".mdx", ".rmd", ".qmd")
_HTML = (".html", ".htm", ".xhtml")
_RECORDS = (".jsonl", ".json")
_RST = (".rst", ".rest")
_SEPARATORS = {".csv": "", ".tsv": "\t"}
_VERBATIM = (
    *(".log", ".ini", ".cfg", ".conf", ".toml", ".yaml", ".yml", ".properties", ".env", ".diff", ".patch"),
    *(".bib", ".srt", ".vtt", ".text", ".graphql", ".proto"),
)
PROSE = (".txt", ".text", ".eml", *_MARKDOWN, *_HTML, *_RST, *NOTATIONS, *_SEPARATORS, *CONVERTED, *SAME_FORMATS)
"""Suffixes of files of prose and tables: not source code, settings and records."""
_SUFFIXES = (".txt", *_MARKDOWN, *_HTML, *_RECORDS, *_RST, *NOTATIONS, *SOURCES, *_VERBATIM)
_READ = frozenset((*_SUFFIXES, *_SEPARATORS, *CONVERTED, *SAME_FORMATS, ".eml"))
_PLAIN = re.compile(
    "(?!install)(?i:readme|changes|changelog|history|news|release_?notes|install|faq|hacking|contributing|contributors|"
    "authors|maintainers|credits|thanks|copying|copyright|licen[cs]e|notice|security|todo|bugs)"
)
"""Names of texts that have no suffix; `install` in small letters is a program."""
_UNHEADED = (".msg", ".xlsx", ".xls", ".ods")
"""Mails and workbooks: a heading in them, such as the name of the first sheet, is not their title."""
_SAYS = re.compile(r"[^\W\d_]")
_OPENING = 10_000  # Letters in which a text has its title
_MAX_LISTED_NAMES = 100
_SHOWN, _NAMED = 10, 3  # Reasons, and files of each


class _Note(NamedTuple):
    """A remark about the text of a file."""

    words: str


_Item = Union[FoundRecord, Failure, _Note]


@dataclass(slots=True)
class LoadedDocuments:
    """Documents that were read, and failures. Iteration and length are those of `documents`.

    Attributes:
        documents: In the order of the sources, files of a folder sorted by name.
        failures: Files and lines that could not be used, and why.
        duplicates: Where an identical repeat of a document was found -> where the one that was kept was found.
        unread: Names of the files and folders that could not be used, in whole or in part.
        known: Files that were not read, as an index holds their documents; their names are the ids.
        whole: Files that were read as one document each, whose name is its id, without any failure or note.
        folders: Folders that ids are relative to, and what stands in front of them (`roots` of the next reading).
        notes: Files that were read in another way than their names say, or not quite, and how.
    """

    documents: tuple[Document, ...]
    failures: tuple[Failure, ...] = ()
    duplicates: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    known: tuple[SourceFile, ...] = ()
    whole: tuple[SourceFile, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Failure, ...] = ()
    _drained: frozenset[str] = field(default=frozenset(), repr=False)  # ids of documents that are no longer held

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, number: int) -> Document:
        return self.documents[number]

    @property
    def ids(self) -> set[str]:
        """Ids of all documents, known files and drained documents included."""
        return {*(document.id for document in self.documents), *(file.name for file in self.known), *self._drained}

    def drain(self) -> Iterator[Document]:
        """Yield the documents and hold them no longer, so that a build can free their texts."""
        self._drained = frozenset(document.id for document in self.documents)
        documents, self.documents = self.documents, ()
        yield from documents

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
    comments of configuration or code stand behind four blanks, so that they are no headings. Markdown loses comments,
    front matter, anchors, escapes and lines of navigation, HTML whatever is not content; definitions of source code
    become headings. Mails (EML, MSG) bring `from`, `reply_to`, `to`, `cc`, `bcc` and `date` as metadata and
    attachments that are text; others are named in `failures`. PDF, DOCX, PPTX, XLSX, RST, EPUB and others need the
    extra `files` (`sire_core.files.readers.CONVERTED`); further formats are read by installed packages that offer
    readers of them.
    Page numbers are left out (passages of a PDF have `page` in their metadata), headers and footers of pages stand in
    the text once. Lines of a JSON Lines file (items of a JSON list) are documents
    `{"id", "title", "text" or "chunks", "metadata"}`; further scalar keys and flat lists become metadata; without an id
    it is `<file>:<line>`. The official HotpotQA, 2WikiMultiHopQA and MuSiQue files give their pooled
    passages. Files should be UTF-8, have a byte order mark, or be HTML that declares its encoding; another one is
    guessed (`notes`). A file is read by its content where its name says another type. What cannot be used is listed
    in `failures` and the rest is read. Scripts, search indexes and sources of pages (of XML those whose words the page
    beside them has) that a site generator left in a folder are skipped and listed in `failures`; a file that is named
    itself is read, and whatever its suffix where it is text. Of files without a suffix, folders give those that have a
    well-known name (`README`, `LICENSE`).

    Args:
        sources: Files and folders.
        max_bytes: Larger files are refused, by default (512 MB) texts above 32 MB, JSON values and mails above 128 MB.
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
    files, left, folders = find_files(sources, roots)
    reading = _Reading(max_bytes, progress, left)
    unchanged = dict.fromkeys(file for file in files if is_known is not None and is_known(file))
    reading.read([file for file in files if file not in unchanged])
    while twins := [file for file in unchanged if file.name in reading.pool]:  # another file has a document of that id
        unchanged = dict.fromkeys(file for file in unchanged if file not in twins)
        reading.read(twins)
    return reading.loaded(tuple(unchanged), folders)


class _Reading:
    """Documents, failures and notes of the files that were read so far."""

    def __init__(
        self,
        max_bytes: int,
        progress: Callable[[str, int, int], None] | None,
        left_out: Sequence[tuple[SourceFile, str]],
    ) -> None:
        self.pool = DocumentPool()
        self._max_bytes, self._progress = max_bytes, progress
        self._failures = [
            _unsupported(file) if reason == OUTSIDE and not _is_read(file) else Failure(_location(file), reason)
            for file, reason in left_out
        ]
        self._notes: list[Failure] = []
        self._unread = [file.name for file, reason in left_out if not reason.startswith(GENERATED)]
        self._whole: list[SourceFile] = []

    def read(self, files: Sequence[SourceFile]) -> None:
        """Read files into the pool, with one process for those that a library reads."""
        with one_process():
            for number, file in enumerate(files, 1):
                self._read_file(file)
                if self._progress is not None:
                    self._progress("reading", number, len(files))

    def _read_file(self, file: SourceFile) -> None:
        failed: list[Failure] = []
        ids: list[str] = []
        notes = len(self._notes)
        for item in _read_file(file, self._max_bytes):
            if isinstance(item, Failure):
                failed.append(item)
            elif isinstance(item, _Note):
                self._notes.append(Failure(_location(file), item.words))
            else:
                self.pool.add(item.document, item.origin)
                ids.append(item.document.id)
        self._failures.extend(_shortened(failed, file))
        self._unread += [file.name] if failed else []
        self._whole += [file] if ids == [file.name] and not failed and notes == len(self._notes) else []

    def loaded(self, unchanged: tuple[SourceFile, ...], folders: Mapping[str, str]) -> LoadedDocuments:
        """Documents that were read, and failures, beside files that an index knows; `CorpusError` for nothing."""
        documents, failures = self.pool.documents(), tuple(self._failures)
        if not (documents or unchanged):
            raise CorpusError(f"Nothing could be read. {_reasons(failures)}.")
        read = tuple(self._unread), unchanged, tuple(self._whole)
        return LoadedDocuments(documents, failures, self.pool.duplicates, *read, folders, tuple(self._notes))


def _reasons(failures: Sequence[Failure]) -> str:
    """The first reasons of failures, each with a few of its files."""
    places: dict[str, list[str]] = {}
    for failure in failures:
        places.setdefault(failure.reason.rstrip("."), []).append(failure.where)
    reasons = [f"{some(names, _NAMED)}: {reason}" for reason, names in places.items()]
    more = f"; and {count(len(reasons) - _SHOWN, 'other reason')}" if len(reasons) > _SHOWN else ""
    return f"{'; '.join(reasons[:_SHOWN])}{more}"


def _ends_at_boundary(doc_id: str, name: str) -> bool:
    """True if a file or folder name ends at a boundary of the id."""
    return doc_id[len(name) : len(name) + 1] in ("", "/", ":")


def _shortened(failed: list[Failure], file: SourceFile) -> list[Failure]:
    """Limit the failures of one file; the last one counts the rest."""
    if len(failed) <= _MAX_LISTED_NAMES:
        return failed
    rest = len(failed) - _MAX_LISTED_NAMES
    return [*failed[:_MAX_LISTED_NAMES], Failure(_location(file), f"{count(rest, 'more record')} could not be used")]


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
    """Items of a file by the type of its content, which may be another than its name says."""
    named = _named_suffix(file.path)
    is_plain, plugged = _PLAIN.fullmatch(file.path.name) is not None, plugin_suffix(file.path.name)
    if _is_read(file):
        check_readable(file.path, max_bytes)
    elif not file.path.is_file():  # such as a link to a font that is not installed
        yield _unsupported(file)
        return
    suffix = plugged or type_by_content(file.path, named)
    with conversion(file.path.stat().st_size) as running:
        if suffix not in (named, plugged):
            note(f"named {named or 'without a suffix'}, but its content is that of {suffix}; read as such")
        if plugged or suffix in CONVERTED:
            converted = convert_limited(file.path, suffix, max_bytes)
            running.notes += converted.notes
            yield from _with_attachments(file, converted, headings=suffix not in _UNHEADED)
        elif suffix in _RECORDS:
            yield from _read_records(file, (_lines if suffix == ".jsonl" else _items)(file, max_bytes))
        elif suffix == ".eml":
            yield from _with_attachments(file, read_mail(file.path, max_bytes), headings=False)
        elif suffix in _SEPARATORS:
            text = read_values(read_text(file.path, max_bytes), _SEPARATORS[suffix])
            yield _with_title(file, text, "", headings=False)
        elif suffix in _SUFFIXES or is_plain or (file.is_given and holds_text(file.path)):
            yield _read_prose(file, suffix, max_bytes)
        else:
            yield _unsupported(file)
        yield from map(_Note, running.notes)


def _named_suffix(path: Path) -> str:
    """The suffix of a name, of a format with several ones the usual one."""
    return SAME_FORMATS.get(path.suffix.lower(), path.suffix.lower())


def _is_read(file: SourceFile) -> bool:
    """True if a file is given itself, or is read by its name, whatever its content."""
    name = file.path.name
    is_known = _named_suffix(file.path) in _READ or _PLAIN.fullmatch(name) is not None
    return is_known or file.is_given or bool(plugin_suffix(name))


def _unsupported(file: SourceFile) -> Failure:
    suffix = _named_suffix(file.path)
    reason = f"{UNSUPPORTED} '{suffix}'" if suffix else f"{UNSUPPORTED} (no suffix)"
    reason = f"of {reason}" if file.is_given else reason  # whoever names a file expects it to be read
    advice = next((advice for suffixes, advice in _ADVICE.items() if suffixes.fullmatch(suffix)), CONVERT)
    return Failure(_location(file), f"{reason}; {advice}")


def _read_prose(file: SourceFile, suffix: str, max_bytes: int) -> FoundRecord:
    text = read_text(file.path, max_bytes, declares=suffix in (*_HTML, ".tex"))
    fields: dict[str, Any] = {}
    if suffix in _HTML:
        title, text = html_to_markdown(text)
    elif suffix in _MARKDOWN:
        fields = front_matter(text)
        if "source" in fields:  # a filter for the path has to find every page
            fields.setdefault("page_source", fields.pop("source"))
        title, text = undo_inline(str(fields.pop("title", ""))), undo_escapes(clean_markdown(text))
        title = title or header_title(text)
    elif suffix in _RST or (suffix == ".txt" and is_rst(text)):
        title, text = with_extra(suffix, lambda: read_rst(text))
    elif suffix in NOTATIONS:
        title, text = read_notation(text, suffix)
    elif suffix in SOURCES:
        title, text = file.path.name, read_source(text, suffix)
    elif suffix in _VERBATIM:
        text = tex_letters(text) if suffix == ".bib" else text
        text = with_comments_as_code(text, headings=suffix == ".text")
        return _with_title(file, text, file.path.name, headings=False)
    else:
        title, text = (
            header_title(text) or opening_title(text[:_OPENING]),
            with_comments_as_code(without_hyphenation(text)),
        )
        return _with_title(file, text, title, headings=False)
    if not text.strip():
        text = next((str(fields[name]) for name in ("description", "summary", "excerpt") if fields.get(name)), "")
    if not text.strip():
        raise CorpusError("contains only markup")
    return _with_title(file, text, title, fields, is_page=suffix in _HTML)


def _with_attachments(file: SourceFile, mail: Converted, *, headings: bool) -> Iterator[_Item]:
    yield _with_title(file, mail.text, mail.title, mail.fields, headings=headings)
    for name, reason in mail.unread:
        yield Failure(f"{_location(file)}: {name}", reason)


def _with_title(
    file: SourceFile,
    text: str,
    title: str,
    fields: Mapping[str, Any] | None = None,
    *,
    headings: bool = True,
    is_page: bool = False,
) -> FoundRecord:
    """A document with a title: its own, else its first heading or the file name."""
    metadata = {**(fields or {}), "source": file.name}
    blocks = read_blocks(text)
    if is_page:
        title = without_site_name(title, next(iter(heading_texts(text, blocks)), ""))
    if is_contents(title):
        title = ""
    if not title and headings:
        title = naming_heading(text, blocks)
        title = title if _SAYS.search(title) else ""  # "3.2.0" or a date opens a page, but is not what it is about
    title = title or PurePosixPath(file.name).stem
    return FoundRecord(Document(file.name, text, title, metadata, blocks=blocks), _location(file))


def _lines(file: SourceFile, max_bytes: int) -> Iterator[tuple[str, Any]]:
    for line in json_lines(file.path, max_bytes):
        yield str(line.number), Failure(f"{_location(file)}:{line.number}", line.error) if line.error else line.value


def _items(file: SourceFile, max_bytes: int) -> Iterator[tuple[str, Any]]:
    value = parse_json(read_text(file.path, max_bytes, share=VALUE_SHARE))
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
    headings = dict.fromkeys(heading_texts(text, document.blocks or read_blocks(text)))
    return ReadDocument(
        id=document.id,
        title=document.title,
        headings=tuple(headings),
        characters=len(text),
        passages=len(chunk_document(document, chunker)),
        warnings=tuple(reading_warnings(document)),
    )
