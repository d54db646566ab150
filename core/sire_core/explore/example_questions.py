"""Questions to begin with, from what a corpus holds: those that its headings ask, and what its documents are for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from sire_core.documents.markdown_sections import SEPARATOR
from sire_core.explore.browse import is_readable, is_subject
from sire_core.explore.paths import Names
from sire_core.explore.short_titles import short_title
from sire_core.extraction.headings import is_everyday
from sire_core.text.lexicon import ACTIONS, FUNCTION_WORDS, VAGUE_NOUNS, VAGUE_WORDS
from sire_core.text.words import find_words
from sire_core.types import Unit

if TYPE_CHECKING:
    from sire_core.search.snapshot import SearchSnapshot

_Made = tuple[str, Sequence[Unit]]
"""A question, and the passages that it was made of."""
_SAMPLED_PASSAGES = 3_000
"""Passages that are read for what they ask, drawn at random."""
_TRIED, _FOUND = 60, 5
"""Questions that are searched for, and hits among which the passage must be that a question was made of."""
_MIN_NAME_PASSAGES, _COMMON = 4, 10
"""Passages of a name that is worth a question; a name of more leads nowhere in particular."""
_SHORTEST, _MAX_QUESTION_WORDS, _MAX_QUESTION_LETTERS = 4, 14, 90
"""Words and letters of a question."""
_OPENS = re.compile(r"(?:How|What|Which|Why|When|Where|Who|Can|Could|Do|Does|Is|Are|Should)\b \w")
_HOW_TO = re.compile(r"How to (\w.*)", re.IGNORECASE)
_GERUND = re.compile(r"([A-Z][a-z]+)ing ((?:the |a |an )?\w.*)")
_OBJECT = re.compile(r"(?:the|an?) |[^A-Z]")
"""How the object of a gerund begins where no adjective can be meant: `Scheduling Configuration` is no task."""
_PURPOSE = re.compile(r"^([\w.+-]{2,40})(?:\(\w+\))? (?:--?|\u2013|\u2014) ([A-Za-z][a-z]+ \w[^\n]*\w)$", re.MULTILINE)
_POINTS = re.compile(r"^(?!How do I |Can I ).* the [a-z]+\?$")
"""How a heading ends that only says together with its page what it asks about: `... to the movement?`."""
_THIN = re.compile(r" the [a-z]+\?$|^How do I \w+ (?:(?:the|an?) )?[\w-]+\?$")
"""Tasks whose object only their page makes clear: `filter chains`, `add arguments to the command`."""
_NUMBERING = re.compile(r"^(?:[\d.]+|[A-Z](?:\.\d+)+)\)?\s+")
_UNCLEAR = frozenset(
    "it its he she they them this that these those here there now else our your you we us above below following "
    "started".split()
)
"""Words that only make sense where they stand."""


def example_questions(snapshot: SearchSnapshot, n: int = 6) -> list[str]:
    """Readable questions of different kinds, at most one of each kind for a document; fewer than `n`, or none.

    They ask what a heading asks, what the first line of a manual page says that a program
    does, what a heading tells how to do, and how two names are connected of which one's passage mentions the other. A
    search for each has found the passage that it was made of.
    """
    found = (((question, [unit]) for question, unit in of_kind) for of_kind in _of_headings(snapshot))
    mixed = zip_longest(*found, _connections(snapshot, n // 2))
    chosen: dict[str, str] = {}
    for question, passages in islice(filter(None, chain(chain.from_iterable(mixed), _about(snapshot, n))), _TRIED):
        if len(chosen) == n:
            break
        if question.lower() not in chosen and _is_answered(snapshot, question, passages):
            chosen[question.lower()] = question
    return list(chosen.values())


def heading_questions(snapshot: SearchSnapshot) -> list[tuple[str, Unit]]:
    """What headings and the first lines of manual pages ask, each with its passage; one of a kind for a document."""
    distinct = {question.lower(): (question, unit) for question, unit in chain(*_of_headings(snapshot))}
    return list(distinct.values())


def _of_headings(snapshot: SearchSnapshot) -> list[list[tuple[str, Unit]]]:
    """Questions of each kind of `_questions`, in random order."""
    found: tuple[dict[str, tuple[str, Unit]], ...] = ({}, {}, {})
    for unit, document in _passages(snapshot):
        for questions, question in zip(found, _questions(snapshot, unit), strict=True):
            if question:
                questions.setdefault(document, (question, unit))
    return [list(questions.values()) for questions in found]


def _is_answered(snapshot: SearchSnapshot, question: str, passages: Sequence[Unit]) -> bool:
    """True if a search finds one of some passages first; not asked where that could cost calls of a model."""
    hits = [] if snapshot.language_model else snapshot.search(question, _FOUND)
    return not hits or not {hit.unit.id for hit in hits}.isdisjoint(unit.id for unit in passages)


def _passages(snapshot: SearchSnapshot) -> Iterator[tuple[Unit, str]]:
    """Visible passages and the ids of their documents, in random order."""
    for position in np.random.default_rng(0).permutation(snapshot.positions())[:_SAMPLED_PASSAGES].tolist():
        unit, documents = snapshot.view.pool.unit(position)
        yield unit, next(iter(documents), "")


def _questions(snapshot: SearchSnapshot, unit: Unit) -> tuple[str, str, str]:
    """What the heading of a passage asks, what its document is for, and what its heading tells how to do."""
    name, *headings = short_title(snapshot, unit.title).split(SEPARATOR)
    heading = _NUMBERING.sub("", headings[-1] if headings else "").strip(" :").replace(" ?", "?")
    asked = heading if heading.endswith("?") and _OPENS.match(heading) else ""
    if how_to := _HOW_TO.fullmatch(heading.rstrip("?")):
        asked = _how_to(how_to[1], unit.text) if how_to[1].partition(" ")[0].lower() in ACTIONS else ""
    purpose = next((match for match in _PURPOSE.finditer(f"{name}\n{unit.text}") if name.startswith(match[1])), None)
    use = _how_to(purpose[2], unit.text) if purpose and purpose[2].partition(" ")[0].lower() in ACTIONS else ""
    task, gerund = "", _GERUND.fullmatch(heading)
    if gerund and (verb := _verb(gerund[1].lower())) and not re.search(r"[,:!.]| (?:and|or) |ing\b", gerund[2]):
        what = gerund[2] if _OBJECT.match(gerund[2]) else _object_in(unit.text, verb, gerund[2])
        task = _how_to(f"{verb} {what}", unit.text) if what else ""
    return (
        _if_clear("" if _POINTS.search(asked) else asked),
        _if_clear(use),
        _if_clear("" if _THIN.search(task) else task),
    )


def _how_to(task: str, text: str) -> str:
    """How to do what a heading says, everyday words in small letters where a text has them so."""
    verb, _, rest = task.strip().partition(" ")
    words, small = rest.split(" "), FUNCTION_WORDS.union(filter(str.islower, find_words(text)))
    is_title = any(word[1:].islower() and not word.islower() and word.lower() in FUNCTION_WORDS for word in words)
    spelled = (
        word.lower() if word[1:].islower() and is_everyday(word) and (is_title or word.lower() in small) else word
        for word in words
    )
    return f"How do I {_base(verb.lower())} {rest.lower() if rest.isupper() else ' '.join(spelled)}?"


def _base(verb: str) -> str:
    """The base form of a verb in the third person; other words as they are."""
    return next((base for base in (verb[:-1], verb[:-2]) if verb.endswith("s") and base in ACTIONS), verb)


def _verb(stem: str) -> str:
    """The verb of a gerund without its ending: `creat` and `runn` are of `create` and `run`."""
    return next((verb for verb in (stem, f"{stem}e", stem[:-1]) if verb in ACTIONS and not verb.endswith("s")), "")


def _object_in(text: str, verb: str, name: str) -> str:
    """A name as a text spells it that tells to do something with it; empty where its gerund may be an adjective."""
    found = re.search(rf"\b{verb} (?:\w+ )?({re.escape(name)})\b", text, re.IGNORECASE)
    return found[1] if found else ""


def _if_clear(question: str) -> str:
    """The question, if it can be understood without its document: at least two of its words say what it is about."""
    words = [word.lower() for word in find_words(question)]
    content = {word for word in words if word not in FUNCTION_WORDS | VAGUE_WORDS | VAGUE_NOUNS and not word.isdigit()}
    is_clear = (
        _SHORTEST <= len(words) <= _MAX_QUESTION_WORDS
        and len(question) <= _MAX_QUESTION_LETTERS
        and _UNCLEAR.isdisjoint(words)
    )
    return question if is_clear and len(content) > 1 and not re.search(r"[`*<>|\[\]\\]", question) else ""


def _connections(snapshot: SearchSnapshot, n: int) -> list[_Made]:
    """How two names are connected: the passage about one mentions what another passage is about."""
    names = Names.of(snapshot)
    graph, seen = names.graph, names.seen()
    titled = np.flatnonzero(graph.titles & seen)
    owned, first, passages_of = np.unique(graph.entities[titled], return_index=True, return_counts=True)
    owner = np.full(len(graph.entity_ids), -1, dtype=np.int64)
    owner[owned[passages_of == 1]] = graph.passages[titled[first[passages_of == 1]]]
    own_name = np.full(len(graph.chunk_positions), -1, dtype=np.int64)
    own_name[graph.passages[titled]] = graph.entities[titled]
    frequency = np.bincount(graph.entities[seen], minlength=len(graph.entity_ids))
    targets = owner[graph.entities]
    linked = seen & ~graph.titles & (targets >= 0) & (targets != graph.passages) & (own_name[graph.passages] >= 0)
    rows = np.random.default_rng(0).permutation(np.flatnonzero(linked & (frequency[graph.entities] <= _COMMON)))
    found: list[_Made] = []
    used: set[int] = set()
    for row in rows[: 20 * n].tolist():
        ends = int(own_name[graph.passages[row]]), int(graph.entities[row])
        spelled = [names.entity(graph.entity_ids[end]) for end in ends]
        if len(found) < n and used.isdisjoint(ends) and all(map(is_readable, spelled)) and _can_be_asked(names, ends):
            found.append((f"How are {spelled[0]} and {spelled[1]} connected?", _passages_of(names, ends[1])))
            used.update(ends)
    return found


def _about(snapshot: SearchSnapshot, n: int) -> Iterator[_Made]:
    """What is known about names that a few passages mention."""
    names = Names.of(snapshot)
    frequency = np.bincount(names.graph.entities[names.seen()], minlength=len(names.graph.entity_ids))
    few = np.random.default_rng(0).permutation(
        np.flatnonzero((frequency >= _MIN_NAME_PASSAGES) & (frequency <= _COMMON))
    )
    spelled = ((entity, names.entity(names.graph.entity_ids[entity])) for entity in few[: 20 * n].tolist())
    asked = ((entity, name) for entity, name in spelled if is_readable(name) and _can_be_asked(names, (entity,)))
    return ((f"What do we know about {name}?", _passages_of(names, entity)) for entity, name in islice(asked, n))


def _passages_of(names: Names, entity: int) -> list[Unit]:
    """Visible passages that mention a name."""
    graph = names.graph
    passages = graph.passages[names.mentions(graph.entity_ids[entity])]
    return names.snapshot.view.units(graph.chunk_positions[passages])


def _can_be_asked(names: Names, entities: Iterable[int]) -> bool:
    """True if of every one of some entities a sentence says something."""
    spelled = ((entity, names.entity(names.graph.entity_ids[entity])) for entity in entities)
    return all(is_subject(name, [unit.text for unit in _passages_of(names, entity)]) for entity, name in spelled)
