"""Reports without a model: the central entities of a cluster and the sentences that join them (ALGORITHMS 6.6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.algorithms.text import count_tokens, normalize_answer

if TYPE_CHECKING:
    from sire_core.organize.entity_network import EntityNetwork, Statement
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
    chosen = strongest(node.weights, [network.statements[number] for number in candidates], max_tokens)
    picked = [candidates[at] for at in chosen]
    quoted = [network.statements[number] for number in picked]
    passages = tuple(dict.fromkeys(statement.passage for statement in quoted))
    if len(passages) < 2:
        return None
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


def strongest(weights: Mapping[int, float], statements: Sequence[Statement], max_tokens: int) -> list[int]:
    """Places of the statements that say most about weighted vertices, in the order of choice, within a length.

    Args:
        weights: Of the vertices that matter.
        statements: To choose from; equal sentences count once.
        max_tokens: Sum of the lengths; the first choice is made even when it is longer.
    """
    lengths = [count_tokens(statement.text) for statement in statements]
    named = [[vertex for vertex in statement.names if vertex in weights] for statement in statements]
    said: set[str] = set()
    covered: set[int] = set()
    quoted: set[int] = set()
    chosen: list[int] = []
    left = max_tokens
    pending = list(range(len(statements)))

    def gain(at: int) -> float:
        worth = sum((_SEEN_ENTITY if vertex in covered else 1.0) * weights[vertex] for vertex in named[at])
        return worth * (_SEEN_PASSAGE if statements[at].passage in quoted else 1.0)

    while pending:
        if chosen:
            pending = [at for at in pending if lengths[at] <= left]
        if not pending:
            break
        best = max(pending, key=lambda at: (round(gain(at), 9), -at))
        pending.remove(best)
        words = normalize_answer(statements[best].text)
        if words in said:
            continue
        said.add(words)
        chosen.append(best)
        covered.update(named[best])
        quoted.add(statements[best].passage)
        left -= lengths[best]
    return chosen
