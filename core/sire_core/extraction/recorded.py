"""Recorded extractions: entities and triples of an earlier model run, and the sentences that state them."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sire_core.algorithms.text import name_key, phrase_words
from sire_core.errors import CorpusError
from sire_core.extraction.record import validate
from sire_core.extraction.rules import keyphrases
from sire_core.extraction.spans import sentences_of
from sire_core.protocols import ChunkInContext
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact, Triple, digest


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
    known = frozenset(ids.values())
    facts: list[Fact] = []
    for text, group in groups.items():
        words = _padded(text)
        ends = tuple(end for triple in group for end in (triple.head, triple.tail) if end in known)
        entity_ids = dict.fromkeys((*ends, *(number for name, number in listed if name.strip() and name in words)))
        if group or len(words.split()) > 2:
            facts.append(Fact(f"f{len(facts) + 1}", text, tuple(entity_ids), answer=text, triples=tuple(group)))
    return tuple(facts)


def _padded(text: str) -> str:
    return f" {phrase_words(text)} "


_VERSION = "recorded/1"
_BATCH = 256
_WORD = re.compile(r"\w+")


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
        self._links_titles = link_titles
        models = dict.fromkeys(row["model"] for row in self._rows.values() if row["model"])
        self._fingerprint = "+".join((_VERSION, *models, digest(text, size=6)))

    @property
    def fingerprint(self) -> str:
        """The recorded models and a digest of the file."""
        return self._fingerprint

    @property
    def links_titles(self) -> bool:
        """See `link_titles`."""
        return self._links_titles

    async def extract(self, chunks: Sequence[ChunkInContext]) -> AsyncIterator[Sequence[ExtractionRecord]]:
        """Yield one record per chunk, 256 at a time; failed ones for documents that are not in the file."""
        import asyncio

        for start in range(0, len(chunks), _BATCH):
            batch = [item.chunk for item in chunks[start : start + _BATCH]]
            yield await asyncio.to_thread(self.records, batch)

    def records(self, chunks: Sequence[Chunk]) -> list[ExtractionRecord]:
        """Records of chunks, in order; the sync form of `extract`."""
        return [self._record(chunk) for chunk in chunks]

    def _record(self, chunk: Chunk) -> ExtractionRecord:
        row = self._rows.get(chunk.doc_id)
        if row is None:
            reason = f"The recording has no document {chunk.doc_id!r}; record it or leave it out of the corpus."
            return ExtractionRecord(chunk.hash, self._fingerprint, _VERSION, status="failed", reason=reason)
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
            model=row["model"] or _VERSION,
            prompt=_VERSION,
            entities=entities,
            facts=facts,
            keywords=keyphrases(chunk, sentences, [entity.name for entity in entities]),
            topic=chunk.title,
        )
        return validate(record, chunk)[0]


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
    """Whether a triple has three non-empty strings; others are left out."""
    return (
        isinstance(triple, list)
        and len(triple) == 3
        and all(isinstance(part, str) and _WORD.search(part) for part in triple)
    )
