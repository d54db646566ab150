"""Dated documents: what was known on a day, and superseded versions."""

import json
from datetime import date, datetime, timezone

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import TextNode

import langchain_sire
import llama_index_sire
from sire_core import Document, Index
from sire_core.errors import QueryError

VERSIONS = {
    "old": ("The rate limit is 100 requests per minute.", {"source": "limits.md", "updated": "2025-03-01"}),
    "new": ("A minute now has room for 500 requests.", {"source": "limits.md", "updated": date(2026, 2, 1)}),
    "other": ("The rate limit of exports is 5 requests.", {"source": "exports.md", "date": "2026-02-01T17:30:00"}),
    "undated": ("Requests are counted per tenant.", {"source": "limits.md"}),
}
QUESTION = "What is the rate limit of requests per minute?"


@pytest.fixture
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
        "limits.md has a version of 2026-02-01; this one is of 2025-03-01"
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
    assert "superseded: limits.md has a version of 2026-02-01" in index.explain(QUESTION, as_of="2026-06-01")
    assert names(index.snapshot(as_of="2026-06-01").search(QUESTION, 4))[-1] == "old"
    assert len(index.show(QUESTION, as_of="2025-12-31").hits) == 2
    assert [len(hits) for hits in index.search_many([QUESTION, "exports"], as_of="2025-12-31")] == [2, 2]


@pytest.mark.parametrize("day", ["tomorrow", "01.02.2026", 2026, ""])
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
