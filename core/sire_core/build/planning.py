"""Which organizers of which recipes have to run, and under which fingerprints."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from sire_core.build.organizing import Job, fingerprint_of
from sire_core.errors import ConfigurationError
from sire_core.protocols import Change, Recipe
from sire_core.recipes.registry import recipe_as_built, registered_recipe
from sire_core.storage.manifest import BuiltRecipe

if TYPE_CHECKING:
    from sire_core.build.build_context import BuildContext
    from sire_core.corpus.stored_corpus import CorpusUpdate

__all__ = ["check_no_loss", "jobs_for", "plan_recipe", "split_compatible"]


def plan_recipe(recipe: Recipe, context: BuildContext) -> BuiltRecipe:
    """What a recipe will be known as once it is built by those who work now.

    Raises:
        ConfigurationError: An organizer comes before one that it requires.
    """
    found: dict[str, str] = {}
    for organizer in recipe.organizers:
        missing = [name for name in organizer.requires if name not in found]
        if missing:
            raise ConfigurationError(f"{organizer.name} needs {', '.join(missing)} before it in {recipe.name!r}.")
        required = [found[name] for name in organizer.requires]
        # What an extractor learned from its first corpus stands behind a plus sign. It is no setting: units of an index
        # that grew keep the ids that a fresh build would give them.
        extractor = context.extractor.fingerprint.split("+", 1)[0]
        found[organizer.name] = fingerprint_of(organizer, extractor, context.summarizer_fingerprint, required)
    return BuiltRecipe(
        name=recipe.name,
        config=dict(recipe.config),
        organizers=tuple((o.name, dict(o.settings())) for o in recipe.organizers),
        owners=tuple(found.values()),
        extraction=context.extractor.fingerprint if recipe.needs_records else "",
        language_model=context.model_fingerprint,
    )


def split_compatible(context: BuildContext) -> tuple[list[tuple[Recipe, BuiltRecipe]], list[BuiltRecipe]]:
    """Recipes of the folder that a build can bring up to date, and those that it cannot.

    A recipe that was built with another language model or extractor cannot follow a change of the corpus; it is dropped
    rather than left stale, unless that would lose something (see `check_no_loss`).
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
    """Refuse a change of the corpus that would throw away what another model was paid for.

    Raises:
        ConfigurationError: A recipe that cannot follow was built by a model or from recorded extractions, or is not
            known in this process.
    """
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
) -> list[Job]:
    """One job per organizer.

    Args:
        recipes: What is brought up to date.
        known_owners: Build fingerprints that have output already; everyone else starts from nothing.
        corpus: The change of the corpus.
        repaired: Hashes of chunks whose extraction failed before and is there now.
        again: Build fingerprints whose output is made again from all chunks.
    """
    before, after = corpus.before.chunk_by_id, corpus.after
    moved = after.in_order(corpus.passages.regrouped)
    mended = moved
    if repaired:
        found = (chunk for chunk, own in after.hashes.items() if own in repaired and chunk in before)
        mended = after.in_order(corpus.passages.regrouped.union(found))
    jobs = []
    for recipe, built in recipes:
        for organizer, owner in zip(recipe.organizers, built.owners, strict=True):
            if owner not in known_owners:
                change = Change(added=tuple(after.chunks))
            else:
                redone = mended if organizer.needs_records else moved
                if owner in again:
                    redone = [chunk for chunk in after.chunks if chunk.id in before]
                change = Change(added=(*corpus.added, *redone), removed=(*corpus.removed, *redone))
            jobs.append(Job(organizer, owner, change))
    return jobs
