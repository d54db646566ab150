"""Evidence match rate: how much of the gold evidence evidence chains pass through (IIER figure 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet
    from sire_core.index import Index
    from sire_core.storage.pool import Pool

__all__ = ["evidence_match"]


async def evidence_match(index: Index, dataset: DataSet) -> float | None:
    """Share of the gold passages that stand on some chain of their question, averaged over the questions.

    Args:
        index: With a recipe that ranks by `EvidenceChains`.
        dataset: Questions; those without gold passages are not asked.

    Returns:
        0..100; None when the recipe has no chains, or no question has gold passages.
    """
    from sire_core.search.chains.evidence_chains import EvidenceChains

    snapshot = await index.asnapshot()
    ranker, view = snapshot.recipe.ranker, snapshot.view
    asked = [question for question in dataset.questions if question.supporting]
    if not isinstance(ranker, EvidenceChains) or not asked:
        return None
    document = view.derived("documents of units", lambda: _documents(view.pool))
    shares = []
    for question in asked:
        chains = await ranker.chains(question.question, view)
        found = {doc for chain in chains for chunk in chain.chunk_ids for doc in document[chunk]}
        shares.append(len(found.intersection(question.supporting)) / len(question.supporting))
    return 100.0 * sum(shares) / len(shares)


def _documents(pool: Pool) -> Mapping[str, frozenset[str]]:
    """Documents of every unit by its id."""
    names = pool.document_ids()
    numbers = pool.chunk_documents[pool.indices].tolist()
    bounds = pool.indptr.tolist()
    return {
        found.decode(): frozenset(names[number] for number in numbers[bounds[i] : bounds[i + 1]])
        for i, found in enumerate(pool.ids)
    }
