"""The weighted graph between the entities of a corpus, and what its passages state of them (ALGORITHMS 6.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from sire_core.algorithms.text import name_key
from sire_core.organize.knowledge_graph import MENTIONS

if TYPE_CHECKING:
    from sire_core.types import Edge, ExtractionRecord, Fact, Unit

__all__ = ["EntityNetwork", "Statement", "read_network"]

_MOST_PAIRS = 8
"""Entities of one statement that are joined pairwise when it names no relation; a list of thirty names says little of
any two of them."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of a passage and the entities it names.

    Attributes:
        text: The sentence, with the passage's title in front where it does not name it.
        passage: Number of the passage.
        names: By vertex, the name that the passage spells out.
        weight: Sum of the strengths of its relations, at least 1.
    """

    text: str
    passage: int
    names: Mapping[int, str]
    weight: float


@dataclass(slots=True)
class EntityNetwork:
    """Entities as vertices 0.., joined by what passages state.

    Attributes:
        keys: Name under which a vertex is found again after the corpus changed, each once.
        ids: Id of the entity in the knowledge graph, per vertex.
        passages: Chunks of every passage by its number.
        pairs: Weight by pair of vertices (smaller one first).
        statements: In corpus order.
        named: Vertices that each passage names, by its number, with the name it spells out.
        about: Type and description that some passage's record gives, with the passage's number, per vertex.
    """

    keys: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    passages: list[tuple[str, ...]] = field(default_factory=list)
    pairs: dict[tuple[int, int], float] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    named: list[dict[int, str]] = field(default_factory=list)
    about: dict[int, tuple[str, int]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.keys)

    def join(self, a: int, b: int, weight: float) -> None:
        """Add to the weight between two vertices; a vertex is not joined with itself."""
        if a != b:
            pair = (min(a, b), max(a, b))
            self.pairs[pair] = self.pairs.get(pair, 0.0) + weight


def read_network(
    chunk_units: Sequence[Unit],
    edges: Sequence[Edge],
    records: Mapping[str, ExtractionRecord],
    *,
    edge_weight: str = "strength",
) -> EntityNetwork:
    """Vertices from the mentions of a knowledge graph, edges from the records.

    Two entities are joined by the strengths of the relations between them; where a statement gives no relation, by
    standing in it together; and an entity that no statement of a passage joins with another, with what the passage is
    about. Entities that no passage spells out are no vertices.

    Args:
        chunk_units: The passages, in corpus order.
        edges: Edges of the `KnowledgeGraph` organizer.
        records: By chunk id.
        edge_weight: `strength`, or `binary` (the paper's formulas): every pair counts 1.
    """
    network = EntityNetwork(passages=[unit.chunk_ids for unit in chunk_units])
    titles = _vertices(network, chunk_units, edges)
    for number, unit in enumerate(chunk_units):
        record = records.get(unit.chunk_ids[0])
        named = network.named[number]
        joined: set[int] = set()
        if record is not None and named:
            local = _local_vertices(record, named)
            _describe(network, record, local, number)
            for fact in record.facts:
                joined |= _state(network, fact, local, number, unit.title)
        if (title := titles.get(number)) is not None:
            for vertex in named:
                if vertex not in joined:
                    network.join(title, vertex, 1.0)
    if edge_weight == "binary":
        network.pairs = dict.fromkeys(network.pairs, 1.0)
    return network


def _vertices(network: EntityNetwork, chunk_units: Sequence[Unit], edges: Sequence[Edge]) -> dict[int, int]:
    """Fill `keys`, `ids` and `named`; returns the vertex that titles each passage."""
    number = {unit.id: at for at, unit in enumerate(chunk_units)}
    mentions = [edge for edge in edges if edge.kind == MENTIONS and edge.source in number and edge.metadata["names"]]
    mentions.sort(key=lambda edge: (number[edge.source], edge.target))
    names: dict[str, Counter[str]] = {}
    for edge in mentions:
        names.setdefault(edge.target, Counter())[name_key(edge.metadata["names"][0])] += 1
    vertex: dict[str, int] = {}
    taken: Counter[str] = Counter()
    for entity, counted in names.items():
        key = counted.most_common(1)[0][0]  # of equally frequent names the first
        taken[key] += 1
        vertex[entity] = len(network.keys)
        network.keys.append(key if taken[key] == 1 else f"{key}\0{taken[key]}")
        network.ids.append(entity)
    network.named = [{} for _ in chunk_units]
    titles: dict[int, int] = {}
    for edge in mentions:
        at = number[edge.source]
        network.named[at][vertex[edge.target]] = edge.metadata["names"][-1 if edge.metadata.get("title") else 0]
        if edge.metadata.get("title"):
            titles.setdefault(at, vertex[edge.target])
    return titles


def _local_vertices(record: ExtractionRecord, named: Mapping[int, str]) -> dict[str, int]:
    """Vertex of every entity of a record that the passage spells out, by its id in the record."""
    known = {name_key(name): vertex for vertex, name in reversed(list(named.items()))}
    found: dict[str, int] = {}
    for entity in record.entities:
        keys = (name_key(name) for name in (entity.name, *entity.aliases))
        vertex = next((known[key] for key in keys if key in known), None)
        if vertex is not None:
            found[entity.id] = vertex
    return found


def _describe(network: EntityNetwork, record: ExtractionRecord, local: Mapping[str, int], passage: int) -> None:
    for entity in record.entities:
        vertex = local.get(entity.id)
        if vertex is not None and entity.description:
            network.about.setdefault(vertex, (entity.description, passage))


def _state(network: EntityNetwork, fact: Fact, local: Mapping[str, int], passage: int, title: str) -> set[int]:
    """Add a statement and its pairs; returns the vertices it joins."""
    vertices = list(dict.fromkeys(local[name] for name in fact.entities if name in local))
    weight = 0.0
    joined: set[int] = set()
    for a, b, strength in _relations(fact, local):
        network.join(a, b, strength)
        weight += strength
        joined |= {a, b}
        vertices += [end for end in (a, b) if end not in vertices]
    if not joined and len(vertices) > 1:
        for a, b in combinations(vertices[:_MOST_PAIRS], 2):
            network.join(a, b, 1.0)
            joined |= {a, b}
    if len(vertices) > 1:
        names = network.named[passage]
        text = fact.text if not title or title.casefold() in fact.text.casefold() else f"{title}: {fact.text}"
        network.statements.append(Statement(text, passage, {v: names[v] for v in vertices}, max(weight, 1.0)))
    return joined


def _relations(fact: Fact, local: Mapping[str, int]) -> Iterator[tuple[int, int, float]]:
    for triple in fact.triples:
        head, tail = local.get(triple.head), local.get(triple.tail)
        if head is not None and tail is not None and head != tail:
            yield head, tail, triple.strength if triple.strength > 0 else 1.0
