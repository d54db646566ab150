"""The reasoning example runs offline and shows what it promises."""

import subprocess
import sys
from pathlib import Path

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


def test_two_rounds_find_what_one_search_misses():
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 60
    command = [sys.executable, "-c", _OFFLINE, str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    single, ircot = done.stdout.split("\nircot: ")
    assert "Answer: insufficient evidence (stopped: done; 1 calls)" in single
    assert "SubQuestion 1: Where was Petra Quillon born?" in ircot
    assert "Answer: Varn Harbour [4][2] (stopped: done; 3 calls)" in ircot
    assert ircot.rstrip().endswith("[4] The Salt Lantern\n    [2] Petra Quillon")
