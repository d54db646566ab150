"""From the words that LlamaIndex's users write to models, an index and its retriever, and what a folder remembers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.settings import Settings
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_sire.embedding import LlamaIndexEmbedder
from llama_index_sire.language_model import LlamaIndexModel
from llama_index_sire.options import RetrieverFields, SearchFields
from llama_index_sire.sire_embedding import SireEmbedding
from llama_index_sire.vector_store import VectorStoreMirror, over_vector_store
from sire_core.arguments import other_words, parameters
from sire_core.changes.app_settings import AppSettings
from sire_core.errors import ConfigurationError
from sire_core.index import Index
from sire_core.models.base import check_language_model
from sire_core.progress import Bars
from sire_core.protocols import Embedder, LanguageModel, Recipe
from sire_core.recipes.registry import recipe_of, split_arguments
from sire_core.storage.index_files import read_manifest

EmbedModelLike = Union[BaseEmbedding, "Embedder", str, None]
LLMLike = Union[LLM, "LanguageModel", str, None]


def resolve_embed_model(model: EmbedModelLike, built_by: str = "") -> Embedder | str | None:
    """The embedder of an index that was built by one with a fingerprint."""
    if isinstance(model, str) and model.partition(":")[0] == "local":
        if not (name := model.partition(":")[2]):
            raise ConfigurationError(f"{model!r} names no model; for example 'local:BAAI/bge-small-en-v1.5'.")
        return f"st:{name}"
    if model is None:
        # The property would make the default model; the attribute tells whether the user has set one.
        model = Settings._embed_model and Settings.embed_model  # noqa: SLF001 - there is no public way to ask
    if built_by.startswith("llama-index:SireEmbedding:"):  # of early versions
        model = SireEmbedding(model) if isinstance(model, str) else model
    elif isinstance(model, SireEmbedding):
        return model.core_embedder
    return LlamaIndexEmbedder(model) if isinstance(model, BaseEmbedding) else model


def resolve_llm(model: LLMLike) -> LanguageModel | None:
    """The language model of an index."""
    check_llm(model)
    if isinstance(model, str):
        model = Settings.llm
    return LlamaIndexModel(model) if isinstance(model, LLM) else model


def check_llm(model: LLMLike) -> None:
    """Refuse what `resolve_llm` does not take, without looking into `Settings`."""
    if isinstance(model, str) and model != "settings":
        raise ConfigurationError(f"llm is an LLM, 'settings' or None, not {model!r}.")
    if not isinstance(model, (str, LLM)):
        check_language_model(model, "llm is an LLM of LlamaIndex, a LanguageModel, 'settings' or None")


SETTINGS = AppSettings(
    "llama_index.json",
    ("similarity_top_k", "filters", "returns", "scores", "as_of", "max_tokens"),
    ("scores", "max_tokens"),
)

SEARCH_FIELDS = (*SearchFields.__annotations__, "recipe")  # Names of the settings of one search

FIELDS = tuple(RetrieverFields.__annotations__)  # Names of the fields of a retriever

SPELLINGS = other_words("embed_model", "llm", "persist_dir", "vector_store", "similarity_top_k", "filters")

_OURS = parameters(Index, without=("path", "recipe", "embedder", "language_model"))
_ARGUMENT_NAMES = ("persist_dir", "embed_model", "llm", "recipe", "vector_store", "show_progress", *_OURS)


def read_arguments(called: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of `open_index`, and those of a retriever."""
    return split_arguments(called, arguments, _ARGUMENT_NAMES, FIELDS, SPELLINGS, "persist_dir")


def open_index(
    persist_dir: str | os.PathLike[str] | None = None,
    *,
    recipe: Recipe | str | None = None,
    llm: LLMLike = None,
    embed_model: EmbedModelLike = None,
    vector_store: BasePydanticVectorStore | VectorStoreMirror | None = None,
    show_progress: bool = False,
    **options: Any,
) -> Index:
    """An index with LlamaIndex's models in the places of ours; where the user has a vector store, searched in it."""
    manifest = read_manifest(None if persist_dir is None else Path(persist_dir))
    if show_progress and "progress" not in options:
        options["progress"] = Bars()
    if "chunker" not in options and (chunker := SETTINGS.chunker(persist_dir)):
        options["chunker"] = chunker
    bridged = not manifest.embedder or manifest.embedder.startswith("llama-index:")
    embedder = resolve_embed_model(embed_model, manifest.embedder) if bridged or embed_model is not None else None
    if vector_store is not None:
        mirror = vector_store if isinstance(vector_store, VectorStoreMirror) else VectorStoreMirror(vector_store)
        options["mirrors"] = (mirror, *options.get("mirrors", ()))
        recipe = over_vector_store(recipe or recipe_of(persist_dir), mirror.vector_store)
    return Index(persist_dir, recipe=recipe, embedder=embedder, language_model=resolve_llm(llm), **options)
