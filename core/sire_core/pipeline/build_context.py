"""`BuildContext`: who and what a build has to work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sire_core.corpus.chunker import SentenceChunker
    from sire_core.models.usage import UsageLimits
    from sire_core.protocols import Embedder, Extractor, LanguageModel, Progress, Recipe, Runner

__all__ = ["BuildContext"]


@dataclass(frozen=True, slots=True)
class BuildContext:
    """Who and what an `Index` was configured with.

    Attributes:
        recipe: What is built.
        embedder: Makes vectors.
        extractor: Makes records; None picks by `language_model`.
        language_model: None works without models.
        chunker: Cuts documents.
        seed: Seed of every random choice.
        workers: Calls in flight at once.
        max_failure_ratio: Share of failed passages or summaries above which a build stops.
        progress: Told about every batch.
        limits: Bounds on model calls and tokens of one build.
        extraction: `joint`, `native` or `model+rules`; see `Index`.
        runner: Does work that falls into parts.
    """

    recipe: Recipe
    embedder: Embedder
    extractor: Extractor | None
    language_model: LanguageModel | None
    chunker: SentenceChunker | None
    seed: int
    workers: int
    max_failure_ratio: float
    progress: Progress
    runner: Runner
    limits: UsageLimits | None = None
    extraction: str = "joint"
