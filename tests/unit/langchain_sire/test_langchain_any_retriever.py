"""Chains, graphs and tools over retrievers that are not ours."""

import json

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_reasoning import FOLLOW_UP, IRCOT, QUESTION, SELF_ASK
from langchain_scripted_chat import model

from langchain_sire import (
    create_ircot_chain,
    create_ircot_graph,
    create_self_ask_chain,
    create_self_ask_graph,
)
from sire_core.errors import ConfigurationError


class Words(BaseRetriever):
    """Ranks by shared words; notes what it was asked."""

    documents: list[Document]
    asked: list[str]
    k: int = 3

    def _get_relevant_documents(self, query, *, run_manager):
        self.asked.append(query)
        words = set(query.lower().rstrip("?").split())
        shared = [
            (-len(words & set(d.page_content.lower().rstrip(".").split())), n) for n, d in enumerate(self.documents)
        ]
        return [self.documents[n] for _, n in sorted(shared)[: self.k]]


@pytest.fixture
def words(documents):
    kept = [
        Document(id=f"chunk-{d.id}", page_content=d.page_content, metadata={"source": f"{d.id}.md", "page": number})
        for number, d in enumerate(documents)
    ]
    return Words(documents=kept, asked=[])


@pytest.mark.parametrize(("make", "script"), [(create_ircot_chain, IRCOT), (create_self_ask_chain, SELF_ASK)])
async def test_their_documents_come_back_as_they_are(words, make, script):
    result = make(words, model(*script), k=4).invoke(QUESTION)
    assert words.asked == [QUESTION, FOLLOW_UP]
    assert len(result["documents"]) == 4
    known = {document.id: document for document in words.documents}
    assert all(document == known[document.id] for document in result["documents"])
    assert result["answer"] == "In 1931 [1]"
    assert await make(words, model(*script), k=4).ainvoke(QUESTION) == result
    # Nobody can change the retriever's own documents through ours.
    result["documents"][0].metadata["page"] = "changed"
    assert known[result["documents"][0].id].metadata["page"] != "changed"


class Scored(Words):
    """Gives documents without ids, and says in their metadata how well they fit this question, as rerankers do."""

    def _get_relevant_documents(self, query, *, run_manager):
        found = super()._get_relevant_documents(query, run_manager=run_manager)
        return [
            Document(page_content=d.page_content, metadata={**d.metadata, "relevance_score": len(self.asked) + n / 10})
            for n, d in enumerate(found)
        ]


def test_a_passage_is_one_whatever_a_search_says_of_it(words):
    result = create_ircot_chain(Scored(documents=words.documents[:4], asked=[]), model(*IRCOT), k=6).invoke(QUESTION)
    texts = [document.page_content for document in result["documents"]]
    assert len(texts) == len(set(texts)) > 1
    assert all("relevance_score" in document.metadata for document in result["documents"])


def test_texts_that_are_alike_in_two_files_are_two(words):
    twice = [Document(page_content="The same words.", metadata={"source": name}) for name in ("a.md", "b.md")]
    result = create_ircot_chain(Words(documents=twice, asked=[]), model(*IRCOT), k=6).invoke(QUESTION)
    assert len(result["documents"]) == 2


def test_a_filter_is_theirs_alone(words):
    with pytest.raises(ConfigurationError, match="Words cannot be filtered from here"):
        create_ircot_chain(words, model(*IRCOT)).invoke(QUESTION, filter={"page": 1})
    with pytest.raises(ConfigurationError, match="str is neither a retriever nor an Index"):
        create_ircot_chain("words", model(*IRCOT))


@pytest.mark.parametrize(("make", "script"), [(create_ircot_graph, IRCOT), (create_self_ask_graph, SELF_ASK)])
def test_a_graph_searches_for_everything_once(words, make, script):
    memory = pytest.importorskip("langgraph.checkpoint.memory", reason="the langgraph extra is missing")
    saver, thread = memory.InMemorySaver(), {"configurable": {"thread_id": "1"}}
    given, stops, chat = {"question": QUESTION}, 0, model(*script)
    while True:
        graph = make(words, chat, checkpointer=saver, interrupt_after=["retrieve", "think"], k=4)
        state = graph.invoke(given, thread)
        if not graph.get_state(thread).next:
            break
        given, stops = None, stops + 1
    assert stops >= 3
    assert (words.asked, len(chat.log)) == ([QUESTION, FOLLOW_UP], len(script))
    assert state["answer"] == "In 1931 [1]"
    assert json.loads(json.dumps(state)) == state
    assert len(state["documents"]) == 4
