"""`LateInteraction`: every word of the question finds its best word of a text, as in ColBERT (SiReRAG, Table 6)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.search.ranking import ScoredRanking, best_first
from sire_core.settings import check_settings, setting
from sire_core.types import PathStep

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, Ranking, View

_KEPT = 4_000
"""Units whose token vectors are kept with a snapshot: some 400 MB of half precision at 130 tokens of 384 numbers."""
_BEHIND = 3.0  # What units outside the pool lose: more than late interaction and cosine can differ by


@dataclass(frozen=True, slots=True)
class LateInteraction:
    """Ranks the units nearest by cosine again by the similarity of their tokens with the question's.

    Needs an embedder that gives token vectors (`st:...`); a model trained for late interaction does best. The token
    vectors of a unit are made when it first comes into a pool, and kept.

    Attributes:
        pool: Units that are ranked again; those behind keep their order by cosine.
    """

    pool: int = setting(100, low=1)

    def __post_init__(self) -> None:
        check_settings(self)

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:
        """Rank the units that pass the filter."""
        if not view.size:
            return ScoredRanking(np.zeros(0, dtype=np.float32), None, lambda _: ())
        question = await view.embed_query(query)
        allowed = view.allowed(where)
        cosines = await view.cosines(query, question, where)
        open_cosines = cosines if allowed is None else np.where(allowed, cosines, -np.inf).astype(np.float32)
        head = best_first(open_cosines, max(self.pool, n))
        scores = cosines - _BEHIND
        if len(head):
            question_tokens = (await view.embed_tokens([query], "query"))[0]
            scores[head] = [max_similarity(question_tokens, text) for text in await _tokens(head.tolist(), view)]

        def explain(position: int) -> tuple[PathStep, ...]:
            kind = view.kind_names[view.kinds[position]]
            words = f"words {scores[position]:.3f}, " if scores[position] > 1 - _BEHIND else ""
            note = f"{words}cosine {cosines[position]:.3f} with the question"
            return (PathStep(f"vector:{kind}", (view.ids[position].decode(),), note),)

        return ScoredRanking(scores, allowed, explain)


def max_similarity(question: FloatArray, text: NDArray[np.floating]) -> float:
    """Mean over the question's tokens `[q, d]` of the cosine with the most similar token of the text `[t, d]` (MaxSim).

    All vectors have unit length.
    """
    if not len(question) or not len(text):
        return -1.0
    return float((question @ text.T.astype(np.float32)).max(axis=1).mean())


async def _tokens(positions: Sequence[int], view: View) -> list[NDArray[np.float16]]:
    """Token vectors of units, in half precision; those used last are kept."""
    kept: OrderedDict[int, NDArray[np.float16]] = view.derived("token vectors", OrderedDict)
    missing = [position for position in positions if position not in kept]
    made: dict[int, NDArray[np.float16]] = {}
    if missing:
        texts = [unit.index_text for unit in view.units(missing)]
        vectors = await view.embed_tokens(texts, "document")
        made = {position: ordered.astype(np.float16) for position, ordered in zip(missing, vectors, strict=True)}
    ordered = []
    for position in positions:
        # Another query may drop what this one found there a moment ago.
        vectors_of = made.get(position)
        if vectors_of is None:
            vectors_of = kept.get(position)
        if vectors_of is None:
            unit = view.units([position])[0]
            vectors_of = (await view.embed_tokens([unit.index_text], "document"))[0].astype(np.float16)
        ordered.append(vectors_of)
    for position, vectors_of in zip(positions, ordered, strict=True):
        kept.pop(position, None)  # what is there already moves to the end
        kept[position] = vectors_of
    while len(kept) > _KEPT:
        kept.popitem(last=False)
    return ordered
