"""Measures one peer, in a process of its own inside of the peer's environment; see `run.py`, which starts it.

After every phase a line of JSON goes to standard output and a line is waited for, so that the caller can count the
calls of the model by phase.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

K = 5


class Embedder:
    """Our default embedder, fitted on the passages before; counts the CPU seconds that it takes."""

    def __init__(self, state: Path) -> None:
        from sire_core.models.lexical_embedder import LexicalEmbedder

        with np.load(state) as arrays:
            self.inner = LexicalEmbedder().from_state(dict(arrays))
        self.dimension = self.inner.dimension
        self.seconds = 0.0
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def __call__(self, texts: list[str]) -> np.ndarray:
        """Unit-length float32 vectors, one row a text."""
        with self._lock:
            start = time.process_time()
            found = asyncio.run_coroutine_threadsafe(self.inner.embed(list(texts)), self._loop).result()
            self.seconds += time.process_time() - start
        return np.asarray(found)


class Clock:
    """CPU seconds of the process, without those of the embedder."""

    def __init__(self, embed: Embedder) -> None:
        self._embed = embed
        self.reset()

    def reset(self) -> None:
        """Begin again."""
        self._start = time.process_time() - self._embed.seconds

    def read(self) -> float:
        """Seconds since the last reset."""
        return time.process_time() - self._embed.seconds - self._start


def report(phase: str, **found: Any) -> None:
    """Say what was measured, and wait until the caller has counted."""
    print("\n" + json.dumps({"phase": phase, **found}), flush=True)
    sys.stdin.readline()


def main() -> None:
    """Build all but ten, search, add the ten."""
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", help="module:Class")
    parser.add_argument("given", type=Path, help="folder with passages.json, questions.json and embedder.npz")
    parser.add_argument("folder", type=Path)
    parser.add_argument("url")
    arguments = parser.parse_args()
    passages = json.loads((arguments.given / "passages.json").read_text())
    questions = json.loads((arguments.given / "questions.json").read_text())
    embed = Embedder(arguments.given / "embedder.npz")
    embed(["warm"])
    module, name = arguments.peer.split(":")
    made = getattr(importlib.import_module(module), name)
    # So that no phase pays for imports.
    warm = made(arguments.folder.with_name("warm"), embed, arguments.url)
    warm.build(passages[:20])
    warm.search(questions[0]["question"], K)
    peer = made(arguments.folder, embed, arguments.url)
    report("ready", before_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    clock = Clock(embed)
    peer.build(passages[:-10])
    built = clock.read()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    disk = sum(path.stat().st_size for path in arguments.folder.rglob("*") if path.is_file())
    report("built", cpu=built, peak_mb=peak, disk=disk)
    clock.reset()
    peer.add(passages[-10:])
    peer.search(questions[0]["question"], K)
    report("added", cpu=clock.read())
    seconds, recall, failures = [], [], []
    for question in questions:
        clock.reset()
        try:
            found = peer.search(question["question"], K)
        except Exception as error:  # noqa: BLE001 - a question that a peer fails at is counted, and named
            failures.append(f"{type(error).__name__}: {error}")
            found = []
        seconds.append(clock.read())
        wanted = set(question["supporting"])
        recall.append(len(wanted.intersection(found[:K])) / len(wanted))
    report(
        "searched",
        p50=1000 * float(np.quantile(seconds, 0.5)),
        p99=1000 * float(np.quantile(seconds, 0.99)),
        recall=100 * float(np.mean(recall)),
        questions=len(questions),
        failures=failures,
    )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    main()
