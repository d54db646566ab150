"""Extraction without a language model: sentences as facts, capitalised spans as entities, TF-IDF keyphrases."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sire_core.extraction.keyphrases import keyphrases
from sire_core.extraction.names import Mention, NameTable, cached_key
from sire_core.extraction.relations import relate
from sire_core.extraction.spans import Span, find_spans, sentences_of
from sire_core.extraction.statistics import WordStatistics
from sire_core.extraction.subjects import base_title, detect_kind, find_reference, gender
from sire_core.protocols import ChunkInContext
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact, Triple

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RulesExtractor", "Tagger"]

_VERSION = "rules/1"
_BATCH = 256
# What may stand in front of a name that is the subject: an adverbial up to a comma, an article, a few plain words.
_LEAD = re.compile(
    r"(?:[A-Z][^,]{0,60}, )?[\"\u201c(]?(?:(?!(?:in|on|at|from|of|by|for|with|to|into|near|is|was|were|are|has|had|and|"
    r"as|\w+ed|that)\b)[\w'\u2019-]+ ){0,4}[\"\u201c]?",
    re.IGNORECASE,
)
_LEAD_REACH = 100
_STATEMENT = re.compile(r"\w(?:\S*\s+\W*\w){3}|\w\S*\s+\W*\w[^:]*$")  # four words, or two without a colon behind
_VALUES = frozenset(("Date", "Quantity"))


class Tagger(Protocol):
    """Finds named spans with a model of its own."""

    @property
    def fingerprint(self) -> str:
        """Names the model."""

    def tag(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Named spans per sentence, in order, without overlap."""


class RulesExtractor:
    """The extractor that needs no language model (ALGORITHMS 12, the extraction-free route).

    Sentences become facts whose subject is spelt out; capitalised spans, quoted works, dates and quantities become
    entities; the order of names gives triples. Works unfitted; `fit` learns how rare words are and which are names.

    Args:
        tagger: Finds names that patterns miss; its spans win over overlapping ones.
        statistics: Word counts of the corpus; `fit` makes them.
    """

    def __init__(self, tagger: Tagger | None = None, *, statistics: WordStatistics | None = None) -> None:
        self._tagger = tagger
        self._statistics = statistics or WordStatistics()
        parts = (_VERSION, tagger.fingerprint if tagger else "", self._statistics.fingerprint)
        self._fingerprint = "+".join(part for part in parts if part)

    @property
    def fingerprint(self) -> str:
        """Version of the rules, the tagger and a digest of the learned counts."""
        return self._fingerprint

    @property
    def links_titles(self) -> bool:
        """Always: titles of other documents that a fact names become entities when records are read."""
        return True

    @property
    def verbatim(self) -> bool:
        """Always: every word of a record stands in its passage's title or text."""
        return True

    @property
    def fitted(self) -> bool:
        """Whether word counts were learned."""
        return self._statistics.fitted

    def fit(self, texts: Sequence[str]) -> RulesExtractor:
        """Return a copy that has counted the words of `texts`."""
        return RulesExtractor(self._tagger, statistics=WordStatistics.fit(texts))

    def state(self) -> Mapping[str, NDArray[Any]]:
        """The word counts as arrays."""
        return self._statistics.state()

    def from_state(self, state: Mapping[str, NDArray[Any]]) -> RulesExtractor:
        """Return a copy with the word counts of `state()`.

        Raises:
            StorageError: The arrays are damaged.
        """
        return RulesExtractor(self._tagger, statistics=WordStatistics.from_state(state))

    async def extract(self, chunks: Sequence[ChunkInContext]) -> AsyncIterator[Sequence[ExtractionRecord]]:
        """Yield one record per chunk, 256 at a time; the work runs in a thread."""
        import asyncio

        for start in range(0, len(chunks), _BATCH):
            batch = [item.chunk for item in chunks[start : start + _BATCH]]
            yield await asyncio.to_thread(self.records, batch)

    def records(self, chunks: Sequence[Chunk]) -> list[ExtractionRecord]:
        """Records of chunks, in order; the synchronous face of `extract`."""
        sentences = [sentences_of(chunk.text) for chunk in chunks]
        spans = [[find_spans(sentence) for sentence in row] for row in sentences]
        if self._tagger is not None:
            tagged = iter(self._tagger.tag([sentence for row in sentences for sentence in row]))
            spans = [[_merge(next(tagged), found) for found in row] for row in spans]
        return [self._record(*item) for item in zip(chunks, sentences, spans, strict=True)]

    def _record(self, chunk: Chunk, sentences: list[str], spans: list[list[Span]]) -> ExtractionRecord:
        full_title = " ".join(chunk.title.split())
        kind = detect_kind(full_title, sentences)
        table = NameTable(base_title(full_title), kind, sentences, spans, self._statistics)
        draft = _Draft(table, full_title, gender(chunk.text))
        for number, sentence in enumerate(sentences):
            draft.add(sentence, table.mentions(number))
        phrases = keyphrases(chunk, sentences, draft.surface, self._statistics)
        entities = draft.entities()
        return ExtractionRecord(
            hash=chunk.hash,
            model=self._fingerprint,
            prompt=_VERSION,
            status="ok" if draft.facts or phrases else "empty",
            entities=entities,
            facts=tuple(draft.facts),
            keywords=phrases,
            topic=full_title or (phrases[0] if phrases else ""),
        )


class _Draft:
    """A record in the making."""

    def __init__(self, table: NameTable, full_title: str, sex: str) -> None:
        self.facts: list[Fact] = []
        self.surface: list[str] = []
        self._table = table
        self._full_title = full_title
        self._sex = sex
        self._ids: dict[str, str] = {}
        self._entities: list[tuple[str, str, str]] = []

    def add(self, sentence: str, mentions: list[Mention]) -> None:
        """Turn a sentence into a fact."""
        if not _STATEMENT.search(sentence):
            return  # a stub such as "Population:"
        names = (sentence[mention.start : mention.end] for mention in mentions if mention.type not in _VALUES)
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
        others = [mention for mention in mentions if mention.type not in _VALUES and not mention.about]
        named = min((mention.start for mention in others if mention.type != "Location"), default=len(sentence))
        reference = find_reference(sentence, self._table.kind, self._sex, named)
        if reference is not None:
            start, end, owner = reference
            name = f"{title}'s" if owner else title
            text = f"{sentence[:start]}{name}{sentence[end:]}"
            kept = [mention for mention in mentions if mention.end <= start or mention.start >= end]
            return text, sorted([*kept, Mention(start, end, title, kind, about=True)])
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
        places = [(mention.start, mention.end, mention.type not in _VALUES) for mention in mentions]
        pairs = relate(sentence, places, subject)
        found = [
            Triple(ids[pair.head], pair.predicate, ids[pair.tail]) for pair in pairs if ids[pair.head] != ids[pair.tail]
        ]
        return tuple(dict.fromkeys(found))

    def entities(self) -> tuple[Entity, ...]:
        """The entities in order of appearance, with what else the passage calls them."""
        made = []
        for key, name, kind in self._entities:
            aliases = dict(self._table.aliases.get(key, {}))
            if key == cached_key(self._table.title) and self._full_title != name:
                aliases = {self._full_title: None, **aliases}
            other = {cached_key(alias): alias for alias in reversed(aliases)}
            kept = tuple(alias for form, alias in reversed(other.items()) if form and form != key)
            made.append(Entity(self._ids[key], name, kind or "Name", kept))
        return tuple(made)


def _is_short(found: str, title: str) -> bool:
    """Whether a mention is a shorter form that the title may replace: `Kwan` for `Stanley Kwan`."""
    return " " not in found and found != title and found in title.split()


def _has_subject(sentence: str, mentions: Sequence[Mention]) -> bool:
    """Whether a name stands where the subject is: near the start, and behind no verb or preposition."""
    names = (mention for mention in mentions if mention.type not in _VALUES)
    return any(_LEAD.fullmatch(sentence, 0, mention.start) for mention in names if mention.start <= _LEAD_REACH)


def _merge(tagged: Sequence[Span], found: Sequence[Span]) -> list[Span]:
    """Both kinds of spans; where they overlap the tagger's wins, except over values, works and longer names."""

    def yields(span: Span, other: Span) -> bool:
        inside = span.start <= other.start and other.end <= span.end and span.end - span.start > other.end - other.start
        return not (inside or span.type in _VALUES or span.type == "Work")

    kept = list(found)
    for span in tagged:
        clashes = [other for other in kept if other.start < span.end and span.start < other.end]
        if all(yields(other, span) for other in clashes):
            kept = [other for other in kept if other not in clashes] + [span]
    return sorted(kept)
