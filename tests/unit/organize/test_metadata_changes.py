"""What organizers made of metadata follows an update of metadata alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sire_core import Document, Index
from sire_core.derive.derivation import PlainDerivation
from sire_core.recipes import REGISTRY
from sire_core.recipes.sirerag.cross_tree import CrossTree
from sire_core.testing.doubles import HashEmbedder
from sire_core.trees.similarity_tree import SimilarityTree
from sire_core.types import Unit, UnitKind


def pages(overviews):
    texts = [f"Ship number {n} sailed from Hull to port {n}." for n in range(6)]
    return [
        Document(str(n), text, metadata={"abstractiveness": "high" if n < overviews else "low"})
        for n, text in enumerate(texts)
    ]


def derived(index):
    """Level, text and number of passages of what stands beside the passages."""
    view = index.view()
    units = [unit for unit in view.units(range(view.size)) if unit.kind is not UnitKind.CHUNK]
    return sorted((unit.level, len(unit.chunk_ids), unit.text) for unit in units)


def by_label(passages):
    groups = {}
    for passage in passages:
        groups.setdefault(passage.unit.metadata["abstractiveness"], []).append(passage.unit)
    return [
        Unit("", UnitKind.SIM_SUMMARY, f"{label}: {len(units)}", tuple(c for u in units for c in u.chunk_ids))
        for label, units in groups.items()
    ], []


ORGANIZERS = {
    "plain": (PlainDerivation("plain", by_label, needs_records=False),),
    "similarity": (SimilarityTree(hierarchy=True),),
    "cross": (*REGISTRY["sirerag"]().organizers[:2], CrossTree(mode="add", hierarchy=True)),
}


@pytest.mark.parametrize("name", ORGANIZERS)
def test_an_update_of_metadata_is_followed(name):
    recipe = replace(REGISTRY["raptor"](), name="own", organizers=ORGANIZERS[name])
    with Index(recipe=recipe, embedder=HashEmbedder()) as grown, Index(recipe=recipe, embedder=HashEmbedder()) as fresh:
        grown.build(pages(0))
        before = derived(grown)
        grown.update(pages(3))
        fresh.build(pages(3))
        assert derived(grown) == derived(fresh) != before
