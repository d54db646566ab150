"""Derived files: deleted, damaged, stale."""

import shutil

import pytest

from sire_core.types import Document

QUESTION = "Who lives in Drava 3?"


def derived(path):
    (pool,) = [entry for entry in (path / "derived").iterdir() if entry.is_dir()]
    return pool


def test_derived_files_are_made_again_when_they_are_gone(folder, ids):
    expected = ids(folder)
    shutil.rmtree(folder / "derived")
    assert ids(folder) == expected
    assert derived(folder).name.endswith("-1")


@pytest.mark.parametrize(
    "name", ["matrix.npy", "ids.npy", "offsets.npy", "indptr.npy", "rows.bin", "documents.json", "metadata.json"]
)
@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "noise"])
def test_damaged_derived_files_are_made_again(folder, name, damage, opened, ids):
    expected = ids(folder)
    file = derived(folder) / name
    whole = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes({"empty": b"", "cut": whole[:-3], "noise": b"\x93NUMPY noise"}[damage])
    assert ids(folder) == expected
    with opened(folder) as index:
        assert len(index.search(QUESTION, 4, filter={"nothing": {"ne": 1}})) == 4
    assert file.read_bytes() == whole


def test_a_damaged_bm25_index_is_made_again(folder, opened, ids, documents):
    settings = {"recipe": "flat"}
    with opened(folder, **settings) as index:
        index.build(documents)
    from sire_core.recipes import flat

    expected = ids(folder, recipe=flat(ranker="bm25"))
    (stored,) = folder.glob("derived/*/bm25-*")
    for file in stored.iterdir():
        file.write_bytes(b"noise")
    assert ids(folder, recipe=flat(ranker="bm25")) == expected


def test_files_of_an_index_that_was_deleted_are_not_taken_for_the_new_one(folder, opened):
    (folder / "index.sqlite").unlink()
    for name in ("index.sqlite-wal", "index.sqlite-shm"):
        (folder / name).unlink(missing_ok=True)
    with opened(folder, recipe="raptor") as index:
        index.build([Document("new", "Zelda rules Zadar.")])
        (hit,) = index.search("Zelda", 5)
    assert hit.unit.text == "Zelda rules Zadar."


def test_old_generations_are_tidied_away(folder, opened):
    with opened(folder) as index:
        index.add([Document("more", "Ewa lives in Fiume.")])
        index.search(QUESTION, 1)
    assert derived(folder).name.endswith("-2")
