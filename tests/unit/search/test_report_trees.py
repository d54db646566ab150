"""`ReportTrees` from an organizer's notes and from the edges of the pool."""

import pytest
from report_edges import trees_from_edges

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.errors import SnapshotExpiredError
from sire_core.recipes import smart
from sire_core.recipes.smart.select import ReportTrees
from sire_core.testing.doubles import HashEmbedder

CORPUS = list(demo_documents())


def contents(trees, size):
    """What a query can see, entities by their ids."""
    named = {at: [trees.name(entity) for entity in trees.named(at)] for at in range(size)}
    above = {trees.name(entity): set(trees.above(entity)) for entity in range(len(trees.ids))}
    places = {trees.name(entity): place for entity, place in enumerate(trees.places.tolist()) if place >= 0}
    return trees.trees, named, {entity: found for entity, found in above.items() if found}, places


@pytest.mark.parametrize("base", ["dense", "mix_recall"])
def test_notes_tell_what_the_edges_tell(tmp_path, base):
    with Index(tmp_path, recipe=smart(base=base), embedder=HashEmbedder()) as index:
        index.build(CORPUS[:30])
        index.add(CORPUS[30:34])
        index.delete([CORPUS[3].id])
        view = index.view()
        by_edges = contents(trees_from_edges(view), view.size)
        by_notes = contents(ReportTrees.of(view), view.size)
    assert by_notes == by_edges
    assert by_notes[0]
    assert by_notes[2]


def test_a_snapshot_reads_the_reports_of_its_own_generation(tmp_path):
    first, second = (Index(tmp_path, recipe=smart(), embedder=HashEmbedder()) for _ in range(2))
    with first as index, second as reader:
        index.build(CORPUS)
        wanted = contents(ReportTrees.of(index.view()), index.view().size)
        held, passing = index.snapshot(), reader.view()
        index.add([Document("extra", "Zora Quill met Maren Holt in Port Ansel.", "Zora Quill")])
        assert contents(ReportTrees.of(held.view), held.view.size) == wanted
        with pytest.raises(SnapshotExpiredError, match="snapshot"):
            ReportTrees.of(passing)
