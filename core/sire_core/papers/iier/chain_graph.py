"""The interaction graph of a pool in compressed sparse rows, its cosines with a question, and question keywords."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sire_core.extend import (
    FUNCTION_WORDS,
    OPENERS,
    Lists,
    Prompt,
    UnitKind,
    name_key,
    names_in,
    phrase_words,
    ranges,
    row_pointers,
    signs,
    stable_order,
)
from sire_core.papers.iier import GRAPH_NOTE, WORDS_NOTE
from sire_core.papers.iier.table import InteractionTable, KeywordTable, PassageLinks, PassagePhrases

if TYPE_CHECKING:
    from sire_core.extend import BoolArray, FloatArray, IntArray, LanguageModel, PoolView, Question, View

FEATURES = ("structural", "similarity", "keywords")
"""Columns of `ChainGraph.features`: w_struc (0 or 1), w_sim (a cosine, 0 where there is no semantic edge) and w_kw
(number of shared keywords, not scaled)."""
_NO_NODES = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ChainGraph:
    """An `InteractionGraph` in compressed sparse rows. Nodes are passages, numbered 0.. in corpus order."""

    positions: IntArray  # row of every node in the pool, int64 `[n]`, ascending
    vectors: FloatArray  # unit-length vectors of the nodes, float32 `[n, d]`
    indptr: IntArray  # of edges, int64 `[n + 1]`; every edge is there from both ends
    neighbors: IntArray  # int64 `[edges]`, ascending within a node
    features: FloatArray  # weights of edges, float32 `[m, 3]`, see `FEATURES`
    keywords: Lists  # numbers of the keywords of every node
    postings: Lists  # nodes of every keyword, ascending
    keyword_of: Mapping[str, int]  # by `name_key` of the phrase
    keys: Sequence[str]  # keys by number

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.positions)

    @classmethod
    def of(cls, view: View) -> ChainGraph:
        """Return the graph of a pool, made once per snapshot; without edges if the pool has no `InteractionGraph`."""
        return view.derived("chain graph", lambda: _read(view))

    def around(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """All edges of nodes `[a]`, which may repeat, in their order."""
        starts, counts = self.indptr[nodes], self.indptr[nodes + 1] - self.indptr[nodes]
        return np.repeat(np.arange(len(nodes), dtype=np.int64), counts), ranges(starts, counts)

    def edge(self, left: int, right: int) -> FloatArray:
        """Features of the edge between two nodes, `[3]`; zeros if there is none."""
        start, stop = int(self.indptr[left]), int(self.indptr[left + 1])
        row = start + int(np.searchsorted(self.neighbors[start:stop], right))
        exists = row < stop and self.neighbors[row] == right
        return self.features[row] if exists else np.zeros(len(FEATURES), dtype=np.float32)


def _read(view: View) -> ChainGraph:
    positions = np.flatnonzero(view.kinds == list(view.kind_names).index(UnitKind.CHUNK.value)).astype(np.int64)
    size = len(positions)
    table = InteractionTable.from_note(view.note(GRAPH_NOTE))
    keywords = table.keywords if len(table.passages) else KeywordTable.of([{}] * size)
    indptr, neighbors, features = _adjacency(table.links, size)
    keys = tuple(keywords.keys)
    return ChainGraph(
        positions=positions,
        vectors=view.matrix if size == view.size else np.ascontiguousarray(view.matrix[positions]),
        indptr=indptr,
        neighbors=neighbors,
        features=features,
        keywords=keywords.numbers,
        postings=keywords.numbers.inverted(len(keys)),
        keyword_of={key: number for number, key in enumerate(keys)},
        keys=keys,
    )


def _adjacency(links: PassageLinks, size: int) -> tuple[IntArray, IntArray, FloatArray]:
    left, right = links.pairs.T
    features = np.stack((links.structural, links.similarity, links.keywords), axis=1).astype(np.float32)
    # Pairs are ascending: with the reversed edges first, neighbors are in order already, and only nodes are sorted.
    sources, neighbors = np.concatenate(((right, left), (left, right)), axis=1).astype(np.int64)
    order = stable_order(sources)
    return row_pointers(sources, size), neighbors[order], np.tile(features, (2, 1))[order]


@dataclass(frozen=True, slots=True)
class GoldNodes:
    """Nodes and texts of documents, to find gold passages."""

    nodes: Mapping[str, Sequence[int]]  # nodes by document id, ascending
    texts: Sequence[str]  # text of every node

    @classmethod
    def of(cls, view: PoolView, graph: ChainGraph) -> GoldNodes:
        """Read a pool, once per snapshot."""

        def read() -> GoldNodes:
            nodes: dict[str, list[int]] = {}
            texts = []
            for node, position in enumerate(graph.positions.tolist()):
                unit, documents = view.pool.unit(position)
                texts.append(unit.text)
                for document in documents:
                    nodes.setdefault(document, []).append(node)
            return cls(nodes, texts)

        return view.derived("gold nodes", read)

    def groups(self, question: Question) -> list[Sequence[int]]:
        """Groups of nodes, one per piece of evidence; any node of a group is the evidence."""
        evidence = question.metadata.get("evidence")
        evidence = evidence if isinstance(evidence, Mapping) else {}
        groups: list[Sequence[int]] = []
        for document in question.supporting:
            nodes = self.nodes.get(document, ())
            texts = dict.fromkeys(text for text in evidence.get(document) or () if isinstance(text, str))
            passages = [[node for node in nodes if self.texts[node] == text] for text in texts]
            groups.extend([passage for passage in passages if passage] or [nodes])
        return groups


class PassageKeywords:
    """Inverted indexes over the titles and texts of the units at `positions`, `[n]`."""

    def __init__(self, view: View, positions: IntArray) -> None:
        self._view = view
        self._positions = positions
        # Without the view, which keeps what it derives: the files of a snapshot are closed with its last reference.
        phrases: PassagePhrases = view.derived("passage keywords", lambda: _stored_phrases(view, positions))
        self._words, self._titles = phrases.words, phrases.titles

    def titled(self, phrase: str) -> IntArray:
        """Nodes with this title, with or without its bracketed part."""
        return self._titles.holders(phrase_words(phrase))

    def with_phrase(self, phrase: str) -> IntArray:
        """Nodes that contain a phrase as whole words, in any case, ascending."""
        words = phrase_words(phrase)
        postings = sorted((self._words.holders(word) for word in set(words.split())), key=len)
        if not postings:
            return _NO_NODES
        nodes = postings[0]
        for others in postings[1:]:
            nodes = nodes[np.isin(nodes, others, assume_unique=True)]
        if " " not in words or not len(nodes):
            return nodes
        texts = self._view.units(self._positions[nodes])
        contains = [f" {words} " in f" {phrase_words(unit.index_text)} " for unit in texts]
        return np.asarray(nodes[np.array(contains, dtype=bool)])


def _stored_phrases(view: View, positions: IntArray) -> PassagePhrases:
    """Words and titles of a pool's passages, as stored or made now."""
    stored = PassagePhrases.from_note(view.note(WORDS_NOTE))
    if not np.array_equal(stored.passages, view.ids[positions]):
        stored = PassagePhrases.of(view.units(positions))
    return stored


_KEYWORD_INSTRUCTIONS = (
    "The data is a question. List all the topics and keywords it covers, as they stand in the question: names, works, "
    "places, things. Do not answer the question."
)
_MAX_WORDS = 10  # Maximum words of a phrase
MAX_KEYWORDS = 64  # Maximum keywords of a question: the bits of a coverage set


async def ask_keywords(query: str, model: LanguageModel) -> list[str]:
    """Ask a model for the keywords of a question; one call (appendix A.1)."""
    from pydantic import BaseModel, Field

    class QuestionKeywords(BaseModel):
        """The answer of the model."""

        shape: ClassVar[str] = '{"keywords":[""]}'

        keywords: list[str] = Field(default_factory=list)

    answer = await model.complete(Prompt(_KEYWORD_INSTRUCTIONS, query), schema=QuestionKeywords, max_tokens=300)
    return [" ".join(keyword.split()) for keyword in answer.parsed.keywords if keyword.strip()]


@dataclass(frozen=True, slots=True)
class KeywordFinder:
    """Finds the allowed passages that contain a keyword."""

    graph: ChainGraph  # keywords of the passages
    words: PassageKeywords  # their titles and texts
    allowed: BoolArray | None = None  # allowed nodes, `[n]`; None for all
    strict: bool = False  # only keywords of passages count, as published; else titles, and texts, too

    def holders(self, keyword: str) -> IntArray:
        """Nodes that contain a keyword, ascending."""
        nodes = self._nodes_of_phrase(keyword)
        if len(nodes) or self.strict:
            return nodes
        return self._open(self.words.with_phrase(keyword))

    def keywords(self, query: str) -> list[str]:
        """Find keywords by rules: the longest phrases that are keywords or titles of passages, and other names."""
        spans = [match.span() for match in _words().finditer(query)]
        lowered = not any(query[start].isupper() for start, _ in spans[1:])
        covered = bytearray(len(query))  # 1 for characters of phrases found so far
        keywords: dict[int, str] = {}
        for start, end in _phrases(spans):
            if covered.find(1, start, end) >= 0:
                continue
            if _is_keyword(query[start:end], lowered=lowered) and len(self._nodes_of_phrase(query[start:end])):
                covered[start:end] = b"\1" * (end - start)
                keywords[start] = query[start:end]
        for name in names_in(query):
            start = query.find(name)
            if start >= 0 and covered.find(1, start, start + len(name)) < 0:
                keywords.setdefault(start, name)
        return list(dict.fromkeys(keywords[start] for start in sorted(keywords)))[:MAX_KEYWORDS]

    def _nodes_of_phrase(self, phrase: str) -> IntArray:
        number = self.graph.keyword_of.get(name_key(phrase))
        nodes = _NO_NODES if number is None else self.graph.postings.of(number)
        titled = _NO_NODES if self.strict else self.words.titled(phrase)
        if len(titled):
            nodes = np.union1d(nodes, titled) if len(nodes) else titled
        return self._open(nodes)

    def _open(self, nodes: IntArray) -> IntArray:
        return nodes if self.allowed is None else nodes[self.allowed[nodes]]


@cache
def _words() -> re.Pattern[str]:
    return re.compile(rf"\w[\w{signs()}'\u2019.&-]*")


def _phrases(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Start and end of all word sequences, the longest first, then from left to right."""
    for length in range(min(_MAX_WORDS, len(spans)), 0, -1):
        for first in range(len(spans) - length + 1):
            yield spans[first][0], spans[first + length - 1][1]


def _is_keyword(phrase: str, *, lowered: bool) -> bool:
    """True if a phrase of the index can be a keyword of a question."""
    words = phrase.split()
    common = [word.lower() in FUNCTION_WORDS or word.lower() in OPENERS for word in words]
    if all(common):
        return False
    return len(words) > 1 or lowered or not phrase.islower()
