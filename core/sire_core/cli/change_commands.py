"""`sire add`, `sire update`, `sire delete`: changes of an index that is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.changes import run_change
from sire_core.cli.models import DEFAULT_KEY, language_model
from sire_core.cli.options import IndexOptions, check_folder, manifest_of
from sire_core.errors import IndexMissingError
from sire_core.index import Index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sire_core.protocols import LanguageModel
    from sire_core.types import BuildReport, Document

__all__ = ["add", "delete", "update"]


def add(  # noqa: PLR0917 - typer passes every option by name
    folder: arguments.Folder,
    sources: arguments.Sources,
    embedder: arguments.Embedder = None,
    extractions: arguments.Extractions = None,
    llm: arguments.Llm = None,
    base_url: arguments.BaseUrl = None,
    api_key_env: arguments.ApiKeyEnv = DEFAULT_KEY,
    native: arguments.Native = False,
    max_calls: arguments.MaxCalls = None,
    max_tokens: arguments.MaxTokens = None,
    workers: arguments.Workers = 8,
    max_failure_ratio: arguments.MaxFailureRatio = 0.1,
    as_json: arguments.AsJson = False,
) -> None:
    """Add documents to an index. Those that are there already and did not change are left alone.

    All recipes of the folder follow. A document that is there with another text is an error; `sire update` replaces it.
    """
    model = language_model(
        llm, base_url, api_key_env, native=native, max_calls=max_calls, max_tokens=max_tokens, workers=workers
    )
    options = _existing(folder, embedder, extractions, model, native, workers, max_failure_ratio)
    run_change(options, Index.add, sources=sources, as_json=as_json)


def update(  # noqa: PLR0917 - typer passes every option by name
    folder: arguments.Folder,
    sources: arguments.Sources,
    embedder: arguments.Embedder = None,
    extractions: arguments.Extractions = None,
    llm: arguments.Llm = None,
    base_url: arguments.BaseUrl = None,
    api_key_env: arguments.ApiKeyEnv = DEFAULT_KEY,
    native: arguments.Native = False,
    max_calls: arguments.MaxCalls = None,
    max_tokens: arguments.MaxTokens = None,
    workers: arguments.Workers = 8,
    max_failure_ratio: arguments.MaxFailureRatio = 0.1,
    as_json: arguments.AsJson = False,
) -> None:
    """Replace documents by id, and add those that are new. Others stay; all recipes of the folder follow."""
    model = language_model(
        llm, base_url, api_key_env, native=native, max_calls=max_calls, max_tokens=max_tokens, workers=workers
    )
    options = _existing(folder, embedder, extractions, model, native, workers, max_failure_ratio)
    run_change(options, Index.update, sources=sources, as_json=as_json)


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
    purge: Annotated[
        bool, typer.Option("--purge", help="Overwrite all that these and earlier deleted documents left on disk.")
    ] = False,
    as_json: arguments.AsJson = False,
) -> None:
    """Remove documents and everything that was derived from them. With an unknown id nothing is removed.

    Records and model answers about them are kept in case they come back, unless --purge is given.
    """
    model = language_model(llm, base_url, api_key_env, native=native, max_calls=max_calls, max_tokens=max_tokens)
    options = _existing(folder, embedder, extractions, model, native)

    def change(index: Index, _: Sequence[Document]) -> BuildReport:
        report = index.delete(doc_ids)
        if purge:
            index.purge()
        return report

    run_change(options, change, as_json=as_json)


def _existing(
    folder: Path,
    embedder: str | None,
    extractions: Path | None,
    model: LanguageModel | None,
    native: bool,
    workers: int = 8,
    max_failure_ratio: float = 0.1,
) -> IndexOptions:
    """Options of a change; the index must be there, so that a typing error does not start a new one.

    Raises:
        IndexMissingError: There is no index.
    """
    check_folder(folder)
    if not manifest_of(folder).generation:
        raise IndexMissingError(f"There is no index in {folder}. Build one: sire index SRC... --to {folder}")
    return IndexOptions(
        folder=folder,
        embedder=embedder,
        extractions=extractions,
        language_model=model,
        native=native,
        workers=workers,
        max_failure_ratio=max_failure_ratio,
        writes=True,
    )
