"""Recipes by name. A method is a folder: settings, derivation, ranking, and the figures of its paper."""

from __future__ import annotations

import sys

from sire_core.moved import PAPERS
from sire_core.papers.hipporag2.recipe import hipporag2
from sire_core.papers.iier.recipe import iier
from sire_core.papers.indexrag.recipe import indexrag
from sire_core.papers.linearrag.recipe import linearrag
from sire_core.papers.msrag.recipe import msrag
from sire_core.papers.pagerank.recipe import pagerank
from sire_core.papers.raptor.recipe import raptor
from sire_core.papers.sirerag.recipe import sirerag
from sire_core.papers.smart.recipe import smart
from sire_core.protocols import Recipe
from sire_core.recipes.flat.recipe import flat
from sire_core.recipes.registry import REGISTRY, recipe_by_name, recipe_names, recipe_of, register
from sire_core.recipes.sire.recipe import sire

__all__ = [
    "REGISTRY",
    "Recipe",
    "flat",
    "hipporag2",
    "iier",
    "indexrag",
    "linearrag",
    "msrag",
    "pagerank",
    "raptor",
    "recipe_by_name",
    "recipe_names",
    "recipe_of",
    "register",
    "sire",
    "sirerag",
    "smart",
]

for (
    _name
) in PAPERS:  # known as packages before they are imported by this path, which would hide the recipe of that name
    sys.modules.setdefault(f"{__name__}.{_name}", sys.modules[f"sire_core.papers.{_name}"])
