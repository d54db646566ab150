"""Sources of an index read from the command line: what was read, skipped or would replace something is said."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from sire_core.cli.indexed_sources import KnownFiles, stored_hashes
from sire_core.cli.options import IndexOptions, check_target, chunker_of, is_index
from sire_core.cli.output import note, say, say_json
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.files.source_files import GENERATED
from sire_core.text.pluralize import count, shorten, some
from sire_core.types import Failure
from sire_core.version import __version__

if TYPE_CHECKING:
    from sire_core.files.readers import LoadedDocuments
    from sire_core.index import Index
    from sire_core.protocols import Progress

_RECORD_PLACE = re.compile(r":\d+$")  # End of the place of a record in a file
_MAX_LISTED_FILES, MAX_NAMED_FILES, _FEW_FILES, _SHOWN_HEADINGS = 20, 3, 20, 8


def read_sources(
    sources: Sequence[Path],
    options: IndexOptions,
    known_files: KnownFiles | None = None,
    progress: Progress | None = None,
    *,
    says_begin: bool = False,
) -> LoadedDocuments:
    """Read documents, and say on stderr what was read, repeated or skipped; of folders also that reading begins."""
    from sire_core.files.readers import read_documents
    from sire_core.files.reading_signs import reading_warnings

    for source in sources:
        _refuse_inside(source, options.folder)
    check_target(options)
    if says_begin and any(source.is_dir() for source in sources):  # which may take minutes
        note(f"Reading {some([str(source) for source in sources], MAX_NAMED_FILES)} ...")
    from sire_core.storage.folder import Folder

    corpus = read_documents(
        list(sources),
        roots=Folder(options.folder).sources() if options.folder else {},
        is_known=None if known_files is None else known_files.holds,
        progress=progress,
    )
    same = f"; {count(len(corpus.known), 'file')} unchanged" if corpus.known else ""
    twice = f", {count(len(corpus.duplicates), 'identical repeat')} left out" if corpus.duplicates else ""
    note(f"Read {count(len(corpus.documents), 'document')}{twice}{same}.")
    if options.folder is not None:
        _warn_of_namesakes(corpus, sources, options.folder)
    _list_skipped(corpus.failures, strict=options.strict)
    list_failures(corpus.notes, "file was read with a note", "files were read with notes")
    signs = ((document.id, reading_warnings(document)) for document in corpus.documents)
    badly_read = [Failure(name, ", ".join(warnings)) for name, warnings in signs if warnings]
    list_failures(badly_read, "document looks badly read", "documents look badly read")
    return _split_media(corpus, options) if options.media else corpus


def timed_reading(
    sources: Sequence[Path],
    options: IndexOptions,
    known_files: KnownFiles,
    seconds: dict[str, float],
    progress: Progress | None = None,
) -> LoadedDocuments:
    """Read sources; the time that it takes is noted as that of a stage."""
    begun = time.perf_counter()
    corpus = read_sources(sources, options, known_files, progress, says_begin=progress is None)
    seconds["reading"] = time.perf_counter() - begun
    return corpus


def known_files_of(sources: Sequence[Path] | None, options: IndexOptions) -> KnownFiles:
    """Files that an index folder has noted; none where a few single ones are given, which are read in no time."""
    from sire_core.files.readers import READING
    from sire_core.storage.pending_documents import is_any_pending

    folder = options.folder
    paths = sources or ()
    is_small = len(paths) < _FEW_FILES and not any(path.is_dir() for path in paths)
    if folder is None or is_small or is_any_pending(folder):
        return KnownFiles(None, "", {})
    cutter = chunker_of(options)
    rules = f"{READING} {__version__} {cutter.fingerprint if cutter else 'whole'} media={options.media}"
    rules += f" language={options.language}" if options.language else ""
    return KnownFiles(folder, rules, stored_hashes(folder) if is_index(folder) else {})


def check_whole(index: Index, corpus: LoadedDocuments, folder: Path) -> None:
    """Refuse to remove documents that may be in what could not be read."""
    given_ids = corpus.ids
    removed = index.documents(name for name in stored_hashes(folder) if name not in given_ids)
    files = {document.id: document.metadata.get("source") == document.id for document in removed}
    holders = {name: corpus.may_hold(name, a_file=is_file) for name, is_file in files.items()}
    unreadable = {name: file for name, file in holders.items() if file is not None}
    if unreadable:
        listed = some([f"{name} (in {file})" for name, file in unreadable.items()], 3)
        raise CorpusError(
            f"Nothing was changed: {count(len(unreadable), 'document')} would be removed, but may be in files that "
            f"could not be read: {listed}. Repair these files, or move them away."
        )


def _list_skipped(failures: Sequence[Failure], *, strict: bool) -> None:
    """Say what was skipped: what failed, which `strict` refuses, apart from types that nobody expects to be read."""
    from sire_core.files.readers import CONVERT, UNSUPPORTED

    signs = ("an attachment", UNSUPPORTED, GENERATED)
    attachments, others, generated = ([one for one in failures if one.reason.startswith(sign)] for sign in signs)
    failed = [one for one in failures if not one.reason.startswith(signs)]
    lines = [one for one in failed if _RECORD_PLACE.search(one.where)]
    whole = [one for one in failed if one not in lines]
    list_failures(whole, "file could not be read and was skipped", "files could not be read and were skipped")
    list_failures(lines, "record could not be read and was skipped", "records could not be read and were skipped")
    if others:
        endings = [PurePath(failure.where).suffix for failure in others]  # `.gimp-help-en` is none
        endings = [ending if ending[1:].isalnum() else "no suffix" for ending in endings]
        suffixes = Counter(endings)
        listed = ", ".join(f"{number:,} {suffix}" for suffix, number in suffixes.most_common(_MAX_LISTED_FILES))
        more = (
            f" and {count(len(suffixes) - _MAX_LISTED_FILES, 'other type')}"
            if len(suffixes) > _MAX_LISTED_FILES
            else ""
        )
        note(f"Skipped {count(len(others), 'file')} of types that are not read ({listed}{more}).")
        advice = {ending: one.reason.partition("; ")[2] for ending, one in zip(endings, others, strict=True)}
        for way in dict.fromkeys(advice[suffix] for suffix in suffixes):
            if way != CONVERT:  # few types but pictures and fonts have no other advice
                note(f"  {some([suffix for suffix in suffixes if advice[suffix] == way], MAX_NAMED_FILES)}: {way}")
    if generated:
        files, names = count(len(generated), "file"), some([failure.where for failure in generated], _MAX_LISTED_FILES)
        note(f"Skipped {files} of a site generator ({names}); to index one, give its path.")
    list_failures(attachments, "attachment of a mail was left out", "attachments of mails were left out")
    if failed and strict:
        raise CorpusError("Nothing was changed, as --strict was given: correct what is listed above, or move it away.")


def list_readings(sources: Sequence[Path], options: IndexOptions, *, as_json: bool) -> None:
    """Say what was read of each file."""
    from sire_core.files.readers import check_reading

    cutter = chunker_of(options)
    readings = [check_reading(document, cutter) for document in read_sources(sources, options).documents]
    if as_json:
        say_json([asdict(document) for document in readings])
        return
    for document in readings:
        size = f"{count(document.passages, 'passage')}, {document.characters:,} characters"
        say(f"{document.id}  {document.title} ({size})")
        more = len(document.headings) - _SHOWN_HEADINGS
        headings = [*document.headings[:_SHOWN_HEADINGS], *([f"{more:,} more"] if more > 0 else [])]
        if headings:
            say("; ".join(headings), indent=4)
    note("Nothing was built (--dry-run).")


def _split_media(corpus: LoadedDocuments, options: IndexOptions) -> LoadedDocuments:
    from sire_core.documents.media import split_media

    split = split_media(corpus.documents, chunker_of(options))
    note(f"Separate passages: {count(split.tables, 'table')} and {count(split.images, 'image')}.")
    return replace(corpus, documents=split.documents)


def list_failures(failures: Sequence[Failure], one: str, several: str) -> None:
    """Say on stderr what failed, grouped by reason; nothing without failures."""
    if not failures:
        return
    note(f"{count(len(failures), one, several)}:", "yellow")
    places_by_reason: dict[str, list[str]] = {}
    for failure in failures:
        places_by_reason.setdefault(failure.reason, []).append(failure.where)
    for reason, files in list(places_by_reason.items())[:_MAX_LISTED_FILES]:
        note(f"  {some(files, MAX_NAMED_FILES)}: {shorten(reason, 200)}")
    unsaid = sum(len(files) for files in list(places_by_reason.values())[_MAX_LISTED_FILES:])
    if unsaid:
        note(f"  and {unsaid:,} more (--json lists all)")


def _refuse_inside(source: Path, folder: Path | None) -> None:
    """An index inside a source folder would be read as documents by the next run, unless it is hidden."""
    if folder is None or folder.is_file():
        return
    inner, outer = folder.resolve(), source.resolve()
    if not source.is_dir() or not inner.is_relative_to(outer):
        return
    if not any(part.startswith(".") for part in inner.relative_to(outer).parts):
        raise ConfigurationError(
            f"The index {folder} would lie inside {source} and be read as documents. "
            "Name a folder outside, or one whose name starts with a dot."
        )


def _warn_of_namesakes(corpus: LoadedDocuments, sources: Iterable[Path], folder: Path) -> None:
    """Warn that a file given by itself has a new id, where a file of its name is there: it may be the same one."""
    alone = {source.name for source in sources if source.is_file()} & corpus.ids
    if not alone or not folder.exists():
        return
    stored = stored_hashes(folder)
    for name in sorted(alone - stored.keys()):
        if same := [other for other in stored if other.endswith(f"/{name}")]:
            note(
                f"{name} is a new id, and the index also holds {some(same, 3)}. To change that, give the folder that "
                f"it was read from; to remove it: sire delete {folder} {same[0]}",
                "yellow",
            )
