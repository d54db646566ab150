"""Extraction records as JSON (schema `extract/1`): validated, written to a file, and extracted from one."""

from __future__ import annotations

import asyncio
import json
import math
import re
import zlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from sire_core.errors import CorpusError, StorageError
from sire_core.extraction.headings import base_title
from sire_core.extraction.rules import keyphrases
from sire_core.extraction.spans import sentences_of
from sire_core.protocols import ChunkInContext
from sire_core.storage.derived import inflate
from sire_core.text.words import name_key, phrase_words
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact, Triple, digest

SCHEMA = "extract/1"
MAX_KEYWORDS = 5  # Keywords per chunk (IIER, section 3.1)

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # `json.dumps` would make one every time
_LOCAL_ID = re.compile(r"[ne]\d+")
# From here on, Unicode holds scripts that put no spaces between words.
_UNSPACED_SCRIPT = 0x2E80


class StoredRecord(NamedTuple):
    """A record as it is stored."""

    hash: str  # of its chunk
    status: str
    reason: str  # why extraction failed
    body: bytes  # JSON, compressed to less than half its length

    @classmethod
    def of(cls, record: ExtractionRecord) -> StoredRecord:
        """Encode a record."""
        return cls(record.hash, record.status, record.reason, zlib.compress(to_json(record).encode(), 1))


def stored_json(body: bytes) -> bytes:
    """Return the JSON of a stored record, UTF-8."""
    try:
        return inflate(body)
    except zlib.error as error:
        raise StorageError(
            "calls.sqlite is damaged: a record is not what was written. Restore the file from a backup. Without one, "
            "move it away and keep it: what is in there is extracted, and paid for, again."
        ) from error


def read_records(bodies: Mapping[str, bytes]) -> dict[str, ExtractionRecord]:
    """Decode stored records."""
    return {key: from_json(stored_json(body).decode()) for key, body in bodies.items()}


def to_json(record: ExtractionRecord) -> str:
    """Write a record as compact JSON with ordered keys, without default values."""
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "hash": record.hash,
        "model": record.model,
        "prompt": record.prompt,
        "status": record.status,
        **_given(
            entities=[_entity_out(entity) for entity in record.entities],
            facts=[_fact_out(fact) for fact in record.facts],
            keywords=record.keywords,
            topic=record.topic,
            abstractiveness="" if record.abstractiveness == "low" else record.abstractiveness,
            reason=record.reason,
        ),
    }
    text = _encode(data)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate: escaped it survives every store
        return json.dumps(data, separators=(",", ":"))
    return text


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _entity_out(entity: Entity) -> dict[str, Any]:
    others = _given(type=entity.type, aliases=entity.aliases, description=entity.description)
    return {"id": entity.id, "name": entity.name, **others}


def _fact_out(fact: Fact) -> dict[str, Any]:
    return {
        "id": fact.id,
        "text": fact.text,
        **_given(entities=fact.entities, question=fact.question),
        **({} if fact.answer == fact.text else {"answer": fact.answer}),
        **_given(triples=[_triple_out(triple) for triple in fact.triples]),
    }


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
        raise StorageError(
            f"An extraction record is not valid JSON ({error}). Restore the file from a backup, or correct this line."
        ) from error
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


def validate(record: ExtractionRecord, chunk: Chunk) -> ExtractionRecord:
    """Clean a record, so that all consumers can rely on one form."""
    if record.status == "failed":
        return replace(record, hash=chunk.hash)
    entities = _clean_entities(record.entities)
    lookup = _Lookup(entities)
    facts = _clean_facts(record.facts, lookup)
    keywords = _clean_keywords(record.keywords, chunk)
    return replace(
        record,
        hash=chunk.hash,
        status="ok" if entities or facts or keywords else "empty",
        entities=entities,
        facts=facts,
        keywords=keywords,
        topic=record.topic.strip(),
        abstractiveness="high" if record.abstractiveness == "high" else "low",
    )


class _Lookup:
    """Resolves references to entities."""

    def __init__(self, entities: Sequence[Entity]) -> None:
        self.ids = frozenset(entity.id for entity in entities)
        self.names: dict[str, str] = {}
        for entity in entities:
            for name in (entity.name, *entity.aliases):
                self.names.setdefault(name_key(name), entity.id)

    def entity(self, reference: str) -> str | None:
        return reference if reference in self.ids else self.names.get(name_key(reference))

    def end(self, text: str) -> str | None:
        """End of a triple: an id or a literal; None for an unknown id."""
        literal = None if _LOCAL_ID.fullmatch(text) else " ".join(text.split())
        return self.entity(text) or literal or None


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


def facts_of_triples(
    sentences: Sequence[str], triples: Iterable[Triple], ids: Mapping[str, str], *, first: bool
) -> tuple[Fact, ...]:
    """Facts: sentences with their triples in order, then triples without a sentence."""
    padded = [_padded(sentence) for sentence in sentences]
    groups: dict[str, list[Triple]] = {sentence: [] for sentence in sentences}
    for triple in triples:
        both = (_padded(triple.head), _padded(triple.tail))
        sentence_number = next((number for number, text in enumerate(padded) if all(end in text for end in both)), None)
        if sentence_number is None and not first:
            continue
        stated = f"{triple.head} {triple.predicate} {triple.tail}."
        text = stated if sentence_number is None else sentences[sentence_number]
        head, tail = (ids.get(name_key(end), end) for end in (triple.head, triple.tail))
        groups.setdefault(text, []).append(Triple(head, triple.predicate, tail, triple.strength))
    listed = [(_padded(key), number) for key, number in ids.items()]
    all_ids = frozenset(ids.values())
    facts: list[Fact] = []
    for text, group in groups.items():
        words = _padded(text)
        ends = tuple(end for triple in group for end in (triple.head, triple.tail) if end in all_ids)
        entity_ids = dict.fromkeys((*ends, *(number for name, number in listed if name.strip() and name in words)))
        if group or len(words.split()) > 2:
            facts.append(Fact(f"f{len(facts) + 1}", text, tuple(entity_ids), answer=text, triples=tuple(group)))
    return tuple(facts)


def _padded(text: str) -> str:
    return f" {phrase_words(text)} "


_RECORDED_VERSION = "recorded/1"
_RECORDS_PER_BATCH = 256
_RECORD_WORD = re.compile(r"\w+")


class RecordedExtractor:
    """Replays extractions: one JSON object a line, `{"id", "entities": [name], "triples": [[h, r, t]], "model"}`.

    `id` is a document id; every chunk of that document gets the triples that its sentences name. A triple's fact is
    the first sentence that names both of its ends, shared by all triples of that sentence, else the triple read as a
    sentence. Sentences without a triple are facts, too (43 % in MuSiQue's recording): what they say stays reachable,
    and the gold passages of a question share an entity more often (65 instead of 64 % of the pairs). A fact's
    entities are the listed names in its text; a triple's
    end that the model did not list stays a literal: free phrases such as "collecting business information" would
    become entities of one fact each, the common nouns that SiReRAG rejects.

    Args:
        path: The file.
        link_titles: Whether titles of other documents count as entities of the facts that name them; False leaves the
            recording as the model wrote it.

    Raises:
        CorpusError: The file cannot be read or a line is no such object.
    """

    def __init__(self, path: str | Path, *, link_titles: bool = True) -> None:
        text = _read(Path(path))
        self._rows = _parse(text, Path(path))
        self.links_titles = link_titles
        models = dict.fromkeys(row["model"] for row in self._rows.values() if row["model"])
        self.fingerprint = "+".join((_RECORDED_VERSION, *models, digest(text, size=6)))

    async def extract(self, chunks: Sequence[ChunkInContext]) -> AsyncIterator[Sequence[ExtractionRecord]]:
        """Yield one record per chunk, 256 at a time; failed ones for documents that are not in the file."""
        for start in range(0, len(chunks), _RECORDS_PER_BATCH):
            batch = [item.chunk for item in chunks[start : start + _RECORDS_PER_BATCH]]
            yield await asyncio.to_thread(self.records, batch)

    def records(self, chunks: Sequence[Chunk]) -> list[ExtractionRecord]:
        """Records of chunks, in order; the sync form of `extract`."""
        return [self._record(chunk) for chunk in chunks]

    def _record(self, chunk: Chunk) -> ExtractionRecord:
        row = self._rows.get(chunk.doc_id)
        if row is None:
            reason = f"The recording has no document {chunk.doc_id!r}; record it or leave it out of the corpus."
            return ExtractionRecord(chunk.hash, self.fingerprint, _RECORDED_VERSION, status="failed", reason=reason)
        names: dict[str, str] = {}
        for name in row["entities"]:
            names.setdefault(name_key(name), name)
        ids = {key: f"n{number}" for number, key in enumerate(names, 1)}
        sentences = sentences_of(chunk.text)
        facts = facts_of_triples(
            sentences, [Triple(*triple) for triple in row["triples"]], ids, first=chunk.position == 0
        )
        used = {entity for fact in facts for entity in fact.entities}
        entities = tuple(Entity(ids[key], names[key]) for key in ids if ids[key] in used)
        record = ExtractionRecord(
            hash=chunk.hash,
            model=row["model"] or _RECORDED_VERSION,
            prompt=_RECORDED_VERSION,
            entities=entities,
            facts=facts,
            keywords=keyphrases(chunk, sentences, [entity.name for entity in entities]),
            topic=chunk.title,
        )
        return validate(record, chunk)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"Cannot read the recorded extractions {path}: {error}") from error


def _parse(text: str, path: Path) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            rows[str(data["id"])] = {
                "entities": [name for name in data.get("entities") or () if isinstance(name, str) and name_key(name)],
                "triples": [triple for triple in data.get("triples") or () if _is_triple(triple)],
                "model": str(data.get("model") or ""),
            }
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise CorpusError(
                f"{path}, line {number} is not a recorded extraction ({error!r}); a line looks like "
                '{"id": "d1", "entities": ["A"], "triples": [["A", "founded", "B"]], "model": "name"}.'
            ) from error
    return rows


def _is_triple(triple: Any) -> bool:
    """True if a triple has three non-empty strings; others are left out."""
    return (
        isinstance(triple, list)
        and len(triple) == 3
        and all(isinstance(part, str) and _RECORD_WORD.search(part) for part in triple)
    )
