"""The LangChain examples show what they find without a key, and what a model makes of it with one.

The scripts of the model stand here, not in the examples: nobody is shown an answer that was written beforehand.
"""

import ast
import asyncio
import os
import subprocess
import sys

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from langchain_sire import SireRetriever, create_ircot_chain
from sire_core.data import demo_documents
from support.agent_server import AgentServer, ToolRequest
from support.example_runs import EXAMPLES, SELF_ASK, ircot, runner
from support.scripted_server import ScriptedServer

pytestmark = pytest.mark.default_recipe
NAMES = (
    "langchain_agent",
    "langchain_indexing_api",
    "langchain_ircot",
    "langchain_ircot_graph",
    "langchain_own_models",
    "langchain_own_vector_store",
    "langchain_quickstart",
    "langchain_self_ask",
)
IRCOT = ircot(2)


@pytest.fixture
def example(monkeypatch, capsys):
    """Runs an example without a key; gives its names and what it printed."""
    return runner(monkeypatch, capsys)


def test_all_examples_are_run_here():
    assert sorted(path.stem for path in EXAMPLES.glob("langchain_*.py")) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) < 60


def test_quickstart_finds_both_hops_and_filters(example):
    _, shown = example("langchain_quickstart")
    assert "weather-clerk" in shown
    assert "ilse-marrable" in shown
    assert "What the model reads: Human: Answer from the context" in shown
    people = shown.split("People only: ")[1].splitlines()[0]
    titles = {document.title for document in demo_documents() if document.metadata["kind"] == "person"}
    assert len(set(ast.literal_eval(people)) & titles) == 3


def test_own_vector_store_follows_the_index(example):
    lines = example("langchain_own_vector_store")[1].splitlines()
    before, after = (int(line.split(": ", 1)[1]) for line in lines[:2])
    assert (before, after) == (41, 40)
    assert lines[2] == "Missed: {'langchain': 0}"
    assert len(lines) == 7
    assert "northern-wren" not in "".join(lines[3:])


def test_indexing_api_keeps_the_index_up_to_date(example):
    _, shown = example("langchain_indexing_api")
    assert "First:   {'num_added': 41" in shown
    assert "'num_skipped': 41" in shown
    assert "Changed: {'num_added': 1, 'num_updated': 0, 'num_skipped': 39, 'num_deleted': 2}" in shown
    assert "museum ship now" in shown.split("The tool says:")[1]


def test_own_models_are_used_and_counted(example, monkeypatch):
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


def _passages(shown):
    """The passages that are shown where there is no key: never an answer."""
    *found, last = shown.splitlines()
    assert last.startswith("Set OPENAI_API_KEY")
    return [line.split()[0] for line in found]


def test_ircot_streams_what_it_does_and_cites_what_it_found(example, capsys):
    names, shown = example("langchain_ircot")
    assert _passages(shown)[:2] == ["weather-clerk", "ilse-marrable"]
    names["think"](FakeListChatModel(responses=list(IRCOT)))
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip().split(":")[0].split(" ")[0] for line in lines[:5]] == [
        "found",
        "thought",
        "sub_question",
        "found",
        "thought",
    ]
    chain = create_ircot_chain(names["retriever"], FakeListChatModel(responses=list(IRCOT)), max_steps=3)
    second = chain.invoke(names["QUESTION"])["documents"][1]
    assert second.id in ("weather-clerk", "ilse-marrable")
    assert lines[5:7] == ["Answer: 1931 [2], stopped because: done", f"  [2] {second.id}"]
    assert "'calls': 3" in lines[7]
    assert "'retrievals': 2" in lines[7]
    assert len(ast.literal_eval(lines[8].split(": ")[1])) == 3


def test_self_ask_shows_its_questions(example, capsys):
    names, shown = example("langchain_self_ask")
    assert _passages(shown)[:2] == ["weather-clerk", "ilse-marrable"]
    retriever = SireRetriever.from_documents(names["documents"], k=5)
    asyncio.run(names["ask"](retriever, FakeListChatModel(responses=list(SELF_ASK))))
    shown = capsys.readouterr().out
    assert shown.count("Follow up: ") == shown.count("it says: ") == 2
    assert shown.splitlines()[-1].startswith("1931 [1] from ")


def test_the_graph_goes_on_where_it_stopped(example, capsys):
    pytest.importorskip("langgraph", reason="the langgraph extra is missing")
    names, shown = example("langchain_ircot_graph")
    assert _passages(shown)[:2] == ["weather-clerk", "ilse-marrable"]
    names["work"](FakeListChatModel(responses=list(IRCOT)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Next: ('retrieve',) searches for: When did Ilse Marrable die?"
    assert [line.split(":")[0] for line in lines[2:5]] == ["retrieve", "think", "answer"]
    assert lines[5].startswith("Answer: 1931 [2] from ['")
    assert lines[6] == "Calls: 3"


def test_the_agent_searches_twice_and_cites():
    """As a user starts it: the server and the key in the environment."""
    pytest.importorskip("langchain.agents", reason="langchain is a development dependency")
    turns = [
        ToolRequest("search_atlas", {"query": "Who wrote the novel The Weather Clerk?", "filter": {"kind": "work"}}),
        ToolRequest("search_atlas", {"query": "In which year did Ilse Marrable die?", "k": 2}),
        "In 1931 [ilse-marrable].",
    ]
    with AgentServer(turns) as server:
        done = subprocess.run(
            [sys.executable, "-W", "error", str(EXAMPLES / "langchain_agent.py")],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "OPENAI_API_KEY": "sk-scripted", "OPENAI_BASE_URL": server.base_url},
        )
    assert done.returncode == 0, done.stderr
    told, worked = done.stdout.split("Searches: ", 1)
    assert told.startswith("Tool: search_atlas ['as_of', 'filter', 'k', 'query']\n[weather-clerk] ")
    assert "\n[ilse-marrable] " in told
    assert worked.count("Searches: ") == 1
    found = [ast.literal_eval(line.split(": ")[1]) for line in worked.splitlines() if line.startswith("  found")]
    assert [first for first, *_ in found] == ["weather-clerk", "ilse-marrable"]
    assert worked.endswith("\nAnswer: In 1931 [ilse-marrable].\n")
