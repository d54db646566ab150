"""The papers' own ways to ask for what a passage says, each in our own words (`extraction="native"`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

from sire_core.algorithms.text import name_key
from sire_core.extraction.answers import (
    AliasesAnswer,
    DocumentAnswer,
    EntitiesAnswer,
    EntityAnswer,
    FactAnswer,
    FactsAnswer,
    KeywordsAnswer,
    NamesAnswer,
    TriplesAnswer,
)
from sire_core.extraction.prompts import ExtractionPrompts, document_data, passage_data
from sire_core.extraction.recorded import facts_of_triples
from sire_core.extraction.spans import sentences_of
from sire_core.protocols import ChunkInContext, Prompt

if TYPE_CHECKING:
    from sire_core.protocols import LanguageModel
    from sire_core.types import Fact

__all__ = ["NATIVE", "NativeAnswer", "Way", "with_entities"]


class NativeAnswer(NamedTuple):
    """What a model said of one passage."""

    entities: Sequence[EntityAnswer] = ()
    facts: Sequence[FactAnswer] = ()
    keywords: Sequence[str] = ()


Ask = Callable[["LanguageModel", Sequence[ChunkInContext], ExtractionPrompts, int], Awaitable[Sequence[NativeAnswer]]]
"""Asks about passages that go together; the number is the room for each answer."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a paper extracts.

    Attributes:
        name: In fingerprints of records.
        calls: Per passage, or per document.
        first: Its first prompt.
        ask: All of its calls.
        whole: Whether the passages of a document are asked about together.
    """

    name: str
    calls: int
    first: Callable[[ExtractionPrompts, Sequence[ChunkInContext]], Prompt]
    ask: Ask
    whole: bool = False


async def _sirerag(
    model: LanguageModel, items: Sequence[ChunkInContext], prompts: ExtractionPrompts, room: int
) -> Sequence[NativeAnswer]:
    """Rewrite, entities, facts (SiReRAG section 4.2)."""
    (item,) = items
    passage = (await model.complete(_rewrite(prompts, items), max_tokens=room)).text.strip()
    data = passage_data(item, passage=passage)
    named = await model.complete(Prompt(prompts.entities, data), schema=EntitiesAnswer, max_tokens=room)
    entities: list[EntityAnswer] = named.parsed.entities
    data = passage_data(item, passage=passage, entities=tuple(entity.name for entity in entities))
    answer = await model.complete(Prompt(prompts.facts, data), schema=FactsAnswer, max_tokens=room)
    return [NativeAnswer(entities, [with_entities(fact, entities) for fact in answer.parsed.facts])]


async def _msrag(
    model: LanguageModel, items: Sequence[ChunkInContext], prompts: ExtractionPrompts, room: int
) -> Sequence[NativeAnswer]:
    """Names, triples, aliases (MS-RAG section 3.2, appendix N)."""
    (item,) = items
    asked = await model.complete(_names(prompts, items), schema=NamesAnswer, max_tokens=room)
    names = _distinct(asked.parsed.names)
    data = passage_data(item, entities=tuple(names.values()))
    stated = await model.complete(Prompt(prompts.triples, data), schema=TriplesAnswer, max_tokens=room)
    groups: list[list[str]] = []
    if len(names) > 1:
        claimed = await model.complete(Prompt(prompts.aliases, data), schema=AliasesAnswer, max_tokens=room)
        groups = claimed.parsed.aliases
    ids = {key: f"n{number}" for number, key in enumerate(names, 1)}
    others = _aliases(groups, names)
    entities = [EntityAnswer(id=ids[key], name=name, aliases=others.get(key, [])) for key, name in names.items()]
    triples = [(triple.h, triple.p, triple.t) for triple in stated.parsed.triples]
    facts = facts_of_triples(sentences_of(item.chunk.text), triples, ids, first=True)
    return [
        NativeAnswer(entities, [FactAnswer.model_validate(asdict(fact) | {"triples": _lists(fact)}) for fact in facts])
    ]


def _lists(fact: Fact) -> list[list[str]]:
    return [[triple.head, triple.predicate, triple.tail] for triple in fact.triples]


async def _iier(
    model: LanguageModel, items: Sequence[ChunkInContext], prompts: ExtractionPrompts, room: int
) -> Sequence[NativeAnswer]:
    """Five keywords (IIER section 3.1)."""
    answer = await model.complete(_keywords(prompts, items), schema=KeywordsAnswer, max_tokens=room)
    return [NativeAnswer(keywords=answer.parsed.keywords)]


async def _indexrag(
    model: LanguageModel, items: Sequence[ChunkInContext], prompts: ExtractionPrompts, room: int
) -> Sequence[NativeAnswer]:
    """All statements of a document as pairs of question and answer, and its entities (IndexRAG section 3.2.1).

    A statement goes to the passage that the model names, or to the first. An entity goes to every passage that spells
    it out or states something of it, and to the first where none does.
    """
    answer = await model.complete(_document(prompts, items), schema=DocumentAnswer, max_tokens=room)
    names = _distinct(answer.parsed.entities)
    entities = [EntityAnswer(id=f"n{number}", name=name) for number, name in enumerate(names.values(), 1)]
    stated: list[list[FactAnswer]] = [[] for _ in items]
    for pair in answer.parsed.qa_pairs:
        place = pair.passage - 1 if 1 <= pair.passage <= len(items) else 0
        fact = FactAnswer(text=pair.answer, question=pair.question, answer=pair.answer)
        stated[place].append(with_entities(fact, entities))
    texts = [f" {_plain(item.chunk.index_text)} " for item in items]
    places = [
        [
            place
            for place, (text, facts) in enumerate(zip(texts, stated, strict=True))
            if f" {_plain(entity.name)} " in text or any(entity.id in fact.entities for fact in facts)
        ]
        or [0]
        for entity in entities
    ]
    return [
        NativeAnswer([entity for entity, at in zip(entities, places, strict=True) if place in at], facts)
        for place, facts in enumerate(stated)
    ]


def _rewrite(prompts: ExtractionPrompts, items: Sequence[ChunkInContext]) -> Prompt:
    return Prompt(prompts.rewrite, passage_data(items[0]))


def _names(prompts: ExtractionPrompts, items: Sequence[ChunkInContext]) -> Prompt:
    return Prompt(prompts.names, passage_data(items[0]))


def _keywords(prompts: ExtractionPrompts, items: Sequence[ChunkInContext]) -> Prompt:
    return Prompt(prompts.keywords, passage_data(items[0]))


def _document(prompts: ExtractionPrompts, items: Sequence[ChunkInContext]) -> Prompt:
    return Prompt(prompts.document, document_data(items))


NATIVE: Mapping[str, Way] = {
    "rewrite": Way("native", 3, _rewrite, _sirerag),
    "triples": Way("native-msrag", 3, _names, _msrag),
    "keywords": Way("native-iier", 1, _keywords, _iier),
    "questions": Way("native-indexrag", 1, _document, _indexrag, whole=True),
}
"""Prompts of papers by the name in `Recipe.native`: SiReRAG, MS-RAG, IIER, IndexRAG."""


def with_entities(fact: FactAnswer, entities: Sequence[EntityAnswer]) -> FactAnswer:
    """Entities of a fact: triple ends that are listed, then listed names in its text (SiReRAG)."""
    ids = {name_key(name): entity.id for entity in reversed(entities) for name in (*entity.aliases, entity.name)}
    ends = [ids.get(name_key(end)) for triple in fact.triples for end in (triple.h, triple.t)]
    padded = f" {_plain(fact.text)} "
    named = [entity.id for entity in entities if f" {_plain(entity.name)} " in padded and _plain(entity.name)]
    found = dict.fromkeys([end for end in ends if end is not None] + named)
    return fact.model_copy(update={"entities": list(found)})


def _distinct(names: Iterable[str]) -> dict[str, str]:
    """Names by key, each once."""
    found: dict[str, str] = {}
    for name in names:
        if key := name_key(name):
            found.setdefault(key, " ".join(name.split()))
    return found


def _aliases(groups: Iterable[Sequence[str]], names: Mapping[str, str]) -> dict[str, list[str]]:
    """Other names of what the model listed, by key; names that it did not list join nothing."""
    found: dict[str, list[str]] = {}
    for group in groups:
        keys = [key for key in dict.fromkeys(map(name_key, group)) if key in names]
        for key in keys:
            found.setdefault(key, []).extend(names[other] for other in keys if other != key)
    return found


def _plain(text: str) -> str:
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())
