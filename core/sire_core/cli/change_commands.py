"""`sire index`, `add`, `update`, `delete`, `forget`, `sync`: an index is made and changed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sire_core.cli import arguments
from sire_core.cli.arguments import grouped
from sire_core.cli.changes import ids_of, is_inside, left_out_sources, list_readings, run_change, stored_hashes
from sire_core.cli.known_files import KNOWN_FILES
from sire_core.cli.models import SpendingOptions, ask_to_go_on
from sire_core.cli.options import (
    IndexOptions,
    ReadingOptions,
    RecipeOptions,
    check_folder,
    is_index,
    manifest_of,
    open_index,
)
from sire_core.cli.output import count, note
from sire_core.errors import ConfigurationError, IndexMissingError
from sire_core.index import Index

if TYPE_CHECKING:
    from sire_core.corpus.readers import LoadedDocuments
    from sire_core.protocols import LanguageModel
    from sire_core.types import BuildReport, Document

__all__ = ["add", "approval", "delete", "existing_index", "forget", "index", "sync", "update", "with_documents"]


_LISTED = 20


@grouped
def add(
    folder: arguments.Folder,
    sources: arguments.Sources,
    spending: SpendingOptions,
    reading: ReadingOptions,
    as_json: arguments.AsJson = False,
) -> None:
    """Add documents to an index. Unchanged documents are skipped.

    All recipes of the folder are updated. It is an error if a document with the same id but a different text exists; to
    replace it, use `sire update`. With --llm, the expected cost is shown and you are asked before anything is spent.
    """
    options = existing_index(folder, sources[0], spending, reading)
    run_change(options, put(Index.add), sources=sources, as_json=as_json, approve=approval(spending, with_documents))


@grouped
def update(
    folder: arguments.Folder,
    sources: arguments.Sources,
    spending: SpendingOptions,
    reading: ReadingOptions,
    as_json: arguments.AsJson = False,
) -> None:
    """Replace documents by id, and add new ones.

    Other documents stay. All recipes of the folder are updated. With --llm, the expected cost is shown and you are
    asked before anything is spent.
    """
    options = existing_index(folder, sources[0], spending, reading)
    run_change(options, put(Index.update), sources=sources, as_json=as_json, approve=approval(spending, with_documents))


@grouped
def delete(
    folder: arguments.Folder,
    spending: SpendingOptions,
    doc_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="DOC_ID", help="Ids of the documents to remove, or the paths of their files."),
    ] = None,
    embedder: arguments.Embedder = None,
    extractions: arguments.Extractions = None,
    purge: Annotated[
        bool, typer.Option("--purge", help="Overwrite what these and earlier deleted documents left on disk.")
    ] = False,
    as_json: arguments.AsJson = False,
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
        gone = ids_of(names, folder)
        return [document for document in index.documents() if document.id not in gone]

    pay = approval(spending, without)

    def approve(index: Index, corpus: LoadedDocuments) -> None:
        from sire_core.corpus.changes import check_known

        gone = ids_of(names, folder)
        check_known(gone, stored_hashes(folder))  # before anything is listed, priced or asked
        if gone:
            _list_removed("To be removed from the index", gone)
        asked = pay is not None and pay(index, corpus)
        if gone and not asked:
            ask_to_go_on(yes=spending.yes or not sys.stdin.isatty())

    overwritten = f"{folder}: what deleted documents left on disk was overwritten." if purge else ""
    run_change(options, change, as_json=as_json, approve=approve, also=overwritten)


@grouped
def forget(
    folder: arguments.Folder,
    doc_ids: Annotated[
        list[str], typer.Argument(metavar="DOC_ID", help="Ids of the documents, or the paths of their files.")
    ],
    spending: SpendingOptions,
    embedder: arguments.Embedder = None,
    extractions: arguments.Extractions = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Ask the model about documents again, where its stored answers are bad.

    Answers that a model gave are kept, also if the document is deleted and added again. This command deletes the
    extractions of these documents, and all answers that were made from them among others, asks for them again and
    updates everything derived. The documents stay. If it is interrupted, the next change asks. With --llm, the expected
    cost of extraction is shown and you are asked before anything is deleted or spent.

    Example: sire forget my-index guides/queue.md --llm gpt-4o-mini
    """
    options = existing_index(folder, doc_ids[0], spending, ReadingOptions(embedder=embedder, extractions=extractions))
    pay = spending.approval()

    def approve(index: Index, _: LoadedDocuments) -> None:
        from sire_core.corpus.changes import check_known

        names = ids_of(doc_ids, folder)
        check_known(names, stored_hashes(folder))
        if pay is not None:  # as if nothing were stored
            with open_index(replace(options, folder=None, recipe=manifest_of(folder).recipes[-1].name)) as alone:
                pay(alone, index.documents(names))

    run_change(options, lambda index, _: index.forget(ids_of(doc_ids, folder)), as_json=as_json, approve=approve)


@grouped
def sync(
    sources: arguments.Sources,
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The index folder.")],
    spending: SpendingOptions,
    reading: ReadingOptions,
    as_json: arguments.AsJson = False,
) -> None:
    """Add, update and remove documents to match SRC.

    Afterwards DIR contains exactly the documents in SRC. Lists what will be removed and asks first. All recipes of the
    folder are updated. Changes nothing if a document to be removed may be in a file that could not be read.

    Example: sire sync papers/ notes.jsonl --to my-index
    """
    options = existing_index(to, sources[0], spending, reading)
    pay = spending.approval()

    def approve(index: Index, corpus: LoadedDocuments) -> None:
        _approve_removal(corpus.ids, sources, to, yes=spending.yes)
        if pay is not None:
            known = index.documents(file.name for file in corpus.known)
            pay(index, (*corpus.documents, *known))

    def change(index: Index, corpus: LoadedDocuments) -> BuildReport:
        return index.build(corpus.documents, keep=[file.name for file in corpus.known])

    run_change(options, change, sources=sources, as_json=as_json, approve=approve, whole=True)


def _approve_removal(kept: set[str], sources: Sequence[Path], folder: Path, *, yes: bool) -> None:
    """List what goes and ask whether to go on, unless nothing goes."""
    gone = [name for name in stored_hashes(folder) if name not in kept]
    if gone:
        _list_removed("No longer in the sources, to be removed from the index", gone)
        for root in left_out_sources(gone, sources, folder):
            part = next((source for source in sources if is_inside(source, root)), None)
            about = f"of which {part} is only a part" if part else "which is not among the sources"
            note(f"Some of them still exist in {root}, {about}. To keep them, add {root} to the command.")
        ask_to_go_on(yes=yes)


def _list_removed(heading: str, gone: Sequence[str]) -> None:
    note(f"{heading}: {count(len(gone), 'document')}.", "yellow")
    for name in gone[:_LISTED]:
        note(f"  {name}")
    if len(gone) > _LISTED:
        note(f"  and {len(gone) - _LISTED:,} more")


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


def put(change: Callable[[Index, Sequence[Document]], BuildReport]) -> Callable[[Index, LoadedDocuments], BuildReport]:
    """`Index.add` or `Index.update` of what was read; files that are known count as unchanged."""

    def run(index: Index, corpus: LoadedDocuments) -> BuildReport:
        report = change(index, corpus.documents)
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
    return IndexOptions(
        folder=folder,
        embedder=reading.embedder,
        extractions=reading.extractions,
        media=reading.media,
        language_model=model,
        native=spending.native,
        workers=spending.workers,
        max_failure_ratio=reading.max_failure_ratio,
        writes=True,
        **others,
    )


@grouped
def index(
    sources: arguments.Sources,
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The index folder; created if it does not exist.")],
    reading: ReadingOptions,
    spending: SpendingOptions,
    built: RecipeOptions,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Random seed. Default: 0.")] = None,
    runner: arguments.Runner = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read SRC, list titles, headings and sizes, and build nothing.")
    ] = False,
    as_json: arguments.AsJson = False,
) -> None:
    """Index documents. Adds new documents and updates those with a known id.

    Nothing is removed: to remove documents that are no longer in SRC, use `sire sync`. To resume an interrupted build,
    run the same command again. With another --recipe, that recipe is added to the folder; recipes share passages,
    vectors and extraction.

    With --llm, the expected cost is shown and you are asked before anything is spent. Every answer is stored as it
    arrives, so a resumed build pays only for the rest.

    Example: sire index papers/ notes.jsonl --to my-index --recipe sirerag

    JSON of --dry-run: a list of {"id", "title", "headings", "characters", "passages", "warnings"}.
    """
    if dry_run:
        list_readings(
            sources,
            IndexOptions(to, chunk_tokens=built.chunk_tokens, no_chunking=built.no_chunking, media=reading.media),
            as_json=as_json,
        )
        return
    options = _options(to, spending.model(), spending, reading, seed=seed, runner=runner, **built.as_given())
    run_change(options, put(Index.update), sources=sources, as_json=as_json, approve=approval(spending, with_documents))
