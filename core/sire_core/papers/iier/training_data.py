"""Training data of chain scorers: decisions along shortest paths of evidence, and the settings (IIER, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from sire_core.extend import ConfigurationError

if TYPE_CHECKING:
    from sire_core.extend import BoolArray, FloatArray, IntArray

LOSSES = ("listwise", "bce")
"""`listwise`: softmax cross-entropy over the candidates of a decision, its right ones sharing the mass. `bce`: every
candidate alone."""

LABELS = ("all_shortest", "one_path")
"""`one_path` (the paper): the next node of the extracted path is right, every other one wrong, even other evidence.
`all_shortest`: every candidate is right that is one hop nearer to the target, and so is other evidence."""
UNREACHABLE = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Decision:
    """A chain that has to go on, and where to."""

    chain: tuple[int, ...]  # nodes so far, the first a passage of evidence
    target: int  # the passage of evidence that the path leads to
    hops: int  # from the chain's last node to the target, 1 or more
    candidates: IntArray  # neighbours of the last node that are not in the chain, ascending, `[c]`
    positive: BoolArray  # which of them are right, `[c]`; at least one


@dataclass(frozen=True, slots=True)
class PathLabels:
    """Decisions of one question."""

    decisions: tuple[Decision, ...]  # in the order of the pairs of evidence, then along the path
    unreachable: int  # ordered pairs of evidence without a path within the limit


def hops_to(indptr: IntArray, neighbors: IntArray, targets: Sequence[int], limit: int | None = None) -> IntArray:
    """Hops from all nodes to some targets in an undirected graph in compressed sparse rows, int32 `[targets, n]`."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    graph = csr_matrix((np.ones(len(neighbors)), neighbors, indptr), shape=(len(indptr) - 1, len(indptr) - 1))
    hops = dijkstra(graph, unweighted=True, indices=list(targets), limit=limit or np.inf)
    return np.where(np.isfinite(hops), hops, UNREACHABLE).astype(np.int32)


def shortest_path(indptr: IntArray, neighbors: IntArray, hops: IntArray, start: int) -> tuple[int, ...]:
    """Shortest path to the target of `hops`; of several the one with the smallest node numbers."""
    path = [start]
    while hops[path[-1]]:
        around = neighbors[indptr[path[-1]] : indptr[path[-1] + 1]]
        path.append(int(around[hops[around] == hops[path[-1]] - 1].min()))
    return tuple(path)


def path_labels(
    indptr: IntArray,
    neighbors: IntArray,
    evidence: Sequence[int],
    labels: str = "all_shortest",
    *,
    max_hops: int | None = None,
) -> PathLabels:
    """Decisions along a shortest path between all ordered pairs of evidence (oracle I5)."""
    wanted = list(dict.fromkeys(evidence))
    if len(wanted) < 2:
        return PathLabels((), 0)
    distances = dict(zip(wanted, hops_to(indptr, neighbors, wanted, max_hops), strict=True))
    decisions: list[Decision] = []
    unreachable = 0
    for start, target in permutations(wanted, 2):
        hops = distances[target]
        if hops[start] == UNREACHABLE:
            unreachable += 1
        else:
            path = shortest_path(indptr, neighbors, hops, start)
            decisions += _along(path, indptr, neighbors, hops, wanted, labels)
    return PathLabels(tuple(decisions), unreachable)


def _along(
    path: Sequence[int], indptr: IntArray, neighbors: IntArray, hops: IntArray, evidence: Sequence[int], labels: str
) -> Iterator[Decision]:
    for step in range(1, len(path)):
        chain, last, following = tuple(path[:step]), path[step - 1], path[step]
        around = neighbors[indptr[last] : indptr[last + 1]]
        candidates = around[~np.isin(around, chain)]
        positive = step_labels(candidates, hops, int(hops[last]), evidence, following if labels == "one_path" else None)
        if not positive.all():
            yield Decision(chain, path[-1], int(hops[last]), candidates, positive)


def step_labels(
    candidates: IntArray, hops: IntArray, here: int, evidence: Sequence[int], following: int | None
) -> BoolArray:
    """Label candidates as correct: `following` if given, else those one hop nearer than `here`, and evidence."""
    if following is not None:
        return np.asarray(candidates == following)
    return np.asarray((hops[candidates] == here - 1) | np.isin(candidates, evidence))


@dataclass(frozen=True, slots=True)
class TextStep:
    """A decision as texts, for the encoder."""

    question: str
    path: str  # concatenated passages of the chain
    candidates: tuple[str, ...]  # candidates, `c` of them
    edges: FloatArray  # weights of the edges to the candidates, float32 `[c, 3]`, see `graph.FEATURES`
    positive: BoolArray  # which candidates are correct, `[c]`


@dataclass(frozen=True, slots=True)
class Examples:
    """Candidates of decisions as feature rows, for the light scorer."""

    pair: FloatArray  # `pair_features`, `[c, p]`
    edge: FloatArray  # `edge_features`, `[c, e]`
    positive: BoolArray  # whether a candidate is correct, `[c]`
    owners: IntArray  # decision of every row, ascending from 0, `[c]`
    unreachable: int  # number of pairs of evidence without a path


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """The paper's scorer: one text encoder for question, path and passage, trained with the MLPs over its vectors.

    Raises:
        ConfigurationError: A value makes no sense.
    """

    folder: str  # of transformers or sentence-transformers, or a name (the paper has roberta-base)
    tokens: int = 512  # longest text; a path keeps its last tokens
    candidates: int = 32  # candidates of a step at most that are learned from
    rate: float = 2e-5  # learning rate of the encoder; that of the MLPs is the configuration's

    def __post_init__(self) -> None:
        if not self.folder or self.tokens < 8 or self.candidates < 2 or self.rate <= 0:
            raise ConfigurationError(
                "An encoder has a name or a folder, at least 8 tokens and 2 candidates, and a positive rate."
            )


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """Settings of the training of a scorer.

    Raises:
        ConfigurationError: A value makes no sense.
    """

    labels: str = "all_shortest"  # `all_shortest`, or `one_path` as in the paper
    loss: str = "listwise"  # `listwise` or `bce`
    max_hops: int | None = 2  # of a pair that teaches, by cross-validation; None for all, as in the paper
    max_length: int = 5  # passages of a chain at most, when the match rate is measured
    validation: float = 0.2  # share of the questions whose match rate decides when to stop
    epochs: int = 40  # passes over the decisions at most
    patience: int = 10  # passes without a better match rate after which training stops
    batch: int = 64  # decisions per step
    rate: float = 1e-3  # learning rate of AdamW
    hold: float = 1e-3  # weight of the squared distance from the heuristic that training starts as; not of an encoder
    hidden: int = 32  # width of the scoring MLP; that of an encoder's is its own
    seed: int = 0  # of the split, the first weights and the order
    encoder: EncoderConfig | None = None  # of the paper's scorer; None trains the light one over vectors

    def __post_init__(self) -> None:
        for name, choices in (("labels", LABELS), ("loss", LOSSES)):
            if getattr(self, name) not in choices:
                raise ConfigurationError(f"{name} is one of {', '.join(choices)}, not {getattr(self, name)!r}.")
        hops = 1 if self.max_hops is None else self.max_hops
        if min(self.epochs, self.patience, self.batch, self.hidden, hops) < 1 or self.max_length < 2:
            raise ConfigurationError(
                "epochs, patience, batch, hidden and max_hops must be at least 1, max_length at least 2."
            )
        if not 0 < self.validation < 1 or self.rate <= 0 or self.hold < 0 or self.seed < 0:
            raise ConfigurationError("validation lies between 0 and 1, rate is positive, hold and seed at least 0.")
