"""Speed and memory of indexing, loading, searching and importing, as ratios of one run.

    python benchmarks/index_speed.py [--data DIR] [--quick] [--json FILE]

Embedding is measured apart: the first build records the vectors of every text, the second one reads them back, and only
the second is timed. Each step runs in a process of its own, on one thread.
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SIRE_DATA", ROOT.parent / "shared" / "data"))
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Recorder:
    """An embedder that remembers what it was asked, or answers from what was remembered."""

    spec = ""

    def __init__(self, inner: Any = None, remembered: dict[str, np.ndarray] | None = None) -> None:
        self.inner = inner
        self.remembered = remembered if remembered is not None else {}
        self.dimension = inner.dimension if inner else len(next(iter(self.remembered.values())))
        self.fingerprint = "recorded"

    async def embed(self, texts: Sequence[str], kind: str = "document") -> np.ndarray:
        """Ask and remember, or remember."""
        if self.inner is not None:
            vectors = await self.inner.embed(texts, kind)
            self.remembered.update(zip(texts, vectors, strict=True))
            return vectors
        return np.stack([self.remembered[text] for text in texts])


def documents(data: Path, limit: int | None) -> list[Any]:
    from sire_core.files.readers import read_documents

    return list(read_documents([data / "2wikimultihopqa" / "corpus.jsonl"]).documents)[:limit]


def record(folder: Path, data: Path, limit: int | None) -> None:
    """Build once and write down every vector."""
    from sire_core import Index
    from sire_core.models.lexical_embedder import LexicalEmbedder

    given = documents(data, limit)
    recorder = Recorder(LexicalEmbedder().fit([f"{d.title}\n{d.text}" for d in given]))
    Index(folder / "first", recipe="sirerag", embedder=recorder).build(given)
    texts = list(recorder.remembered)
    np.save(folder / "vectors.npy", np.stack([recorder.remembered[t] for t in texts]))
    (folder / "texts.json").write_text(json.dumps(texts))


def build(folder: Path, data: Path, limit: int | None) -> dict[str, float]:
    """Build with remembered vectors; CPU and memory of everything but embedding."""
    from sire_core import Index

    given = documents(data, limit)
    vectors = np.load(folder / "vectors.npy")
    remembered = dict(zip(json.loads((folder / "texts.json").read_text()), vectors, strict=True))
    start = time.process_time()
    report = Index(folder / "index", recipe="sirerag", embedder=Recorder(remembered=remembered)).build(given)
    cpu = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"passages": len(given), "cpu": cpu, "peak_mb": peak, **{f"wall {k}": v for k, v in report.seconds.items()}}


def load(folder: Path) -> dict[str, float]:
    """Open an index and read its first hit's worth of pool, against `np.load` of the same vectors."""
    from sire_core.reader import Reader  # noqa: F401 - importing is not loading
    from sire_core.storage.index_files import IndexFiles

    matrix = next((folder / "index" / "derived").glob("*/matrix.npy"))

    def ours() -> None:
        library = IndexFiles(folder / "index")
        library.pools.get(library.manifest().recipes[-1], library.manifest().generation)
        library.close()

    return {"np.load": best(lambda: np.load(matrix), 15), "open": best(ours, 15)}


def search(folder: Path) -> dict[str, float]:
    """Search p50 against one raw scan of the same matrix, question vectors known."""
    from sire_core import Index

    matrix = np.load(next((folder / "index" / "derived").glob("*/matrix.npy")))
    rng = np.random.default_rng(0)
    questions = {f"question {i}": matrix[j] for i, j in enumerate(rng.integers(0, len(matrix), 200))}
    index = Index(folder / "index", embedder=Recorder(remembered=questions))
    same = index.view().matrix
    found: list[float] = []
    raw: list[float] = []
    for question, vector in questions.items():  # side by side, so that both see the same machine
        found.append(timed(lambda q=question: index.search(q, 10)))
        raw.append(timed(lambda v=vector: same @ v))
    return {
        "units": len(matrix),
        "dimension": matrix.shape[1],
        "scan": float(np.median(raw)),
        "search": float(np.median(found)),
    }


def imports() -> dict[str, float]:
    """Import time against numpy's, each in a fresh process."""

    def fresh(code: str) -> float:
        return best(lambda: subprocess.run([sys.executable, "-c", code], check=True), 7)

    empty = fresh("pass")
    ours = fresh("from sire_core import Index; from sire_core.recipes import sirerag")
    return {"numpy": fresh("import numpy") - empty, "sire_core": ours - empty}


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def best(call: Callable[[], object], repeats: int) -> float:
    return min(timed(call) for _ in range(repeats))


def step(name: str, folder: Path, data: Path, limit: int | None) -> dict[str, float]:
    """Run one step in a process of its own."""
    command = [sys.executable, __file__, "--step", name, "--folder", str(folder), "--data", str(data)]
    command += ["--limit", str(limit)] if limit else []
    output = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **THREADS}).stdout
    return dict(json.loads(output or "{}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="the first 1,500 passages only")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--step")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--limit", type=int)
    args = parser.parse_args()
    if args.step:
        steps: dict[str, Callable[[], Any]] = {
            "record": lambda: record(args.folder, args.data, args.limit),
            "build": lambda: build(args.folder, args.data, args.limit),
            "load": lambda: load(args.folder),
            "search": lambda: search(args.folder),
            "imports": imports,
        }
        print(json.dumps(steps[args.step]() or {}))
        return
    limit = 1500 if args.quick else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        step("record", folder, args.data, limit)
        built = step("build", folder, args.data, limit)
        loaded = step("load", folder, args.data, limit)
        searched = step("search", folder, args.data, limit)
        imported = step("imports", folder, args.data, limit)
    per_thousand = 1000 * built["cpu"] / built["passages"]
    rows = [
        ("extraction + organizing + storing, CPU s per 1,000 passages", per_thousand, 4.0),
        ("peak memory of the build, MB", built["peak_mb"], 1000.0),
        ("opening the index / np.load of its vectors", loaded["open"] / loaded["np.load"], 20.0),
        ("search p50 / one raw scan", searched["search"] / searched["scan"], 1.3),
        ("import / import numpy", imported["sire_core"] / imported["numpy"], 1.5),
    ]
    print(
        f"{built['passages']:.0f} passages, {searched['units']:.0f} units x {searched['dimension']:.0f}, one thread\n"
    )
    print("| what | measured | goal, at most |\n|---|---|---|")
    for what, value, goal in rows:
        print(f"| {what} | {value:.2f} | {goal:g} |")
    if args.json:
        details = {"build": built, "load": loaded, "search": searched, "import": imported}
        args.json.write_text(json.dumps({"rows": [list(row) for row in rows], **details}, indent=1))


if __name__ == "__main__":
    main()
