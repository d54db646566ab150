"""What the organizers of one build share: the corpus after the change, and the means to read it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sire_core.corpus.units import CorpusUpdate, chunk_units
from sire_core.extraction.stage import RecordReader, chunks_with_stale_links
from sire_core.organize.build_view import Corpus

if TYPE_CHECKING:
    from sire_core.models.embedding import UnitEmbedder
    from sire_core.pipeline.build_settings import BuildSettings
    from sire_core.protocols import Delta
    from sire_core.storage.calls import CallStore

__all__ = ["shared_corpus"]


def shared_corpus(
    update: CorpusUpdate, passages: Delta, settings: BuildSettings, calls: CallStore, embedder: UnitEmbedder
) -> Corpus:
    """The corpus as organizers see it.

    Args:
        update: The change.
        passages: What it does to the chunk units.
        settings: Who does the work.
        calls: Keeps the records.
        embedder: Makes vectors.
    """
    chunks, old, hashes = update.chunks, update.old_chunks, update.hashes
    return Corpus(
        chunks=chunks,
        chunk_units=chunk_units(chunks),
        load_records=RecordReader(chunks, settings.extractor, calls, hashes),
        sequences={d.id: d.sequence for d in (*update.stored.values(), *update.change.put_documents)},
        touched={*passages.drop_units, *(unit.id for unit in passages.put_units)},
        stale_links=cache(lambda: chunks_with_stale_links(old, chunks, settings.extractor, calls, hashes)),
        embed=embedder.embed,
        fingerprints=(settings.embedder.fingerprint, settings.extractor.fingerprint),
        make_summarizer=settings.make_summarizer,
        language_model=settings.language_model,
        seed=settings.seed,
        progress=settings.progress,
        runner=settings.runner,
        failures=settings.failures,
    )
