"""The knowledge graph of a pool as arrays, and the entities that a question names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arrays.grouping import GOLDEN, by_appearance, id_codes, positions_in, ranges, stable_argsort
from sire_core.arrays.personalized_pagerank import CSRGraph, personalized_pagerank
from sire_core.extraction.title_links import WORD, TitleLinker
from sire_core.knowledge import MENTIONS
from sire_core.knowledge.edge_columns import EdgeColumns, NameLists, word_hashes
from sire_core.search.ranking import LiftedRanking, ScoredRanking, cosine_step
from sire_core.types import PathStep, UnitKind, digest, hash64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.filters import Filter
    from sire_core.protocols import (
        BoolArray,
        DoubleArray,
        FloatArray,
        HashArray,
        IdArray,
        IntArray,
        Ranking,
        Similarities,
        View,
    )


_BACK = 3  # Maximum steps from a passage back to a start


@dataclass(frozen=True, slots=True)
class Walk:
    """A graph over passages (the first nodes) and entities (the nodes after them).

    Attributes:
        graph: The graph.
        passages: Number of passages.
        mentions: Passages that name each entity, `[entities]`; 0 for those that no allowed passage names.
    """

    graph: CSRGraph
    passages: int
    mentions: IntArray

    def mass(
        self, entities: DoubleArray, passages: DoubleArray, damping: float, threshold: float = 1e-9
    ) -> DoubleArray:
        """PageRank of all nodes, `[nodes]`; zeros if nothing has a starting weight.

        Args:
            entities: Starting weight of every entity, `[entities]`.
            passages: Starting weight of every passage, `[passages]`.
            damping: Probability of following an edge instead of restarting.
            threshold: Precision; see `personalized_pagerank`.
        """
        seeds = np.concatenate((passages, entities))
        if seeds.sum() <= 0:
            return np.zeros(self.graph.size)
        return personalized_pagerank(self.graph, seeds, damping, threshold=threshold).scores


def min_max(values: FloatArray, allowed: BoolArray | None = None) -> DoubleArray:
    """Scale values to 0 to 1; all 1 if they are equal.

    Args:
        values: `[n]`.
        allowed: Which count, `[n]`; others become 0. None means all.
    """
    scaled = np.zeros(len(values))
    rows = np.arange(len(values)) if allowed is None else np.flatnonzero(allowed)
    if len(rows):
        least, highest = float(values[rows].min()), float(values[rows].max())
        scaled[rows] = (values[rows] - least) / (highest - least) if highest > least else 1.0
    return scaled


def walk_ranking(
    paths: WalkPaths, scores: DoubleArray, cosines: Similarities, allowed: BoolArray | None, cosine_weight: float
) -> Ranking:
    """Rank passages by a score, the highest scaled to 1, plus their cosine; all other units come after them by cosine.

    Args:
        paths: Explains the hits.
        scores: Of every passage, `[passages]`.
        cosines: Of the whole pool.
        allowed: Units that may appear, `[size]`; None for all.
        cosine_weight: Weight of the cosine.
    """
    scaled = scores / (float(scores.max(initial=0.0)) or 1.0)
    passages = paths.graph.chunk_positions
    if allowed is None and len(passages) == len(cosines):
        reached = np.flatnonzero(scaled)
        return LiftedRanking(cosines, paths.path, cosine_weight, reached, scaled[reached])
    all_cosines = cosines.all()
    ranked = all_cosines - 2.0  # after every passage
    ranked[passages] = (scaled + cosine_weight * all_cosines[passages]).astype(np.float32)
    return ScoredRanking(ranked, allowed, paths.path)


@dataclass(frozen=True, slots=True, eq=False)
class WalkPaths:
    """Paths of hits: the strongest steps of a walk from its start to a passage.

    Attributes:
        view: The pool.
        graph: The mentions.
        walk: The graph that was walked.
        starts: Why a walk starts at an entity, by entity number.
        mass: PageRank of all nodes, `[nodes]`.
        cosines: Of the whole pool.
    """

    view: View
    graph: EntityGraph
    walk: Walk
    starts: Mapping[int, str]
    mass: DoubleArray
    cosines: Similarities
    _known: dict[int, tuple[int, ...]] = field(default_factory=dict, init=False)

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Return steps by entities and passages, then the cosine."""
        cosine = cosine_step(self.view, position, self.cosines.at(np.array([position]))[0])
        passage = int(np.searchsorted(self.graph.chunk_positions, position))
        is_passage = passage < self.walk.passages and self.graph.chunk_positions[passage] == position
        return (*self._towards(passage), cosine) if is_passage else (cosine,)

    def _towards(self, passage: int) -> tuple[PathStep, ...]:
        """Steps from the start of the walk to a passage."""
        nodes = [passage]
        while len(nodes) <= _BACK and not self._is_start(nodes[-1]):
            before = next((sender for sender in self._senders(nodes[-1]) if sender not in nodes[-2:-1]), None)
            if before is None:
                break
            nodes.append(before)
        if len(nodes) > _BACK and not self._is_start(nodes[-1]):
            nodes.pop()  # a name without a reason explains nothing
        nodes.reverse()
        size = self.walk.passages
        steps = [
            self._step(source, target)
            for source, target in pairwise(nodes)
            if target == passage or target >= size or source < size  # the step that follows says what it names
        ]
        if len(nodes) > 1 and self._is_start(nodes[0]):
            number = nodes[0] - self.walk.passages
            steps.insert(0, PathStep("question", (self._node_id(nodes[0]),), self.starts[number]))
        return tuple(steps)

    def _is_start(self, node: int) -> bool:
        return node - self.walk.passages in self.starts

    def _step(self, source: int, target: int) -> PathStep:
        ids = (self._node_id(source), self._node_id(target))
        if target >= self.walk.passages:
            if source >= self.walk.passages:
                return PathStep("entity", ids, "a relation or a similar name joins both")
            return PathStep("passage", ids, "this passage names the next entity")
        if source < self.walk.passages:
            return PathStep("passage", ids, "the passage beside it in the document")
        name = self.graph.name_in(target, source - self.walk.passages)
        return PathStep("entity", ids, f"the passage names {name or 'the entity'}")

    def _senders(self, node: int) -> tuple[int, ...]:
        """The two neighbours that contribute most to a node, best first; cached, as a hub leads to many hits."""
        if node not in self._known:
            neighbors, _ = self.walk.graph.neighbors(node)
            reached = neighbors[self.mass[neighbors] > 0]
            sent = np.array([self._sent(neighbor, node) for neighbor in reached.tolist()])
            self._known[node] = tuple(reached[np.argsort(-sent, kind="stable")[:2]].tolist())
        return self._known[node]

    def _sent(self, neighbor: int, node: int) -> float:
        targets, probabilities = self.walk.graph.neighbors(neighbor)
        return float(self.mass[neighbor] * probabilities[np.searchsorted(targets, node)])

    def _node_id(self, node: int) -> str:
        if node >= self.walk.passages:
            return self.view.shown_entity(self.graph.entity_ids[node - self.walk.passages])
        return str(self.view.ids[self.graph.chunk_positions[node]].decode())


@dataclass(frozen=True, eq=False)
class EntityGraph:
    """Mentions of entities in the passages of a pool, with the names that the passages use.

    Attributes:
        chunk_positions: Positions of the passages in the pool; passage number i is `chunk_positions[i]`.
        passages: Passage number of every mention, ascending, `[m]`.
        entities: Entity number of every mention, `[m]`.
        titles: Whether the passage is titled by the entity, `[m]`.
        names: Names that the passages spell out.
        ids: Ids of the entities by number.
    """

    chunk_positions: IntArray
    passages: IntArray
    entities: IntArray
    titles: BoolArray
    names: SpelledNames
    ids: IdArray

    @cached_property
    def entity_ids(self) -> Sequence[str]:
        """Ids of the entities by number."""
        return [name.decode() for name in self.ids.tolist()]

    @classmethod
    def of(cls, view: View) -> EntityGraph:
        """Return the graph of a pool, made once per snapshot."""
        return view.derived("entity graph", lambda: cls._read(view))

    @classmethod
    def _read(cls, view: View) -> EntityGraph:
        positions = np.flatnonzero(view.kinds == list(view.kind_names).index(UnitKind.CHUNK.value)).astype(np.int64)
        columns = EdgeColumns.of_blocks(view.notes(f"{MENTIONS}/"))
        passages = positions_in(id_codes(view.ids[positions]), id_codes(columns.sources))
        _, targets = np.unique(id_codes(columns.targets), return_inverse=True)
        rows = stable_argsort(passages * len(targets) + targets)
        rows = rows[passages[rows] >= 0]  # another process may have changed the index meanwhile
        entities, first = by_appearance(targets[rows])
        titles, ids = columns.titles[rows], columns.targets[rows[first]]
        if not ids.tobytes().isascii():
            raise ValueError("An id of an entity is not ASCII.")  # it is decoded when it is shown
        return cls(
            chunk_positions=positions,
            passages=passages[rows],
            entities=entities,
            titles=titles,
            names=SpelledNames(columns.lists, columns.numbers[rows], titles),
            ids=ids,
        )

    @classmethod
    def shown(cls, view: View) -> EntityGraph:
        """The graph with ids of entities as paths have them."""
        graph = cls.of(view)
        return replace(graph, ids=np.array([*map(view.shown_entity, graph.entity_ids)], dtype=bytes))

    def link(self, question: str, allowed: BoolArray | None = None) -> Mapping[int, str]:
        """Find the entities that a question names, each with its name as the question spells it.

        Args:
            question: The question; titles count with and without their bracketed part, the longest name wins.
            allowed: Allowed passages, `[passages]`; one of them must spell out the name.
        """
        names: dict[int, str] = {}
        for name, mentions in self.names.said(question).items():
            for mention in mentions:
                if allowed is None or allowed[self.passages[mention]]:
                    names.setdefault(int(self.entities[mention]), name)
        return names

    def called(self, passages: IntArray, keys: HashArray) -> IntArray:
        """Return the entities that passages call by certain names, -1 where a passage uses no such name.

        Args:
            passages: Passage numbers, `[n]`.
            keys: `hash64` of the `name_key` of a name, `[n]`.
        """
        forms, numbers = self.names.lists.forms, self.names.numbers
        counts = forms.counts[numbers]
        name_keys = forms["keys"][ranges(forms.starts()[numbers], counts)]
        mentions = np.repeat(np.arange(len(numbers)), counts)
        rows = positions_in(_paired(self.passages[mentions], name_keys), _paired(passages, keys))
        return np.where(rows >= 0, self.entities[mentions[rows]], -1) if len(mentions) else rows

    def frequency(self, entity: int) -> int:
        """Return the number of passages that name an entity."""
        return int((self.entities == entity).sum())

    def walk(self, title_weight: float, rarity: float, allowed: BoolArray | None = None) -> Walk:
        """Build the graph for random walks.

        From a passage the walker goes to the entities it names, to rare ones more often; from an entity to the
        passages that name it, above all to those that are titled by it.

        Args:
            title_weight: Weight of the step from an entity to a passage it titles; 1 is that of any other passage.
            rarity: Power of the inverse document frequency that weighs the steps to entities; 0 for no weight.
            allowed: Passages that may be walked through, `[passages]`; mentions of others do not exist.
        """
        keep = np.ones(len(self.passages), dtype=bool) if allowed is None else allowed[self.passages]
        passages, entities, titles = self.passages[keep], self.entities[keep], self.titles[keep]
        size = len(self.chunk_positions)
        mentions = np.bincount(entities, minlength=len(self.ids)).astype(np.int64)
        alive = size if allowed is None else int(allowed.sum())
        inverse = np.log1p(alive / np.maximum(mentions, 1)) ** rarity
        graph = CSRGraph.from_edges(
            size + len(self.ids),
            np.concatenate((passages, size + entities)),
            np.concatenate((size + entities, passages)),
            np.concatenate((inverse[entities], np.where(titles, title_weight, 1.0))),
        )
        return Walk(graph, size, mentions)

    def name_in(self, passage: int, entity: int) -> str:
        """Return the name of an entity in a passage; empty if the passage only refers to it."""
        start, end = np.searchsorted(self.passages, [passage, passage + 1]).tolist()
        mentions = start + np.flatnonzero(self.entities[start:end] == entity)
        return next((name for mention in mentions.tolist() for name in self.names.names(mention)[:1]), "")


def _paired(passages: IntArray, keys: HashArray) -> HashArray:
    """Hashes of pairs of a passage and the key of a name."""
    return np.asarray(keys ^ (passages.astype(np.uint64) + np.uint64(1)) * GOLDEN)


@dataclass(frozen=True, eq=False)
class SpelledNames:
    """Finds names as a `TitleLinker` of all would, but parses only those that share words with the question."""

    lists: NameLists  # distinct lists of names
    numbers: IntArray  # list of every mention
    titles: BoolArray  # whether the entity titles the passage, by mention

    # Made for the first question that is looked through for names: not every ranker does that.

    @cached_property
    def _first(self) -> _Sorted:
        return _Sorted(self.lists.forms["first"])

    @cached_property
    def _keys(self) -> _Sorted:
        return _Sorted(self.lists.forms["keys"])

    @cached_property
    def _owners(self) -> IntArray:
        return self.lists.forms.groups()

    @cached_property
    def _starts(self) -> IntArray:
        return self.lists.forms.starts()

    @cached_property
    def _mentions(self) -> _Sorted:
        return _Sorted(self.numbers)

    def names(self, mention: int) -> list[str]:
        """Return the names of a mention."""
        return self.lists.names(int(self.numbers[mention]))

    def said(self, question: str) -> dict[str, list[int]]:
        """Return the names in a question as it spells them, in order, with their mentions, titles first."""
        candidates = self._candidate_lists(question)
        names = dict(zip(candidates.tolist(), self.lists.names_of(candidates), strict=True))
        mentions = self._mentions.rows(candidates)
        # Titles come first: of two names that differ in their bracketed part only, they decide what both mean.
        mentions = mentions[np.lexsort((mentions, ~self.titles[mentions]))]
        by_name: dict[str, list[int]] = {}
        for mention, index in zip(mentions.tolist(), self.numbers[mentions].tolist(), strict=True):
            for name in names[index]:
                by_name.setdefault(name, []).append(mention)
        mentions_by_name: dict[str, list[int]] = {}
        for name, spelled in TitleLinker(list(by_name)).mentions(question).items():
            mentions_by_name.setdefault(spelled, []).extend(by_name[name])
        return mentions_by_name

    def _candidate_lists(self, question: str) -> IntArray:
        """Lists with a form that begins and ends with words of a question, and those with forms of the same keys."""
        words = {*word_hashes(question), *(hash64(word.lower()) for word in WORD.findall(question))}
        hashes = np.array(sorted(words), dtype=np.uint64)
        forms = self._first.rows(hashes)
        for name in ("last", "second"):
            forms = forms[np.isin(self.lists.forms[name][forms], hashes)]
        lists = np.unique(self._owners[forms])
        form_rows = ranges(self._starts[lists], self.lists.forms.counts[lists])
        return np.unique(self._owners[self._keys.rows(np.unique(self.lists.forms["keys"][form_rows]))])


class _Sorted:
    """Index of rows by value."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._order = np.argsort(values, kind="stable")
        self._values = values[self._order]

    def rows(self, wanted: NDArray[Any]) -> IntArray:
        starts = np.searchsorted(self._values, wanted, side="left")
        return self._order[ranges(starts, np.searchsorted(self._values, wanted, side="right") - starts)]


def shown_entities(view: View, allow: Filter) -> Mapping[str, str]:
    """Ids of entities for paths, by their stored ids: digests of the first visible passage that names one, and how.

    A stored id is a digest of names, also of those that hidden passages have merged, which could be guessed.
    """

    def read() -> Mapping[str, str]:
        graph, allowed = EntityGraph.of(view), view.allowed(allow)
        assert allowed is not None
        seen = np.flatnonzero(allowed[graph.chunk_positions[graph.passages]])
        entities, first = np.unique(graph.entities[seen], return_index=True)
        shown = dict.fromkeys(graph.entity_ids, "hidden")
        for entity, mention in zip(entities.tolist(), seen[first].tolist(), strict=True):
            passage = view.ids[graph.chunk_positions[graph.passages[mention]]].decode()
            shown[graph.entity_ids[entity]] = digest("entity", passage, *graph.names.names(mention))
        return shown

    return view.derived("shown entities", read)
