"""Options of the components as typed keywords, which type checkers refuse when wrong and editors complete.

At run time each function also takes the spellings of other libraries (`opening.SPELLINGS`), which are not listed here.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from sire_core.index_options import IndexOptions
from sire_core.recipes.setting_types import RecipeSettings

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.callbacks.base import CallbackManager
    from llama_index.core.llms import LLM
    from llama_index.core.memory import BaseMemory
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.prompts import BasePromptTemplate, PromptTemplate
    from llama_index.core.response_synthesizers import BaseSynthesizer, ResponseMode
    from llama_index.core.schema import IndexNode, TransformComponent
    from llama_index.core.vector_stores.types import BasePydanticVectorStore
    from pydantic import BaseModel

    from llama_index_sire.filters import FilterLike
    from llama_index_sire.opening import EmbedModelLike, LLMLike
    from llama_index_sire.vector_store import VectorStoreMirror
    from sire_core.protocols import Recipe
    from sire_core.reason import IRCoTConfig, ReasoningLimits, SelfAskConfig
    from sire_core.search.context import ContextOptions
    from sire_core.search.validity import Day


class SearchFields(TypedDict, total=False):
    """Settings of one search."""

    filters: FilterLike
    doc_ids: Collection[str] | None
    node_ids: Collection[str] | None
    returns: Literal["passages", "units"]
    scores: Literal["recipe", "similarity"]
    as_of: Day
    max_tokens: int | None
    context_options: ContextOptions | None


class NamedRecipe(TypedDict, total=False):
    """A recipe of the index, by its name."""

    recipe: str | None


class RetrieverFields(SearchFields, total=False):
    """Fields of a retriever beside its index."""

    similarity_top_k: int
    title_key: str | Sequence[str] | None
    transformations: Sequence[TransformComponent] | None
    callback_manager: CallbackManager | None
    object_map: dict[str, Any] | None
    objects: list[IndexNode] | None
    verbose: bool


class ViewOptions(RetrieverFields, NamedRecipe, total=False):
    """Options of `as_retriever`."""


class OpenOptions(RetrieverFields, IndexOptions, RecipeSettings, total=False):
    """Options of `from_persist_dir`.

    `recipe_settings` also takes settings of recipes of other packages.
    """

    llm: LLMLike
    embed_model: EmbedModelLike
    recipe: Recipe | str | None
    vector_store: BasePydanticVectorStore | VectorStoreMirror | None
    show_progress: bool
    recipe_settings: Mapping[str, Any]


class DocumentsOptions(OpenOptions, total=False):
    """Options of `from_documents` and its kin."""

    persist_dir: str | os.PathLike[str] | None
    ids: Sequence[str] | None
    replace_source: bool


class QueryEngineOptions(SearchFields, NamedRecipe, total=False):
    """Options of `as_query_engine`: fields of a search, and arguments of `RetrieverQueryEngine.from_args`."""

    llm: LLM | None
    response_synthesizer: BaseSynthesizer | None
    node_postprocessors: list[BaseNodePostprocessor] | None
    callback_manager: CallbackManager | None
    response_mode: ResponseMode | str
    text_qa_template: BasePromptTemplate | None
    refine_template: BasePromptTemplate | None
    summary_template: BasePromptTemplate | None
    simple_template: BasePromptTemplate | None
    chat_content_qa_template: BasePromptTemplate | None
    chat_content_refine_template: BasePromptTemplate | None
    output_cls: type[BaseModel] | None
    use_async: bool
    streaming: bool
    verbose: bool
    multimodal: bool


class ChatEngineOptions(QueryEngineOptions, total=False):
    """Options of `as_chat_engine`: fields of a search, and arguments of the engine's `from_defaults`."""

    chat_history: list[ChatMessage] | None
    memory: BaseMemory | None
    memory_cls: type[BaseMemory]
    system_prompt: str | None
    prefix_messages: list[ChatMessage] | None
    skip_condense: bool
    context_prompt: PromptTemplate | str | None
    context_refine_prompt: PromptTemplate | str | None
    context_template: PromptTemplate | str | None
    context_refine_template: PromptTemplate | str | None
    condense_prompt: PromptTemplate | str | None
    condense_question_prompt: BasePromptTemplate | None


class EngineOptions(TypedDict, total=False):
    """Options of an engine that reasons; see `ReasoningQueryEngine`."""

    config: IRCoTConfig | SelfAskConfig | None
    k: int | None
    limits: ReasoningLimits | Mapping[str, Any] | None
    streaming: bool
    on_model_error: Literal["raise", "return"]
    callback_manager: CallbackManager | None


class WorkflowOptions(TypedDict, total=False):
    """Arguments of LlamaIndex's `Workflow` beside its timeout."""

    verbose: bool
    disable_validation: bool
    num_concurrent_runs: int | None
