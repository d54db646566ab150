"""Options of the components as typed keywords, which type checkers refuse when wrong and editors complete.

At run time each function also takes the spellings of other libraries (`opening.SPELLINGS`), which are not listed here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from langchain_core.vectorstores import VectorStore

from langchain_sire.chat import LLMLike
from langchain_sire.documents import Ids
from langchain_sire.embeddings import EmbeddingLike
from langchain_sire.vector_store import VectorStoreMirror
from sire_core.filters import FilterLike
from sire_core.index_options import IndexOptions
from sire_core.protocols import Recipe
from sire_core.recipes.setting_types import RecipeSettings
from sire_core.search.context import ContextOptions
from sire_core.search.search_options import SearchOptions
from sire_core.search.validity import Day

SearchType = Literal["similarity", "mmr", "similarity_score_threshold"]


class StoreSearchOptions(SearchOptions, total=False):
    """Options of one search of a vector store."""

    recipe: str | None


class CallOptions(StoreSearchOptions, total=False):
    """Options of one call of a retriever."""

    k: int | None
    max_tokens: int | None


class SearchKwargs(CallOptions, total=False):
    """Keys of `search_kwargs`, which hold for all calls; the last three belong to a `search_type`."""

    fetch_k: int
    lambda_mult: float
    score_threshold: float


class RetrieverFields(TypedDict, total=False):
    """Fields of `SireRetriever` beside its index."""

    k: int
    filter: FilterLike
    returns: Literal["passages", "units"]
    as_of: Day
    max_tokens: int | None
    context_options: ContextOptions
    search_type: SearchType
    search_kwargs: SearchKwargs
    title_key: str | list[str]
    name: str | None
    tags: list[str] | None
    metadata: dict[str, Any] | None


class ReasoningFields(RetrieverFields, total=False):
    """Fields of `IRCoTRetriever` and `SelfAskRetriever`."""

    llm: LLMLike
    options: Mapping[str, Any]


class MadeIndexOptions(IndexOptions, RecipeSettings, total=False):
    """Arguments of `Index` and settings of recipes; `recipe_settings` also takes those of recipes of other packages."""

    llm: LLMLike
    vector_store: VectorStore | VectorStoreMirror | None
    show_progress: bool
    recipe_settings: Mapping[str, Any]


class TransformerOptions(MadeIndexOptions, total=False):
    """Options of `SireDocumentTransformer`."""

    path: str | os.PathLike[str] | None
    embedding: EmbeddingLike


class LoadOptions(ReasoningFields, MadeIndexOptions, total=False):
    """Options of `load` and `open`; `extraction_llm` and `options` are for `IRCoTRetriever` and `SelfAskRetriever`."""

    recipe: Recipe | str | None
    extraction_llm: LLMLike


class OpenOptions(LoadOptions, total=False):
    """Options of `SireVectorStore`, which has no argument for the folder."""

    path: str | os.PathLike[str] | None


class AddOptions(OpenOptions, total=False):
    """Options of `from_documents` and its kin: also how the documents are added."""

    ids: Ids
    replace_source: bool


class StoreOptions(AddOptions, total=False):
    """Options of the class methods of `SireVectorStore`."""

    provenance: bool
