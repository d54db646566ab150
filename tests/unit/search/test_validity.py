"""What a day and a filter let a search see."""

import json
import re
from dataclasses import replace
from datetime import date, datetime, timezone

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import DeterministicFakeEmbedding
from llama_index.core.schema import TextNode

import langchain_sire
import llama_index_sire
from sire_core import Document, Index
from sire_core.errors import QueryError
from sire_core.files.readers import read_documents
from sire_core.models.sync import run_sync
from sire_core.serve.tools import IndexTools
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from support.command import run
from support.indexes import indexed

VERSIONS = {
    "old": ("The rate limit is 100 requests per minute.", {"source": "limits.md", "updated": "2025-03-01"}),
    "new": ("A minute now has room for 500 requests.", {"source": "limits.md", "updated": date(2026, 2, 1)}),
    "other": ("The rate limit of exports is 5 requests.", {"source": "exports.md", "date": "2026-02-01T17:30:00"}),
    "undated": ("Requests are counted per tenant.", {"source": "limits.md"}),
}
QUESTION = "What is the rate limit of requests per minute?"


@pytest.fixture(scope="module")
def index():
    with Index(recipe="sire") as index:
        index.build([Document(name, text, metadata=metadata) for name, (text, metadata) in VERSIONS.items()])
        yield index


def names(hits):
    return [hit.doc_ids[0] for hit in hits]


def test_what_is_later_is_left_out_and_what_is_superseded_comes_last(index):
    assert names(index.search(QUESTION))[0] == "old"
    hits = index.search(QUESTION, as_of="2026-06-01")
    assert {*names(hits)} == {*VERSIONS}
    assert names(hits)[-1] == "old"
    assert [hit.path[-1].note for hit in hits if hit.path[-1].step == "superseded"] == [
        "superseded by limits.md of 2026-02-01; this one is of 2025-03-01"
    ]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert "old" not in names(index.search(QUESTION, 2, as_of="2026-06-01"))
    earlier = index.search(QUESTION, as_of=date(2025, 12, 31))
    assert names(earlier)[0] == "old"
    assert {*names(earlier)} == {"old", "undated"}
    assert not any(step.step == "superseded" for hit in earlier for step in hit.path)


@pytest.mark.parametrize("day", ["2026-02-01", "2026-02", "2026", datetime(2026, 2, 1, 18, tzinfo=timezone.utc)])
def test_a_day_includes_its_hours(index, day):
    assert {*names(index.search(QUESTION, as_of=day))} == {*VERSIONS}
    assert "other" not in names(index.search(QUESTION, as_of="2026-02-01T08:00"))


def test_only_what_a_filter_shows_supersedes(index):
    hits = index.search(QUESTION, as_of="2026-06-01", filter="updated < 2026-01-01")
    assert [[step.step for step in hit.path].count("superseded") for hit in hits] == [0]
    assert names(index.search(QUESTION, filter="updated >= 2026-01-01")) == ["new"]


def test_explanations_and_snapshots_know_the_day(index):
    assert "superseded by limits.md of 2026-02-01" in index.explain(QUESTION, as_of="2026-06-01")
    assert names(index.snapshot(as_of="2026-06-01").search(QUESTION, 4))[-1] == "old"
    assert len(index.show(QUESTION, as_of="2025-12-31").hits) == 2
    assert [len(hits) for hits in index.search_many([QUESTION, "exports"], as_of="2025-12-31")] == [2, 2]


@pytest.mark.parametrize("day", ["tomorrow", "01.02.2026", 2026, "", "2024-13-45", "2023-02-29", "2024-99", "0000"])
def test_what_is_no_date_is_refused(index, day):
    with pytest.raises(QueryError, match="as_of is a date"):
        index.search(QUESTION, as_of=day)


def test_retrievers_take_the_day():
    theirs = [LangChainDocument(text, id=name, metadata=meta) for name, (text, meta) in VERSIONS.items()]
    retriever = langchain_sire.SireRetriever.from_documents(theirs, k=9)
    assert [document.id for document in retriever.invoke(QUESTION)][-1] != "old"
    assert [document.id for document in retriever.invoke(QUESTION, as_of="2026-06-01")][-1] == "old"
    assert len(retriever.as_retriever(as_of=date(2025, 12, 31), k=9).invoke(QUESTION)) == 2
    nodes = [
        TextNode(id_=name, text=text, metadata=json.loads(json.dumps(meta, default=str)))
        for name, (text, meta) in VERSIONS.items()
    ]
    engine = llama_index_sire.SireRetriever.from_documents(nodes, similarity_top_k=9, as_of="2026-06-01")
    assert [node.node.node_id for node in engine.retrieve(QUESTION)][-1] == "old"
    similar = engine.as_retriever(scores="similarity", as_of="2025-12-31")
    assert {node.node.node_id for node in similar.retrieve(QUESTION)} == {"old", "undated"}


def langchain_documents():
    return [LangChainDocument(text, id=name, metadata=meta) for name, (text, meta) in VERSIONS.items()]


def test_a_vector_store_takes_the_day():
    embedding = DeterministicFakeEmbedding(size=16)
    store = langchain_sire.SireVectorStore.from_documents(langchain_documents(), embedding)
    assert [document.id for document in store.similarity_search(QUESTION, 9, as_of="2026-06-01")][-1] == "old"
    near = store.similarity_search_by_vector(embedding.embed_query(QUESTION), 9, as_of="2025-12-31")
    assert {document.id for document in near} == {"old", "undated"}
    assert len(store.as_retriever(search_kwargs={"as_of": "2025-12-31", "k": 9}).invoke(QUESTION)) == 2


ANSWER = lambda _: "So the answer is: 500."  # noqa: E731
MARK = "(superseded by limits.md of 2026-02-01; this one is of 2025-03-01) "


def call(index, name, **arguments):
    async def tell(_):
        pass

    return run_sync(IndexTools(index).call(name, arguments, tell))


def test_tools_take_the_day_and_mark_what_is_superseded(index):
    blocks = call(index, "search", query=QUESTION, as_of="2026-06-01").split("\n\n")
    assert re.match(rf"\[old\] \(passage \w+\) {re.escape(MARK)}The rate limit is 100", blocks[-1])
    assert len(call(index, "search", query=QUESTION, as_of="2025-12-31").split("\n\n")) == 2
    assert "superseded by" in call(index, "explain", query=QUESTION, as_of="2026-06-01")
    answered = call(index, "ask", question=QUESTION, as_of="2026-06-01")
    assert f"[old] {MARK}" in answered
    assert "superseded" not in call(index, "ask", question=QUESTION, as_of="2025-12-31")
    with pytest.raises(QueryError, match="as_of is a date"):
        call(index, "search", query=QUESTION, as_of="yesterday")


def test_tools_of_the_frameworks_take_the_day(index):
    text = langchain_sire.create_sire_tool(index).invoke({"query": QUESTION, "as_of": "2026-06-01"})
    assert text.split("\n\n")[-1].startswith(f"[old] {MARK}")
    theirs = llama_index_sire.create_sire_tool(index)
    assert str(theirs.call(query=QUESTION, as_of="2026-06-01")).split("\n\n")[-1].startswith(f"[old] {MARK}")
    assert "[new]" not in str(theirs.call(query=QUESTION, as_of="2025-12-31"))


def test_chains_and_engines_take_the_day_of_their_retriever_or_of_a_call(index):
    def ids(documents):
        return [document.metadata["sire"]["doc_ids"][0] for document in documents]

    retriever = langchain_sire.SireRetriever(index=index, as_of="2025-12-31")
    ours = langchain_sire.IRCoTRetriever(index=index, llm=ScriptedModel(ANSWER), as_of="2025-12-31")
    assert {*ids(ours.invoke(QUESTION))} == {"old", "undated"}
    assert ids(ours.invoke(QUESTION, as_of="2026-06-01"))[-1] == "old"
    chain = langchain_sire.create_ircot_chain(retriever, ScriptedModel(ANSWER))
    assert {*ids(chain.invoke(QUESTION)["documents"])} == {"old", "undated"}
    assert len(chain.invoke(QUESTION, as_of="2026-06-01")["documents"]) == 4
    theirs = llama_index_sire.SireRetriever(index, as_of="2025-12-31")
    engine = llama_index_sire.IRCoTQueryEngine(theirs, llm=ScriptedModel(ANSWER))
    assert {node.node.ref_doc_id for node in engine.query(QUESTION).source_nodes} == {"old", "undated"}


def test_the_terminal_answers_as_of_a_day(index, tmp_path):
    index.save(tmp_path / "index")
    result = run("ask", tmp_path / "index", QUESTION, "--as-of", "2026-06-01", "--json")
    assert [hit["doc_ids"][0] for hit in json.loads(result.stdout)["hits"]][-1] == "old"
    assert "500" not in run("ask", tmp_path / "index", QUESTION, "--as-of", "2025-12-31").stdout


def test_files_are_versions_by_the_source_or_address_that_their_front_matter_names(tmp_path):
    for name, source, day, limit in (
        ("a.md", "source: limits", "2025-03-01", 100),
        ("b.md", "source: limits", "2026-02-01", 500),
        ("c.md", "source: crawl\nurl: http://a.example/1", "2025-03-01", 7),
        ("d.md", "source: crawl\nurl: http://a.example/2", "2026-02-01", 8),
    ):
        (tmp_path / name).write_text(f"---\n{source}\nupdated: {day}\n---\nThe rate limit is {limit} requests.\n")
    with indexed(read_documents(tmp_path).documents, recipe="sire") as index:
        hits = index.search(QUESTION, as_of="2026-06-01")
    assert [hit.doc_ids[0] for hit in hits if hit.path[-1].step == "superseded"] == ["a.md"]


DOCUMENTS = [
    Document(f"{tenant}{i}", f"Alma {i} met Boris {tenant} in Ceuta.", metadata={"tenant": tenant})
    for tenant in "ab"
    for i in range(4)
]


@pytest.mark.parametrize("recipe", ["flat", "smart", "sirerag"])
def test_hidden_and_unknown_hits(tmp_path, recipe):
    with indexed(DOCUMENTS, tmp_path / "ix", recipe=recipe, embedder=HashEmbedder()) as index:
        all_hits = index.search("Who met Boris?", 20, returns="units")
        assert index.snapshot().size
        question, vectors = run_sync(index.snapshot().vectors("Who met Boris?", all_hits))
        assert vectors.shape == (len(all_hits), len(question))
    with Index(tmp_path / "ix", recipe=recipe, embedder=HashEmbedder(), allow="tenant=a") as index:
        snapshot = index.snapshot()
        own = snapshot.search("Who met Boris?", 20, returns="units")
        assert len(run_sync(snapshot.vectors("Who met Boris?", own))[1]) == len(own)
        run_sync(snapshot.background(own))
        hidden = [hit for hit in all_hits if hit.unit.id not in {found.unit.id for found in own}]
        unknown = replace(own[0], unit=replace(own[0].unit, id="none"))
        assert hidden
        for hit in (*hidden, unknown):
            for ask in (snapshot.vectors("Who met Boris?", [hit]), snapshot.background([own[0], hit])):
                with pytest.raises(QueryError, match="is no unit of this snapshot"):
                    run_sync(ask)
