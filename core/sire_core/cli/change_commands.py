"""`sire index`, `add`, `update`, `delete`, `reextract`, `sync`: an index is made and changed."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sire_core.cli import option_groups
from sire_core.cli.indexed_sources import KNOWN_FILES, KnownFiles, ids_of, is_inside, left_out_sources, stored_hashes
from sire_core.cli.model_options import SpendingOptions, ask_to_go_on, say_usage
from sire_core.cli.option_groups import grouped, option
from sire_core.cli.options import (
    IndexOptions,
    ReadingOptions,
    RecipeOptions,
    check_folder,
    check_target,
    chunker_of,
    is_index,
    manifest_of,
    open_index,
)
from sire_core.cli.output import note, reporting, say, say_json
from sire_core.errors import ConfigurationError, CorpusError, IndexMissingError
from sire_core.files.readers import UNSUPPORTED
from sire_core.files.source_files import GENERATED
from sire_core.index import Index
from sire_core.text.pluralize import count, count_units, shorten, some
from sire_core.types import Failure
from sire_core.version import __version__

if TYPE_CHECKING:
    from sire_core.files.readers import LoadedDocuments
    from sire_core.protocols import LanguageModel, Progress
    from sire_core.storage.manifest import Manifest
    from sire_core.types import BuildReport, Document

_MAX_LISTED_FILES = 20
_MAX_NAMED_FILES = 3
_FEW = 20

_SHOWN_HEADINGS = 8
_MAX_LISTED_NAMES = 20


def run_change(
    options: IndexOptions,
    change: Callable[[Index, LoadedDocuments], BuildReport],
    *,
    sources: Sequence[Path] | None = None,
    as_json: bool = False,
    approve: Callable[[Index, LoadedDocuments], object] | None = None,
    also: str = "",
) -> None:
    """Read sources, change an index, and say on stderr what was read and what failed, on stdout what was done."""
    from sire_core.files.readers import LoadedDocuments

    reading: dict[str, float] = {}
    gone: list[str] = []
    before, known_files = manifest_of(options.folder), _known_files(sources, options)
    corpus = None if sources is not None else LoadedDocuments(())
    if approve is not None:
        with open_index(options) as index:  # before the change: progress bars would hide the question
            corpus = _timed_reading(sources or (), options, known_files, reading) if corpus is None else corpus
            approve(index, corpus)
    try:
        with reporting() as progress, open_index(options, progress) as index:
            if corpus is None:
                shown = progress if sys.stderr.isatty() else None
                corpus = _timed_reading(sources or (), options, known_files, reading, shown)
            report = change(index, corpus)
            report = replace(report, seconds={**reading, **report.seconds})
            recipe = str(index.stats()["recipe"])
        if options.folder is not None and sources is not None:
            from sire_core.storage.folder import Folder

            Folder(options.folder).note_sources(corpus.folders)
            stored = stored_hashes(options.folder)
            known_files.note(corpus.whole, stored)
            gone = known_files.gone(sources, stored.keys() - corpus.ids)
    except KeyboardInterrupt:  # here, when the bars have gone
        _say_interrupted(options.folder, before)
        raise typer.Exit(130) from None
    if as_json:
        say_json({**report_json(report, recipe, corpus.failures), "notes": list(map(asdict, corpus.notes))})
    else:
        if not also or report.generation != before.generation:
            _print_result(report, recipe, before, options.folder)
        if also:
            say(also)
        if not before.embedder and options.embedder in (None, "semantic"):
            _note_embedder()
    if gone:
        are = "document is" if len(gone) == 1 else "documents are"
        note(
            f"{len(gone):,} {are} no longer in {some([str(path) for path in sources or ()])} "
            f"({some(gone, _MAX_NAMED_FILES)}); `sire sync` removes {'it' if len(gone) == 1 else 'them'}.",
            "yellow",
        )
    say_usage(report)
    _list_failures(
        report.failures,
        "passage or summary failed; the same command tries it again",
        "passages or summaries failed; the same command tries them again",
    )


def _say_interrupted(folder: Path | None, before: Manifest) -> None:
    """Say what an interrupted change left."""
    state = "is unchanged" if before.generation else "has no documents yet"
    stored = f"{folder} {state}, and the finished part of the work is stored"
    done = stored if folder is not None and folder.exists() else "Nothing was written"
    note(f"Interrupted. {done}. Run the same command again to resume.")


def _timed_reading(
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


def _known_files(sources: Sequence[Path] | None, options: IndexOptions) -> KnownFiles:
    """Files that an index folder has noted; none where a few single ones are given, which are read in no time."""
    from sire_core.files.readers import READING

    folder = options.folder
    paths = sources or ()
    is_small = len(paths) < _FEW and not any(path.is_dir() for path in paths)
    if folder is None or is_small or (folder / "pending").exists():
        return KnownFiles(None, "", {})
    cutter = chunker_of(options)
    rules = f"{READING} {__version__} {cutter.fingerprint if cutter else 'whole'} media={options.media}"
    return KnownFiles(folder, rules, stored_hashes(folder) if is_index(folder) else {})


def _check_whole(index: Index, corpus: LoadedDocuments, folder: Path) -> None:
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
        note(f"Reading {some([str(source) for source in sources], _MAX_NAMED_FILES)} ...")
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
        _check_taken(corpus, sources, options.folder, replaces=options.replaces)
        _warn_of_namesakes(corpus, sources, options.folder)
    _list_skipped(corpus.failures)
    _list_failures(corpus.notes, "file was read with a note", "files were read with notes")
    signs = ((document.id, reading_warnings(document)) for document in corpus.documents)
    badly_read = [Failure(name, ", ".join(warnings)) for name, warnings in signs if warnings]
    _list_failures(badly_read, "document looks badly read", "documents look badly read")
    return _split_media(corpus, options) if options.media else corpus


def _list_skipped(failures: Sequence[Failure]) -> None:
    """Say what was skipped: what failed apart from what is of a type that nobody expects to be read."""
    signs = ("an attachment", UNSUPPORTED, GENERATED)
    attachments, others, generated = ([one for one in failures if one.reason.startswith(sign)] for sign in signs)
    failed = [one for one in failures if not one.reason.startswith(signs)]
    _list_failures(failed, "file could not be read and was skipped", "files could not be read and were skipped")
    if others:
        suffix_of_each = (PurePath(failure.where).suffix for failure in others)  # `.gimp-help-en` is none
        suffixes = Counter(suffix if suffix[1:].isalnum() else "no suffix" for suffix in suffix_of_each)
        listed = ", ".join(f"{number:,} {suffix}" for suffix, number in suffixes.most_common(_MAX_LISTED_FILES))
        more = (
            f" and {count(len(suffixes) - _MAX_LISTED_FILES, 'other type')}"
            if len(suffixes) > _MAX_LISTED_FILES
            else ""
        )
        note(f"Skipped {count(len(others), 'file')} of types that are not read ({listed}{more}).")
    if generated:
        files = count(len(generated), "file")
        note(f"Skipped {files} of a site generator (scripts, indexes, source code); to index one, give its path.")
    _list_failures(attachments, "attachment of a mail was left out", "attachments of mails were left out")


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


def _print_result(report: BuildReport, recipe: str, before: Manifest, folder: Path | None) -> None:
    after, recipe_names = manifest_of(folder), before.recipe_names
    default = after.recipes[-1].name if after.recipes else ""
    if recipe_names and recipe not in recipe_names:
        say(f"Recipe {recipe} added to {folder}, beside {', '.join(recipe_names)}.")
        if recipe != default:
            say(
                f"Searches still use {default} by default. To search with {recipe}: sire query {folder} QUESTION "
                f"-r {recipe}. To make it the default: the same command with --default."
            )
    if settings := _changed_settings(recipe, before, after):
        say(f"Settings of {recipe} changed: {settings}. Other settings are unchanged.")
    if recipe_names and before.recipes[-1].name != default:
        say(f"Searches without -r use {default} from now on. Indexes that are open keep their recipe.")
    if report.generation == before.generation:
        what = "No document" if settings or report.learned_again else "Nothing"
        say(f"{what} changed: these documents are in {folder} already, indexed with {recipe}.")
        return
    if report.dropped:
        note(f"Removed, because this change used another model or extractor: {', '.join(report.dropped)}.", "yellow")
    numbers = ((name, getattr(report, name)) for name in ("added", "updated", "removed", "unchanged"))
    (name, number), *others = [(name, number) for name, number in numbers if number] or [("changed", 0)]
    rest = "".join(f", {number:,} {name}" for name, number in others)
    say(f"{folder}: {count(number, 'document')} {name}{rest}.")
    say(f"{recipe}: {count_units(report.units, after.counts.get('chunks', 0))} in {_seconds(report)}.")


def _changed_settings(recipe: str, before: Manifest, after: Manifest) -> str:
    """Settings of the recipe that differ from those that it had in the folder, as text."""
    had, has = (
        next((built.config for built in reversed(manifest.recipes) if built.name == recipe), {})
        for manifest in (before, after)
    )
    changed = (name for name in has if name in had and json.dumps(had[name]) != json.dumps(has[name]))
    return ", ".join(f"{name}={json.dumps(has[name])} (was {json.dumps(had[name])})" for name in changed)


def _note_embedder() -> None:
    """Say after a first build which embedder was taken and why, or what a model would add."""
    from sire_core.models.onnx_embedder import semantic_choice

    if choice := semantic_choice():
        spec, why = choice
        note(f"Embedder {spec}: {why}. `--embedder lexical` indexes faster, without a model.")
    else:
        note(
            "Embedder lexical, the default. On questions in people's own words a model of 34 MB finds 11 to 20 points "
            'more: pip install "sire-rag[onnx]", then sire reembed DIR --embedder onnx:Xenova/bge-small-en-v1.5.'
        )


def _seconds(report: BuildReport) -> str:
    stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in report.seconds.items() if seconds >= 0.05)
    return f"{sum(report.seconds.values()):.1f} s" + (f" ({stages})" if stages else "")


def report_json(report: BuildReport, recipe: str, skipped: Sequence[Failure] = ()) -> dict[str, Any]:
    """A report for scripts."""
    return {
        "recipe": recipe,
        **asdict(report),
        "units": sum(report.units.values()),
        "kinds": dict(report.units),
        "skipped": list(map(asdict, skipped)),
        "seconds": {stage: round(seconds, 3) for stage, seconds in report.seconds.items()},
    }


def _list_failures(failures: Sequence[Failure], one: str, several: str) -> None:
    if not failures:
        return
    note(f"{count(len(failures), one, several)}:", "yellow")
    places_by_reason: dict[str, list[str]] = {}
    for failure in failures:
        places_by_reason.setdefault(failure.reason, []).append(failure.where)
    for reason, files in list(places_by_reason.items())[:_MAX_LISTED_FILES]:
        note(f"  {some(files, _MAX_NAMED_FILES)}: {shorten(reason, 200)}")
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


def _check_taken(corpus: LoadedDocuments, sources: Iterable[Path], folder: Path, *, replaces: bool) -> None:
    """Refuse, or say, that files would replace files of a folder that was read before, as they have the same ids."""
    from sire_core.storage.folder import Folder

    roots = corpus.folders
    now = [path for source in sources if source.is_dir() and not roots[path := os.path.realpath(source)]]
    before = [root for root, prefix in Folder(folder).sources().items() if root not in now and not prefix]
    # Of folders inside each other ids are paths below the outer one: no name is taken twice.
    pairs = [(new, old) for new in now for old in before if os.path.commonpath([new, old]) not in (new, old)]
    taken = [
        (document.id, new, old)
        for document in corpus.documents
        for new, old in pairs
        if _both(Path(new, document.id), Path(old, document.id))
    ]
    if not taken:
        return
    names = list(dict.fromkeys(name for name, _, _ in taken))
    _, new, old = taken[0]
    files = f"{count(len(names), 'file')} of {old} by files of the same name in {new}: {some(names, 3)}"
    both = f"To keep both, make a new index: sire index {old} {new} --to NEW_DIR"
    if not replaces:
        replace_them = f"To replace them: sire update {folder} {new}"
        raise ConfigurationError(f"Nothing was changed; this would replace {files}. {both}. {replace_them}")
    note(f"This replaces {files}. {both}.", "yellow")


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


def _both(one: Path, other: Path) -> bool:
    try:
        return one.is_file() and other.is_file() and not one.samefile(other)
    except (OSError, ValueError):  # an id of a record that is no name of a file
        return False


@grouped
def add(
    folder: option_groups.Folder,
    sources: option_groups.Sources,
    spending: SpendingOptions,
    reading: ReadingOptions,
    as_json: option_groups.AsJson = False,
) -> None:
    """Add documents to an index. Unchanged documents are skipped.

    All recipes of the folder are updated. It is an error if a document with the same id but a different text exists; to
    replace it, use `sire update`. With --llm, the expected cost is shown and you are asked before anything is spent.
    """
    options = existing_index(folder, sources[0], spending, reading)
    run_change(
        options, put(Index.add, options), sources=sources, as_json=as_json, approve=approval(spending, with_documents)
    )


@grouped
def update(
    folder: option_groups.Folder,
    sources: option_groups.Sources,
    spending: SpendingOptions,
    reading: ReadingOptions,
    as_json: option_groups.AsJson = False,
) -> None:
    """Replace documents by id, and add new ones.

    Other documents stay. All recipes of the folder are updated. With --llm, the expected cost is shown and you are
    asked before anything is spent.
    """
    options = existing_index(folder, sources[0], spending, reading)
    run_change(
        options,
        put(Index.update, options),
        sources=sources,
        as_json=as_json,
        approve=approval(spending, with_documents),
    )


@grouped
def delete(
    folder: option_groups.Folder,
    spending: SpendingOptions,
    doc_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="DOC_ID", help="Ids of the documents to remove, or the paths of their files."),
    ] = None,
    embedder: option_groups.Embedder = None,
    extractions: option_groups.Extractions = None,
    purge: Annotated[
        bool, option("--purge", "Overwrite what these and earlier deleted documents left on disk.")
    ] = False,
    as_json: option_groups.AsJson = False,
) -> None:
    """Remove documents and everything derived from them.

    If an id is unknown, nothing is removed. Stored answers of models about them are kept in case the documents come
    back, unless --purge is given. Summaries that used them are written again; with --llm, the expected cost is shown
    and you are asked before anything is spent. The documents are listed; on a terminal you are asked before they are
    removed. Scripts are not asked about that, but costs need --yes from them, too.

    Example, to overwrite what was removed earlier: sire delete my-index --purge
    """
    names = doc_ids or []
    if not names and not purge:
        raise ConfigurationError("Name the documents to remove (sire documents lists them), or give --purge alone.")
    reading = ReadingOptions(embedder=embedder, extractions=extractions)
    options = existing_index(folder, names[0] if names else "", spending, reading)

    def change(index: Index, _: LoadedDocuments) -> BuildReport:
        report = index.delete(ids_of(names, folder))
        if purge:
            index.purge()
            (folder / KNOWN_FILES).unlink(missing_ok=True)  # names files
        return report

    def without(index: Index, _: Sequence[Document]) -> Sequence[Document]:
        removed = ids_of(names, folder)
        return [document for document in index.documents() if document.id not in removed]

    pay = approval(spending, without)

    def approve(index: Index, corpus: LoadedDocuments) -> None:
        from sire_core.documents.change_plan import check_known

        removed = ids_of(names, folder)
        check_known(removed, stored_hashes(folder))  # before anything is listed, priced or asked
        is_asked = sys.stdin.isatty() and not spending.yes
        if removed:
            unasked = " without asking" if spending.yes else ", not asking as there is no terminal"
            _list_removed("To be removed from the index" if is_asked else f"Removing from the index{unasked}", removed)
        was_confirmed = pay is not None and pay(index, corpus)
        if removed and not was_confirmed:
            ask_to_go_on(yes=not is_asked)

    overwritten = f"{folder}: what deleted documents left on disk was overwritten." if purge else ""
    run_change(options, change, as_json=as_json, approve=approve, also=overwritten)


@grouped
def reextract(
    folder: option_groups.Folder,
    doc_ids: Annotated[
        list[str], typer.Argument(metavar="DOC_ID", help="Ids of the documents, or the paths of their files.")
    ],
    spending: SpendingOptions,
    embedder: option_groups.Embedder = None,
    extractions: option_groups.Extractions = None,
    as_json: option_groups.AsJson = False,
) -> None:
    """Ask the model about some documents again.

    Answers that a model gave are kept, also if the document is deleted and added again. This command deletes the
    extractions of these documents, and all answers that were made from them among others, asks for them again and
    updates everything derived. The documents stay. If it is interrupted, the next change asks. With --llm, the expected
    cost of extraction is shown and you are asked before anything is deleted or spent.

    Example: sire reextract my-index guides/queue.md --llm gpt-4o-mini
    """
    options = existing_index(folder, doc_ids[0], spending, ReadingOptions(embedder=embedder, extractions=extractions))
    pay = spending.approval()

    def approve(index: Index, _: LoadedDocuments) -> None:
        from sire_core.documents.change_plan import check_known

        names = ids_of(doc_ids, folder)
        check_known(names, stored_hashes(folder))
        if pay is not None:  # as if nothing were stored
            with open_index(replace(options, folder=None, recipe=manifest_of(folder).recipes[-1].name)) as alone:
                pay(alone, index.documents(names))

    run_change(options, lambda index, _: index.reextract(ids_of(doc_ids, folder)), as_json=as_json, approve=approve)


@grouped
def sync(
    sources: option_groups.Sources,
    to: Annotated[Path, option("--to DIR", "The index folder.")],
    spending: SpendingOptions,
    reading: ReadingOptions,
    dry_run: Annotated[bool, option("--dry-run", "List what would change, and change nothing.")] = False,
    as_json: option_groups.AsJson = False,
) -> None:
    """Add, update and remove documents to match SRC.

    Afterwards DIR contains exactly the documents in SRC. Lists what will be removed and asks first; scripts need --yes
    for it. All recipes of the folder are updated. Changes nothing if a document to be removed may be in a file that
    could not be read.

    Example: sire sync papers/ notes.jsonl --to my-index

    JSON of --dry-run: {"added", "updated", "removed"}, each a list of ids.
    """
    options = existing_index(to, sources[0], spending, reading)
    pay = spending.approval()

    def approve(index: Index, corpus: LoadedDocuments) -> None:
        if corpus.failures:
            _check_whole(index, corpus, to)
        if dry_run:
            _list_changes(corpus, options, to, as_json=as_json)
            raise typer.Exit
        _approve_removal(corpus.ids, sources, to, yes=spending.yes)
        if pay is not None:
            unchanged = index.documents(file.name for file in corpus.known)
            pay(index, (*corpus.documents, *unchanged))

    def change(index: Index, corpus: LoadedDocuments) -> BuildReport:
        return index.build(corpus.documents, keep=[file.name for file in corpus.known])

    run_change(options, change, sources=sources, as_json=as_json, approve=approve)


def _list_changes(corpus: LoadedDocuments, options: IndexOptions, folder: Path, *, as_json: bool) -> None:
    """Say what a sync would add, update and remove."""
    from contextlib import closing

    from sire_core.documents.change_plan import plan_build
    from sire_core.storage.index_files import IndexFiles

    with closing(IndexFiles(folder)) as files:
        stored = files.store.documents()
    plan = plan_build(stored, corpus.documents, chunker_of(options), [file.name for file in corpus.known])
    changes: dict[str, list[str]] = {"added": [], "updated": [], "removed": [*plan.drop_documents]}
    for document in plan.put_documents:
        changes["updated" if document.id in stored else "added"].append(document.id)
    if as_json:
        say_json(changes)
        return
    for change, names in changes.items():
        for name in names:
            say(f"{change}: {name}")
    note("Nothing was changed (--dry-run).")


def _approve_removal(kept_ids: set[str], sources: Sequence[Path], folder: Path, *, yes: bool) -> None:
    """List what goes and ask whether to go on, unless nothing goes."""
    removed = [name for name in stored_hashes(folder) if name not in kept_ids]
    if removed:
        left_out = left_out_sources(removed, sources, folder)
        for root in left_out:
            if part := next((source for source in sources if is_inside(source, root)), None):
                raise typer.BadParameter(
                    f"{part} is only a part of {root}, which the index holds and whose other files still exist. "
                    f"Nothing was changed. Give {root} instead; to remove documents: sire delete {folder} DOC_ID"
                )
        _list_removed("No longer in the sources, to be removed from the index", removed)
        for root in left_out:
            note(
                f"Some of them still exist in {root}, which is not among the sources. "
                f"To keep them, add {root} to the command."
            )
        ask_to_go_on(yes=yes)


def _list_removed(heading: str, removed: Sequence[str]) -> None:
    note(f"{heading}: {count(len(removed), 'document')}.", "yellow")
    for name in removed[:_MAX_LISTED_NAMES]:
        note(f"  {name}")
    if len(removed) > _MAX_LISTED_NAMES:
        note(f"  and {len(removed) - _MAX_LISTED_NAMES:,} more")


def with_documents(index: Index, documents: Sequence[Document]) -> Sequence[Document]:
    """The documents of the index after a change with these documents."""
    try:
        stored = index.documents()
    except IndexMissingError:  # the first build
        stored = []
    return list({document.id: document for document in (*stored, *documents)}.values())


def approval(
    spending: SpendingOptions, after: Callable[[Index, Sequence[Document]], Sequence[Document]]
) -> Callable[[Index, LoadedDocuments], bool] | None:
    """Asks whether a change may be paid, see `approve_cost`; None where nothing is paid."""
    approve = spending.approval()
    return None if approve is None else lambda index, corpus: approve(index, after(index, corpus.documents))


def put(
    change: Callable[[Index, Sequence[Document]], BuildReport], options: IndexOptions
) -> Callable[[Index, LoadedDocuments], BuildReport]:
    """`Index.add` or `Index.update` of what was read; files that are known count as unchanged."""

    def run(index: Index, corpus: LoadedDocuments) -> BuildReport:
        report = change(index, corpus.documents)
        if options.cuts:
            index.set_chunker(chunker_of(options))  # the folder cuts its sources so from now on
        return replace(report, unchanged=report.unchanged + len(corpus.known))

    return run


def existing_index(folder: Path, first: str | Path, spending: SpendingOptions, reading: ReadingOptions) -> IndexOptions:
    """Options of a change; the index must be there, so that a typing error does not start a new one."""
    model = spending.model()
    check_folder(folder, first)
    if not manifest_of(folder).generation:
        why = f"The index in {folder} was never finished" if is_index(folder) else f"There is no index in {folder}"
        raise IndexMissingError(f"{why}. Build it: sire index SRC... --to {folder}")
    return _options(folder, model, spending, reading)


def _options(
    folder: Path, model: LanguageModel | None, spending: SpendingOptions, reading: ReadingOptions, **others: Any
) -> IndexOptions:
    others |= {"language_model": model, "native": spending.native, "workers": spending.workers}
    return IndexOptions(folder, writes=True, **asdict(reading), **others)


@grouped
def index(
    sources: option_groups.Sources,
    reading: ReadingOptions,
    spending: SpendingOptions,
    built: RecipeOptions,
    to: Annotated[
        Path | None, option("--to DIR", "The index folder; created if it does not exist. Only --dry-run needs none.")
    ] = None,
    seed: Annotated[int | None, option("--seed", "Random seed. Default: 0.", min=0)] = None,
    runner: option_groups.Runner = None,
    default: Annotated[bool, option("--default", "Make this recipe the folder's default for searches.")] = False,
    dry_run: Annotated[
        bool, option("--dry-run", "Read SRC, list titles, headings and sizes, and build nothing.")
    ] = False,
    as_json: option_groups.AsJson = False,
) -> None:
    """Index documents. Adds new documents and updates those with a known id.

    Nothing is removed: to remove documents that are no longer in SRC, use `sire sync`. To resume an interrupted build,
    run the same command again. With another --recipe, that recipe is added to the folder; recipes share passages,
    vectors and extraction. Searches use the folder's first recipe unless -r names another one or --default was given.

    With --llm, the expected cost is shown and you are asked before anything is spent. Every answer is stored as it
    arrives, so a resumed build pays only for the rest.

    Example: sire index papers/ notes.jsonl --to my-index --recipe sirerag

    JSON of --dry-run: a list of {"id", "title", "headings", "characters", "passages", "warnings"}.
    """
    if dry_run:
        list_readings(
            sources,
            IndexOptions(to, embedder=reading.embedder, media=reading.media, runner=runner, **built.as_given()),
            as_json=as_json,
        )
        return
    if to is None:
        raise typer.BadParameter("name the folder of the index: --to my-index (only --dry-run needs none)")
    others = {"seed": seed, "runner": runner, "replaces": False, **built.as_given()}
    options = _options(to, spending.model(), spending, reading, **others)

    def change(index: Index, corpus: LoadedDocuments) -> BuildReport:
        report = put(Index.update, options)(index, corpus)
        if default:
            index.set_default_recipe(index.recipe_name)
        return report

    run_change(options, change, sources=sources, as_json=as_json, approve=approval(spending, with_documents))


@grouped
def import_(
    sources: option_groups.Sources,
    to: Annotated[Path, option("--to DIR", "The index folder; created if it does not exist.")],
    reading: ReadingOptions,
    spending: SpendingOptions,
    built: RecipeOptions,
    as_json: option_groups.AsJson = False,
) -> None:
    """Index what `sire export` wrote.

    The same as `sire index`.

    Example: sire import documents.jsonl --to my-index
    """
    options = _options(to, spending.model(), spending, reading, replaces=False, **built.as_given())
    run_change(
        options,
        put(Index.update, options),
        sources=sources,
        as_json=as_json,
        approve=approval(spending, with_documents),
    )
