"""Links titles of the corpus as entities of the facts that mention them, in every way they are written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sire_core.documents.heading_paths import naming_title
from sire_core.extraction.headings import base_title
from sire_core.text.lexicon import DEMONYMS, FUNCTION_WORDS, HONORIFICS, MONTHS, OPENERS, WEEKDAYS
from sire_core.text.words import FINAL_MARKS, cached_key, name_key, split_words, visible_text
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

    from sire_core.documents.stored_corpus import CorpusUpdate, StoredCorpus

WORD = re.compile(r"\w+|&")  # A word of a title or a text

_BREAK = re.compile(r"(?<=\w{4})\.|[;:!?,]")  # `St. Louis` has none
_RANKED = re.compile(
    r"(?P<name>(?=[^,]+ [^,])[^,]+), (?:\d+\w\w |the \d+\w\w )?(?:grand |crown )?(?:king|queen|prince|princess|duke|"
    r"duchess|count|countess|earl|baron|baroness|marquess|viscount|lord|lady|elector|margrave|landgrave|emperor|empress)\b",
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
    """

    def __init__(self, titles: Sequence[str]) -> None:
        self._nodes: dict[tuple[int, str], int] = {}  # Of a trie of words: child by parent and word; the root is 0
        self._forms: dict[int, _Form] = {}
        self._names: dict[str, str] = {}
        for form in title_forms(dict.fromkeys(title for title in titles if title.strip())):
            if not _linkable(form.text):
                continue
            node = 0
            for word in _words(form.text):
                node = self._nodes.setdefault((node, word), len(self._nodes) + 1)
            self._forms.setdefault(node, form)
            self._names.setdefault(cached_key(form.text), form.name)

    def link(self, records: Mapping[str, ExtractionRecord]) -> dict[str, ExtractionRecord]:
        """Add to each fact the titles that occur in its text, as entities of its record."""
        return {chunk: self._link(record) for chunk, record in records.items()}

    def mentions(self, text: str) -> dict[str, str]:
        """Titles that a question mentions, in any case, in order, each as it spells it; of a name all titles."""
        text = visible_text(text)
        lowered = text[1:] == text[1:].lower()
        names: dict[str, str] = {}
        for start, end, form in self._scan(text, questions=True, lowered=lowered):
            names |= {title: text[start:end] for title in form.titles if title not in names}
        return names

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
        words, word_spans = _words(text), list[tuple[int, int]]()
        if len(text.lower()) != len(text):
            word_spans = _word_spans(text)
            if len(words) != len(word_spans):  # a letter whose lower case is no letter: match word by word
                words = [text[start:end].lower() for start, end in word_spans]
        index, count = 0, len(words)
        while index < count:
            node = self._nodes.get((0, words[index]))
            after = index + 1
            best: tuple[int, _Form] | None = None
            while node is not None:
                if (form := self._forms.get(node)) is not None:
                    word_spans = word_spans or _word_spans(text)
                    if _matches(text, word_spans[index:after], form, questions=questions, lowered=lowered):
                        best = (after, form)
                node = self._nodes.get((node, words[after])) if after < count else None
                after += 1
            if best is None:
                index += 1
                continue
            yield word_spans[index][0], word_spans[best[0] - 1][1], best[1]
            index = best[0]


def _words(text: str) -> list[str]:
    if text.isascii():
        return split_words(text.replace("&", " and "))
    return ["and" if word == "&" else word for word in WORD.findall(text.lower())]


def _word_spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in WORD.finditer(text)]


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
            form = plain.get(cached_key(text))
            plain[cached_key(text)] = _Form(text, form.name if form else base, (*(form.titles if form else ()), title))
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
    """True if a form is specific enough: not short or common, not only function words."""
    words = [word.lower() for word in WORD.findall(text)]
    if len(words) == 1:
        return len(words[0]) > 2 and words[0] not in _COMMON and not words[0].isdigit() and text[0].isupper()
    return any(word not in FUNCTION_WORDS and not (word.isdigit() and len(word) < 3) for word in words)


def _matches(text: str, word_spans: Sequence[tuple[int, int]], form: _Form, *, questions: bool, lowered: bool) -> bool:
    """True if words that match a form are really a mention of it."""
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
    """True if a capitalised word opens the sentence or is next to another one, as in `Paris Hilton`."""
    before = text[:start].rstrip(" \"'\u201c(")
    if not before or before[-1] in FINAL_MARKS:
        return start < 1 or text[start - 1] not in '"\u201c'
    if _continues(text, end):
        return True
    last = before.rsplit(" ", 1)[-1]
    joined = before[-1].isalnum() and text[start - 1] in " -"
    return joined and last[:1].isupper() and last.lower().rstrip(".") not in _BEFORE_NAMES


def _continues(text: str, end: int) -> bool:
    following = text[end : end + 2]
    return len(following) == 2 and following[0] in " -" and following[1].isupper()


_ESCAPED = re.compile(r"\\(?:u[0-9a-f]{4}|.)")  # JSON escapes no letters here


_TRIPLE_BITS, _TRIPLE_SHIFT = 2048, np.uint16(5)
"""Bits of a passage that stand for three bytes in a row, and what shifts 16 bits to a number below that."""
_TEXTS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class PassageTexts:
    """Which bytes follow one another in the `folded` texts of passages. An `Incremental` of the corpus."""

    hashes: Sequence[str]  # content hashes of the passages
    triples: NDArray[np.uint8]  # bits of each passage, packed, `[_TRIPLE_BITS / 8, passages]`

    @classmethod
    def of(cls, corpus: StoredCorpus) -> Self:
        """Build from all passages."""
        hashes = list(corpus.units_by_hash)
        return cls(hashes, _text_triples(corpus, hashes))

    def updated(self, update: CorpusUpdate) -> Self:
        """Update after a change."""
        after, hashes, triples = update.after, self.hashes, self.triples
        if update.old_chunks:
            remaining = np.array([name in after.units_by_hash for name in hashes], dtype=bool)
            hashes, triples = list(compress(hashes, remaining)), triples[:, remaining]
        new_hashes = dict.fromkeys(after.hashes[chunk.id] for chunk in update.new_chunks)
        new = [name for name in new_hashes if name not in update.before.units_by_hash]
        return type(self)([*hashes, *new], np.concatenate([triples, _text_triples(after, new)], axis=1))

    def holding(self, wordings: Sequence[str], corpus: StoredCorpus) -> set[str]:
        """Content hashes of the passages that contain all words of a form: only these may link it."""
        names = set[str]()
        for words in (SurfaceForm(wording).words for wording in wordings):
            possible = np.ones(len(self.hashes), dtype=bool)
            for bit in {bit for word in words for bit in _triples(_encoded(word)).tolist()}:
                possible &= (self.triples[bit // 8] & (128 >> bit % 8)) != 0
            for name in compress(self.hashes, possible):
                if name not in names and all(map(_folded_passage(corpus, name).__contains__, words)):
                    names.add(name)
        return names


def _folded_passage(corpus: StoredCorpus, content_hash: str) -> str:
    return folded(corpus.chunk_by_id[corpus.units_by_hash[content_hash][0]].index_text)


def _text_triples(corpus: StoredCorpus, hashes: Sequence[str]) -> NDArray[np.uint8]:
    """Packed bits of passages, `[_TRIPLE_BITS / 8, len(hashes)]`."""
    parts = [np.zeros((0, _TRIPLE_BITS // 8), dtype=np.uint8)]
    for start in range(0, len(hashes), _TEXTS_AT_ONCE):
        texts = [_encoded(_folded_passage(corpus, name)) for name in hashes[start : start + _TEXTS_AT_ONCE]]
        first_bits = np.arange(0, len(texts) * _TRIPLE_BITS, _TRIPLE_BITS).repeat(list(map(len, texts)))
        bits = np.zeros(len(texts) * _TRIPLE_BITS, dtype=bool)
        triples = _triples(b"".join(texts))  # those over the end of a text exclude nothing more
        bits[first_bits[: len(triples)] + triples] = True
        parts.append(np.packbits(bits.reshape(len(texts), _TRIPLE_BITS), axis=1))
    return np.ascontiguousarray(np.concatenate(parts).T)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _triples(text: bytes) -> NDArray[np.uint16]:
    """Numbers below `_TRIPLE_BITS` of each three bytes in a row."""
    letters = np.frombuffer(text, dtype=np.uint8).astype(np.uint16)
    mixed = letters[:-2] * np.uint16(0x9E37) + letters[1:-1] * np.uint16(0x85EB) + letters[2:] * np.uint16(0xC2B3)
    return np.asarray(mixed >> _TRIPLE_SHIFT)


def _candidates(texts: Mapping[str, str], wordings: Sequence[str]) -> Iterator[tuple[str, SurfaceForm]]:
    """Keys of texts that contain all words of a form, with the form."""
    for form in map(SurfaceForm, wordings):
        longest, *rest = form.words or [""]
        yield from (
            (key, form) for key, text in texts.items() if longest in text and all(word in text for word in rest)
        )


def title_of(chunk: Chunk) -> str:
    """Return the title that names a passage; see `naming_title`."""
    return naming_title(chunk.title, chunk.text)


def first_word(title: str) -> str:
    """First word of a title that is not a function word, normalised, else empty. All its surface forms have it."""
    return next(iter(_telling_words(title)), "")


@lru_cache(1 << 12)  # titles that begin alike are asked for by each change
def _shared_words(title: str) -> frozenset[str]:
    """Words that all surface forms of a title have: those without its bracketed part and its rank."""
    return frozenset(_telling_words(base_title(visible_text(title)).partition(",")[0]))


def _telling_words(title: str) -> Iterator[str]:
    """Words that are no function words, normalised."""
    return (word for word in WORD.findall(name_key(title)) if word != "&" and word not in FUNCTION_WORDS)


@dataclass(frozen=True, slots=True)
class TitleIndex:
    """Non-empty titles of a corpus. An `Incremental` of it."""

    titles: dict[str, tuple[str, ...]]  # By `first_word`
    chunks: dict[str, tuple[str, ...]]  # Ids of the passages that have a title

    @classmethod
    def of(cls, corpus: StoredCorpus) -> Self:
        """Build from all passages."""
        index = cls({}, {})
        _add_titles(index.titles, index.chunks, corpus.chunks)
        return index

    def updated(self, update: CorpusUpdate) -> Self:
        """Update after a change."""
        removed = {chunk.id for chunk in update.old_chunks}
        titles, chunks = dict(self.titles), dict(self.chunks)
        for title in {title_of(chunk) for chunk in update.old_chunks}.intersection(chunks):
            if left := tuple(chunk for chunk in chunks[title] if chunk not in removed):
                chunks[title] = left
                continue
            del chunks[title]
            first = first_word(title)
            if others := tuple(other for other in titles[first] if other != title):
                titles[first] = others
            else:
                del titles[first]
        _add_titles(titles, chunks, update.new_chunks)
        return type(self)(titles, chunks)

    def beginning_with(self, words: Iterable[str], corpus: StoredCorpus) -> list[str]:
        """Titles whose `first_word` is one of the words, ordered by their first passage."""
        return self._in_order((title for word in words for title in self.titles.get(word, ())), corpus)

    def occurring(self, words: set[str], corpus: StoredCorpus) -> list[str]:
        """Titles that may occur in records with some words (see `words_of_records`), ordered by their first passage."""
        titles = (title for word in words for title in self.titles.get(word, ()))
        return self._in_order((title for title in titles if words.issuperset(_shared_words(title))), corpus)

    def _in_order(self, titles: Iterable[str], corpus: StoredCorpus) -> list[str]:
        by_id = corpus.chunk_by_id
        return sorted(titles, key=lambda title: min(corpus.place(by_id[chunk]) for chunk in self.chunks[title]))


def _add_titles(titles: dict[str, tuple[str, ...]], chunks: dict[str, tuple[str, ...]], new: Sequence[Chunk]) -> None:
    """Add passages to the maps of an index under construction."""
    come: dict[str, list[str]] = {}
    for chunk in new:
        if (title := title_of(chunk)).strip():
            come.setdefault(title, []).append(chunk.id)
    beginning: dict[str, list[str]] = {}
    for title, ids in come.items():
        if title not in chunks:
            beginning.setdefault(first_word(title), []).append(title)
        chunks[title] = (*chunks.get(title, ()), *ids)
    for first, own in beginning.items():
        titles[first] = (*titles.get(first, ()), *own)


class SurfaceForm:
    """A way to write a title, as it is searched for in records."""

    def __init__(self, text: str) -> None:
        words, written = WORD.findall(folded(text)), WORD.findall(text)
        # `&` and `and` are one word to the linker, so neither has to be there.
        required = {word for word in words if word not in ("&", "and")}
        # Folded, the longest first; a text that says the form holds them all
        self.words = sorted(required, key=lambda word: (-len(word), word))
        self._is_single = len(words) == len(written) == 1  # only as it is written, or as a whole name
        self._patterns = [_words_pattern(words), _words_pattern(written)]  # compiled when they are first looked for

    def occurs(self, text: str, folded_text: str) -> bool:
        """True if a record contains it, given as it is and as `folded` gives it."""
        pattern, written = self._patterns
        if self._is_single:
            return bool(re.search(written, visible_text(text)) or re.search(rf'"\W*{pattern}\W*"', folded_text))
        return bool(re.search(pattern, folded_text))


def _words_pattern(words: Sequence[str]) -> str:
    """Pattern of consecutive words; around `&` the space is optional."""
    row = ""
    for index, word in enumerate(words):
        joined = index and "&" not in (word, words[index - 1])
        row += r"\W+" if joined else r"\W*" if index else ""
        first, rest = re.escape(word[0]), re.escape(word[1:])
        # A pattern that begins with a letter, not with a boundary, is searched for in a tenth of the time.
        row += r"(?:&|\band\b)" if word in ("&", "and") else rf"{first}(?<!\w{first}){rest}\b"
    return row


def folded(text: str) -> str:
    """A text as `name_key` compares it, whose words are also those of its lower case."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", visible_text(text)).casefold()


def words_of_records(records: Iterable[ExtractionRecord]) -> set[str]:
    """Words of some records. Only titles whose `first_word` is among them, or empty, can occur there."""
    return {"", *WORD.findall(name_key("\n".join(_texts(records))))}


def changed_surface_forms(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Forms whose meaning differs between two corpora."""
    heads = set(map(first_word, set(before).symmetric_difference(after)))
    if not heads:
        return []
    was, now = (_forms_of(titles, heads) for titles in (before, after))
    different = dict.fromkeys(key for key in (*was, *now) if was.get(key) != now.get(key))
    return list(dict.fromkeys(forms[key][0] for key in different for forms in (was, now) if key in forms))


def touched_records(bodies: Mapping[str, bytes], wordings: Sequence[str]) -> set[str]:
    """Keys of the records in which a form occurs: those that may link it."""
    texts = {key: _ESCAPED.sub(" ", body.decode("utf-8", "surrogatepass")) for key, body in bodies.items()}
    folded_texts = {key: folded(text) for key, text in texts.items()}
    candidates = _candidates(folded_texts, wordings)
    return {key for key, form in candidates if form.occurs(texts[key], folded_texts[key])}


def _forms_of(titles: Sequence[str], heads: Collection[str]) -> dict[str, tuple[str, str]]:
    """(text, name) by key, for titles that begin with one of the words."""
    chosen = [title for title in dict.fromkeys(titles) if title.strip() and first_word(title) in heads]
    return {cached_key(form.text): (form.text, form.name) for form in title_forms(dict.fromkeys(chosen))}


def _texts(records: Iterable[ExtractionRecord]) -> Iterable[str]:
    for record in records:
        for entity in record.entities:
            yield entity.name
            yield from entity.aliases
        for fact in record.facts:
            yield fact.text
