"""`allow`: what a role may not see comes through no search, tool, prompt, count or export of any recipe or adapter."""

import asyncio
import pickle
import shutil

import numpy as np
import pytest
from langchain_core.documents import Document as LangChainDocument

from langchain_sire import (
    IRCoTRetriever,
    SelfAskRetriever,
    SireRetriever,
    SireVectorStore,
    create_ircot_chain,
    create_sire_answer_tool,
    create_sire_tool,
    pool_documents,
)
from sire_core import Document, Index
from sire_core.errors import ConfigurationError, QueryError
from sire_core.explore.export import to_networkx
from sire_core.models.sync import run_sync
from sire_core.recipes import REGISTRY
from sire_core.serve.tools import IndexTools
from sire_core.testing.doubles import HashEmbedder, ScriptedModel

CANARY = "Zorbleflux"
RECIPES = sorted(REGISTRY)
WIDENING = [
    None,
    "tenant=b",
    {"or": [{"tenant": "a"}, {"tenant": "b"}]},
    {"not": {"tenant": "a"}},
    {"tenant": {"nin": ["a"]}},
    {"tenant": {"exists": True}},
    "number>=0",
]
QUESTIONS = ["Who founded the mill in Drava 3?", CANARY, "Kovac"]


def documents():
    return [
        Document(
            f"{tenant}{i}",
            f"{name} Kovac was born in Drava {i}. {name} Kovac founded the {word} mill in Ceuta in 19{i:02}.",
            title=f"{name} Kovac {i}",
            metadata={"tenant": tenant, "number": i, "secret" if tenant == "b" else "open": word},
        )
        for tenant, name, word in (("a", "Bela", "Amber"), ("b", "Cili", CANARY))
        for i in range(5)
    ]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """An index folder per recipe."""
    made = {}
    for recipe in RECIPES:
        made[recipe] = tmp_path_factory.mktemp("roles") / recipe
        with Index(made[recipe], recipe=recipe, embedder=HashEmbedder()) as index:
            index.build(documents())
    return made


def opened(folder, recipe):
    return Index(folder, recipe=recipe, embedder=HashEmbedder(), allow={"tenant": "a"})


def check(*shown):
    """No word and no id of tenant b, apart from the question's own."""
    text = " ".join(map(repr, shown))
    assert CANARY not in text
    assert "Cili" not in text
    assert "'b0'" not in text
    assert "secret" not in text


@pytest.mark.quick(recipe=["msrag", "sire", "sirerag"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_index_itself(folders, recipe):
    with opened(folders[recipe], recipe) as index:
        for question in QUESTIONS:
            for where in WIDENING:
                for returns in ("passages", "units"):
                    hits = index.search(question, 100, filter=where, returns=returns)
                    check(hits)
                    assert all(doc.startswith("a") for hit in hits for doc in hit.doc_ids)
                    assert not hits or where is None or where == "number>=0" or "a" in repr(where)
                check(index.explain(question, 50, filter=where).replace(question, ""))
        assert len(index.search(QUESTIONS[0], 100, returns="passages")) == 5
        check(index.documents(), index.documents(["a0", "b0"]), index.snapshot().metadata())
        assert index.documents(["b0"]) == []
        assert index.snapshot().document_ids() == [f"a{i}" for i in range(5)]
        stats = index.stats()
        assert (stats["documents"], stats["passages"]) == (5, 5)
        with Index(folders[recipe], recipe=recipe, embedder=HashEmbedder()) as everything:
            assert everything.stats()["documents"] == 10
            assert stats["units"] < everything.stats()["units"]
        with pytest.raises(ConfigurationError, match="allow"):
            index.view()


@pytest.mark.quick(recipe=["msrag", "sire", "sirerag"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_prompts_pages_and_what_is_read_of_the_build(folders, recipe):
    model = ScriptedModel()

    async def quiet(_):
        return None

    with opened(folders[recipe], recipe) as index:
        tools = IndexTools(index, model)
        assert "5 documents" in tools.introduction()
        check(tools.introduction())
        with pytest.raises(QueryError, match="no document") as refused:
            asyncio.run(tools.call("fetch", {"doc_id": "b0"}, quiet))
        check(str(refused.value).replace("'b0'", ""))
        for via in ("single", "ircot", "self-ask"):
            asked = {"question": QUESTIONS[0], "via": via, "k": 20, "filter": {"tenant": {"exists": True}}}
            reply = asyncio.run(tools.call("ask", asked, quiet))
            check(reply)
        tool = create_sire_answer_tool(SireRetriever(index=index, k=20), model)
        check(tool.invoke({"query": QUESTIONS[0]}))
        assert model.log
        check([(call.instructions, call.data) for call in model.log])
        shown = index.show(QUESTIONS[0], 20)
        check(shown.html(), shown.svg())
        assert index.failures() == []
        with pytest.raises(ConfigurationError, match="allow"):
            index.spent()
        with pytest.raises(ConfigurationError, match="allow"):
            to_networkx(index.view())


@pytest.mark.parametrize("recipe", ["sire", "sirerag"])
def test_batches_copies_and_other_recipes(folders, recipe, tmp_path):
    with opened(folders[recipe], recipe) as index:
        for where in WIDENING:
            check(index.search_many(QUESTIONS, 50, filter=where), index.snapshot(filter=where).search(QUESTIONS[0], 50))
        check(index.using(recipe).search(QUESTIONS[0], 50), pickle.loads(pickle.dumps(index)).search(QUESTIONS[0], 50))
        snapshot = index.snapshot()
        assert snapshot.size == index.stats()["units"] == sum(snapshot.counts().kinds.values())
        check(run_sync(snapshot.nearest(np.ones(HashEmbedder().dimension, np.float32), 50)))
        with pytest.raises(ConfigurationError, match="allow"):
            index.save(tmp_path / "copy")
        with pytest.raises(ConfigurationError, match="allow"):
            index.reembed(tmp_path / "copy", HashEmbedder(16))
        assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("recipe", ["sire", "sirerag"])
def test_stores_and_reasoning_of_langchain(folders, recipe, tmp_path):
    shutil.copytree(folders[recipe], tmp_path / "i")
    with Index(tmp_path / "i", recipe=recipe, embedder=HashEmbedder()) as everything:
        waits = LangChainDocument(id="b9", page_content=f"Cili {CANARY}", metadata={"tenant": "b"})
        SireRetriever(index=everything).upsert([waits])
    model = ScriptedModel()
    with opened(tmp_path / "i", recipe) as index:
        documents = SireRetriever(index=index, k=50)
        assert documents.get(["b0", "b9"]) == []
        assert documents.delete(["b0", "b9"])["num_deleted"] == 0
        store = SireVectorStore(documents=documents)
        vector = run_sync(HashEmbedder().embed([CANARY]))[0].tolist()
        for where in WIDENING:
            check(
                documents.invoke(QUESTIONS[0], filter=where),
                create_sire_tool(documents).invoke({"query": QUESTIONS[0], "k": 50, "filter": where}),
                store.similarity_search_with_score(QUESTIONS[0], 50, filter=where),
                store.similarity_search_by_vector(vector, 50, filter=where),
                store.max_marginal_relevance_search(QUESTIONS[0], 50, filter=where),
                store.similarity_search_with_relevance_scores(QUESTIONS[0], 50, filter=where),
                IRCoTRetriever(index=index, k=50, llm=model, filter=where).invoke(QUESTIONS[0]),
                SelfAskRetriever(index=index, k=50, llm=model, filter=where).invoke(QUESTIONS[0]),
            )
        check(store.get_by_ids(["b0", "b9"]), create_ircot_chain(documents, model).invoke(QUESTIONS[0]))
        with pytest.raises(ConfigurationError, match="allow"):
            documents.save(tmp_path / "copy")
        with pytest.raises(ConfigurationError, match="allow"):
            list(pool_documents(index))
    assert model.log
    check([(call.instructions, call.data) for call in model.log])
    with Index(tmp_path / "i", recipe=recipe, embedder=HashEmbedder()) as everything:
        assert len(everything.documents(["b0", "b9"])) == 2, "what a role may not see it does not delete"
