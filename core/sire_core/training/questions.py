"""Questions whose evidence is known, as the walk sees them; and what the walk finds of it (ALGORITHMS 3.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.search.chain_graph import ChainGraph
from sire_core.search.chain_keywords import MOST_KEYWORDS, KeywordFinder
from sire_core.search.chain_seeds import find_seeds
from sire_core.search.chain_walk import ChainQuestion, walk_chains

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import Question
    from sire_core.search.chain_scorers import ChainScorer
    from sire_core.search.evidence_chains import EvidenceChains
    from sire_core.search.view import PoolView

__all__ = ["KnownQuestion", "known_questions", "match_rate", "without_shared_evidence"]


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """A question with its evidence.

    Attributes:
        question: What the walk reads.
        seeds: Nodes where its chains start.
        evidence: Nodes of its gold passages, each once.
    """

    question: ChainQuestion
    seeds: Sequence[int]
    evidence: tuple[int, ...]


async def known_questions(
    view: PoolView, questions: Sequence[Question], ranker: EvidenceChains
) -> tuple[KnownQuestion, ...]:
    """Prepare the questions that name gold documents; keywords are found by rules, as no model can be trained with.

    Args:
        view: The pool; it holds the documents. Of a document in several passages the one most similar to the question
            counts.
        questions: From a data set.
        ranker: Its settings of seeds are used.
    """
    graph = ChainGraph.of(view)
    finder = KeywordFinder.of(view, graph, None, strict=ranker.seed_match == "strict")
    nodes = _nodes_of_documents(view, graph)
    found = []
    for question in questions:
        if not question.supporting:
            continue
        vector = await view.embed_query(question.question)
        cosines = graph.vectors @ vector
        asked = finder.keywords(question.question)[:MOST_KEYWORDS]
        seeds = find_seeds(asked, finder, cosines, None, ranker.fallback_seeds, ranker.similar_seeds)
        gold = [max(nodes[name], key=lambda node: (cosines[node], -node)) for name in question.supporting]
        known = ChainQuestion(question.question, vector, cosines, seeds.asked, seeds.coverage)
        found.append(KnownQuestion(known, seeds.nodes, tuple(dict.fromkeys(gold))))
    return tuple(found)


async def match_rate(
    view: PoolView, questions: Sequence[KnownQuestion], scorer: ChainScorer, max_length: int = 5
) -> float:
    """Share of the gold passages that are on some chain, a mean over questions, 0-100; 0 without questions."""
    graph = ChainGraph.of(view)
    rates = []
    for known in questions:
        chains = await walk_chains(graph, view, known.question, known.seeds, scorer, max_length)
        on_chains = {node for chain in chains for node in chain.nodes}
        rates.append(sum(node in on_chains for node in known.evidence) / len(known.evidence))
    return 100 * sum(rates) / len(rates) if rates else 0.0


def without_shared_evidence(
    training: Sequence[KnownQuestion], held_out: Sequence[KnownQuestion]
) -> tuple[KnownQuestion, ...]:
    """The questions of `training` that share no gold passage with a held-out one: no test page is trained on."""
    pages = {node for known in held_out for node in known.evidence}
    return tuple(known for known in training if pages.isdisjoint(known.evidence))


def _nodes_of_documents(view: PoolView, graph: ChainGraph) -> Mapping[str, list[int]]:
    nodes: dict[str, list[int]] = {}
    for node, position in enumerate(graph.positions.tolist()):
        for document in view.pool.unit(position)[1]:
            nodes.setdefault(document, []).append(node)
    return nodes
