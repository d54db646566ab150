"""`sire index`, `add`, `update`, `delete`, `reextract`, `sync`: an index is made and changed."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sire_core.cli import option_groups
from sire_core.cli.indexed_sources import KNOWN_FILES, ids_of, is_inside, left_out_sources, stored_hashes
from sire_core.cli.model_options import SpendingOptions, ask_to_go_on, say_usage
from sire_core.cli.option_groups import grouped, option
from sire_core.cli.options import (
    IndexOptions,
    ReadingOptions,
    RecipeOptions,
    check_folder,
    chunker_of,
    is_index,
    manifest_of,
    open_index,
)
from sire_core.cli.output import note, reporting, say, say_json
from sire_core.cli.source_reading import (
    MAX_NAMED_FILES,
    check_whole,
    known_files_of,
    list_failures,
    list_readings,
    timed_reading,
)
from sire_core.errors import ConfigurationError, IndexMissingError
from sire_core.index import Index
from sire_core.text.languages import ENGLISH, LANGUAGES, language
from sire_core.text.pluralize import count, count_units, some
from sire_core.types import BuildReport, Document, Failure

if TYPE_CHECKING:
    from sire_core.files.readers import LoadedDocuments
    from sire_core.protocols import LanguageModel
    from sire_core.storage.manifest import Manifest

_MAX_LISTED_NAMES = 20
_MULTILINGUAL = re.compile("multilingual|bge-m3|labse|-zh", re.IGNORECASE)
"""Names of embedding models that know other languages than English."""


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
    before, known_files = manifest_of(options.folder), known_files_of(sources, options)
    notes_embedder = not as_json and not before.embedder and options.embedder in (None, "semantic")
    if notes_embedder:
        _note_model()
    corpus = None if sources is not None else LoadedDocuments(())
    if approve is not None:
        with open_index(options) as index:  # before the change: progress bars would hide the question
            corpus = timed_reading(sources or (), options, known_files, reading) if corpus is None else corpus
            approve(index, corpus)
    try:
        with reporting() as progress, open_index(options, progress) as index:
            if corpus is None:
                shown = progress if sys.stderr.isatty() else None
                corpus = timed_reading(sources or (), options, known_files, reading, shown)
            report = change(index, corpus)
            report = replace(report, seconds={**reading, **report.seconds})
            statistics = index.stats()
            recipe = str(statistics["recipe"])
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
    if notes_embedder:
        _note_embedder(list(statistics.get("languages", ())), options.folder)
    _say_gone(gone, sources or ())
    say_usage(report)
    list_failures(
        report.failures,
        "passage or summary failed; the same command tries it again",
        "passages or summaries failed; the same command tries them again",
    )


def _say_gone(gone: Sequence[str], sources: Sequence[Path]) -> None:
    """Say which documents of an index their sources have no more, if there are any."""
    if not gone:
        return
    are, them = ("document is", "it") if len(gone) == 1 else ("documents are", "them")
    note(
        f"{len(gone):,} {are} no longer in {some(list(map(str, sources)))} ({some(gone, MAX_NAMED_FILES)}); "
        f"`sire sync` removes {them}.",
        "yellow",
    )


def _say_interrupted(folder: Path | None, before: Manifest) -> None:
    state = "is unchanged" if before.generation else "has no documents yet"
    stored = f"{folder} {state}, and the finished part of the work is stored. Run the same command again to resume."
    done = stored if folder is not None and folder.exists() else "Nothing was written. Run the same command again."
    note(f"Interrupted. {done}")


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


def _note_model() -> None:
    """Say before a first build which model of this machine embeds, and why."""
    from sire_core.models.onnx_embedder import semantic_choice

    if choice := semantic_choice():
        note("Embedder {}: {}. `--embedder lexical` indexes faster, without a model.".format(*choice))


def _note_embedder(codes: Sequence[str], folder: Path | None) -> None:
    """Say after a first build, its main language first, what another embedder would add."""
    from sire_core.models.model_files import is_installed
    from sire_core.models.onnx_embedder import semantic_choice

    install = "" if is_installed("onnxruntime") else 'pip install "sire-rag[onnx]", then '
    model = f"{install}sire reembed {shlex.quote(str(folder))} --embedder onnx:Xenova"
    is_english = language(next(iter(codes), ENGLISH)).is_english
    others = [LANGUAGES[code].title() for code in codes if not is_english and code in LANGUAGES and code != ENGLISH]
    names = others[0] if len(others) == 1 else "these languages"
    advice = f"For {names} take a multilingual model (120 MB): {model}/multilingual-e5-small."
    if choice := semantic_choice():
        if others and not _MULTILINGUAL.search(choice[0]):
            note(advice)
    elif others:
        note(
            f"Embedder lexical, the default: it compares spellings, and knows what words mean in English only. {advice}"
        )
    else:
        note(
            "Embedder lexical, the default. On questions in people's own words a model of 34 MB finds 10 to 20 points "
            f"more, on questions with the words of the text about as much: {model}/bge-small-en-v1.5."
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
    _put(options, put(Index.add, options), spending, sources, as_json=as_json)


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
    _put(options, put(Index.update, options), spending, sources, as_json=as_json)


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
            check_whole(index, corpus, to)
        if dry_run:
            _list_changes(corpus, options, to, as_json=as_json)
            raise typer.Exit
        _approve_removal(corpus.ids, sources, to, yes=spending.yes)
        if pay is not None:
            unchanged = index.documents(file.name for file in corpus.known)
            pay(index, (*corpus.documents, *unchanged))

    def change(index: Index, corpus: LoadedDocuments) -> BuildReport:
        return index.build(corpus.drain(), keep=[file.name for file in corpus.known])

    run_change(options, change, sources=sources, as_json=as_json, approve=approve)


def _list_changes(corpus: LoadedDocuments, options: IndexOptions, folder: Path, *, as_json: bool) -> None:
    """Say what a sync would add, update and remove."""
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
    change: Callable[[Index, Iterable[Document]], BuildReport], options: IndexOptions
) -> Callable[[Index, LoadedDocuments], BuildReport]:
    """`Index.add` or `Index.update` of what was read; files that are known count as unchanged."""

    def run(index: Index, corpus: LoadedDocuments) -> BuildReport:
        report = change(index, corpus.drain())
        if options.cuts:
            index.set_chunker(chunker_of(options))  # the folder cuts its sources so from now on
        return replace(report, unchanged=report.unchanged + len(corpus.known))

    return run


def _put(
    options: IndexOptions,
    change: Callable[[Index, LoadedDocuments], BuildReport],
    spending: SpendingOptions,
    sources: Sequence[Path],
    *,
    as_json: bool,
) -> None:
    """Read sources and put their documents into an index, once their cost is approved."""
    run_change(options, change, sources=sources, as_json=as_json, approve=approval(spending, with_documents))


def existing_index(folder: Path, first: str | Path, spending: SpendingOptions, reading: ReadingOptions) -> IndexOptions:
    """Options of a change; the index must be there, so that a typing error does not start a new one."""
    model = spending.model()
    check_folder(folder, first)
    if not manifest_of(folder).generation:
        if is_index(folder):
            raise IndexMissingError(f"{folder} was never finished. Build it: sire index SOURCE --to {folder}")
        raise IndexMissingError.of(folder, "Build one: sire index {source} --to {folder}")
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
    others = {"seed": seed, "runner": runner, **built.as_given()}
    options = _options(to, spending.model(), spending, reading, **others)

    def change(index: Index, corpus: LoadedDocuments) -> BuildReport:
        report = put(Index.update, options)(index, corpus)
        if default:
            index.set_default_recipe(index.recipe_name)
        return report

    _put(options, change, spending, sources, as_json=as_json)


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
    options = _options(to, spending.model(), spending, reading, **built.as_given())
    _put(options, put(Index.update, options), spending, sources, as_json=as_json)
