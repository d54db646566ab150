"""From chunks and their extraction records to documents with facts: the input of IndexRAG (ALGORITHMS 4.1, 12)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.organize.bridges.entities import SourceDocument, SourceFact
from sire_core.organize.facts.aggregates import hash64

if TYPE_CHECKING:
    from sire_core.types import Chunk, ExtractionRecord, Unit

__all__ = [
    "DocumentPassages",
    "document_from_note",
    "document_to_note",
    "passages_by_document",
    "source_document",
]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class DocumentPassages:
    """The passages that a document is the first to state.

    Attributes:
        id: The document's id.
        title: Its title.
        units: Chunk units in order, at least one; each stands on all copies of its passage.
    """

    id: str
    title: str
    units: tuple[Unit, ...]

    @property
    def head(self) -> str:
        """Id of the first passage: names the document in the store."""
        return self.units[0].id

    @property
    def version(self) -> int:
        """Hash of title, passages and copies."""
        return hash64("\n".join(["\0".join(unit.chunk_ids) for unit in self.units]))


def passages_by_document(chunks: Sequence[Chunk], chunk_units: Sequence[Unit]) -> list[DocumentPassages]:
    """Documents in corpus order.

    A passage that several documents repeat word for word counts once, for the first of them: nothing can be learned
    from reading the same text together with itself.

    Args:
        chunks: In corpus order.
        chunk_units: One per distinct passage.
    """
    document = {chunk.id: chunk.doc_id for chunk in chunks}
    found: dict[str, list[Unit]] = {}
    for unit in chunk_units:
        found.setdefault(document[unit.chunk_ids[0]], []).append(unit)
    return [DocumentPassages(name, units[0].title, tuple(units)) for name, units in found.items()]


def source_document(
    passages: DocumentPassages,
    records: Mapping[str, ExtractionRecord],
    skip_types: Collection[str],
    key_of: Callable[[str], str],
) -> SourceDocument:
    """Entities and facts of a document.

    Args:
        passages: The document.
        records: By chunk id; passages without one have no facts.
        skip_types: Entity types that are left out.
        key_of: See `name_key`.
    """
    names: dict[str, tuple[str, ...]] = {}
    facts: list[SourceFact] = []
    for unit in passages.units:
        record = records.get(unit.chunk_ids[0])
        if record is None:
            continue
        keys: dict[str, str] = {}
        for entity in record.entities:
            if entity.type not in skip_types and (key := key_of(entity.name)):
                keys[entity.id] = key
                names[key] = (*names.get(key, ()), entity.name, *entity.aliases)
        facts += [
            # An answer is a full sentence where it is given (the prompt asks for that); else the fact says it.
            SourceFact(
                fact.answer or fact.text,
                unit.chunk_ids,
                frozenset([keys[entity] for entity in fact.entities if entity in keys]),
            )
            for fact in record.facts
        ]
    distinct = {key: forms if len(forms) == 1 else tuple(dict.fromkeys(forms)) for key, forms in names.items()}
    return SourceDocument(passages.id, passages.title, distinct, tuple(facts))


def document_to_note(document: SourceDocument, passages: DocumentPassages) -> bytes:
    """A document as bytes for the store: per entity key, names and numbers of facts; per passage, texts of facts."""
    linked = document.linked
    names = [[key, list(forms), linked.get(key, [])] for key, forms in document.names.items()]
    texts: dict[tuple[str, ...], list[str]] = {unit.chunk_ids: [] for unit in passages.units}
    for fact in document.facts:
        texts[fact.chunk_ids].append(fact.text)
    return _encode([names, list(texts.values())]).encode("utf-8", "surrogatepass")


def document_from_note(note: bytes, passages: DocumentPassages) -> SourceDocument:
    """What `document_to_note` wrote."""
    names, texts = json.loads(note.decode("utf-8", "surrogatepass"))
    said = [(text, unit.chunk_ids) for unit, part in zip(passages.units, texts, strict=True) for text in part]
    keys: list[list[str]] = [[] for _ in said]
    for key, _, linked in names:
        for fact in linked:
            keys[fact].append(key)
    return SourceDocument(
        passages.id,
        passages.title,
        {key: tuple(forms) for key, forms, _ in names},
        tuple([SourceFact(text, chunks, frozenset(k)) for (text, chunks), k in zip(said, keys, strict=True)]),
    )
