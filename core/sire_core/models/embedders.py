"""From the words of a setting to an embedder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.protocols import Embedder

__all__ = ["resolve_embedder"]

_FORMS = (
    '"lexical" (the default, nothing to download), "st:NAME_OR_FOLDER" or a model folder (sentence-transformers), '
    '"openai:MODEL" (any OpenAI-compatible server), "file:PATH" (vectors of write_precomputed), or an object with '
    "fingerprint, dimension and async embed(texts, kind)"
)


def resolve_embedder(spec: str | Embedder | None) -> Embedder:
    """Make the embedder that a setting names.

    The embedders made here have a `spec`: the string that makes them again, which an index folder keeps.

    Args:
        spec: None or one of the forms below; an embedder is returned as it is.

            - `lexical`: `LexicalEmbedder`
            - `st:NAME_OR_FOLDER`, or the path of an existing folder: `SentenceTransformerEmbedder`
            - `file:PATH`: `PrecomputedEmbedder`
            - `openai:MODEL`: `OpenAIEmbedder`

    Raises:
        ConfigurationError: The spec has none of these forms, or what it names is not there.
    """
    if spec is None:
        spec = "lexical"
    if not isinstance(spec, str):
        # Looked up on the class: `isinstance(spec, Embedder)` would evaluate `dimension`, which may load a model.
        if callable(getattr(type(spec), "embed", None)):
            return spec
        raise ConfigurationError(f"{type(spec).__name__} is no embedder; use {_FORMS}")
    return _by_name(spec)


def _by_name(spec: str) -> Embedder:
    if spec == "lexical":
        from sire_core.models.lexical_embedder import LexicalEmbedder

        return LexicalEmbedder()
    form, _, rest = spec.partition(":")
    if rest and form in ("st", "file", "openai"):
        if form == "file":
            from sire_core.models.precomputed import PrecomputedEmbedder

            return PrecomputedEmbedder(rest)
        if form == "openai":
            from sire_core.models.openai_embedder import OpenAIEmbedder

            return OpenAIEmbedder(rest)
        return _sentence_transformer(rest)
    if spec and Path(spec).expanduser().is_dir():
        return _sentence_transformer(spec)
    raise ConfigurationError(f"unknown embedder {spec!r}; use {_FORMS}")


def _sentence_transformer(rest: str) -> Embedder:
    from sire_core.models.sentence_transformer import SentenceTransformerEmbedder

    name, mark, prompt = rest.partition("?query_prompt=")
    return SentenceTransformerEmbedder(name, query_prompt=unquote(prompt) if mark else None)
