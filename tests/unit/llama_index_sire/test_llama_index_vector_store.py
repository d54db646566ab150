"""The user's own vector store holds the pool, follows the index and ranks."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import Document, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQueryResult
from llama_index_mirrors import AppendOnly, Flaky, document, expected, held, make

from llama_index_sire import SireRetriever, VectorStoreMirror
from sire_core import Index
from sire_core.recipes import indexrag
from sire_core.types import to_uuid


class LeastStore(BasePydanticVectorStore):
    """Only what every store guarantees: `add`, `delete(ref_doc_id)`, `query`; adding an id twice is an error."""

    stores_text: bool = True
    broken: bool = False
    _inner: SimpleVectorStore = PrivateAttr(default_factory=SimpleVectorStore)
    _nodes: dict = PrivateAttr(default_factory=dict)

    @property
    def client(self):
        return None

    def add(self, nodes, **kwargs):
        if self.broken:
            raise ConnectionError("the store is away")
        for node in nodes:
            assert node.node_id not in self._inner.data.embedding_dict
            assert node.embedding is not None
            self._nodes[node.node_id] = json.loads(node.to_json())
        return self._inner.add(nodes)

    def delete(self, ref_doc_id, **kwargs):
        self._inner.delete(ref_doc_id)

    def query(self, query, **kwargs):
        found = self._inner.query(query)
        from llama_index.core.schema import TextNode

        nodes = [TextNode(id_=name, text="") for name in found.ids]
        return VectorStoreQueryResult(nodes=nodes, similarities=found.similarities, ids=None)

    @property
    def ids(self):
        return set(self._inner.data.embedding_dict)


def ids_of(retriever):
    return {to_uuid(name.decode()) for name in retriever.index.view().ids.tolist()}


def test_filters_hold_whatever_the_store_does(documents, question):
    own = SireRetriever.from_documents(
        documents, recipe="sirerag", vector_store=LeastStore(), filters="kind=person", similarity_top_k=50
    )
    ours = SireRetriever.from_documents(documents, recipe="sirerag", filters="kind=person", similarity_top_k=50)
    found = own.retrieve(question)
    assert found
    assert [node.node_id for node in found] == [node.node_id for node in ours.retrieve(question)]


def test_passages_that_two_documents_share_change_hands():
    store = LeastStore()
    same = "The lighthouse stands on a rock."
    a, b = Document(id_="a", text=same), Document(id_="b", text=same)
    retriever = SireRetriever.from_documents(
        [a, b, Document(id_="c", text="A third one.")], recipe="flat", vector_store=store
    )
    assert len(store.ids) == 2
    retriever.refresh(Document(id_="b", text="Not a rock at all."))
    (kept,) = [store._nodes[name] for name in store.ids if store._nodes[name]["text"] == same]
    assert json.loads(kept["metadata"]["sire_doc_ids"]) == ["a"]
    retriever.refresh(Document(id_="b", text=same))
    retriever.delete("a")
    assert store.ids == ids_of(retriever)
    assert retriever.retrieve("lighthouse rock")[0].metadata["sire_doc_ids"] == ["b"]


def test_a_change_of_metadata_alone_reaches_derived_nodes():
    """Their ids do not change, but a store filter on the old tenant must not find them."""
    store = LeastStore()
    documents = [
        Document(id_=f"d{i}", text=f"Mara Smith built harbour {i}.", metadata={"tenant": "a"}) for i in range(4)
    ]
    retriever = SireRetriever.from_documents(documents, recipe="sirerag", vector_store=store)
    derived = [name for name in store.ids if store._nodes[name]["metadata"]["sire_kind"] != "chunk"]
    assert derived
    assert all(store._nodes[name]["metadata"]["tenant"] == "a" for name in derived)
    retriever.refresh(Document(id_="d0", text=documents[0].text, metadata={"tenant": "b"}))
    for name in store.ids & set(derived):
        node = store._nodes[name]["metadata"]
        assert ("tenant" in node) == ("d0" not in json.loads(node["sire_doc_ids"]))


STORED = ("sire_kind", "sire_level", "sire_doc_ids", "sire_chunk_ids")


def test_nodes_name_their_sources():
    store = AppendOnly()
    by_document = SimpleVectorStore()
    index = Index(recipe=indexrag(), chunker=None, mirrors=[VectorStoreMirror(by_document)])
    index.build([document(i) for i in range(4)])
    passages = {
        by_document.data.text_id_to_ref_doc_id[name]
        for name, row in by_document.data.metadata_dict.items()
        if row["sire_kind"] == "chunk"
    }
    assert passages == {f"d{i}" for i in range(4)}
    own = make(store)
    own.build([document(i) for i in range(4)])
    assert all(node.ref_doc_id == node.node_id for node in store._rows)
    assert all(set(STORED) <= set(node.metadata) for node in store._rows)


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


def test_deletes_that_a_store_missed_reach_it_with_the_purge(tmp_path):
    store = Flaky()
    with make(store, tmp_path / "i") as index:
        index.build([document(i) for i in range(4)])
        store._left = 0
        assert index.delete(["d0"]).failures
        with pytest.raises(ConnectionError):
            index.purge()
        store._left = 10**9
        index.purge()
        assert held(store) == expected(index)


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
