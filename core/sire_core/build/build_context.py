"""`BuildContext`: arguments, files, models and the planned change of one build."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sire_core.extraction.stage import chunks_with_stale_links
from sire_core.models.embedding import UnitEmbedder
from sire_core.storage.manifest import FORGOTTEN

if TYPE_CHECKING:
    from sire_core.configuration import Configuration
    from sire_core.corpus.stored_corpus import CorpusUpdate
    from sire_core.models.usage_meter import UsageMeter
    from sire_core.protocols import Embedder, Extractor, LanguageModel, Recipe, Runner, Summarizer
    from sire_core.storage.index_files import IndexFiles
    from sire_core.storage.manifest import Manifest
    from sire_core.types import Failure


@dataclass(frozen=True)
class BuildContext:
    """Arguments, files, models and the planned change of one build.

    Attributes:
        configuration: The arguments of the index.
        files: The open index, with its writer's lock.
        before: The manifest before the change.
        update: The corpus before and after the change.
        recipe: The recipe to build.
        embedder: Fitted.
        extractor: Fitted.
        language_model: For organizers; its validated answers are stored. None without one.
        make_summarizer: Makes a summarizer from a maximum number of tokens and a progress callback.
        failures: Failed summaries; the summarizer appends to it during the build.
        meter: Counts and limits calls; None without a model.
        runner: Runs parallel work.
    """

    configuration: Configuration
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
        return self.before.seed if self.before.generation else self.configuration.seed

    @property
    def model_fingerprint(self) -> str:
        """Fingerprint of the language model; empty without one."""
        return self.language_model.fingerprint if self.language_model is not None else ""

    @property
    def summarizer_fingerprint(self) -> str:
        """Fingerprint of the summarizer."""
        return f"model/1:{self.model_fingerprint}" if self.language_model is not None else "extractive/1"

    @property
    def refitted(self) -> bool:
        """Whether the embedder was fitted again, so that all vectors are replaced."""
        return bool(self.before.embedder) and self.before.embedder != self.embedder.fingerprint

    @cached_property
    def forgotten(self) -> frozenset[str]:
        """Ids of stored chunks whose answers were forgotten."""
        hashes = set(self.before.failed.get(FORGOTTEN, ()))
        if not hashes:
            return frozenset()
        before, after = self.update.before.chunk_by_id, self.update.after.hashes
        return frozenset(chunk for chunk, text in after.items() if text in hashes and chunk in before)

    @cached_property
    def touched(self) -> Collection[str]:
        """Ids of chunk units that are added, changed or removed."""
        passages = self.update.passages.delta
        return {*passages.drop_units, *(unit.id for unit in passages.put_units)}

    @cached_property
    def stale_links(self) -> Collection[str]:
        """Ids of old chunks whose records may link other titles than before the change."""
        return chunks_with_stale_links(self.update, self.extractor, self.files.calls)

    @cached_property
    def vectors(self) -> UnitEmbedder:
        """Vectors of units, or of ids of stored units, reusing what is stored."""
        configuration, store, refitted = self.configuration, self.files.store, self.refitted
        return UnitEmbedder(
            self.embedder,
            self.files.calls,
            (lambda _: {}) if refitted else store.vectors,
            store.units_by_id,
            configuration.progress,
            configuration.workers,
            0 if refitted else store.dimension(),
            self.runner,
            self.files.folder.path if self.files.folder else None,
        )
