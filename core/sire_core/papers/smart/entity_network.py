"""The weighted graph between the entities of a corpus, stored by passage and updated after a change (SMART, 3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.extend import (
    GOLDEN,
    MENTIONS,
    ArrayNote,
    EdgeColumns,
    Ragged,
    block_of,
    by_appearance,
    chained_hashes,
    hash64,
    id_hashes,
    positions_in,
    run_starts,
)
from sire_core.papers.smart.encoding_tree import UndirectedGraph
from sire_core.papers.smart.statements import EntityMention, PassageTexts, passage_rows, read_passage

if TYPE_CHECKING:
    from sire_core.extend import BuildView, DoubleArray, HashArray, IdArray, IntArray, Unit

    PassageRows = Mapping[str, Sequence[tuple[Any, ...]]]
    """Rows of one passage, by part of the table."""

NETWORK = "entity_network"  # Key of the note that a table is stored in
# Columns of the parts of a table. `named`: id, hash of the key of the first name; `pairs`: two entities, weight and
# family of the predicate; `statements`: hash of text and place, hash of the normalized words, lengths, weight, number
# of entities; `members`: these, by their numbers in the passage; `about`: described entity, hash of the description;
# `traits`: entity, kind and hash of its features.
_PART_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "named": {"ids": "S24", "keys": np.uint64},
    "pairs": {"left": np.int32, "right": np.int32, "weights": np.float64, "families": np.uint64},
    "statements": {
        "codes": np.uint64,
        "words": np.uint64,
        "tokens": np.int32,
        "estimates": np.int32,
        "weights": np.float64,
        "sizes": np.int32,
    },
    "members": {"places": np.int32},
    "about": {"places": np.int32, "codes": np.uint64},
    "traits": {"places": np.int32, "kinds": np.uint8, "codes": np.uint64},
}
_EMPTY_PARTS = {name: Ragged.of((), types) for name, types in _PART_COLUMNS.items()}


@dataclass(frozen=True, slots=True)
class NetworkTable(ArrayNote):
    """Names and statements of all passages, in corpus order, one `Ragged` per part."""

    extractor: str = ""  # fingerprint of the extractor of the records
    passages: tuple[str, ...] = ()  # ids of the passages, in corpus order
    versions: HashArray = field(default_factory=lambda: np.empty(0, dtype=np.uint64))  # of their chunks and entities
    # See the columns above
    named: Ragged = _EMPTY_PARTS["named"]
    pairs: Ragged = _EMPTY_PARTS["pairs"]
    statements: Ragged = _EMPTY_PARTS["statements"]
    members: Ragged = _EMPTY_PARTS["members"]
    about: Ragged = _EMPTY_PARTS["about"]
    traits: Ragged = _EMPTY_PARTS["traits"]

    def updated(self, units: Sequence[Unit], versions: HashArray, rows: Mapping[str, PassageRows]) -> NetworkTable:
        """Return the table after a change, with new rows of some passages."""
        numbers = {passage: number for number, passage in enumerate((*self.passages, *rows))}  # what is new wins
        groups = np.array([numbers[unit.id] for unit in units], dtype=np.int64)
        new = {
            name: Ragged.of([parts[name] for parts in rows.values()], types) for name, types in _PART_COLUMNS.items()
        }
        return replace(
            self,
            passages=tuple(unit.id for unit in units),
            versions=versions,
            **{name: getattr(self, name).chosen(new[name], groups) for name in _PART_COLUMNS},
        )


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
    codes: HashArray  # hash of text, place and names; no two are equal, `[n]`

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
    description_hashes: HashArray  # hash of that description, 0 where there is none, `[n]`
    table: NetworkTable  # what it was made of
    sides: IntArray  # vertices of the pairs in `table`, `[pairs, 2]`
    texts: Callable[[Iterable[int]], Mapping[int, PassageTexts]]  # loads the texts of passages, by their numbers

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.keys)

    def read(self, numbers: Iterable[int]) -> dict[int, NetworkStatement]:
        """Load statements with their texts, by number."""
        wanted = list(dict.fromkeys(numbers))
        passages = dict(zip(wanted, self.statements.passages[wanted].tolist(), strict=True))
        texts = self.texts(dict.fromkeys(passages.values()))
        statements: dict[int, NetworkStatement] = {}
        for number, passage in passages.items():
            passage_texts = texts[passage]
            members = self.statements.places[self.statements.ends[number] : self.statements.ends[number + 1]].tolist()
            names = {
                vertex: passage_texts.names[member][1]
                for vertex, member in zip(self.statements.named(number), members, strict=True)
            }
            text = passage_texts.statements[number - int(self.statements.first[passage])]
            statements[number] = NetworkStatement(text, passage, names)
        return statements

    def descriptions(self, vertices: Iterable[int]) -> dict[int, tuple[str, int]]:
        """Load the descriptions of vertices, each with the number of the passage that gives it."""
        mentions = {v: int(self.described[v]) for v in vertices if self.described[v] >= 0}
        passages = {v: int(np.searchsorted(self.ends, at, side="right")) - 1 for v, at in mentions.items()}
        texts = self.texts(dict.fromkeys(passages.values()))
        return {
            v: (texts[passages[v]].descriptions[at - int(self.ends[passages[v]])], passages[v])
            for v, at in mentions.items()
        }


def read_network(
    table: NetworkTable,
    passages: Sequence[tuple[str, ...]],
    texts: Callable[[Iterable[int]], Mapping[int, PassageTexts]],
    *,
    edge_weight: str = "strength",
) -> EntityNetwork:
    """Build vertices and edges from what passages name and state."""
    named_rows, about, pairs = table.named, table.about, table.pairs
    codes, groups = id_hashes(named_rows["ids"]), named_rows.groups()
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
    hashes = np.zeros(len(first), dtype=np.uint64)
    at = np.repeat(ends[:-1], about.counts) + about["places"]
    described[mentions[at][::-1]] = at[::-1]  # of several the first stays
    hashes[mentions[at][::-1]] = about["codes"][::-1]
    return EntityNetwork(
        keys=_entity_keys(mentions[order], named_rows["keys"][order], len(first)),
        ids=named_rows["ids"][first],
        passages=passages,
        graph=graph,
        statements=_statements(table, mentions, ends),
        mentions=mentions,
        ends=ends,
        described=described,
        description_hashes=hashes,
        table=table,
        sides=sides,
        texts=texts,
    )


def _statements(table: NetworkTable, mentions: IntArray, ends: IntArray) -> Statements:
    rows, members = table.statements, table.members
    positions = members["places"].astype(np.int64)
    return Statements(
        passages=rows.groups(),
        first=rows.starts(),
        ends=np.concatenate([[0], np.cumsum(rows["sizes"], dtype=np.int64)]),
        vertices=mentions[np.repeat(ends[:-1], members.counts) + positions],
        places=positions,
        weights=rows["weights"],
        tokens=rows["tokens"].astype(np.int64),
        estimates=rows["estimates"].astype(np.int64),
        words=rows["words"],
        codes=rows["codes"],
    )


def _entity_keys(vertices: IntArray, keys: HashArray, size: int) -> HashArray:
    """Return the most frequent key of every vertex, the first in a tie; equal keys are made distinct."""
    _, key_numbers = np.unique(keys, return_inverse=True)
    codes, first, counts = np.unique(
        vertices * max(1, len(keys)) + key_numbers.ravel(), return_index=True, return_counts=True
    )
    owners = codes // max(1, len(keys))
    order = np.lexsort((first, -counts, owners))
    best = order[run_starts(owners[order])]
    best_keys = keys[first[best]]
    by_key = np.argsort(best_keys, kind="stable")
    runs = np.flatnonzero(run_starts(best_keys[by_key]))
    repeat = np.empty(size, dtype=np.uint64)
    repeat[by_key] = np.arange(size) - np.repeat(runs, np.diff(runs, append=size))
    return np.asarray(best_keys + repeat * GOLDEN, dtype=np.uint64)


_GRAPH = "knowledge_graph"
_PASSAGES_PER_BATCH = 512  # Passages whose records are in memory at once


class NetworkChange:
    """Updates the stored table after a change of the corpus; reads only the passages that changed."""

    def __init__(self, view: BuildView, changed_chunks: Collection[str]) -> None:
        self._view = view
        self._texts: dict[str, PassageTexts] = {}  # texts that were read so far
        before = NetworkTable.from_note(view.notes([NETWORK]).get(NETWORK))
        if before.extractor != view.fingerprints[1]:
            before = NetworkTable()
        units, mentions = view.chunk_units, _Mentions(view)
        versions = dict(zip(before.passages, before.versions.tolist(), strict=True))
        stale = {*changed_chunks, *view.stale_links()}
        changed = [
            number
            for number, (unit, version) in enumerate(zip(units, mentions.versions.tolist(), strict=True))
            if unit.id in stale or versions.get(unit.id) != version
        ]
        rows: dict[str, PassageRows] = {}
        for start in range(0, len(changed), _PASSAGES_PER_BATCH):
            batch = changed[start : start + _PASSAGES_PER_BATCH]
            records = view.records({units[number].chunk_ids[0] for number in batch})
            for number in batch:
                unit, named = units[number], mentions.of(number)
                stated = read_passage(records.get(unit.chunk_ids[0]), named, unit.title)
                self._texts[unit.id] = PassageTexts.of(named, stated)
                rows[unit.id] = passage_rows(stated, named, unit)
        self.table = replace(before.updated(units, mentions.versions, rows), extractor=view.fingerprints[1])
        self.notes: dict[str, bytes | None] = dict.fromkeys(sorted(versions.keys() - set(self.table.passages)))
        self.notes |= {passage: texts.to_note() for passage, texts in self._texts.items()}
        self.notes[NETWORK] = self.table.to_note()

    def texts(self, passages: Iterable[int]) -> dict[int, PassageTexts]:
        """Load the texts of passages, by their numbers."""
        names = {number: self.table.passages[number] for number in passages}
        missing = [name for name in names.values() if name not in self._texts]
        for name, note in self._view.notes(missing).items() if missing else ():
            self._texts[name] = PassageTexts.from_note(note)
        return {number: self._texts[name] for number, name in names.items()}


class _Mentions:
    """The entities that passages spell out, by number of the passage."""

    def __init__(self, view: BuildView) -> None:
        units = view.chunk_units
        blocks = {block_of(MENTIONS, view.place(unit.chunk_ids[0])[0]) for unit in units}
        self._columns = columns = EdgeColumns.of_blocks(view.required_notes(_GRAPH, sorted(blocks)).values())
        ids = np.array([unit.id for unit in units], dtype="S24")
        passages = positions_in(id_hashes(ids), id_hashes(columns.sources))
        edges = id_hashes(columns.targets) * GOLDEN ^ columns.lists.hashes[columns.numbers] ^ columns.titles
        order = np.lexsort((edges, passages))
        self._rows = order[np.count_nonzero(passages < 0) :]
        counts = np.bincount(passages[self._rows], minlength=len(units))
        self._ends = np.cumsum(counts)
        # Passages of one id may differ in their chunks; of a single chunk the id says all.
        chunks = ["\0".join(unit.chunk_ids) if len(unit.chunk_ids) > 1 else "" for unit in units]
        hashes = np.array([hash64(names) if names else 0 for names in chunks], dtype=np.uint64)
        self.versions = hashes ^ chained_hashes(edges[self._rows], counts)  # change with chunks or entities, `[n]`

    def of(self, number: int) -> list[EntityMention]:
        """Return the entities that a passage spells out, in order."""
        rows = self._rows[self._ends[number - 1] if number else 0 : self._ends[number]]
        edges = self._columns.edges(MENTIONS, rows)
        return sorted(EntityMention.of(edge) for edge in edges if edge.metadata["names"])
