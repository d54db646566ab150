"""From the words that LangChain's users write to an index and to the settings of a retriever over it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from langchain_core.vectorstores import VectorStore
from pydantic import ValidationError

from langchain_sire.chat import as_language_model
from langchain_sire.embeddings import as_embedder
from langchain_sire.search_types import SEARCH_TYPE_OPTIONS
from langchain_sire.vector_store import VectorStoreMirror, over_vector_store
from sire_core.arguments import other_words, parameters
from sire_core.changes.app_settings import AppSettings
from sire_core.errors import ConfigurationError, SireError
from sire_core.index import Index
from sire_core.progress import Bars
from sire_core.recipes.registry import recipe_of, split_arguments
from sire_core.storage.index_files import read_manifest

_EXCLUSIVE = ("max_tokens", "search_type", *SEARCH_TYPE_OPTIONS)
SETTINGS = AppSettings("langchain.json", ("k", "filter", "returns", "as_of", *_EXCLUSIVE), _EXCLUSIVE)

SPELLINGS = other_words("embedding", "llm", "path", "vector_store", "k", "filter")

_OURS = parameters(Index, without=("path", "recipe", "embedder", "language_model"))
_ARGUMENT_NAMES = ("path", "embedding", "llm", "recipe", "vector_store", "show_progress", *_OURS)


def open_index(called: str, arguments: Mapping[str, Any], others: Collection[str] = ()) -> tuple[Index, dict[str, Any]]:
    """An index with LangChain's models in the places of ours, and what was given beside its arguments."""
    words = {k: v for k, v in arguments.items() if v is not None}
    options, rest = split_arguments(called, words, _ARGUMENT_NAMES, others, SPELLINGS, "path")
    chunker = arguments["chunker"] if "chunker" in arguments else SETTINGS.chunker(options.get("path")) or "whole"
    return make_index(**{**options, "chunker": chunker}), rest


def make_index(
    path: Any = None,
    embedding: Any = None,
    llm: Any = None,
    recipe: Any = None,
    *,
    vector_store: VectorStore | VectorStoreMirror | None = None,
    show_progress: bool = False,
    **options: Any,
) -> Index:
    """An index with LangChain's models in the places of ours; where the user has a vector store, searched in it."""
    if show_progress and "progress" not in options:
        options["progress"] = Bars()
    if vector_store is not None:
        mirror = vector_store if isinstance(vector_store, VectorStoreMirror) else VectorStoreMirror(vector_store)
        options["mirrors"] = (mirror, *options.get("mirrors", ()))
        recipe = over_vector_store(recipe or recipe_of(path), mirror.vector_store)
        embedding = mirror.vector_store.embeddings if embedding is None else embedding
    embedder = as_embedder(embedding, read_manifest(None if path is None else Path(path)).embedder)
    return Index(path, recipe=recipe, embedder=embedder, language_model=as_language_model(llm), **options)


def plain_error(called: str, error: ValidationError) -> Exception:
    """Our error in one of pydantic, or a short one of ours in its place."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"][:1])
    if isinstance(ours := first.get("ctx", {}).get("error"), SireError):
        return ours
    if first["type"] == "missing":
        return TypeError(f"{called}() is missing the argument {name!r}.")
    return ConfigurationError(f"{called}: {name} is {first['input']!r:.100}. {first['msg']}.")


def read_search(folder: str | os.PathLike[str] | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Search options that a folder stores, without those that are given as fields (or None) or in `search_kwargs`."""
    search_kwargs = fields.get("search_kwargs") or {}
    stored = SETTINGS.search_options(folder, {SPELLINGS.get(word, word) for word in (*fields, *search_kwargs)})
    of_type = {name: stored.pop(name) for name in SEARCH_TYPE_OPTIONS if name in stored}
    return {**stored, "search_kwargs": {**of_type, **search_kwargs}} if of_type else stored
