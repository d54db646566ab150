"""`apply_plan`: from a plan for the corpus to a committed index."""

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
"""From the stored documents and all of their passages to what changes."""


async def apply_plan(files: IndexFiles, plan: Plan, given: Configuration) -> BuildReport:
    """Change the corpus and everything derived from it."""
    import asyncio

    manifest = files.refresh()
    recipe, embedder = given.built_by(manifest)
    runner = resolve_runner(given.runner)
    update = await asyncio.to_thread(_read, files, plan)
    failures: list[Failure] = []
    model, meter, extractor, summarizer = _workers(files, given, recipe, update.after.hashes, failures)
    lost = await asyncio.to_thread(_has_lost_state, files, update, embedder)
    embedder, extractor = await asyncio.to_thread(_fit, files, update, recipe, embedder, extractor)
    context = BuildContext(
        given, files, manifest, update, recipe, embedder, extractor, model, summarizer, failures, meter, runner
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


def _workers(
    files: IndexFiles, given: Configuration, recipe: Recipe, hash_of: Mapping[str, str], failures: list[Failure]
) -> tuple[LanguageModel | None, UsageMeter | None, Extractor, Callable[[int, Callable[[int, int], None]], Summarizer]]:
    """Who answers, counts, extracts and summarises: a model whose answers are stored, or nobody but rules."""
    model = given.language_model
    if model is None:
        from sire_core.extraction.rules import RulesExtractor
        from sire_core.trees.summarizers import ExtractiveSummarizer

        return (
            None,
            None,
            given.extractor or RulesExtractor(),
            lambda max_tokens, progress: ExtractiveSummarizer(max_tokens, progress=progress),
        )
    from sire_core.extraction.merged import model_extractor
    from sire_core.models.caching import CachedModel
    from sire_core.models.usage_meter import UsageMeter, with_meter
    from sire_core.trees.summarizers import ModelSummarizer

    meter = UsageMeter(given.limits)

    def cached(stage: str) -> CachedModel:
        return CachedModel(model, files.calls, stage, meter=meter, source_of=lambda found: hash_of.get(found, found))

    def summarizer(max_tokens: int, progress: Callable[[int, int], None]) -> Summarizer:
        asked, write_down = cached("summaries"), failures.append
        return ModelSummarizer(
            asked, max_tokens=max_tokens, concurrency=given.workers, on_failure=write_down, progress=progress
        )

    # Records of the joint prompt are stored as such; of the steps of native extraction, and of what is merged with the
    # records of rules, the answers are.
    asked = with_meter(model, meter, "extraction") if given.extraction == "joint" else cached("extraction")
    extractor = given.extractor or model_extractor(asked, given.extraction, given.workers, native=recipe.native)
    return cached("organizing"), meter, extractor, summarizer


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


def _has_lost_state(files: IndexFiles, update: CorpusUpdate, embedder: Embedder) -> bool:
    """Whether `_fit` has to make again what the embedder of the index learned; without passages nothing can."""
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
