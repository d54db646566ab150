"""`ModelExtractor`: records made by a language model, one call per chunk; and its prompts.

The prompts are our own words; the schemas of their answers are in `answers.py`. A change of any text needs a new
`_VERSION`: records and answers are stored under it.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

from sire_core.errors import ConfigurationError, LimitExceededError, ModelError
from sire_core.extraction.answer_schemas import (
    AliasesAnswer,
    DocumentAnswer,
    EntitiesAnswer,
    EntityAnswer,
    ExtractionAnswer,
    FactAnswer,
    FactsAnswer,
    KeywordsAnswer,
    NamesAnswer,
    RelationsAnswer,
    ShortFactsAnswer,
    TripleAnswer,
    TriplesAnswer,
    record_of,
)
from sire_core.extraction.record import facts_of_triples, validate
from sire_core.extraction.spans import sentences_of
from sire_core.models.answer_parsing import items_left_out
from sire_core.models.base import concurrency_of, with_sources
from sire_core.protocols import ChunkInContext, LanguageModel, Prompt
from sire_core.text.pluralize import count
from sire_core.text.words import count_tokens, name_key, packed
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact, Triple, digest
from sire_core.worker_pool import bounded_map

_VERSION = "v1"

JOINT = """\
Index the passage for search: list what it names and everything it states. Context, if given, only tells who or what \
is meant; take nothing else from it. Write in the passage's language. Empty lists if there is nothing.
entities: each named person, place, organization, work, event, product, term or date once, under its most informative \
name; aliases used for it; description of at most 15 words.
facts: one self-contained sentence each, with full names and no pronouns; entities = ids it names; question = one it \
answers; answer = "" unless the full-sentence answer differs from text; triples = its relations: h and t are ids or \
short literals (at least one id), strength 1-10.
keywords: the five most telling phrases, verbatim from the passage.
abstractiveness: high for an overview, low for details."""

_REWRITE = """\
Write the passage again so that every sentence can be understood alone. Put names in place of pronouns and of vague \
descriptions, using the context where the passage alone does not tell who or what is meant. Call each person or thing \
by one name, the most informative one. Keep every statement and add none. Answer with the rewritten passage only."""

_ENTITIES = """\
List the named entities of the passage, each once under its most informative name, with a type that suits the subject. \
Shorter forms of a name go into its aliases."""

_FACTS = """\
List every fact that the passage states, each as one self-contained sentence with names instead of pronouns. Use the \
names of the given entities. For each fact give its relations as triples of head, predicate and tail; at least one end \
of a triple, better both, is a given entity."""

_EXAMPLE = (
    "Example. Passage: Mira Vale (born 3 July 1961), who signs as M. Vale, is a Norwegian painter. She was taught by "
    "Otto Kell at the Harbour School and later built the sets of The Long Tide.\nAnswer: "
)
"""One passage for all examples."""

_NAMES = (
    "List what the passage names, each once: people, places, organizations, works, events, products, and dates. Write "
    "a name as the passage writes it where it is fullest.\n"
    + _EXAMPLE
    + '{"names":["Mira Vale","3 July 1961","M. Vale","Norwegian","Otto Kell","Harbour School","The Long Tide"]}'
)

_TRIPLES = (
    "Turn the passage into a graph: every relation that it states as head, predicate and tail. At least one end, "
    "better both, is one of the given names; put names in place of pronouns.\n"
    + _EXAMPLE
    + '{"triples":[["Mira Vale","born on","3 July 1961"],["Mira Vale","signs as","M. Vale"],'
    '["Mira Vale","is","Norwegian"],["Mira Vale","is","painter"],["Mira Vale","taught by","Otto Kell"],'
    '["Mira Vale","studied at","Harbour School"],["Mira Vale","built the sets of","The Long Tide"]]}'
)

_ALIASES = (
    "Which of the given names mean one and the same thing in this passage? Answer with groups of two or more names; no "
    "group where nothing has two names. A group holds no kinds, parts or relatives of a thing.\n"
    + _EXAMPLE
    + '{"aliases":[["Mira Vale","M. Vale"]]}'
)

_TYPE_NAMES = "Person, Organization, Location, Event, Product, Concept, Time"
_TYPED = (
    f"Find the entities of the passage that are of one of these types: {_TYPE_NAMES}. Give each once, with its name in "
    "capitals where the language has them, its type, and a description of everything that the passage says it is and "
    "does.\n"
    + _EXAMPLE
    + '{"entities":[{"name":"Mira Vale","type":"Person","description":"A Norwegian painter, born on 3 July 1961, who '
    'signs as M. Vale, was taught by Otto Kell and built the sets of The Long Tide."},{"name":"Otto Kell","type":'
    '"Person","description":"Taught Mira Vale at the Harbour School."},{"name":"Harbour School","type":"Organization",'
    '"description":"The school where Otto Kell taught Mira Vale."},{"name":"The Long Tide","type":"Product",'
    '"description":"Something staged, whose sets Mira Vale built."}]}'
)

_RELATED = (
    "Which of the given entities does the passage clearly relate to each other? For every such pair give source and "
    "target as listed, a description of how and why they are related, and the strength of the relation as a whole "
    "number from 1 (weak) to 10 (strong).\n"
    + _EXAMPLE
    + '{"relations":[{"source":"Mira Vale","target":"Otto Kell","description":"was taught by","strength":8},'
    '{"source":"Mira Vale","target":"The Long Tide","description":"built the sets of","strength":7}]}'
)

_KEYWORDS = (
    "Give the five phrases that tell best what the passage is about: its main things and themes, each copied from the "
    "passage letter by letter.\n"
    + _EXAMPLE
    + '{"keywords":["Mira Vale","Norwegian painter","Otto Kell","Harbour School","The Long Tide"]}'
)

_DOCUMENT = (
    "The data is a document in numbered passages. Write down everything that it states as pairs of a question and its "
    "answer: facts, descriptions, properties, events, and how the things in it are related. Each pair is about one "
    "statement and can be understood alone; the answer is a full sentence that names its subject, says nothing beyond "
    "the document, and comes with the number of its passage. And list every person, place, organization, work, event, "
    "product and date that it names, under the fullest name.\n"
    + _EXAMPLE
    + '{"qa_pairs":[{"passage":1,"question":"When was Mira Vale born?","answer":"Mira Vale was born on 3 July 1961."},'
    '{"passage":1,"question":"How does Mira Vale sign?","answer":"Mira Vale signs as M. Vale."},'
    '{"passage":1,"question":"What is Mira Vale?","answer":"Mira Vale is a Norwegian painter."},'
    '{"passage":1,"question":"Who taught Mira Vale?","answer":"Otto Kell taught Mira Vale at the Harbour School."},'
    '{"passage":1,"question":"What did Mira Vale build?","answer":"Mira Vale built the sets of The Long Tide."}],'
    '"entities":["Mira Vale","3 July 1961","Otto Kell","Harbour School","The Long Tide"]}'
)


def document_data(items: Sequence[ChunkInContext]) -> str:
    """The data block of a document: title and numbered passages."""
    passages = [{"number": number, "text": item.chunk.text} for number, item in enumerate(items, 1)]
    title = {"title": items[0].chunk.title} if items[0].chunk.title else {}
    return json.dumps({**title, "passages": passages}, ensure_ascii=False)


def passage_data(item: ChunkInContext, *, passage: str | None = None, entities: tuple[str, ...] = ()) -> str:
    """The data block of a passage: one JSON object, so that no part can pose as another."""
    data: dict[str, object] = {}
    if item.previous and passage is None:
        data["context"] = item.previous
    if item.chunk.title:
        data["title"] = item.chunk.title
    data["passage"] = item.chunk.text if passage is None else passage
    if entities:
        data["entities"] = list(entities)
    return json.dumps(data, ensure_ascii=False)


_logger = logging.getLogger(__name__)
_CONTEXT_TOKENS = 200
_ANSWER_BASE = 800
_ANSWER_PER_TOKEN = 12
_ANSWER_MOST = 8_192
_SHORT_BASE = 200
_SHORT_PER_TOKEN = 6
_MOST_NAMES = 30  # Maximum number of names in a prompt; small models lose the passage after longer lists


class NativeAnswer(NamedTuple):
    """A model's answer about one passage."""

    entities: Sequence[EntityAnswer] = ()
    facts: Sequence[FactAnswer] = ()
    keywords: Sequence[str] = ()


Ask = Callable[["LanguageModel", Sequence[ChunkInContext], Prompt, int], Awaitable[Sequence[NativeAnswer]]]
"""Sends the calls for passages that belong together, the given prompt first; the number bounds the answers' tokens."""


@dataclass(frozen=True, slots=True)
class Way:
    """A paper's way to extract."""

    name: str  # In fingerprints of records
    calls: int  # Per passage, or per document
    first: str  # Instructions of its first prompt
    ask: Ask  # All of its calls
    whole: bool = False  # Whether the passages of a document are asked about together

    def prompt(self, items: Sequence[ChunkInContext]) -> Prompt:
        """The first prompt about some passages."""
        return Prompt(self.first, document_data(items) if self.whole else passage_data(items[0]))


async def _sirerag(
    model: LanguageModel, items: Sequence[ChunkInContext], first: Prompt, room: int
) -> Sequence[NativeAnswer]:
    """Rewrite, entities, facts (SiReRAG section 4.2)."""
    (item,) = items
    passage = (await model.complete(first, max_tokens=room)).text.strip()
    data = passage_data(item, passage=passage)
    named_entities = await model.complete(Prompt(_ENTITIES, data), schema=EntitiesAnswer, max_tokens=room)
    entities: list[EntityAnswer] = named_entities.parsed.entities
    data = passage_data(item, passage=passage, entities=tuple(entity.name for entity in entities))
    answer = await model.complete(Prompt(_FACTS, data), schema=FactsAnswer, max_tokens=room)
    return [NativeAnswer(entities, [with_entities(fact, entities) for fact in answer.parsed.facts])]


async def _msrag(
    model: LanguageModel, items: Sequence[ChunkInContext], first: Prompt, room: int
) -> Sequence[NativeAnswer]:
    """Names, triples, aliases (MS-RAG section 3.2, appendix N)."""
    (item,) = items
    reply = await model.complete(first, schema=NamesAnswer, max_tokens=room)
    names = _distinct(reply.parsed.names)
    data = passage_data(item, entities=tuple(names.values()))
    stated = await model.complete(Prompt(_TRIPLES, data), schema=TriplesAnswer, max_tokens=room)
    groups: list[list[str]] = []
    if len(names) > 1:
        claimed = await model.complete(Prompt(_ALIASES, data), schema=AliasesAnswer, max_tokens=room)
        groups = claimed.parsed.aliases
    ids = {key: f"n{number}" for number, key in enumerate(names, 1)}
    others = _aliases(groups, names)
    entities = [EntityAnswer(id=ids[key], name=name, aliases=others.get(key, [])) for key, name in names.items()]
    return [NativeAnswer(entities, _stated(item, entities, stated.parsed.triples))]


async def _smart(
    model: LanguageModel, items: Sequence[ChunkInContext], first: Prompt, room: int
) -> Sequence[NativeAnswer]:
    """Typed entities with descriptions, then relations with strengths (SMART algorithm 2, table 6)."""
    (item,) = items
    reply = await model.complete(first, schema=EntitiesAnswer, max_tokens=room)
    entities: list[EntityAnswer] = reply.parsed.entities
    if len(entities) < 2:
        return [NativeAnswer(entities, _stated(item, entities, ()))]
    data = passage_data(item, entities=tuple(entity.name for entity in entities))
    related = await model.complete(Prompt(_RELATED, data), schema=RelationsAnswer, max_tokens=room)
    return [NativeAnswer(entities, _stated(item, entities, related.parsed.relations))]


def _stated(
    item: ChunkInContext, entities: Sequence[EntityAnswer], triples: Iterable[TripleAnswer]
) -> list[FactAnswer]:
    """Facts of a passage: its sentences with the relations they state, then relations that no sentence states."""
    ids = {name_key(entity.name): entity.id for entity in reversed(entities)}
    relations = [Triple(triple.h, triple.p, triple.t, triple.strength) for triple in triples]
    facts = facts_of_triples(sentences_of(item.chunk.text), relations, ids, first=True)
    return [FactAnswer.model_validate(asdict(fact) | {"triples": _lists(fact)}) for fact in facts]


def _lists(fact: Fact) -> list[list[Any]]:
    return [[triple.head, triple.predicate, triple.tail, triple.strength] for triple in fact.triples]


async def _iier(
    model: LanguageModel, items: Sequence[ChunkInContext], first: Prompt, room: int
) -> Sequence[NativeAnswer]:
    """Five keywords (IIER section 3.1)."""
    del items
    answer = await model.complete(first, schema=KeywordsAnswer, max_tokens=room)
    return [NativeAnswer(keywords=answer.parsed.keywords)]


async def _indexrag(
    model: LanguageModel, items: Sequence[ChunkInContext], first: Prompt, room: int
) -> Sequence[NativeAnswer]:
    """Statements of a document as question-answer pairs, and its entities (IndexRAG section 3.2.1)."""
    answer = await model.complete(first, schema=DocumentAnswer, max_tokens=room)
    names = _distinct(answer.parsed.entities)
    entities = [EntityAnswer(id=f"n{number}", name=name) for number, name in enumerate(names.values(), 1)]
    stated: list[list[FactAnswer]] = [[] for _ in items]
    for pair in answer.parsed.qa_pairs:
        index = pair.passage - 1 if 1 <= pair.passage <= len(items) else 0
        fact = FactAnswer(text=pair.answer, question=pair.question, answer=pair.answer)
        stated[index].append(with_entities(fact, entities))
    texts = [f" {_plain(item.chunk.index_text)} " for item in items]
    passage_numbers = [
        [
            index
            for index, (text, facts) in enumerate(zip(texts, stated, strict=True))
            if f" {_plain(entity.name)} " in text or any(entity.id in fact.entities for fact in facts)
        ]
        or [0]
        for entity in entities
    ]
    return [
        NativeAnswer([entity for entity, at in zip(entities, passage_numbers, strict=True) if index in at], facts)
        for index, facts in enumerate(stated)
    ]


NATIVE: Mapping[str, Way] = {
    "rewrite": Way("native", 3, _REWRITE, _sirerag),
    "triples": Way("native-msrag", 3, _NAMES, _msrag),
    "strengths": Way("native-smart", 2, _TYPED, _smart),
    "keywords": Way("native-iier", 1, _KEYWORDS, _iier),
    "questions": Way("native-indexrag", 1, _DOCUMENT, _indexrag, whole=True),
}
"""Prompts of papers, by the name in `Recipe.native`."""


def with_entities(fact: FactAnswer, entities: Sequence[EntityAnswer]) -> FactAnswer:
    """Entities of a fact: triple ends that are listed, then listed names in its text (SiReRAG)."""
    ids = {name_key(name): entity.id for entity in reversed(entities) for name in (*entity.aliases, entity.name)}
    ends = [ids.get(name_key(end)) for triple in fact.triples for end in (triple.h, triple.t)]
    padded = f" {_plain(fact.text)} "
    mentioned = [entity.id for entity in entities if f" {_plain(entity.name)} " in padded and _plain(entity.name)]
    entity_ids = dict.fromkeys([end for end in ends if end is not None] + mentioned)
    return fact.model_copy(update={"entities": list(entity_ids)})


def _distinct(names: Iterable[str]) -> dict[str, str]:
    by_key: dict[str, str] = {}
    for name in names:
        if key := name_key(name):
            by_key.setdefault(key, " ".join(name.split()))
    return by_key


def _aliases(groups: Iterable[Sequence[str]], names: Mapping[str, str]) -> dict[str, list[str]]:
    """Aliases by key of the listed names; others are ignored."""
    by_key: dict[str, list[str]] = {}
    for group in groups:
        keys = [key for key in dict.fromkeys(map(name_key, group)) if key in names]
        for key in keys:
            by_key.setdefault(key, []).extend(names[other] for other in keys if other != key)
    return by_key


def _plain(text: str) -> str:
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())


class ModelExtractor:
    """An `Extractor` over a language model (SiReRAG).

    One call per chunk returns entities, facts, keywords and topic together. The end of the previous chunk of the
    document goes along as context. Whatever the model does, every chunk gets a record: what cannot be used becomes a
    failed one with its reason.

    Args:
        language_model: Who reads the chunks. With `with_sources` (see `CachedModel`) it is given the chunks it reads;
            worth it for several steps, whose answers are not records yet.
        native: The prompts of a paper, a name of `NATIVE`: `rewrite` (SiReRAG: rewrite, entities, facts), `triples`
            (MS-RAG: names, triples, aliases), `strengths` (SMART: typed entities, relations with strengths; with types
            of your own `strengths:Disease, Drug`),
            `keywords` (IIER: five keywords) or `questions` (IndexRAG: questions and answers, one call per document).
            None makes one call for everything.
        given: Entities of a chunk that are known; then one short call asks for the facts and relations between them.
        concurrency: Chunks under way at once; None takes the model's own `concurrency`, or 8.
        max_chunk_tokens: A longer chunk fails without a call, since one answer could not hold its facts.

    Raises:
        ConfigurationError: Unknown prompts, or a number below 1.
    """

    def __init__(
        self,
        language_model: LanguageModel,
        *,
        native: str | None = None,
        known_entities: Callable[[Chunk], Sequence[Entity]] | None = None,
        concurrency: int | None = None,
        max_chunk_tokens: int = 4_000,
    ) -> None:
        self._model = language_model
        name, _, types = (native or "").partition(":")
        if native is not None and (name not in NATIVE or (types and name != "strengths")):
            raise ConfigurationError(f"native is one of {', '.join(NATIVE)} or None, not {native!r}.")
        self._way = NATIVE.get(name)
        if types and self._way is not None:
            typed, _, _ = _TYPED.partition("\n")  # without the example, which has the paper's types
            way = f"{self._way.name}-{digest(types)[:8]}"
            self._way = replace(self._way, name=way, first=typed.replace(_TYPE_NAMES, types))
        self._given = known_entities
        self._workers = concurrency_of(language_model) if concurrency is None else concurrency
        self._max_chunk_tokens = max_chunk_tokens
        if self._workers < 1 or max_chunk_tokens < 1:
            raise ConfigurationError("concurrency and max_chunk_tokens must be at least 1")

    links_titles = False  # A model names the entities of its facts itself

    @property
    def fingerprint(self) -> str:
        """Model, prompt version and way of extraction."""
        return f"{self._model.fingerprint}|{self._prompt_name}"

    @property
    def steps(self) -> int:
        """Number of calls for a group of chunks without failures."""
        return self._way.calls if self._way else 1

    @property
    def _prompt_name(self) -> str:
        return f"{self._way.name if self._way else 'given' if self._given else 'extract'}/{_VERSION}"

    def groups(self, items: Iterable[ChunkInContext]) -> Iterator[Sequence[ChunkInContext]]:
        """Group chunks by call: one each, or those of a document up to the size limit."""
        if self._way is None or not self._way.whole:
            yield from ([item] for item in items)
            return
        for _, of_document in groupby(items, key=lambda item: item.chunk.doc_id):
            yield from packed(of_document, lambda item: count_tokens(item.chunk.text), self._max_chunk_tokens)

    def prompt(self, item: ChunkInContext, *others: ChunkInContext) -> Prompt:
        """The first prompt about a group of chunks."""
        if self._given is not None:
            names = tuple(entity.name for entity in self._given(item.chunk))[:_MOST_NAMES]
            return Prompt(_FACTS, passage_data(_bounded(item), entities=names))
        if self._way is not None:
            return self._way.prompt([_bounded(item), *others])
        return Prompt(JOINT, passage_data(_bounded(item)))

    def answer_room(self, item: ChunkInContext, *others: ChunkInContext) -> int:
        """Maximum tokens of an answer; grows with the chunks."""
        length = sum(count_tokens(entry.chunk.text) for entry in (item, *others))
        if self._given is not None:
            return min(_ANSWER_MOST, _SHORT_BASE + _SHORT_PER_TOKEN * length)
        return min(_ANSWER_MOST, _ANSWER_BASE + _ANSWER_PER_TOKEN * length)

    async def extract(self, chunks: Sequence[ChunkInContext]) -> AsyncIterator[Sequence[ExtractionRecord]]:
        """Yield records as they are ready; see `Extractor.extract`."""
        done = 0
        async with contextlib.aclosing(bounded_map(self._records, self.groups(chunks), self._workers)) as results:
            try:
                async for batch in results:
                    records = [record for _, group_records in batch for record in group_records]
                    done += len(records)
                    yield records
            except LimitExceededError as error:
                raise LimitExceededError(
                    f"extraction stopped after {done:,} of {len(chunks):,} chunks: {error}", error.bound
                ) from error

    async def _records(self, group: Sequence[ChunkInContext]) -> list[ExtractionRecord]:
        """A record of every chunk of a group, in order."""
        decided = {index: record for index, item in enumerate(group) if (record := self._undisputed(item))}
        items = [item for index, item in enumerate(group) if index not in decided]
        extracted = iter(await self._extracted(items) if items else ())
        return [decided[index] if index in decided else next(extracted) for index in range(len(group))]

    def _undisputed(self, item: ChunkInContext) -> ExtractionRecord | None:
        if not item.chunk.text.strip():
            return validate(ExtractionRecord("", self._model.fingerprint, self._prompt_name, "empty"), item.chunk)
        size = count_tokens(item.chunk.text)
        if size <= self._max_chunk_tokens:
            return None
        reason = f"the chunk has {size:,} tokens, more than {self._max_chunk_tokens:,}: cut it into smaller chunks"
        return self._failed(item, reason)

    async def _extracted(self, items: Sequence[ChunkInContext]) -> list[ExtractionRecord]:
        model = with_sources(self._model, [item.chunk.id for item in items])
        with items_left_out() as left_out:
            records = await self._ask_model(model, items)
        if left_out:
            reason = f"{count(len(left_out), 'item')} of the answer could not be read and left out: {left_out[0]}"
            _logger.warning("%s: %s", items[0].chunk.title or items[0].chunk.doc_id, reason)
            records = [replace(record, reason=record.reason or reason[:500]) for record in records]
        return records

    async def _ask_model(self, model: LanguageModel, items: Sequence[ChunkInContext]) -> list[ExtractionRecord]:
        try:
            if self._way is not None:
                bounded = [_bounded(item) for item in items]
                first = self._way.prompt(bounded)
                answers = await self._way.ask(model, bounded, first, self.answer_room(*items))
                records = [self._read(answer.entities, answer.facts, answer) for answer in answers]
            else:
                records = [await (self._short_call if self._given else self._one_call)(model, items[0])]
        except ModelError as error:
            return [self._failed(item, f"{type(error).__name__}: {error}") for item in items]
        return [validate(record, item.chunk) for record, item in zip(records, items, strict=True)]

    async def _one_call(self, model: LanguageModel, item: ChunkInContext) -> ExtractionRecord:
        done = await model.complete(self.prompt(item), schema=ExtractionAnswer, max_tokens=self.answer_room(item))
        answer: ExtractionAnswer = done.parsed
        return self._read(answer.entities, answer.facts, answer)

    async def _short_call(self, model: LanguageModel, item: ChunkInContext) -> ExtractionRecord:
        assert self._given is not None
        entities = [EntityAnswer(**asdict(entity)) for entity in self._given(item.chunk)]
        done = await model.complete(self.prompt(item), schema=ShortFactsAnswer, max_tokens=self.answer_room(item))
        return self._read(entities, [with_entities(fact, entities) for fact in done.parsed.whole()], None)

    def _read(
        self, entities: Sequence[Any], facts: Sequence[Any], extras: ExtractionAnswer | NativeAnswer | None
    ) -> ExtractionRecord:
        whole = extras if isinstance(extras, ExtractionAnswer) else None
        record = record_of(entities, facts, model=self._model.fingerprint, prompt=self._prompt_name, extras=whole)
        return replace(record, keywords=tuple(extras.keywords)) if isinstance(extras, NativeAnswer) else record

    def _failed(self, item: ChunkInContext, reason: str) -> ExtractionRecord:
        return ExtractionRecord(
            item.chunk.hash, self._model.fingerprint, self._prompt_name, status="failed", reason=reason[:500]
        )


def _bounded(item: ChunkInContext) -> ChunkInContext:
    return replace(item, previous=_tail(item.previous))


def _tail(text: str) -> str:
    """The end of the previous chunk, which references most likely point to."""
    words = text.split()
    return text if len(words) <= _CONTEXT_TOKENS else "… " + " ".join(words[-_CONTEXT_TOKENS:])
