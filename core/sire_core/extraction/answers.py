"""Schemas of what a model answers to the extraction prompts, and the way from an answer to a record.

The schemas are strict about the shape that matters (no list of facts, no record) and lenient about slips whose meaning
is clear: a name where an object is due, a triple written as a list, null for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BeforeValidator, Field, field_validator, model_validator

from sire_core.models.structured import LenientAnswer, LenientLevel, LenientList
from sire_core.types import Entity, ExtractionRecord, Fact, Triple

__all__ = [
    "AliasesAnswer",
    "DocumentAnswer",
    "EntitiesAnswer",
    "ExtractionAnswer",
    "FactsAnswer",
    "KeywordsAnswer",
    "NamesAnswer",
    "ShortFactsAnswer",
    "TriplesAnswer",
    "record_of",
]

_ENTITY = '{"id":"n1","name":"","type":"","aliases":[],"description":""}'

T = TypeVar("T")


def _is_triple(item: Any) -> bool:
    parts: Sequence[Any]
    if isinstance(item, Mapping):
        parts = [item.get(name) for name in "hpt"]
    elif isinstance(item, list):
        parts = item[:3]
    else:
        return False
    return len(parts) == 3 and all(isinstance(part, str | int | float) and str(part).strip() for part in parts)


def _whole_triples(value: Any) -> Any:
    return [item for item in value if _is_triple(item)] if isinstance(value, list) else value


def _plain_names(value: Any) -> Any:
    """Names of objects that have one."""
    if not isinstance(value, list):
        return value
    return [item.get("name", "") if isinstance(item, Mapping) else item for item in value]


WholeTriples = Annotated[list[T], BeforeValidator(_whole_triples)]
"""Triples without those that lack a part: one of them must not cost the fact."""
PlainNames = Annotated[list[str], BeforeValidator(_plain_names)]


class EntityAnswer(LenientAnswer):
    """A named thing."""

    id: str
    name: str
    type: str = ""
    aliases: list[str] = Field(default_factory=list)
    description: str = ""


class TripleAnswer(LenientAnswer):
    """A relation between two ends; `strength` from 1 to 10 (SMART, table 6)."""

    h: str
    p: str
    t: str
    strength: float = 1.0

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, data: Any) -> Any:
        if isinstance(data, list) and len(data) in (3, 4):
            return dict(zip(("h", "p", "t", "strength"), data, strict=False))
        return data

    @field_validator("strength", mode="before")
    @classmethod
    def _number(cls, value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            return 1.0


class FactAnswer(LenientAnswer):
    """A statement with the entities it names."""

    text: str
    entities: list[str] = Field(default_factory=list)
    question: str = ""
    answer: str = ""
    triples: WholeTriples[TripleAnswer] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {"text": data}
        if isinstance(data, Mapping) and "text" not in data and "fact" in data:
            return {**{name: value for name, value in data.items() if name != "fact"}, "text": data["fact"]}
        return data


class EntitiesAnswer(LenientAnswer):
    """Answer of the entity step."""

    shape: ClassVar[str] = f'{{"entities":[{_ENTITY}]}}'

    entities: list[EntityAnswer]

    @field_validator("entities", mode="before")
    @classmethod
    def _with_ids(cls, value: Any) -> Any:
        if isinstance(value, Mapping):  # {"n1": {...}}
            value = [{"id": str(key), **item} for key, item in value.items() if isinstance(item, Mapping)]
        if not isinstance(value, list):
            return value
        return [_with_id(item, number) for number, item in enumerate(value, 1)]


class FactsAnswer(LenientAnswer):
    """Answer of the fact step."""

    shape: ClassVar[str] = '{"facts":[{"text":"","triples":[{"h":"","p":"","t":""}]}]}'

    facts: LenientList[FactAnswer]


class ShortTriple(LenientAnswer):
    """A relation between two names."""

    h: str
    p: str
    t: str


class ShortFact(LenientAnswer):
    """A statement and its relations, and nothing that a small model would fill with words."""

    text: str
    triples: WholeTriples[ShortTriple] = Field(default_factory=list)


class ShortFactsAnswer(LenientAnswer):
    """Answer of the fact step where the entities are known: what `model+rules` asks for."""

    shape: ClassVar[str] = FactsAnswer.shape

    facts: list[ShortFact]

    def whole(self) -> list[FactAnswer]:
        """The facts in the form of the longer answers."""
        return [FactAnswer.model_validate(fact.model_dump()) for fact in self.facts]


class NamesAnswer(LenientAnswer):
    """Answer of MS-RAG's first step."""

    shape: ClassVar[str] = '{"names":[""]}'

    names: PlainNames


class TriplesAnswer(LenientAnswer):
    """Answer of its second step."""

    shape: ClassVar[str] = '{"triples":[["head","predicate","tail"]]}'

    triples: WholeTriples[TripleAnswer]


class AliasesAnswer(LenientAnswer):
    """Answer of its third step: groups of names; a single group may come without its brackets."""

    shape: ClassVar[str] = '{"aliases":[["",""]]}'

    aliases: list[list[str]]

    @field_validator("aliases", mode="before")
    @classmethod
    def _groups(cls, value: Any) -> Any:
        flat = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
        return [value] if flat else value


class KeywordsAnswer(LenientAnswer):
    """Answer of IIER's step."""

    shape: ClassVar[str] = '{"keywords":["","","","",""]}'

    keywords: list[str]


class PairAnswer(LenientAnswer):
    """A question and its answer."""

    question: str = ""
    answer: str
    passage: int = 1

    @field_validator("passage", mode="before")
    @classmethod
    def _number(cls, value: Any) -> int:
        return int(value) if str(value).isdecimal() else 1


class DocumentAnswer(LenientAnswer):
    """Answer of IndexRAG's first stage."""

    shape: ClassVar[str] = '{"qa_pairs":[{"passage":1,"question":"","answer":""}],"entities":[""]}'

    qa_pairs: list[PairAnswer]
    entities: PlainNames = Field(default_factory=list)


class ExtractionAnswer(FactsAnswer, EntitiesAnswer):  # fields come in reverse order: entities first
    """Answer of the joint prompt."""

    shape: ClassVar[str] = (
        f'{{"entities":[{_ENTITY}],"facts":[{{"text":"","entities":["n1"],"question":"","answer":"",'
        '"triples":[{"h":"n1","p":"","t":"","strength":5}]}],"keywords":[],"topic":"","abstractiveness":"low"}'
    )

    keywords: list[str] = Field(default_factory=list)
    topic: str = ""
    abstractiveness: LenientLevel = "low"


def _with_id(item: Any, number: int) -> Any:
    if isinstance(item, str):
        return {"id": f"n{number}", "name": item}
    if isinstance(item, Mapping) and not item.get("id"):
        return {**item, "id": f"n{number}"}
    return item


def record_of(
    entities: Sequence[EntityAnswer],
    facts: Sequence[FactAnswer],
    *,
    model: str,
    prompt: str,
    extras: ExtractionAnswer | None = None,
) -> ExtractionRecord:
    """Turn answers into a record, not yet cleaned and without the chunk's hash.

    Args:
        entities: Entities of the answer.
        facts: Facts of the answer.
        model: The record's `model`.
        prompt: The record's `prompt`.
        extras: Where keywords, topic and abstractiveness come from, if they were asked for.
    """
    return ExtractionRecord(
        hash="",
        model=model,
        prompt=prompt,
        entities=tuple(Entity(e.id, e.name, e.type, tuple(e.aliases), e.description) for e in entities),
        facts=tuple(
            Fact(
                id=f"f{number}",
                text=fact.text,
                entities=tuple(fact.entities),
                question=fact.question,
                answer=fact.answer or fact.text,
                triples=tuple(Triple(t.h, t.p, t.t, t.strength) for t in fact.triples),
            )
            for number, fact in enumerate(facts, 1)
        ),
        keywords=tuple(extras.keywords) if extras else (),
        topic=extras.topic if extras else "",
        abstractiveness=extras.abstractiveness if extras else "low",
    )
