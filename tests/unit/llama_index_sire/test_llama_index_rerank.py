"""`SireRerank`: what a language model's numbers do to the order of nodes, and what leaves it alone."""

import asyncio
import json

import pytest
from llama_index.core import Settings
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llama_index_sire import SireRerank, SireRetriever
from sire_core.errors import ConfigurationError, LimitExceededError
from sire_core.testing.doubles import ScriptedModel
from support.llama_index_models import ChatLLM


class BrokenLLM(ChatLLM):
    @llm_chat_callback()
    def chat(self, messages, **kwargs):
        raise ConnectionError("the server is down")


class SpentModel(ScriptedModel):
    async def complete(self, prompt, **kwargs):
        raise LimitExceededError("no calls left")


@pytest.fixture
def nodes():
    return [
        NodeWithScore(node=TextNode(id_=name, text=f"about {name}"), score=1 - i / 10) for i, name in enumerate("abcd")
    ]


def ids(nodes):
    return [found.node.node_id for found in nodes]


def test_the_model_picks_and_scores_stay_with_the_places(nodes):
    llm = ChatLLM(answer="2#0")
    result = SireRerank(llm=llm).postprocess_nodes(nodes, query_str="Which?")
    assert ids(result) == ["c", "a", "b", "d"]
    assert [found.score for found in result] == [found.score for found in nodes]
    assert ids(nodes) == ["a", "b", "c", "d"], "the caller's nodes are untouched"
    asked = "\n".join(message.content for message in llm._prompts[0][0])
    data = json.loads(asked.partition("<data>\n")[2].partition("\n</data>")[0])
    assert data["question"] == "Which?"
    assert data["passages"] == [{"number": n, "text": f"about {name}"} for n, name in enumerate("abcd")]


def test_pool_limits_what_the_model_sees_and_top_n_what_comes_back(nodes):
    llm = ChatLLM(answer="1#3#0")
    result = SireRerank(llm=llm, pool=2, top_n=3).postprocess_nodes(nodes, query_str="Which?")
    assert ids(result) == ["b", "a", "c"]
    assert "about c" not in llm._prompts[0][0][-1].content


async def test_async_equals_sync_also_inside_a_running_loop(nodes):
    rerank = SireRerank(llm=ChatLLM(answer="3"), top_n=2)
    result = await rerank.apostprocess_nodes(nodes, query_bundle=QueryBundle("Which?"))
    assert ids(result) == ["d", "a"]
    assert rerank.postprocess_nodes(nodes, query_str="Which?") == result
    many = await asyncio.gather(*(rerank.apostprocess_nodes(nodes, query_str="Which?") for _ in range(5)))
    assert many == [result] * 5


def test_without_a_model_or_a_question_the_order_stays(nodes):
    llm = ChatLLM(answer="3")
    assert ids(SireRerank().postprocess_nodes(nodes, query_str="Which?")) == ["a", "b", "c", "d"]
    assert ids(SireRerank(llm=llm, top_n=2).postprocess_nodes(nodes)) == ["a", "b"]
    assert SireRerank(llm=llm).postprocess_nodes([], query_str="Which?") == []
    assert ids(SireRerank(llm=llm).postprocess_nodes(nodes[:1], query_str="Which?")) == ["a"]
    assert not llm._prompts


def test_a_failing_call_keeps_the_order_and_says_so(nodes, caplog):
    result = SireRerank(llm=BrokenLLM(), top_n=3).postprocess_nodes(nodes, query_str="Which?")
    assert ids(result) == ["a", "b", "c"]
    assert "the server is down" in caplog.text


def test_a_spent_limit_is_not_swallowed(nodes):
    with pytest.raises(LimitExceededError):
        SireRerank(llm=SpentModel()).postprocess_nodes(nodes, query_str="Which?")


def test_arguments(nodes):
    Settings.llm = ChatLLM(answer="1")
    assert ids(SireRerank(llm="settings").postprocess_nodes(nodes, query_str="?")) == ["b", "a", "c", "d"]
    with pytest.raises(ConfigurationError, match="'settings' or None"):
        SireRerank(llm="gpt")
    for wrong in ({"top_n": 0}, {"pool": 0}):
        with pytest.raises(ValueError, match="greater than or equal to 1"):
            SireRerank(**wrong)
    assert SireRerank.class_name() == "SireRerank"
    saved = SireRerank(llm=ChatLLM(), top_n=3).to_dict()
    assert (saved["class_name"], saved["top_n"], "llm" in saved) == ("SireRerank", 3, False)


def test_a_saved_rerank_says_that_its_model_was_not_saved(nodes):
    for restored in (
        SireRerank.from_dict(SireRerank(llm=ChatLLM(answer="1"), top_n=3).to_dict()),
        SireRerank.from_json(SireRerank(llm=ChatLLM(answer="1"), top_n=3).to_json()),
    ):
        with pytest.raises(ConfigurationError, match=r"restored without its model.*llm="):
            restored.postprocess_nodes(nodes, query_str="Which?")
    again = SireRerank.from_dict(SireRerank(llm=ChatLLM()).to_dict(), llm=ChatLLM(answer="1"))
    assert ids(again.postprocess_nodes(nodes, query_str="Which?")) == ["b", "a", "c", "d"]
    plain = SireRerank.from_dict(SireRerank(top_n=2).to_dict())
    assert ids(plain.postprocess_nodes(nodes, query_str="Which?")) == ["a", "b"], "it had no model"


def test_in_a_query_engine(index_of, question):
    retriever = SireRetriever(index_of("flat"), similarity_top_k=4)
    before = ids(retriever.retrieve(question))
    llm = ChatLLM(answer="2#1")
    engine = RetrieverQueryEngine.from_args(retriever, llm=llm, node_postprocessors=[SireRerank(llm=llm, top_n=2)])
    assert ids(engine.query(question).source_nodes) == [before[2], before[1]]
