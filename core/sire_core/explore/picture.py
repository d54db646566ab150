"""`Picture`: nodes and links, and their layout; independent of indexes and of rendering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

MOST_NODES = 60
"""Maximum number of nodes of a readable picture."""
_SWEEPS = 3


def kind_name(kind: str) -> str:
    """Display name of a kind of unit."""
    return "passage" if kind == "chunk" else kind.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a picture.

    Attributes:
        id: Its id: of a unit, of an entity, or a word of ours for the question.
        kind: `question`, `entity` or a unit's kind.
        label: Title or name.
        text: What it says, in short.
        rank: Rank among the hits, from 1; 0 for other nodes.
    """

    id: str
    kind: str
    label: str
    text: str = ""
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two nodes.

    Attributes:
        source: Id of a node.
        target: Id of another one.
        label: A word or two that are written beside it.
        reason: The whole reason.
    """

    source: str
    target: str
    label: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """Nodes and the links between them.

    Attributes:
        title: What it shows, for those who cannot see it.
        nodes: The first one is where reading starts.
        links: Between them.
        left_out: How many nodes are not drawn because there are too many.
    """

    title: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    left_out: int = 0


@dataclass(slots=True)
class PictureBuilder:
    """Collects nodes and links, each once, up to a bound.

    Attributes:
        most: How many nodes at most; what comes later is counted and left out, with its links.
    """

    most: int = MOST_NODES
    _nodes: dict[str, Node] = field(default_factory=dict)
    _links: dict[tuple[str, str], Link] = field(default_factory=dict)
    _left_out: set[str] = field(default_factory=set)
    _said: set[str] = field(default_factory=set)

    def add(self, node: Node) -> bool:
        """Add a node and say whether it is drawn; a node that is there already takes its rank."""
        before = self._nodes.get(node.id)
        if before is not None:
            self._nodes[node.id] = replace(before, rank=before.rank or node.rank)
            return True
        if len(self._nodes) >= self.most:
            self._left_out.add(node.id)
            return False
        self._nodes[node.id] = node
        return True

    def say(self, node_id: str, text: str) -> None:
        """Set the text of a node, unless it has one."""
        node = self._nodes.get(node_id)
        if node is not None and node_id not in self._said:
            self._said.add(node_id)
            self._nodes[node_id] = replace(node, text=text)

    def link(self, link: Link) -> None:
        """Add a link between two nodes, unless they are linked in either direction."""
        known = link.source in self._nodes and link.target in self._nodes and link.source != link.target
        if known and (link.target, link.source) not in self._links:
            self._links.setdefault((link.source, link.target), link)

    def leads_to(self, target: str) -> bool:
        """Whether some link leads to a node."""
        return any(end == target for _, end in self._links)

    def picture(self, title: str) -> Picture:
        """The finished picture."""
        return Picture(title, tuple(self._nodes.values()), tuple(self._links.values()), len(self._left_out))


def columns(picture: Picture) -> list[list[Node]]:
    """Nodes by the longest distance from the first one, ordered so that few links cross."""
    if not picture.nodes:
        return []
    following: dict[str, list[str]] = {}
    before: dict[str, list[str]] = {}
    for link in picture.links:
        following.setdefault(link.source, []).append(link.target)
        before.setdefault(link.target, []).append(link.source)
    distance = _distances(picture.nodes[0].id, following)
    columns_: list[list[Node]] = [[] for _ in range(max(distance.values(), default=0) + 1)]
    if len(picture.nodes) > len(distance) and len(columns_) == 1:
        columns_.append([])
    for node in picture.nodes:
        columns_[distance.get(node.id, 1)].append(node)
    for _ in range(_SWEEPS):
        for neighbour_column, column in pairwise(columns_):
            _order(column, neighbour_column, before)
        for neighbour_column, column in pairwise(columns_[::-1]):
            _order(column, neighbour_column, following)
    return columns_


def _distances(start: str, following: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Longest distances; links that close a circle are ignored."""
    done: dict[str, None] = {}
    forward: dict[str, list[str]] = {start: []}
    open_ = {start: iter(following.get(start, ()))}
    while open_:
        node = next(reversed(open_))
        target = next(open_[node], None)
        if target is None:
            del open_[node]
            done[node] = None
        elif target not in open_:
            forward[node].append(target)
            if target not in done:
                forward[target] = []
                open_[target] = iter(following.get(target, ()))
    distance = dict.fromkeys(done, 0)
    for node in reversed(done):
        for target in forward[node]:
            distance[target] = max(distance[target], distance[node] + 1)
    return distance


def _order(column: list[Node], neighbour_column: Sequence[Node], linked: Mapping[str, Sequence[str]]) -> None:
    """Sort a column by the mean position of their neighbours in the column beside it."""
    positions = {node.id: position for position, node in enumerate(neighbour_column)}
    means: dict[str, float] = {}
    for position, node in enumerate(column):
        known = [positions[other] for other in linked.get(node.id, ()) if other in positions]
        means[node.id] = sum(known) / len(known) if known else float(position)
    column.sort(key=lambda node: (means[node.id], node.rank or len(positions) + MOST_NODES))
