"""The LlamaIndex examples run offline and show what they promise."""

import ast
import runpy
import socket
from pathlib import Path

import pytest
from llama_index.core import Settings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = (
    "llama_index_agent",
    "llama_index_ingestion",
    "llama_index_ircot",
    "llama_index_own_models",
    "llama_index_own_vector_store",
    "llama_index_quickstart",
    "llama_index_workflow",
)


@pytest.fixture
def run(monkeypatch, capsys):
    def refuse(*_args, **_kwargs):
        raise OSError("an example used the network")

    def shown(name):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    monkeypatch.setattr(socket.socket, "connect", refuse)
    before = Settings._llm, Settings._embed_model
    Settings._llm = Settings._embed_model = None
    yield shown
    Settings._llm, Settings._embed_model = before


def test_all_examples_are_run_here():
    assert sorted(path.stem for path in EXAMPLES.glob("llama_index_*.py")) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) < 60


def test_quickstart_finds_the_birthplace_and_filters(run):
    shown = run("llama_index_quickstart")
    assert "Answer of the mock: text text" in shown
    people = ast.literal_eval(shown.split("Persons only: ")[1].splitlines()[0])
    assert people[0] == "Bruno Hask"
    assert len(people) == 5
    assert "was born in Hathersay" in shown.split("Persons only: ")[1]


def test_ingestion_leaves_nothing_stale(run):
    lines = run("llama_index_ingestion").splitlines()
    assert "'chunk': 41" in lines[0]
    assert "one changed: " in lines[1]
    assert "no change: 0 new nodes" in lines[3]
    assert lines[4] == "stale ids left in the store: []"


def test_own_vector_store_follows(run):
    lines = run("llama_index_own_vector_store").splitlines()
    before, after = int(lines[0].split()[0]), int(lines[4].split()[0])
    assert before > 60
    assert after < before
    assert ast.literal_eval(lines[5]) == ["corrow-lighthouse"]


def test_own_models_are_named(run):
    lines = run("llama_index_own_models").splitlines()
    assert "embedder: llama-index:LetterEmbedding:letters" in lines[0]
    assert "language model: llama-index:MockLLM" in lines[0]
    assert int(lines[1].split(";")[1].split()[0]) >= int(lines[1].split()[0]) > 0


def test_ircot_answers_in_rounds(run):
    shown = run("llama_index_ircot")
    lines = shown.splitlines()
    assert lines[0] == "Answer: Varn Harbour [1]"
    assert "petra-quillon" in shown.split("Stopped because")[0]
    assert "Stopped because: done" in lines
    kinds = ["retrieved", "thought", "sub_question", "retrieved", "thought", "answer"]
    assert [line.split(":")[0].strip() for line in lines[-7:-1]] == kinds
    assert lines[-1] == "Streamed: Varn Harbour [1] after 6 steps"


def test_the_workflow_streams_follow_ups(run):
    lines = run("llama_index_workflow").splitlines()
    assert [line for line in lines if line.startswith("follow up: ")] == [
        "follow up: Who directed the film The Salt Lantern?",
        "follow up: Where was Petra Quillon born?",
    ]
    assert lines[-5:-2] == ["stopped: answered", "Answer: Varn Harbour [1]", ""]
    assert lines[-2] == "Sources:"
    assert lines[-1].endswith(" from 5 nodes")


# LlamaIndex's agents look at deprecated attributes of pydantic.
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince211")
def test_the_agent_uses_both_tools(run):
    lines = run("llama_index_agent").splitlines()
    assert lines[0].startswith("called search_documents {'query': 'The Salt Lantern', 'k': 2}")
    assert lines[1].startswith("  gave '[salt-lantern] ")
    assert lines[2].startswith("called answer_question ")
    assert lines[3].startswith("  gave 'Varn Harbour [1]\\n\\nSources:\\n[1] ")
    assert lines[4:] == ["Answer: In Varn Harbour."]
