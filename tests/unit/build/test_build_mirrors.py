"""The user's own vector store follows every change, and what it missed is told again."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sire_core import Document, Index
from sire_core.errors import StorageError
from sire_core.recipes import indexrag
from sire_core.storage.check import check_folder
from sire_core.testing.doubles import HashEmbedder

PEOPLE = ["Mira Vale", "Anna Berg", "Tom Hale", "Ida Moor"]


def document(i, salt="", tenant="a"):
    """A document; those from 100 on have the texts of others, so that two documents share their passages."""
    at = i % 100
    text = f"{PEOPLE[at % 4]} was a painter{salt}. {PEOPLE[at % 4]} married {PEOPLE[(at + 1) % 4]} in Port {at}."
    return Document(f"d{i}", text, f"No. {at}", {"tenant": tenant})


class DictStore:
    """A vector store as simple as it gets; it can fail."""

    def __init__(self, name="mine"):
        self.name = name
        self.rows = {}
        self.calls = []
        self.fails_after = None

    async def put(self, units):
        for found in units:
            self._tick()
            self.rows[found.unit.id] = (found.unit.text, found.doc_ids, dict(found.metadata), found.vector.tobytes())
        self.calls.append(("put", [found.unit.id for found in units]))

    async def drop(self, ids):
        self._tick()
        for name in ids:
            self.rows.pop(name, None)
        self.calls.append(("drop", list(ids)))

    def _tick(self):
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                raise ConnectionError("the store is away")


def make(store, path=None, **more):
    return Index(path, recipe=indexrag(), embedder=HashEmbedder(), chunker=None, mirrors=[store], **more)


def expected(index):
    view = index.view()
    rows = {}
    for position in range(view.size):
        unit, doc_ids = view.pool.unit(position)
        shared = view.shared_metadata(position)
        rows[unit.id] = (unit.text, set(doc_ids), shared, np.asarray(view.matrix[position]).tobytes())
    return rows


def held(store):
    return {name: (text, set(docs), metadata, vector) for name, (text, docs, metadata, vector) in store.rows.items()}


def test_a_new_store_is_told_everything_and_other_recipes_do_not_reach_it(tmp_path):
    Index(tmp_path / "i", recipe="flat", embedder=HashEmbedder(), chunker=None).build([document(i) for i in range(4)])
    store = DictStore()
    with make(store, tmp_path / "i") as index:
        index.build([document(i) for i in range(4)])
        assert held(store) == expected(index)
    flat = DictStore("flat")
    with Index(tmp_path / "i", recipe="flat", embedder=HashEmbedder(), chunker=None, mirrors=[flat]) as index:
        assert index.push() == {"flat": 4}
        assert held(flat) == expected(index)
        index.delete(["d0"])
        assert held(flat) == expected(index)
    with make(store, tmp_path / "i") as index:
        index.push()
        assert held(store) == expected(index)


def test_a_store_holds_the_units_of_every_recipe_that_was_opened_with_it(tmp_path):
    store = DictStore()
    documents = [document(i) for i in range(4)]
    with make(store, tmp_path / "i") as index:
        index.build(documents)
        first = expected(index)
    with Index(tmp_path / "i", recipe="flat", embedder=HashEmbedder(), chunker=None, mirrors=[store]) as index:
        index.build(documents)
        assert held(store) == first | expected(index)
        index.drop_recipe("indexrag")
        assert held(store) == expected(index)
        assert len(store.rows) == 4


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "update", "move to another tenant", "delete", "purge"]),
            st.sampled_from([0, 1, 2, 5, 100, 101]),
            st.none() | st.integers(0, 6),
        ),
        max_size=7,
    )
)
@example([("add", 100, None), ("delete", 0, None)])
@example([("add", 1, None), ("move to another tenant", 1, None)])
@example([("add", 1, None), ("delete", 1, 0), ("purge", 0, None)])
def test_any_history_with_any_failures_ends_equal(steps):
    store = DictStore()
    index = make(store)
    index.build([document(0)])
    for action, i, fails_after in steps:
        store.fails_after = fails_after
        present = {found.id for found in index.documents()}
        if action == "add" and f"d{i}" not in present:
            index.add([document(i)])
        elif action == "update":
            index.update([document(i, f" {fails_after}")])
        elif action == "move to another tenant":
            index.update([document(i, tenant="b")])
        elif action == "purge" and fails_after is None:
            index.purge()
            assert held(store) == expected(index)
        elif action == "delete" and f"d{i}" in present and len(present) > 1:
            index.delete([f"d{i}"])
    store.fails_after = None
    index.push()
    assert held(store) == expected(index)


@pytest.mark.parametrize("table", ["mirror_owners", "mirror_waits", "mirror_holds"])
@pytest.mark.parametrize(
    "change", ["DELETE FROM {} WHERE rowid_is", "UPDATE {} SET checksum=checksum+1 WHERE rowid_is"]
)
def test_damage_to_what_a_store_has_still_to_get_is_an_error(tmp_path, table, change):
    store = DictStore()
    with make(store, tmp_path / "i") as index:
        index.build([document(i) for i in range(3)])
        store.fails_after = 0
        index.add([document(3)])
    key = "name" if table == "mirror_owners" else "unit"
    where = f"{key}=(SELECT {key} FROM {table} LIMIT 1)"
    with closing(sqlite3.connect(tmp_path / "i" / "index.sqlite", isolation_level=None)) as database:
        assert database.execute(change.format(table).replace("rowid_is", where)).rowcount == 1
    assert [finding.file for finding in check_folder(tmp_path / "i")] == ["index.sqlite"]
    store.fails_after = None
    with make(store, tmp_path / "i") as index, pytest.raises(StorageError, match=r"index\.sqlite is damaged"):
        index.push()


def test_a_store_that_is_away_loses_nothing():
    store = DictStore()
    index = make(store)
    index.build([document(i) for i in range(3)])
    store.fails_after = 2
    report = index.add([document(3)])
    assert report.added == 1
    assert [failure.where for failure in report.failures] == ["vector store 'mine'"]
    assert "the store is away" in report.failures[0].reason
    with pytest.raises(ConnectionError):
        index.push()
    store.fails_after = None
    assert index.push()["mine"] > 0
    assert held(store) == expected(index)
    assert index.push() == {"mine": 0}


def test_only_what_changed_is_told():
    store = DictStore()
    index = make(store)
    index.build([document(i) for i in range(4)])
    store.calls.clear()
    index.add([Document("far", "Zoltan Kos lives in Ural.", "Zoltan Kos")])
    told = {name for _, names in store.calls for name in names}
    assert 0 < len(told) < len(store.rows) / 2
