"""The kinds of search of vector stores, on the retriever itself; where a document came from; self-query."""

import pytest
from langchain_classic.retrievers.self_query.base import SelfQueryRetriever
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.structured_query import Comparator, Comparison, Operation, Operator, StructuredQuery

from langchain_sire import IRCoTRetriever, SireRetriever, SireTranslator, SireVectorStore
from sire_core.errors import ConfigurationError

WALLS = ["The harbour wall is granite.", "The harbour wall is of granite stone.", "Granite is the harbour wall."]
TEXTS = [*WALLS, "The tower of the mill has a clock.", "A ferry leaves the harbour at noon."]
YEARS = [1990, 1995, 2000, 2005, 2010]


@pytest.fixture(scope="module")
def store() -> SireVectorStore:
    documents = [
        Document(text, id=f"d{i}", metadata={"year": year, "kind": "wall" if i < 3 else "other", "tags": [f"t{i}"]})
        for i, (text, year) in enumerate(zip(TEXTS, YEARS, strict=True))
    ]
    return SireVectorStore.from_documents(documents)


@pytest.mark.parametrize(
    ("search_type", "kwargs"),
    [
        ("mmr", {"k": 3, "fetch_k": 5, "lambda_mult": 0.1}),
        ("mmr", {"k": 2}),
        ("mmr", {"k": 3, "filter": "year < 2006"}),
        ("similarity_score_threshold", {"k": 5, "score_threshold": 0.4}),
        ("similarity_score_threshold", {"k": 5, "score_threshold": 0.4, "filter": {"kind": "other"}}),
        ("similarity", {"k": 2}),
    ],
)
async def test_a_retriever_searches_as_a_store_does(store, search_type, kwargs):
    query = "granite harbour wall"
    ours = store.documents.as_retriever(search_type=search_type, search_kwargs=kwargs)
    theirs = store.as_retriever(search_type=search_type, search_kwargs=kwargs)
    expected = [document.id for document in theirs.invoke(query)]
    assert [document.id for document in ours.invoke(query)] == expected
    assert [document.id for document in await ours.ainvoke(query)] == expected


def test_kinds_of_search_select(store):
    query = "granite harbour wall"
    best = [d.id for d in store.documents.invoke(query, k=3)]
    assert set(best) == {"d0", "d1", "d2"}
    diverse = store.documents.as_retriever(search_type="mmr", search_kwargs={"k": 3, "lambda_mult": 0.0})
    assert {d.id for d in diverse.invoke(query)} - set(best)
    near = store.documents.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"k": 5, "score_threshold": 0.6}
    )
    assert {d.id for d in near.invoke(query)} <= set(best)
    assert all(0.6 <= d.metadata["sire"]["score"] <= 1 for d in near.invoke(query))
    assert SireRetriever.open(search_type="mmr").invoke(query) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"search_type": "best"}, "search_type is one of similarity, mmr"),
        ({"search_kwargs": {"fetch_k": 9}}, "fetch_k has no effect without search_type='mmr'"),
        ({"search_type": "mmr", "search_kwargs": {"score_threshold": 0.3}}, "score_threshold has no effect"),
        ({"search_type": "similarity_score_threshold"}, "needs search_kwargs"),
        ({"search_type": "similarity_score_threshold", "search_kwargs": {"score_threshold": 1.5}}, "from 0 to 1"),
        ({"search_type": "mmr", "search_kwargs": {"lambda_mult": 2}}, "lambda_mult is a number"),
        ({"search_type": "mmr", "search_kwargs": {"fetch_k": 0}}, "fetch_k must be at least 1"),
    ],
)
def test_impossible_searches_are_refused(store, fields, message):
    with pytest.raises(ConfigurationError, match=message):
        SireRetriever(index=store.documents.index, **fields)


def test_reasoning_has_no_search_type(store):
    with pytest.raises(ConfigurationError, match="IRCoTRetriever merges several searches"):
        IRCoTRetriever(index=store.documents.index, search_type="mmr")


THRESHOLD = {"search_type": "similarity_score_threshold", "search_kwargs": {"score_threshold": 0.0, "k": 3}}


@pytest.mark.parametrize(
    ("built", "given", "expected"),
    [
        ({"max_tokens": 40}, {}, {"max_tokens": 40}),
        ({"max_tokens": 40}, {"max_tokens": None}, {}),
        ({"max_tokens": 40}, {"search_type": "mmr"}, {"search_type": "mmr"}),
        ({"search_type": "mmr", "search_kwargs": {"lambda_mult": 0.0}}, {}, {"search_type": "mmr", "lambda_mult": 0.0}),
        ({"search_type": "mmr"}, {"search_kwargs": {"k": 2}}, {"search_type": "mmr", "k": 2}),
        ({"search_type": "mmr"}, {"max_tokens": 9}, {"max_tokens": 9}),
        (THRESHOLD, {}, {"search_type": "similarity_score_threshold", "score_threshold": 0.0, "k": 3}),
        (THRESHOLD, {"k": 2, "search_type": "similarity"}, {"k": 2}),
        ({"k": 5, "returns": "units", "as_of": "2026-01-31"}, {"k": 1}, {"k": 1, "returns": "units"}),
    ],
)
def test_a_folder_stores_all_options_of_a_search(tmp_path, caplog, built, given, expected):
    SireRetriever.from_documents([Document("A harbour.")], path=tmp_path, recipe="flat", **built).index.close()
    retriever = SireRetriever.load(tmp_path, **given)
    options = {**retriever.asked({}), "search_type": retriever.search_type, **retriever.search_options()}
    defaults = {"k": 4, "filter": None, "returns": "passages", "max_tokens": None, "search_type": "similarity"}
    assert {name: value for name, value in options.items() if name != "as_of"} == {**defaults, **expected}
    assert ("search_type=" in caplog.text) == (
        "search_type" in built.keys() - given.keys() and "max_tokens" not in given
    )
    retriever.index.close()
    assert IRCoTRetriever.load(tmp_path, max_tokens=5).max_tokens == 5


def test_reasoning_leaves_out_a_stored_search_type(tmp_path):
    SireRetriever.from_documents([Document("A harbour.")], path=tmp_path, recipe="flat", **THRESHOLD).index.close()
    assert IRCoTRetriever.load(tmp_path).search_type == "similarity"


def test_a_store_tells_where_documents_come_from_when_asked(store):
    plain = store.similarity_search("granite", k=1)[0]
    told = SireVectorStore(documents=store.documents, provenance=True)
    documents = [
        told.similarity_search("granite", k=1)[0],
        told.similarity_search_with_score("granite", k=1)[0][0],
        told.as_retriever(search_type="mmr", search_kwargs={"k": 1}).invoke("granite")[0],
    ]
    assert "sire" not in plain.metadata
    for document, relevance in told.similarity_search_with_relevance_scores("granite", k=3):
        assert document.metadata["sire"]["score"] == relevance
    for document in documents:
        assert document.metadata["sire"]["doc_ids"] == [document.id] == [plain.id]
        assert document.metadata["sire"]["path"]


def compare(comparator: Comparator, attribute: str, value: object) -> Comparison:
    return Comparison(comparator=comparator, attribute=attribute, value=value)


@pytest.mark.parametrize(
    ("directive", "ids"),
    [
        (compare(Comparator.EQ, "kind", "wall"), {"d0", "d1", "d2"}),
        (compare(Comparator.NE, "kind", "wall"), {"d3", "d4"}),
        (compare(Comparator.GTE, "year", 2005), {"d3", "d4"}),
        (compare(Comparator.IN, "year", [1990, 2010]), {"d0", "d4"}),
        (compare(Comparator.NIN, "year", [1990, 2010]), {"d1", "d2", "d3"}),
        (compare(Comparator.CONTAIN, "tags", "t4"), {"d4"}),
        (
            Operation(
                operator=Operator.AND,
                arguments=[
                    compare(Comparator.LT, "year", 2005),
                    Operation(operator=Operator.NOT, arguments=[compare(Comparator.LTE, "year", 1990)]),
                ],
            ),
            {"d1", "d2"},
        ),
        (
            Operation(
                operator=Operator.OR,
                arguments=[compare(Comparator.EQ, "year", 1990), compare(Comparator.GT, "year", 2005)],
            ),
            {"d0", "d4"},
        ),
        (None, {"d0", "d1", "d2", "d3", "d4"}),
    ],
)
def test_self_query_filters(store, directive, ids):
    wanted = StructuredQuery(query="harbour", filter=directive, limit=None)
    retriever = SelfQueryRetriever(
        query_constructor=RunnableLambda(lambda _: wanted),
        vectorstore=store,
        structured_query_translator=SireTranslator(),
        search_kwargs={"k": 10},
    )
    assert {document.id for document in retriever.invoke("harbour")} == ids


@pytest.mark.parametrize("rerank", ["onnx:none/there", "colbert:none/there"])
def test_a_reranker_by_keyword_is_the_cross_encoder(rerank, tmp_path):
    SireRetriever.from_documents([Document("A harbour.")], path=tmp_path, recipe="sire").index.close()
    for retriever in (SireRetriever.open(recipe="sire", rerank=rerank), SireRetriever.load(tmp_path, rerank=rerank)):
        config = retriever.index._configuration.recipe.config
        assert (config["rerank"], config["cross_encoder"]) == ("cross_encoder", rerank)
    with pytest.raises(ConfigurationError, match="Name one of the two"):
        SireRetriever.open(recipe="sire", rerank=rerank, cross_encoder="another")
