"""The reasoning example shows what searches find without a key, and what a model makes of it with one."""

import json
import os
import subprocess
import sys
from pathlib import Path

from support.scripted_server import ScriptedServer

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "reasoning.py"
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


def run(**more):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    command = [sys.executable, "-c", _OFFLINE, str(EXAMPLE)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**environment, **more}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_a_key_both_searches_are_shown_and_no_answer():
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 60
    first, second = run().split("Where was Petra Quillon born?\n")
    assert "] The Salt Lantern: " in first
    assert "Petra Quillon" not in first
    assert second.startswith("  [1] Petra Quillon: Petra Quillon (1904-1981)")
    assert "Answer" not in first + second


def test_two_rounds_find_what_one_search_misses():
    with ScriptedServer(play) as server:
        shown = run(OPENAI_API_KEY="sk-scripted", OPENAI_BASE_URL=server.base_url)
    single, ircot = shown.split("\nsingle: ")[1].split("\nircot: ")
    assert "Answer: insufficient evidence (stopped: done; 1 calls)" in single
    assert "SubQuestion 1: Where was Petra Quillon born?" in ircot
    assert "Answer: Varn Harbour [2] (stopped: done; 3 calls)" in ircot
    assert ircot.rstrip().endswith("[2] Petra Quillon")
