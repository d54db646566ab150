"""From labels to rows of features: what a scorer is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import CorpusError
from sire_core.recipes.iier.chain_steps import TextStep
from sire_core.recipes.iier.graph import ChainGraph
from sire_core.recipes.iier.keywords import MOST_KEYWORDS, KeywordFinder
from sire_core.recipes.iier.labels import GoldNodes, path_labels
from sire_core.recipes.iier.neural_scorer import edge_features, pair_features, title_keywords
from sire_core.recipes.iier.node_cosines import NodeCosines
from sire_core.recipes.iier.walk import ChainQuestion, find_seeds, frontier, walk_chains
from sire_core.search.similarities import KnownSimilarities

if TYPE_CHECKING:
    from sire_core.corpus.benchmarks import Question
    from sire_core.protocols import BoolArray, FloatArray, IntArray, View
    from sire_core.recipes.iier.evidence_chains import EvidenceChains
    from sire_core.recipes.iier.labels import Decision
    from sire_core.recipes.iier.scorers import ChainScorer
    from sire_core.search.view import PoolView

__all__ = [
    "Examples",
    "KnownQuestion",
    "known_questions",
    "make_examples",
    "match_rate",
    "text_steps",
    "without_shared_evidence",
]


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
        view: The pool; it holds the documents. Of a document in several passages the one counts that the data set
            names, otherwise the one most similar to the question.
        questions: From a data set.
        ranker: Its settings of seeds are used.
    """
    graph = ChainGraph.of(view)
    finder = KeywordFinder.of(view, graph, None, strict=ranker.seed_match == "strict")
    gold = GoldNodes.of(view, graph, view.pool)
    found = []
    for question in questions:
        if not question.supporting:
            continue
        vector = await view.embed_query(question.question)
        cosines = NodeCosines(KnownSimilarities(graph.vectors @ vector))
        asked = finder.keywords(question.question)[:MOST_KEYWORDS]
        seeds = find_seeds(asked, finder, cosines, None, ranker.fallback_seeds, ranker.similar_seeds)
        evidence = [max(group, key=lambda node: (cosines[node], -node)) for group in gold.groups(question) if group]
        known = ChainQuestion(question.question, vector, cosines, seeds.asked, seeds.coverage)
        found.append(KnownQuestion(known, seeds.nodes, tuple(dict.fromkeys(evidence))))
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


@dataclass(frozen=True, slots=True)
class Examples:
    """Candidates of many decisions, one row each.

    Attributes:
        pair: Features, `[c, p]`; see `pair_features`.
        edge: Features, `[c, e]`; see `edge_features`.
        positive: Whether a candidate is right, `[c]`.
        owners: Decision of every row, ascending from 0, `[c]`.
        unreachable: Pairs of evidence that gave none.
    """

    pair: FloatArray
    edge: FloatArray
    positive: BoolArray
    owners: IntArray
    unreachable: int

    @property
    def decisions(self) -> int:
        """Number of decisions."""
        return int(self.owners[-1]) + 1


def make_examples(view: View, questions: Sequence[KnownQuestion], labels: str, max_hops: int | None) -> Examples:
    """Label the shortest paths of questions and describe every candidate on them as the walk would.

    Args:
        view: The pool.
        questions: To learn from.
        labels: See `labels.LABELS`.
        max_hops: See `path_labels`.

    Raises:
        CorpusError: No question has two passages of evidence with a path between them.
    """
    graph = ChainGraph.of(view)
    titles = title_keywords(graph, view)
    decisions, unreachable = _labelled(graph, questions, labels, max_hops)
    parts = [_rows(graph, titles, known, decision) for known, decision in decisions]
    pairs, edges, positives = zip(*parts, strict=True)
    return Examples(
        np.concatenate(pairs),
        np.concatenate(edges),
        np.concatenate(positives),
        np.repeat(np.arange(len(parts)), [len(right) for right in positives]),
        unreachable,
    )


def text_steps(
    view: View,
    questions: Sequence[KnownQuestion],
    labels: str,
    max_hops: int | None,
    most: int,
    rng: np.random.Generator,
) -> tuple[tuple[TextStep, ...], int]:
    """Label the shortest paths of questions, as `make_examples` does, for an encoder.

    Args:
        view: The pool.
        questions: To learn from.
        labels: See `labels.LABELS`.
        max_hops: See `path_labels`.
        most: Candidates of a step at most: the right ones, of the others half by similarity to the question, half by
            chance.
        rng: Of that chance.

    Returns:
        The steps, and how many pairs of evidence gave none.

    Raises:
        CorpusError: See `make_examples`.
    """
    graph = ChainGraph.of(view)
    decisions, unreachable = _labelled(graph, questions, labels, max_hops)

    def texts(nodes: Sequence[int] | IntArray) -> tuple[str, ...]:
        return tuple(unit.index_text for unit in view.units(graph.positions[np.asarray(nodes)]))

    steps = []
    for known, decision in decisions:
        wrong = np.flatnonzero(~decision.positive)
        near = wrong[np.argsort(-known.question.cosines[decision.candidates[wrong]], kind="stable")]
        room = max(1, most - int(decision.positive.sum()))
        hard, rest = near[: (room + 1) // 2], near[(room + 1) // 2 :]
        drawn = rng.permutation(rest)[: room - len(hard)]
        kept = np.sort(np.concatenate((np.flatnonzero(decision.positive), hard, drawn)))
        chosen = decision.candidates[kept]
        edges = np.stack([graph.edge(decision.chain[-1], node) for node in chosen.tolist()])
        path = "\n".join(texts(decision.chain))
        steps.append(TextStep(known.question.query, path, texts(chosen), edges, decision.positive[kept]))
    return tuple(steps), unreachable


def _labelled(
    graph: ChainGraph, questions: Sequence[KnownQuestion], labels: str, max_hops: int | None
) -> tuple[list[tuple[KnownQuestion, Decision]], int]:
    """Every decision with its question, and how many pairs of evidence gave none.

    Raises:
        CorpusError: There is no decision.
    """
    found: list[tuple[KnownQuestion, Decision]] = []
    unreachable = 0
    for known in questions:
        paths = path_labels(graph.indptr, graph.neighbors, known.evidence, labels, max_hops=max_hops)
        unreachable += paths.unreachable
        found += [(known, decision) for decision in paths.decisions]
    if not found:
        raise CorpusError(
            "There is nothing to learn from: no question has two gold passages ('supporting') that the interaction "
            "graph joins within --max-hops. Give questions with two or more, a graph with more edges (a larger n_sim), "
            "or more hops."
        )
    return found, unreachable


def _rows(
    graph: ChainGraph, titles: IntArray, known: KnownQuestion, decision: Decision
) -> tuple[FloatArray, FloatArray, BoolArray]:
    state, _ = frontier(graph, known.question, np.array([decision.chain], dtype=np.int64))
    return pair_features(state, graph), edge_features(state, graph, titles), decision.positive
