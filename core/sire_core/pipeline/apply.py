"""`apply_plan`: from a plan for the corpus to a committed index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sire_core.corpus.changes import CorpusChange, StoredDocument
from sire_core.corpus.stored_corpus import CorpusUpdate
from sire_core.models.embedders import fit_once
from sire_core.pipeline.build_models import build_models
from sire_core.pipeline.build_settings import BuildSettings
from sire_core.pipeline.builder import Builder
from sire_core.pipeline.planning import Fingerprints
from sire_core.types import BuildReport, Chunk

if TYPE_CHECKING:
    from sire_core.pipeline.build_context import BuildContext
    from sire_core.protocols import Embedder, Extractor
    from sire_core.storage.index_files import IndexFiles

__all__ = ["Plan", "apply_plan"]

Plan = Callable[[Mapping[str, StoredDocument], Sequence[Chunk]], CorpusChange]
"""From the stored documents and all of their passages to what changes."""


async def apply_plan(library: IndexFiles, plan: Plan, workers: BuildContext) -> BuildReport:
    """Change the corpus and everything derived from it.

    Args:
        library: The open index, its writer's lock held.
        plan: What changes.
        workers: Who does it.
    """
    import asyncio

    corpus = await asyncio.to_thread(_read, library, plan)
    manifest = library.manifest()
    models = build_models(library, workers, corpus.after.hashes)
    embedder, extractor = await asyncio.to_thread(_fit, library, corpus, workers, models.extractor)
    model = workers.language_model
    settings = BuildSettings(
        recipe=workers.recipe,
        embedder=embedder,
        extractor=extractor,
        language_model=models.language_model,
        make_summarizer=models.summarizer,
        failures=models.failures,
        fingerprints=Fingerprints(
            extractor=extractor.fingerprint,
            summarizer=f"model/1:{model.fingerprint}" if model else "extractive/1",
            language_model=model.fingerprint if model else "",
        ),
        chunker=workers.chunker.settings() if workers.chunker else None,
        seed=manifest.seed if manifest.generation else workers.seed,
        workers=workers.workers,
        max_failure_ratio=workers.max_failure_ratio,
        progress=workers.progress,
        runner=workers.runner,
    )
    report = await Builder(library, settings).run(corpus)
    return models.complete(report)


def _read(library: IndexFiles, plan: Plan) -> CorpusUpdate:
    library.require_sound()  # what is committed next is computed from it
    corpus = library.store.corpus()
    return corpus.updated(plan(corpus.documents, corpus.chunks))


class _Texts(Sequence[str]):
    """What passages are embedded by, made when it is asked for: mostly it is not.

    Args:
        chunks: The passages.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks

    def __len__(self) -> int:
        return len(self._chunks)

    def __getitem__(self, place: Any) -> Any:
        found = self._chunks[place]
        return [chunk.index_text for chunk in found] if isinstance(place, slice) else found.index_text


def _fit(
    library: IndexFiles, corpus: CorpusUpdate, workers: BuildContext, extractor: Extractor
) -> tuple[Embedder, Extractor]:
    manifest = library.manifest()
    texts = _Texts(corpus.after.chunks)
    changed = bool(corpus.change)
    fitted = fit_once(workers.embedder, "embedder", manifest.embedder, library.calls, texts, refit=changed)
    if not (workers.recipe.needs_records or any(built.extraction for built in manifest.recipes)):
        return fitted, extractor
    # The extractor is never fitted again: records made with different statistics would not compare.
    return fitted, fit_once(extractor, "extractor", manifest.extractor, library.calls, texts, refit=False)
