"""The embedder that needs no download: words and character n-grams."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.models.lexical_vectors import SKETCH, TOPICS, LexicalState, embed_texts, learn_state

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import FloatArray

__all__ = ["LexicalEmbedder", "is_lexical"]

_NAME = "lexical-svd/1"
_FIT_TEXTS = 20_000
_FEW = 16
_large: list[tuple[int, ThreadPoolExecutor]] = []
"""The thread of large batches, by process: a fork has no threads."""


def is_lexical(fingerprint: str) -> bool:
    """Whether a fingerprint is that of a `LexicalEmbedder`."""
    return fingerprint.split(":", 1)[0].startswith(_NAME)


class LexicalEmbedder:
    """TF-IDF of stems and character n-grams, as a sign projection and a truncated SVD side by side.

    A text is the sum of its words' vectors, each weighted by `(1 + ln tf) * idf ** 1.5`. A word's vector is a
    pseudo-random sign vector of its stem, plus those of its character n-grams (so that spellings and inflections of any
    language meet), plus its row of the truncated SVD of the texts it was fitted on. Words never seen before still have
    a vector, with the largest idf. Runs of scripts without spaces count as overlapping pairs of characters.

    Fitted once by `fit`, which returns a copy, and frozen then. Of more than 20,000 texts it looks at 20,000 spread
    evenly. Texts without any word get the zero vector.
    """

    def __init__(self) -> None:
        self._state: LexicalState | None = None

    @property
    def spec(self) -> str:
        """What makes this embedder again, unfitted: `resolve_embedder(spec)`."""
        return "lexical"

    @property
    def fingerprint(self) -> str:
        """`lexical-svd/1`, and once fitted a digest of the state."""
        return _NAME if self._state is None else self._state.fingerprint

    @property
    def portable(self) -> bool:
        """Always: a copy of what it learned embeds alike."""
        return True

    @property
    def dimension(self) -> int:
        """Length of a vector; the same for every corpus."""
        return SKETCH + TOPICS

    @property
    def fitted(self) -> bool:
        """Whether it can embed."""
        return self._state is not None

    @property
    def fitted_on(self) -> int:
        """Number of texts given to `fit`; 0 before."""
        return 0 if self._state is None else self._state.fitted_on

    def fit(self, texts: Sequence[str]) -> LexicalEmbedder:
        """Return a fitted copy. Takes seconds for thousands of texts: call it in a worker thread.

        Args:
            texts: The corpus or its first batch, at least one text.

        Raises:
            ConfigurationError: There are no texts.
        """
        if not texts:
            raise ConfigurationError("the lexical embedder learns from the corpus: give it at least one text to fit")
        count = min(len(texts), _FIT_TEXTS)
        sample = [texts[i * len(texts) // count] for i in range(count)]
        return _restored(learn_state(sample, len(texts)))

    def state(self) -> Mapping[str, NDArray[Any]]:
        """Arrays that `from_state` restores the copy from, at most 14 MB.

        Raises:
            ConfigurationError: Not fitted yet.
        """
        fitted = self._fitted()
        return {
            "counts": np.array([fitted.fitted_on, fitted.sampled], dtype=np.int64),
            "keys": fitted.keys,
            "frequencies": fitted.frequencies,
            "topics": fitted.topics,
        }

    def from_state(self, state: Mapping[str, NDArray[Any]]) -> LexicalEmbedder:
        """Return a copy restored from `state()`.

        Raises:
            ConfigurationError: These are not the arrays of `state()`.
        """
        try:
            fitted_on, sampled = (int(n) for n in state["counts"])
            keys = np.asarray(state["keys"], dtype=np.uint64)
            frequencies = np.asarray(state["frequencies"], dtype=np.int32)
            topics = np.asarray(state["topics"], dtype=np.float16)
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"no state of a lexical embedder ({error}); fit it again") from error
        if keys.ndim != 1 or frequencies.shape != keys.shape or topics.shape != (len(keys), TOPICS):
            raise ConfigurationError("no state of a lexical embedder (shapes differ); fit it again")
        return _restored(LexicalState(fitted_on, sampled, keys, frequencies, topics))

    async def embed(self, texts: Sequence[str], kind: str = "document") -> FloatArray:  # noqa: ARG002 - the protocol's
        """Embed texts, questions and documents alike; float32 `[len(texts), dimension]`, rows of length 1 or 0.

        Raises:
            ConfigurationError: Not fitted yet.
        """
        fitted = self._fitted()
        if len(texts) <= _FEW:
            return await asyncio.to_thread(embed_texts, fitted, list(texts))
        work = _large_batches()
        return await asyncio.get_running_loop().run_in_executor(work, embed_texts, fitted, list(texts))

    def _fitted(self) -> LexicalState:
        if self._state is None:
            raise ConfigurationError("the lexical embedder is not fitted; use what `fit(texts)` returns")
        return self._state


def _restored(fitted: LexicalState) -> LexicalEmbedder:
    state = hashlib.blake2b(digest_size=12)
    state.update(f"{fitted.fitted_on}:{fitted.sampled}:{len(fitted.keys)}:".encode())
    for array, kind in ((fitted.keys, "<u8"), (fitted.frequencies, "<i4"), (fitted.topics, "<f2")):
        state.update(np.ascontiguousarray(array, dtype=kind).tobytes())
    embedder = LexicalEmbedder()
    embedder._state = LexicalState(  # noqa: SLF001 - a copy of the same class
        fitted.fitted_on, fitted.sampled, fitted.keys, fitted.frequencies, fitted.topics, f"{_NAME}:{state.hexdigest()}"
    )
    return embedder


def _large_batches() -> ThreadPoolExecutor:
    """One thread for all large batches; a question does not wait behind them.

    Several would only share the cores and multiply the memory, also one after the other: allocators keep what a thread
    has freed for that thread, which is 100 MB of each that ever embedded a batch.
    """
    if not _large or _large[0][0] != os.getpid():
        _large[:] = [(os.getpid(), ThreadPoolExecutor(1, "sire-embedding"))]
    return _large[0][1]
