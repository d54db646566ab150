"""What the first search of another process needs is there, however the index began."""

from sire_core import Index
from sire_core.data import demo_documents


def test_an_index_that_began_with_add_or_update_is_as_ready_as_a_built_one(tmp_path):
    kept = {}
    for way in ("build", "add", "update"):
        getattr(Index(tmp_path / way, recipe="sire"), way)(demo_documents())
        [derived] = (tmp_path / way / "derived").iterdir()
        kept[way] = sorted(str(path.relative_to(derived)) for path in derived.rglob("*"))
    assert any(name.endswith("/arrays.bin") for name in kept["build"])
    assert kept["add"] == kept["update"] == kept["build"]
