"""`apply_plan`: a planned change of the corpus, applied to it and to everything derived from it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sire_core.build.build_context import BuildContext
from sire_core.build.builder import Builder
from sire_core.corpus.changes import CorpusChange, StoredDocument
from sire_core.derive.runners import resolve_runner
from sire_core.models.embedders import fit_once, lacks_state, restore
from sire_core.types import BuildReport, Chunk, Failure

if TYPE_CHECKING:
    from sire_core.configuration import Configuration
    from sire_core.corpus.stored_corpus import CorpusUpdate
    from sire_core.models.usage_meter import UsageMeter
    from sire_core.protocols import Embedder, Extractor, LanguageModel, Recipe, Summarizer
    from sire_core.storage.index_files import IndexFiles

__all__ = ["Plan", "apply_plan"]

_logger = logging.getLogger(__name__)

Plan = Callable[[Mapping[str, StoredDocument], Sequence[Chunk]], CorpusChange]
"""Maps stored documents and their passages to a change."""


async def apply_plan(files: IndexFiles, plan: Plan, configuration: Configuration) -> BuildReport:
    """Change the corpus and everything derived from it."""
    import asyncio

    manifest = files.refresh()
    recipe, embedder = configuration.built_by(manifest)
    runner = resolve_runner(configuration.runner)
    update = await asyncio.to_thread(_read, files, plan)
    failures: list[Failure] = []
    model, meter, extractor, summarizer = _build_models(files, configuration, recipe, update.after.hashes, failures)
    lost = await asyncio.to_thread(_has_lost_state, files, update, embedder)
    embedder, extractor = await asyncio.to_thread(_fit, files, update, recipe, embedder, extractor)
    context = BuildContext(
        configuration, files, manifest, update, recipe, embedder, extractor, model, summarizer, failures, meter, runner
    )
    report = await Builder(context).run()
    if lost:
        _logger.warning(
            "What the embedder of this index had learned was not in calls.sqlite, which was damaged or missing. It was "
            "learned again from the passages."
        )
        report = replace(report, learned_again=True)
    if meter is None:
        return report
    usage = meter.report()
    return replace(
        report,
        calls=usage.total.calls,
        cached=usage.total.cached,
        input_tokens=usage.total.input_tokens,
        output_tokens=usage.total.output_tokens,
        usage=usage.stages,
    )


def _read(files: IndexFiles, plan: Plan) -> CorpusUpdate:
    files.require_sound()  # what is committed next is computed from it
    corpus = files.store.corpus()
    return corpus.updated(plan(corpus.documents, corpus.chunks))


def _build_models(
    files: IndexFiles, configuration: Configuration, recipe: Recipe, hash_of: Mapping[str, str], failures: list[Failure]
) -> tuple[LanguageModel | None, UsageMeter | None, Extractor, Callable[[int, Callable[[int, int], None]], Summarizer]]:
    """Build the model, the usage meter, the extractor and the factory of summarizers; without a model, of rules."""
    model = configuration.language_model
    if model is None:
        from sire_core.extraction.rules import RulesExtractor
        from sire_core.trees.summarizers import ExtractiveSummarizer

        return (
            None,
            None,
            configuration.extractor or RulesExtractor(),
            lambda max_tokens, progress: ExtractiveSummarizer(max_tokens, progress=progress),
        )
    from sire_core.extraction.merged import model_extractor
    from sire_core.models.caching import CachedModel
    from sire_core.models.usage_meter import UsageMeter, with_meter
    from sire_core.trees.summarizers import ModelSummarizer

    meter = UsageMeter(configuration.limits)

    def cached(stage: str) -> CachedModel:
        return CachedModel(model, files.calls, stage, meter=meter, source_of=lambda chunk: hash_of.get(chunk, chunk))

    def summarizer(max_tokens: int, progress: Callable[[int, int], None]) -> Summarizer:
        return ModelSummarizer(
            cached("summaries"),
            max_tokens=max_tokens,
            concurrency=configuration.workers,
            on_failure=failures.append,
            progress=progress,
        )

    # Of the joint prompt the records are stored; of native and merged extraction the answers.
    extracting = with_meter(model, meter, "extraction") if configuration.extraction == "joint" else cached("extraction")
    extractor = configuration.extractor or model_extractor(
        extracting, configuration.extraction, configuration.workers, native=recipe.native
    )
    return cached("organizing"), meter, extractor, summarizer


class _Texts(Sequence[str]):
    """The texts of passages that are embedded, made lazily: mostly they are not needed."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks

    def __len__(self) -> int:
        return len(self._chunks)

    def __getitem__(self, index: Any) -> Any:
        chunks = self._chunks[index]
        return [chunk.index_text for chunk in chunks] if isinstance(index, slice) else chunks.index_text


def _has_lost_state(files: IndexFiles, update: CorpusUpdate, embedder: Embedder) -> bool:
    """Whether the stored state of the index's embedder is lost, so that `_fit` fits it again."""
    before = files.manifest().embedder
    if not (before and update.after.chunks):
        return False
    return lacks_state(restore(embedder, "embedder", before, files.calls), before)


def _fit(
    files: IndexFiles, update: CorpusUpdate, recipe: Recipe, embedder: Embedder, extractor: Extractor
) -> tuple[Embedder, Extractor]:
    manifest = files.manifest()
    texts = _Texts(update.after.chunks)
    fitted = fit_once(embedder, "embedder", manifest.embedder, files.calls, texts, refit=bool(update.change))
    if not (recipe.needs_records or any(built.extraction for built in manifest.recipes)):
        return fitted, extractor
    # The extractor is never fitted again: records made with different statistics would not compare.
    return fitted, fit_once(extractor, "extractor", manifest.extractor, files.calls, texts, refit=False)
