"""The user's own vector store holds the pool, follows the index and ranks."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index_mirrors import AppendOnly, Flaky, document, expected, held, make

from llama_index_sire import SireRetriever, VectorStoreMirror
from sire_core import Index


def test_nodes_name_their_sources():
    store = SimpleVectorStore()
    make(store).build([document(i) for i in range(4)])
    rows = store.data.metadata_dict.items()
    sources = {store.data.text_id_to_ref_doc_id[name] for name, row in rows if row["sire_kind"] == "chunk"}
    assert sources == {f"d{i}" for i in range(4)}


def test_a_store_with_the_least_interface_holds_every_node_once():
    store = AppendOnly()
    index = make(store)
    index.build([document(i) for i in range(4)])
    index.update([document(1, tenant="b")])
    index.push(full=True)
    index.delete(["d0"])
    assert sorted(node.node_id for node in store._rows) == sorted(expected(index))


def test_a_store_with_vectors_of_another_length_is_warned_of(caplog):
    store = SimpleVectorStore()
    store.add([TextNode(text="Mira was a painter.", embedding=[1.0] * 8)])
    Index(mirrors=[VectorStoreMirror(store)]).build([document(0)])
    assert "cannot be searched" in caplog.text
    assert "vectors of another model" in caplog.text


@pytest.mark.quick(dies_at=["half way"])
@pytest.mark.parametrize("dies_at", ["before the push", "half way", "before the file", "after the file"])
def test_a_kill_between_commit_and_push_is_made_good(tmp_path, dies_at):
    """The store lives in memory and in a file; the process is gone without a word."""
    place, file = tmp_path / "i", tmp_path / "store.json"
    script = textwrap.dedent(
        f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from llama_index_mirrors import SimpleVectorStore, VectorStoreMirror, document, make

        def die():
            os.kill(os.getpid(), signal.SIGKILL)

        class Deadly(VectorStoreMirror):
            async def put(self, units):
                if {dies_at!r} == "before the push":
                    die()
                await super().put(units[:2] if {dies_at!r} == "half way" else units)
                if {dies_at!r} == "half way":
                    die()

            async def flush(self):
                if {dies_at!r} == "before the file":
                    die()
                await super().flush()
                die()

        store = SimpleVectorStore.from_persist_path({str(file)!r})
        make(Deadly(store, persist_path={str(file)!r}), {str(place)!r}).update([document(1, " again"), document(9)])
        """
    )
    with make(VectorStoreMirror(SimpleVectorStore(), persist_path=file), place) as index:
        index.build([document(i) for i in range(4)])
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    store = SimpleVectorStore.from_persist_path(str(file))
    with make(VectorStoreMirror(store, persist_path=file), place) as index:
        assert "d9" in {found.id for found in index.documents()}
        assert (held(store) == expected(index)) == (dies_at == "after the file")
        index.push()
        assert held(store) == expected(index)
        assert held(SimpleVectorStore.from_persist_path(str(file))) == expected(index)
        assert index.push() == {"llama-index": 0}


def test_two_stores_of_one_index(tmp_path, documents):
    first, second = SimpleVectorStore(), Flaky()
    retriever = SireRetriever.from_documents(
        documents[:8], vector_store=first, mirrors=[VectorStoreMirror(second, "second")], persist_dir=tmp_path / "i"
    )
    assert first.data.embedding_dict == second.data.embedding_dict
    second._left = 0
    with pytest.raises(ConnectionError):
        retriever.delete(documents[0].id_)
    assert len(first.data.embedding_dict) == retriever.index.view().size < len(second.data.embedding_dict)
    second._left = 10**9
    assert retriever.index.push()["llama-index"] == 0
    assert first.data.embedding_dict == second.data.embedding_dict


def test_opening_while_another_process_writes(tmp_path, documents, question):
    made = SireRetriever.from_documents(documents, vector_store=SimpleVectorStore(), persist_dir=tmp_path / "i")
    with made.index._reader.files().writing():
        SireRetriever.from_persist_dir(tmp_path / "i", vector_store=SimpleVectorStore())
        assert made.index.push() == {"llama-index": 0}


def test_a_store_that_is_away_is_heard_of_at_once(tmp_path, documents):
    store = Flaky()
    store._left = 0
    with pytest.raises(ConnectionError, match="away"):
        SireRetriever.from_documents(documents[:5], vector_store=store, persist_dir=tmp_path / "i")
    store._left = 10**9
    back = SireRetriever.from_persist_dir(tmp_path / "i", vector_store=store)
    assert len(store.data.embedding_dict) == back.index.view().size > 0
