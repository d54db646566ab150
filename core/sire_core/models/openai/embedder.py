"""Embeddings from any OpenAI-compatible endpoint."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from typing_extensions import Unpack

from sire_core.arguments import explains_keywords, lists_options
from sire_core.errors import ConfigurationError
from sire_core.models.embedding import BatchError, TextError, check_vectors
from sire_core.models.openai.endpoint import OpenAIEndpoint, RequestForm, ServerOptions
from sire_core.models.openai.faults import CONTEXT_WORDS, explain_fault, status_of, words_of
from sire_core.models.openai.responses import ResponseBounds
from sire_core.models.usage import credible_tokens, estimate_tokens
from sire_core.protocols import FloatArray
from sire_core.telemetry import start
from sire_core.text.words import packed
from sire_core.types import digest
from sire_core.worker_pool import map_all

_KNOWN = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
_COSTS = ((0x80, 0.25), (0x600, 0.6), (0x2E80, 2.0), (0xAC00, 1.5), (0xD7B0, 2.0), (0x110000, 3.0))
"""Tokens of a character, by where its script ends in Unicode: Latin, Greek and Cyrillic, Indic, CJK, Hangul, others."""
_SHORTENED = 4  # How often a text is halved that the server finds too long
_DEADLINE = 600.0
_MAX_BYTES = 256 * 2**20


class OpenAIEmbedder(OpenAIEndpoint):
    """An `Embedder` over the official `openai` package. Retries, limits and closing as with `OpenAIChat`.

    Args:
        model: Name of the model; for Azure, of the deployment.
        dimensions: Request shorter vectors, if the model supports it; part of the fingerprint.
        batch_size: Maximum texts per request.
        batch_tokens: Maximum tokens per request (estimated).
        max_input_tokens: Longer texts are truncated, as by local models (estimated).
        query_prefix: Prefix for questions, for models trained with one (`query: `).
        document_prefix: Prefix for all other texts.
        timeout: Seconds for a request.
        **server: As of `OpenAIChat`; see `ServerOptions`.

    Raises:
        ConfigurationError: The `openai` package is missing, or a setting is invalid.
    """

    @explains_keywords()
    @lists_options(ServerOptions)
    def __init__(
        self,
        model: str,
        *,
        dimensions: int | None = None,
        batch_size: int = 128,
        batch_tokens: int = 100_000,
        max_input_tokens: int = 8_000,
        query_prefix: str = "",
        document_prefix: str = "",
        timeout: float = 60.0,
        **server: Unpack[ServerOptions],
    ) -> None:
        bounds = ResponseBounds(max(timeout, _DEADLINE), _MAX_BYTES)
        super().__init__(model, timeout=timeout, bounds=bounds, stage="embed", **server)
        if batch_size < 1 or batch_tokens < 1 or max_input_tokens < 1:
            raise ConfigurationError("batch sizes and token limits of an embedder must be at least 1")
        self.spec = f"openai:{model}"  # Creates this embedder again; address and key come from the environment
        self._asked = dimensions
        self._dimension = dimensions or _KNOWN.get(model)
        self.batch_size = batch_size
        self._batch_tokens = batch_tokens
        self._max_tokens = max_input_tokens
        self._prefix = {"query": query_prefix, "document": document_prefix}
        self._options: dict[str, Any] = {"dimensions": dimensions} if dimensions else {}
        self._options["encoding_format"] = "base64"

    @property
    def fingerprint(self) -> str:
        """The model and what changes its vectors; not its address."""
        parts = ["openai", self.model]
        if self._asked:
            parts.append(str(self._asked))
        if any(self._prefix.values()):
            parts.append(digest(json.dumps(self._prefix, sort_keys=True), size=6))
        return ":".join(parts)

    @property
    def dimension(self) -> int:
        """Length of a vector: as asked for, as known for the model, else as seen in the first answer.

        Raises:
            ConfigurationError: It is not known yet.
        """
        if self._dimension is None:
            raise ConfigurationError(
                f"the dimension of {self.model} is known after the first text; or pass dimensions="
            )
        return self._dimension

    async def embed(self, texts: Sequence[str], kind: str = "document") -> FloatArray:
        """Embed texts; see `Embedder.embed`.

        Raises:
            ModelError: The server failed for good, or answered something else than one finite vector per text.
            LimitExceededError: A usage limit would be passed.
        """
        if kind not in self._prefix:
            raise ConfigurationError(f"kind must be document or query, not {kind!r}")
        # An empty text is refused by most servers; a space is a text.
        ready = [_beginning(self._prefix[kind] + text, self._max_tokens) or " " for text in texts]
        ready = [text.encode("utf-8", "replace").decode("utf-8") for text in ready]
        if not ready:
            return np.empty((0, self._dimension or 0), dtype=np.float32)
        attributes = {"gen_ai.provider.name": "openai", "gen_ai.request.model": self.model, "sire.texts": len(ready)}
        span = start("embeddings", self.model, attributes, remote=True)
        sized = ((text, estimate_tokens(text)) for text in ready)
        batches = list(packed(sized, itemgetter(1), self._batch_tokens, self.batch_size))
        with span, span.current():
            return np.concatenate(await map_all(self._batch, batches, self.concurrency))

    async def _batch(self, batch: Sequence[tuple[str, int]]) -> FloatArray:
        form = _BatchForm(self.model, self._options, batch)
        return self._vectors(await self.post(form), form.texts)

    def _vectors(self, answer: Mapping[str, Any], texts: Sequence[str]) -> FloatArray:
        try:
            items = list(answer["data"])
            if len(items) > 1:  # else there is no order
                items.sort(key=itemgetter("index"))
                if [item["index"] for item in items] != list(range(len(items))):
                    raise BatchError(f"{self!r} returned vectors whose `index` is missing or repeated.")
            rows = [_vector(item["embedding"]) for item in items]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TextError(f"the embedding server's answer cannot be read ({error!r})") from error
        matrix = check_vectors(rows, texts, repr(self), self._dimension)
        self._dimension = self._dimension or matrix.shape[1]
        return matrix


class _BatchForm(RequestForm):
    """A request for the vectors of some texts."""

    path = "/embeddings"

    def __init__(self, model: str, options: dict[str, Any], batch: Sequence[tuple[str, int]]) -> None:
        self._model, self._options = model, options
        self.texts = [text for text, _ in batch]
        self.size = sum(tokens for _, tokens in batch), 0
        self._shortened = 0

    def prepare(self) -> None:
        self.body = {"model": self._model, "input": self.texts, **self._options}

    def adapts(self, fault: Exception, *, is_refused: bool) -> bool:
        if not is_refused:
            return False
        words = explain_fault(fault)
        if "encoding_format" in self.body and "encoding" in words:
            self._options.pop("encoding_format", None)
            return True
        if len(self.texts) == 1 and CONTEXT_WORDS.search(words_of(fault)) and self._shortened < _SHORTENED:
            self.texts = [self.texts[0][: max(1, len(self.texts[0]) // 2)]]
            self._shortened += 1
            return True
        if status_of(fault) == 404:
            return False
        raise TextError(f"the embedding server refused the request: {words}") from fault

    def used(self, answer: Mapping[str, Any]) -> tuple[int, int]:
        usage = answer.get("usage")
        return credible_tokens(usage.get("prompt_tokens") if isinstance(usage, dict) else None, self.size[0]), 0


def _vector(raw: Any) -> FloatArray:
    if isinstance(raw, str):
        return np.frombuffer(base64.b64decode(raw, validate=True), dtype="<f4").astype(np.float32)
    row = np.asarray(raw)
    if row.dtype.kind not in "iuf":
        raise TypeError(f"a vector is a list of numbers, not of {row.dtype}")
    with np.errstate(over="ignore"):  # infinite numbers are refused with the text's name
        return row.astype(np.float32)


def _beginning(text: str, max_tokens: int) -> str:
    """The beginning of a text that has at most so many tokens, by the scripts of its characters (estimated)."""
    if len(text) * _COSTS[-1][1] <= max_tokens:
        return text
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    ends, costs = np.array([end for end, _ in _COSTS]), np.array([cost for _, cost in _COSTS])
    used = np.cumsum(costs[np.searchsorted(ends, codes, side="right")])
    return text[: int(np.searchsorted(used, max_tokens, side="right"))]
