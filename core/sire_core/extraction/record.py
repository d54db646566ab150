"""The JSON form of extraction records (schema `extract/1`) and their validation."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sire_core.algorithms.text import name_key, phrase_words
from sire_core.errors import StorageError
from sire_core.extraction.headings import base_title
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact, Triple

SCHEMA = "extract/1"
MAX_KEYWORDS = 5
"""Keywords per chunk (IIER, section 3.1)."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # `json.dumps` would make one every time
_LOCAL_ID = re.compile(r"[ne]\d+")
# From here on, Unicode holds scripts that put no spaces between words.
_UNSPACED_SCRIPT = 0x2E80


def to_json(record: ExtractionRecord) -> str:
    """Write a record as compact JSON with ordered keys, without default values."""
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "hash": record.hash,
        "model": record.model,
        "prompt": record.prompt,
        "status": record.status,
    }
    if record.entities:
        data["entities"] = [_entity_out(entity) for entity in record.entities]
    if record.facts:
        data["facts"] = [_fact_out(fact) for fact in record.facts]
    if record.keywords:
        data["keywords"] = list(record.keywords)
    if record.topic:
        data["topic"] = record.topic
    if record.abstractiveness != "low":
        data["abstractiveness"] = record.abstractiveness
    if record.reason:
        data["reason"] = record.reason
    text = _encode(data)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate: escaped it survives every store
        return json.dumps(data, separators=(",", ":"))
    return text


def _entity_out(entity: Entity) -> dict[str, Any]:
    data: dict[str, Any] = {"id": entity.id, "name": entity.name}
    if entity.type:
        data["type"] = entity.type
    if entity.aliases:
        data["aliases"] = list(entity.aliases)
    if entity.description:
        data["description"] = entity.description
    return data


def _fact_out(fact: Fact) -> dict[str, Any]:
    data: dict[str, Any] = {"id": fact.id, "text": fact.text}
    if fact.entities:
        data["entities"] = list(fact.entities)
    if fact.question:
        data["question"] = fact.question
    if fact.answer != fact.text:
        data["answer"] = fact.answer
    if fact.triples:
        data["triples"] = [_triple_out(triple) for triple in fact.triples]
    return data


def _triple_out(triple: Triple) -> dict[str, Any]:
    data: dict[str, Any] = {"h": triple.head, "p": triple.predicate, "t": triple.tail}
    if triple.strength != 1.0:
        data["strength"] = triple.strength
    return data


def from_json(text: str) -> ExtractionRecord:
    """Read a record; missing optional keys get their defaults."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise StorageError(f"An extraction record is not valid JSON ({error}); delete it and build again.") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        schema = data.get("schema") if isinstance(data, dict) else type(data).__name__
        raise StorageError(f"An extraction record has schema {schema!r}, not {SCHEMA!r}; extract the chunk again.")
    try:
        return ExtractionRecord(
            hash=data["hash"],
            model=data.get("model", ""),
            prompt=data.get("prompt", ""),
            status=data.get("status", "ok"),
            entities=tuple(_entity_in(entity) for entity in data.get("entities") or ()),
            facts=tuple(_fact_in(fact, number) for number, fact in enumerate(data.get("facts") or (), 1)),
            keywords=tuple(data.get("keywords") or ()),
            topic=data.get("topic", ""),
            abstractiveness=data.get("abstractiveness", "low"),
            reason=data.get("reason", ""),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StorageError(f"An extraction record is damaged ({error!r}); extract the chunk again.") from error


def _entity_in(data: Mapping[str, Any]) -> Entity:
    return Entity(
        id=data["id"],
        name=data["name"],
        type=data.get("type", ""),
        aliases=tuple(data.get("aliases") or ()),
        description=data.get("description", ""),
    )


def _fact_in(data: Mapping[str, Any], number: int) -> Fact:
    return Fact(
        id=data.get("id", f"f{number}"),
        text=data["text"],
        entities=tuple(data.get("entities") or ()),
        question=data.get("question", ""),
        answer=data.get("answer", data["text"]),
        triples=tuple(
            Triple(triple["h"], triple["p"], triple["t"], float(triple.get("strength", 1.0)))
            for triple in data.get("triples") or ()
        ),
    )


def validate(record: ExtractionRecord, chunk: Chunk) -> tuple[ExtractionRecord, int]:
    """Clean a record, so that all consumers can rely on one form."""
    if record.status == "failed":
        return replace(record, hash=chunk.hash), 0
    entities = _clean_entities(record.entities)
    lookup = _Lookup(entities)
    facts = _clean_facts(record.facts, lookup)
    keywords = _clean_keywords(record.keywords, chunk)
    cleaned = replace(
        record,
        hash=chunk.hash,
        status="ok" if entities or facts or keywords else "empty",
        entities=entities,
        facts=facts,
        keywords=keywords,
        topic=record.topic.strip(),
        abstractiveness="high" if record.abstractiveness == "high" else "low",
    )
    return cleaned, lookup.dropped


class _Lookup:
    """Resolves references to entities and counts unknown ones."""

    def __init__(self, entities: Sequence[Entity]) -> None:
        self.ids = frozenset(entity.id for entity in entities)
        self.names: dict[str, str] = {}
        for entity in entities:
            for name in (entity.name, *entity.aliases):
                self.names.setdefault(name_key(name), entity.id)
        self.dropped = 0

    def entity(self, reference: str) -> str | None:
        """Id of the referenced entity; None (counted) if there is none."""
        if reference in self.ids:
            return reference
        entity = self.names.get(name_key(reference))
        if entity is None:
            self.dropped += 1
        return entity

    def end(self, text: str) -> str | None:
        """End of a triple: an id or a literal; None (counted) for an unknown id."""
        if text in self.ids:
            return text
        entity = self.names.get(name_key(text))
        if entity is None and _LOCAL_ID.fullmatch(text):
            self.dropped += 1
            return None
        return entity or " ".join(text.split()) or None


def _clean_entities(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    entities_by_id: dict[str, Entity] = {}
    for entity in entities:
        name = " ".join(entity.name.split())
        if not entity.id or entity.id in entities_by_id or not name_key(name):
            continue
        aliases = {name_key(alias): " ".join(alias.split()) for alias in reversed(entity.aliases)}
        ordered = tuple(alias for key, alias in reversed(aliases.items()) if key and key != name_key(name))
        entities_by_id[entity.id] = replace(entity, name=name, aliases=ordered)
    return tuple(entities_by_id.values())


def _clean_facts(facts: Iterable[Fact], lookup: _Lookup) -> tuple[Fact, ...]:
    clean: list[Fact] = []
    used_ids: set[str] = set()
    for fact in facts:
        text = fact.text.strip()
        if not text:
            continue
        fact_id = fact.id if fact.id and fact.id not in used_ids else _free_id(used_ids, len(clean) + 1)
        used_ids.add(fact_id)
        entities = [lookup.entity(reference) for reference in fact.entities]
        clean.append(
            Fact(
                id=fact_id,
                text=text,
                entities=tuple(dict.fromkeys(entity for entity in entities if entity is not None)),
                question=fact.question.strip(),
                answer=fact.answer.strip() or text,
                triples=_clean_triples(fact.triples, lookup),
            )
        )
    return tuple(clean)


def _free_id(used_ids: set[str], number: int) -> str:
    while f"f{number}" in used_ids:
        number += 1
    return f"f{number}"


def _clean_triples(triples: Iterable[Triple], lookup: _Lookup) -> tuple[Triple, ...]:
    distinct: dict[Triple, None] = {}
    for triple in triples:
        head, tail = lookup.end(triple.head), lookup.end(triple.tail)
        predicate = " ".join(triple.predicate.split())
        if head and tail and predicate:
            strength = triple.strength if math.isfinite(triple.strength) and triple.strength > 0 else 1.0
            distinct[Triple(head, predicate, tail, strength)] = None
    return tuple(distinct)


def _clean_keywords(keywords: Iterable[str], chunk: Chunk) -> tuple[str, ...]:
    text, titles = phrase_words(chunk.text), (phrase_words(chunk.title), phrase_words(base_title(chunk.title)))
    padded = f" {text} "
    distinct: dict[str, str] = {}
    for keyword in keywords:
        words = phrase_words(keyword)
        unspaced = any(ord(letter) >= _UNSPACED_SCRIPT for letter in words)
        if words and words not in titles and (words in text if unspaced else f" {words} " in padded):
            distinct.setdefault(words, " ".join(keyword.split()))
    return tuple(distinct.values())[:MAX_KEYWORDS]
