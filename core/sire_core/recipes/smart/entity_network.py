"""The weighted graph between the entities of a corpus, and what its passages state of them (SMART, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import id_hashes
from sire_core.recipes.smart.undirected import UndirectedGraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.recipes.smart.network_table import NetworkTable
    from sire_core.recipes.smart.passage_statements import PassageTexts

    Ints = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

__all__ = ["EntityNetwork", "NetworkStatement", "Statements", "read_network"]

_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class NetworkStatement:
    """A sentence of a passage and the entities it names.

    Attributes:
        text: The sentence, with the passage's title in front where it does not name it.
        passage: Number of the passage.
        names: By vertex, the name that the passage spells out.
    """

    text: str
    passage: int
    names: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Statements:
    """All statements of a corpus, in corpus order; their words are elsewhere.

    Attributes:
        passages: Number of the passage of each.
        first: Number of the first statement of every passage.
        ends: Statement i names the vertices `vertices[ends[i]:ends[i + 1]]`.
        vertices: See `ends`.
        places: Numbers of these entities in their passages.
        weights: Sum of the strengths of the relations, at least 1.
        tokens: Length.
        estimates: Length as a model may count it.
        words: Hash of the normalized words.
        codes: Hash of what is said, where, and under which names; no two are equal.
    """

    passages: Ints
    first: Ints
    ends: Ints
    vertices: Ints
    places: Ints
    weights: NDArray[np.float64]
    tokens: Ints
    estimates: Ints
    words: Hashes
    codes: Hashes

    def __len__(self) -> int:
        return len(self.passages)

    def named(self, number: int) -> list[int]:
        """Vertices that a statement names."""
        found: list[int] = self.vertices[self.ends[number] : self.ends[number + 1]].tolist()
        return found


@dataclass(frozen=True, slots=True)
class EntityNetwork:
    """Entities as vertices 0.., joined by what passages state.

    Attributes:
        keys: Hash of the name under which a vertex is found again after the corpus changed, each once.
        ids: Id of the entity in the knowledge graph, per vertex.
        passages: Chunks of every passage by its number.
        graph: The vertices and the weights between them.
        statements: What is said.
        mentions: Vertex of every mention, by passage and number there.
        ends: Mentions of passage i are `mentions[ends[i]:ends[i + 1]]`.
        described: The first mention that comes with a description, per vertex; -1 where there is none.
        about: Hash of that description, 0 where there is none.
        texts: Reads the words of some passages.
    """

    keys: Hashes
    ids: NDArray[np.bytes_]
    passages: Sequence[tuple[str, ...]]
    graph: UndirectedGraph
    statements: Statements
    mentions: Ints
    ends: Ints
    described: Ints
    about: Hashes
    texts: Callable[[Iterable[int]], Mapping[int, PassageTexts]]

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.keys)

    def read(self, numbers: Iterable[int]) -> dict[int, NetworkStatement]:
        """Statements with their words, by number."""
        wanted = list(dict.fromkeys(numbers))
        passages = dict(zip(wanted, self.statements.passages[wanted].tolist(), strict=True))
        texts = self.texts(dict.fromkeys(passages.values()))
        found: dict[int, NetworkStatement] = {}
        for number, passage in passages.items():
            said = texts[passage]
            places = self.statements.places[self.statements.ends[number] : self.statements.ends[number + 1]].tolist()
            names = {v: said.names[p][1] for v, p in zip(self.statements.named(number), places, strict=True)}
            text = said.statements[number - int(self.statements.first[passage])]
            found[number] = NetworkStatement(text, passage, names)
        return found

    def descriptions(self, vertices: Iterable[int]) -> dict[int, tuple[str, int]]:
        """Descriptions of those vertices that have one, each with the number of the passage that gives it."""
        mentions = {v: int(self.described[v]) for v in vertices if self.described[v] >= 0}
        passages = {v: int(np.searchsorted(self.ends, at, side="right")) - 1 for v, at in mentions.items()}
        texts = self.texts(dict.fromkeys(passages.values()))
        return {
            v: (texts[passages[v]].about[at - int(self.ends[passages[v]])], passages[v]) for v, at in mentions.items()
        }


def read_network(
    table: NetworkTable,
    passages: Sequence[tuple[str, ...]],
    texts: Callable[[Iterable[int]], Mapping[int, PassageTexts]],
    *,
    edge_weight: str = "strength",
) -> EntityNetwork:
    """Vertices and edges from what every passage names and states.

    Vertices are numbered as the corpus mentions them, those of one passage by their ids. Entities that no passage
    spells out are no vertices.

    Args:
        table: Rows of all passages.
        passages: Chunks of every passage.
        texts: Reads the words of some passages, by their numbers.
        edge_weight: `strength`, or `binary` (the paper's formulas): every pair counts 1.
    """
    named, about = table.parts["named"], table.parts["about"]
    codes, groups = id_hashes(named["ids"]), named.groups()
    # By their first eight bytes, which tell the ids of one passage apart, and compare faster than the whole.
    order = np.lexsort((np.ascontiguousarray(named["ids"]).view(">u8")[::3].astype(np.uint64), groups))
    mentions, first = _numbered(codes, order)
    ends = np.concatenate([[0], np.cumsum(named.counts)])
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
        keys=_keys(mentions[order], named["keys"][order], len(first)),
        ids=named["ids"][first],
        passages=passages,
        graph=graph,
        statements=_statements(table, mentions, ends),
        mentions=mentions,
        ends=ends,
        described=described,
        about=hashes,
        texts=texts,
    )


def _statements(table: NetworkTable, mentions: Ints, ends: Ints) -> Statements:
    rows, members = table.parts["statements"], table.parts["members"]
    places = members["places"].astype(np.int64)
    return Statements(
        passages=rows.groups(),
        first=rows.starts(),
        ends=np.concatenate([[0], np.cumsum(rows["sizes"], dtype=np.int64)]),
        vertices=mentions[np.repeat(ends[:-1], members.counts) + places],
        places=places,
        weights=rows["weights"],
        tokens=rows["tokens"].astype(np.int64),
        estimates=rows["estimates"].astype(np.int64),
        words=rows["words"],
        codes=rows["codes"],
    )


def _numbered(codes: Hashes, order: Ints) -> tuple[Ints, Ints]:
    """Values numbered as they come up in an order; and for every number the row where it comes up first."""
    rows = np.argsort(codes)
    begins = np.diff(codes[rows], prepend=~codes[rows[:1]]) != 0
    places = np.empty(len(codes), dtype=np.int64)
    places[order] = np.arange(len(codes))
    first = np.minimum.reduceat(places[rows], np.flatnonzero(begins)) if len(codes) else places
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    numbers = np.empty(len(codes), dtype=np.int64)
    numbers[rows] = rank[np.cumsum(begins) - 1]
    return numbers, order[np.sort(first)]


def _keys(vertices: Ints, keys: Hashes, size: int) -> Hashes:
    """The most frequent key of every vertex, of equals the first; where several have the same, they are numbered."""
    _, kinds = np.unique(keys, return_inverse=True)
    codes, first, counts = np.unique(
        vertices * max(1, len(keys)) + kinds.ravel(), return_index=True, return_counts=True
    )
    owners = codes // max(1, len(keys))
    order = np.lexsort((first, -counts, owners))
    best = order[np.diff(owners[order], prepend=-1) > 0]
    found = keys[first[best]]
    by_key = np.argsort(found, kind="stable")
    runs = np.flatnonzero(np.diff(found[by_key], prepend=found[by_key[:1]] + np.uint64(1)) != 0)
    repeat = np.empty(size, dtype=np.uint64)
    repeat[by_key] = np.arange(size) - np.repeat(runs, np.diff(runs, append=size))
    return np.asarray(found + repeat * _MIX, dtype=np.uint64)
