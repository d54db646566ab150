"""The organizing stage of a build: what organizers see, which have to run, under which fingerprints, and the run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.extraction.stage import RecordReader, chunks_with_stale_links
from sire_core.models.embedding import UnitEmbedder, VectorFile
from sire_core.protocols import (
    Change,
    Delta,
    Embedder,
    Extractor,
    Fittable,
    LanguageModel,
    Organizer,
    Recipe,
    Runner,
    Summarizer,
)
from sire_core.recipes.registry import recipe_as_built, registered_recipe
from sire_core.storage.checksums import stored_values
from sire_core.storage.manifest import FORGOTTEN, BuiltRecipe, Manifest
from sire_core.types import Chunk, Edge, Failure, Unit, digest

if TYPE_CHECKING:
    from sire_core.configuration import Configuration
    from sire_core.documents.stored_corpus import CorpusUpdate
    from sire_core.models.usage_meter import UsageMeter
    from sire_core.storage.index_files import IndexFiles
    from sire_core.storage.step_tables import StepTables


@dataclass(frozen=True)
class BuildContext:
    """Arguments, files, models and the planned change of one build."""

    configuration: Configuration  # The arguments of the index
    files: IndexFiles  # The open index, with its writer's lock
    before: Manifest  # The manifest before the change
    update: CorpusUpdate  # The corpus before and after the change
    recipe: Recipe  # The recipe to build
    embedder: Embedder  # Fitted
    extractor: Extractor  # Fitted
    language_model: LanguageModel | None  # For organizers; its validated answers are stored. None without one.
    # Makes a summarizer from a maximum number of tokens and a progress callback
    make_summarizer: Callable[[int, Callable[[int, int], None]], Summarizer]
    failures: list[Failure]  # Failed summaries; the summarizer appends to it during the build
    meter: UsageMeter | None  # Counts and limits calls; None without a model
    runner: Runner  # Runs parallel work

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
        return f"model/1:{self.model_fingerprint}" if self.language_model is not None else "extractive/2"

    @property
    def refitted(self) -> bool:
        """True if the embedder was fitted again, so that all vectors are replaced."""
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
            None if isinstance(self.embedder, Fittable) else self.files.calls,
            (lambda _: {}) if refitted else store.vectors,
            store.units_by_id,
            VectorFile(self.files.folder.path if self.files.folder else None),
            configuration.progress,
            configuration.workers,
            0 if refitted else store.dimension(),
            self.runner,
        )


class _OrganizerView:
    """See `sire_core.protocols.BuildView`."""

    def __init__(
        self,
        fingerprint: str,
        context: BuildContext,
        records: RecordReader,
        finished: Mapping[str, tuple[str, Delta]],
    ) -> None:
        self._context = context
        self._corpus = context.update.after
        self._store = context.files.store
        self._finished = finished
        self.fingerprint = fingerprint
        self.fingerprints = context.embedder.fingerprint, context.extractor.fingerprint
        self.chunks, self.chunk_units = self._corpus.chunks, self._corpus.units
        self.language_model, self.runner = context.language_model, context.runner
        self.records, self.stored_records, self.record_decoder = records.read, records.stored, records.decoder
        self.vectors = context.vectors.embed

    def chunk(self, chunk: str) -> Chunk:
        return self._corpus.chunk_by_id[chunk]

    def place(self, chunk: str) -> tuple[int, int]:
        sequence, position, _ = self._corpus.place(self.chunk(chunk))
        return sequence, position

    def touched(self, change: Change) -> Collection[str]:
        again = {chunk.id for chunk in change.added}.union(self._context.stale_links)
        units = self._corpus.unit_by_chunk
        return {units[chunk].id for chunk in again if chunk in units}.union(self._context.touched)

    def tables(self) -> StepTables:
        return self._store.tables(self.fingerprint)

    def forgotten(self) -> AbstractSet[str]:
        return self._context.forgotten

    def units(self, ids: Collection[str] | None = None) -> Sequence[Unit]:
        if ids is None:
            return self._store.units(self.fingerprint)
        return list(self._store.units_by_id(list(ids)).values())

    def edges(self) -> Sequence[Edge]:
        return self._store.edges([self.fingerprint])

    def state(self) -> Mapping[str, Any]:
        return self._store.state(self.fingerprint)

    def notes(self, keys: Collection[str]) -> Mapping[str, bytes]:
        return self._store.notes(self.fingerprint, list(keys))

    def required_units(self, organizer: str) -> Sequence[Unit]:
        fingerprint, delta = self._finished[organizer]
        dropped = set(delta.drop_units)
        units = {unit.id: unit for unit in self._store.units(fingerprint) if unit.id not in dropped}
        units.update((unit.id, unit) for unit in delta.put_units)
        return list(units.values())

    def required_notes(self, organizer: str, keys: Collection[str]) -> Mapping[str, bytes]:
        fingerprint, delta = self._finished[organizer]
        changed = {key: delta.notes[key] for key in keys if key in delta.notes}
        stored = self._store.notes(fingerprint, [key for key in keys if key not in changed])
        return stored | {key: note for key, note in changed.items() if note is not None}

    def rng(self, *names: str) -> np.random.Generator:
        raw = hashlib.blake2b("\0".join(names).encode(), digest_size=8).digest()
        return np.random.default_rng([self._context.seed, int.from_bytes(raw, "little")])

    def summarizer(self, max_tokens: int, stage: str = "summaries") -> Summarizer:
        return self._context.make_summarizer(max_tokens, partial(self.progress, stage))

    def progress(self, stage: str, done: int, total: int) -> None:
        self._context.configuration.progress(stage, done, total)


RULES = "rules/"  # Beginning of the fingerprints of extraction without a model


@dataclass(frozen=True, slots=True)
class Job:
    """One organizer and what changed for it."""

    organizer: Organizer
    fingerprint: str
    change: Change


def fingerprint_of(organizer: Organizer, extractor: str, summarizer: str, required: Sequence[str] = ()) -> str:
    """Digest of everything that decides what an organizer builds from a corpus."""
    return digest(
        organizer.name,
        json.dumps(dict(organizer.settings()), sort_keys=True),
        extractor if organizer.needs_records else "",
        summarizer if organizer.needs_summaries else "",
        *required,
        size=8,
    )


async def organize_all(jobs: Sequence[Job], context: BuildContext) -> Mapping[str, Delta]:
    """Run organizers one after the other; each sees the deltas of those before it."""
    # Local to this stage, so that the records are freed before the commit.
    records = RecordReader(context.update, context.extractor, context.files.calls)
    finished: dict[str, tuple[str, Delta]] = {}
    deltas: dict[str, Delta] = {}
    for done, job in enumerate(jobs):
        context.configuration.progress("deriving", done, len(jobs))
        if job.fingerprint not in deltas:
            view = _OrganizerView(job.fingerprint, context, records, dict(finished))
            before = len(context.failures)
            with stored_values(job.organizer.name) if context.before.recipes else nullcontext():
                delta = await job.organizer.organize(job.change, view)
            # Summaries are written concurrently and fail in any order.
            failed = sorted(context.failures[before:], key=lambda failure: failure.where)
            deltas[job.fingerprint] = replace(delta, failures=(*delta.failures, *failed))
        finished[job.organizer.name] = (job.fingerprint, deltas[job.fingerprint])
    if jobs:
        context.configuration.progress("deriving", len(jobs), len(jobs))
    return deltas


def plan_recipe(recipe: Recipe, context: BuildContext) -> BuiltRecipe:
    """Return the manifest entry of a recipe that is built with the models of this build."""
    owners: dict[str, str] = {}
    for organizer in recipe.organizers:
        missing = [name for name in organizer.requires if name not in owners]
        if missing:
            raise ConfigurationError(f"{organizer.name} needs {', '.join(missing)} before it in {recipe.name!r}.")
        required = [owners[name] for name in organizer.requires]
        # After a plus sign follows what an extractor learned from its first corpus. It is no setting: units of an index
        # that grew keep the ids that a fresh build would give them.
        extractor = context.extractor.fingerprint.split("+", 1)[0]
        owners[organizer.name] = fingerprint_of(organizer, extractor, context.summarizer_fingerprint, required)
    return BuiltRecipe(
        name=recipe.name,
        config=dict(recipe.config),
        organizers=tuple((o.name, dict(o.settings())) for o in recipe.organizers),
        owners=tuple(owners.values()),
        extraction=context.extractor.fingerprint if recipe.needs_records else "",
        language_model=context.model_fingerprint,
    )


def split_compatible(context: BuildContext) -> tuple[list[tuple[Recipe, BuiltRecipe]], list[BuiltRecipe]]:
    """Return the folder's recipes that this build can update, and those that it cannot."""
    following: list[tuple[Recipe, BuiltRecipe]] = []
    stale: list[BuiltRecipe] = []
    for built in context.before.recipes:
        recipe = recipe_as_built(built, context.recipe)
        if recipe is not None and plan_recipe(recipe, context).owners == built.owners:
            following.append((recipe, built))
        else:
            stale.append(built)
    return following, stale


def rebuilt_by_rules(
    stale: Sequence[BuiltRecipe], context: BuildContext
) -> list[tuple[Recipe, BuiltRecipe, BuiltRecipe]]:
    """Recipes whose records came from older rules, as this build makes them again, and as they are stored."""
    rebuilt = []
    for built in stale:
        recipe = recipe_as_built(built, context.recipe)
        is_free = built.extraction.startswith(RULES) and context.extractor.fingerprint.startswith(RULES)
        if recipe is not None and is_free and built.language_model == context.model_fingerprint:
            rebuilt.append((recipe, plan_recipe(recipe, context), built))
    return rebuilt


def check_no_loss(stale: Sequence[BuiltRecipe], context: BuildContext) -> None:
    """Raise if a change of the corpus would drop a recipe that another model was paid for."""
    for built in stale:
        try:
            registered_recipe(built)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{error} A change of documents has to keep it up; to do without it: Index.drop_recipe({built.name!r})."
            ) from error
        records = built.extraction if not built.extraction.startswith(RULES) else ""
        maker = built.language_model or records
        if maker and maker not in (context.model_fingerprint, context.extractor.fingerprint):
            raise ConfigurationError(
                f"The recipe {built.name!r} of this index was built with {maker}. Changing documents without it would "
                "replace what it wrote. Give the same language_model (and extractor), or build into another folder."
            )


def jobs_for(
    recipes: Sequence[tuple[Recipe, BuiltRecipe]],
    known_owners: Collection[str],
    corpus: CorpusUpdate,
    repaired: Collection[str],
    again: Collection[str] = (),
    forgotten: Collection[str] = (),
) -> list[Job]:
    """Return one job per organizer."""
    before, after = corpus.before.chunk_by_id, corpus.after
    redone_ids = corpus.passages.regrouped.union(forgotten)
    regrouped = after.in_order(redone_ids)
    with_repaired = regrouped
    if repaired:
        ids = (chunk for chunk, hash_ in after.hashes.items() if hash_ in repaired and chunk in before)
        with_repaired = after.in_order(redone_ids.union(ids))
    jobs = []
    for recipe, built in recipes:
        for organizer, owner in zip(recipe.organizers, built.owners, strict=True):
            if owner not in known_owners:
                change = Change(added=tuple(after.chunks))
            else:
                redone = with_repaired if organizer.needs_records else regrouped
                if owner in again:
                    redone = [chunk for chunk in after.chunks if chunk.id in before]
                change = Change(added=(*corpus.added, *redone), removed=(*corpus.removed, *redone))
            jobs.append(Job(organizer, owner, change))
    return jobs
