"""Names of embedders in settings, checked before anything is imported or read."""

from __future__ import annotations

from pathlib import Path

from sire_core.arguments import did_you_mean
from sire_core.errors import ConfigurationError

EMBEDDER_FORMS = (
    '"lexical" (the default, nothing to download), "semantic" (an ONNX model of this machine), "onnx:NAME_OR_FOLDER" '
    '(no torch), "st:NAME_OR_FOLDER" or a model folder (sentence-transformers), '
    '"openai:MODEL" (any OpenAI-compatible server), "file:PATH" (vectors of write_precomputed), or an object with '
    "fingerprint, dimension and async embed(texts, kind); in the adapters also an Embeddings object of LangChain or an "
    "embedding model of LlamaIndex"
)
_EMBEDDER_NAMES, _EMBEDDER_PREFIXES = ("lexical", "semantic"), ("onnx", "st", "openai", "file")


def check_embedder_name(spec: str) -> None:
    """Refuse a name of no form that `resolve_embedder` reads; nothing is loaded."""
    is_known = spec in _EMBEDDER_NAMES or embedder_form(spec)[0] or (spec and Path(spec).expanduser().is_dir())
    if not is_known:
        hint = did_you_mean(spec.partition(":")[0], (*_EMBEDDER_NAMES, *_EMBEDDER_PREFIXES))
        raise ConfigurationError(f"unknown embedder {spec!r}; {f'{hint} Use' if hint else 'use'} {EMBEDDER_FORMS}")


def embedder_form(spec: str) -> tuple[str, str]:
    """The first word of an embedder's name if it is one of ours, and the rest."""
    form, _, rest = spec.partition(":")
    return (form, rest) if rest and form in _EMBEDDER_PREFIXES else ("", spec)
