"""Metrics of a ranking against gold passages. Every one is in 0..1; reports multiply by 100.

A ranking is a list of distinct passage ids. Hits become one in two ways: `provenance_ranking` credits a synthetic
unit with the passages it was made from, `literal_ranking` credits one made from several documents with nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import log2
from typing import TYPE_CHECKING

from sire_core.types import Hit, UnitKind

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet
    from sire_core.index import Index

__all__ = [
    "all_at_k",
    "evidence_match",
    "literal_ranking",
    "ndcg_at_k",
    "provenance_ranking",
    "recall_at_k",
    "reciprocal_rank",
]


def distinct(items: Iterable[str]) -> list[str]:
    """Each item once, at its first place."""
    return list(dict.fromkeys(items))


def provenance_ranking(hits: Iterable[Hit]) -> list[str]:
    """Expand every hit to its document ids in order, each id once."""
    return distinct(doc_id for hit in hits for doc_id in hit.doc_ids)


def literal_ranking(hits: Iterable[Hit]) -> list[str | None]:
    """Document ids of the hits that say what one document says; a synthetic hit keeps its slot as None.

    IndexRAG's recall (section 5.3.2): passages and the knowledge units of documents count for their documents; bridging
    facts, summaries and whatever else was written about several documents take slots and count for nothing. A second
    chunk of a document that is already listed takes no slot, as in `provenance_ranking`: on a pool of chunks
    the two rankings are the same.
    """
    slots: list[str | None] = []
    seen: set[str] = set()
    for hit in hits:
        if hit.unit.kind not in (UnitKind.CHUNK, UnitKind.AKU):
            slots.append(None)
            continue
        fresh = [doc_id for doc_id in distinct(hit.doc_ids) if doc_id not in seen]
        slots.extend(fresh)
        seen.update(fresh)
    return slots


def recall_at_k(ranking: Sequence[str | None], gold: Collection[str], k: int) -> float:
    """R@k: share of the gold passages among the first `k` distinct passages.

    Raises:
        ValueError: There are no gold passages; such questions must be left out of the mean.
    """
    wanted = _wanted(gold)
    return len(wanted.intersection(_first(ranking, k))) / len(wanted)


def all_at_k(ranking: Sequence[str | None], gold: Collection[str], k: int) -> float:
    """1 when every gold passage is among the first `k` distinct passages."""
    return float(_wanted(gold).issubset(_first(ranking, k)))


def reciprocal_rank(ranking: Sequence[str | None], gold: Collection[str]) -> float:
    """1 / rank of the first gold passage, 0 when there is none; its mean over questions is MRR."""
    wanted = _wanted(gold)
    for rank, item in enumerate(_first(ranking, len(ranking)), start=1):
        if item in wanted:
            return 1.0 / rank
    return 0.0


def ndcg_at_k(ranking: Sequence[str | None], gold: Collection[str], k: int) -> float:
    """nDCG@k with equal gains: discounted gain of the gold passages among the first `k`, over that of a perfect list.

    The discount of rank r is 1 / log2(r + 1), as in trec_eval.
    """
    wanted = _wanted(gold)
    gains = (1.0 / log2(rank + 1) for rank, item in enumerate(_first(ranking, k), start=1) if item in wanted)
    return sum(gains) / sum(1.0 / log2(rank + 1) for rank in range(1, min(len(wanted), k) + 1))


def _wanted(gold: Collection[str]) -> set[str]:
    if not gold:
        raise ValueError("a question without gold passages has no recall; leave it out of the mean")
    return set(gold)


def _first(ranking: Sequence[str | None], k: int) -> list[str | None]:
    """The first `k` slots; a repeated passage takes one slot only, an empty slot (None) counts every time."""
    slots: list[str | None] = []
    seen: set[str] = set()
    for item in ranking:
        if len(slots) == k:
            break
        if item is None:
            slots.append(None)
        elif item not in seen:
            seen.add(item)
            slots.append(item)
    return slots


async def evidence_match(index: Index, dataset: DataSet) -> float | None:
    """Share of the gold passages that stand on some chain of their question, averaged over the questions.

    A document in several passages counts once, by any of them, unless the data set names passages (`GoldNodes`).

    Args:
        index: With a recipe that ranks by `EvidenceChains`.
        dataset: Questions; those without gold passages are not asked.

    Returns:
        0..100; None when the recipe has no chains, or no question has gold passages.
    """
    from sire_core.search.chains.evidence_chains import EvidenceChains
    from sire_core.search.chains.graph import ChainGraph
    from sire_core.search.chains.labels import GoldNodes

    snapshot = await index.asnapshot()
    ranker, view = snapshot.recipe.ranker, snapshot.view
    asked = [question for question in dataset.questions if question.supporting]
    if not isinstance(ranker, EvidenceChains) or not asked:
        return None
    graph = ChainGraph.of(view)
    gold = GoldNodes.of(view, graph, view.pool)
    names = [name.decode() for name in view.ids[graph.positions]]
    shares = []
    for question in asked:
        on_chains = {chunk for chain in await ranker.chains(question.question, view) for chunk in chain.chunk_ids}
        groups = gold.groups(question)
        shares.append(sum(any(names[node] in on_chains for node in group) for group in groups) / len(groups))
    return 100.0 * sum(shares) / len(shares)
