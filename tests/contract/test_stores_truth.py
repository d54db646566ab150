"""Databases beside an index: what they missed is still found, and no table is shared or left behind unnoticed."""

import asyncio
import pickle
import shutil
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError
from sire_core.stores import LanceStore, PostgresStore, QdrantStore
from sire_core.testing.doubles import HashEmbedder

pytestmark = pytest.mark.skipif(find_spec("lancedb") is None, reason="the lance extra is missing")
NEW = Document("new", "Zed Moss sailed to Orr.")


def documents(count=6, first=0):
    return [Document(f"d{i}", f"Bela Kovac {i} was born in Drava {i}.") for i in range(first, first + count)]


def make(folder, store, recipe="flat", embedder=None):
    return Index(folder, recipe=recipe, embedder=embedder or HashEmbedder(), store=store)


def first(index, question):
    return index.search(question, 3)[0].doc_ids[0]


def in_memory():
    return pytest.importorskip("qdrant_client").QdrantClient(":memory:")


def test_what_a_writer_without_the_store_adds_is_found_at_once(make_store, tmp_path, caplog):
    with make(tmp_path / "i", make_store()) as app:
        app.build(documents())
        assert list(app.stats()["waiting"].values()) == [0]
        with Index(tmp_path / "i", embedder=HashEmbedder()) as writer:
            writer.add([NEW])
            writer.update([Document("d3", "The Amber mill.")])
        assert first(app, "Zed Moss Orr") == "new"
        assert first(app, "Amber mill") == "d3"
        assert list(app.stats()["waiting"].values()) == [2], "the old passage of d3 is in no search"
        assert "wait for the vector store" in caplog.text
        assert sum(app.push().values()) >= 2
        assert list(app.stats()["waiting"].values()) == [0]
        assert first(app, "Zed Moss Orr") == "new"


def test_two_recipes_over_one_table_find_what_they_find_alone(make_store, tmp_path):
    question = "Who commanded the Northern Wren?"

    def found(index):
        return [hit.unit.id for hit in index.search(question, 10, returns="units")]

    with Index(recipe="sirerag", embedder=HashEmbedder()) as own, make(tmp_path / "i", make_store(), "sirerag") as one:
        own.build(demo_documents())
        one.build(demo_documents())
        with make(tmp_path / "i", make_store()) as other:
            other.build(demo_documents())
            assert found(one) == found(own)
            other.add([NEW])
            own.add([NEW])
            assert found(one) == found(own)
            assert [list(index.push().values()) for index in (one, other, one)] == [[0]] * 3, "neither empties it"
            assert first(other, "Zed Moss Orr") == "new"


def test_a_table_of_another_index_is_refused_until_it_is_taken_over(make_store, tmp_path):
    with make(tmp_path / "x", make_store()) as mine, make(tmp_path / "y", make_store()) as other:
        mine.build(documents())
        (failure,) = other.build(documents(first=10)).failures
        assert "belongs to another index" in failure.reason
        with pytest.raises(ConfigurationError, match=r"push\(full=True\)"):
            other.push()
        assert first(mine, "Bela Kovac 3 Drava 3") == "d3"
        assert first(other, "Bela Kovac 13 Drava 13") == "d13", "by vectors of its own"
        other.push(full=True)
        assert list(other.stats()["waiting"].values()) == [0]
        with pytest.raises(ConfigurationError, match="belongs to another index"):
            mine.push()


def test_another_database_under_the_same_name_gets_everything(tmp_path):
    for place in ("one", "two"):
        with make(tmp_path / "i", LanceStore(tmp_path / place)) as index:
            index.build([*documents(), *([NEW] if place == "two" else [])])
    with make(tmp_path / "i", LanceStore(tmp_path / "one")) as index:
        index.push()
        assert LanceStore(tmp_path / "one").table().count_rows() == 7
        assert first(index, "Zed Moss Orr") == "new"


def test_a_restored_backup_of_the_database_gets_everything_again(tmp_path):
    place, backup = tmp_path / "lance", tmp_path / "backup"
    with make(tmp_path / "i", LanceStore(place)) as index:
        index.build(documents())
        shutil.copytree(place, backup)
        index.add([NEW])
        index.delete(["d0"])
    shutil.rmtree(place)
    shutil.copytree(backup, place)
    with make(tmp_path / "i", LanceStore(place)) as index:
        index.push()
        assert LanceStore(place).table().count_rows() == 6
        assert first(index, "Zed Moss Orr") == "new"


def test_a_table_that_was_dropped_is_made_again(tmp_path):
    import lancedb

    with make(tmp_path / "i", LanceStore(tmp_path / "lance")) as index:
        index.build(documents())
        lancedb.connect(str(tmp_path / "lance")).drop_table("sire_units")
        assert not index.add([NEW]).failures
        assert LanceStore(tmp_path / "lance").table().count_rows() == 7
        assert first(index, "Zed Moss Orr") == "new"


async def test_the_mark_of_a_collection_of_qdrant_lasts_as_long_as_the_collection():
    client = in_memory()
    store, other = QdrantStore(client, "units"), QdrantStore(client, "units")
    await store.leave_mark("early")
    assert await store.mark() == "", "there is no collection that it could be about"
    with make(None, store) as index:
        await index.abuild(documents())
        assert (mark := await other.mark())
        await other.clear()
        assert client.count("units").count == 0
        assert await store.mark() == mark, "the collection is still the index's"
        assert list((await index.apush()).values()) == [6], "what was emptied gets everything again"
        client.delete_collection("units")
        assert await store.mark() == ""
        assert await other.top("", (await HashEmbedder().embed(["Drava"]))[0], 3) == []
        assert list((await index.apush()).values()) == [6]
        assert first(index, "Bela Kovac 3 Drava 3") == "d3"


async def test_stores_over_one_client_of_qdrant_use_it_one_after_the_other():
    inside, most = 0, 0

    class Watched(pytest.importorskip("qdrant_client").QdrantClient):
        """Counts who is in it at once."""

        def query_points(self, *args, **kwargs):
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            time.sleep(0.002)
            found = super().query_points(*args, **kwargs)
            inside -= 1
            return found

    client = Watched(":memory:")
    stores = [QdrantStore(client, name) for name in ("one", "two", "one")]
    for store in stores[:2]:
        with make(None, store) as index:
            await index.abuild(documents())
    (question,) = await HashEmbedder().embed(["Bela Kovac 3 Drava 3"])
    found = await asyncio.gather(*(store.top("", question, 6) for store in stores for _ in range(8)))
    assert most == 1
    assert {len(ids) for ids in found} == {6}


def test_only_clients_of_qdrant_that_another_process_can_make_again_are_pickled(tmp_path):
    client = pytest.importorskip("qdrant_client").QdrantClient
    where = {"url": "https://localhost:1", "check_compatibility": False}
    for refused in (
        in_memory(),
        client(path=str(tmp_path / "q")),
        client(**where, api_key="S3CRET"),
        client(**where, headers={"x-key": "S3CRET"}),
    ):
        with pytest.raises(ConfigurationError, match="pickles hold no keys"):
            pickle.dumps(Index(tmp_path / "i", store=QdrantStore(refused)))
    again = pickle.loads(pickle.dumps(QdrantStore(client(**where), "units", width=70)))
    assert (again.name, again._width) == ("qdrant units", 70)
    assert again._client.init_options["url"] == where["url"]


def test_purge_leaves_no_word_in_the_files_of_postgresql(postgres):
    import psycopg

    def words():
        with psycopg.connect(postgres, autocommit=True) as db:
            db.execute("CHECKPOINT")  # what is in memory is written, and files of tables that are gone are removed
            (folder,) = db.execute("SHOW data_directory").fetchone()
        files = [path for path in (Path(folder) / "base").rglob("*") if path.is_file()]
        return [path.name for path in files if b"zorbleflux" in path.read_bytes()]

    store = PostgresStore(postgres, "secrets")
    with make(None, store) as index:
        index.build([*documents(), Document("secret", "The zorbleflux is quuxinator.")])
        index.delete(["secret"])
        assert words(), "a deletion alone leaves it there"
        index.purge()
        assert words() == []
        assert first(index, "Bela Kovac 3 Drava 3") == "d3"
    store.close()


def test_vectors_of_another_length_are_named(make_store, tmp_path):
    with make(tmp_path / "x", make_store()) as index:
        index.build(documents())
    with make(tmp_path / "x", None) as index:
        index.reembed(tmp_path / "y", HashEmbedder(32))
    refused = pytest.raises(ConfigurationError, match=r"vectors of length 64.*32.*Name another table")
    with make(tmp_path / "y", make_store(), embedder=HashEmbedder(32)) as index, refused:
        index.push(full=True)


def test_pickles_hold_no_password(tmp_path):
    store = pickle.dumps(Index(tmp_path / "i", store=PostgresStore("postgresql://u:S3CRET@h/db")))
    assert b"S3CRET" not in store
    assert b"host=h" in store
    with make(tmp_path / "j", LanceStore(tmp_path / "lance")) as index:
        index.build(documents())
        with pickle.loads(pickle.dumps(index)) as copy:
            assert first(copy, "Bela Kovac 3 Drava 3") == "d3"


def test_a_word_of_sql_can_name_a_table(postgres):
    store = PostgresStore(postgres, "order")
    with make(None, store) as index:
        assert not index.build(documents()).failures
        assert first(index, "Bela Kovac 3 Drava 3") == "d3"
        index.delete(["d3"])
        index.purge()
        assert list(index.push().values()) == [0]
    store.close()


def test_a_connection_that_the_server_closed_is_made_again(postgres):
    import psycopg

    store = PostgresStore(postgres, "lost")
    with make(None, store) as index:
        index.build(documents())
        with psycopg.connect(postgres, autocommit=True) as db:
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid<>pg_backend_pid()")
        assert first(index, "Bela Kovac 3 Drava 3") == "d3"
    store.close()


def test_purge_leaves_no_word_in_the_files_of_lancedb(tmp_path):
    with make(tmp_path / "i", LanceStore(tmp_path / "lance")) as index:
        index.build([*documents(), Document("secret", "The zorbleflux is quuxinator.")])
        index.delete(["secret"])
        index.purge()
        files = [path for path in (tmp_path / "lance").rglob("*") if path.is_file()]
        assert files
        assert not [path for path in files if b"zorbleflux" in path.read_bytes()]
        assert first(index, "Bela Kovac 3 Drava 3") == "d3"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads Linux's list of open files")
def test_searches_over_a_store_leave_no_file_open(tmp_path):
    def opened():
        links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        return [name for link in links if "index.sqlite" in (name := read(link)) and str(tmp_path) in name]

    def read(link):
        try:
            return str(link.readlink())
        except FileNotFoundError:  # the list of files was one of them
            return ""

    counts, kept = [], []
    with make(tmp_path / "ix", LanceStore(tmp_path / "lance")) as index:
        index.build(documents())
        for number in range(4):
            index.add([Document(f"more{number}", f"Another mill, number {number}.")])
            index.search("Which mill?", 2)
            kept.append(index.view())  # somebody still looks at every generation
            counts.append(len(opened()))
    assert counts[-1] <= counts[0]
    assert not opened()
