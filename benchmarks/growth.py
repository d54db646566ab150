"""How cost grows with the corpus: CPU, memory, disk, opening and changing, at several sizes, with exponents.

    python benchmarks/growth.py [--data DIR] [--sizes N...] [--recipes NAME...] [--together] [--json FILE]
    python benchmarks/growth.py --statistics

Passages are generated (`benchmarks/generated.py`); no language model, the default embedder fitted on 20,000 of the
passages before the clock starts. Every build and every opening runs in a process of its own, on one thread. `--json`
keeps what was measured: the same command goes on where it was interrupted, and prints the tables again. With
`--together` the recipes of a size share one folder: the first one reads, extracts and embeds, and the rows of the
others say what each costs beside what is there, which is how a million passages are affordable.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
os.environ.update(THREADS)

import numpy as np  # noqa: E402 - reads the number of threads when it is imported

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SIRE_DATA", ROOT.parent / "shared" / "data"))
CHANGED = 10
AGAIN = 3
ASKED = 100
COLUMNS = {
    "build CPU s / 1,000": "build_cpu",
    "vectors, besides": "embedding_cpu",
    "peak MB": "peak_mb",
    "KB on disk / passage": "disk_kb",
    "open and first query, s": "first_s",
    "query CPU ms p50": "query_ms",
    "p99": "query_p99_ms",
    "resident MB after them": "resident_mb",
    "adding 10, CPU s": "add_cpu",
    "% of the build": "add_percent",
    "adding 10 again, CPU s": "add_again_cpu",
}


class Timed:
    """The default embedder, fitted before; counts the CPU seconds that it takes."""

    spec = ""
    fingerprint = "growth/1"

    def __init__(self, fitted: Any) -> None:
        self._fitted = fitted
        self.dimension = fitted.dimension
        self.seconds = 0.0
        self._active = 0
        self._start = 0.0

    async def embed(self, texts: Sequence[str], kind: str = "document") -> np.ndarray:
        """Embed. Batches that overlap count once."""
        if not self._active:
            self._start = time.process_time()
        self._active += 1
        try:
            return np.asarray(await self._fitted.embed(texts, kind))
        finally:
            self._active -= 1
            if not self._active:
                self.seconds += time.process_time() - self._start


def fit(folder: Path, data: Path, size: int) -> None:
    """Write the documents and fit the embedder, in a process of its own: its memory is not a build's."""
    from generated import generated

    from sire_core.models.lexical_embedder import LexicalEmbedder

    with (folder / "documents.jsonl").open("w", encoding="utf-8") as file:
        for document in generated(data, size + AGAIN * CHANGED):
            file.write(json.dumps([document.id, document.text, document.title]) + "\n")
    step = max(1, size // 20_000)
    texts = [f"{d.title}\n{d.text}" for d in islice(documents(folder), 0, size, step)]
    np.savez(folder / "embedder.npz", **LexicalEmbedder().fit(texts).state())


def documents(folder: Path) -> Iterator[Any]:
    """The documents that `fit` wrote, one after the other."""
    from sire_core import Document

    with (folder / "documents.jsonl").open(encoding="utf-8") as file:
        for line in file:
            name, text, title = json.loads(line)
            yield Document(name, text, title=title)


def fitted(folder: Path) -> Timed:
    """The embedder that `fit` left."""
    from sire_core.models.lexical_embedder import LexicalEmbedder

    with np.load(folder / "embedder.npz") as state:
        return Timed(LexicalEmbedder().from_state(dict(state)))


def build(folder: Path, size: int, recipe: str) -> dict[str, float]:
    """Build all but ten, ask once, add the ten, ask once; and then the same with three times ten more."""
    from sire_core import Index

    embedder = fitted(folder)
    given = documents(folder)
    with Index(folder / "index", recipe=recipe, embedder=embedder, chunker=None) as index:
        start = time.process_time()
        report = index.build(islice(given, size - CHANGED))
        cpu, embedding = time.process_time() - start, embedder.seconds
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        index.search("Who directed it?")
        taken = []
        for _ in range(1 + AGAIN):
            start = time.process_time()
            index.add(list(islice(given, CHANGED)))
            index.search("Who directed it?")
            taken.append(time.process_time() - start)
    added = taken[0]
    stages = {f"wall {name}": seconds for name, seconds in report.seconds.items()}
    return {
        "build_total": cpu,
        "build_cpu": 1000 * (cpu - embedding) / size,
        "embedding_cpu": 1000 * embedding / size,
        "peak_mb": peak,
        "disk_kb": _size_of(folder) / (size + AGAIN * CHANGED) / 1024,
        "add_cpu": added,
        "add_percent": 100 * added / cpu,
        "add_again_cpu": float(np.median(taken[1:])),
        **stages,
    }


def beside(folder: Path, size: int, recipe: str) -> dict[str, float]:
    """Build a recipe more in a folder that holds the passages."""
    from sire_core import Index

    embedder = fitted(folder)
    before = _size_of(folder)
    with Index(folder / "index", recipe=recipe, embedder=embedder, chunker=None) as index:
        start = time.process_time()
        report = index.add([])
        cpu = time.process_time() - start - embedder.seconds
    return {
        "build_total": cpu,
        "build_cpu": 1000 * cpu / size,
        "embedding_cpu": 1000 * embedder.seconds / size,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "disk_kb": (_size_of(folder) - before) / size / 1024,
        **{f"wall {name}": seconds for name, seconds in report.seconds.items()},
    }


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "index").rglob("*") if path.is_file())


def ask(folder: Path, data: Path, recipe: str) -> dict[str, float]:
    """Open, ask once, then a hundred questions more."""
    from sire_core import Index
    from sire_core.evaluate.datasets import load_dataset

    questions = [question.question for question in load_dataset(data / "2wikimultihopqa").questions[: ASKED + 1]]
    embedder = fitted(folder)
    start = time.perf_counter()
    index = Index(folder / "index", recipe=recipe, embedder=embedder)
    index.search(questions[0], 10)
    first = time.perf_counter() - start
    taken = []
    for question in questions[1:]:
        start, before = time.process_time(), embedder.seconds
        index.search(question, 10)
        taken.append(time.process_time() - start - (embedder.seconds - before))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "first_s": first,
        "query_ms": 1000 * float(np.median(taken)),
        "query_p99_ms": 1000 * float(np.quantile(taken, 0.99)),
        "resident_mb": peak,
    }


def measure(data: Path, size: int, recipes: Sequence[str], known: dict[str, dict[str, Any]], keep: Any) -> None:
    """Recipes that share a folder; each step in a process of its own.

    Args:
        data: Folder of the sets.
        size: Passages.
        recipes: The first is built with the passages, the others beside it.
        known: What was measured, by recipe and size; what is found is put there.
        keep: Called when something was.
    """
    if all(str(size) in known.get(recipe, {}) for recipe in recipes):
        return
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, float] = {}
        for number, recipe in enumerate(recipes):
            for step in ("fit", "build", "ask") if not number else ("beside", "ask"):
                command = [sys.executable, __file__, "--step", step, "--folder", folder, "--data", str(data)]
                command += ["--sizes", str(size), "--recipes", recipe]
                done = subprocess.run(
                    command, check=False, capture_output=True, text=True, env={**os.environ, **THREADS}
                )
                if done.returncode:
                    raise SystemExit(f"{step} of {recipe} at {size:,}:\n{done.stderr}")
                found |= json.loads(done.stdout.splitlines()[-1])
            known.setdefault(recipe, {})[str(size)], found = found, {}
            keep()


def exponent(found: dict[int, dict[str, float]], column: str, *, per_passage: bool) -> float:
    """Slope of the logarithm of a total over that of the size, by least squares."""
    sizes = sorted(found)
    values = [max(found[size].get(column, float("nan")), 1e-6) * (size if per_passage else 1) for size in sizes]
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def table(known: dict[str, dict[int, dict[str, float]]]) -> str:
    """Rows by recipe and size, and the exponents of totals."""
    lines = [f"| recipe | passages | {' | '.join(COLUMNS)} |", f"|---{'|--:' * (len(COLUMNS) + 1)}|"]
    for recipe, found in known.items():
        for size in sorted(found):
            values = [found[size].get(column, float("nan")) for column in COLUMNS.values()]
            cells = ["" if value != value else f"{value:.3g}" if value < 100 else f"{value:,.0f}" for value in values]
            lines.append(f"| {recipe} | {size:,} | {' | '.join(cells)} |")
        if len(found) > 1:
            shown = []
            for column in COLUMNS.values():
                slope = exponent(found, column, per_passage=column in ("build_cpu", "embedding_cpu", "disk_kb"))
                shown.append("" if column == "add_percent" or slope != slope else f"{slope:.2f}")
            lines.append(f"| {recipe} | exponent | {' | '.join(shown)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure what is not measured yet, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sizes", nargs="+", type=int, default=[3_000, 10_000, 30_000])
    parser.add_argument("--recipes", nargs="+", default=["flat", "sire", "pagerank", "iier"])
    parser.add_argument("--together", action="store_true", help="recipes of a size share one folder")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--statistics", action="store_true", help="how close generated passages come to real ones")
    parser.add_argument("--step", choices=("fit", "build", "beside", "ask"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        size, recipe = given.sizes[0], given.recipes[0]
        steps = {
            "fit": lambda: fit(given.folder, given.data, size),
            "build": lambda: build(given.folder, size, recipe),
            "beside": lambda: beside(given.folder, size, recipe),
            "ask": lambda: ask(given.folder, given.data, recipe),
        }
        print(json.dumps(steps[given.step]() or {}))
        return
    if given.statistics:
        _print_statistics(given.data)
        return
    known = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}

    def keep() -> None:
        if given.json:
            given.json.write_text(json.dumps(known, indent=1) + "\n")

    for size in sorted(given.sizes):
        for recipes in [given.recipes] if given.together else [[recipe] for recipe in given.recipes]:
            measure(given.data, size, recipes, known, keep)
    sizes = {str(size): size for size in given.sizes}
    print(table({r: {sizes[s]: row for s, row in known[r].items() if s in sizes} for r in given.recipes}))


def _print_statistics(data: Path) -> None:
    from generated import generated, statistics

    real = 12_000
    given = list(generated(data, 4 * real))
    rows = {"real": statistics(given[:real]), "generated": statistics(given[-real:])}
    print("| | real | generated |\n|---|--:|--:|")
    for name in rows["real"]:
        print(f"| {name} | {rows['real'][name]:,.2f} | {rows['generated'][name]:,.2f} |")


if __name__ == "__main__":
    main()
