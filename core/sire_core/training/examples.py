"""From labels to rows of features: what a scorer is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import CorpusError
from sire_core.search.chain_features import edge_features, pair_features, title_keywords
from sire_core.search.chain_graph import ChainGraph
from sire_core.search.chain_walk import frontier
from sire_core.training.labels import path_labels

if TYPE_CHECKING:
    from sire_core.protocols import BoolArray, FloatArray, IntArray, View
    from sire_core.training.labels import Decision
    from sire_core.training.questions import KnownQuestion

__all__ = ["Examples", "make_examples"]


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
    parts: list[tuple[FloatArray, FloatArray, BoolArray]] = []
    unreachable = 0
    for known in questions:
        found = path_labels(graph.indptr, graph.neighbors, known.evidence, labels, max_hops=max_hops)
        unreachable += found.unreachable
        parts += [_rows(graph, titles, known, decision) for decision in found.decisions]
    if not parts:
        raise CorpusError(
            "There is nothing to learn from: no question has two gold passages ('supporting') that the interaction "
            "graph joins. Give questions with two or more, or a graph with more edges (a larger n_sim)."
        )
    pairs, edges, positives = zip(*parts, strict=True)
    return Examples(
        np.concatenate(pairs),
        np.concatenate(edges),
        np.concatenate(positives),
        np.repeat(np.arange(len(parts)), [len(right) for right in positives]),
        unreachable,
    )


def _rows(
    graph: ChainGraph, titles: IntArray, known: KnownQuestion, decision: Decision
) -> tuple[FloatArray, FloatArray, BoolArray]:
    state, _ = frontier(graph, known.question, np.array([decision.chain], dtype=np.int64))
    return pair_features(state, graph), edge_features(state, graph, titles), decision.positive
