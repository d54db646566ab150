"""Labels of the nodes of pictures, and the paths from a question to its hits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from sire_core.explore.highlight import plain_text, shared_words
from sire_core.explore.name_kinds import NameKind, kind_of_name
from sire_core.explore.picture import Link, Node, Picture, PictureBuilder
from sire_core.explore.short_titles import compact_title, compact_titles, short_title
from sire_core.knowledge.entity_graph import EntityGraph
from sire_core.search.explanation import text_below_title, without_sessions
from sire_core.text.pluralize import shorten
from sire_core.text.snippets import snippet
from sire_core.text.words import name_key, whole_name

if TYPE_CHECKING:
    from sire_core.protocols import BoolArray, IntArray
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.types import Hit, PathStep, Unit

_MAX_LABEL_LETTERS, _TITLE = 80, 40
_TEXT, _QUESTION = 200, 300
_MAX_BOX_LETTERS = 2000  # Letters of a passage that are read for the text in its box
_BRACKETS = re.compile(r"(!?)\[([^\[\]]+)\]")
_MAX_KIND_PASSAGES = 3  # Passages that are read for the kind of a name


@dataclass(frozen=True, slots=True)
class Names:
    """Looks up units and entities by id; what the filter of the snapshot hides is not found.

    Attributes:
        snapshot: The index.
        graph: Its entity graph.
        allowed: Units that pass the filter, `[size]`; None for all.
        entities: Numbers of the entities of the graph, by id.
    """

    snapshot: SearchSnapshot
    graph: EntityGraph
    allowed: BoolArray | None
    entities: Mapping[str, int]

    @classmethod
    def of(cls, snapshot: SearchSnapshot) -> Names:
        """The names of a snapshot."""
        view = snapshot.view
        graph = view.derived("shown entity graph", lambda: EntityGraph.shown(view))
        numbers = view.derived("entity numbers", lambda: {entity: n for n, entity in enumerate(graph.entity_ids)})
        return cls(snapshot, graph, view.allowed(snapshot.where), numbers)

    def position(self, unit_id: str) -> int | None:
        """Position of a visible unit, else None."""
        position = self.snapshot.view.places().get(unit_id)
        if position is None or (self.allowed is not None and not self.allowed[position]):
            return None
        return position

    def unit(self, unit_id: str) -> Unit | None:
        """A visible unit, else None."""
        position = self.position(unit_id)
        return None if position is None else self.snapshot.view.units([position])[0]

    def mentions(self, entity_id: str) -> IntArray:
        """Numbers of the mentions of an entity in visible passages; empty if the id is no entity's."""
        number = self.entities.get(entity_id)
        if number is None:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero((self.graph.entities == number) & self.seen())

    def seen(self) -> BoolArray:
        """Mask of the mentions in visible passages, `[m]`."""
        graph = self.graph
        if self.allowed is None:
            return np.ones(len(graph.passages), dtype=bool)
        return np.asarray(self.allowed[graph.chunk_positions[graph.passages]])

    def entity(self, entity_id: str, passage_id: str = "") -> str:
        """Name of an entity: as the passage spells it, else its most frequent spelling; empty if there is none."""
        number = self.entities.get(entity_id)
        position = self.position(passage_id) if passage_id else None
        if number is not None and position is not None:
            passage = int(np.searchsorted(self.graph.chunk_positions, position))
            spelled = self.graph.name_in(passage, number)
            if spelled:
                return spelled
        return next(iter(self.spellings(entity_id)), "")

    def spellings(self, entity_id: str) -> dict[str, int]:
        """Names of an entity in visible passages, with the number of passages; titles first."""
        mentions = self.mentions(entity_id)
        counts: dict[str, int] = {}
        for mention in mentions[np.argsort(~self.graph.titles[mentions], kind="stable")].tolist():
            for name in self.graph.names.names(mention):
                counts[name] = counts.get(name, 0) + 1
        return counts

    def node(self, identifier: str, *, passage: str = "", rank: int = 0, question: str = "") -> Node | None:
        """The node of an id, of a unit with what it says of a question; None if it is unknown or hidden."""
        unit = self.unit(identifier)
        if unit is not None:
            text = without_sessions(text_below_title(unit))
            body = plain_text(text[:_MAX_BOX_LETTERS])
            label = compact_title(self.snapshot, unit.title, _TITLE) or shorten(body or unit.id, _MAX_LABEL_LETTERS)
            snippet_text = snippet(text, question, _TEXT) if question else shorten(body, _TEXT)
            return Node(identifier, unit.kind.value, label, snippet_text, rank)
        name = self.entity(identifier, passage)
        kind = self.kind(identifier, name).kind if name else ""
        return Node(identifier, "entity", shorten(name, _MAX_LABEL_LETTERS), name_kind=kind) if name else None

    def kind(self, entity_id: str, name: str) -> NameKind:
        """Kind of an entity with a name, as far as a model, its form or a few of its passages say."""
        mentions, graph = self.mentions(entity_id), self.graph
        mentions = mentions[np.argsort(~graph.titles[mentions], kind="stable")]
        passages = list(dict.fromkeys(graph.passages[mentions[: 2 * _MAX_KIND_PASSAGES]].tolist()))[:_MAX_KIND_PASSAGES]
        units = self.snapshot.view.units(graph.chunk_positions[passages]) if passages else []
        spelled = {
            name_key(spelling)
            for mention in mentions[:_MAX_KIND_PASSAGES].tolist()
            for spelling in graph.names.names(mention)
        }
        types = [
            entity.type
            for record in self.snapshot.view.model_records(units)
            for entity in record.entities
            if entity.type and not spelled.isdisjoint(map(name_key, (entity.name, *entity.aliases)))
        ]
        is_title = bool(graph.titles[mentions].any())
        return kind_of_name(name, is_title=is_title, texts=[unit.text for unit in units], types=types)


QUESTION = "question"
"""Id of the question's node."""
_ASIDE = ("vector", "words", "vote")
_MAX_PATH_NODES = 6
_LINK_LETTERS = 200


@dataclass(frozen=True, slots=True)
class Reason:
    """A step on the path to a hit, in words.

    Attributes:
        step: Kind of the step.
        note: The reason.
        over: Nodes that it passes: ids and labels.
    """

    step: str
    note: str
    over: tuple[tuple[str, str], ...]


def _readable_path(names: Names, hit: Hit) -> list[PathStep]:
    """The path of a hit; its notes without what is left of links and pictures: `[words]` of `[words](address)`."""

    def readable(step: PathStep) -> PathStep:
        if "[" not in step.note:
            return step
        texts = "\n".join(unit.text for unit in map(names.unit, (*step.ids, hit.unit.id)) if unit is not None)

        def words(match: re.Match[str]) -> str:
            return match[2] if match[1] or f"{match[0]}(" in texts else match[0]

        return replace(step, note=_BRACKETS.sub(words, step.note), sentence=_BRACKETS.sub(words, step.sentence))

    return [readable(step) for step in hit.path]


def reasons(snapshot: SearchSnapshot, hit: Hit) -> list[Reason]:
    """The path of a hit as a list."""
    names = Names.of(snapshot)
    steps = []
    for step in _readable_path(names, hit):
        nodes = (names.node(name, passage=step.ids[-1]) for name in step.ids)
        ids_by_label = {node.label: node.id for node in nodes if node is not None and node.id != hit.unit.id}
        steps.append(Reason(step.step, step.note, tuple((name, label) for label, name in ids_by_label.items())))
    return steps


def path_picture(snapshot: SearchSnapshot, question: str, hits: Sequence[Hit]) -> Picture:
    """Draw the paths from a question to its hits over entities, passages and derived units."""
    drawing = _Drawing(Names.of(snapshot), PictureBuilder(), question)
    drawing.builder.add(Node(QUESTION, "question", "Question", shorten(question, _QUESTION)))
    for rank, hit in enumerate(hits, 1):
        drawing.hit(rank, hit, shared_words(question, f"{hit.unit.title}\n{hit.unit.text}"))
    drawing.mentions(hits)
    titles = "; ".join(
        f"[{n}] {short_title(snapshot, hit.unit.title) or shorten(hit.unit.text, 60)}" for n, hit in enumerate(hits, 1)
    )
    return with_distinct_labels(snapshot, drawing.builder.picture(f"Paths from the question to {titles or 'no hit'}"))


def with_distinct_labels(snapshot: SearchSnapshot, picture: Picture) -> Picture:
    """A picture in which different titles have different labels, too."""
    names, used = Names.of(snapshot), Counter(node.label for node in picture.nodes)
    units = {node.id: names.unit(node.id) for node in picture.nodes if used[node.label] > 1}
    titles = {name: unit.title for name, unit in units.items() if unit is not None}
    labels = dict(zip(titles, compact_titles(snapshot, list(titles.values()), _TITLE), strict=True))
    nodes = (replace(node, label=labels.get(node.id) or node.label) for node in picture.nodes)
    return replace(picture, nodes=tuple(nodes))


@dataclass(frozen=True, slots=True)
class _Drawing:
    names: Names
    builder: PictureBuilder
    question: str
    asked: dict[str, str] = field(default_factory=dict)  # names that the question says, by id

    def mentions(self, hits: Sequence[Hit]) -> None:
        """Draw which hits have the words of names that the question says, whatever led to them."""
        for name, spelled in self.asked.items():
            words = whole_name(spelled, re.IGNORECASE)
            for hit in hits:
                if words.search(f"{hit.unit.title}\n{hit.unit.text}"):
                    self._link(name, hit.unit.id, "the passage mentions it")

    def hit(self, rank: int, hit: Hit, shared: Sequence[str]) -> None:
        """Draw a hit, the steps to it, and the words that it shares with the question."""
        if not self._add(hit.unit.id, rank=rank):
            return
        aside: list[PathStep] = []
        current = QUESTION
        for step in _readable_path(self.names, hit):
            kind = step.step.partition(":")[0]
            if kind in _ASIDE:
                aside.append(step)
            elif kind == "question":
                current = self._question_entities(step)
            elif kind == "sources":
                self._sources(step, hit)
            elif kind == "perspective":
                self._above(step, hit)
            elif step.ids:
                current = self._walk(current, step)
        if current != QUESTION:
            self._link(current, hit.unit.id)
        self._shared(shared, hit)
        for step in aside:
            self._aside(step, hit)

    def _shared(self, words: Sequence[str], hit: Hit) -> None:
        """Draw the words that a hit shares with the question: several, or one where nothing else leads to it."""
        if len(words) > 1 or (words and not self.builder.leads_to(hit.unit.id)):
            self._link(QUESTION, hit.unit.id, _shares(words), _shares(words[:_MAX_PATH_NODES]))

    def _add(self, name: str, *, passage: str = "", rank: int = 0) -> bool:
        node = self.names.node(name, passage=passage, rank=rank, question=self.question)
        return node is not None and self.builder.add(node)

    def _link(self, source: str, target: str, reason: str = "", label: str = "") -> None:
        self.builder.link(Link(source, target, label, reason))

    def _question_entities(self, step: PathStep) -> str:
        """Draw the entities of the question, and the passage of the step if it has one; return the last node."""
        *entities, last = step.ids
        if self.names.unit(last) is None or not entities:
            entities, last = list(step.ids), ""
        if last:
            self._add(last)
        for entity in entities:
            if self._add(entity, passage=last):
                name = self.names.entity(entity, last)
                is_said = name.lower() in self.question.lower()
                self.asked.update({entity: name} if is_said else {})
                self._link(QUESTION, entity, step.note, "mentions" if is_said else step.note)
            if last:
                self._link(entity, last, "the passage mentions it")
        return last or entities[-1]

    def _walk(self, current: str, step: PathStep) -> str:
        """Continue the path over the nodes of a step; return the last node."""
        for number, name in enumerate(step.ids):
            if not self._add(name, passage=step.ids[-1]):
                continue
            if name != current:
                self._link(current, name, *self._said_of(current, number, step))
            current = name
        return current

    def _said_of(self, current: str, number: int, step: PathStep) -> tuple[str, str]:
        """Reason and label of the line from a node to the next of a step."""
        if current == QUESTION and step.sentence:
            unit = self.names.unit(step.ids[0])
            words = shared_words(self.question, f"{unit.title}\n{unit.text}") if unit else []
            return (_shares(words), _shares(words[:_MAX_PATH_NODES])) if words else ("", "is similar")
        if current == QUESTION:
            return step.note, "" if step.step == "seed" else "is similar"
        label = shorten(step.sentence, _LINK_LETTERS) if number <= 1 else "mentioned in"
        return step.note, label if step.sentence else ""

    def _sources(self, step: PathStep, hit: Hit) -> None:
        """Draw the sources of a derived hit, or the derived unit that led to a passage."""
        for name in step.ids[:_MAX_PATH_NODES]:
            if name in hit.unit.chunk_ids and self._add(name):
                self._link(hit.unit.id, name, step.note, "made from")
            elif self._add(name):
                self._link(name, hit.unit.id, step.note, "made from")

    def _above(self, step: PathStep, hit: Hit) -> None:
        """Draw the entities below a report; the step has their names."""
        for name in step.ids[:_MAX_PATH_NODES]:
            entity = Node(f"name {name}", "entity", shorten(name, 80), name_kind=kind_of_name(name).kind)
            if self.builder.add(entity):
                self._link(QUESTION, entity.id, "a hit mentions it", "hits mention")
                self._link(entity.id, hit.unit.id, step.note)

    def _aside(self, step: PathStep, hit: Hit) -> None:
        """Draw evidence next to the path: votes always; vectors and words only for nodes without another link."""
        vote = step.step.startswith("vote")
        for name in step.ids:
            if (not vote and self.builder.leads_to(name)) or not self._add(name):
                continue
            self._link(QUESTION, name, step.note, _short(step.note))
            self._link(name, hit.unit.id, step.note)


def _shares(words: Sequence[str]) -> str:
    """Words that a passage shares with the question, as a phrase."""
    return f"shares the word{'s' * (len(words) > 1)} {', '.join(words)}"


def _short(note: str) -> str:
    _, mark, rest = note.partition("cosine ")
    if mark:
        return f"cosine {rest.split(' ', 1)[0].rstrip(',')}"
    return note if note.startswith("BM25") else ""
