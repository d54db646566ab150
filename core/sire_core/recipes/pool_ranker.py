"""`PoolRanker`: vectors, BM25, both or late interaction over all units of a pool."""

from __future__ import annotations

from dataclasses import dataclass

from sire_core.protocols import Ranker
from sire_core.settings import check_settings, setting


@dataclass(frozen=True, slots=True)
class PoolRanker:
    """Settings of the rankers that work over any pool of units.

    Attributes:
        ranker: `dense`, `bm25`, `tfidf`, `hybrid` or `late` (late interaction).
        instruction: Text appended to the question for the search, like the answer instruction in SiReRAG's released
            notebooks.

    Raises:
        ConfigurationError: A setting is not allowed.
    """

    ranker: str = setting("dense", choices=("dense", "bm25", "tfidf", "hybrid", "late"))
    instruction: str = setting("", wording=True)

    def __post_init__(self) -> None:
        check_settings(self)

    def make(self) -> Ranker:
        """Build the ranker."""
        from sire_core.search.rankers.hybrid import Hybrid, Instructed
        from sire_core.search.rankers.lexical import Lexical, TfIdf
        from sire_core.search.vectors.flat import Flat

        ranker: Ranker
        dense = Flat(self.instruction if self.ranker == "dense" else "")
        if self.ranker == "dense":
            return dense
        if self.ranker == "late":
            from sire_core.search.rankers.late_interaction import LateInteraction

            ranker = LateInteraction()
        elif self.ranker == "tfidf":
            ranker = TfIdf()
        else:
            ranker = Lexical() if self.ranker == "bm25" else Hybrid((dense, Lexical()))
        return Instructed(ranker, self.instruction) if self.instruction else ranker
