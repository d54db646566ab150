"""A kind of unit that a later release inserts among the others: pools that lie in a folder are not misread."""

from sire_core import Document, Index
from sire_core.storage import pool
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import BUILT_IN_KINDS

DOCUMENTS = [
    Document(f"d{i}", f"{name} was born in Port Amber. {name} sailed to Varn.", name)
    for i, name in enumerate(("Ada Holm", "Bela Brack", "Cora Stern", "Dina Quist", "Edda Vale", "Fina Marsh"))
]


def kinds(path):
    with Index(path, recipe="raptor", embedder=HashEmbedder()) as index:
        found = index.view()
        return {
            unit.id: (str(unit.kind), found.kind_names[code])
            for unit, code in zip(found.units(range(found.size)), found.kinds, strict=True)
        }


def test_a_kind_inserted_in_the_middle_does_not_change_what_old_units_are(tmp_path, monkeypatch):
    with Index(tmp_path, recipe="raptor", embedder=HashEmbedder(), chunker=None) as index:
        index.build(DOCUMENTS)
        index.search("Port Amber")
    before = kinds(tmp_path)
    assert len({kind for kind, _ in before.values()}) > 1
    names = ("motto", *BUILT_IN_KINDS)
    monkeypatch.setattr(pool, "BUILT_IN_KINDS", names)
    assert kinds(tmp_path) == before
