"""A change of the corpus tried in memory, with a model that costs nothing, to see what a real one would be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sire_core.corpus.changes import plan_build
from sire_core.types import Document, Passage

if TYPE_CHECKING:
    from sire_core.configuration import Configuration
    from sire_core.models.usage import StageUsage
    from sire_core.protocols import Recipe
    from sire_core.storage.index_files import IndexFiles
    from sire_core.storage.manifest import Manifest
    from sire_core.types import Chunk

__all__ = ["Trial", "known_recipes", "try_change"]

_MOVED, _CALM = 1000, 400
"""Most changed documents, and most of the others, that are tried; larger changes are scaled up from the former."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What a change asked of the model that costs nothing.

    Attributes:
        scale: How many changed documents stand behind each that was tried.
        below: Of every new summary that stands on other units: its kind, and the tokens below it.
        organizing: What organizers asked beside summaries of trees; None for nothing.
    """

    scale: int
    below: tuple[tuple[str, int], ...] = ()
    organizing: StageUsage | None = None


def known_recipes(manifest: Manifest, given: Configuration, recipe: Recipe) -> list[Recipe]:
    """Recipes of the folder whose summaries this model wrote: a change asks it for those that the change touches.

    None where the recipe that is built is not among them: it is made from all passages.
    """
    from sire_core.recipes.registry import recipe_as_built

    model = given.language_model.fingerprint if given.language_model else ""
    known = [built for built in manifest.recipes if built.language_model == model]
    if not any(built.builds_like(recipe) for built in known):
        return []
    return [there for built in known if (there := recipe_as_built(built, recipe)) is not None]


async def try_change(
    old: Sequence[Chunk], new: Sequence[Chunk], known: Sequence[Recipe], given: Configuration, recipe: Recipe
) -> Trial | None:
    """Build what is there, change it, and see what the change asked for.

    Args:
        old: Passages before the change, in corpus order.
        new: Passages after it.
        known: What is built already, of the passages before.
        given: The arguments of the index.
        recipe: What is built.

    Returns:
        None when nothing is asked: no recipe wants summaries, or nothing changes.
    """
    from sire_core.extraction.rules import RulesExtractor
    from sire_core.models.dry_run import DryRunModel
    from sire_core.models.lexical_embedder import LexicalEmbedder
    from sire_core.storage.index_files import IndexFiles

    before, after = _documents(old) if known else {}, _documents(new)
    together = {**before, **after}
    moved = [found for found in together if before.get(found) != after.get(found)]
    recipes = (recipe, *known)
    if not moved or not any(organizer.needs_summaries for one in recipes for organizer in one.organizers):
        return None
    calm = [found for found in together if before.get(found) == after.get(found)]
    scale = _step(moved, _MOVED)
    tried = {*moved[::scale], *calm[:: _step(calm, _CALM)]}
    files = IndexFiles(None)
    free = replace(
        given,
        recipe=recipe,
        language_model=DryRunModel(),
        extractor=RulesExtractor(),
        embedder=LexicalEmbedder(),
        chunker=None,
        limits=None,
    )
    try:
        for there in known:
            await _build(files, [before[found] for found in before if found in tried], replace(free, recipe=there))
        seen = set(_tokens_below(files))
        asked = await _build(files, [after[found] for found in after if found in tried], free)
        below = tuple(size for unit, size in _tokens_below(files).items() if unit not in seen)
    finally:
        files.close()
    return Trial(scale, below, asked)


async def _build(files: IndexFiles, documents: Sequence[Document], given: Configuration) -> StageUsage | None:
    from sire_core.build.apply import apply_plan

    report = await apply_plan(files, lambda stored, _: plan_build(stored, documents, None), given)
    return report.usage.get("organizing")


def _tokens_below(files: IndexFiles) -> dict[str, tuple[str, int]]:
    """Kind of every summary of a tree, and the tokens of what it stands on."""
    from sire_core.algorithms.text import count_tokens

    owners = files.store.owners()
    units = {unit.id: unit for owner in owners for unit in files.store.units(owner)}
    below: dict[str, int] = {}
    for edge in files.store.edges(owners):
        if edge.kind == "child" and edge.source in units and edge.target in units:
            below[edge.source] = below.get(edge.source, 0) + count_tokens(units[edge.target].index_text)
    return {found: (units[found].kind.value, size) for found, size in below.items()}


def _documents(chunks: Sequence[Chunk]) -> dict[str, Document]:
    """Documents cut into these passages, by id."""
    cut: dict[str, list[Passage]] = {}
    for chunk in chunks:
        cut.setdefault(chunk.doc_id, []).append(Passage(chunk.text, title=chunk.title, metadata=chunk.metadata))
    return {found: Document(id=found, chunks=tuple(passages)) for found, passages in cut.items()}


def _step(items: Sequence[str], most: int) -> int:
    return max(1, -(-len(items) // most))
