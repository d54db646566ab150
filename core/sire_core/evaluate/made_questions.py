"""Questions that a corpus itself gives, made without a model: to measure searches with, and to begin with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from sire_core.documents.heading_paths import is_path, title_path
from sire_core.extraction.headings import acts, base_title, is_everyday
from sire_core.knowledge.entity_graph import EntityGraph
from sire_core.questions import Question
from sire_core.search.passages import opening_name, passage_sentences
from sire_core.text.lexicon import (
    ACTIONS,
    DEMONYMS,
    FUNCTION_WORDS,
    HEADING_PARTS,
    MONTHS,
    VAGUE_NOUNS,
    VAGUE_WORDS,
)
from sire_core.text.words import cached_key, find_words

if TYPE_CHECKING:
    from sire_core.protocols import BoolArray
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.types import Unit

COMMON = 10  # Passages above which a name leads nowhere in particular, and a title says nothing of one
_MAX_PAIRS_OF_NAME, _MAX_NAME_WORDS = 2, 8  # Pair questions of a name, and words of a name in a question
_EXAMPLE_PASSAGES = 3_000  # Passages, drawn at random, that example questions are made of
_MAX_SEARCHED, _MAX_RANK = 60, 5
"""Example questions that are searched for, and hits among which the passage must be that a question was made of."""
_MIN_NAME_PASSAGES = 4  # Passages of a name that is worth a question
_MIN_QUESTION_WORDS, _MAX_QUESTION_WORDS, _MAX_QUESTION_LETTERS = 4, 14, 90

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

_OPENS = re.compile(r"(?:How|What|Which|Why|When|Where|Who|Can|Could|Do|Does|Is|Are|Should)\b \w")
_HOW_TO = re.compile(r"How to (\w.*)", re.IGNORECASE)
_GERUND = re.compile(r"([A-Z][a-z]+)ing ((?:the |a |an )?\w.*)")
_OBJECT = re.compile(r"(?:the|an?) |[^A-Z]")
"""Beginning of the object of a gerund that can be no adjective: `Scheduling Configuration` is no task."""
_PURPOSE = re.compile(r"^([\w.+-]{2,40})(?:\(\w+\))? (?:--?|\u2013|\u2014) ([A-Za-z][a-z]+ \w[^\n]*\w)$", re.MULTILINE)
_POINTS = re.compile(r"^(?!How do I |Can I ).* the [a-z]+\?$")
"""End of a heading that only says together with its page what it asks about: `... to the movement?`."""
_THIN = re.compile(r" the [a-z]+\?$|^How do I \w+ (?:(?:the|an?) )?[\w-]+\?$")
"""Tasks whose object only their page makes clear: `filter chains`, `add arguments to the command`."""
_NUMBERING = re.compile(r"^(?:[\d.]+|[A-Z](?:\.\d+)+)\)?\s+")
_UNCLEAR = frozenset(
    "it its he she they him this that these those here there now else our your you we us above below following "
    "started".split()
)
"""Words that only make sense where they stand."""
_ADDRESSING = frozenset("dear dearest my oh poor".split())
"""Words before a name by which somebody is spoken to: `Dear Fanny`."""
_VERB = (
    r"(?:is|was|are|were|has|had|have|can|may|[a-z]{2,}(?:s|ed)|began|became|came|gave|held|led|made|saw|took|wrote)\b"
)
"""After a name: a sentence says something of it."""


@dataclass(frozen=True, slots=True)
class MadeQuestion:
    """A question and the passages that it was made of."""

    question: str  # Its text
    passages: tuple[str, ...]  # Ids of the passages that it needs; of a question about a name those that mention it
    # `bridge`, over a name that the question leaves out; `pair`, of two names; `heading`, `purpose` or `task`, by a
    # heading or the first line of a manual page; `name`, about a name
    kind: str


@dataclass(frozen=True, slots=True)
class Named:
    """A passage that spells the subject of another one: positions in the list of passages, and the name."""

    passage: int
    subject: int
    name: str


@dataclass(frozen=True, slots=True)
class LinkedPassages:
    """The distinct visible passages of a corpus, the subject of each, and which ones name the subject of another."""

    snapshot: SearchSnapshot  # The corpus
    units: Sequence[Unit]  # The passages
    documents: Sequence[str]  # Id of the first document of each
    titles: Mapping[str, int]  # Titles by the number of passages that have them
    about: Sequence[str]  # The subject of each passage; may be empty
    links: Sequence[Named]  # Passages that name the subject of another one

    @classmethod
    def of(cls, snapshot: SearchSnapshot, max_passages: int | None = None) -> LinkedPassages:
        """Read the passages of an index, or a random sample of them."""
        graph = EntityGraph.of(snapshot.view)
        numbers = np.flatnonzero(_visible(snapshot)[graph.chunk_positions])
        if max_passages is not None:
            numbers = np.sort(np.random.default_rng(0).permutation(numbers)[:max_passages])
        read = [snapshot.view.pool.unit(position) for position in graph.chunk_positions[numbers].tolist()]
        units = [unit for unit, _ in read]
        titles = Counter(title_of(unit) for unit in units if title_of(unit))
        about = [_subject(unit, titles) for unit in units]
        links = _links(graph, dict(zip(numbers.tolist(), range(len(units)), strict=True)), units, about)
        return cls(snapshot, units, [next(iter(names), "") for _, names in read], titles, about, links)


def made_questions(linked: LinkedPassages, n: int, seed: int = 0) -> list[MadeQuestion]:
    """Make up to `n` questions that need two passages, those over a name that the question leaves out first."""
    rng = np.random.default_rng(seed)
    order = [linked.links[position] for position in rng.permutation(len(linked.links)).tolist()]
    bridges = {question.question: question for link in order if (question := _bridge(linked, link, rng))}
    return [*bridges.values(), *_pairs(linked, order)][:n]


def as_questions(made: Sequence[MadeQuestion]) -> tuple[Question, ...]:
    """Questions of a data set, whose gold are the passages."""
    return tuple(Question(f"made-{number}", one.question, (), one.passages) for number, one in enumerate(made, 1))


def heading_questions(linked: LinkedPassages) -> list[MadeQuestion]:
    """Questions of headings and of the first lines of manual pages; one of a kind for a document."""
    distinct = {question.question.lower(): question for question in chain(*_of_headings(linked))}
    return list(distinct.values())


def example_questions(snapshot: SearchSnapshot, n: int = 6) -> list[str]:
    """Readable questions of different kinds, at most one of each kind for a document; fewer than `n`, or none.

    They ask what a heading asks, what the first line of a manual page says that a program does, what a heading tells
    how to do, and how two names are connected of which one's passage mentions the other. A search for each has found
    the passage that it was made of.
    """
    linked = LinkedPassages.of(snapshot, _EXAMPLE_PASSAGES)
    rng = np.random.default_rng(0)
    order = [linked.links[position] for position in rng.permutation(len(linked.links)).tolist()]
    pairs = (pair for pair in _pairs(linked, order, max_pairs=1) if _is_told(linked, pair))
    mixed = zip_longest(*_of_headings(linked), islice(pairs, n // 2))
    chosen: dict[str, str] = {}
    candidates = filter(None, chain(chain.from_iterable(mixed), islice(_about_names(linked, rng, 20 * n), n)))
    for made in islice(candidates, _MAX_SEARCHED):
        if len(chosen) == n:
            break
        if made.question.lower() not in chosen and _is_answered(snapshot, made):
            chosen[made.question.lower()] = made.question
    return list(chosen.values())


def is_subject(name: str, texts: Sequence[str]) -> bool:
    """True if a sentence of some texts begins with a name and a verb after it: headings and references have none."""
    pattern = rf"(?:^|[.!?]\s)\W?(?:The |the )?{re.escape(name)}\W?(?: \([^()\n]{{0,80}}\))? {_VERB}"
    return any(re.search(pattern, text, re.MULTILINE) for text in texts)


def is_readable(name: str) -> bool:
    """True if a name reads well in a question: a few words, capitalized, of letters, no initials and no instruction."""
    words = name.split()
    return (
        1 < len(words) <= 5
        and words[0].lower() not in _ADDRESSING | FUNCTION_WORDS - {"the"}
        and "," not in name
        and not (words[0].endswith("ing") and acts(words[0].lower()))
        and words[-1].lower() not in VAGUE_NOUNS
        and name[0].isupper()
        and words[-1][0].isupper()
        and HEADING_PARTS.isdisjoint(word.strip(".").lower() for word in words)
        and all((letters := word.strip("().,'-")).isalpha() and len(letters) > 1 for word in words)
        and not all(word.isupper() for word in words)
    )


# --- two passages -----------------------------------------------------------------------------------------------------


def _pairs(linked: LinkedPassages, order: Sequence[Named], max_pairs: int = _MAX_PAIRS_OF_NAME) -> list[MadeQuestion]:
    """Ask how the subjects of two linked passages are connected; each pair one way round."""
    pairs: dict[str, MadeQuestion] = {}
    used, done = Counter[str](), set[frozenset[str]]()
    uses = Counter(passage for link in order for passage in (link.passage, link.subject))
    for link in sorted(order, key=lambda link: uses[link.passage] + uses[link.subject]):  # the more pairs can be made
        names = linked.about[link.passage], linked.about[link.subject]
        is_new = names[0] != names[1] and frozenset(names) not in done and max(used[name] for name in names) < max_pairs
        if is_new and all(map(is_readable, names)) and _is_named(linked, link):
            used.update(names)
            done.add(frozenset(names))
            text = f"How are {names[0]} and {names[1]} connected?"
            pairs[text] = _question(linked, text, link, "pair")
    return list(pairs.values())


def _is_named(linked: LinkedPassages, link: Named) -> bool:
    """True if both passages say something of their subjects; a heading that no sentence begins with is no name."""
    return all(
        not is_path(linked.units[end].title) or is_subject(linked.about[end], [linked.units[end].text])
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
    is_name = 0 < len(name.split()) <= _MAX_NAME_WORDS and not is_path(name)
    return is_name and (name[0].isupper() or name[0].isdigit())


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
    is_file_name = title_path(unit.title)[0] == PurePosixPath(str(unit.metadata.get("source", ""))).stem
    return "" if is_file_name and unit.title.lower() not in unit.text.lower() else unit.title


def _links(graph: EntityGraph, places: Mapping[int, int], units: Sequence[Unit], about: Sequence[str]) -> list[Named]:
    """Links between passages, of which `places` has positions in `units` by their numbers in the graph."""
    owners: dict[str, list[int]] = {}
    for index, name in enumerate(about):
        if name:
            owners.setdefault(cached_key(name), []).append(index)
    mentions = np.flatnonzero(np.isin(graph.passages, list(places))).tolist()
    entity_owners: dict[int, set[int]] = {}
    for mention in mentions:
        keys = {cached_key(name) for name in graph.names.names(mention)}
        owners_of_entity = entity_owners.setdefault(int(graph.entities[mention]), set())
        owners_of_entity.update(index for key in keys for index in owners.get(key, ()) if len(owners[key]) == 1)
    frequency = np.bincount(graph.entities, minlength=len(graph.entity_ids))
    links = []
    for mention in mentions:
        passage, entity = places[int(graph.passages[mention])], int(graph.entities[mention])
        subjects = entity_owners[entity] - {passage}
        if graph.titles[mention] or len(subjects) != 1 or frequency[entity] > COMMON:
            continue
        spelled = [name for name in graph.names.names(mention) if name in units[passage].text]
        if spelled:
            links.append(Named(passage, subjects.pop(), max(spelled, key=len)))
    return links


def _visible(snapshot: SearchSnapshot) -> BoolArray:
    """Mask of the units that pass the snapshot's filter, `[size]`."""
    allowed = snapshot.view.allowed(snapshot.where)
    return np.ones(snapshot.view.size, dtype=bool) if allowed is None else allowed


# --- one passage ------------------------------------------------------------------------------------------------------


def _of_headings(linked: LinkedPassages) -> list[list[MadeQuestion]]:
    """Questions of headings, purposes and tasks, in random order, one of each kind for a document."""
    made: dict[str, dict[str, MadeQuestion]] = {"heading": {}, "purpose": {}, "task": {}}
    for number in np.random.default_rng(0).permutation(len(linked.units)).tolist():
        unit = linked.units[number]
        for (kind, by_document), question in zip(made.items(), _heading_texts(unit), strict=True):
            if question:
                by_document.setdefault(linked.documents[number], MadeQuestion(question, (unit.id,), kind))
    return [list(by_document.values()) for by_document in made.values()]


def _heading_texts(unit: Unit) -> tuple[str, str, str]:
    """Texts of the three kinds of questions of a passage, by its heading and the purpose of its document."""
    name, *headings = title_path(unit.title)
    heading = _NUMBERING.sub("", headings[-1] if headings else "").strip(" :").replace(" ?", "?")
    question = heading if heading.endswith("?") and _OPENS.match(heading) else ""
    if how_to := _HOW_TO.fullmatch(heading.rstrip("?")):
        question = _how_to(how_to[1], unit.text) if how_to[1].partition(" ")[0].lower() in ACTIONS else ""
    purpose = next((match for match in _PURPOSE.finditer(f"{name}\n{unit.text}") if name.startswith(match[1])), None)
    use = _how_to(purpose[2], unit.text) if purpose and purpose[2].partition(" ")[0].lower() in ACTIONS else ""
    task, gerund = "", _GERUND.fullmatch(heading)
    if gerund and (verb := _verb(gerund[1].lower())) and not re.search(r"[,:!.]| (?:and|or) |ing\b", gerund[2]):
        what = gerund[2] if _OBJECT.match(gerund[2]) else _object_in(unit.text, verb, gerund[2])
        task = _how_to(f"{verb} {what}", unit.text) if what else ""
    return (
        _if_clear("" if _POINTS.search(question) else question),
        _if_clear(use),
        _if_clear("" if _THIN.search(task) else task),
    )


def _how_to(task: str, text: str) -> str:
    """Ask how to do a task, its everyday words in small letters where a text has them so."""
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
    match = re.search(rf"\b{verb} (?:\w+ )?({re.escape(name)})\b", text, re.IGNORECASE)
    return match[1] if match else ""


def _if_clear(question: str) -> str:
    """The question, if it can be understood without its document: at least two of its words say what it is about."""
    words = [word.lower() for word in find_words(question)]
    content = {word for word in words if word not in FUNCTION_WORDS | VAGUE_WORDS | VAGUE_NOUNS and not word.isdigit()}
    is_clear = (
        _MIN_QUESTION_WORDS <= len(words) <= _MAX_QUESTION_WORDS
        and len(question) <= _MAX_QUESTION_LETTERS
        and _UNCLEAR.isdisjoint(words)
    )
    return question if is_clear and len(content) > 1 and not re.search(r"[`*<>|\[\]\\]", question) else ""


# --- examples ---------------------------------------------------------------------------------------------------------


def _about_names(linked: LinkedPassages, rng: np.random.Generator, max_names: int) -> Iterator[MadeQuestion]:
    view = linked.snapshot.view
    graph = EntityGraph.of(view)
    is_seen = _visible(linked.snapshot)[graph.chunk_positions[graph.passages]]
    frequency = np.bincount(graph.entities[is_seen], minlength=len(graph.entity_ids))
    few = np.flatnonzero((frequency >= _MIN_NAME_PASSAGES) & (frequency <= COMMON))
    for entity in rng.permutation(few)[:max_names].tolist():
        mentions = np.flatnonzero((graph.entities == entity) & is_seen)
        mentions = mentions[np.argsort(~graph.titles[mentions], kind="stable")]
        name = next((name for mention in mentions.tolist() for name in graph.names.names(mention)), "")
        if is_readable(name):
            units = view.units(graph.chunk_positions[np.unique(graph.passages[mentions])])
            if is_subject(name, [unit.text for unit in units]):
                yield MadeQuestion(f"What do we know about {name}?", tuple(unit.id for unit in units), "name")


def _is_told(linked: LinkedPassages, pair: MadeQuestion) -> bool:
    """True if a sentence of each passage of a pair says something of its subject."""
    places = {unit.id: number for number, unit in enumerate(linked.units)}
    ends = [places[name] for name in pair.passages]
    return all(is_subject(linked.about[end], [linked.units[end].text]) for end in ends)


def _is_answered(snapshot: SearchSnapshot, made: MadeQuestion) -> bool:
    """True if a search finds a passage of a question first; not searched where that could cost calls of a model."""
    hits = [] if snapshot.language_model else snapshot.search(made.question, _MAX_RANK)
    return not hits or not {hit.unit.id for hit in hits}.isdisjoint(made.passages)
