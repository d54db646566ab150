"""From chunks and their extraction records to documents with facts: the input of IndexRAG (ALGORITHMS 4.1, 12)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sire_core.algorithms.text import name_key
from sire_core.organize.bridge_entities import SourceDocument, SourceFact
from sire_core.types import Chunk, ExtractionRecord, Unit

__all__ = ["source_documents"]


def source_documents(
    chunks: Sequence[Chunk],
    chunk_units: Sequence[Unit],
    records: Mapping[str, ExtractionRecord],
    skip_types: Collection[str] = (),
    entity_key: str = "norm",
) -> list[SourceDocument]:
    """Documents in corpus order with their entities and facts.

    A passage that several documents repeat word for word counts once, for the first of them, and its facts stand on all
    copies: nothing can be learned from reading the same text together with itself.

    Args:
        chunks: In corpus order.
        chunk_units: One per distinct passage.
        records: By chunk id; chunks without one have no facts.
        skip_types: Entity types that are left out.
        entity_key: See `name_key`.
    """
    copies = {unit.chunk_ids[0]: unit.chunk_ids for unit in chunk_units}
    found: dict[str, SourceDocument] = {}
    for chunk in chunks:
        record = records.get(chunk.id)
        if record is None or chunk.id not in copies:
            continue
        kept = [entity for entity in record.entities if entity.type not in skip_types]
        keys = {entity.id: name_key(entity.name, entity_key) for entity in kept}
        document = found.get(chunk.doc_id) or SourceDocument(chunk.doc_id, chunk.title, {}, ())
        names = {key: list(forms) for key, forms in document.names.items()}
        for entity in kept:
            if keys[entity.id]:
                names.setdefault(keys[entity.id], []).extend((entity.name, *entity.aliases))
        facts = [
            # An answer is a full sentence where it is given (the prompt asks for that); else the fact says it.
            SourceFact(
                fact.answer or fact.text,
                copies[chunk.id],
                frozenset(keys[entity] for entity in fact.entities if keys.get(entity)),
            )
            for fact in record.facts
        ]
        found[chunk.doc_id] = SourceDocument(
            chunk.doc_id,
            chunk.title,
            {key: tuple(dict.fromkeys(forms)) for key, forms in names.items()},
            (*document.facts, *facts),
        )
    return list(found.values())
