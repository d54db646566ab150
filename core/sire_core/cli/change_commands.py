"""`sire add`, `sire update`, `sire delete`: changes of an index that is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.changes import run_change
from sire_core.cli.models import DEFAULT_KEY, Spending
from sire_core.cli.options import IndexOptions, check_folder, is_index, manifest_of
from sire_core.errors import IndexMissingError
from sire_core.index import Index

if TYPE_CHECKING:
    from sire_core.types import BuildReport, Document

__all__ = ["add", "delete", "update"]


def add(  # noqa: PLR0917 - typer passes every option by name
    folder: arguments.Folder,
    sources: arguments.Sources,
    embedder: arguments.Embedder = None,
    media: arguments.Media = False,
    extractions: arguments.Extractions = None,
    llm: arguments.Llm = None,
    base_url: arguments.BaseUrl = None,
    api_key_env: arguments.ApiKeyEnv = DEFAULT_KEY,
    native: arguments.Native = False,
    max_calls: arguments.MaxCalls = None,
    max_tokens: arguments.MaxTokens = None,
    prices: arguments.Prices = None,
    yes: arguments.Yes = False,
    workers: arguments.Workers = 8,
    max_failure_ratio: arguments.MaxFailureRatio = 0.1,
    as_json: arguments.AsJson = False,
) -> None:
    """Add documents to an index. Those that are there already and did not change are left alone.

    All recipes of the folder follow. A document that is there with another text is an error; `sire update` replaces it.
    With --llm it shows what that will cost and asks before it spends.
    """
    spending = Spending(llm, base_url, api_key_env, native, max_calls, max_tokens, prices, yes, workers)
    options = _existing(folder, sources[0], spending, embedder, extractions, max_failure_ratio, media=media)
    run_change(options, Index.add, sources=sources, as_json=as_json, approve=_approval(spending, _with))


def update(  # noqa: PLR0917 - typer passes every option by name
    folder: arguments.Folder,
    sources: arguments.Sources,
    embedder: arguments.Embedder = None,
    media: arguments.Media = False,
    extractions: arguments.Extractions = None,
    llm: arguments.Llm = None,
    base_url: arguments.BaseUrl = None,
    api_key_env: arguments.ApiKeyEnv = DEFAULT_KEY,
    native: arguments.Native = False,
    max_calls: arguments.MaxCalls = None,
    max_tokens: arguments.MaxTokens = None,
    prices: arguments.Prices = None,
    yes: arguments.Yes = False,
    workers: arguments.Workers = 8,
    max_failure_ratio: arguments.MaxFailureRatio = 0.1,
    as_json: arguments.AsJson = False,
) -> None:
    """Replace documents by id, and add those that are new.

    Others stay; all recipes of the folder follow. With --llm it shows what that will cost and asks before it spends.
    """
    spending = Spending(llm, base_url, api_key_env, native, max_calls, max_tokens, prices, yes, workers)
    options = _existing(folder, sources[0], spending, embedder, extractions, max_failure_ratio, media=media)
    run_change(options, Index.update, sources=sources, as_json=as_json, approve=_approval(spending, _with))


def delete(  # noqa: PLR0917 - typer passes every option by name
    folder: arguments.Folder,
    doc_ids: Annotated[list[str], typer.Argument(metavar="DOC_ID", help="Ids of the documents to remove.")],
    embedder: arguments.Embedder = None,
    extractions: arguments.Extractions = None,
    llm: arguments.Llm = None,
    base_url: arguments.BaseUrl = None,
    api_key_env: arguments.ApiKeyEnv = DEFAULT_KEY,
    native: arguments.Native = False,
    max_calls: arguments.MaxCalls = None,
    max_tokens: arguments.MaxTokens = None,
    prices: arguments.Prices = None,
    yes: arguments.Yes = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Overwrite all that these and earlier deleted documents left on disk.")
    ] = False,
    as_json: arguments.AsJson = False,
) -> None:
    """Remove documents and everything that was derived from them. With an unknown id nothing is removed.

    Records and model answers about them are kept in case they come back, unless --purge is given. Summaries that knew
    them are written anew: with --llm it shows what that will cost and asks before it spends.
    """
    spending = Spending(llm, base_url, api_key_env, native, max_calls, max_tokens, prices, yes)
    options = _existing(folder, doc_ids[0], spending, embedder, extractions)

    def change(index: Index, _: Sequence[Document]) -> BuildReport:
        report = index.delete(doc_ids)
        if purge:
            index.purge()
        return report

    def without(index: Index, _: Sequence[Document]) -> Sequence[Document]:
        return [document for document in index.documents() if document.id not in doc_ids]

    run_change(options, change, as_json=as_json, approve=_approval(spending, without))


def _with(index: Index, documents: Sequence[Document]) -> Sequence[Document]:
    """What the index would hold with these documents."""
    return list({document.id: document for document in (*index.documents(), *documents)}.values())


def _approval(
    spending: Spending, after: Callable[[Index, Sequence[Document]], Sequence[Document]]
) -> Callable[[Index, Sequence[Document]], None] | None:
    """Asks whether a change may be paid; None where nothing is paid.

    Args:
        spending: What was said.
        after: From the index and the given documents to those that it would hold.
    """
    approve = spending.approval()
    return None if approve is None else lambda index, documents: approve(index, after(index, documents))


def _existing(
    folder: Path,
    first: str | Path,
    spending: Spending,
    embedder: str | None,
    extractions: Path | None,
    max_failure_ratio: float = 0.1,
    *,
    media: bool = False,
) -> IndexOptions:
    """Options of a change; the index must be there, so that a typing error does not start a new one.

    Args:
        folder: The index folder.
        first: The argument behind it, which may be the index by mistake.
        spending: What may be asked of a model.
        embedder: Makes vectors.
        extractions: File of recorded extractions.
        max_failure_ratio: Share of failed passages above which the change stops.
        media: Whether tables and images are passages of their own.

    Raises:
        IndexMissingError: There is no index.
    """
    model = spending.model()
    check_folder(folder, first)
    if not manifest_of(folder).generation:
        why = f"The index in {folder} was never finished" if is_index(folder) else f"There is no index in {folder}"
        raise IndexMissingError(f"{why}. Build it: sire index SRC... --to {folder}")
    return IndexOptions(
        folder=folder,
        embedder=embedder,
        extractions=extractions,
        media=media,
        language_model=model,
        native=spending.native,
        workers=spending.workers,
        max_failure_ratio=max_failure_ratio,
        writes=True,
    )
