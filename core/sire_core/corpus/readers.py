"""Reading files and folders as documents."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Union

from sire_core.algorithms.wording import count
from sire_core.clean_text import clean_text
from sire_core.corpus.conversion import CONVERTED, convert_file, with_extra
from sire_core.corpus.files import (
    DEFAULT_MAX_BYTES,
    SourceFile,
    check_readable,
    find_files,
    json_lines,
    parse_json,
    read_text,
)
from sire_core.corpus.html import html_to_markdown
from sire_core.corpus.hyphenation import without_hyphenation
from sire_core.corpus.mail import read_mail
from sire_core.corpus.markdown_cleaning import clean_markdown, front_matter
from sire_core.corpus.markdown_escapes import undo_escapes, undo_inline
from sire_core.corpus.records import FoundRecord, holds_question, record_documents
from sire_core.corpus.restructured import read_rst
from sire_core.corpus.sections import first_heading
from sire_core.corpus.sheets import read_values
from sire_core.corpus.source_code import NOTATIONS, SOURCES, read_notation, read_source
from sire_core.corpus.titles import header_title
from sire_core.corpus.validation import DocumentPool
from sire_core.errors import CorpusError
from sire_core.types import Document, Failure

__all__ = ["LoadedDocuments", "read_documents"]

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
_SAYS = re.compile(r"[^\W\d_]")
_LISTED = 100
_SHOWN = 10

_Item = Union[FoundRecord, Failure]


@dataclass(frozen=True, slots=True)
class LoadedDocuments:
    """What was read.

    Attributes:
        documents: In the order of the sources, files of a folder sorted by name.
        failures: Files and lines that could not be used, and why.
        duplicates: Where an identical repeat of a document was found -> where the one that was kept was found.
        unread: Names of the files and folders that could not be used, in whole or in part.
    """

    documents: tuple[Document, ...]
    failures: tuple[Failure, ...] = ()
    duplicates: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    def may_hold(self, doc_id: str, *, a_file: bool = False) -> str | None:
        """What could not be used and may have held a document; None when nothing may.

        The id of a file's document is the file's name, or begins with it; records bring ids of their own.
        """
        for name in self.unread:
            record = not a_file and name.lower().endswith(_RECORDS)
            if record or name == "." or (doc_id.startswith(name) and _ends(doc_id, name)):
                return name
        return None


def read_documents(
    sources: str | Path | Sequence[str | Path],
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    roots: Sequence[str | Path] = (),
) -> LoadedDocuments:
    """Read text, Markdown, HTML, source code, JSON Lines and JSON files, and folders of them; others with an extra.

    A file of prose is one document: the id is its path below the folder that was given (or one of `roots`), the title
    that of its page, else the first heading or the file's name; `metadata["source"]` is the path again, for filters
    (a field `source` in the front matter of a page becomes `page_source`).
    In text files words that a hyphen cuts at the end of a line are put together again. Markdown loses comments, front
    matter, anchors, escapes and lines of navigation, HTML whatever is not content; definitions of source code become
    headings. Mails (EML) bring `from`, `to`, `cc` and `date` as metadata and attachments that are text; others are
    named in `failures`. PDF, DOCX, PPTX, XLSX, RST, EPUB and others need the extra `files`
    (`sire_core.corpus.conversion.CONVERTED`); page numbers are left out, headers and footers of pages stand in the text
    once. Lines of a JSON Lines file (items of a JSON list) are documents `{"id", "title", "text" or "chunks",
    "metadata"}`; further scalar keys and flat lists become metadata; without an id it is `<file>:<line>`. The official
    HotpotQA, 2WikiMultiHopQA and MuSiQue files give their pooled passages. Files must be UTF-8, or HTML that declares
    its encoding. What cannot be used is listed in `failures` and the rest is read.

    Args:
        sources: Files and folders.
        max_bytes: Larger files are refused.
        roots: Folders that ids are relative to, whatever part of them is read: with `roots=["docs"]` the file
            `docs/api/queue.md` is `api/queue.md`, given by itself or with its folder, and however its path is written.

    Raises:
        CorpusError: A path is missing, nothing could be read, or one id has two different contents.
        ConfigurationError: `max_bytes` makes no sense.
    """
    if isinstance(sources, (str, os.PathLike)):
        sources = [sources]
    files, left = find_files(sources, roots)
    failures = [Failure(_place(file), reason) for file, reason in left]
    unread = [file.name for file, _ in left]
    pool = DocumentPool()
    for file in files:
        failed: list[Failure] = []
        for item in _read_file(file, max_bytes):
            if isinstance(item, Failure):
                failed.append(item)
            else:
                pool.add(item.document, item.origin)
        failures.extend(_shortened(failed, file))
        unread += [file.name] if failed else []
    documents = pool.documents()
    if not documents:
        reasons = "; ".join(f"{failure.where}: {failure.reason}" for failure in failures[:_SHOWN])
        more = f"; and {len(failures) - _SHOWN} more" if len(failures) > _SHOWN else ""
        raise CorpusError(f"Nothing could be read. {reasons}{more}.")
    return LoadedDocuments(documents, tuple(failures), pool.duplicates, tuple(unread))


def _ends(doc_id: str, name: str) -> bool:
    """Whether a file's or folder's name ends where it ends in an id."""
    return doc_id[len(name) : len(name) + 1] in ("", "/", ":")


def _shortened(failed: list[Failure], file: SourceFile) -> list[Failure]:
    """Keep a file of a million bad lines from filling the report; the count stays."""
    if len(failed) <= _LISTED:
        return failed
    rest = len(failed) - _LISTED
    return [*failed[:_LISTED], Failure(_place(file), f"{count(rest, 'more record')} could not be used")]


def _place(file: SourceFile) -> str:
    return clean_text(str(file.path))


def _read_file(file: SourceFile, max_bytes: int) -> Iterator[_Item]:
    suffix = file.path.suffix.lower()
    try:
        if suffix == ".jsonl":
            yield from _read_records(file, _lines(file, max_bytes))
        elif suffix == ".json":
            yield from _read_records(file, _items(file, max_bytes))
        elif suffix in _SUFFIXES:
            yield _read_prose(file, max_bytes)
        elif suffix == ".eml":
            yield from _read_mail(file, max_bytes)
        elif suffix in _VALUES:
            yield _titled(file, read_values(read_text(file.path, max_bytes), _VALUES[suffix]), "", headings=False)
        elif suffix in CONVERTED:
            yield _convert(file, max_bytes)
        else:
            reason = f"unsupported type '{suffix}'" if suffix else "unsupported type (no suffix)"
            yield Failure(_place(file), f"{reason}; convert it to text, Markdown, HTML, PDF, CSV, JSON or JSON Lines")
    except CorpusError as error:
        yield Failure(_place(file), str(error))


def _read_prose(file: SourceFile, max_bytes: int) -> FoundRecord:
    suffix = file.path.suffix.lower()
    text = read_text(file.path, max_bytes, declares=suffix in _HTML)
    fields: dict[str, Any] = {}
    if suffix in _HTML:
        title, text = html_to_markdown(text)
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
        return _titled(file, text, file.path.name, headings=False)
    else:
        return _titled(file, without_hyphenation(text), header_title(text), headings=False)
    if not text.strip():
        text = next((str(fields[name]) for name in ("description", "summary", "excerpt") if fields.get(name)), "")
    if not text.strip():
        raise CorpusError("holds nothing but markup")
    return _titled(file, text, title, fields)


def _read_mail(file: SourceFile, max_bytes: int) -> Iterator[_Item]:
    mail = read_mail(file.path, max_bytes)
    yield _titled(file, mail.text, mail.title, mail.fields, headings=False)
    for name, kind in mail.unread:
        yield Failure(f"{_place(file)}: {name}", f"an attachment of type {kind} is not read; save it as a file")


def _convert(file: SourceFile, max_bytes: int) -> FoundRecord:
    check_readable(file.path, max_bytes)
    title, text = convert_file(file.path, max_bytes)
    return _titled(file, text, title)


def _titled(
    file: SourceFile, text: str, title: str, fields: Mapping[str, Any] | None = None, *, headings: bool = True
) -> FoundRecord:
    """A document with a title: its own, else its first heading or the file's name."""
    metadata = {**(fields or {}), "source": file.name}
    if not title and headings:
        title = first_heading(text)
        title = title if _SAYS.search(title) else ""  # "3.2.0" or a date opens a page, but is not what it is about
    title = title or PurePosixPath(file.name).stem
    return FoundRecord(Document(id=file.name, text=text, title=title, metadata=metadata), _place(file))


def _lines(file: SourceFile, max_bytes: int) -> Iterator[tuple[str, Any]]:
    for line in json_lines(file.path, max_bytes):
        yield str(line.number), Failure(f"{_place(file)}:{line.number}", line.error) if line.error else line.value


def _items(file: SourceFile, max_bytes: int) -> Iterator[tuple[str, Any]]:
    value = parse_json(read_text(file.path, max_bytes))
    for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
        yield str(number), item


def _read_records(file: SourceFile, records: Iterator[tuple[str, Any]]) -> Iterator[_Item]:
    questions = total = 0
    for number, record in records:
        total += 1
        origin = f"{_place(file)}:{number}"
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
        asked = count(questions, "question")
        yield Failure(_place(file), f"{asked}, not documents: for `sire eval --questions`, or read_questions in Python")
    if not total:
        yield Failure(_place(file), "the file holds no records")
