"""Schemas of what a model answers to the extraction prompts, and the way from an answer to a record.

The schemas are strict about the shape that matters (no list of facts, no record) and lenient about slips whose meaning
is clear: a name where an object is due, a triple written as a list, null for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BeforeValidator, Field, field_validator, model_validator

from sire_core.models.answer_parsing import LenientAnswer, LenientLevel, LenientList, leave_out
from sire_core.types import Entity, ExtractionRecord, Fact, Triple

_ENTITY = '{"id":"n1","name":"","type":"","aliases":[],"description":""}'

T = TypeVar("T")

_TRIPLE_KEYS = {
    "h": ("h", "head", "subject", "source", "source_entity", "from"),
    "p": ("p", "predicate", "relation", "relationship", "relationship_description", "description", "r"),
    "t": ("t", "tail", "object", "target", "target_entity", "to"),
}
"""Keys under which models return the parts of a triple."""
_SENTENCE = ("text", "fact", "sentence", "statement", "claim", "proposition", "content")
_NAME_KEYS = ("name", "keyword", "entity", "text", "value", "title", "id")
_BETWEEN = re.compile(r"[,;\n]")
_PARTS = re.compile(r"[|,;\u2192]|->")
_NOTHING = frozenset({"none", "null", "n/a", "-"})


def _small(item: Mapping[str, Any]) -> dict[str, Any]:
    """An object with its keys in small letters."""
    return {str(name).lower(): value for name, value in item.items()}


def _first(item: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first value that is a string or a number."""
    fields = _small(item)
    values = (fields.get(name) for name in names)
    return next((value for value in values if isinstance(value, str | int | float) and str(value).strip()), None)


def _triple(item: Any) -> Any:
    """Parts of a triple by their keys; None if one is missing."""
    if isinstance(item, Mapping):
        parts = [_first(item, names) for names in _TRIPLE_KEYS.values()]
        strength = item.get("strength", item.get("relationship_strength"))
        more = {} if strength is None else {"strength": strength}
    elif isinstance(item, list | str):
        item = [part.strip() for part in _PARTS.split(item.strip("()[] "))] if isinstance(item, str) else item
        parts = [part if isinstance(part, str | int | float) and str(part).strip() else None for part in item[:3]]
        more = {"strength": item[3]} if len(item) > 3 else {}
    else:
        return None
    if len(parts) < 3 or None in parts:
        return None
    return dict(zip("hpt", map(str, parts), strict=True)) | more


def _whole_triples(value: Any) -> Any:
    if isinstance(value, Mapping | str):
        value = [value]
    if not isinstance(value, list):
        leave_out(value, "not a list of triples")
        return []
    if len(value) == 3 and all(isinstance(part, str) for part in value):
        value = [value]
    triples = [(_triple(item), item) for item in value]
    for triple, item in triples:
        if triple is None:
            leave_out(item, "an incomplete triple")
    return [triple for triple, _ in triples if triple is not None]


def _plain_names(value: Any) -> Any:
    """Strings, numbers, and names of objects; a string in place of a list is split."""
    if value is None:
        return []
    if isinstance(value, str):
        value = [name for name in map(str.strip, _BETWEEN.split(value)) if name.lower() not in _NOTHING]
    if isinstance(value, Mapping):
        value = [value] if _first(value, _NAME_KEYS) is not None else list(value)
    if not isinstance(value, list):
        return value
    names = []
    for item in value:
        name = _first(item, _NAME_KEYS) if isinstance(item, Mapping) else item
        if isinstance(name, str | int | float) and not isinstance(name, bool) and str(name).strip():
            names.append(str(name))
        else:
            leave_out(item, "no name")
    return names


WholeTriples = Annotated[list[T], BeforeValidator(_whole_triples)]
"""Triples without incomplete ones, which must not cost the fact."""
PlainNames = Annotated[list[str], BeforeValidator(_plain_names)]


class EntityAnswer(LenientAnswer):
    """A named thing."""

    id: str
    name: str
    type: str = ""
    aliases: PlainNames = Field(default_factory=list)
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
        return _triple(data) or data

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
    entities: PlainNames = Field(default_factory=list)
    question: str = ""
    answer: str = ""
    triples: WholeTriples[TripleAnswer] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {"text": data}
        return _with_text(data)


class EntitiesAnswer(LenientAnswer):
    """Answer of the entity step."""

    shape: ClassVar[str] = f'{{"entities":[{_ENTITY}]}}'

    entities: LenientList[EntityAnswer]

    @field_validator("entities", mode="before")
    @classmethod
    def _with_ids(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and isinstance(_small(value).get("name"), str):
            value = [value]
        elif isinstance(value, Mapping) and value and all(isinstance(items, list) for items in value.values()):
            value = [item for items in value.values() for item in items]  # by their type
        elif isinstance(value, Mapping):  # {"n1": {...}}
            entries = value.items()
            value = [
                {"id": str(key), **(item if isinstance(item, Mapping) else {"name": item})} for key, item in entries
            ]
        if isinstance(value, str):
            value = [name.strip() for name in _BETWEEN.split(value)]
        if not isinstance(value, list):
            return value
        flat = [part for item in value for part in (item if isinstance(item, list) else [item])]
        return [_with_id(item, number) for number, item in enumerate(flat, 1) if item not in (None, "", {}, [])]


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
    """A statement and its relations only, for small models."""

    text: str
    triples: WholeTriples[ShortTriple] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: Any) -> Any:
        return _with_text({"text": data} if isinstance(data, str) else data)


class ShortFactsAnswer(LenientAnswer):
    """Answer of the fact step with known entities (`model+rules`)."""

    shape: ClassVar[str] = FactsAnswer.shape

    facts: LenientList[ShortFact]

    def whole(self) -> list[FactAnswer]:
        """Convert to the long form."""
        return [FactAnswer.model_validate(fact.model_dump()) for fact in self.facts]


class NamesAnswer(LenientAnswer):
    """Answer of MS-RAG's first step."""

    shape: ClassVar[str] = '{"names":[""]}'

    names: PlainNames


class TriplesAnswer(LenientAnswer):
    """Answer of its second step."""

    shape: ClassVar[str] = '{"triples":[["head","predicate","tail"]]}'

    triples: WholeTriples[TripleAnswer]


class RelationsAnswer(LenientAnswer):
    """Answer of SMART's second step."""

    shape: ClassVar[str] = '{"relations":[{"source":"","target":"","description":"","strength":5}]}'

    relations: WholeTriples[TripleAnswer]


class AliasesAnswer(LenientAnswer):
    """Answer of its third step: groups of names; a single group may lack its brackets."""

    shape: ClassVar[str] = '{"aliases":[["",""]]}'

    aliases: LenientList[list[str]]

    @field_validator("aliases", mode="before")
    @classmethod
    def _groups(cls, value: Any) -> Any:
        if isinstance(value, Mapping):  # {"name": ["other"]}
            value = [[name, *_plain_names(others)] for name, others in value.items()]
        if not isinstance(value, list):
            return [] if value is None else value
        if value and all(isinstance(item, str) for item in value):
            return [value]
        return [_group(item) for item in value if item not in (None, "", {}, [])]


class KeywordsAnswer(LenientAnswer):
    """Answer of IIER's step."""

    shape: ClassVar[str] = '{"keywords":["","","","",""]}'

    keywords: PlainNames


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

    qa_pairs: LenientList[PairAnswer]
    entities: PlainNames = Field(default_factory=list)


class ExtractionAnswer(FactsAnswer, EntitiesAnswer):  # fields come in reverse order: entities first
    """Answer of the joint prompt."""

    shape: ClassVar[str] = (
        f'{{"entities":[{_ENTITY}],"facts":[{{"text":"","entities":["n1"],"question":"","answer":"",'
        '"triples":[{"h":"n1","p":"","t":"","strength":5}]}],"keywords":[],"topic":"","abstractiveness":"low"}'
    )

    keywords: PlainNames = Field(default_factory=list)
    topic: str = ""
    abstractiveness: LenientLevel = "low"


def _with_text(data: Any) -> Any:
    """A statement whose sentence may have another key."""
    if not isinstance(data, Mapping) or isinstance(data.get("text"), str):
        return data
    data = _small(data)
    text = _first(data, _SENTENCE)
    return data if text is None else {**data, "text": str(text)}


def _group(item: Any) -> Any:
    """Names of one thing, from a list or from an object with a name and aliases."""
    if isinstance(item, Mapping):
        return [name for value in item.values() for name in _plain_names(value)]
    return _plain_names(item)


def _with_id(item: Any, number: int) -> Any:
    if isinstance(item, str):
        return {"id": f"n{number}", "name": item}
    if isinstance(item, Mapping):
        item = _small(item)
        name = item.get("name") or _first(item, _NAME_KEYS[1:-1])
        item_ = {**item, "name": name} if name is not None else item
        has_id = isinstance(item.get("id"), str | int | float) and item["id"] != ""
        return item_ if has_id else {**item_, "id": f"n{number}"}
    return item


def record_of(
    entities: Sequence[EntityAnswer],
    facts: Sequence[FactAnswer],
    *,
    model: str,
    prompt: str,
    extras: ExtractionAnswer | None = None,
) -> ExtractionRecord:
    """Turn answers into a record, not yet cleaned and without the chunk's hash."""
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
