"""Links titles of the corpus as entities of the facts that mention them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sire_core.algorithms.lexicon import DEMONYMS, FUNCTION_WORDS, HONORIFICS, MONTHS, OPENERS, WEEKDAYS
from sire_core.algorithms.text import cached_key
from sire_core.algorithms.words import visible_text
from sire_core.extraction.headings import base_title
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact

WORD = re.compile(r"\w+|&")
"""A word of a title or a text."""

_BREAK = re.compile(r"(?<=\w{4})\.|[;:!?,]")  # `St. Louis` has none
_RANKED = re.compile(
    r"(?P<name>[^,]+ [^,]+), (?:\d+\w\w |the \d+\w\w )?(?:grand |crown )?(?:king|queen|prince|princess|duke|duchess|"
    r"count|countess|earl|baron|baroness|marquess|viscount|lord|lady|elector|margrave|landgrave|emperor|empress)\b",
    re.IGNORECASE,
)
_COMMON = FUNCTION_WORDS | OPENERS | DEMONYMS | HONORIFICS | WEEKDAYS | frozenset(MONTHS)
_BEFORE_NAMES = FUNCTION_WORDS | OPENERS | HONORIFICS  # but `British` in front of `Empire` is part of a name
_ENOUGH_WORDS = 4  # a title this long does not turn up in lower case by accident


class _Form(NamedTuple):
    """A way to write a title: its text, the entity name it stands for and the titles of that name."""

    text: str
    name: str
    titles: tuple[str, ...]


class TitleLinker:
    """Finds the titles of a corpus in text (SiReRAG: listed entities whose name occurs in the fact).

    A title is known in full, without its bracketed part (`Aylwin (film)`, `Aylwin`) and, where that is unambiguous,
    without a leading article and without a rank (`Eustace II, Count of Boulogne`). The longest form wins. All forms of
    a title are one entity, named by the title without its bracketed part. Built when records are read, so that new
    documents reach old records.

    Args:
        titles: All titles of the corpus; repetitions and empty ones do no harm.
    """

    def __init__(self, titles: Sequence[str]) -> None:
        self._trie: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        for form in title_forms(dict.fromkeys(title for title in titles if title.strip())):
            if not _linkable(form.text):
                continue
            node = self._trie
            for word in _words(form.text):
                node = node.setdefault(word, {})
            node.setdefault("", form)
            self._names.setdefault(cached_key(form.text), form.name)

    def link(self, records: Mapping[str, ExtractionRecord], chunks: Sequence[Chunk]) -> Mapping[str, ExtractionRecord]:
        """Add to each fact the titles that occur in its text, as entities of its record."""
        return {chunk.id: self._link(records[chunk.id]) for chunk in chunks if chunk.id in records}

    def mentions(self, text: str) -> list[str]:
        """Titles that a text (a question) mentions, in any case, in order; of each name all titles."""
        lowered = text[1:] == text[1:].lower()
        names: dict[str, None] = {}
        for _, _, form in self._scan(text, questions=True, lowered=lowered):
            names.update(dict.fromkeys(form.titles))
        return list(names)

    def _link(self, record: ExtractionRecord) -> ExtractionRecord:
        entities = [self._renamed(entity) for entity in record.entities]
        ids: dict[str, str] = {}
        for entity in entities:
            for name in (entity.name, *entity.aliases):
                ids.setdefault(cached_key(name), entity.id)
        used_ids = {entity.id for entity in entities}
        facts = [self._link_fact(fact, entities, ids, used_ids) for fact in record.facts]
        if entities == list(record.entities) and facts == list(record.facts):
            return record
        return replace(record, entities=tuple(entities), facts=tuple(facts))

    def _renamed(self, entity: Entity) -> Entity:
        own = cached_key(entity.name)
        if own in self._names:
            return entity if cached_key(self._names[own]) == own else _rename(entity, self._names[own])
        names = {self._names[key] for alias in entity.aliases if (key := cached_key(alias)) in self._names}
        return _rename(entity, names.pop()) if len(names) == 1 else entity

    def _link_fact(self, fact: Fact, entities: list[Entity], ids: dict[str, str], used_ids: set[str]) -> Fact:
        linked = []
        for _, _, form in self._scan(fact.text):
            key = cached_key(form.name)
            if key not in ids:
                number = len(entities) + 1
                while f"n{number}" in used_ids:
                    number += 1
                ids[key] = f"n{number}"
                used_ids.add(ids[key])
                entities.append(Entity(ids[key], form.name, "Name"))
            if ids[key] not in fact.entities:
                linked.append(ids[key])
        return replace(fact, entities=tuple(dict.fromkeys((*fact.entities, *linked)))) if linked else fact

    def _scan(self, text: str, *, questions: bool = False, lowered: bool = False) -> Iterator[tuple[int, int, _Form]]:
        """Positions of titles, left to right, longest first, without overlap."""
        text = visible_text(text)
        word_spans = [match.span() for match in WORD.finditer(text)]
        words = _words(text)
        if len(words) != len(word_spans):  # a letter whose lower case is no letter: match word by word
            words = [text[start:end].lower() for start, end in word_spans]
        index, count = 0, len(words)
        while index < count:
            node = self._trie.get(words[index])
            after = index + 1
            best: tuple[int, _Form] | None = None
            while node is not None:
                form = node.get("")
                if form is not None and _matches(
                    text, word_spans[index:after], form, questions=questions, lowered=lowered
                ):
                    best = (after, form)
                node = node.get(words[after]) if after < count else None
                after += 1
            if best is None:
                index += 1
                continue
            yield word_spans[index][0], word_spans[best[0] - 1][1], best[1]
            index = best[0]


def _words(text: str) -> list[str]:
    return ["and" if word == "&" else word for word in WORD.findall(text.lower())]


def _rename(entity: Entity, name: str) -> Entity:
    keys = {cached_key(alias): alias for alias in reversed((entity.name, *entity.aliases))}
    keys.pop(cached_key(name), None)
    return replace(entity, name=name, aliases=tuple(reversed(keys.values())))


def title_forms(titles: Mapping[str, None]) -> Iterator[_Form]:
    """All forms of some titles; full ones first, short forms only if unambiguous."""
    plain: dict[str, _Form] = {}
    short: dict[str, tuple[str, set[str]]] = {}
    for title in titles:
        if not (visible := visible_text(title).strip()):
            continue
        base = base_title(visible)
        for text in dict.fromkeys((visible, base)):
            known = plain.get(cached_key(text))
            plain[cached_key(text)] = _Form(
                text, known.name if known else base, (*(known.titles if known else ()), title)
            )
        for text in _short_forms(base):
            short.setdefault(cached_key(text), (text, set()))[1].add(base)
    yield from plain.values()
    for key, (text, names) in short.items():
        if key not in plain and len(names) == 1:
            name = names.pop()
            yield _Form(text, name, plain[cached_key(name)].titles)


def _short_forms(base: str) -> Iterator[str]:
    words = base.split()
    if words[0] in ("The", "A", "An") and len(words) > 2:
        yield " ".join(words[1:])
    if ranked := _RANKED.match(base):
        yield ranked["name"]


def _linkable(text: str) -> bool:
    """Whether a form is specific enough: not short or common, not only function words."""
    words = [word.lower() for word in WORD.findall(text)]
    if len(words) == 1:
        return len(words[0]) > 2 and words[0] not in _COMMON and not words[0].isdigit() and text[0].isupper()
    return any(word not in FUNCTION_WORDS and not (word.isdigit() and len(word) < 3) for word in words)


def _matches(text: str, word_spans: Sequence[tuple[int, int]], form: _Form, *, questions: bool, lowered: bool) -> bool:
    """Whether words that match a form are really a mention of it."""
    start, end = word_spans[0][0], word_spans[-1][1]
    part = text[start:end]
    if len(word_spans) == 1:
        if lowered:
            return True
        return part == form.text and (questions or not _part_of_name(text, start, end))
    if part != form.text and not set(_BREAK.findall(part)) <= set(_BREAK.findall(form.text)):
        return False
    if part == part.lower() and not lowered and not questions:
        rest = WORD.findall(form.text)[1:]
        proper = any(word[0].isupper() and word.lower() not in FUNCTION_WORDS for word in rest)
        return not proper or len(word_spans) >= _ENOUGH_WORDS
    return len(word_spans) > 2 or questions or not _continues(text, end)


def _part_of_name(text: str, start: int, end: int) -> bool:
    """Whether a capitalised word opens the sentence or is next to another one, as in `Paris Hilton`."""
    before = text[:start].rstrip(" \"'\u201c(")
    if not before or before[-1] in ".!?":
        return start < 1 or text[start - 1] not in '"\u201c'
    if _continues(text, end):
        return True
    last = before.rsplit(" ", 1)[-1]
    joined = before[-1].isalnum() and text[start - 1] in " -"
    return joined and last[:1].isupper() and last.lower().rstrip(".") not in _BEFORE_NAMES


def _continues(text: str, end: int) -> bool:
    following = text[end : end + 2]
    return len(following) == 2 and following[0] in " -" and following[1].isupper()
