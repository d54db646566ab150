"""`MergedExtractor`: a model's facts about the names that rules find, completed by every sentence that it left out.

A small model asked for a whole record writes descriptions, types and questions for minutes and leaves half of the
sentences out; rules find every sentence and every name, and no relation that is not spelt out. So the model is given
the names and asked for facts and relations alone: one call of a third of the length.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from sire_core.extraction.model_extractor import ModelExtractor
from sire_core.extraction.record import validate
from sire_core.extraction.rules import RulesExtractor
from sire_core.protocols import ChunkInContext, Extractor, LanguageModel
from sire_core.text.words import name_key, tokenize
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact, Triple

_COVERED = 0.7  # Minimum share of the words of a sentence that a model's fact must have to cover it


class MergedExtractor:
    """Merges the records of a model and of the rules, which find the names and every sentence.

    A record that the model failed to make stays failed, so that the next build asks again.
    """

    def __init__(self, language_model: LanguageModel, *, concurrency: int | None = None) -> None:
        self._rules = RulesExtractor()
        # Makes the model's part
        self.asked = ModelExtractor(language_model, known_entities=self._names, concurrency=concurrency)

    def _names(self, chunk: Chunk) -> Sequence[Entity]:
        (record,) = self._rules.records([chunk])
        return record.entities

    links_titles = RulesExtractor.links_titles

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the model's records and version of the rules."""
        return f"{self.asked.fingerprint}+{self._rules.fingerprint}"

    async def extract(self, chunks: Sequence[ChunkInContext]) -> AsyncIterator[Sequence[ExtractionRecord]]:
        """Yield the model's records, each merged with that of the rules."""
        by_hash = {item.chunk.hash: item.chunk for item in chunks}
        async with aclosing(self.asked.extract(chunks)) as batches:  # type: ignore[type-var] # it is an async generator
            async for batch in batches:
                passages = [by_hash[record.hash] for record in batch]
                rule_records = await asyncio.to_thread(self._rules.records, passages)
                yield [self._merged(*item) for item in zip(batch, rule_records, passages, strict=True)]

    def _merged(self, record: ExtractionRecord, rules: ExtractionRecord, chunk: Chunk) -> ExtractionRecord:
        return record if record.status == "failed" else validate(merge_records(record, rules), chunk)


def merge_records(first: ExtractionRecord, second: ExtractionRecord) -> ExtractionRecord:
    """Merge two records of the same passage."""
    entities, same = _merge_entities(first.entities, second.entities)
    facts = list(first.facts)
    words = [frozenset(tokenize(fact.text)) for fact in facts]
    fresh = []
    for fact in second.facts:
        moved = _with_merged_ids(fact, same)
        content_words = frozenset(tokenize(fact.text))
        shares = [len(content_words & known) / len(content_words) if content_words else 1.0 for known in words]
        best = max(range(len(shares)), key=shares.__getitem__, default=-1)
        if best >= 0 and shares[best] >= _COVERED:
            facts[best] = _merge_facts(facts[best], moved)
        else:
            fresh.append(moved)
    return replace(
        first,
        status="ok",
        entities=tuple(entities),
        facts=(*facts, *(replace(fact, id=f"r{number}") for number, fact in enumerate(fresh, 1))),
        keywords=(*first.keywords, *second.keywords),
        topic=first.topic or second.topic,
    )


def _merge_entities(first: Sequence[Entity], second: Sequence[Entity]) -> tuple[list[Entity], dict[str, str]]:
    """Entities of both, and the merged id of every id of the second."""
    merged = {entity.id: entity for entity in first}
    owner = {name_key(name): entity.id for entity in reversed(first) for name in (*entity.aliases, entity.name)}
    same: dict[str, str] = {}
    for entity in second:
        names = (entity.name, *entity.aliases)
        entity_id = next((owner[name_key(name)] for name in names if name_key(name) in owner), None)
        if entity_id is None:
            entity_id = f"n{len(merged) + 1}"
            while entity_id in merged:
                entity_id += "0"
            merged[entity_id] = replace(entity, id=entity_id)
        else:
            old = merged[entity_id]
            merged[entity_id] = replace(old, type=old.type or entity.type, aliases=(*old.aliases, *names))
        same[entity.id] = entity_id
    return list(merged.values()), same


def _with_merged_ids(fact: Fact, same: Mapping[str, str]) -> Fact:
    triples = tuple(
        Triple(same.get(t.head, t.head), t.predicate, same.get(t.tail, t.tail), t.strength) for t in fact.triples
    )
    return replace(fact, entities=tuple(same.get(entity, entity) for entity in fact.entities), triples=triples)


def _merge_facts(fact: Fact, other: Fact) -> Fact:
    """Merge two facts that state the same: entities of both, relations between ends that are not related yet."""
    related = {frozenset((triple.head, triple.tail)) for triple in fact.triples}
    more = tuple(triple for triple in other.triples if frozenset((triple.head, triple.tail)) not in related)
    return replace(
        fact, entities=tuple(dict.fromkeys((*fact.entities, *other.entities))), triples=(*fact.triples, *more)
    )


def model_extractor(
    model: LanguageModel, extraction: str, concurrency: int | None = None, *, native: str = "rewrite"
) -> Extractor:
    """The extractor that `Index(extraction=...)` names."""
    if extraction == "model+rules":
        return MergedExtractor(model, concurrency=concurrency)
    return ModelExtractor(model, native=native if extraction == "native" else None, concurrency=concurrency)
