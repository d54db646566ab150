"""The examples show what they find without a key, and what a model makes of it with one.

The scripts of the model stand here, not in the examples: nobody is shown an answer that was written beforehand.
"""

import ast
import asyncio
import json
import re
from pathlib import Path

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from llama_index.core import Settings
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms import MockFunctionCallingLLM

import langchain_sire
import llama_index_sire
from sire_core.data import demo_documents
from sire_core.testing.doubles import ScriptedModel
from support.agent_server import AgentServer, ToolRequest
from support.example_runs import EXAMPLES, SELF_ASK, ircot, runner
from support.scripted_server import ScriptedServer

pytestmark = pytest.mark.default_recipe


@pytest.fixture
def example(monkeypatch, capsys):
    """Runs an example without a key; gives its names and what it printed."""
    before = Settings._llm, Settings._embed_model
    Settings._llm = Settings._embed_model = None
    yield runner(monkeypatch, capsys)
    Settings._llm, Settings._embed_model = before


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_is_short_and_run(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60
    runs = [
        Path(__file__).with_name(name).read_text(encoding="utf-8")
        for name in (Path(__file__).name, "test_mcp_process.py")
    ]
    assert any(f'"{path.stem}' in run for run in runs)


def _passages(shown):
    """The passages that are shown where there is no key: never an answer."""
    *found, last = shown.splitlines()
    assert last.startswith("Set OPENAI_API_KEY")
    return [next(word for word in line.split() if not word.replace(".", "").isdigit()) for line in found]


def test_langchain_quickstart_finds_both_hops_and_filters(example):
    _, shown = example("langchain_quickstart")
    assert "weather-clerk" in shown
    assert "ilse-marrable" in shown
    assert "What the model reads: Human: Answer from the context" in shown
    people = shown.split("People only: ")[1].splitlines()[0]
    titles = {document.title for document in demo_documents() if document.metadata["kind"] == "person"}
    assert len(set(ast.literal_eval(people)) & titles) == 3


def test_langchain_own_vector_store_follows_the_index(example):
    lines = example("langchain_own_vector_store")[1].splitlines()
    before, after = (int(line.split(": ", 1)[1]) for line in lines[:2])
    assert (before, after) == (41, 40)
    assert lines[2] == "Missed: {'langchain': 0}"
    assert len(lines) == 7
    assert "northern-wren" not in "".join(lines[3:])


def test_langchain_indexing_api_keeps_the_index_up_to_date(example):
    _, shown = example("langchain_indexing_api")
    assert "First:   {'num_added': 41" in shown
    assert "'num_skipped': 41" in shown
    assert "Changed: {'num_added': 1, 'num_updated': 0, 'num_skipped': 39, 'num_deleted': 2}" in shown
    assert "museum ship now" in shown.split("The tool says:")[1]


def test_langchain_own_models_are_used_and_counted(example, monkeypatch):
    assert example("langchain_own_models")[1].startswith("Set OPENAI_API_KEY")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ScriptedServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        _, shown = example("langchain_own_models")
    counted = int(shown.split("LangChain counts the same: ")[1].splitlines()[0])
    read, wrote = shown.split(" calls, ")[1].split(" tokens")[0].replace(",", "").split(" + ")
    assert counted == int(read) + int(wrote) > 0
    assert "'aggregate'" in shown
    assert "northern-wren" in shown


def test_langchain_ircot_streams_what_it_does_and_cites_what_it_found(example, capsys):
    names, shown = example("langchain_ircot")
    assert _passages(shown)[:2] == ["weather-clerk", "ilse-marrable"]
    names["think"](FakeListChatModel(responses=list(ircot(2))))
    lines = capsys.readouterr().out.splitlines()
    kinds = ["found", "thought", "sub_question", "found", "thought"]
    assert [line.strip().split(":")[0].split(" ")[0] for line in lines[:5]] == kinds
    assert lines[5] == "Answer: 1931 [2], stopped because: done"
    assert lines[6] in ("  [2] weather-clerk", "  [2] ilse-marrable")
    assert "'calls': 3" in lines[7]
    assert "'retrievals': 2" in lines[7]
    assert len(ast.literal_eval(lines[8].split(": ")[1])) == 3


def test_langchain_self_ask_shows_its_questions(example, capsys):
    names, shown = example("langchain_self_ask")
    assert _passages(shown)[:2] == ["weather-clerk", "ilse-marrable"]
    retriever = langchain_sire.SireRetriever.from_documents(names["documents"], k=5)
    asyncio.run(names["ask"](retriever, FakeListChatModel(responses=list(SELF_ASK))))
    shown = capsys.readouterr().out
    assert shown.count("Follow up: ") == shown.count("it says: ") == 2
    assert shown.splitlines()[-1].startswith("1931 [1] from ")


def test_langchain_the_graph_goes_on_where_it_stopped(example, capsys):
    pytest.importorskip("langgraph", reason="the langgraph extra is missing")
    names, shown = example("langchain_ircot_graph")
    assert _passages(shown)[:2] == ["weather-clerk", "ilse-marrable"]
    names["work"](FakeListChatModel(responses=list(ircot(2))))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Next: ('retrieve',) searches for: When did Ilse Marrable die?"
    assert [line.split(":")[0] for line in lines[2:5]] == ["retrieve", "think", "answer"]
    assert lines[5].startswith("Answer: 1931 [2] from ['")
    assert lines[6] == "Calls: 3"


def test_langchain_the_agent_searches_twice_and_cites(example, monkeypatch):
    pytest.importorskip("langchain.agents", reason="langchain is a development dependency")
    turns = [
        ToolRequest("search_atlas", {"query": "Who wrote the novel The Weather Clerk?", "filter": {"kind": "work"}}),
        ToolRequest("search_atlas", {"query": "In which year did Ilse Marrable die?", "k": 2}),
        "In 1931 [ilse-marrable].",
    ]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-scripted")
    with AgentServer(turns) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        _, shown = example("langchain_agent")
    told, worked = shown.split("Searches: ", 1)
    assert told.startswith("Tool: search_atlas ['as_of', 'filter', 'k', 'max_tokens', 'query']\n[weather-clerk] ")
    assert "\n[ilse-marrable] " in told
    assert worked.count("Searches: ") == 1
    found = [ast.literal_eval(line.split(": ")[1]) for line in worked.splitlines() if line.startswith("  found")]
    assert [first for first, *_ in found] == ["weather-clerk", "ilse-marrable"]
    assert worked.endswith("\nAnswer: In 1931 [ilse-marrable].\n")


def test_llama_index_quickstart_finds_both_hops_and_filters(example):
    lines = example("llama_index_quickstart")[1].splitlines()
    assert [line.split()[1] for line in lines[:2]] == ["weather-clerk", "ilse-marrable"]
    narrowed = ast.literal_eval(lines[5].split("People and works: ")[1])
    assert narrowed[:2] == ["The Weather Clerk", "Ilse Marrable"]
    titles = {d.title for d in demo_documents() if d.metadata["kind"] in ("person", "work")}
    assert len(set(narrowed) & titles) == 5
    assert "news" in ast.literal_eval(lines[6].split("With the news: ")[1])
    assert lines[7].startswith("[weather-clerk] ")
    assert lines[9].startswith("[ilse-marrable] ")


def test_llama_index_ingestion_leaves_nothing_stale(example):
    lines = example("llama_index_ingestion")[1].splitlines()
    assert "'chunk': 41" in lines[0]
    assert "one changed: " in lines[1]
    assert "no change: 0 new nodes" in lines[3]
    assert lines[4] == "stale ids left in the store: []"


def test_llama_index_own_vector_store_follows(example):
    lines = example("llama_index_own_vector_store")[1].splitlines()
    before, after = int(lines[0].split()[0]), int(lines[4].split()[0])
    assert (before, after) == (41, 40)
    assert ast.literal_eval(lines[5]) == ["corrow-lighthouse"]


def test_llama_index_own_models_are_named(example):
    lines = example("llama_index_own_models")[1].splitlines()
    assert "embedder: llama-index:LetterEmbedding:letters" in lines[0]
    assert "language model: llama-index:MockLLM" in lines[0]
    assert int(lines[1].split(";")[1].split()[0]) >= int(lines[1].split()[0]) > 0


def test_llama_index_ircot_answers_in_rounds(example, capsys):
    names, shown = example("llama_index_ircot")
    assert _passages(shown)[:2] == ["weather-clerk", "ilse-marrable"]
    names["think"](ScriptedModel(list(ircot(1)) * 2))
    lines = capsys.readouterr().out.splitlines()
    kinds = ["retrieved", "thought", "sub_question", "retrieved", "thought", "answer"]
    assert [line.split(":")[0].strip() for line in lines[:6]] == kinds
    assert lines[6:9] == ["Answer: 1931 [1]", "", "Sources:"]
    assert lines[9].startswith("[1] ")
    assert lines[10] == "Stopped because: done"
    assert "'calls': 3" in lines[11]
    assert lines[-1] == "Streamed: 1931 [1] after 6 steps"


def test_llama_index_the_workflow_streams_follow_ups(example, capsys):
    names, shown = example("llama_index_workflow")
    assert _passages(shown)[:2] == ["weather-clerk", "ilse-marrable"]
    retriever = llama_index_sire.SireRetriever.from_documents(names["documents"], similarity_top_k=5)
    asyncio.run(names["ask"](retriever, ScriptedModel(list(SELF_ASK))))
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("follow up: ")] == [
        "follow up: Who wrote the novel The Weather Clerk?",
        "follow up: In which year did Ilse Marrable die?",
    ]
    assert lines[-5:-1] == ["stopped: answered", "Answer: 1931 [1]", "", "Sources:"]
    assert lines[-1].startswith("[1] ")


# LlamaIndex's agents look at deprecated attributes of pydantic.
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince211")
def test_llama_index_the_agent_uses_both_tools(example, capsys):
    names, alone = example("llama_index_agent")
    assert alone.startswith("Tool: search_documents ['as_of', 'filter', 'k', 'max_tokens', 'query']\n[weather-clerk] ")
    assert "\n[ilse-marrable] " in alone
    assert alone.splitlines()[-1].startswith("Set OPENAI_API_KEY")

    question = names["QUESTION"]
    turns = [
        [ToolCallBlock(tool_call_id="1", tool_name="search_documents", tool_kwargs={"query": "The Weather Clerk"})],
        [ToolCallBlock(tool_call_id="2", tool_name="answer_from_documents", tool_kwargs={"question": question})],
        [TextBlock(text="In 1931.")],
    ]
    thoughts = [[TextBlock(text=text)] for text in ircot(1)]

    def say(messages, **_):
        thinks = messages[0].role == "system"
        return ChatMessage(role="assistant", blocks=(thoughts if thinks else turns).pop(0))

    asyncio.run(names["work"](MockFunctionCallingLLM(response_generator=say)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("called search_documents {'query': 'The Weather Clerk'}")
    assert lines[1].startswith("  gave '[weather-clerk] ")
    assert lines[2].startswith("called answer_from_documents ")
    assert lines[3].startswith("  gave '1931 [")
    assert lines[4:] == ["Answer: In 1931."]


def play(call):
    """One thought, one more search, then the answer from what was found."""
    passages = {passage["title"]: passage["number"] for passage in call.fields["passages"]}
    if "citations" in call.instructions:
        cited = [passages[title] for title in ("The Salt Lantern", "Petra Quillon") if title in passages]
        known = "Petra Quillon" in passages
        text = "Varn Harbour" if known else "insufficient evidence"
        return json.dumps({"answer": text, "citations": cited, "sufficient": known})
    if "reasoning" in call.fields:
        return json.dumps({"reasoning": "She was born in Varn Harbour.", "search": "DONE"})
    return json.dumps({"reasoning": "Petra Quillon directed it.", "search": "Where was Petra Quillon born?"})


def test_reasoning_without_a_key_shows_both_searches_and_no_answer(example):
    first, second = example("reasoning")[1].split("Where was Petra Quillon born?\n")
    assert "] The Salt Lantern: " in first
    assert "Petra Quillon" not in first
    assert second.startswith("  [1] Petra Quillon: Petra Quillon (1904-1981)")
    assert "Answer" not in first + second


def test_reasoning_in_two_rounds_finds_what_one_search_misses(example, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-scripted")
    with ScriptedServer(play) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        shown = example("reasoning")[1]
    single, ircot = shown.split("\nsingle: ")[1].split("\nircot: ")
    assert "Answer: insufficient evidence (stopped: done; 1 calls)" in single
    assert "SubQuestion 1: Where was Petra Quillon born?" in ircot
    assert re.search(r"Answer: Varn Harbour (\[\d\])*\[2\] \(stopped: done; 3 calls\)", ircot)
    assert "[2] Petra Quillon" in ircot
