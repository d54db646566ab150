"""The LlamaIndex examples show what they find without a key, and what a model makes of it with one."""

import ast
import asyncio

import pytest
from llama_index.core import Settings
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms import MockFunctionCallingLLM

from llama_index_sire import SireRetriever
from sire_core.data import demo_documents
from sire_core.testing.doubles import ScriptedModel
from support.example_runs import EXAMPLES, SELF_ASK, ircot, runner

pytestmark = pytest.mark.default_recipe
NAMES = (
    "llama_index_agent",
    "llama_index_ingestion",
    "llama_index_ircot",
    "llama_index_own_models",
    "llama_index_own_vector_store",
    "llama_index_quickstart",
    "llama_index_workflow",
)


IRCOT = ircot(1)


@pytest.fixture
def example(monkeypatch, capsys):
    """Runs an example without a key; gives its names and what it printed."""
    before = Settings._llm, Settings._embed_model
    Settings._llm = Settings._embed_model = None
    yield runner(monkeypatch, capsys)
    Settings._llm, Settings._embed_model = before


@pytest.fixture
def run(example):
    return lambda name: example(name)[1]


def _nodes(shown):
    """The nodes that are shown where there is no key: never an answer."""
    *found, last = shown.splitlines()
    assert last.startswith("Set OPENAI_API_KEY")
    return [line.split()[1] for line in found]


def test_all_examples_are_run_here():
    assert sorted(path.stem for path in EXAMPLES.glob("llama_index_*.py")) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) < 60


def test_quickstart_finds_both_hops_and_filters(run):
    lines = run("llama_index_quickstart").splitlines()
    assert [line.split()[1] for line in lines[:2]] == ["weather-clerk", "ilse-marrable"]
    narrowed = ast.literal_eval(lines[5].split("People and works: ")[1])
    assert narrowed[:2] == ["The Weather Clerk", "Ilse Marrable"]
    titles = {d.title for d in demo_documents() if d.metadata["kind"] in ("person", "work")}
    assert len(set(narrowed) & titles) == 5
    assert "news" in ast.literal_eval(lines[6].split("With the news: ")[1])
    assert lines[7].startswith("[weather-clerk] ")
    assert lines[9].startswith("[ilse-marrable] ")


def test_ingestion_leaves_nothing_stale(run):
    lines = run("llama_index_ingestion").splitlines()
    assert "'chunk': 41" in lines[0]
    assert "one changed: " in lines[1]
    assert "no change: 0 new nodes" in lines[3]
    assert lines[4] == "stale ids left in the store: []"


def test_own_vector_store_follows(run):
    lines = run("llama_index_own_vector_store").splitlines()
    before, after = int(lines[0].split()[0]), int(lines[4].split()[0])
    assert (before, after) == (41, 40)
    assert ast.literal_eval(lines[5]) == ["corrow-lighthouse"]


def test_own_models_are_named(run):
    lines = run("llama_index_own_models").splitlines()
    assert "embedder: llama-index:LetterEmbedding:letters" in lines[0]
    assert "language model: llama-index:MockLLM" in lines[0]
    assert int(lines[1].split(";")[1].split()[0]) >= int(lines[1].split()[0]) > 0


def test_ircot_answers_in_rounds(example, capsys):
    names, shown = example("llama_index_ircot")
    assert _nodes(shown)[:2] == ["weather-clerk", "ilse-marrable"]
    names["think"](ScriptedModel(list(IRCOT) * 2))
    lines = capsys.readouterr().out.splitlines()
    kinds = ["retrieved", "thought", "sub_question", "retrieved", "thought", "answer"]
    assert [line.split(":")[0].strip() for line in lines[:6]] == kinds
    assert lines[6:9] == ["Answer: 1931 [1]", "", "Sources:"]
    assert lines[9].startswith("[1] ")
    assert lines[10] == "Stopped because: done"
    assert "'calls': 3" in lines[11]
    assert lines[-1] == "Streamed: 1931 [1] after 6 steps"


def test_the_workflow_streams_follow_ups(example, capsys):
    names, shown = example("llama_index_workflow")
    assert _nodes(shown)[:2] == ["weather-clerk", "ilse-marrable"]
    retriever = SireRetriever.from_documents(names["documents"], similarity_top_k=5)
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
def test_the_agent_uses_both_tools(example, capsys):
    names, alone = example("llama_index_agent")
    assert alone.startswith("Tool: search_documents ['as_of', 'filter', 'k', 'query']\n[weather-clerk] ")
    assert "\n[ilse-marrable] " in alone
    assert alone.splitlines()[-1].startswith("Set OPENAI_API_KEY")

    question = names["QUESTION"]
    turns = [
        [ToolCallBlock(tool_call_id="1", tool_name="search_documents", tool_kwargs={"query": "The Weather Clerk"})],
        [ToolCallBlock(tool_call_id="2", tool_name="answer_from_documents", tool_kwargs={"question": question})],
        [TextBlock(text="In 1931.")],
    ]
    thoughts = [[TextBlock(text=text)] for text in IRCOT]

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
