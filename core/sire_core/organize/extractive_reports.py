"""Reports without a model: the central entities of a cluster and the sentences that join them (ALGORITHMS 6.6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sire_core.organize.entity_network import EntityNetwork, Statement, Statements
    from sire_core.organize.report_nodes import ReportNode

__all__ = ["Report", "central_names", "extract_report", "strongest"]

_CENTRAL = 3
_SEEN_PASSAGE = 0.5
_SEEN_ENTITY = 0.2


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
    yet, first. All of it is short, since it stands in a context beside passages.

    Args:
        node: The cluster.
        candidates: Statements of the node and those that the reports below it quote.
        network: Where they come from.
        max_tokens: Length of the sentences; a first sentence that is longer stands alone.

    Returns:
        None when fewer than two passages say anything: a report would only repeat a passage.
    """
    picked = strongest(node.weights, network.statements, candidates, max_tokens)
    passages = tuple(dict.fromkeys(int(network.statements.passages[number]) for number in picked))
    if len(passages) < 2:
        return None
    quoted = list(network.read(picked).values())
    title = central_names(node.weights, quoted)
    sentences = [statement.text for statement in sorted(quoted, key=lambda found: found.passage)]
    return Report(title, "\n".join((title, *sentences)), passages, tuple(picked))


def central_names(weights: Mapping[int, float], statements: Iterable[Statement]) -> str:
    """Names of the members with the largest weights, as the given statements' passages spell them."""
    spelt: dict[int, str] = {}
    for statement in statements:
        for vertex, name in statement.names.items():
            if vertex in weights:
                spelt.setdefault(vertex, name)
    first = sorted(spelt, key=lambda vertex: (-weights[vertex], vertex))[:_CENTRAL]
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
    named = {at: [vertex for vertex in statements.named(at) if vertex in weights] for at in candidates}
    rows = np.array(candidates, dtype=np.int64)
    lengths, passages, words = (
        dict(zip(candidates, column[rows].tolist(), strict=True))
        for column in (statements.tokens, statements.passages, statements.words)
    )
    said: set[int] = set()
    covered: set[int] = set()
    quoted: set[int] = set()
    chosen: list[int] = []
    left = max_tokens
    pending = list(candidates)

    def gain(at: int) -> float:
        worth = sum((_SEEN_ENTITY if vertex in covered else 1.0) * weights[vertex] for vertex in named[at])
        return round(worth * (_SEEN_PASSAGE if passages[at] in quoted else 1.0), 9)

    while pending:
        if chosen:
            pending = [at for at in pending if lengths[at] <= left]
        if not pending:
            break
        best = max(pending, key=gain)  # of equals the first
        pending.remove(best)
        if words[best] in said:
            continue
        said.add(words[best])
        chosen.append(best)
        covered.update(named[best])
        quoted.add(passages[best])
        left -= lengths[best]
    return chosen
