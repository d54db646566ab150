"""Options of the components as typed keywords, which type checkers refuse when wrong and editors complete.

At run time each function also takes the spellings of other libraries (`opening.SPELLINGS`), which are not listed here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from sire_core.index_options import IndexOptions
from sire_core.recipes.setting_types import RecipeSettings
from sire_core.search.validity import SearchOptions

if TYPE_CHECKING:
    from langchain_core.vectorstores import VectorStore

    from langchain_sire.chat import LLMLike
    from langchain_sire.embeddings import EmbeddingLike
    from langchain_sire.vector_store import VectorStoreMirror
    from sire_core.filters import FilterLike
    from sire_core.protocols import Recipe
    from sire_core.search.context import ContextOptions
    from sire_core.search.validity import Day

SearchType = Literal["similarity", "mmr", "similarity_score_threshold"]


class StoreSearchOptions(SearchOptions, total=False):
    """What one search of a vector store may set."""

    recipe: str | None


class CallOptions(StoreSearchOptions, total=False):
    """What one call of a retriever may set."""

    k: int | None
    max_tokens: int | None


class SearchKwargs(CallOptions, total=False):
    """What `search_kwargs` sets for all calls; the last three belong to a `search_type`."""

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
    """What makes an index, beside folder, recipe and models.

    `recipe_settings` also takes settings of recipes of other packages.
    """

    vector_store: VectorStore | VectorStoreMirror | None
    show_progress: bool
    recipe_settings: Mapping[str, Any]


class TransformerOptions(MadeIndexOptions, total=False):
    """What `SireDocumentTransformer` takes."""

    path: str | os.PathLike[str] | None
    embedding: EmbeddingLike
    llm: LLMLike


class OpenOptions(RetrieverFields, MadeIndexOptions, total=False):
    """What `from_documents`, `load`, `open` and their kin take beside folder, recipe and models.

    `extraction_llm` and `options` are for `IRCoTRetriever` and `SelfAskRetriever`.
    """

    extraction_llm: LLMLike
    options: Mapping[str, Any]


class StoreOptions(OpenOptions, total=False):
    """What `SireVectorStore.from_texts` takes beside texts and embedding."""

    path: str | os.PathLike[str] | None
    llm: LLMLike
    recipe: Recipe | str | None
    provenance: bool


class StoreArguments(StoreOptions, total=False):
    """What the other class methods of `SireVectorStore` take."""

    ids: list[str] | None
