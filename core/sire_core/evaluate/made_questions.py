"""Questions that a corpus itself gives: readable ones that need two of its passages, made without a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from sire_core.documents.markdown_sections import SEPARATOR
from sire_core.explore.browse import is_readable, is_subject
from sire_core.extraction.headings import base_title
from sire_core.knowledge.entity_graph import EntityGraph
from sire_core.search.passages import opening_name, passage_sentences
from sire_core.text.lexicon import DEMONYMS, MONTHS
from sire_core.text.words import cached_key

if TYPE_CHECKING:
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.types import Unit

COMMON = 10
"""Passages above which a name leads nowhere in particular, and a title says nothing of one."""
_PAIRS = 2
"""Pairs of a name; each is asked one way round."""
_LONGEST_NAME = 8  # Words of a name in a question

_PAST = {"built": "built", "drawn": "drew", "led": "led", "made": "made", "run": "ran", "shot": "shot", "sung": "sang"}
_PAST |= {"taught": "taught", "won": "won", "written": "wrote"}
_REGULAR = (
    "captained coached commanded commissioned composed constructed created designed developed directed discovered "
    "edited established formed founded hosted illustrated invented launched maintained managed opened organised "
    "organized owned painted performed produced published recorded released started translated"
)
_LEAD = r"(?:[^,;:]{1,60}, ){0,2}"  # `On her last voyage, in the gale of November 1893, she was`
_ARTICLES = r"(?:(?!(?:and|at|by|for|from|in|of|on|to|which|who|with)\b)[\w-]+ ){0,3}"
_MAKER = re.compile(rf"\b(?P<verb>{'|'.join([*_PAST, *_REGULAR.split()])}) by {_ARTICLES}$")
_RELATIVE = re.compile(
    rf"\b(?P<kin>son|daughter|wife|husband|widow|brother|sister|mother|father|pupil) of {_ARTICLES}$"
)
_PLACE = re.compile(
    r"\b(?P<verb>born|buried|raised|filmed|located|situated|based|headquartered)"
    r"(?:(?! (?:and|by|to|which|who) )[\w ,]){0,30} (?:in|at|near) (?:the )?$"
)
_STATES = frozenset(("located", "situated", "based", "headquartered"))
_PRONOUN = r"(?:[Hh]e|[Ss]he|[Ii]t|[Tt]hey|[Tt]he (?:album|band|book|company|film|novel|play|series|ship|song))"
_CAPITALIZED = re.compile(r"\b[A-Z]\w+")

_OF_MAKERS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\bborn\b[^.;]{0,40}? in [A-Z]"), "where were they born"),
    (re.compile(r"\bborn\b[^.;]{0,20}\d{4}"), "when were they born"),
    (re.compile(r"\bdied (?:in|on|at|of)\b"), "when did they die"),
    (re.compile(r"\b(?:studied|educated|graduated)\b"), "where did they study"),
    (re.compile(r"\b(?:son|daughter) of [A-Z]"), "who were their parents"),
    (re.compile(r"\b(?:married|husband|wife)\b"), "whom did they marry"),
    (re.compile(r"\b(?:founded|established|formed) in\b"), "when were they founded"),
    (re.compile(r"\b(?:headquartered|based|headquarters) in\b"), "where are they based"),
    (re.compile(""), "what else is known about them"),
)
_OF_PLACES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\bpopulation\b"), "how many people live there"),
    (re.compile(r"\b(?:county|district|province|region|state|municipality) (?:in|of)\b"), "in which region is that"),
    (re.compile(""), "what else is known about that place"),
)


@dataclass(frozen=True, slots=True)
class MadeQuestion:
    """A question and the passages that it needs."""

    question: str
    passages: tuple[str, str]  # Ids
    kind: str  # `bridge`, over a name that the question leaves out, or `pair`, of two names that it has


@dataclass(frozen=True, slots=True)
class Named:
    """A passage that spells the subject of another one: places in the list of passages, and the name as it stands."""

    passage: int
    subject: int
    name: str


@dataclass(frozen=True, slots=True)
class LinkedPassages:
    """The distinct passages of a corpus, what each is about, and which ones name what another one is about."""

    units: Sequence[Unit]
    titles: Mapping[str, int]  # Titles by the number of passages that have them
    about: Sequence[str]  # The subject of each passage; may be empty
    links: Sequence[Named]

    @classmethod
    def of(cls, snapshot: SearchSnapshot) -> LinkedPassages:
        """Read the passages of an index."""
        graph = EntityGraph.of(snapshot.view)
        units = snapshot.view.units(graph.chunk_positions)
        titles = Counter(title_of(unit) for unit in units if title_of(unit))
        about = [_subject(unit, titles) for unit in units]
        return cls(units, titles, about, _links(graph, units, about))


def made_questions(linked: LinkedPassages, n: int, seed: int = 0) -> list[MadeQuestion]:
    """Make up to `n` questions as people ask them, those over a name that the question leaves out first."""
    rng = np.random.default_rng(seed)
    order = [linked.links[position] for position in rng.permutation(len(linked.links)).tolist()]
    bridges = {question.question: question for link in order if (question := _bridge(linked, link, rng))}
    pairs: dict[str, MadeQuestion] = {}
    used, asked = Counter[str](), set[frozenset[str]]()
    uses = Counter(passage for link in order for passage in (link.passage, link.subject))
    for link in sorted(order, key=lambda link: uses[link.passage] + uses[link.subject]):  # the more pairs can be made
        names = linked.about[link.passage], linked.about[link.subject]
        is_new = names[0] != names[1] and frozenset(names) not in asked and max(used[name] for name in names) < _PAIRS
        if is_new and all(map(is_readable, names)) and _is_named(linked, link):
            used.update(names)
            asked.add(frozenset(names))
            text = f"How are {names[0]} and {names[1]} connected?"
            pairs[text] = _question(linked, text, link, "pair")
    return [*bridges.values(), *pairs.values()][:n]


def _is_named(linked: LinkedPassages, link: Named) -> bool:
    """True if both passages say something of their subjects; a heading that no sentence begins with is no name."""
    return all(
        SEPARATOR not in linked.units[end].title or is_subject(linked.about[end], [linked.units[end].text])
        for end in (link.passage, link.subject)
    )


def _bridge(linked: LinkedPassages, link: Named, rng: np.random.Generator) -> MadeQuestion | None:
    """Ask over the sentence that connects a subject with a name, and for something that the name's passage says."""
    subject = linked.about[link.passage]
    if not _can_be_asked_about(subject) or link.name.lower() in subject.lower():
        return None
    sentences = passage_sentences(linked.units[link.passage].text)
    before = next((sentence.partition(link.name)[0] for sentence in sentences if link.name in sentence), "")
    before = " ".join(before.split()) + " "
    target = linked.units[link.subject].text
    first = ""
    if (match := _MAKER.search(before)) and _is_said_of(subject, before[: match.start()]):
        verb = match["verb"]
        first, others = f"Who {_PAST.get(verb, verb)} {subject}", _OF_MAKERS
    elif (match := _RELATIVE.search(before)) and _is_said_of(subject, before[: match.start()]):
        first, others = f"Whose {match['kin']} was {subject}", _OF_MAKERS
    elif (match := _PLACE.search(before)) and _is_said_of(subject, before[: match.start()]):
        verb = match["verb"]
        first, others = f"Where {'is' if verb in _STATES else 'was'} {subject} {verb}", _OF_PLACES
    if not first:
        return None
    fitting = [words for pattern, words in others if pattern.search(target)]
    second = fitting[int(rng.integers(max(1, len(fitting) - 1)))]  # the last, which always fits, if it is alone
    return _question(linked, f"{first}, and {second}?", link, "bridge")


def _is_said_of(subject: str, beginning: str) -> bool:
    """True if the beginning of a sentence is about a subject: it or a pronoun comes first, and no other name."""
    opened = re.match(rf"{_LEAD}(?:The |the )?[\"'\u201c]?(?:{re.escape(subject)}|{_PRONOUN})\b", beginning)
    return opened is not None and all(
        word.lower() in DEMONYMS or word in MONTHS for word in _CAPITALIZED.findall(beginning[opened.end() :])
    )


def _can_be_asked_about(name: str) -> bool:
    return 0 < len(name.split()) <= _LONGEST_NAME and (name[0].isupper() or name[0].isdigit()) and SEPARATOR not in name


def _question(linked: LinkedPassages, text: str, link: Named, kind: str) -> MadeQuestion:
    return MadeQuestion(text, (linked.units[link.passage].id, linked.units[link.subject].id), kind)


def _subject(unit: Unit, titles: Mapping[str, int]) -> str:
    """The subject of a passage; a title that many passages share is none."""
    title = title_of(unit)
    if title and titles[title] <= COMMON:
        return base_title(title)
    return opening_name(unit.text)


def title_of(unit: Unit) -> str:
    """A passage's title. The name of its file is one only where the text says it too: `page-02` says nothing."""
    is_file_name = unit.title.split(SEPARATOR)[0] == PurePosixPath(str(unit.metadata.get("source", ""))).stem
    return "" if is_file_name and unit.title.lower() not in unit.text.lower() else unit.title


def _links(graph: EntityGraph, units: Sequence[Unit], about: Sequence[str]) -> list[Named]:
    owners: dict[str, list[int]] = {}
    for index, name in enumerate(about):
        if name:
            owners.setdefault(cached_key(name), []).append(index)
    entity_owners: dict[int, set[int]] = {}
    for mention in range(len(graph.passages)):
        keys = {cached_key(name) for name in graph.names.names(mention)}
        owners_of_entity = entity_owners.setdefault(int(graph.entities[mention]), set())
        owners_of_entity.update(index for key in keys for index in owners.get(key, ()) if len(owners[key]) == 1)
    frequency = np.bincount(graph.entities, minlength=len(graph.entity_ids))
    links = []
    for mention, (passage, entity) in enumerate(zip(graph.passages.tolist(), graph.entities.tolist(), strict=True)):
        subjects = entity_owners[entity] - {passage}
        if graph.titles[mention] or len(subjects) != 1 or frequency[entity] > COMMON:
            continue
        spelled = [name for name in graph.names.names(mention) if name in units[passage].text]
        if spelled:
            links.append(Named(passage, subjects.pop(), max(spelled, key=len)))
    return links
