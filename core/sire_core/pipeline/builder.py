"""`Builder`: documents in, one commit out. Build, add, update and delete are the same walk with another plan."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sire_core.errors import EmbedderMismatchError
from sire_core.extraction.stage import extract_missing
from sire_core.models.embedding import UnitEmbedder
from sire_core.organize.stage import Job, organize_all
from sire_core.pipeline.failures import check_deltas, check_units, log_dropped, log_failures
from sire_core.pipeline.finish import finish_in_thread
from sire_core.pipeline.memory import give_back
from sire_core.pipeline.planning import check_no_loss, jobs_for, plan_recipe, split_compatible
from sire_core.pipeline.shared_corpus import shared_corpus
from sire_core.protocols import Delta
from sire_core.storage.commit import Commit
from sire_core.storage.manifest import BuiltRecipe, Manifest
from sire_core.storage.pool_update import PoolChange
from sire_core.storage.rows import to_json
from sire_core.storage.store import CORPUS
from sire_core.types import BuildReport, Failure

if TYPE_CHECKING:
    from sire_core.corpus.stored_corpus import CorpusUpdate
    from sire_core.pipeline.build_settings import BuildSettings
    from sire_core.protocols import Recipe
    from sire_core.storage.index_files import IndexFiles

__all__ = ["LARGE", "Builder"]

LARGE = 1000
"""Passages of a change after whose stages memory is given back: it takes some milliseconds each time."""


@dataclass(frozen=True, slots=True)
class _Work:
    """One change and everything that follows from it before a single unit is made.

    `again` are the owners of recipes in which summaries failed in an earlier build: they are organized once more, the
    answers that did not fail coming from the store.
    """

    before: Manifest
    corpus: CorpusUpdate
    target: BuiltRecipe
    following: Sequence[tuple[Recipe, BuiltRecipe]]
    stale: Sequence[BuiltRecipe]
    needs_records: bool
    again: frozenset[str]

    @property
    def known(self) -> bool:
        """Whether the index holds the recipe already."""
        return (self.target.name, self.target.owners) in [(built.name, built.owners) for built in self.before.recipes]


class Builder:
    """One build over an open store.

    Args:
        library: The index.
        settings: Who does the work.
    """

    def __init__(self, library: IndexFiles, settings: BuildSettings) -> None:
        self._library = library
        self._store = library.store
        self._calls = library.calls
        self._settings = settings
        self._seconds: dict[str, float] = {}
        self._large = False

    async def run(self, corpus: CorpusUpdate) -> BuildReport:
        """Do what a change asks for and commit it. Without any change nothing is written.

        Raises:
            ConfigurationError: A recipe needs a library that is not installed.
            EmbedderMismatchError: The index was built with another embedder.
            BuildError: Too many passages failed, or too much of what a model writes about them.
        """
        work = self._plan(corpus)
        self._large = len(corpus.change.put_chunks) > LARGE
        failures, repaired, failed = await self._extract(work)
        log_failures(failures)
        changed = bool(work.corpus.change) or bool(repaired)
        if work.known and not changed and not work.again:
            return self._keep(work, failures)
        commit = await self._organize(work, self._jobs(work, repaired, changed=changed), work.stale if changed else ())
        failures += tuple(failure for delta in commit.deltas.values() for failure in delta.failures)
        manifest = self._manifest(work, () if changed else work.stale, failed, commit.deltas)
        if work.known and not changed and manifest.failed == work.before.failed:
            return self._keep(work, failures)  # what failed before failed again
        self._settings.progress("writing", 0, 1)
        with self._timed("commit"):
            await finish_in_thread(lambda: self._commit(replace(commit, manifest=manifest.to_json()), manifest, work))
        self._settings.progress("writing", 1, 1)
        dropped = tuple(built.name for built in work.stale) if changed else ()
        log_dropped(dropped)
        return replace(self._report(work, manifest, failures), dropped=dropped)

    def _commit(self, commit: Commit, manifest: Manifest, work: _Work) -> None:
        self._store.commit(commit)
        # The first pools follow from none: nothing has to be kept until they are made.
        change = PoolChange(manifest.generation, commit, work.corpus.after)
        self._library.pools.committed(change if work.before.generation else None)
        self._calls.clear_vectors()
        self._calls.keep_fitted([f"embedder:{manifest.embedder}", f"extractor:{manifest.extractor}"])

    def _keep(self, work: _Work, failures: Sequence[Failure]) -> BuildReport:
        """Nothing to build, but this recipe with these search settings is now the one that queries mean."""
        latest = work.before.with_recipe(work.target)
        # As text: settings that were read back have lists for tuples, and the order of a folder.
        if to_json(latest.to_json()) != to_json(work.before.to_json()):
            self._store.commit(Commit(manifest=latest.to_json()))
        return self._report(work, latest, failures)

    def _jobs(self, work: _Work, repaired: frozenset[str], *, changed: bool) -> list[Job]:
        following = [
            entry
            for entry in work.following
            if entry[1].owners != work.target.owners and (changed or work.again.intersection(entry[1].owners))
        ]
        owners = [owner for built in work.before.recipes for owner in built.owners]
        recipes = [*following, (self._settings.recipe, work.target)]
        return jobs_for(recipes, owners, work.corpus, repaired, work.again)

    def _plan(self, corpus: CorpusUpdate) -> _Work:
        settings = self._settings
        before = Manifest.from_json(self._store.manifest())
        self._refuse_other_embedder(before)
        following, stale = split_compatible(before, settings.fingerprints, settings.recipe)
        if corpus.change:
            check_no_loss(stale, settings.fingerprints)
        others = bool(corpus.change) and any(recipe.needs_records for recipe, _ in following)
        target = plan_recipe(settings.recipe, settings.fingerprints)
        there = (target, *(built for _, built in following))
        failed = [built for built in there if before.failed.keys() & built.owners]
        work = _Work(
            before=before,
            corpus=corpus,
            target=target,
            following=following,
            stale=stale,
            needs_records=settings.recipe.needs_records or others,
            again=frozenset(owner for built in failed for owner in built.owners),
        )
        if corpus.change.put_chunks or not work.known:  # what is there can be searched, and deleted from, without
            for recipe in (settings.recipe, *(recipe for recipe, _ in following)):
                recipe.check_installed()
        return work

    def _refuse_other_embedder(self, before: Manifest) -> None:
        embedder = self._settings.embedder.fingerprint
        family = before.embedder.split(":", 1)[0]
        refitted = hasattr(self._settings.embedder, "from_state") and embedder.split(":", 1)[0] == family
        if before.embedder and embedder != before.embedder and not refitted:
            raise EmbedderMismatchError(
                f"This index was built with the embedder {before.embedder}, not with {embedder}. "
                "Give that one, or build into another folder."
            )

    async def _extract(self, work: _Work) -> tuple[tuple[Failure, ...], frozenset[str], tuple[str, ...]]:
        """Extract what is missing; returns failures, hashes that failed before and are there now, hashes that fail."""
        settings = self._settings
        if not work.needs_records:
            return (), frozenset(), ()
        with self._timed("extraction"):
            _, failures, _ = await extract_missing(
                work.corpus.after.chunks,
                settings.extractor,
                self._calls,
                settings.progress,
                settings.max_failure_ratio,
                work.corpus.after.hashes,
                settings.runner,
            )
        extractor = settings.extractor.fingerprint
        hashes = set(work.corpus.after.hashes.values())
        # Not just what was extracted now: a build that did not finish may have repaired more.
        repaired = self._calls.known(extractor, sorted(hashes.intersection(work.before.failed.get(extractor, ()))))
        failed = hashes - self._calls.known(extractor, hashes) if failures else set()
        return failures, frozenset(repaired), tuple(sorted(failed))

    async def _organize(self, work: _Work, jobs: Sequence[Job], stale: Sequence[BuiltRecipe]) -> Commit:
        settings = self._settings
        refitted = bool(work.before.embedder) and work.before.embedder != settings.embedder.fingerprint
        load = (lambda _: {}) if refitted else self._store.vectors
        read = self._store.units_by_id
        width = 0 if refitted else self._store.dimension()
        embedder = UnitEmbedder(
            settings.embedder, self._calls, load, read, settings.progress, settings.workers, width, settings.runner
        )
        passages = work.corpus.passages.delta
        corpus = shared_corpus(work.corpus, settings, self._calls, embedder)
        with self._timed("embedding"):
            await embedder.embed(work.corpus.after.units if refitted else passages.put_units)
        with self._timed("organizing"):
            deltas = dict(await organize_all(jobs, corpus, self._store))
        log_failures([failure for delta in deltas.values() for failure in delta.failures])
        names = {job.fingerprint: job.organizer.name for job in jobs}
        check_deltas(deltas, names, self._store, settings.max_failure_ratio)
        check_units(deltas, names, work.corpus.after.hashes)
        deltas[CORPUS] = passages
        busy = {job.fingerprint for job in jobs}
        gone = [owner for built in stale for owner in built.owners if owner not in busy]
        with self._timed("embedding"):
            new = [unit for delta in deltas.values() for unit in delta.put_units]
            vectors = await embedder.by_id(new)
            revectors = await self._revectors(embedder, deltas, gone) if refitted else {}
        return Commit(
            put_documents=work.corpus.change.put_documents,
            drop_documents=work.corpus.change.drop_documents,
            put_chunks=work.corpus.change.put_chunks,
            drop_chunks=[chunk.id for chunk in work.corpus.removed],
            deltas=deltas,
            vectors=vectors,
            revectors=revectors,
            drop_owners=gone,
        )

    async def _revectors(
        self, embedder: UnitEmbedder, deltas: Mapping[str, Delta], gone: Sequence[str]
    ) -> dict[str, Any]:
        """New vectors of the units that stay as they are, after the embedder was fitted again."""
        staying = []
        for owner in self._store.owners():
            delta = deltas.get(owner, Delta())
            changed = set(delta.drop_units) | {unit.id for unit in delta.put_units}
            if owner not in gone:
                staying += [unit for unit in self._store.units(owner) if unit.id not in changed]
        return await embedder.by_id(staying)

    def _manifest(
        self, work: _Work, stale: Sequence[BuiltRecipe], failed: Sequence[str], deltas: Mapping[str, Delta]
    ) -> Manifest:
        settings = self._settings
        extractor = settings.extractor.fingerprint
        before = work.before
        manifest = Manifest(
            generation=before.generation + 1,
            embedder=settings.embedder.fingerprint if work.corpus.after.chunks else before.embedder,
            embedder_spec=str(getattr(settings.embedder, "spec", "")),
            dimension=settings.embedder.dimension if work.corpus.after.chunks else before.dimension,
            extractor=extractor if work.needs_records else before.extractor,
            chunker=settings.chunker,
            seed=settings.seed,
            recipes=(*stale, *(built for _, built in work.following)),
            counts={"documents": len(work.corpus.after.documents), "chunks": len(work.corpus.after.chunks)},
        )
        manifest = manifest.with_recipe(work.target)
        gone = {owner for built in before.recipes for owner in built.owners}
        gone = gone.difference(*(built.owners for built in manifest.recipes)).union(deltas)
        failures = {key: found for key, found in before.failed.items() if key not in gone}
        failures |= {owner: [failure.where for failure in delta.failures] for owner, delta in deltas.items()}
        if work.needs_records:
            failures[extractor] = list(failed)
        return replace(manifest, failed={key: found for key, found in failures.items() if found})

    def _report(self, work: _Work, manifest: Manifest, failures: Sequence[Failure]) -> BuildReport:
        return BuildReport(
            added=work.corpus.change.added,
            updated=work.corpus.change.updated,
            removed=len(work.corpus.change.drop_documents),
            unchanged=work.corpus.change.unchanged,
            units=self._store.counts([CORPUS, *work.target.owners]),
            failures=tuple(failures),
            seconds=dict(self._seconds),
            generation=manifest.generation,
        )

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[stage] = self._seconds.get(stage, 0.0) + time.perf_counter() - start
            if self._large:
                give_back()
