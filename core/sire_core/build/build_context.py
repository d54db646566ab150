"""`BuildContext`: one build, with everybody who works in it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sire_core.extraction.stage import chunks_with_stale_links
from sire_core.models.embedding import UnitEmbedder

if TYPE_CHECKING:
    from sire_core.configuration import Configuration
    from sire_core.corpus.stored_corpus import CorpusUpdate
    from sire_core.models.usage_meter import UsageMeter
    from sire_core.protocols import Embedder, Extractor, LanguageModel, Recipe, Runner, Summarizer
    from sire_core.storage.index_files import IndexFiles
    from sire_core.storage.manifest import Manifest
    from sire_core.types import Failure

__all__ = ["BuildContext"]


@dataclass(frozen=True)
class BuildContext:
    """One build: what the index was given, what changes, and who does the work.

    Attributes:
        given: The arguments of the index.
        files: The open index, its writer's lock held.
        before: What the index held.
        update: The corpus before and after the change.
        recipe: What is built.
        embedder: Makes vectors; fitted.
        extractor: Makes records; fitted.
        language_model: For organizers; its validated answers are stored. None without one.
        make_summarizer: Summariser of a length, and for whom it tells how far it is.
        failures: Summaries that failed; the summariser adds to it while the build works.
        meter: Counts and bounds calls; None without a model.
        runner: Does work that falls into parts.
    """

    given: Configuration
    files: IndexFiles
    before: Manifest
    update: CorpusUpdate
    recipe: Recipe
    embedder: Embedder
    extractor: Extractor
    language_model: LanguageModel | None
    make_summarizer: Callable[[int, Callable[[int, int], None]], Summarizer]
    failures: list[Failure]
    meter: UsageMeter | None
    runner: Runner

    @property
    def seed(self) -> int:
        """Seed of every random choice: that of the first build."""
        return self.before.seed if self.before.generation else self.given.seed

    @property
    def model_fingerprint(self) -> str:
        """Fingerprint of the language model; empty without one."""
        return self.language_model.fingerprint if self.language_model is not None else ""

    @property
    def summarizer_fingerprint(self) -> str:
        """Fingerprint of who writes summaries."""
        return f"model/1:{self.model_fingerprint}" if self.language_model is not None else "extractive/1"

    @property
    def refitted(self) -> bool:
        """Whether the embedder was fitted again, so that no stored vector stays."""
        return bool(self.before.embedder) and self.before.embedder != self.embedder.fingerprint

    @cached_property
    def touched(self) -> Collection[str]:
        """Ids of chunk units that come, change or go."""
        passages = self.update.passages.delta
        return {*passages.drop_units, *(unit.id for unit in passages.put_units)}

    @cached_property
    def stale_links(self) -> Collection[str]:
        """Ids of old chunks whose records may link other titles than before the change."""
        return chunks_with_stale_links(self.update, self.extractor, self.files.calls)

    @cached_property
    def vectors(self) -> UnitEmbedder:
        """Vectors of units, or of ids of stored units, reusing what is stored."""
        given, store, refitted = self.given, self.files.store, self.refitted
        return UnitEmbedder(
            self.embedder,
            self.files.calls,
            (lambda _: {}) if refitted else store.vectors,
            store.units_by_id,
            given.progress,
            given.workers,
            0 if refitted else store.dimension(),
            self.runner,
            self.files.folder.path if self.files.folder else None,
        )
