"""`Lexical`: BM25 over any pool, through `bm25s` (ALGORITHMS 2.6, BM25 row)."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.search.ranking import ScoredRanking
from sire_core.types import Step

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, IntArray, Ranking, View

__all__ = ["Lexical"]


@dataclass(frozen=True, slots=True)
class Lexical:
    """Ranks every unit by BM25 between its text and the question.

    Attributes:
        k1: Saturation of term frequency.
        b: Length normalisation.
        language: Stop words (`bm25s`) and stemmer (Snowball) of the text.
        leave_out: Kinds that are not indexed and count for nothing: their words make no word of the others frequent.
    """

    k1: float = 1.5
    b: float = 0.75
    language: str = "english"
    leave_out: tuple[str, ...] = ()

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter. Units that share no word with the question come last, by position."""
        import asyncio

        scores = await asyncio.to_thread(self.scores, query, view)

        def explain(position: int) -> tuple[Step, ...]:
            kind = view.kind_names[view.kinds[position]]
            return (Step(f"words:{kind}", (view.ids[position].decode(),), f"BM25 {scores[position]:.2f}"),)

        return ScoredRanking(scores, view.allowed(where), explain)

    def scores(self, query: str, view: View) -> FloatArray:
        """BM25 score of every unit, `[size]`."""
        if not view.size:
            return np.zeros(0, dtype=np.float32)
        name = "-".join(("bm25", self.language, f"{self.k1:g}", f"{self.b:g}", *self.leave_out))
        retriever, tokenize = view.derived(name, lambda: self._index(view, name))
        indexed = self._indexed(view)
        scores = np.zeros(view.size, dtype=np.float32)
        vocabulary = retriever.vocab_dict
        tokens = [token for token in tokenize([query])[0] if token in vocabulary]
        if tokens:
            scores[indexed] = retriever.get_scores(tokens)
        return scores

    def _indexed(self, view: View) -> IntArray:
        """Positions of the units that are indexed; one at least, since an index needs something."""
        names = list(view.kind_names)
        kept = np.flatnonzero(~np.isin(view.kinds, [names.index(kind) for kind in self.leave_out]))
        return np.asarray(kept if len(kept) else [0], dtype=np.int64)

    def _index(self, view: View, name: str) -> tuple[Any, Any]:
        import bm25s

        tokenize = _tokenizer(self.language)
        stored = view.directory / name if view.directory else None
        if stored is not None and stored.is_dir():
            with suppress(OSError, ValueError, EOFError, KeyError):  # damaged, or tidied away by a writer: made again
                return bm25s.BM25.load(str(stored), mmap=True), tokenize
        texts = [unit.index_text for unit in view.units(self._indexed(view))]
        retriever = bm25s.BM25(k1=self.k1, b=self.b)
        # A pool without a single word still needs a vocabulary.
        retriever.index([tokens or [""] for tokens in tokenize(texts)], show_progress=False)
        if stored is not None:
            _save(retriever, stored)
        return retriever, tokenize


def _tokenizer(language: str) -> Any:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer(language)

    def tokenize(texts: list[str]) -> list[list[str]]:
        tokens: list[list[str]] = bm25s.tokenize(
            texts, stopwords=language, stemmer=stemmer, return_ids=False, show_progress=False
        )
        return tokens

    return tokenize


def _save(retriever: Any, place: Path) -> None:
    """Keep the inverted index for the next process. A folder that cannot be written costs time only."""
    partial = place.with_name(f"{place.name}.{os.getpid()}.partial")
    try:
        partial.mkdir()  # fails when a writer has tidied this generation away
        retriever.save(str(partial), show_progress=False)
        shutil.rmtree(place, ignore_errors=True)
        partial.rename(place)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
