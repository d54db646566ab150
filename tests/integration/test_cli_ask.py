"""`sire ask`: steps as they happen, numbered citations, no answer without evidence, sentences without a model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.documents.chunker import SentenceChunker
from support.command import run
from support.faults import always, at_calls
from support.scripted_server import ScriptedServer
from support.terminal import on_terminal

QUESTION = "Where was the director of the film The Salt Lantern born?"
SECOND = "Where was Petra Quillon born?"


def script(call):
    if "citations" in call.instructions:
        return json.dumps({"answer": "Varn Harbour", "citations": [2], "sufficient": True})
    if "followups" in (call.schema or {}).get("properties", {}):
        return json.dumps({"followups": [{"q": SECOND, "a": "Varn Harbour"}]})
    if "Follow up:" in call.instructions:
        return "So the final answer is: it" if "followups" in call.fields else f"Follow up: {SECOND}"
    if call.schema is None:
        done = "reasoning" in call.fields or "passages" not in call.fields
        return "So the answer is: Varn Harbour." if done else "Petra Quillon made The Salt Lantern."
    search = "DONE" if "reasoning" in call.fields else SECOND
    return json.dumps({"reasoning": "Petra Quillon \x1b[31mdirected it.", "search": search})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("ask") / "ix"
    with Index(path, recipe="flat", chunker=None) as index:
        index.build(demo_documents())
    return path


def ask(folder, server, *words, code=0):
    return run("ask", folder, QUESTION, "--llm", "m", "--base-url", server.base_url, *words, code=code)


def test_single_answers_in_one_call_and_shows_what_it_cites(folder):
    with ScriptedServer(script) as server:
        shown = ask(folder, server).stdout
        assert server.received == 1
    assert "Answer: Varn Harbour [2]" in shown
    assert "[2] " in shown
    assert "[1] " not in shown
    assert "[3] " not in shown


@pytest.mark.parametrize(
    ("words", "calls", "expected"),
    [
        (("--via", "ircot"), 3, [f"question 1: {SECOND}", "found 20 hits, 10 new", "thought 2:"]),
        (
            ("--via", "ircot", "--flavor", "hipporag"),
            3,
            ["found 8 hits", "thought 1: Petra Quillon made The Salt Lantern."],
        ),
        (("--via", "ircot", "--flavor", "original"), 3, ["found 6 hits", "thought 1: Petra Quillon made"]),
        (("--via", "self-ask"), 4, ["found 10 hits", f"question 1: {SECOND}", "answer 1: "]),
        (("--via", "self-ask", "--flavor", "two_call"), 2, ["answer 1: Varn Harbour"]),
    ],
)
def test_steps_of_every_strategy_are_shown(folder, words, calls, expected):
    with ScriptedServer(script) as server:
        result = ask(folder, server, *words)
        assert server.received == calls
    shown = result.stdout
    assert "\x1b" not in shown
    places = [shown.index(text) for text in (*expected, "Answer: Varn Harbour [2]", "[2] ")]
    assert places == sorted(places)
    assert f"{calls} calls" in result.stderr


def test_json_is_alone_on_stdout_and_tells_everything(folder):
    with ScriptedServer(script) as server:
        told = json.loads(ask(folder, server, "--via", "ircot", "--json", "-k", 4).stdout)
    names = "question answer outcome sufficient citations findings stop note warning steps hits usage"
    assert list(told) == names.split()
    assert (told["answer"], told["sufficient"], told["citations"], told["stop"]) == (
        "Varn Harbour [2]",
        True,
        [2],
        "done",
    )
    assert [step["step"] for step in told["steps"]] == ["retrieved", "thought", "sub_question", "retrieved", "thought"]
    assert told["steps"][2] == {"step": "sub_question", "number": 1, "text": SECOND}
    assert len(told["steps"][0]["hits"]) == 20
    assert [set(hit) for hit in told["hits"]] == [
        {"id", "kind", "score", "title", "text", "doc_ids", "chunk_ids", "metadata", "path", "snippet"}
    ] * 4
    assert told["usage"]["calls"] == 3


@pytest.mark.parametrize(
    ("reading", "outcome"),
    [
        ({"answer": "Varn Harbour", "citations": [2], "sufficient": True}, "answered"),
        ({"answer": "Varn Harbour", "citations": [], "sufficient": True}, "doubted"),
        ({"answer": "Varn Harbour", "citations": [2], "sufficient": False}, "doubted"),
        ({"answer": "", "citations": [], "sufficient": False}, "unanswered"),
        ({"answer": "I do not know [1].", "citations": [1], "sufficient": False}, "unanswered"),
    ],
)
def test_scripts_read_in_one_word_whether_there_is_an_answer(folder, reading, outcome):
    with ScriptedServer(lambda _: json.dumps(reading)) as server:
        assert json.loads(ask(folder, server, "--json").stdout)["outcome"] == outcome


@pytest.mark.parametrize(
    ("question", "outcome"),
    [
        (QUESTION, "answered"),
        ("Where was the director Otto Zweig of The Salt Lantern born?", "doubted"),
        ("How many bolts hold a turbine?", "unanswered"),
    ],
)
def test_quotes_are_an_answer_are_doubted_or_none(folder, question, outcome):
    told = json.loads(run("ask", folder, question, "--json").stdout)
    assert (told["outcome"], bool(told["warning"])) == (outcome, outcome != "answered")


def test_insufficient_evidence_is_said_and_is_no_error(folder):
    reading = json.dumps({"answer": "", "citations": [], "sufficient": False})
    with ScriptedServer(lambda _: reading) as server:
        result = ask(folder, server)
        assert "Answer: insufficient evidence" in result.stdout
        assert "[10] " in result.stdout
        told = json.loads(ask(folder, server, "--json").stdout)
    assert (told["answer"], told["sufficient"]) == ("insufficient evidence", False)
    with ScriptedServer(script) as server:
        result = ask(folder, server, "--filter", "kind=none")
        assert server.received == 0
    assert "Answer: insufficient evidence" in result.stdout
    assert "No hits" in result.stderr


def test_without_a_model_sentences_are_quoted_with_a_hint(folder):
    result = run("ask", folder, QUESTION, "--via", "single", "-k", 3)
    assert "Sentences nearest to the question:\n" in result.stdout
    assert "Answer" not in result.stdout
    assert "--llm MODEL" in result.stderr
    assert "--base-url" in result.stderr
    told = json.loads(run("ask", folder, QUESTION, "--json", "-k", 3).stdout)
    assert (told["stop"], told["sufficient"], len(told["hits"])) == ("extracted", False, 3)
    assert "He was born in Hathersay, where his father guarded the gate" in told["answer"]
    assert {line[-4:] for line in told["answer"].split("\n")} <= {f" [{number}]" for number in told["citations"]}
    assert "--llm" in told["note"]
    queried = json.loads(run("query", folder, QUESTION, "-k", 3, "--json").stdout)
    assert sorted(told["hits"], key=str) == sorted(queried, key=str)
    assert told["citations"] == list(range(1, len(told["citations"]) + 1))
    words = run("ask", folder, QUESTION, "--json", "-k", 3, "--set", "ranker=bm25")
    assert all(hit["path"][0]["step"].startswith("words:") for hit in json.loads(words.stdout)["hits"])


def test_a_failing_model_is_an_error_with_evidence(folder):
    with ScriptedServer(script, faults=always("refusal")) as server:
        result = ask(folder, server, "--via", "ircot", code=1)
    assert "[10] " in result.stdout
    assert "Answer" not in result.stdout
    assert "model_failed" in result.stderr
    assert "declined" in result.stderr
    said = result.output  # both streams, in the order of a terminal
    assert said.index("declined") < said.index("The evidence that was found:") < said.index("[1] ")


def test_limits(folder):
    with ScriptedServer(script) as server:
        result = ask(folder, server, "--via", "ircot", "--max-calls", 2)
        assert server.received == 2
        assert "Answer: Varn Harbour" in result.stdout
        assert "call_limit" in result.stderr
        assert "step_limit" in ask(folder, server, "--via", "ircot", "--max-steps", 1).stderr
        assert "token_limit" in ask(folder, server, "--max-tokens", 5, code=1).stderr
    with ScriptedServer(script, faults=at_calls({1: "timeout"})) as server:
        assert "timeout" in ask(folder, server, "--timeout", 0.5, code=1).stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--via", "magic"), "There is no strategy 'magic'; choose one of single, ircot, self-ask"),
        (("--flavor", "original"), "A flavor and examples are for ircot and self-ask only"),
        (("--via", "ircot"), "--via ircot needs --llm MODEL: no model is asked without it"),
        (("--via", "self-ask", "--flavor", "two_call"), "--via self-ask needs --llm"),
        (("--max-steps", "2"), "--max-steps needs --llm"),
        (("--via", "ircot", "--flavor", "search"), "flavor is one of original, "),
        (("--via", "self-ask", "--flavor", "original"), "mode is 'two_call'"),
        (("--max-calls", "3"), "--max-calls needs --llm"),
        (("--timeout", "0"), "timeout must be more than 0"),
        (("--llm", "m"), "OPENAI_API_KEY"),
        (("--filter", "x!!"), "filter"),
    ],
)
def test_mistakes_are_explained(folder, words, message):
    result = run("ask", folder, QUESTION, *words, code=1)
    assert message in result.stderr
    assert result.stdout == ""


def test_a_step_is_on_the_screen_before_the_next_call_is_answered(folder):
    seen = threading.Event()

    def waiting(call):
        # The second call is not answered before the first thought was read from the pipe.
        if call.number == 2 and not seen.wait(20):
            raise TimeoutError("the first step never came")
        return script(call)

    with ScriptedServer(waiting) as server:
        command = [sys.executable, "-c", "from sire_core.cli import main; main()", "ask", str(folder), QUESTION]
        command += ["--via", "ircot", "--llm", "m", "--base-url", server.base_url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("question 1:"):
                    seen.set()
        assert process.returncode == 0
    assert "Answer: Varn Harbour [2]\n" in lines


def test_a_slow_model_is_waited_for_as_long_as_was_said(folder):
    with ScriptedServer(script, latency=1.0) as server:
        gave_up = ask(folder, server, "--model-timeout", "0.2", "--timeout", "1.5", code=1)
        assert "Answer" not in gave_up.stdout
        assert "Answer: Varn Harbour" in ask(folder, server, "--model-timeout", "20").stdout


TEXT = "Varn \x1b[31mHarbour, a town on the coast where \u00e9very house has a lamp of its own"
SHOWN = "Varn \ufffd[31mHarbour, a town on the coast where \u00e9very house has a lamp of its own [2]"


def written(_call):
    return json.dumps({"answer": TEXT, "citations": [2], "sufficient": True})


def ask_on_terminal(folder, server, *words, code=0):
    """What the terminal shows, without style, stderr, and how many events the server had sent by each read."""
    words = ("ask", folder, QUESTION, "--llm", "m", "--base-url", server.base_url, *words)
    shown, told, sent = on_terminal(*words, columns=200, code=code, count=lambda: server.sent)
    return re.sub(r"\x1b\[[\d;]*m", "", shown), told, sent


def test_the_answer_appears_while_it_is_written(folder):
    with ScriptedServer(written, gap=0.03) as server:
        shown, told, sent = ask_on_terminal(folder, server)
        assert server.received == 1
    assert f"\nAnswer: {SHOWN}\n\n" in shown
    assert shown.count("Answer:") == 1
    assert "[2] " in shown.split("\n\n", 1)[1]
    assert "Stopped: answered" in told
    # Not in one go at the end: events were still to come when parts of it were on the screen.
    assert sum(0 < count < sent[-1] for count in sent) > 5


def test_an_answer_that_breaks_off_is_marked(folder):
    with ScriptedServer(written, faults=always("half_body")) as server:
        shown, told, _ = ask_on_terminal(folder, server, code=1)
    assert "\nAnswer: Varn \ufffd[31mHarbour," in shown
    assert "broke off" in told
    assert "model_failed" in told


def test_an_answer_that_is_asked_for_again(folder):
    def twice(call):
        return written(call) if call.attempt else '{"answer": "Port Ansel, sure", "cit'

    with ScriptedServer(twice) as server:
        shown, _, _ = ask_on_terminal(folder, server)
        assert server.received == 2
    assert f"\nAnswer: Port Ansel, sure\n\nAnswer, asked for again: {SHOWN}\n\n" in shown


def test_json_stays_as_it_is(folder):
    with ScriptedServer(written) as server:
        shown, _, _ = ask_on_terminal(folder, server, "--json")
        assert not server.sent
    assert json.loads(shown)["answer"] == TEXT + " [2]"


def test_passages_of_one_place_are_named_once(tmp_path):
    text = "The pump at Varn Harbour was repaired by Petra Quillon in May. " * 2
    text += "The sea was calm that year, and boats came in early. " * 6
    text += "The pump at Varn Harbour was paid for by the harbour guild."
    with Index(tmp_path / "ix", chunker=SentenceChunker(40, 0)) as index:
        index.build([Document("pump", text=text, title="Harbour notes", metadata={"source": "notes.md"})])
    shown = run("ask", tmp_path / "ix", "Who repaired the pump at Varn Harbour and who paid for the pump?").stdout
    assert "Petra Quillon in May. [1]" in shown
    assert "the harbour guild. [2]" in shown
    assert shown.count("Harbour notes, from") == 1
    assert "[1] [2] Harbour notes, from" in shown
