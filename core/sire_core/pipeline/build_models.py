"""Who extracts and summarises in a build: models whose calls are stored, counted and bounded, or nobody but rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sire_core.types import BuildReport, Failure

if TYPE_CHECKING:
    from sire_core.pipeline.build_context import BuildContext
    from sire_core.protocols import Extractor, LanguageModel, Summarizer
    from sire_core.storage.index_files import IndexFiles

__all__ = ["BuildModels", "build_models"]


@dataclass(frozen=True, slots=True)
class BuildModels:
    """The extractor, the model and the summariser of one build.

    Attributes:
        extractor: Makes records.
        language_model: For organizers; its validated answers are stored. None without a model.
        summarizer: Summariser of a length, and for whom it tells how far it is.
        failures: Summaries that failed so far; it grows while the build works.
        meter: Counts and bounds calls; None without a model.
    """

    extractor: Extractor
    language_model: LanguageModel | None
    summarizer: Callable[[int, Callable[[int, int], None]], Summarizer]
    failures: list[Failure]
    meter: Any = None

    def complete(self, report: BuildReport) -> BuildReport:
        """The report with what the models were asked."""
        if self.meter is None:
            return report
        usage = self.meter.report()
        return replace(
            report,
            calls=usage.total.calls,
            cached=usage.total.cached,
            input_tokens=usage.total.input_tokens,
            output_tokens=usage.total.output_tokens,
            usage=usage.stages,
        )


def build_models(library: IndexFiles, workers: BuildContext, hash_of: Mapping[str, str]) -> BuildModels:
    """Choose who does the work.

    Args:
        library: Keeps answers.
        workers: What the index was configured with.
        hash_of: Content hash by chunk id, so that a purge finds the answers that a passage went into.
    """
    if workers.language_model is None:
        return _without_model(workers)
    from sire_core.extraction.choice import model_extractor
    from sire_core.models.caching import CachedModel
    from sire_core.models.metering import with_meter
    from sire_core.models.usage_meter import UsageMeter
    from sire_core.organize.summaries.model_summary import ModelSummarizer

    meter = UsageMeter(workers.limits)
    model = workers.language_model
    failures: list[Failure] = []

    def cached(stage: str) -> CachedModel:
        return CachedModel(model, library.calls, stage, meter=meter, source_of=lambda found: hash_of.get(found, found))

    def summarizer(max_tokens: int, progress: Callable[[int, int], None]) -> Summarizer:
        return ModelSummarizer(
            cached("summaries"),
            max_tokens=max_tokens,
            concurrency=workers.workers,
            on_failure=failures.append,
            progress=progress,
        )

    # Records of the joint prompt are stored as such; of the steps of native extraction, and of what is merged with the
    # records of rules, the answers are.
    joint = workers.extraction == "joint"
    asked = with_meter(model, meter, "extraction") if joint else cached("extraction")
    extractor = workers.extractor or model_extractor(
        asked, workers.extraction, workers.workers, native=workers.recipe.native
    )
    return BuildModels(extractor, cached("organizing"), summarizer, failures, meter)


def _without_model(workers: BuildContext) -> BuildModels:
    from sire_core.extraction.rules import RulesExtractor
    from sire_core.organize.summaries.extractive import ExtractiveSummarizer

    def summarizer(max_tokens: int, progress: Callable[[int, int], None]) -> Summarizer:
        return ExtractiveSummarizer(max_tokens, progress=progress)

    return BuildModels(workers.extractor or RulesExtractor(), None, summarizer, [])
