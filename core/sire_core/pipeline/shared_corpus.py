"""What the organizers of one build share: the corpus after the change, and the means to read it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sire_core.extraction.stage import RecordReader, chunks_with_stale_links
from sire_core.organize.build_view import Corpus

if TYPE_CHECKING:
    from sire_core.corpus.stored_corpus import CorpusUpdate
    from sire_core.models.embedding import UnitEmbedder
    from sire_core.pipeline.build_settings import BuildSettings
    from sire_core.storage.calls import CallStore

__all__ = ["shared_corpus"]


def shared_corpus(update: CorpusUpdate, settings: BuildSettings, calls: CallStore, embedder: UnitEmbedder) -> Corpus:
    """The corpus as organizers see it.

    Args:
        update: The change.
        settings: Who does the work.
        calls: Keeps the records.
        embedder: Makes vectors.
    """
    passages = update.passages.delta
    return Corpus(
        after=update.after,
        load_records=RecordReader(update.after, settings.extractor, calls),
        touched={*passages.drop_units, *(unit.id for unit in passages.put_units)},
        stale_links=cache(lambda: chunks_with_stale_links(update, settings.extractor, calls)),
        embed=embedder.embed,
        fingerprints=(settings.embedder.fingerprint, settings.extractor.fingerprint),
        make_summarizer=settings.make_summarizer,
        language_model=settings.language_model,
        seed=settings.seed,
        progress=settings.progress,
        runner=settings.runner,
        failures=settings.failures,
    )
