"""`sire ask` on a terminal: the answer appears while it is written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from sire_core import Index
from sire_core.data import demo_documents
from support.faults import always
from support.scripted_server import ScriptedServer

pty = pytest.importorskip("pty", reason="terminals are a matter of Unix")

QUESTION = "Where was the director of the film The Salt Lantern born?"
TEXT = "Varn \x1b[31mHarbour, a town on the coast where \u00e9very house has a lamp of its own"
SHOWN = "Varn \ufffd[31mHarbour, a town on the coast where \u00e9very house has a lamp of its own [2]"
_STYLE = re.compile(r"\x1b\[[\d;]*m")


def script(_call):
    return json.dumps({"answer": TEXT, "citations": [2], "sufficient": True})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("ask") / "ix"
    with Index(path, recipe="flat", chunker=None) as index:
        index.build(demo_documents())
    return path


def ask(folder, server, *words):
    """Exit code, what the terminal shows, stderr, and how many events the server had sent by each read."""
    main, side = pty.openpty()
    command = [sys.executable, "-c", "from sire_core.cli import main; main()", "ask", str(folder), QUESTION]
    command += ["--llm", "m", "--base-url", server.base_url, *words]
    environment = {**os.environ, "PYTHONUTF8": "1", "TERM": "xterm", "COLUMNS": "200"}
    seen = []
    with subprocess.Popen(command, stdout=side, stderr=subprocess.PIPE, env=environment) as process:
        os.close(side)
        while True:
            try:
                came = os.read(main, 4096)
            except OSError:  # Linux tells the end of a terminal so
                break
            if not came:
                break
            seen.append((came, server.sent))
        told = process.stderr.read().decode()
    os.close(main)
    shown = _STYLE.sub("", b"".join(came for came, _ in seen).decode()).replace("\r\n", "\n")
    return process.returncode, shown, told, [sent for _, sent in seen]


def test_the_answer_appears_while_it_is_written(folder):
    with ScriptedServer(script, gap=0.03) as server:
        code, shown, told, sent = ask(folder, server)
        assert server.received == 1
    assert code == 0
    assert f"\nAnswer: {SHOWN}\n\n" in shown
    assert shown.count("Answer:") == 1
    assert "[2] " in shown.split("\n\n", 1)[1]
    assert "Stopped: answered" in told
    # Not in one go at the end: events were still to come when parts of it were on the screen.
    assert sum(0 < count < sent[-1] for count in sent) > 5


def test_an_answer_that_breaks_off_is_marked(folder):
    with ScriptedServer(script, faults=always("half_body")) as server:
        code, shown, told, _ = ask(folder, server)
    assert code == 1
    assert "\nAnswer: Varn \ufffd[31mHarbour," in shown
    assert "broke off" in told
    assert "model_failed" in told


def test_an_answer_that_is_asked_for_again(folder):
    def twice(call):
        return script(call) if call.attempt else '{"answer": "Port Ansel, sure", "cit'

    with ScriptedServer(twice) as server:
        code, shown, _, _ = ask(folder, server)
        assert server.received == 2
    assert code == 0
    assert f"\nAnswer: Port Ansel, sure\n\nAnswer, asked for again: {SHOWN}\n\n" in shown


def test_json_stays_as_it_is(folder):
    with ScriptedServer(script) as server:
        code, shown, _, _ = ask(folder, server, "--json")
        assert not server.sent
    assert code == 0
    assert json.loads(shown)["answer"] == TEXT + " [2]"
