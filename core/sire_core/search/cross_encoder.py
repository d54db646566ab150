"""`CrossEncoderRerank`: a cross-encoder reads the question with each of the first passages (ALGORITHMS 5.4)."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.search.rerank import Reordered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sire_core.protocols import FloatArray, Ranking, View

__all__ = ["CrossEncoderRerank"]


@dataclass(frozen=True, slots=True)
class CrossEncoderRerank:
    """Orders the head of a ranking by a cross-encoder of the sentence-transformers library (extra `rerank`).

    Attributes:
        model: Folder, or name on the hub, which the library downloads.
        pool: How many of the first hits the model reads; the order beyond them stays.
    """

    model: str
    pool: int = 20

    def __post_init__(self) -> None:
        if not self.model:
            raise ConfigurationError("Name the cross-encoder: a folder, or a name on the hub such as org/model.")
        if self.pool < 1:
            raise ConfigurationError(f"The model needs at least one passage to rank, not {self.pool}.")

    async def select(self, query: str, ranking: Ranking, k: int, view: View) -> Ranking:  # noqa: ARG002 - what the model reads does not depend on k
        """Score the head in a worker thread; equal scores keep their order.

        Raises:
            ConfigurationError: The library is missing, or the model cannot be loaded.
        """
        import asyncio

        positions, scores = await ranking.top(self.pool)
        if len(positions) < 2:
            return ranking
        texts = [unit.index_text for unit in view.units(positions)]
        found = await asyncio.to_thread(self._scores, query, texts)
        order = positions[np.argsort(-found, kind="stable")]
        return Reordered(ranking, order, scores, "cross-encoder")

    def _scores(self, query: str, texts: Sequence[str]) -> FloatArray:
        model, lock = _load(self.model)
        with lock:  # the tokenizers are not made for two threads at once
            scores = model.predict([(query, text) for text in texts], show_progress_bar=False)
        found = np.asarray(scores, dtype=np.float32)
        if found.shape != (len(texts),) or not np.isfinite(found).all():
            raise ConfigurationError(
                f"The cross-encoder {self.model} does not answer one number per passage but shape {found.shape}. "
                "Take one that was trained for ranking."
            )
        return found


@lru_cache(maxsize=2)
def _load(model: str) -> tuple[Any, threading.Lock]:
    try:
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise ConfigurationError(
            'A cross-encoder needs sentence-transformers: pip install "sire-rag[rerank]"'
        ) from error
    try:
        return CrossEncoder(model), threading.Lock()
    except Exception as error:
        raise ConfigurationError(f"The cross-encoder {model!r} cannot be loaded: {error}") from error
