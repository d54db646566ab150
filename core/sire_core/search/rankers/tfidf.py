"""`TfIdf`: the cosine of word counts weighted by rarity, through scikit-learn (the baseline of IIER's table 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.search.ranking import ScoredRanking
from sire_core.types import PathStep

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import Ranking, View

__all__ = ["TfIdf"]


@dataclass(frozen=True, slots=True)
class TfIdf:
    """Ranks every unit by the cosine of TF-IDF vectors of its text and the question. Words are kept as written."""

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter. Units that share no word with the question come last, by position."""
        import asyncio

        if not view.size:
            return ScoredRanking(np.zeros(0, dtype=np.float32), None, lambda _: ())
        words, rows = await asyncio.to_thread(view.derived, "tf-idf", lambda: _index(view))
        scores = np.asarray((rows @ words.transform([query]).T).todense(), dtype=np.float32)[:, 0]

        def explain(position: int) -> tuple[PathStep, ...]:
            kind = view.kind_names[view.kinds[position]]
            return (PathStep(f"words:{kind}", (view.ids[position].decode(),), f"TF-IDF {scores[position]:.3f}"),)

        return ScoredRanking(scores, view.allowed(where), explain)


def _index(view: View) -> tuple[Any, Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(token_pattern=r"\w+")  # noqa: S106 - what a word is
    texts = [unit.index_text for unit in view.units(np.arange(view.size))]
    # A pool without a single word still needs a vocabulary.
    return words, words.fit_transform([*texts, "x"])[:-1]
