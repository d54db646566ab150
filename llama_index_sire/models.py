"""Which models an adapter uses: what was given, else what the user set in `Settings`, else the core's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.settings import Settings

from llama_index_sire.embedding import LlamaIndexEmbedder
from llama_index_sire.language_model import LlamaIndexModel
from sire_core.errors import ConfigurationError
from sire_core.models.base import check_language_model

if TYPE_CHECKING:
    from sire_core.protocols import Embedder, LanguageModel

__all__ = ["EmbedModelLike", "LLMLike", "check_llm", "resolve_embed_model", "resolve_llm"]

EmbedModelLike = Union[BaseEmbedding, "Embedder", str, None]
LLMLike = Union[LLM, "LanguageModel", str, None]


def resolve_embed_model(given: EmbedModelLike) -> Embedder | str | None:
    """The embedder of an index.

    Args:
        given: A LlamaIndex embedding model, an `Embedder`, a name for `resolve_embedder`, or LlamaIndex's
            `local:NAME_OR_FOLDER` (sentence-transformers). None means `Settings.embed_model` if you have set it,
            otherwise the core's default; LlamaIndex's own default (OpenAI) is never used.

    Raises:
        ConfigurationError: `local` names no model.
    """
    if isinstance(given, str) and given.partition(":")[0] == "local":
        if not (name := given.partition(":")[2]):
            raise ConfigurationError(f"{given!r} names no model; for example 'local:BAAI/bge-small-en-v1.5'.")
        return f"st:{name}"
    if given is None:
        # The property would make the default model; the attribute tells whether the user has set one.
        given = Settings._embed_model and Settings.embed_model  # noqa: SLF001 - there is no public way to ask
    return LlamaIndexEmbedder(given) if isinstance(given, BaseEmbedding) else given


def resolve_llm(given: LLMLike) -> LanguageModel | None:
    """The language model of an index.

    Args:
        given: A LlamaIndex LLM, a `LanguageModel`, or `"settings"` for `Settings.llm`. None works without a model, even
            if `Settings.llm` is set.

    Raises:
        ConfigurationError: Something else.
    """
    check_llm(given)
    if isinstance(given, str):
        given = Settings.llm
    return LlamaIndexModel(given) if isinstance(given, LLM) else given


def check_llm(given: LLMLike) -> None:
    """Refuse what `resolve_llm` does not take, without looking into `Settings`.

    Raises:
        ConfigurationError: Something else.
    """
    if isinstance(given, str) and given != "settings":
        raise ConfigurationError(f"llm is an LLM, 'settings' or None, not {given!r}.")
    if not isinstance(given, (str, LLM)):
        check_language_model(given, "llm is an LLM of LlamaIndex, a LanguageModel, 'settings' or None")
