"""`Picture`: nodes and links, and their layout; independent of indexes and of rendering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from sire_core.text import pluralize

MOST_NODES = 60
"""Maximum number of nodes of a readable picture."""
_SWEEPS = 3
_KIND_NAMES = {
    "entity": "name",
    "sim_summary": "summary of similar passages",
    "rel_summary": "summary of related passages",
    "cross_summary": "summary of both trees",
}
WAYPOINT = "waypoint"
"""Kind of what a link passes between two nodes."""


def kind_name(kind: str) -> str:
    """Display name of a kind of unit."""
    return _KIND_NAMES.get(kind) or pluralize.kind_name(kind)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a picture.

    Attributes:
        id: Its id: of a unit, of an entity, or a word of ours for the question.
        kind: `question`, `entity` or a unit's kind.
        label: Title or name.
        text: What it says, in short.
        rank: Rank among the hits, from 1; 0 for other nodes.
        name_kind: What an entity is, as far as it is known: a key of `NAME_KINDS`; empty for other nodes.
    """

    id: str
    kind: str
    label: str
    text: str = ""
    rank: int = 0
    name_kind: str = ""


def node_class(node: Node) -> str:
    """Classes of a node in style sheets."""
    kind = node.kind if node.kind in ("question", "entity", "chunk") else "derived"
    return f"{kind}{f' is-{node.name_kind}' if node.name_kind else ''}{' hit' if node.rank else ''}"


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two nodes.

    Attributes:
        source: Id of a node.
        target: Id of another one.
        label: What is written on it; empty for the reason.
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
        not_drawn: How many nodes there was no room for, by the id of the node whose neighbours they are; an empty id
            where they are neighbours of none.
    """

    title: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    not_drawn: tuple[tuple[str, int], ...] = ()

    @property
    def left_out(self) -> int:
        """Number of nodes that are not drawn because there are too many."""
        return sum(number for _, number in self.not_drawn)


@dataclass(slots=True)
class PictureBuilder:
    """Collects nodes and links, each once, up to a bound.

    Attributes:
        most: How many nodes at most; what comes later is counted and left out, with its links.
    """

    most: int = MOST_NODES
    _nodes: dict[str, Node] = field(default_factory=dict)
    _links: dict[tuple[str, str], Link] = field(default_factory=dict)
    _left_out: dict[str, str] = field(default_factory=dict)
    _left_out_before: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, picture: Picture, expanded: str = "") -> PictureBuilder:
        """A builder that goes on with a picture, with the neighbours of one of its nodes."""
        builder = cls()
        builder._nodes = {node.id: node for node in picture.nodes}
        builder._links = {(link.source, link.target): link for link in picture.links}
        builder._left_out_before = {name: number for name, number in picture.not_drawn if name != expanded}
        return builder

    def first(self, ids: Sequence[str], n: int, neighbour: str) -> list[str]:
        """The first `n` neighbours of a node and those that are there already; the others count as left out."""
        drawn = [name for name in ids if name in self._nodes]
        new = list(dict.fromkeys(name for name in ids if name not in self._nodes))
        self._left_out |= dict.fromkeys(new[n:], neighbour)
        return drawn + new[:n]

    def add(self, node: Node, neighbour: str = "") -> bool:
        """Add a node beside another and say whether it is drawn; a node that is there already takes its rank."""
        before = self._nodes.get(node.id)
        if before is not None:
            self._nodes[node.id] = replace(before, rank=before.rank or node.rank)
            return True
        if len(self._nodes) >= self.most:
            self._left_out[node.id] = neighbour
            return False
        self._nodes[node.id] = node
        return True

    def link(self, link: Link) -> None:
        """Add a link between two nodes, unless they are linked in either direction."""
        is_drawn = link.source in self._nodes and link.target in self._nodes and link.source != link.target
        if is_drawn and (link.target, link.source) not in self._links:
            self._links.setdefault((link.source, link.target), link)

    def leads_to(self, target: str) -> bool:
        """True if some link leads to a node."""
        return any(end == target for _, end in self._links)

    def picture(self, title: str) -> Picture:
        """The finished picture."""
        left_out = Counter(self._left_out_before)
        left_out.update(neighbour for name, neighbour in self._left_out.items() if name not in self._nodes)
        return Picture(title, tuple(self._nodes.values()), tuple(self._links.values()), tuple(left_out.items()))


@dataclass(frozen=True, slots=True)
class Branch:
    """A node of a picture drawn as a tree.

    Attributes:
        node: The node.
        link: What leads to it; None for the first node, and for those that nothing leads to.
        below: Nodes that it leads to, each below the last node of the longest way to it.
        others: Links to nodes that are drawn below others, with these.
    """

    node: Node
    link: Link | None
    below: tuple[Branch, ...]
    others: tuple[tuple[Link, Node], ...]


def branches(picture: Picture) -> list[Branch]:
    """A picture as trees, the one of the first node first; each node once."""
    following: dict[str, list[str]] = {}
    for link in picture.links:
        following.setdefault(link.source, []).append(link.target)
    distance = _distances(picture.nodes[0].id, following) if picture.nodes else {}
    nodes = {node.id: node for node in picture.nodes}
    above: dict[str, Link] = {}
    for link in picture.links:
        if link.target in distance and distance[link.target] == distance.get(link.source, -2) + 1:
            above.setdefault(link.target, link)

    def branch(name: str) -> Branch:
        links = [link for link in picture.links if link.source == name]
        below = tuple(branch(link.target) for link in links if above.get(link.target) is link)
        others = tuple((link, nodes[link.target]) for link in links if above.get(link.target) is not link)
        return Branch(nodes[name], above.get(name), below, others)

    return [branch(name) for name in nodes if name not in above]


def layout(picture: Picture) -> tuple[list[list[Node]], list[tuple[Link, list[str]]]]:
    """Nodes and waypoints of links in layers from left to right, and the ids that every link passes.

    Nodes are in every second layer. A link has a waypoint in every layer between its ends, so that it is drawn behind
    no node, and the last of these holds its text. A link within a layer has one in the next layer.
    """
    if not picture.nodes:
        return [], []
    following: dict[str, list[str]] = {}
    for link in picture.links:
        following.setdefault(link.source, []).append(link.target)
    distance = _distances(picture.nodes[0].id, following)
    places = {node.id: 2 * distance.get(node.id, 1) for node in picture.nodes}
    layers: list[list[Node]] = [[] for _ in range(max(places.values()) + 2)]
    for node in picture.nodes:
        layers[places[node.id]].append(node)
    routes = []
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    for number, link in enumerate(picture.links):
        first, last = sorted((link.source, link.target), key=places.__getitem__)
        stops = range(places[first] + 1, max(places[last], places[first] + 2))
        labels = {stops[-1]: link.label or link.reason}
        waypoints = [Node(f"waypoint {number} {stop}", WAYPOINT, labels.get(stop, "")) for stop in stops]
        for stop, waypoint in zip(stops, waypoints, strict=True):
            layers[stop].append(waypoint)
        chain = [first, *(waypoint.id for waypoint in waypoints), last]
        routes.append((link, chain if first == link.source else chain[::-1]))
        for left, right in pairwise(chain):
            after.setdefault(left, []).append(right)
            before.setdefault(right, []).append(left)
    for _ in range(_SWEEPS):
        for neighbour_layer, layer in pairwise(layers):
            _order(layer, neighbour_layer, before)
        for neighbour_layer, layer in pairwise(layers[::-1]):
            _order(layer, neighbour_layer, after)
    return layers, routes


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
        linked_positions = [positions[other] for other in linked.get(node.id, ()) if other in positions]
        means[node.id] = sum(linked_positions) / len(linked_positions) if linked_positions else float(position)
    column.sort(key=lambda node: (means[node.id], node.rank or len(positions) + MOST_NODES))
