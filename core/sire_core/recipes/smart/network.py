"""The weighted graph between the entities of a corpus, stored by passage and updated after a change (SMART, 3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import by_appearance, id_hashes
from sire_core.algorithms.lists import Ragged
from sire_core.knowledge import MENTIONS, RELATES
from sire_core.recipes.smart.encoding_tree import UndirectedGraph
from sire_core.recipes.smart.statements import EntityMention, PassageTexts, mentioned_rows, read_passage, stated_rows
from sire_core.storage.array_file import pack_arrays, unpack_arrays
from sire_core.types import hash64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import BuildView
    from sire_core.recipes.smart.encoding_tree import Hashes, Ints
    from sire_core.types import Edge, Unit

    PassageRows = Mapping[str, Sequence[tuple[Any, ...]]]
    """Rows of one passage, by part of the table."""

NETWORK = "entity_network"
"""Key of the note that a table is stored in; queries read it, too."""
# Columns of the parts of a table. `named`: id, hash of the key of the first name, whether it titles the passage;
# `unnamed`: ids of other entities; `pairs`: two entities, weight and family of the predicate; `statements`: hash of
# text and place, hash of the normalized words, lengths, weight, number of entities; `members`: these, by their numbers
# in the passage; `about`: described entity, hash of the description; `traits`: entity, kind and hash of its features.
_NAMED = {"ids": "S24", "keys": np.uint64, "titles": np.bool_}
_UNNAMED = {"ids": "S24"}
_PAIRS = {"left": np.int32, "right": np.int32, "weights": np.float64, "families": np.uint64}
_STATEMENTS = {
    "codes": np.uint64,
    "words": np.uint64,
    "tokens": np.int32,
    "estimates": np.int32,
    "weights": np.float64,
    "sizes": np.int32,
}
_MEMBERS = {"places": np.int32}
_ABOUT = {"places": np.int32, "codes": np.uint64}
_FEATURES = {"places": np.int32, "kinds": np.uint8, "codes": np.uint64}
_MENTIONED: dict[str, Mapping[str, Any]] = {"named": _NAMED, "unnamed": _UNNAMED}
_SAID: dict[str, Mapping[str, Any]] = {
    "pairs": _PAIRS,
    "statements": _STATEMENTS,
    "members": _MEMBERS,
    "about": _ABOUT,
    "traits": _FEATURES,
}
_NOTHING = {name: Ragged.of((), types) for name, types in (_MENTIONED | _SAID).items()}


def passage_version(unit: Unit) -> int:
    """Distinguish passages of one id: 0 for a passage of one chunk, else a hash of its chunks."""
    return 0 if len(unit.chunk_ids) == 1 else hash64("\0".join(unit.chunk_ids))


@dataclass(frozen=True, slots=True)
class NetworkTable:
    """What all passages name and state, in corpus order, one `Ragged` per part."""

    extractor: str = ""  # fingerprint of the extractor of the records
    passages: tuple[str, ...] = ()  # ids of the passages, in corpus order
    versions: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))  # of `passage_version`
    parts: Mapping[str, Ragged] = field(default_factory=lambda: _NOTHING)  # see the columns above
    relations: NDArray[np.bytes_] = field(default_factory=lambda: np.empty((0, 2), dtype="S24"))

    def known(self) -> dict[str, tuple[int, int]]:
        """Return number and version of every passage, by its id."""
        versions = self.versions.tolist()
        return {passage: (number, versions[number]) for number, passage in enumerate(self.passages)}

    def updated(
        self,
        units: Sequence[Unit],
        mentioned: Mapping[str, PassageRows],
        stated: Mapping[str, PassageRows],
    ) -> NetworkTable:
        """Return the table after a change."""
        parts = {}
        for fresh, types in ((mentioned, _MENTIONED), (stated, _SAID)):
            numbers = {passage: number for number, passage in enumerate((*self.passages, *fresh))}  # what is fresh wins
            groups = np.array([numbers[unit.id] for unit in units], dtype=np.int64)
            for name, columns in types.items():
                rows = Ragged.of([rows[name] for rows in fresh.values()], columns)
                parts[name] = self.parts[name].chosen(rows, groups)
        return replace(
            self,
            passages=tuple(unit.id for unit in units),
            versions=np.array([passage_version(unit) for unit in units], dtype=np.uint64),
            parts=parts,
        )

    def to_note(self) -> bytes:
        """Serialize for the store."""
        arrays: dict[str, NDArray[Any]] = {
            "extractor": np.array([self.extractor.encode()]),
            "passages": np.array(self.passages, dtype="S24"),
            "versions": self.versions,
            "relations": self.relations,
        }
        for name, part in self.parts.items():
            arrays[f"{name}.counts"] = part.counts.astype(np.int32)
            arrays |= {f"{name}.{column}": values for column, values in part.columns.items()}
        return pack_arrays(arrays)

    @classmethod
    def from_note(cls, note: bytes | None) -> NetworkTable:
        """Read what `to_note` wrote; an empty table if there is no note."""
        if note is None:
            return cls()
        arrays = unpack_arrays(note)
        parts = {
            name: Ragged(
                arrays[f"{name}.counts"].astype(np.int64), {column: arrays[f"{name}.{column}"] for column in types}
            )
            for name, types in (_MENTIONED | _SAID).items()
        }
        return cls(
            extractor=arrays["extractor"][0].decode(),
            passages=tuple(arrays["passages"].astype(str).tolist()),
            versions=arrays["versions"],
            parts=parts,
            relations=arrays["relations"],
        )


_REPEATED = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class NetworkStatement:
    """A sentence of a passage and the entities it names."""

    text: str  # the sentence, with the passage's title in front where it does not name it
    passage: int  # number of the passage
    names: Mapping[int, str]  # by vertex, the name that the passage spells out


@dataclass(frozen=True, slots=True)
class Statements:
    """All statements of a corpus, in corpus order, without their texts."""

    passages: Ints  # number of the passage of each, `[n]`
    first: Ints  # first statement of every passage, `[passages]`
    ends: Ints  # statement i names the vertices `vertices[ends[i]:ends[i + 1]]`, `[n + 1]`
    vertices: Ints  # see `ends`
    places: Ints  # numbers of these entities in their passages
    weights: NDArray[np.float64]  # sum of the strengths of the relations, at least 1, `[n]`
    tokens: Ints  # length in tokens, `[n]`
    estimates: Ints  # length as a model may count it, `[n]`
    words: Hashes  # hash of the normalized words, `[n]`
    codes: Hashes  # hash of text, place and names; no two are equal, `[n]`

    def __len__(self) -> int:
        return len(self.passages)

    def named(self, number: int) -> list[int]:
        """Return the vertices that a statement names."""
        vertices: list[int] = self.vertices[self.ends[number] : self.ends[number + 1]].tolist()
        return vertices


@dataclass(frozen=True, slots=True)
class EntityNetwork:
    """Entities as vertices 0 to n - 1, joined by what passages state."""

    keys: Hashes  # hash of the name by which a vertex is recognized after a change of the corpus, unique, `[n]`
    ids: NDArray[np.bytes_]  # id of the entity in the knowledge graph, `[n]`
    passages: Sequence[tuple[str, ...]]  # chunks of every passage
    graph: UndirectedGraph  # the vertices and the weights between them
    statements: Statements  # all statements
    mentions: Ints  # vertex of every mention, by passage and number there
    ends: Ints  # mentions of passage i are `mentions[ends[i]:ends[i + 1]]`, `[passages + 1]`
    described: Ints  # first mention with a description, -1 where there is none, `[n]`
    description_hashes: Hashes  # hash of that description, 0 where there is none, `[n]`
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
    named_rows, about = table.parts["named"], table.parts["about"]
    codes, groups = id_hashes(named_rows["ids"]), named_rows.groups()
    # By their first eight bytes, which tell the ids of one passage apart, and compare faster than the whole.
    order = np.lexsort((np.ascontiguousarray(named_rows["ids"]).view(">u8")[::3].astype(np.uint64), groups))
    numbers, first = by_appearance(codes[order])
    mentions, first = np.empty_like(numbers), order[first]
    mentions[order] = numbers
    ends = np.concatenate([[0], np.cumsum(named_rows.counts)])
    pairs = table.parts["pairs"]
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
        texts=texts,
    )


def _statements(table: NetworkTable, mentions: Ints, ends: Ints) -> Statements:
    rows, members = table.parts["statements"], table.parts["members"]
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


def _entity_keys(vertices: Ints, keys: Hashes, size: int) -> Hashes:
    """Return the most frequent key of every vertex, the first in a tie; equal keys are made distinct."""
    _, key_numbers = np.unique(keys, return_inverse=True)
    codes, first, counts = np.unique(
        vertices * max(1, len(keys)) + key_numbers.ravel(), return_index=True, return_counts=True
    )
    owners = codes // max(1, len(keys))
    order = np.lexsort((first, -counts, owners))
    best = order[np.diff(owners[order], prepend=-1) > 0]
    best_keys = keys[first[best]]
    by_key = np.argsort(best_keys, kind="stable")
    runs = np.flatnonzero(np.diff(best_keys[by_key], prepend=best_keys[by_key[:1]] + np.uint64(1)) != 0)
    repeat = np.empty(size, dtype=np.uint64)
    repeat[by_key] = np.arange(size) - np.repeat(runs, np.diff(runs, append=size))
    return np.asarray(best_keys + repeat * _REPEATED, dtype=np.uint64)


_GRAPH = "knowledge_graph"
_BATCH = 512
"""Passages whose records are in memory at once."""


class NetworkChange:
    """Updates the stored table after a change of the corpus; reads only the passages that changed."""

    def __init__(self, view: BuildView, changed_chunks: Collection[str]) -> None:
        self._view = view
        self._units = {unit.id: unit for unit in view.chunk_units}
        self._known_texts: dict[str, PassageTexts] = {}
        self._starts: dict[str, NDArray[np.int64]] = {}
        before = NetworkTable.from_note(view.notes([NETWORK]).get(NETWORK))
        if before.extractor != view.fingerprints[1]:
            before = NetworkTable()
        self.first = not before.passages  # whether nothing was stored before
        self._before = before
        self._places = before.known()
        stale = {*changed_chunks, *(() if self.first else view.stale_links())}
        changed = {
            unit.id
            for unit in self._units.values()
            if unit.id in stale or self._places.get(unit.id, (0, -1))[1] != passage_version(unit)
        }
        if self.first:
            edges, removed = list(view.required(_GRAPH)[1]), []
        else:
            delta = view.required_delta(_GRAPH).in_blocks
            edges, removed = list(delta.put), list(delta.drop)
        mentions, unnamed = self._mentions(edges, removed, changed)
        self._fresh, stated = self._read(mentions, changed)
        mentioned = {
            passage: mentioned_rows(
                passage_mentions,
                unnamed[passage],
                None if passage in stated else self._old_rows(passage, "named", "keys").tolist(),
            )
            for passage, passage_mentions in mentions.items()
        }
        self.table = replace(
            before.updated(view.chunk_units, mentioned, stated),
            extractor=view.fingerprints[1],
            relations=_update_relations(before.relations, edges, removed),
        )

    def texts(self, passages: Iterable[int]) -> dict[int, PassageTexts]:
        """Load the texts of passages, by their numbers."""
        names = {number: self.table.passages[number] for number in passages}
        missing = [name for name in names.values() if name not in self._fresh and name not in self._known_texts]
        for name, note in self._view.notes(missing).items() if missing else ():
            self._known_texts[name] = PassageTexts.from_note(note)
        return {number: self._fresh.get(name) or self._known_texts[name] for number, name in names.items()}

    def notes(self) -> dict[str, bytes | None]:
        """Return the notes to store."""
        notes: dict[str, bytes | None] = dict.fromkeys(sorted(self._places.keys() - self._units.keys()))
        notes |= {passage: texts.to_note() for passage, texts in self._fresh.items()}
        return notes | {NETWORK: self.table.to_note()}

    def _mentions(
        self, edges: Sequence[Edge], dropped_edges: Sequence[Edge], changed: set[str]
    ) -> tuple[dict[str, list[EntityMention]], dict[str, list[str]]]:
        """Return the named entities of the passages whose mentions changed, in order, and their other entities."""
        added: dict[str, dict[str, Edge]] = {passage: {} for passage in self._units if passage in changed}
        for edge in edges:
            if edge.kind == MENTIONS and edge.source in self._units:
                added.setdefault(edge.source, {})[edge.target] = edge
        dropped: dict[str, set[str]] = {passage: set() for passage in added}
        for edge in dropped_edges:
            if edge.kind == MENTIONS and edge.source in self._units:
                dropped.setdefault(edge.source, set()).add(edge.target)
        touched = {passage: dropped[passage] | added.get(passage, {}).keys() for passage in dropped | added}
        mentions, unnamed = self._unchanged_mentions(touched)
        for passage, edges_by_entity in added.items():
            for edge in edges_by_entity.values():
                if edge.metadata["names"]:
                    mentions[passage].append(EntityMention.of(edge))
                else:
                    unnamed[passage].append(edge.target)
        for passage in touched:
            mentions[passage].sort()
            unnamed[passage].sort()
        return mentions, unnamed

    def _unchanged_mentions(
        self, touched: Mapping[str, Collection[str]]
    ) -> tuple[dict[str, list[EntityMention]], dict[str, list[str]]]:
        """Return the stored mentions of some passages, without removed entities."""
        mentions: dict[str, list[EntityMention]] = {passage: [] for passage in touched}
        unnamed: dict[str, list[str]] = {passage: [] for passage in touched}
        old = [passage for passage in touched if passage in self._places]
        notes = self._view.notes(old) if old else {}
        for passage in old:
            self._known_texts[passage] = PassageTexts.from_note(notes[passage])
            removed = touched[passage]
            ids = self._old_rows(passage, "named", "ids").astype(str).tolist()
            titles = self._old_rows(passage, "named", "titles").tolist()
            for entity, (first, name), title in zip(ids, self._known_texts[passage].names, titles, strict=True):
                if entity not in removed:
                    mentions[passage].append(EntityMention(name, first, entity, title))
            others = self._old_rows(passage, "unnamed", "ids").astype(str).tolist()
            unnamed[passage] = [entity for entity in others if entity not in removed]
        return mentions, unnamed

    def _old_rows(self, passage: str, part: str, column: str) -> NDArray[Any]:
        """Return a column of a passage from the stored table."""
        number = self._places[passage][0]
        if part not in self._starts:
            self._starts[part] = self._before.parts[part].starts()
        rows, start = self._before.parts[part], int(self._starts[part][number])
        return rows[column][start : start + int(rows.counts[number])]

    def _old_names(self, passage: str) -> list[tuple[str, str, bool]]:
        """Return first names, names and title flags that are stored for a passage, in order."""
        titles = self._old_rows(passage, "named", "titles").tolist()
        names = self._known_texts[passage].names
        return [(first, name, title) for (first, name), title in zip(names, titles, strict=True)]

    def _read(
        self, mentions: Mapping[str, Sequence[EntityMention]], changed: set[str]
    ) -> tuple[dict[str, PassageTexts], dict[str, PassageRows]]:
        """Read the passages whose records changed or whose entities have other names."""
        stale = [
            passage
            for passage, passage_mentions in mentions.items()
            if passage in changed or self._old_names(passage) != [(n.first, n.name, n.title) for n in passage_mentions]
        ]
        texts, rows = {}, {}
        for start in range(0, len(stale), _BATCH):
            batch = [self._units[passage] for passage in stale[start : start + _BATCH]]
            records = self._view.records({unit.chunk_ids[0] for unit in batch})
            for unit in batch:
                stated = read_passage(records.get(unit.chunk_ids[0]), mentions[unit.id], unit.title)
                texts[unit.id] = PassageTexts.of(mentions[unit.id], stated)
                rows[unit.id] = stated_rows(stated, mentions[unit.id], unit)
        return texts, rows


def _update_relations(before: NDArray[np.bytes_], edges: Iterable[Edge], dropped: Iterable[Edge]) -> NDArray[np.bytes_]:
    """Update the edges from relations to their ends."""
    new = [(edge.source, edge.target) for edge in edges if edge.kind == RELATES]
    old = [(edge.source, edge.target) for edge in dropped if edge.kind == RELATES]
    if not new and not old:
        return before
    pairs = dict.fromkeys(map(tuple, before.astype(str).tolist()))
    for pair in old:
        pairs.pop(pair, None)
    pairs.update(dict.fromkeys(new))
    return np.array(list(pairs), dtype="S24").reshape(-1, 2)
