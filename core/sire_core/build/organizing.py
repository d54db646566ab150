"""The organizing stage of a build: which organizers have to run, under which fingerprints, and running them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sire_core.build.organizer_view import OrganizerView
from sire_core.errors import ConfigurationError
from sire_core.extraction.stage import RecordReader
from sire_core.protocols import Change, Recipe
from sire_core.recipes.registry import recipe_as_built, registered_recipe
from sire_core.storage.manifest import BuiltRecipe
from sire_core.types import digest

if TYPE_CHECKING:
    from sire_core.build.build_context import BuildContext
    from sire_core.corpus.stored_corpus import CorpusUpdate
    from sire_core.protocols import Delta, Organizer

__all__ = ["Job", "check_no_loss", "fingerprint_of", "jobs_for", "organize_all", "plan_recipe", "split_compatible"]


@dataclass(frozen=True, slots=True)
class Job:
    """One organizer and what changed for it."""

    organizer: Organizer
    fingerprint: str
    change: Change


def fingerprint_of(organizer: Organizer, extractor: str, summarizer: str, required: Sequence[str] = ()) -> str:
    """Digest of everything that decides what an organizer builds from a corpus."""
    import json

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
        context.configuration.progress("organizing", done, len(jobs))
        if job.fingerprint not in deltas:
            view = OrganizerView(job.fingerprint, context, records, dict(finished))
            before = len(context.failures)
            delta = await job.organizer.organize(job.change, view)
            # Summaries are written concurrently and fail in any order.
            failed = sorted(context.failures[before:], key=lambda failure: failure.where)
            deltas[job.fingerprint] = replace(delta, failures=(*delta.failures, *failed))
        finished[job.organizer.name] = (job.fingerprint, deltas[job.fingerprint])
    if jobs:
        context.configuration.progress("organizing", len(jobs), len(jobs))
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
    """Return the folder's recipes that this build can update, and those that it cannot.

    A recipe that was built with another language model or extractor cannot be updated; it is dropped, unless that would
    lose paid work (see `check_no_loss`).
    """
    following: list[tuple[Recipe, BuiltRecipe]] = []
    stale: list[BuiltRecipe] = []
    for built in context.before.recipes:
        recipe = recipe_as_built(built, context.recipe)
        if recipe is not None and plan_recipe(recipe, context).owners == built.owners:
            following.append((recipe, built))
        else:
            stale.append(built)
    return following, stale


def check_no_loss(stale: Sequence[BuiltRecipe], context: BuildContext) -> None:
    """Raise if a change of the corpus would drop a recipe that another model was paid for."""
    for built in stale:
        try:
            registered_recipe(built)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{error} A change of documents has to keep it up; to do without it: Index.drop_recipe({built.name!r})."
            ) from error
        records = built.extraction if not built.extraction.startswith("rules/") else ""
        maker = built.language_model or records
        if maker and maker not in (context.model_fingerprint, context.extractor.fingerprint):
            raise ConfigurationError(
                f"The recipe {built.name!r} of this index was built with {maker}. Changing documents without it would "
                "replace what it wrote. Give the same language_model (and extractor), or build into another folder."
            )


def jobs_for(
    recipes: Sequence[tuple[Recipe, BuiltRecipe]],
    known_owners: Sequence[str],
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
