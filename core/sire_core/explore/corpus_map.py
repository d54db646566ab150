"""`CorpusMap`: the documents of a snapshot as points in a plane, near each other where their vectors are.

The layout is t-SNE of at most `_LANDMARKS` documents; every other document is placed among the landmarks that its
vector is nearest to, so that the time grows linearly. Only documents that pass the filter of the snapshot take part.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path
from posixpath import dirname
from typing import Any

import numpy as np

from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.documents.blocks import HEADING
from sire_core.explore.browse import PAGE, Page, TableRow, document_label
from sire_core.explore.highlight import plain_text
from sire_core.explore.paths import Names
from sire_core.extraction.headings import is_everyday
from sire_core.metadata_values import shown_value
from sire_core.protocols import FloatArray, IntArray
from sire_core.search.explanation import blocks_below_title, without_sessions
from sire_core.search.snapshot import SearchSnapshot
from sire_core.text.languages import ENGLISH, language, ranked_languages
from sire_core.text.lexicon import ACTIONS, FUNCTION_WORDS, HEADING_PARTS, OPENERS, VAGUE_NOUNS, VAGUE_WORDS
from sire_core.text.snippets import stem
from sire_core.types import Hit, Unit, UnitKind, digest

_MAP_VERSION = 8  # Version of stored maps; rises when the layout, the labels or the format change
_LANDMARKS = 1000
_NEAREST = 5
_VECTOR_LEVELS = 256  # Values between 0 and 1 that numbers of vectors have
_DOCUMENTS_PER_BLOCK = 8192
_MIN_MAP_DOCUMENTS = 8  # Fewer documents have no topics: they stand in a circle
_PER_TOPIC, _TOPICS = 15, 24
_LABEL_DOCUMENTS, _LANGUAGE_DOCUMENTS = 60, 20
"""Documents of a topic that are read for its label, and those of them that say which language it is in."""
_READ_LETTERS = 3000  # Letters of a first passage that are read for a label
_PHRASES, _MAX_PHRASE_WORDS, _SHORTEST = 2, 3, 3
"""Phrases of a label, words of a phrase, and letters of a word in small letters that is one alone."""
_SHARE, _FEW_TITLES, _OUTSIDE = 0.3, 3, 0.12
"""More than this share of a topic has a phrase of its label, so many at least, and less than that of the others."""
_OF_NO_TOPIC = FUNCTION_WORDS | frozenset(
    "http https www html htm com org net arg args argv bool char const enum int param struct typedef void "
    "allows contains defines describes gives provides requires returns".split()
)
"""Words of every text, of addresses and of declarations, which say nothing of a topic."""
_NAME_WEIGHT = 2  # Weight of a name in prose beside other words
_SHORT = 30  # Letters of a title on the map
_LABEL_WORD = re.compile(r"[^\W\d_](?:[\w'-]*\w)?|\S")
_FILE_WORD = re.compile(r"[^\W\d_][^\W_]*|[^\s_-]")
_NUMBERING = re.compile(r"^(?:(?:\d{1,3}|[A-Z])(?:\.\d{1,3})+\.?|\d{1,3}[.)])\s+")
"""Number of a section; a number without a dot may be a part of the title."""
_COLOURS = 9  # Values of a key with a colour of their own; those after them share one
_KEYS = 12
_ROOT = "(top folder)"
_MAP_FILE, _ARRAYS = "map.npz", ("documents", "passages", "points", "topics")


@dataclass(frozen=True, slots=True)
class CorpusMap:
    """Documents as points."""

    documents: IntArray  # Their numbers in the pool, ascending, `[n]`
    passages: IntArray  # Position of the first visible passage of each, `[n]`
    points: FloatArray  # Coordinates from 0 to 1, float32 `[n, 2]`
    topics: IntArray  # Number of the topic of each, `[n]`
    labels: tuple[str, ...]  # Distinctive phrases of the titles of every topic, separated by commas
    # By folder or metadata key: the names of the values, and the number of each document's value, `[n]`
    colours: Mapping[str, tuple[tuple[str, ...], IntArray]]

    @classmethod
    def of(cls, snapshot: SearchSnapshot) -> CorpusMap:
        """The map of a snapshot, made once for each filter and kept in a file with the index."""
        name = f"map-{_MAP_VERSION}-{digest(repr(snapshot.where), size=6)}"
        made: CorpusMap = snapshot.view.cached_on_disk(name, lambda: _made(snapshot), _save, _load)
        return made

    def data(self) -> dict[str, Any]:
        """The map as JSON for a browser; points are little-endian uint16 and values uint8, in base64."""
        counts = np.bincount(self.topics, minlength=len(self.labels)).tolist()
        centres = [self.points[self.topics == topic].mean(axis=0).tolist() for topic in range(len(self.labels))]
        topics = [
            {"label": label, "at": at, "documents": n}
            for label, at, n in zip(self.labels, centres, counts, strict=True)
        ]
        colours = {"topic": (self.labels, self.topics), **self.colours}
        return {
            "points": _base64((self.points * 65535).astype("<u2")),
            "topics": topics,
            "colours": {
                key: {"names": names, "values": _base64(values.astype(np.uint8))}
                for key, (names, values) in colours.items()
            },
        }

    def title(self, snapshot: SearchSnapshot, point: int) -> tuple[str, str]:
        """Id and title of a document by the number of its point."""
        pool, number = snapshot.view.pool, int(self.documents[point])
        ids = snapshot.view.derived("explore documents", pool.document_ids)
        chunk = int(pool.indices[pool.indptr[self.passages[point]]])
        return ids[number], document_label(snapshot, number, chunk)

    def page(self, snapshot: SearchSnapshot, topic: int, start: int = 0) -> Page:
        """Documents of a topic, those in its middle first."""
        members = np.flatnonzero(self.topics == topic)
        if not len(members):
            return Page((), 0)
        distances = np.linalg.norm(self.points[members] - self.points[members].mean(axis=0), axis=1)
        shown = members[np.argsort(distances, kind="stable")][start : start + PAGE]
        passages = np.bincount(snapshot.view.pool.chunk_documents[snapshot.view.passing_chunks(snapshot.where)])
        about = (f"{passages[self.documents[point]]:,}" for point in shown.tolist())
        rows = (TableRow(*self.title(snapshot, point), text) for point, text in zip(shown.tolist(), about, strict=True))
        return Page(tuple(rows), len(members))

    def walks(self, snapshot: SearchSnapshot, hits: Sequence[Hit]) -> tuple[list[int], list[tuple[int, int]]]:
        """Points of hits, best first (-1: hidden), and the steps of their paths from one document to another."""
        names = Names.of(snapshot)
        ends, steps = [], dict[tuple[int, int], None]()
        for hit in hits:
            ids = [name for step in hit.path for name in step.ids if not step.step.startswith("vote")]
            points = [self._point(names, name) for name in [*ids, hit.unit.id]]
            ends.append(points[-1])
            visited = [point for point in points if point >= 0]
            steps |= dict.fromkeys((a, b) for a, b in pairwise(visited) if a != b)
        return ends, list(steps)

    def _point(self, names: Names, unit_id: str) -> int:
        position, view = names.position(unit_id), names.snapshot.view
        if position is None or view.kind_names[view.kinds[position]] != UnitKind.CHUNK.value:
            return -1
        document = view.pool.chunk_documents[view.pool.indices[view.pool.indptr[position]]]
        point = int(np.searchsorted(self.documents, document))
        return point if point < len(self.documents) and self.documents[point] == document else -1


def _base64(array: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(array.tobytes()).decode()


def _save(corpus_map: CorpusMap, folder: Path) -> None:
    arrays: dict[str, Any] = {name: getattr(corpus_map, name) for name in _ARRAYS}
    arrays |= {f"colour {number}": values for number, (_, values) in enumerate(corpus_map.colours.values())}
    names = {key: names for key, (names, _) in corpus_map.colours.items()}
    np.savez(folder / _MAP_FILE, **arrays, names=np.array(json.dumps([corpus_map.labels, names])))


def _load(folder: Path) -> CorpusMap:
    with np.load(folder / _MAP_FILE) as file:
        labels, names = json.loads(str(file["names"]))
        colours = {key: (tuple(values), file[f"colour {i}"]) for i, (key, values) in enumerate(names.items())}
        return CorpusMap(**{name: file[name] for name in _ARRAYS}, labels=tuple(labels), colours=colours)


def _made(snapshot: SearchSnapshot) -> CorpusMap:
    from scipy import sparse

    view, pool = snapshot.view, snapshot.view.pool
    positions = np.repeat(np.arange(view.size), np.diff(pool.indptr))
    shown = view.passing_chunks(snapshot.where)[pool.indices]
    shown &= view.kinds[positions] == list(view.kind_names).index(UnitKind.CHUNK.value)
    positions, chunks = positions[shown], pool.indices[shown]
    documents, rows = np.unique(pool.chunk_documents[chunks], return_inverse=True)
    # In the order of the ids: that of the pool depends on what was added and deleted before.
    ids = view.derived("explore documents", pool.document_ids)
    by_id = np.array(sorted(range(len(documents)), key=lambda at: ids[documents[at]]), dtype=np.int64)
    rank_by_id = np.argsort(by_id)
    documents, rows = documents[by_id], rank_by_id[rows]
    order = np.lexsort((chunks, rows))
    first = order[np.searchsorted(rows[order], np.arange(len(documents)))]
    members = sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, positions)), (len(documents), view.size))
    # Rounded: an embedder differs in the last digit with its batch, and t-SNE makes another map of that.
    vectors = unit_rows(np.asarray(members @ view.matrix, dtype=np.float32))
    vectors = np.asarray(np.round(vectors * _VECTOR_LEVELS) / _VECTOR_LEVELS, dtype=np.float32)
    points, topics = _layout(vectors)
    labels = _labels(snapshot, points, topics, (documents, chunks[first], positions[first]))
    return CorpusMap(
        documents=documents[rank_by_id],
        passages=positions[first][rank_by_id],
        points=points[rank_by_id],
        topics=topics[rank_by_id],
        labels=tuple(labels),
        colours=dict(_colours(snapshot, documents[rank_by_id], chunks[first][rank_by_id])),
    )


def _layout(vectors: FloatArray) -> tuple[FloatArray, IntArray]:
    """Coordinates of documents from 0 to 1, `[n, 2]`, and their topics, `[n]`."""
    n = len(vectors)
    if n < _MIN_MAP_DOCUMENTS or not vectors.any():
        angles = np.arange(n) * (2 * np.pi / max(n, 1))
        return (0.5 + 0.4 * np.stack((np.cos(angles), np.sin(angles)), 1)).astype(np.float32), np.zeros(n, np.int64)
    from sklearn.cluster import KMeans
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    random = np.random.default_rng(0)
    chosen = np.sort(random.choice(n, min(n, _LANDMARKS), replace=False))
    landmarks = vectors[chosen]
    # Rows of noise so small that nothing moves: equal vectors have no principal axes to begin with.
    noise = random.normal(scale=1e-4, size=landmarks.shape).astype(np.float32)
    perplexity = min(30.0, (len(chosen) - 1) / 3)
    # The threads of OpenMP wait for each other by spinning: on a busy machine several take ten times as long as one.
    with threadpool_limits(1, user_api="openmp"):
        placed = TSNE(init="pca", random_state=0, max_iter=500, perplexity=perplexity).fit_transform(landmarks + noise)
    points = np.empty((n, 2), dtype=np.float32)
    spread = 0.5 * np.ptp(placed, axis=0) / np.sqrt(len(chosen))
    for start in range(0, n, _DOCUMENTS_PER_BLOCK):
        cosines = vectors[start : start + _DOCUMENTS_PER_BLOCK] @ landmarks.T
        near = np.argpartition(-cosines, min(_NEAREST, len(chosen) - 1), axis=1)[:, :_NEAREST]
        weights = np.take_along_axis(cosines, near, axis=1)
        weights = np.exp(30 * (weights - weights.max(axis=1, keepdims=True)))
        means = (weights[..., None] * placed[near]).sum(axis=1) / weights.sum(axis=1, keepdims=True)
        points[start : start + _DOCUMENTS_PER_BLOCK] = means + spread * random.normal(size=means.shape)
    points[chosen] = placed
    points = (points - points.min(axis=0)) / np.maximum(np.ptp(points, axis=0), 1e-9)
    with threadpool_limits(1, user_api="openmp"):
        groups = KMeans(min(_TOPICS, max(2, n // _PER_TOPIC)), random_state=0, n_init=4).fit(points[chosen])
        return points.astype(np.float32), groups.predict(points).astype(np.int64)


def _labels(snapshot: SearchSnapshot, points: FloatArray, topics: IntArray, ends: Sequence[IntArray]) -> list[str]:
    """Labels of topics: phrases of their titles, else of their first passages, else the titles in their middle."""
    documents, chunks, passages = ends

    def first_passage(at: int) -> Unit:
        return snapshot.view.units([int(passages[at])])[0]

    def language_of(at: int) -> str:
        return first_passage(at).language

    labels = topic_labels(
        lambda at: document_label(snapshot, int(documents[at]), int(chunks[at])), topics, language_of=language_of
    )
    if not all(labels):

        def text(at: int) -> str:
            unit = first_passage(at)
            blocks = (block for block in blocks_below_title(unit) if block.kind != HEADING)
            text = "\n".join(unit.text[block.start : block.end] for block in blocks)
            return without_sessions(text)[:_READ_LETTERS]

        of_texts = topic_labels(text, topics, language_of=language_of, prose=True)
        used_phrases = set(", ".join(labels).split(", "))
        distinct = [
            ", ".join(phrase for phrase in label.split(", ") if phrase not in used_phrases) for label in of_texts
        ]
        labels = [label or other for label, other in zip(labels, distinct, strict=True)]
    for topic in [topic for topic, label in enumerate(labels) if not label]:
        members = np.flatnonzero(topics == topic)
        distances = np.linalg.norm(points[members] - points[members].mean(axis=0), axis=1)
        middle = members[np.argsort(distances, kind="stable")][:_LABEL_DOCUMENTS].tolist()
        titles = (document_label(snapshot, int(documents[at]), int(chunks[at]), _SHORT) for at in middle)
        unnumbered = (_NUMBERING.sub("", title) for title in titles)
        labels[topic] = ", ".join(islice(dict.fromkeys(unnumbered), _PHRASES))
    return labels


def topic_labels(
    title_of: Callable[[int], str],
    topics: IntArray,
    *,
    language_of: Callable[[int], str] = lambda _: ENGLISH,
    prose: bool = False,
) -> list[str]:
    """Phrases that many titles of a topic have and few others, each for one topic; empty where there are none.

    In prose, where all words occur, a phrase counts in topics that often have it, and names come before other words.
    """
    random = np.random.default_rng(0)
    read: list[list[str]] = []
    idle_words: list[frozenset[str]] = []
    for topic in range(int(topics.max(initial=-1)) + 1):
        members = np.flatnonzero(topics == topic)
        chosen = members[random.choice(len(members), min(_LABEL_DOCUMENTS, len(members)), replace=False)]
        read.append([title_of(at) for at in np.sort(chosen).tolist()])
        spoken = ranked_languages(map(language_of, chosen[:_LANGUAGE_DOCUMENTS].tolist()))[0]
        idle_words.append(_OF_NO_TOPIC | language(spoken).listed_words)
    if len(read) == 1:
        return ["all documents"]
    if prose:
        read = _own_lines(read)
    found_in = [
        [_phrases(title, idle, prose=prose) for title in titles] for titles, idle in zip(read, idle_words, strict=True)
    ]
    counts = [Counter(key for phrase_counts in topic for key in phrase_counts) for topic in found_in]
    spelled: dict[tuple[str, ...], Counter[str]] = {}
    for key, phrase in chain.from_iterable(phrase_counts.items() for topic in found_in for phrase_counts in topic):
        spelled.setdefault(key, Counter())[phrase] += 1
    sizes = np.minimum(np.bincount(topics), _LABEL_DOCUMENTS).tolist()
    everywhere = sum(counts, Counter[tuple[str, ...]]())
    read_in_all = sum(sizes)
    rates = {
        (topic, key): n / sizes[topic] * np.log(n / sizes[topic] / (everywhere[key] / read_in_all)) * (1 + len(key) / 2)
        for topic, phrase_counts in enumerate(counts)
        for key, n in phrase_counts.items()
        if n > max(min(_FEW_TITLES, sizes[topic]) - 1, sizes[topic] * _SHARE)
        and everywhere[key] - n < _OUTSIDE * (read_in_all - sizes[topic])
    }
    labels: list[list[str]] = [[] for _ in counts]
    used: set[str] = set()
    spelling = {key: spelled[key].most_common(1)[0][0] for _, key in rates}
    if prose:
        rates = {
            (topic, key): rate * (_NAME_WEIGHT if spelling[key].istitle() else 1)
            for (topic, key), rate in rates.items()
        }
    for topic, key in sorted(rates, key=lambda phrase_counts: (-rates[phrase_counts], phrase_counts)):
        if len(labels[topic]) < _PHRASES and used.isdisjoint(key):
            labels[topic].append(spelling[key])
            used |= set(key)
    return [", ".join(phrases) for phrases in labels]


def _own_lines(read: Sequence[Sequence[str]]) -> list[list[str]]:
    """Texts without lines that several of them share."""
    lines = [[set(text.split("\n")) for text in texts] for texts in read]
    documents = Counter(line for texts in lines for text in texts for line in text)
    return [
        [plain_text("\n".join(sorted(line for line in text if documents[line] < _FEW_TITLES))) for text in texts]
        for texts in lines
    ]


def _phrases(title: str, idle_words: Collection[str], *, prose: bool = False) -> dict[tuple[str, ...], str]:
    """Phrases of up to three words of a title by their stems, without numbers, idle words and names of parts.

    Of prose without phrases that have a word which any text may have.
    """
    is_file_name = " " not in title
    phrases: dict[tuple[str, ...], str] = {}
    run: list[re.Match[str]] = []
    for match in (_FILE_WORD if is_file_name else _LABEL_WORD).finditer(f"{title} ."):
        word = match[0].lower()
        if len(word) > 1 and word not in idle_words and word not in HEADING_PARTS:
            run.append(match)
            continue
        for length in range(1, _MAX_PHRASE_WORDS + 1):
            for start in range(len(run) - length + 1):
                words = run[start : start + length]
                weak = [_is_weak(word[0]) or (prose and word[0].islower() and is_everyday(word[0])) for word in words]
                if not any(weak) or (length > 1 and not prose):
                    phrases[tuple(stem(word[0].lower()) for word in words)] = title[words[0].start() : words[-1].end()]
        run = []
    return phrases


def _is_weak(word: str) -> bool:
    """True if a word alone says little of a topic: a verb of instructions, or a word that fits any subject."""
    is_short = len(word) < _SHORTEST and word.islower()
    vague_words = VAGUE_WORDS | VAGUE_NOUNS | OPENERS
    return is_short or word in ACTIONS or word.lower() in vague_words


def _colours(
    snapshot: SearchSnapshot, documents: IntArray, chunks: IntArray
) -> Iterator[tuple[str, tuple[tuple[str, ...], IntArray]]]:
    """Folders, and the values of every metadata key that several documents share."""
    view = snapshot.view
    ids = view.derived("explore documents", view.pool.document_ids)
    columns: dict[str, list[Any]] = {"folder": [dirname(ids[number]) or _ROOT for number in documents.tolist()]}
    numbers, metadata = view.chunk_metadata
    rows = [metadata[number] for number in numbers[chunks].tolist()]
    for key in sorted({key for row in map(dict, rows) for key in row if not key.startswith("sire_")})[:_KEYS]:
        columns[key] = [row.get(key) for row in rows]
    for key, values in columns.items():
        names, coded = _coded(values)
        if len(names) > 1:
            yield key, (names, coded)


def _coded(values: Sequence[Any]) -> tuple[tuple[str, ...], IntArray]:
    """Names of values and their number for every document; none if hardly two documents have the same."""
    plain = [None if isinstance(value, (list, dict)) else value for value in values]
    distinct = {value for value in plain if value is not None}
    names = {value: shown_value(value).strip() or "(empty)" for value in distinct}
    if len(distinct) > _COLOURS and all(isinstance(value, (int, float)) for value in distinct):
        parts = np.array_split(sorted(distinct), _COLOURS)
        names = {value: f"{part[0]:g} to {part[-1]:g}" for part in parts for value in part.tolist()}
    counts = Counter(names[value] for value in plain if value is not None)
    frequent = sorted(name for name, _ in counts.most_common(_COLOURS))
    if sum(counts[name] for name in frequent) * 2 < len(values):
        return (), np.empty(0, np.int64)
    numbers = {name: number for number, name in enumerate(frequent)}
    coded = np.asarray([numbers.get(names.get(value, ""), len(numbers)) for value in plain], dtype=np.int64)
    return (*numbers, *(("other or none",) if (coded == len(numbers)).any() else ())), coded
