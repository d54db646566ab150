"""The LangChain examples run offline and show what they promise."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from sire_core.data import demo_documents

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
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
_OFFLINE = """
import runpy, socket, sys, warnings

warnings.simplefilter("error")
connect = socket.socket.connect

def refuse(self, address):
    if not (isinstance(address, tuple) and address[0] in ("127.0.0.1", "::1")):
        raise OSError(f"an example used the network: {address}")
    return connect(self, address)

socket.socket.connect = refuse
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def _run(name):
    done = subprocess.run(
        [sys.executable, "-c", _OFFLINE, str(EXAMPLES / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_examples_are_run_here():
    assert sorted(path.stem for path in EXAMPLES.glob("langchain_*.py")) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) < 60


def test_quickstart_finds_both_hops_and_filters():
    shown = _run("langchain_quickstart")
    assert "weather-clerk" in shown
    assert "ilse-marrable" in shown
    assert "What the model reads: Human: Answer from the context" in shown
    people = shown.split("People only: ")[1].splitlines()[0]
    titles = {document.title for document in demo_documents() if document.metadata["kind"] == "person"}
    assert len(set(ast.literal_eval(people)) & titles) == 3


def test_own_vector_store_follows_the_index():
    lines = _run("langchain_own_vector_store").splitlines()
    before, after = (int(line.split(": ", 1)[1]) for line in lines[:2])
    assert before > 60
    assert after < before
    assert lines[2] == "Missed: {'langchain': 0}"
    assert len(lines) == 7
    assert "northern-wren" not in "".join(lines[3:])


def test_indexing_api_keeps_the_index_up_to_date():
    shown = _run("langchain_indexing_api")
    assert "First:   {'num_added': 41" in shown
    assert "'num_skipped': 41" in shown
    assert "Changed: {'num_added': 1, 'num_updated': 0, 'num_skipped': 39, 'num_deleted': 2}" in shown
    assert "museum ship now" in shown.split("The tool says:")[1]


def test_own_models_are_used_and_counted():
    shown = _run("langchain_own_models")
    counted = int(shown.split("LangChain counts the same: ")[1].splitlines()[0])
    read, wrote = shown.split(" calls, ")[1].split(" tokens")[0].replace(",", "").split(" + ")
    assert counted == int(read) + int(wrote) > 0
    assert "'aggregate'" in shown
    assert "northern-wren" in shown


def test_ircot_streams_what_it_does_and_cites_what_it_found():
    lines = _run("langchain_ircot").splitlines()
    assert [line.strip().split(":")[0].split(" ")[0] for line in lines[:5]] == [
        "found",
        "thought",
        "sub_question",
        "found",
        "thought",
    ]
    assert lines[5:7] == ["Answer: 1931 [2], stopped because: done", "  [2] weather-clerk"]
    assert "'calls': 3" in lines[7]
    assert "'retrievals': 2" in lines[7]
    assert len(ast.literal_eval(lines[8].split(": ")[1])) == 3


def test_self_ask_shows_its_questions():
    shown = _run("langchain_self_ask")
    assert shown.count("Follow up: ") == shown.count("it says: ") == 2
    assert shown.endswith("\n1931 [2][3] from Ilse Marrable and The Weather Clerk\n")


def test_the_graph_goes_on_where_it_stopped():
    pytest.importorskip("langgraph", reason="the langgraph extra is missing")
    shown = _run("langchain_ircot_graph")
    assert "Next: ('retrieve',) searches for: When did Ilse Marrable die?" in shown
    assert [line.split(":")[0] for line in shown.splitlines()[2:5]] == ["retrieve", "think", "answer"]
    assert "Answer: 1931 [2] from " in shown
    assert "Calls: 3" in shown


def test_the_agent_searches_twice_and_cites():
    pytest.importorskip("langchain.agents", reason="langchain is a development dependency")
    shown = _run("langchain_agent")
    assert shown.count("Searches: ") == 2
    found = [ast.literal_eval(line.split(": ")[1]) for line in shown.splitlines() if line.startswith("  found")]
    assert found[0][0] == "weather-clerk"
    assert found[1][0] == "ilse-marrable"
    assert "died in 1931 [ilse-marrable]." in shown
