"""Extraction without a language model: sentences as facts, capitalised spans as entities, TF-IDF keyphrases."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from sire_core.extraction.coreference import Mention, NameTable
from sire_core.extraction.headings import base_title, rarity
from sire_core.extraction.passage_sections import VALUES, TextSection, merged, other_forms, sections_of
from sire_core.extraction.spans import TextSpan, has_unspaced_script
from sire_core.protocols import ChunkInContext
from sire_core.text.lexicon import (
    DEMONYMS,
    FUNCTION_WORDS,
    KIND_NOUNS,
    MONTHS,
    NAME_TAILS,
    OPENERS,
    PERSON_SUFFIXES,
)
from sire_core.text.words import cached_key, phrase_words, visible_text
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact, Triple

_RUN = re.compile(r"(?<![\w'\u2019-])[a-z][a-z-]+(?: [a-z][a-z-]+)*(?![\w'\u2019])")
_MAX_KEYPHRASES = 5
_MAX_RUN = 3
_NAME_WEIGHT = 1.5  # names are what passages share; found by reading, not tuned
_LENGTH_EXPONENT = 0.4
# Words that open sentences are mostly participles and adverbs, but these are themes.
_THEMES = frozenset(
    (
        *("film", "films", "song", "songs", "album", "albums", "music", "book", "books", "novel", "novels", "story"),
        *("plot", "population", "children", "women", "men", "students", "works", "season", "series", "episode"),
        *("guitar", "vocals", "history", "death", "people"),
    )
)
_STOP = (FUNCTION_WORDS | OPENERS | frozenset(MONTHS)) - _THEMES

_COPULA = re.compile(r"\b(?:is|was|are|were|became)\b (?:one of |also |an? |the |his |her |their )*")
_CLAUSE_END = re.compile(
    r"[,;.(:]| (?:who|which|that|of|in|from|by|for|to|on|at|with|about|as|and|or|based|known|located|situated|starring|"
    r"written|made|built|sung|run|set|held|featuring|including|serving|playing|living|born|near|between|set|\w+ed)\b"
)
_BIRTH = re.compile(
    r"\((?:[^()]{0,60}?[;,] )?(?:born|b\.|d\.|died|c\.|ca\.|\d{1,2} [A-Z][a-z]+ \d{3,4}|[A-Z][a-z]+ \d{1,2}, \d{4}|"
    r"\d{3,4} ?[\u2013-] ?\d{3,4}\))"
)
_PERSON = re.compile(r"\b(?:[Ss]he|[Hh](?:er?|is))\b")
_REFERRING_WORD = re.compile(
    r"(?P<intro>(?:(?:In|On|At|After|By|During|Since|From|Until|Before|Following|Throughout|Upon|As|While|When|"
    r"Although|Though|Despite|Born|Originally|Later|Then|Initially|Subsequently|However|Eventually|Today|Currently)\b"
    r"[^,;:()]{0,60}, |(?:In|Since|By|During|Until|On) (?:\w+ ){0,2}\d{4} ))?"
    r"(?:(?P<subject>[Hh]e|[Ss]he|[Ii]t|[Tt]hey)(?! ?['\u2019])|(?P<owner>[Hh]is|[Hh]er|[Ii]ts|[Tt]heir)(?= \w)|"
    r"[Tt](?:he|his) (?:\d{4} |[a-z-]+ly )?(?P<noun>[a-z-]+))\b"
)
_VERB = re.compile(
    r"(?P<own>['\u2019]s\b)|,? (?:also |then |later |originally |first |is|was|are|were|has|had|have|will|would|can|"
    r"could|may|did|does|became|began|won|took|ran|made|came|went|left|met|led|lies|sold|told|got|grew|held|spent|\w{3,}ed\b|"
    r"\w{2,}[^s\W]s\b)"
)
_RULES_VERSION = "rules/8"
_PASSAGES_PER_BATCH = 256
# What may stand in front of a name that is the subject: an adverbial up to a comma, an article, a few plain words.
_LEAD = re.compile(
    r"(?:[A-Z][^,]{0,60}, )?[\"\u201c(]?(?:(?!(?:in|on|at|from|of|by|for|with|to|into|near|is|was|were|are|has|had|and|"
    r"as|\w+ed|that)\b)[\w'\u2019-]+ ){0,4}[\"\u201c]?",
    re.IGNORECASE,
)
_LEAD_REACH = 100
_SHORTEST_UNSPACED = 6  # letters of a statement in Chinese or Japanese
_WORD_LETTER = re.compile(r"\w")
_WORD_BETWEEN = re.compile(r"[\w'\u2019&%$-]+")
_LINK_WORDS = frozenset(("and", "or", "as", "well", "the", "a", "an", "with", "both", "his", "her", "its", "their"))
_MAX_WORDS = 8


def keyphrases(chunk: Chunk, sentences: Sequence[str], names: Iterable[str]) -> tuple[str, ...]:
    """The passage's most telling phrases, verbatim, best first; never the title."""
    titles = (phrase_words(chunk.title), phrase_words(base_title(chunk.title)))
    counted: dict[str, list[float]] = {}  # words -> [count, weight]
    forms: dict[str, str] = {}
    for weight, phrases in ((_NAME_WEIGHT, names), (1.0, _runs(sentences))):
        for phrase in phrases:
            # A run in lower case is its words; names may be written in many ways.
            words = phrase if weight == 1.0 and "-" not in phrase else phrase_words(phrase)
            if words in counted:
                counted[words][0] += 1
            elif words and words not in titles:
                counted[words] = [1.0, weight]
                forms[words] = phrase
    scored = []
    for order, (words, (count, weight)) in enumerate(counted.items()):
        parts = words.split()
        mean = sum(map(rarity, parts)) / len(parts)
        scored.append((-weight * mean * count**0.5 * len(parts) ** _LENGTH_EXPONENT, order, words))
    scored.sort()
    text = f" {phrase_words(chunk.text)} "  # tidying may have joined what the passage has apart
    return tuple(islice((forms[words] for _, _, words in scored if f" {words} " in text), _MAX_KEYPHRASES))


def _runs(sentences: Sequence[str]) -> Iterable[str]:
    """Runs of one to three lower-case content words; of a longer run the last three, where the head noun is."""
    for match in _RUN.finditer("\n".join(sentences)):
        run: list[str] = []
        for word in (*match.group().split(), ""):
            if len(word) > 2 and word not in _STOP:
                run.append(word)
            elif run:
                if len(run) > 1 or (len(run[0]) > 3 and not run[0].endswith(("ed", "ing", "ly"))):
                    yield " ".join(run[-_MAX_RUN:])
                run = []


class Reference(NamedTuple):
    """A piece of a sentence that stands for the title: `sentence[start:end]`; `owner` when it is possessive."""

    start: int
    end: int
    owner: bool


def detect_kind(title: str, sentences: list[str]) -> str:
    """Coarse type of what the title names, from the first sentence; empty when nothing tells."""
    first = sentences[0][:400] if sentences else ""
    bracket = title[len(base_title(title)) :].strip(" ()").lower().split()
    if bracket and (kind := _noun_kind(bracket[-1])):
        return kind
    if _BIRTH.search(first[: len(title) + 120]):
        return "Person"
    copula = _COPULA.search(first)
    if copula and copula.start() < len(title) + 120:
        clause = first[copula.end() :]
        end = _CLAUSE_END.search(clause)
        words = clause[: end.start() if end else 80].split()
        if words and (kind := _noun_kind(words[-1].lower())):
            return kind
    return _kind_of_name(base_title(title), sentences)


def _noun_kind(noun: str) -> str:
    for form in (noun, noun.removesuffix("s")):
        if form in KIND_NOUNS:
            return KIND_NOUNS[form]
    return "Person" if noun.endswith(PERSON_SUFFIXES) and noun not in DEMONYMS else ""


def _kind_of_name(base: str, sentences: list[str]) -> str:
    words = base.split(",", 1)[0].split()
    if words and (tail := NAME_TAILS.get(words[-1].lower())):
        return tail
    looks_personal = 1 < len(words) < 5 and all(word[0].isupper() for word in words)
    return "Person" if looks_personal and any(re.match(r"(?:He|She|His|Her)\b", text) for text in sentences) else ""


def gender(text: str) -> str:
    """`she` or `he`, whichever a passage says more often; empty when that does not tell."""
    words = [word.lower() for word in _PERSON.findall(text)]
    he = words.count("he") + words.count("his")
    she = len(words) - he
    return "" if she == he else "she" if she > he else "he"


def find_reference(sentence: str, kind: str, sex: str, names_before: int) -> Reference | None:
    """Find the piece at the start of a sentence that safely stands for the title."""
    match = _REFERRING_WORD.match(sentence)
    if match is None or (match["intro"] and match.end("intro") > names_before):
        return None
    noun = match["noun"]
    if noun:
        return _described(sentence, match, noun, kind)
    group = "owner" if match["owner"] else "subject"
    word = match[group].lower()
    fits = {
        "he": kind == "Person" and sex == "he",
        "his": kind == "Person" and sex == "he",
        "she": kind == "Person" and sex == "she",
        "her": kind == "Person" and sex == "she",
        "they": kind == "Organization",
        "their": kind == "Organization",
    }
    return (
        Reference(match.start(group), match.end(group), group == "owner") if fits.get(word, kind != "Person") else None
    )


def _described(sentence: str, match: re.Match[str], noun: str, kind: str) -> Reference | None:
    if noun in FUNCTION_WORDS or not kind or _noun_kind(noun) != kind:
        return None
    verb = _VERB.match(sentence, match.end("noun"))
    if verb is None:
        return None
    start = match.end("intro") if match["intro"] else 0
    return Reference(start, verb.end("own") if verb["own"] else match.end("noun"), bool(verb["own"]))


class Tagger(Protocol):
    """Finds named spans with a model of its own."""

    @property
    def fingerprint(self) -> str:
        """Names the model."""

    def tag(self, sentences: Sequence[str]) -> list[list[TextSpan]]:
        """Named spans per sentence, in order, without overlap."""


class RulesExtractor:
    """The extractor that needs no language model.

    Sentences become facts whose subject is spelt out; capitalised spans, quoted works, dates and quantities become
    entities; the order of names gives triples. A record depends on its passage alone, so that an index that grew is the
    one that a build of everything makes.

    Args:
        tagger: Finds names that patterns miss; its spans win over overlapping ones.
    """

    links_titles = True  # Titles of other documents that a fact names become entities when records are read
    portable = True  # Nothing is asked, and nothing of other passages is needed
    verbatim = True  # Every word of a record stands in its passage's title or text

    def __init__(self, tagger: Tagger | None = None) -> None:
        self._tagger = tagger
        self.fingerprint = f"{_RULES_VERSION}+{tagger.fingerprint}" if tagger else _RULES_VERSION

    async def extract(self, chunks: Sequence[ChunkInContext]) -> AsyncIterator[Sequence[ExtractionRecord]]:
        """Yield one record per chunk, 256 at a time; the work runs in a thread."""
        for start in range(0, len(chunks), _PASSAGES_PER_BATCH):
            batch = [item.chunk for item in chunks[start : start + _PASSAGES_PER_BATCH]]
            yield await asyncio.to_thread(self.records, batch)

    def records(self, chunks: Sequence[Chunk]) -> list[ExtractionRecord]:
        """Records of chunks, in order; the synchronous face of `extract`."""
        passages = [sections_of(chunk) for chunk in chunks]
        if self._tagger is not None:
            rows = [section for sections in passages for section in sections]
            tagged = iter(self._tagger.tag([sentence for section in rows for sentence in section.sentences]))
            for section in rows:
                section.spans[:] = [merged(next(tagged), spans) for spans in section.spans]
        return [self._record(*item) for item in zip(chunks, passages, strict=True)]

    def _record(self, chunk: Chunk, sections: Sequence[TextSection]) -> ExtractionRecord:
        draft = _Draft()
        for section in sections:
            kind = detect_kind(section.subject, section.sentences)
            table = NameTable(base_title(section.subject), kind, section.sentences, section.spans)
            draft.begin(table, section, gender(chunk.text) if kind == "Person" else "")
            for number, sentence in enumerate(section.sentences):
                draft.add(sentence, table.mentions(number))
            draft.end()
        sentences = [sentence for section in sections for sentence in section.sentences]
        phrases = keyphrases(chunk, sentences, draft.surface)
        entities = draft.entities()
        subject = next((section.subject for section in sections if section.subject), "")
        return ExtractionRecord(
            hash=chunk.hash,
            model=self.fingerprint,
            prompt=_RULES_VERSION,
            status="ok" if draft.facts or phrases else "empty",
            entities=entities,
            facts=tuple(draft.facts),
            keywords=phrases,
            topic=" ".join(visible_text(chunk.title).split()) or subject or (phrases[0] if phrases else ""),
        )


class _Draft:
    """A record in the making, section by section."""

    _table: NameTable
    _section: TextSection

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.surface: list[str] = []
        self._sex = ""
        self._ids: dict[str, str] = {}
        self._entities: list[tuple[str, str, str]] = []
        self._aliases: dict[str, dict[str, None]] = {}
        self._descriptions: dict[str, str] = {}

    def begin(self, table: NameTable, section: TextSection, sex: str) -> None:
        self._table = table
        self._section = section
        self._sex = sex

    def end(self) -> None:
        """Take in what a section names outside of its sentences, and what it calls its names."""
        for name, kind in self._section.others:
            self._identify(name, kind)
        for term, description in self._section.definitions.items():
            if (key := cached_key(term)) in self._ids:
                self._descriptions.setdefault(key, description)
        for key, names in self._table.aliases.items():
            self._aliases.setdefault(key, {}).update(names)
        if (title := self._table.title) and self._section.subject != title:
            self._aliases[cached_key(title)] = {self._section.subject: None, **self._aliases.get(cached_key(title), {})}

    def add(self, sentence: str, mentions: list[Mention]) -> None:
        if not _is_statement(sentence):
            return  # a stub such as "Population:"
        names = (sentence[mention.start : mention.end] for mention in mentions if mention.type not in VALUES)
        self.surface += [name.strip('"\u201c\u201d ,;') for name in names]
        text, mentions = self._about_title(sentence, mentions)
        ids = [self._identify(mention.name, mention.type) for mention in mentions]
        fact_id = f"f{len(self.facts) + 1}"
        triples = self._triples(sentence, mentions, ids)
        self.facts.append(Fact(fact_id, text, tuple(dict.fromkeys(ids)), answer=text, triples=triples))

    def _about_title(self, sentence: str, mentions: list[Mention]) -> tuple[str, list[Mention]]:
        """Name the title where the sentence leaves it out; the mentions keep their places in `sentence`."""
        title, kind = self._table.title, self._table.kind or "Name"
        if not title:
            return sentence, mentions
        others = [mention for mention in mentions if mention.type not in VALUES and not mention.about]
        first_named = min((mention.start for mention in others if mention.type != "Location"), default=len(sentence))
        reference = find_reference(sentence, self._table.kind, self._sex, first_named)
        if reference is not None:
            start, end, owner = reference
            name = f"{title}'s" if owner else title
            text = f"{sentence[:start]}{name}{sentence[end:]}"
            others_ = [mention for mention in mentions if mention.end <= start or mention.start >= end]
            return text, sorted([*others_, Mention(start, end, title, kind, about=True)])
        if mentions and mentions[0].about and mentions[0].start < 2:
            first = mentions[0]
            if _is_short(sentence[first.start : first.end], title):
                return f"{sentence[: first.start]}{title}{sentence[first.end :]}", mentions
            return sentence, mentions
        if any(mention.about for mention in mentions) or (self.facts and _has_subject(sentence, mentions)):
            return sentence, mentions  # the first fact always names the title: it is what the passage is about
        return f"{title}: {sentence}", [Mention(0, 0, title, kind, about=True), *mentions]

    def _identify(self, name: str, kind: str) -> str:
        key = cached_key(name)
        if key not in self._ids:
            self._ids[key] = f"n{len(self._ids) + 1}"
            self._entities.append((key, name, kind))
        return self._ids[key]

    def _triples(self, sentence: str, mentions: list[Mention], ids: list[str]) -> tuple[Triple, ...]:
        subject = next((number for number, mention in enumerate(mentions) if mention.about), None)
        mention_spans = [(mention.start, mention.end, mention.type not in VALUES) for mention in mentions]
        pairs = relate(sentence, mention_spans, subject)
        triples = [
            Triple(ids[pair.head], pair.predicate, ids[pair.tail]) for pair in pairs if ids[pair.head] != ids[pair.tail]
        ]
        return tuple(dict.fromkeys(triples))

    def entities(self) -> tuple[Entity, ...]:
        """The entities in order of appearance, with what else the passage calls them."""
        entities = []
        for key, name, kind in self._entities:
            names = (*self._aliases.get(key, ()), *other_forms(name, kind))
            other = {cached_key(alias): alias for alias in reversed(names)}
            aliases = tuple(alias for form, alias in reversed(other.items()) if form and form != key)
            entities.append(Entity(self._ids[key], name, kind or "Name", aliases, self._descriptions.get(key, "")))
        return tuple(entities)


def _is_statement(sentence: str) -> bool:
    """Four words, or two without a colon behind the first letter of the last."""
    words = list(islice(filter(_WORD_LETTER.search, sentence.split()), 4))
    if len(words) > 3 or (len(sentence) >= _SHORTEST_UNSPACED and has_unspaced_script(sentence)):
        return True
    if len(words) < 2:
        return False
    last = _WORD_LETTER.search(words[-1])
    return last is not None and ":" not in words[-1][last.start() :]


def _is_short(name: str, title: str) -> bool:
    """True if a mention is a shorter form that the title may replace: `Kwan` for `Stanley Kwan`."""
    return " " not in name and name != title and name in title.split()


def _has_subject(sentence: str, mentions: Sequence[Mention]) -> bool:
    """True if a name stands where the subject is: near the start, and behind no verb or preposition."""
    names = (mention for mention in mentions if mention.type not in VALUES)
    return any(_LEAD.fullmatch(sentence, 0, mention.start) for mention in names if mention.start <= _LEAD_REACH)


class Pair(NamedTuple):
    """A relation between two mentions, by their place in the row of mentions."""

    head: int
    predicate: str
    tail: int


def relate(sentence: str, mentions: Sequence[tuple[int, int, bool]], subject: int | None) -> list[Pair]:
    """Relate the mentions of a sentence."""
    pairs: dict[Pair, None] = {}
    head: int | None = None
    listed: tuple[int, str] | None = None
    for number, (start, _, is_head) in enumerate(mentions):
        if number:
            words = _WORD_BETWEEN.findall(sentence[mentions[number - 1][1] : start])
            predicate = " ".join(words[-_MAX_WORDS:])
            if all(word in _LINK_WORDS for word in words):
                if listed is not None:
                    pairs[Pair(listed[0], listed[1], number)] = None
                    predicate = listed[1]
            elif head is not None:
                pairs[Pair(head, predicate, number)] = None
                listed = (head, predicate)
            if subject is not None and number > subject and predicate and listed is not None:
                pairs[Pair(subject, predicate, number)] = None
        if is_head:
            head = number
    return list(pairs)
