"""`Builder`: one commit from a planned change of the corpus, the same for build, add, update and delete."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING

from sire_core.changes.organizing import (
    BuildContext,
    Job,
    check_no_loss,
    jobs_for,
    organize_all,
    plan_recipe,
    rebuilt_by_rules,
    split_compatible,
)
from sire_core.changes.processes import ProcessRunner
from sire_core.changes.runners import open_runner, trim_memory
from sire_core.documents.change_plan import CorpusChange
from sire_core.documents.stored_corpus import CorpusUpdate, StoredDocument
from sire_core.errors import BuildError, ConfigurationError
from sire_core.extraction.rules import RulesExtractor
from sire_core.extraction.stage import extract_missing
from sire_core.models.embedders import fit_once, lacks_state, refuse_other_embedder, restore
from sire_core.models.embedding import IndexTexts
from sire_core.models.paraphrases import paraphrase_score
from sire_core.models.sync import run_shielded
from sire_core.protocols import Delta, Embedder, Extractor, Fittable, FloatArray, LanguageModel, Recipe, Summarizer
from sire_core.storage.checksums import stored_values
from sire_core.storage.index_tables import Commit, to_json
from sire_core.storage.manifest import FORGOTTEN, VECTORS, BuiltRecipe, Manifest
from sire_core.storage.pool import MOST_LETTERS, MOST_LEVELS, CorpusColumns, PoolChange
from sire_core.storage.store import CORPUS, Store
from sire_core.text.pluralize import count
from sire_core.types import BuildReport, Chunk, Edge, Failure, Unit

if TYPE_CHECKING:
    from sire_core.configuration import Configuration
    from sire_core.models.usage_meter import UsageMeter
    from sire_core.storage.index_files import IndexFiles

HUGE = 10_000  # Number of passages of a change whose stages have worker processes of their own, which a second pays for


_logger = logging.getLogger(__name__)
MIN_SCORED_PASSAGES = 32  # Passages below which it does not matter what their embedder knows
Plan = Callable[[Mapping[str, StoredDocument], Sequence[Chunk]], CorpusChange]
"""Maps stored documents and their passages to a change."""


@dataclass(frozen=True, slots=True)
class _Work:
    """The plan of a build."""

    target: BuiltRecipe  # The recipe to build
    following: Sequence[tuple[Recipe, BuiltRecipe]]  # Other recipes of the folder that are updated, too
    stale: Sequence[BuiltRecipe]  # Recipes that cannot be updated
    rebuilt: Sequence[tuple[BuiltRecipe, BuiltRecipe]]  # Of these, as stored, and as the next change makes them again
    needs_records: bool  # Whether passages are extracted
    # Owners of recipes in which summaries failed in an earlier build; they are organized again, with stored answers
    # where there are any
    again: frozenset[str]
    known: bool  # Whether the folder has the target already


class Builder:
    """One build over an open store."""

    def __init__(self, context: BuildContext) -> None:
        self._context = context
        self._before = context.before
        self._corpus = context.update
        self._store = context.files.store
        self._calls = context.files.calls
        self._seconds: dict[str, float] = {}
        self._paraphrase_score = context.before.paraphrase_score

    async def run(self) -> BuildReport:
        """Extract, organize, embed and commit; without any change nothing is written."""
        work = self._plan()
        failures, repaired, failed = await self._extract(work)
        _log_failures(failures)
        changed = bool(self._corpus.change) or bool(repaired) or bool(self._context.forgotten)
        # The embedder was fitted again after its state was lost: stored vectors do not fit the new state.
        revector = self._context.refitted and bool(self._corpus.after.chunks)
        if work.known and not changed and not work.again and not revector and not self._without_vectors:
            return self._unchanged(work, failures)
        commit = await self._organize(self._jobs(work, repaired, changed=changed), work.stale if changed else ())
        failures += tuple(failure for delta in commit.deltas.values() for failure in delta.failures)
        failures += self._unembedded()
        manifest = self._manifest(work, () if changed else work.stale, failed, commit.deltas)
        if work.known and not changed and not revector and manifest.failed == self._before.failed:
            return self._unchanged(work, failures)  # what failed before failed again
        self._context.configuration.progress("writing", 0, 1)
        with self._timed("commit"):
            await run_shielded(lambda: self._commit(replace(commit, manifest=manifest.to_json()), manifest))
        self._context.configuration.progress("writing", 1, 1)
        dropped = tuple(built.name for built in _lost(work)) if changed else ()
        _log_dropped(dropped)
        return replace(self._report(work, manifest, failures), dropped=dropped)

    def _commit(self, commit: Commit, manifest: Manifest) -> None:
        if self._before.generation:
            self._corpus.before.following(CorpusColumns)  # so that the stored corpus brings them along
        with stored_values("The change"):
            self._store.commit(commit)
        # The first pools are not updates of earlier ones, so the change need not be kept for them.
        change = PoolChange(manifest.generation, commit, self._corpus)
        self._context.files.pools.committed(change if self._before.generation else None)
        self._calls.clear_vectors()
        self._calls.keep_fitted([f"embedder:{manifest.embedder}", f"extractor:{manifest.extractor}"])

    def _unchanged(self, work: _Work, failures: Sequence[Failure]) -> BuildReport:
        """Keep the target with its search settings; nothing else changes."""
        after = self._before.with_recipe(work.target)
        # Compared as JSON: settings that were read back have lists instead of tuples.
        if to_json(after.to_json()) != to_json(self._before.to_json()):
            self._store.commit(Commit(manifest=after.to_json()))
        return self._report(work, after, failures)

    def _jobs(self, work: _Work, repaired: frozenset[str], *, changed: bool) -> list[Job]:
        following = [
            entry
            for entry in work.following
            if entry[1].owners != work.target.owners and (changed or work.again.intersection(entry[1].owners))
        ]
        recipes = [*following, (self._context.recipe, work.target)]
        return jobs_for(recipes, self._before.owners, self._corpus, repaired, work.again, self._context.forgotten)

    def _plan(self) -> _Work:
        context, before, change = self._context, self._before, self._corpus.change
        refuse_other_embedder(before.embedder, context.embedder)
        following, stale = split_compatible(context)
        if change:
            check_no_loss(stale, context)
        again = rebuilt_by_rules(stale, context)
        following += [(recipe, planned) for recipe, planned, _ in again]
        others = bool(change) and any(recipe.needs_records for recipe, _ in following)
        target = plan_recipe(context.recipe, context)
        built_recipes = (target, *(built for _, built in following))
        failed = [built for built in built_recipes if before.failed.keys() & built.owners]
        work = _Work(
            target=target,
            following=following,
            stale=stale,
            rebuilt=[(stored, planned) for _, planned, stored in again],
            needs_records=context.recipe.needs_records or others,
            again=frozenset(owner for built in failed for owner in built.owners),
            known=(target.name, target.owners) in [(built.name, built.owners) for built in before.recipes],
        )
        if change.put_chunks or not work.known:  # searching and deleting need no libraries of organizers
            for recipe in (context.recipe, *(recipe for recipe, _ in following)):
                recipe.check_installed()
        return work

    async def _extract(self, work: _Work) -> tuple[tuple[Failure, ...], frozenset[str], tuple[str, ...]]:
        """Extract what is missing; return failures, hashes that succeed now after a failure, and hashes that fail."""
        context, hashes_of = self._context, self._corpus.after.hashes
        if not work.needs_records:
            return (), frozenset(), ()
        with self._timed("extraction"):
            _, failures, _ = await extract_missing(
                self._corpus.after.chunks,
                context.extractor,
                self._calls,
                context.configuration.progress,
                context.configuration.max_failure_ratio,
                hashes_of,
                context.runner,
            )
        extractor, hashes = context.extractor.fingerprint, set(hashes_of.values())
        # Not only those extracted now: an interrupted build may have repaired others.
        repaired = self._calls.known(extractor, sorted(hashes.intersection(self._before.failed.get(extractor, ()))))
        failed = hashes - self._calls.known(extractor, hashes) if failures else set()
        return failures, frozenset(repaired), tuple(sorted(failed))

    async def _organize(self, jobs: Sequence[Job], stale: Sequence[BuiltRecipe]) -> Commit:
        context, passages = self._context, self._corpus.passages.delta
        with self._timed("embedding"):
            await context.vectors.by_id(self._corpus.after.units if context.refitted else passages.put_units)
            self._paraphrase_score = await self._embedder_score()
        with self._timed("deriving"):
            deltas = dict(await organize_all(jobs, context))
        _log_failures([failure for delta in deltas.values() for failure in delta.failures])
        names = {job.fingerprint: job.organizer.name for job in jobs}
        _check_deltas(deltas, names, self._store, context.configuration.max_failure_ratio)
        _check_units(deltas, names, self._corpus.after.hashes)
        deltas[CORPUS] = passages
        updated = {job.fingerprint for job in jobs}
        dropped = [owner for built in stale for owner in built.owners if owner not in updated]
        with self._timed("embedding"):
            new = [unit for delta in deltas.values() for unit in delta.put_units]
            vectors = await context.vectors.by_id(new)
            revectors = await self._revectors(deltas, dropped) if context.refitted else await self._once_more(deltas)
        return Commit(
            put_documents=self._corpus.change.put_documents,
            drop_documents=self._corpus.change.drop_documents,
            put_chunks=self._corpus.change.put_chunks,
            drop_chunks=[chunk.id for chunk in self._corpus.removed],
            deltas=deltas,
            vectors=vectors,
            revectors=revectors,
            drop_owners=dropped,
        )

    async def _embedder_score(self) -> float | None:
        """Score of the embedder, measured once, as soon as there are passages enough to be ranked by it."""
        embedder, score = self._context.embedder, self._paraphrase_score
        if score is not None or isinstance(embedder, Fittable) or len(self._corpus.after.chunks) < MIN_SCORED_PASSAGES:
            return score
        try:
            return await paraphrase_score(embedder)
        except Exception as error:  # noqa: BLE001 - vectors of a file, say, which has none of other texts
            _logger.info("what the embedder knows of paraphrases was not measured: %s", error)
            return None

    @property
    def _without_vectors(self) -> list[str]:
        """Ids of stored units that could not be embedded before."""
        return [entry.partition(" ")[0] for entry in self._before.failed.get(VECTORS, ())]

    async def _once_more(self, deltas: Mapping[str, Delta]) -> Mapping[str, FloatArray]:
        """New vectors of the units that could not be embedded before and stay as they are."""
        changed = {unit for delta in deltas.values() for unit in delta.drop_units}
        changed.update(unit.id for delta in deltas.values() for unit in delta.put_units)
        staying = self._store.units_by_id([unit for unit in self._without_vectors if unit not in changed])
        return await self._context.vectors.by_id(list(staying.values()))

    def _unembedded(self) -> tuple[Failure, ...]:
        """Documents that could not be embedded, by id and title."""
        failed = self._context.vectors.failed.values()
        if not failed:
            return ()
        owners = {chunk.id: chunk for chunk in self._corpus.after.chunks}
        failures = []
        for unit, reason in failed:
            chunk = owners[unit.chunk_ids[0]]
            vector = f"vector of {chunk.doc_id}" + (f" ({chunk.title})" if chunk.title else "")
            failures.append(Failure(vector, reason))
        _log_failures(failures)
        return tuple(failures)

    async def _revectors(self, deltas: Mapping[str, Delta], dropped: Sequence[str]) -> Mapping[str, FloatArray]:
        """Return new vectors of unchanged units, after the embedder was fitted again."""
        staying = []
        for owner in self._store.owners():
            delta = deltas.get(owner, Delta())
            changed = set(delta.drop_units) | {unit.id for unit in delta.put_units}
            if owner not in dropped:
                staying += [unit for unit in self._store.units(owner) if unit.id not in changed]
        return await self._context.vectors.by_id(staying)

    def _manifest(
        self, work: _Work, stale: Sequence[BuiltRecipe], failed: Sequence[str], deltas: Mapping[str, Delta]
    ) -> Manifest:
        context, before = self._context, self._before
        embedder, extractor = context.embedder, context.extractor.fingerprint
        chunker = before.chunker
        if context.configuration.sets_chunker or not before.generation:
            new_chunker = context.configuration.chunker_to_store(before)
            chunker = new_chunker.settings() if new_chunker else None
        manifest = Manifest(
            generation=before.generation + 1,
            embedder=embedder.fingerprint if self._corpus.after.chunks else before.embedder,
            embedder_spec=str(getattr(embedder, "spec", "")),
            dimension=context.vectors.dimension if self._corpus.after.chunks else before.dimension,
            paraphrase_score=self._paraphrase_score,
            extractor=extractor if work.needs_records else before.extractor,
            chunker=chunker,
            seed=context.seed,
            counts={"documents": len(self._corpus.after.documents), "chunks": len(self._corpus.after.chunks)},
        )
        updated = [*stale, *(built for _, built in work.following), work.target]
        new_entries = [] if stale else work.rebuilt
        stored = (next((new for old, new in new_entries if old is built), built) for built in before.recipes)
        recipes = replace(before, recipes=tuple(stored)).with_recipe(work.target).recipes
        manifest = replace(manifest, recipes=tuple(built for built in recipes if built in updated))
        gone = {*before.owners}.difference(manifest.owners).union(deltas)
        failures = {key: texts for key, texts in before.failed.items() if key not in gone}
        failures |= {owner: [failure.where for failure in delta.failures] for owner, delta in deltas.items()}
        if work.needs_records:
            failures[extractor] = list(failed)
        failures.pop(FORGOTTEN, None)
        failures[VECTORS] = [f"{unit.id} {reason}"[:500] for unit, reason in context.vectors.failed.values()]
        return replace(manifest, failed={key: texts for key, texts in failures.items() if texts})

    def _report(self, work: _Work, manifest: Manifest, failures: Sequence[Failure]) -> BuildReport:
        return BuildReport(
            added=self._corpus.change.added,
            updated=self._corpus.change.updated,
            removed=len(self._corpus.change.drop_documents),
            unchanged=self._corpus.change.unchanged,
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
            _free_memory(self._corpus, self._context.runner)


def _log_failures(failures: Sequence[Failure]) -> None:
    for failure in failures:
        _logger.warning("failed, and tried again by the next build: %s: %s", failure.where, failure.reason)


def _lost(work: _Work) -> list[BuiltRecipe]:
    """Recipes that a change neither updates nor builds again."""
    kept_entries = [stored for stored, _ in work.rebuilt]
    target = (work.target.name, to_json(work.target.config))
    return [
        built
        for built in work.stale
        if not any(built is stored for stored in kept_entries) and (built.name, to_json(built.config)) != target
    ]


def _log_dropped(recipes: Sequence[str]) -> None:
    """Log a warning for each recipe that could not be updated."""
    for recipe in recipes:
        _logger.warning(
            "the recipe %s was dropped: it was built with another language model or extractor than this change was "
            "given. Build it again where it is searched.",
            recipe,
        )


def _check_units(deltas: Mapping[str, Delta], names: Mapping[str, str], chunks: Container[str]) -> None:
    """Raise if an organizer made a unit or an edge that cannot be stored."""
    for owner, delta in deltas.items():
        wrong = next(filter(None, (_wrong_unit(unit, chunks) for unit in delta.put_units)), None)
        wrong = wrong or next((f"{i!r} is no id to drop" for i in delta.drop_units if not isinstance(i, str)), "")
        wrong = wrong or next(filter(None, map(_wrong_edge, (*delta.put_edges, *delta.drop_edges))), "")
        if wrong:
            raise ConfigurationError(
                f"{names.get(owner, owner)} made a unit that cannot be stored: {wrong}. Correct the organizer and "
                "build again; nothing was changed."
            )


def _wrong_edge(edge: Edge) -> str:
    if not all(isinstance(value, str) for value in (edge.kind, edge.source, edge.target)):
        return f"the edge {edge} has something else where an id belongs"
    with suppress(TypeError, OverflowError):
        if isfinite(edge.weight):
            return ""
    return f"the edge {edge} has no finite weight"


def _wrong_unit(unit: Unit, chunks: Container[str]) -> str:
    texts = (unit.id, unit.text, unit.title, *unit.chunk_ids, *unit.entity_keys, *unit.source_ids)
    if foreign := [value for value in texts if not isinstance(value, str)]:
        return f"the unit {unit.id!r} has {foreign[0]!r} where a text belongs"
    if not 0 < len(unit.id) <= MOST_LETTERS or not unit.id.isascii():
        return f"the id {unit.id!r} is not 1 to {MOST_LETTERS} ASCII letters long (see sire_core.types.unit_id)"
    if not unit.chunk_ids:
        return f"the unit {unit.id!r} stands on no passage (chunk_ids)"
    if unknown := [chunk for chunk in unit.chunk_ids if chunk not in chunks]:
        return f"the unit {unit.id!r} stands on {unknown[0]!r}, which is no passage of this index"
    if not 0 <= unit.level <= MOST_LEVELS:
        return f"the unit {unit.id!r} has level {unit.level}; levels are 0 to {MOST_LEVELS}"
    return ""


def _check_deltas(
    deltas: Mapping[str, Delta], names: Mapping[str, str], store: Store, max_failure_ratio: float
) -> None:
    """Raise if too large a share of an organizer's units failed."""
    for owner, delta in deltas.items():
        failed = len(delta.failures)
        if not failed:
            continue
        total = sum(store.counts([owner]).values()) - len(delta.drop_units) + len(delta.put_units)
        if failed > max_failure_ratio * (max(total, 0) + failed):
            first = delta.failures[0]
            raise BuildError(
                f"The model failed {count(failed, 'time')} for {names.get(owner, owner)}, which has "
                f"{count(max(total, 0), 'unit')} without what failed; first: {first.where}: {first.reason}. What "
                "succeeded is stored; fix the cause and build again, or raise max_failure_ratio."
            )


async def apply_plan(files: IndexFiles, plan: Plan, configuration: Configuration) -> BuildReport:
    """Change the corpus and everything derived from it, and publish the commit."""
    manifest = files.refresh()
    recipe, embedder = configuration.built_by(manifest)
    update = await asyncio.to_thread(_read, files, plan)
    failures: list[Failure] = []
    model, meter, extractor, summarizer = _build_models(files, configuration, recipe, update.after.hashes, failures)
    lost = await asyncio.to_thread(_has_lost_state, files, update, embedder)
    _free_memory(update, configuration.runner)
    embedder, extractor = await asyncio.to_thread(_fit, files, update, recipe, embedder, extractor)
    _free_memory(update, configuration.runner)
    with open_runner(configuration.runner) as runner:
        report = await Builder(
            BuildContext(
                configuration=configuration,
                files=files,
                before=manifest,
                update=update,
                recipe=recipe,
                embedder=embedder,
                extractor=extractor,
                language_model=model,
                make_summarizer=summarizer,
                failures=failures,
                meter=meter,
                runner=runner,
            )
        ).run()
    _free_memory(update, configuration.runner)
    await run_shielded(files.publish)
    _free_memory(update, configuration.runner)
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


def _free_memory(update: CorpusUpdate, runner: object) -> None:
    """Return memory after a stage of a large change; workers of a huge one end, the next stage starts new ones."""
    passages = len(update.change.put_chunks)
    trim_memory(passages)
    if passages > HUGE and isinstance(runner, ProcessRunner):
        runner.close()


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
        return None, None, configuration.extractor or RulesExtractor(), _extractive_summarizer
    from sire_core.changes.summarizers import ModelSummarizer
    from sire_core.extraction.merged import model_extractor
    from sire_core.models.caching import CachedModel
    from sire_core.models.usage_meter import UsageMeter, with_meter

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
    extraction = configuration.extraction_for(recipe)
    extracting = with_meter(model, meter, "extraction") if extraction == "joint" else cached("extraction")
    extractor = configuration.extractor or model_extractor(
        extracting, extraction, configuration.workers, native=recipe.native
    )
    return cached("deriving"), meter, extractor, summarizer


def _extractive_summarizer(max_tokens: int, progress: Callable[[int, int], None]) -> Summarizer:
    from sire_core.changes.summarizers import ExtractiveSummarizer  # few recipes write summaries

    return ExtractiveSummarizer(max_tokens, progress=progress)


def _has_lost_state(files: IndexFiles, update: CorpusUpdate, embedder: Embedder) -> bool:
    """True if the stored state of the index's embedder is lost, so that `_fit` fits it again."""
    before = files.manifest().embedder
    if not (before and update.after.chunks):
        return False
    return lacks_state(restore(embedder, "embedder", before, files.calls), before)


def _fit(
    files: IndexFiles, update: CorpusUpdate, recipe: Recipe, embedder: Embedder, extractor: Extractor
) -> tuple[Embedder, Extractor]:
    manifest = files.manifest()
    texts = IndexTexts(update.after.chunks)
    fitted = fit_once(embedder, "embedder", manifest.embedder, files.calls, texts, refit=bool(update.change))
    if not (recipe.needs_records or any(built.extraction for built in manifest.recipes)):
        return fitted, extractor
    # The extractor is never fitted again: records made with different statistics would not compare.
    return fitted, fit_once(extractor, "extractor", manifest.extractor, files.calls, texts, refit=False)
