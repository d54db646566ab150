"""Two tenants in one index: no word of the other, by whichever way LlamaIndex asks, under `allow=` and under filters."""

import gc
import json

import pytest
from llama_index.core import Settings
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms.mock import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.retrievers import QueryFusionRetriever, RecursiveRetriever, RouterRetriever
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import RetrieverTool
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler

from llama_index_sire import (
    IRCoTQueryEngine,
    SelfAskQueryEngine,
    SingleQueryEngine,
    SireMemoryBlock,
    SireRerank,
    SireRetriever,
    create_sire_answer_tool,
    create_sire_tool,
)
from sire_core import Document, Index, recipes
from support.llama_index_models import ChatLLM

# LlamaIndex's `Memory`, which chat engines have, never closes the connection of its store.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
RECIPES = [
    name if name in ("sire", "sirerag") else pytest.param(name, marks=pytest.mark.slow)
    for name in sorted(recipes.REGISTRY)
]
SECRETS = {"a": "marzipan", "b": "quicksilver"}
PEOPLE = [("Petra Quillon", "Varn Harbour"), ("Ilse Marrable", "Lindlemouth"), ("Maren Holt", "Hathersay")]
QUESTION = "Who runs the works that Otto Brack knows?"
EVERYTHING = {"or": [{"tenant": "a"}, {"tenant": "b"}]}


def documents(first=0):
    """Both tenants speak of the same people, so that every kind of derived unit would like to mix them."""
    said = "{name} runs the {secret} works in {place}. {name} has known Otto Brack since {place} was founded."
    return [
        Document(
            f"{tenant}-{number}",
            said.format(name=name, place=place, secret=SECRETS[tenant]),
            name,
            {"tenant": tenant, f"only_{tenant}": f"{SECRETS[tenant]} {number}"},
        )
        for number, (name, place) in enumerate(PEOPLE, first)
        for tenant in SECRETS
    ]


def nodes():
    return [TextNode(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in documents()]


def only(tenant):
    return MetadataFilters(filters=[MetadataFilter(key="tenant", value=tenant)])


def nodes_of(found):
    return [(each.node.get_content(), dict(each.node.metadata), each.node.metadata.get("sire_path")) for each in found]


def response_of(response, llm):
    return [str(response), nodes_of(response.source_nodes), repr(response.metadata), said_to(llm)]


def said_to(llm):
    return [message.content for messages, _ in llm._prompts for message in messages]


def by_engine(make):
    def shown(retriever):
        llm = ChatLLM()
        return response_of(make(retriever, llm).query(QUESTION), llm)

    return shown


def by_chat(retriever):
    llm = ChatLLM(answer="No.")
    return response_of(retriever.as_chat_engine("context", llm=llm).chat(QUESTION), llm)


def by_router(retriever):
    tools = [RetrieverTool.from_defaults(retriever, description="documents")]
    choice = json.dumps([{"choice": 1, "reason": "it is the only one"}])
    return nodes_of(RouterRetriever(LLMSingleSelector.from_defaults(ChatLLM(answer=choice)), tools).retrieve(QUESTION))


def by_fusion(retriever):
    parts = [retriever, retriever.as_retriever(returns="units"), retriever.as_retriever(scores="similarity")]
    return nodes_of(QueryFusionRetriever(parts, llm=ChatLLM(), num_queries=1, use_async=False).retrieve(QUESTION))


def by_postprocessors(retriever):
    llm = ChatLLM(answer='{"order": [2, 1]}')
    found = SireRerank(llm=llm).postprocess_nodes(retriever.retrieve(QUESTION), QueryBundle(QUESTION))
    return [nodes_of(SimilarityPostprocessor(similarity_cutoff=0.0).postprocess_nodes(found)), said_to(llm)]


def by_tool(retriever):
    tool = create_sire_tool(retriever)
    answers = [tool(query=QUESTION), tool(query=QUESTION, filter=EVERYTHING), tool(query=QUESTION, filter={"no": 1})]
    shown = [(answer.content, nodes_of(answer.raw_output)) for answer in answers]
    return [shown, json.dumps(tool.metadata.get_parameters_dict())]


def by_answer_tool(retriever):
    llm = ChatLLM()
    tool = create_sire_answer_tool(retriever, llm, cite_key="only_b")
    answer = tool(question=QUESTION, filter=EVERYTHING, show_steps=True)
    return [answer.content, response_of(answer.raw_output, llm)]


async def by_memory(retriever):
    return await SireMemoryBlock(retriever=retriever).aget([ChatMessage(role="user", content=QUESTION)])


async def by_await(retriever):
    return nodes_of(await retriever.aretrieve(QUESTION))


WAYS = {
    "retrieve": lambda r: nodes_of(r.retrieve(QUESTION)),
    "aretrieve": by_await,
    "units": lambda r: nodes_of(r.as_retriever(returns="units").retrieve(QUESTION)),
    "wider": lambda r: nodes_of(r.as_retriever(filters=EVERYTHING).retrieve(QUESTION)),
    "query engine": by_engine(lambda r, llm: r.as_query_engine(llm=llm)),
    "tree summarize": by_engine(lambda r, llm: r.as_query_engine(llm=llm, response_mode="tree_summarize")),
    "single": by_engine(lambda r, llm: SingleQueryEngine(r, llm=llm)),
    "ircot": by_engine(lambda r, llm: IRCoTQueryEngine(r, llm=llm)),
    "self-ask": by_engine(lambda r, llm: SelfAskQueryEngine(r, llm=llm)),
    "chat": by_chat,
    "fusion": by_fusion,
    "router": by_router,
    "recursive": lambda r: nodes_of(RecursiveRetriever("root", {"root": r}).retrieve(QUESTION)),
    "postprocessors": by_postprocessors,
    "tool": by_tool,
    "answer tool": by_answer_tool,
    "memory": by_memory,
}


class Events(BaseEventHandler):
    """Everything that traces are told."""

    seen: list

    def handle(self, event, **kwargs):
        self.seen.append(repr(event))


@pytest.fixture
def events():
    handler, root = Events(seen=[]), get_dispatcher()
    root.event_handlers.append(handler)
    yield handler.seen
    gc.collect()
    root.event_handlers[:] = [each for each in root.event_handlers if each is not handler]


@pytest.fixture(autouse=True)
def llm(fresh_settings):
    Settings.llm = MockLLM()  # some classes of LlamaIndex look for one, and do not ask it


@pytest.fixture(scope="module", params=RECIPES)
def folder(request, tmp_path_factory):
    place = tmp_path_factory.mktemp("tenants") / "ix"
    SireRetriever.from_documents(nodes(), persist_dir=place, recipe=request.param).index.close()
    return place


def of_index(folder, tenant):
    return SireRetriever(Index(folder, allow={"tenant": tenant}), similarity_top_k=40)


def of_filter(folder, tenant):
    return SireRetriever(Index(folder), filters=only(tenant), similarity_top_k=40)


def shows_only(shown, tenant):
    """Whether a tenant's secret is shown, and no word of the other tenant."""
    (other,) = set(SECRETS) - {tenant}
    text = repr(shown).replace("only_b", "") if tenant == "a" else repr(shown)  # what a tool was told to cite by
    return SECRETS[tenant] in text and not any(word in text for word in (SECRETS[other], f"'{other}-", f"[{other}-"))


@pytest.mark.quick(tenant=["a"])
@pytest.mark.parametrize("tenant", SECRETS)
@pytest.mark.parametrize("guarded", [of_index, of_filter])
async def test_no_word_of_another_tenant(folder, guarded, tenant, events):
    retriever = guarded(folder, tenant)
    for way in WAYS.values():
        shown = way(retriever)
        assert shows_only(await shown if hasattr(shown, "__await__") else shown, tenant)
    assert shows_only(events, tenant)
    retriever.index.close()


def test_mixed_units_exist_so_that_the_test_can_fail():
    found = SireRetriever.from_documents(nodes(), recipe="sirerag", returns="units", similarity_top_k=60).retrieve(
        "Otto"
    )
    assert any({"a", "b"} <= {name[0] for name in n.metadata["sire_doc_ids"]} for n in found)


@pytest.mark.parametrize("tenant", SECRETS)
def test_what_waits_is_indexed_and_hidden_like_the_rest(tmp_path, tenant):
    pytest.importorskip("langchain_core")  # absent where LlamaIndex is tested alone
    from langchain_core.documents import Document as Given

    import langchain_sire

    place = tmp_path / "ix"
    SireRetriever.from_documents(nodes(), persist_dir=place, recipe="sire").index.close()
    mine = of_index(place, tenant)
    waiting = [Given(d.text, id=d.id, metadata={"title": d.title, **d.metadata}) for d in documents(first=7)]
    langchain_sire.SireRetriever.open(place).upsert(waiting)
    assert [document.id[0] for document in mine.index.documents()] == [tenant] * 6
    for way in ("retrieve", "fusion", "tool"):
        assert shows_only(WAYS[way](mine), tenant)
    assert f"{tenant}-8" in repr(WAYS["tool"](mine))
    (other,) = set(SECRETS) - {tenant}
    mine.delete_ref_doc(f"{other}-0")
    mine.delete_nodes([f"{other}-1"])
    assert set(mine.ref_doc_info) == {f"{tenant}-{n}" for n in (0, 1, 2, 7, 8, 9)}
    with Index(place) as index:
        assert len(index.documents()) == 12
