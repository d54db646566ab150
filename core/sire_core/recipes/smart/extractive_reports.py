"""Reports without a model: the central entities of a cluster and the sentences that join them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import ranges
from sire_core.algorithms.text import truncate_tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.recipes.smart.entity_network import EntityNetwork, NetworkStatement, Statements
    from sire_core.recipes.smart.nodes import ReportNode

__all__ = ["Report", "central_names", "extract_report", "strongest"]

_CENTRAL = 3
_SEEN_PASSAGE = 0.5
_SEEN_ENTITY = 0.2
_SCALE = 1e9  # gains are compared to so many parts of one: ties must not hang on rounding


@dataclass(frozen=True, slots=True)
class Report:
    """What is said of a cluster of entities.

    Attributes:
        title: Its central entities.
        text: What the reader sees.
        passages: Numbers of the passages whose words it has, most telling first.
        statements: Numbers of the statements it was made of, for the reports above it.
        evidence: Digest of what a model was shown; empty without one.
    """

    title: str
    text: str
    passages: tuple[int, ...]
    statements: tuple[int, ...]
    evidence: str = ""


def extract_report(
    node: ReportNode, candidates: Sequence[int], network: EntityNetwork, max_tokens: int
) -> Report | None:
    """Central entities by weighted degree, then the statements that say most about the cluster, verbatim.

    Statements are chosen one by one: those that name the most central entities not named yet, of passages not quoted
    yet, first. All of it is short, since it stands in a context beside passages. A report speaks of two passages at
    least: where the best sentences are all of one, the best of them and the best of any other passage stand in it.

    Args:
        node: The cluster.
        candidates: Statements of the node and those that the reports below it quote.
        network: Where they come from.
        max_tokens: Length of the sentences; the two of which a report has to be made may be longer together, each is
            cut at this length.

    Returns:
        None when fewer than two passages say anything: a report would only repeat a passage.
    """
    picked = _of_two_passages(node.telling, network.statements, candidates, max_tokens)
    if not picked:
        return None
    passages = tuple(dict.fromkeys(int(network.statements.passages[number]) for number in picked))
    quoted = list(network.read(picked).values())
    title = central_names(node.telling, quoted)
    ordered = sorted(quoted, key=lambda found: found.passage)
    sentences = dict.fromkeys(truncate_tokens(found.text, max_tokens) for found in ordered)
    return Report(title, "\n".join((title, *sentences)), passages, tuple(picked))


def _of_two_passages(
    weights: Mapping[int, float], statements: Statements, candidates: Sequence[int], max_tokens: int
) -> list[int]:
    """The strongest statements, of two passages or more; none where only one passage says anything."""
    picked = strongest(weights, statements, candidates, max_tokens)
    if len(dict.fromkeys(statements.passages[picked].tolist())) != 1:
        return picked
    best = picked[0]
    rows = np.array(candidates, dtype=np.int64)
    others = rows[
        (statements.passages[rows] != statements.passages[best]) & (statements.words[rows] != statements.words[best])
    ]
    fitting = others[statements.tokens[others] + statements.tokens[best] <= max_tokens]
    second = strongest(weights, statements, (fitting if len(fitting) else others).tolist(), 1)
    return [best, *second[:1]] if second else []


def central_names(weights: Mapping[int, float], statements: Iterable[NetworkStatement]) -> str:
    """Names of the members with the largest weights, as the given statements' passages spell them."""
    spelt: dict[int, str] = {}
    for statement in statements:
        for vertex, name in statement.names.items():
            if vertex in weights:
                spelt.setdefault(vertex, name)
    first = sorted(spelt, key=lambda vertex: -weights[vertex])[:_CENTRAL]  # of equals who is named first
    return ", ".join(dict.fromkeys(spelt[vertex] for vertex in first))


def strongest(
    weights: Mapping[int, float], statements: Statements, candidates: Sequence[int], max_tokens: int
) -> list[int]:
    """Numbers of the statements that say most about weighted vertices, in the order of choice, within a length.

    Args:
        weights: Of the vertices that matter.
        statements: All there are.
        candidates: Numbers of those to choose from; equal sentences count once.
        max_tokens: Sum of the lengths; the first choice is made even when it is longer.
    """
    rows = np.array(candidates, dtype=np.int64)
    lengths, words = statements.tokens[rows].tolist(), statements.words[rows].tolist()
    gains = _Gains(weights, statements, rows)
    said: set[int] = set()
    chosen: list[int] = []
    left = max_tokens
    pending = gains.first()
    # What is chosen makes others worth less, never more: the first with an up-to-date gain is the best.
    while pending:
        known, best = heappop(pending)
        if words[best] in said or (chosen and lengths[best] > left):
            continue
        if (now := -gains.of(best)) != known:
            heappush(pending, (now, best))
            continue
        gains.take(best)
        said.add(words[best])
        chosen.append(int(rows[best]))
        left -= lengths[best]
    return chosen


class _Gains:
    """What statements add to those that were taken."""

    def __init__(self, weights: Mapping[int, float], statements: Statements, rows: NDArray[np.int64]) -> None:
        self._weights = weights
        self._sizes = statements.ends[rows + 1] - statements.ends[rows]
        self._vertices = statements.vertices[ranges(statements.ends[rows], self._sizes)]
        self._ends = np.cumsum(self._sizes)
        self._passages = statements.passages[rows]
        self._covered: set[int] = set()
        self._quoted: set[int] = set()

    def first(self) -> list[tuple[float, int]]:
        """Every statement with minus its gain as long as none is taken, the best first: a heap."""
        gains = -np.rint(_sums(self._weights, self._vertices, self._sizes) * _SCALE) / _SCALE
        order = np.argsort(gains, kind="stable")
        return list(zip(gains[order].tolist(), order.tolist(), strict=True))

    def of(self, at: int) -> float:
        """Gain of a statement now."""
        worth = sum((_SEEN_ENTITY if v in self._covered else 1.0) * self._weights[v] for v in self._named(at))
        return round(worth * (_SEEN_PASSAGE if int(self._passages[at]) in self._quoted else 1.0) * _SCALE) / _SCALE

    def take(self, at: int) -> None:
        """Take a statement."""
        self._covered.update(self._named(at))
        self._quoted.add(int(self._passages[at]))

    def _named(self, at: int) -> list[int]:
        found: list[int] = self._vertices[self._ends[at] - self._sizes[at] : self._ends[at]].tolist()
        return [vertex for vertex in found if vertex in self._weights]


def _sums(weights: Mapping[int, float], vertices: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum of the weights of each run of vertices; what has no weight counts nothing."""
    known = np.fromiter(weights, dtype=np.int64, count=len(weights))
    dense = np.zeros(1 + max(int(known.max(initial=-1)), int(vertices.max(initial=-1))))
    dense[known] = np.fromiter(weights.values(), dtype=np.float64, count=len(weights))
    runs = np.repeat(np.arange(len(sizes)), sizes)
    return np.bincount(runs, weights=dense[vertices], minlength=len(sizes)).astype(np.float64)
