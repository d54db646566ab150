"""LlamaIndex's own SimpleVectorStore follows an index through the core's outbox: kills, failures, purges, replays."""

import logging
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index_fakes import as_llama_index

from llama_index_sire import SireRetriever, VectorStoreMirror, VectorStoreSource, over_vector_store
from llama_index_sire.nodes import PROVENANCE_KEYS
from sire_core import Document, Index
from sire_core.data import demo_questions
from sire_core.errors import ConfigurationError
from sire_core.protocols import AskableMirror, BufferedMirror, Mirror
from sire_core.recipes import indexrag
from sire_core.storage.uuids import from_uuid, to_uuid
from sire_core.testing.hash_embedder import HashEmbedder

PEOPLE = ["Mira Vale", "Anna Berg", "Tom Hale", "Ida Moor"]


def document(i, salt="", tenant="a"):
    text = f"{PEOPLE[i % 4]} was a painter{salt}. {PEOPLE[i % 4]} married {PEOPLE[(i + 1) % 4]} in Port {i}."
    return Document(f"d{i}", text, f"No. {i}", {"tenant": tenant})


class Flaky(SimpleVectorStore):
    """Fails after some nodes, half way through a batch."""

    _left: int = PrivateAttr(default=10**9)

    def add(self, nodes, **kwargs):
        for node in nodes:
            self._tick()
            super().add([node])
        return [node.node_id for node in nodes]

    def delete_nodes(self, node_ids=None, filters=None, **kwargs):
        for name in node_ids:
            self._tick()
            super().delete_nodes([name])

    def _tick(self):
        self._left -= 1
        if self._left < 0:
            raise ConnectionError("the store is away")


class AppendOnly(BasePydanticVectorStore):
    """Has only what is abstract, keeps two rows when an id is added twice, and makes its table at the first `add`."""

    stores_text: bool = True
    _rows: list = PrivateAttr(default=None)

    @property
    def client(self):
        return None

    def add(self, nodes, **kwargs):
        self._rows = [*(self._rows or ()), *nodes]
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id, **kwargs):
        if self._rows is None:
            raise RuntimeError("there is no table")
        self._rows = [node for node in self._rows if node.ref_doc_id != ref_doc_id]

    def query(self, query, **kwargs):
        inner = SimpleVectorStore()
        inner.add(self._rows or [])
        return inner.query(query)


def make(mirror, path=None, **more):
    given_mirrors = [mirror] if isinstance(mirror, VectorStoreMirror) else [VectorStoreMirror(mirror)]
    return Index(path, recipe=indexrag(), embedder=HashEmbedder(), chunker=None, mirrors=given_mirrors, **more)


def expected(index):
    """What the store holds: vector, and metadata with the sources."""
    view = index.view()
    known = dict(view.pool.document_metadata())
    rows = {}
    for position in range(view.size):
        unit, doc_ids = view.pool.unit(position)
        tenants = {known[doc]["tenant"] for doc in doc_ids}
        rows[to_uuid(unit.id)] = (
            np.asarray(view.matrix[position], dtype=np.float32).tobytes(),
            tenants.pop() if len(tenants) == 1 else None,
            unit.kind.value,
        )
    return rows


def held(store):
    data = store.data
    assert set(data.embedding_dict) == set(data.metadata_dict) == set(data.text_id_to_ref_doc_id)
    return {
        name: (
            np.asarray(vector, dtype=np.float32).tobytes(),
            data.metadata_dict[name].get("tenant"),
            data.metadata_dict[name]["sire_kind"],
        )
        for name, vector in data.embedding_dict.items()
    }


def test_it_is_a_mirror_that_can_be_asked_and_flushed():
    mirror: Mirror = VectorStoreMirror(SimpleVectorStore(), "mine")
    assert isinstance(mirror, AskableMirror)
    assert isinstance(mirror, BufferedMirror)
    assert mirror.name == "mine"


def test_ids_are_uuids_and_come_back():
    import uuid

    index = make(SimpleVectorStore())
    index.build([document(i) for i in range(4)])
    for raw in index.view().ids.tolist():
        unit = raw.decode()
        assert str(uuid.UUID(to_uuid(unit))) == to_uuid(unit)
        assert from_uuid(to_uuid(unit)) == unit


def test_a_store_follows_builds_adds_updates_and_deletes():
    store = SimpleVectorStore()
    index = make(store)
    index.build([document(i) for i in range(4)])
    assert held(store) == expected(index)
    index.add([document(5)])
    index.update([document(1, " of ships"), document(2, tenant="b")])
    assert held(store) == expected(index)
    assert {row[1] for row in held(store).values()} == {"a", "b", None}
    index.delete(["d0", "d1"])
    assert held(store) == expected(index)
    index.delete(["d2", "d3", "d5"])
    assert held(store) == {}


async def test_async_changes():
    store = SimpleVectorStore()
    index = make(store)
    await index.abuild([document(i) for i in range(4)])
    await index.adelete(["d0"])
    assert held(store) == expected(index)
    assert await index.apush() == {"llama-index": 0}


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
    assert all(set(PROVENANCE_KEYS) <= set(node.metadata) for node in store._rows)


def test_a_store_with_the_least_interface_holds_every_node_once():
    store = AppendOnly()
    index = make(store)
    index.build([document(i) for i in range(4)])
    index.update([document(1, tenant="b")])
    index.push(anew=True)
    index.delete(["d0"])
    assert sorted(node.node_id for node in store._rows) == sorted(expected(index))


def test_a_store_that_fails_half_way_loses_nothing_and_a_second_replay_is_harmless(caplog):
    store = Flaky()
    index = make(store)
    index.build([document(i) for i in range(3)])
    store._left = 2
    with caplog.at_level(logging.WARNING):
        report = index.add([document(3)])
    assert [failure.where for failure in report.failures] == ["vector store 'llama-index'"]
    assert "the store is away" in caplog.text
    with pytest.raises(ConnectionError):
        index.push()
    store._left = 10**9
    assert index.push()["llama-index"] > 0
    assert held(store) == expected(index)
    assert index.push() == {"llama-index": 0}
    assert index.push(anew=True) == {"llama-index": index.view().size}
    assert held(store) == expected(index)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "update", "delete"]), st.integers(0, 4), st.one_of(st.none(), st.integers(0, 6))
        ),
        max_size=6,
    )
)
def test_any_history_with_any_failures_ends_equal(steps):
    store = Flaky()
    index = make(store)
    index.build([document(0)])
    for action, i, fails_after in steps:
        store._left = 10**9 if fails_after is None else fails_after
        present = {found.id for found in index.documents()}
        if action == "add" and f"d{i}" not in present:
            index.add([document(i)])
        elif action == "update":
            index.update([document(i, f" {fails_after}")])
        elif action == "delete" and f"d{i}" in present and len(present) > 1:
            index.delete([f"d{i}"])
    store._left = 10**9
    index.push()
    assert held(store) == expected(index)


@pytest.mark.parametrize("dies_at", ["before the push", "half way", "before the file", "after the file"])
def test_a_kill_between_commit_and_push_is_made_good(tmp_path, dies_at):
    """The store lives in memory and in a file; the process is gone without a word."""
    place, file = tmp_path / "i", tmp_path / "store.json"
    script = textwrap.dedent(
        f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_llama_index_mirror import SimpleVectorStore, VectorStoreMirror, document, make

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


def test_a_store_attached_late_gets_everything(tmp_path):
    with Index(tmp_path / "i", recipe=indexrag(), embedder=HashEmbedder(), chunker=None) as index:
        index.build([document(i) for i in range(4)])
        index.delete(["d0"])
    store = SimpleVectorStore()
    with make(store, tmp_path / "i") as index:
        assert index.push() == {"llama-index": index.view().size}
        assert held(store) == expected(index)


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


async def test_search_over_the_store_is_the_dense_search_of_the_index():
    store = SimpleVectorStore()
    given_documents = [Document(d.id_, d.text, d.metadata["title"], d.metadata) for d in as_llama_index()]
    index = Index(recipe="flat", embedder=HashEmbedder(), mirrors=[VectorStoreMirror(store)])
    index.build(given_documents)
    source = VectorStoreSource(store, index.view().embed_query)
    for question in demo_questions():
        hits = await index.asearch(question.question, 10)
        found = await source.rank(question.question, 10)
        assert [name for name, _ in found] == [hit.unit.id for hit in hits]
        assert [score for _, score in found] == pytest.approx([hit.score for hit in hits], abs=1e-5)


@pytest.mark.parametrize("where", [None, "kind=person", {"kind": {"in": ["person", "film"]}}])
def test_a_recipe_over_the_store_finds_what_the_recipe_finds(where):
    store = SimpleVectorStore()
    given_documents = [Document(d.id_, d.text, d.metadata["title"], d.metadata) for d in as_llama_index()]
    ours = Index(recipe="sirerag", embedder=HashEmbedder())
    over = Index(
        recipe=over_vector_store("sirerag", store), embedder=HashEmbedder(), mirrors=[VectorStoreMirror(store)]
    )
    for index in (ours, over):
        index.build(given_documents)
    for question in demo_questions():
        expected_hits = ours.search(question.question, 6, filter=where)
        assert [h.unit.id for h in over.search(question.question, 6, filter=where)] == [
            h.unit.id for h in expected_hits
        ]


def test_the_same_script_again_with_a_store_in_memory(tmp_path, documents, question):
    """The folder says that the store was told; this process's store was not."""
    first = SireRetriever.from_documents(documents, vector_store=SimpleVectorStore(), persist_dir=tmp_path / "i")
    wanted = [found.node_id for found in first.retrieve(question)]
    assert len(wanted) == 10
    again = SireRetriever.from_documents(documents, vector_store=SimpleVectorStore(), persist_dir=tmp_path / "i")
    assert [found.node_id for found in again.retrieve(question)] == wanted
    opened = SireRetriever.from_persist_dir(tmp_path / "i", vector_store=SimpleVectorStore())
    assert [found.node_id for found in opened.retrieve(question)] == wanted


def test_opening_while_another_process_writes(tmp_path, documents, question):
    made = SireRetriever.from_documents(documents, vector_store=SimpleVectorStore(), persist_dir=tmp_path / "i")
    with made.index._session.files().writing():
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


def test_nodes_carry_excluded_keys_and_no_more_metadata(documents):
    store = AppendOnly()
    given_document = LlamaIndexDocument(
        id_="x", text="The lighthouse.", metadata={"path": "/x", "lang": "en"}, excluded_llm_metadata_keys=["path"]
    )
    SireRetriever.from_documents([given_document], recipe="flat", vector_store=store)
    (node,) = store._rows
    assert "path" in node.excluded_llm_metadata_keys
    assert set(node.metadata) == {"path", "lang", *PROVENANCE_KEYS}


def test_something_else_is_refused():
    with pytest.raises(ConfigurationError, match="no LlamaIndex vector store"):
        VectorStoreMirror({})
    with pytest.raises(ConfigurationError, match="no LlamaIndex vector store"):
        over_vector_store("flat", {})
    with pytest.raises(ConfigurationError, match="same name"):
        Index(mirrors=[VectorStoreMirror(SimpleVectorStore()), VectorStoreMirror(SimpleVectorStore())])
