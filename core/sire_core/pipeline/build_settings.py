"""`BuildSettings`: who does the work of one build, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sire_core.pipeline.planning import Fingerprints
    from sire_core.protocols import Embedder, Extractor, LanguageModel, Progress, Recipe, Runner, Summarizer
    from sire_core.types import Failure

__all__ = ["BuildSettings"]


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """Who does the work, and how.

    Attributes:
        recipe: What is built.
        embedder: Makes vectors; fitted.
        extractor: Makes records; fitted.
        language_model: Answers prompts; None without one.
        make_summarizer: Summariser of a length, and for whom it tells how far it is.
        failures: Summaries that failed; the summariser adds to it while the build works.
        fingerprints: Fingerprints of those.
        chunker: Settings of the chunker, for the manifest.
        seed: Seed of every random choice.
        workers: Calls in flight at once.
        max_failure_ratio: Share of failed passages or summaries above which the build stops.
        progress: Told about every batch.
        runner: Does work that falls into parts.
    """

    recipe: Recipe
    embedder: Embedder
    extractor: Extractor
    language_model: LanguageModel | None
    make_summarizer: Callable[[int, Callable[[int, int], None]], Summarizer]
    failures: Sequence[Failure]
    fingerprints: Fingerprints
    chunker: Mapping[str, Any] | None
    seed: int
    workers: int
    max_failure_ratio: float
    progress: Progress
    runner: Runner
