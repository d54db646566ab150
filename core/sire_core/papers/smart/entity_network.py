"""The weighted graph between the entities of a corpus, read from its extraction records (SMART, section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.extend import (
    GOLDEN,
    MENTIONS,
    EdgeColumns,
    Ragged,
    block_of,
    by_appearance,
    id_codes,
    run_starts,
)
from sire_core.papers.smart.encoding_tree import UndirectedGraph
from sire_core.papers.smart.statements import EntityMention, PassageStatements, passage_rows, read_passage

if TYPE_CHECKING:
    from sire_core.extend import BuildView, DoubleArray, HashArray, IdArray, IntArray, Unit

# Columns of the parts of a network. `named`: id, hash of the key of the first name; `pairs`: two entities, weight and
# family of the predicate; `statements`: hash of the normalized words, lengths, weight, number of entities; `members`:
# these, by their numbers in the passage; `about`: described entity; `traits`: entity, kind and hash of its features.
_PART_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "named": {"ids": "S24", "keys": np.uint64},
    "pairs": {"left": np.int32, "right": np.int32, "weights": np.float64, "families": np.uint64},
    "statements": {
        "words": np.uint64,
        "tokens": np.int64,
        "estimates": np.int64,
        "weights": np.float64,
        "sizes": np.int64,
    },
    "members": {"places": np.int64},
    "about": {"places": np.int32},
    "traits": {"places": np.int32, "kinds": np.uint8, "codes": np.uint64},
}


@dataclass(frozen=True, slots=True)
class NetworkStatement:
    """A sentence of a passage and the entities it names."""

    text: str  # the sentence, with the passage's title in front where it does not name it
    passage: int  # number of the passage
    names: Mapping[int, str]  # by vertex, the name that the passage spells out


@dataclass(frozen=True, slots=True)
class Statements:
    """All statements of a corpus, in corpus order, without their texts."""

    passages: IntArray  # number of the passage of each, `[n]`
    first: IntArray  # first statement of every passage, `[passages]`
    ends: IntArray  # statement i names the vertices `vertices[ends[i]:ends[i + 1]]`, `[n + 1]`
    vertices: IntArray  # see `ends`
    places: IntArray  # numbers of these entities in their passages
    weights: DoubleArray  # sum of the strengths of the relations, at least 1, `[n]`
    tokens: IntArray  # length in tokens, `[n]`
    estimates: IntArray  # length as a model may count it, `[n]`
    words: HashArray  # hash of the normalized words, `[n]`

    def __len__(self) -> int:
        return len(self.passages)

    def named(self, number: int) -> list[int]:
        """Return the vertices that a statement names."""
        vertices: list[int] = self.vertices[self.ends[number] : self.ends[number + 1]].tolist()
        return vertices


@dataclass(frozen=True, slots=True)
class EntityNetwork:
    """Entities as vertices 0 to n - 1, joined by what passages state."""

    keys: HashArray  # hash of the name by which a vertex is recognized after a change of the corpus, unique, `[n]`
    ids: IdArray  # id of the entity in the knowledge graph, `[n]`
    passages: Sequence[tuple[str, ...]]  # chunks of every passage
    graph: UndirectedGraph  # the vertices and the weights between them
    statements: Statements  # all statements
    mentions: IntArray  # vertex of every mention, by passage and number there
    ends: IntArray  # mentions of passage i are `mentions[ends[i]:ends[i + 1]]`, `[passages + 1]`
    described: IntArray  # first mention with a description, -1 where there is none, `[n]`
    pairs: Ragged  # related entities of every passage, see `_PART_COLUMNS`
    sides: IntArray  # vertices of these pairs, `[pairs, 2]`
    traits: Ragged  # features of the entities of every passage, see `_PART_COLUMNS`
    stated: Sequence[PassageStatements]  # what every passage states, with its texts

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.keys)

    def read(self, numbers: Iterable[int]) -> dict[int, NetworkStatement]:
        """Load statements with their texts, by number."""
        statements: dict[int, NetworkStatement] = {}
        for number in dict.fromkeys(numbers):
            passage = int(self.statements.passages[number])
            stated = self.stated[passage]
            members = self.statements.places[self.statements.ends[number] : self.statements.ends[number + 1]].tolist()
            names = {
                vertex: stated.names[member]
                for vertex, member in zip(self.statements.named(number), members, strict=True)
            }
            text = stated.statements[number - int(self.statements.first[passage])].text
            statements[number] = NetworkStatement(text, passage, names)
        return statements

    def descriptions(self, vertices: Iterable[int]) -> dict[int, tuple[str, int]]:
        """Return the descriptions of vertices, each with the number of the passage that gives it."""
        described = {}
        for vertex in vertices:
            if (mention := int(self.described[vertex])) >= 0:
                passage = int(np.searchsorted(self.ends, mention, side="right")) - 1
                text = self.stated[passage].descriptions[mention - int(self.ends[passage])]
                described[vertex] = (text, passage)
        return described


_GRAPH = "knowledge_graph"
_PASSAGES_PER_BATCH = 512  # Passages whose records are in memory at once


def read_network(view: BuildView, *, edge_weight: str = "strength") -> EntityNetwork:
    """Build vertices and edges from what the records of all passages name and state."""
    units, mentions = view.chunk_units, _mentions(view)
    stated: list[PassageStatements] = []
    rows: list[Mapping[str, Sequence[tuple[Any, ...]]]] = []
    for start in range(0, len(units), _PASSAGES_PER_BATCH):
        batch = units[start : start + _PASSAGES_PER_BATCH]
        records = view.records({unit.chunk_ids[0] for unit in batch})
        for unit in batch:
            named = sorted(mentions.get(unit.id, ()))
            stated.append(read_passage(records.get(unit.chunk_ids[0]), named, unit.title))
            rows.append(passage_rows(stated[-1], named))
    parts = {name: Ragged.of([passage[name] for passage in rows], types) for name, types in _PART_COLUMNS.items()}
    return _network(parts, stated, units, edge_weight)


def _mentions(view: BuildView) -> dict[str, list[EntityMention]]:
    """Return the entities that passages spell out, by id of the passage."""
    blocks = {block_of(MENTIONS, view.place(unit.chunk_ids[0])[0]) for unit in view.chunk_units}
    mentions: dict[str, list[EntityMention]] = {}
    for block in view.required_notes(_GRAPH, sorted(blocks)).values():
        for edge in EdgeColumns.from_bytes(block).edges(MENTIONS):
            if edge.metadata["names"]:
                mentions.setdefault(edge.source, []).append(EntityMention.of(edge))
    return mentions


def _network(
    parts: Mapping[str, Ragged], stated: Sequence[PassageStatements], units: Sequence[Unit], edge_weight: str
) -> EntityNetwork:
    named_rows, about, pairs = parts["named"], parts["about"], parts["pairs"]
    codes, groups = id_codes(named_rows["ids"]), named_rows.groups()
    # By their first eight bytes, which tell the ids of one passage apart, and compare faster than the whole.
    order = np.lexsort((np.ascontiguousarray(named_rows["ids"]).view(">u8")[::3].astype(np.uint64), groups))
    numbers, first = by_appearance(codes[order])
    mentions, first = np.empty_like(numbers), order[first]
    mentions[order] = numbers
    ends = np.concatenate([[0], np.cumsum(named_rows.counts)])
    start = np.repeat(ends[:-1], pairs.counts)
    sides = np.stack([mentions[start + pairs["left"]], mentions[start + pairs["right"]]], axis=1)
    graph = UndirectedGraph.from_edges(len(first), sides, pairs["weights"])
    if edge_weight == "binary":
        graph = graph.with_weights(np.ones(len(graph.weights)))
    described = np.full(len(first), -1, dtype=np.int64)
    at = np.repeat(ends[:-1], about.counts) + about["places"]
    described[mentions[at][::-1]] = at[::-1]  # of several the first stays
    return EntityNetwork(
        keys=_distinct(named_rows["keys"][first]),
        ids=named_rows["ids"][first],
        passages=[unit.chunk_ids for unit in units],
        graph=graph,
        statements=_statements(parts["statements"], parts["members"], mentions, ends),
        mentions=mentions,
        ends=ends,
        described=described,
        pairs=pairs,
        sides=sides,
        traits=parts["traits"],
        stated=stated,
    )


def _statements(rows: Ragged, members: Ragged, mentions: IntArray, ends: IntArray) -> Statements:
    return Statements(
        passages=rows.groups(),
        first=rows.starts(),
        ends=np.concatenate([[0], np.cumsum(rows["sizes"])]),
        vertices=mentions[np.repeat(ends[:-1], members.counts) + members["places"]],
        places=members["places"],
        weights=rows["weights"],
        tokens=rows["tokens"],
        estimates=rows["estimates"],
        words=rows["words"],
    )


def _distinct(keys: HashArray) -> HashArray:
    """Make equal keys different."""
    by_key = np.argsort(keys, kind="stable")
    runs = np.flatnonzero(run_starts(keys[by_key]))
    repeat = np.empty(len(keys), dtype=np.uint64)
    repeat[by_key] = np.arange(len(keys)) - np.repeat(runs, np.diff(runs, append=len(keys)))
    return np.asarray(keys + repeat * GOLDEN, dtype=np.uint64)
