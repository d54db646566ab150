"""Builds in processes of their own, whose workers can be found and ended."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

from sire_core import Document

SCRIPT = """
import sys
from pathlib import Path
from sire_core import Index
from sire_core.changes.processes import ProcessRunner
sys.path.append({support!r})
from support.worker_builds import documents
print("script runs", flush=True)
with Index(Path({folder!r}), recipe="sire", runner=ProcessRunner(2, part_size=4)) as index:
    report = index.build(documents())
    print("built", report.added, flush=True)
"""
"""A build without a `__main__` guard."""


def documents() -> list[Document]:
    """Documents that take a second or two."""
    text = (
        "Petra Quillon{0} built the Northern Wren {0} in Lindle. She sailed to Port Esk in 19{1:02} with Orla Venn{0}. "
    )
    return [Document(f"d{n}", "".join(text.format(n % 17, (n + m) % 90) for m in range(60))) for n in range(48)]


class ScriptBuild:
    """A build by a script that comes on standard input, as a notebook's code has no file either."""

    def __init__(self, folder: Path) -> None:
        self._mark = uuid.uuid4().hex
        support = str(Path(__file__).resolve().parent.parent)
        self.process = subprocess.Popen(
            [sys.executable, "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "SIRE_TEST_MARK": self._mark},
            start_new_session=True,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(SCRIPT.format(support=support, folder=str(folder)))
        self.process.stdin.close()
        self.process.stdin = None

    def workers(self) -> list[int]:
        """Ids of the worker processes that run."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != self.process.pid:
                try:
                    environment, command = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
                except OSError:  # it has ended
                    continue
                if self._mark.encode() in environment and b"answer_parts" in command:
                    found.append(int(entry.name))
        return found

    def wait_for_workers(self) -> list[int]:
        """Wait until both workers run; return their ids, none if the build ends before."""
        while len(workers := self.workers()) < 2:
            if self.process.poll() is not None:
                return []
            time.sleep(0.01)
        return workers

    def ends_with_workers(self, seconds: float = 60.0) -> bool:
        """True if no worker runs any more, at the latest after some seconds."""
        limit = time.monotonic() + seconds
        while self.workers():
            if time.monotonic() > limit:
                return False
            time.sleep(0.05)
        return True

    def interrupt(self) -> None:
        """Press Ctrl-C: every process of the terminal gets it."""
        os.killpg(self.process.pid, signal.SIGINT)
