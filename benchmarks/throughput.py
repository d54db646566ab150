"""Questions a second over one folder: one by one, in batches, with threads, with processes.

    python benchmarks/throughput.py [--data DIR] [--documents 6119] [--recipes flat sire ...] [--questions 300]

The default embedder, no model, numpy on one thread; wall time, so an idle machine is needed for absolute numbers. Every
way asks the same questions of the same folder, one way after the other in one run.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

from sire_core import Index  # noqa: E402 - numpy reads the number of threads when it is imported
from sire_core.evaluate.datasets import load_dataset  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SIRE_DATA", ROOT.parent / "shared" / "data"))
_opened: dict[str, Index] = {}


def ask(folder: str, questions: list[str]) -> int:
    """Ask in a process of its own, which opens the folder once."""
    index = _opened.setdefault(folder, Index(folder))
    return sum(len(index.search(question, 10)) for question in questions)


def rates(folder: str, questions: list[str]) -> dict[str, float]:
    """Questions a second of every way."""
    found: dict[str, float] = {}

    def measure(name: str, work: Callable[[], object]) -> None:
        start = time.perf_counter()
        work()
        found[name] = len(questions) / (time.perf_counter() - start)

    with Index(folder) as index:
        index.search(questions[0], 10)
        measure("one by one", lambda: [index.search(question, 10) for question in questions])
        measure("`search_many`", lambda: index.search_many(questions, 10))
        for threads in (2, 8):
            with ThreadPoolExecutor(threads) as pool:
                measure(
                    f"{threads} threads", lambda pool=pool: list(pool.map(lambda q: index.search(q, 10), questions))
                )
    for processes in (2, 4):
        with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
            parts = [questions[place::processes] for place in range(processes)]
            list(pool.map(ask, [folder] * processes, [questions[:1]] * processes))  # imports and opens
            asked = partial(pool.map, ask, [folder] * processes, parts)
            measure(f"{processes} processes", lambda asked=asked: list(asked()))
    return found


def main() -> None:
    """Build, measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--documents", type=int)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--recipes", nargs="+", default=["flat", "pagerank", "sire"])
    given = parser.parse_args()
    found = load_dataset(given.data / "2wikimultihopqa")
    questions = [question.question for question in found.questions[: given.questions]]
    rows: dict[str, dict[str, float]] = {}
    for recipe in given.recipes:
        with tempfile.TemporaryDirectory() as folder:
            with Index(folder, recipe=recipe, chunker=None) as index:
                index.build(found.documents[: given.documents])
            rows[recipe] = rates(folder, questions)
    ways = list(next(iter(rows.values())))
    print(f"| questions a second | {' | '.join(ways)} |\n|---{'|--:' * len(ways)}|")
    for recipe, by_way in rows.items():
        print(f"| `{recipe}` | {' | '.join(f'{by_way[way]:,.0f}' for way in ways)} |")


if __name__ == "__main__":
    main()
