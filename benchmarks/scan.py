"""Finding the nearest vectors through codes, beside the exact scan: recall, time, memory, building.

    python benchmarks/scan.py --rows 100000 1000000 --json scan.json
    python benchmarks/scan.py --rows 1000000 --like vectors.npy --methods "PQ" "IVF"

Without `--like`, rows and questions are random unit vectors: the worst case, because no row is near any question. With
it, rows have the neighbors of those of a file, whose last rows are real questions (`benchmarks/like_real.py`).

Every method (`benchmarks/scan_methods.py`) takes the best few of its codes (`re-ranked`) and ranks those by exact
float32 products with their rows, read from a file; the exact scan is one matrix product over that file, mapped, and a
partial sort. Each line is measured in a process of its own, on one thread, that opens the codes and asks single
questions. Milliseconds are CPU time (the median of the questions), so that waiting for a busy machine does not count;
memory is what the process holds beyond the interpreter and its libraries in the end, mapped pages included.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import faiss
import numpy as np
from like_real import QUESTIONS, Like, nearest
from numpy.typing import NDArray
from scan_methods import Method, methods

from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.search.vectors.flat import RowReader

Floats = NDArray[np.float32]

K = 10
BLOCK = 50_000


def random_rows(count: int, dimension: int) -> Iterable[Floats]:
    rng = np.random.default_rng(0)
    for start in range(0, count, BLOCK):
        yield unit_rows(rng.standard_normal((min(BLOCK, count - start), dimension), dtype=np.float32))


def write(path: Path, blocks: Iterable[Floats], rows: int, dimension: int) -> None:
    matrix = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, dimension))
    at = 0
    for block in blocks:
        matrix[at : at + len(block)] = block
        at += len(block)
    matrix.flush()


def resident() -> float:
    """Megabytes that this process holds, mapped pages included."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS:"))) / 1024


def chosen(rows: int, names: list[str] | None) -> list[Method]:
    found = [method for method in methods(rows) if rows <= method.most]
    return [method for method in found if not names or any(method.name.startswith(name) for name in names)]


def build(method: Method, folder: Path) -> None:
    """In a process of its own: make and write one index."""
    start = time.process_time()
    method.build(np.load(folder / "rows.npy", mmap_mode="r"), folder / "codes")
    print(json.dumps({"build_s": time.process_time() - start}))


def ask(method: Method | None, effort: int, depth: int, folder: Path) -> None:
    """In a process of its own: open and ask; no method is the exact scan."""
    faiss.omp_set_num_threads(1)
    questions, borders = np.load(folder / "questions.npy"), np.load(folder / "borders.npy")
    before = resident()
    matrix = np.load(folder / "rows.npy", mmap_mode="r")
    reader = RowReader(matrix)
    codes = None if method is None else method.open(matrix.shape[1], folder / "codes")
    seconds, found = [], []
    for number, question in enumerate((questions[0], *questions)):  # the first time round warms up
        start = time.thread_time()
        if codes is None:
            hits = np.argpartition(-(matrix @ question), K)[:K]
        else:
            near = np.sort(codes.find(question, depth, effort))
            hits = near[np.argsort(-(reader.rows(near) @ question), kind="stable")[:K]]
        if number:
            seconds.append(time.thread_time() - start)
            found.append(hits)
    memory = resident() - before
    right = [
        float((matrix[hits] @ question >= border).sum()) / K
        for hits, question, border in zip(found, questions, borders, strict=True)
    ]
    line = {"recall": statistics.fmean(right), "ms": 1000 * statistics.median(seconds), "memory": memory}
    print(json.dumps(line))


def run(*arguments: object) -> dict[str, Any]:
    told = subprocess.run(
        [sys.executable, __file__, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True
    )
    line: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return line


def measure(folder: Path, rows: int, names: list[str] | None) -> Iterable[dict[str, Any]]:
    """Lines of all methods on the rows and questions of a folder."""
    matrix, questions = np.load(folder / "rows.npy", mmap_mode="r"), np.load(folder / "questions.npy")
    np.save(folder / "borders.npy", nearest(matrix, questions, K)[1][:, -1] - 1e-6)  # who scores the same is as good
    fact = {"rows": rows, "method": "exact", "effort": 0, "depth": K, "build_s": 0.0, "file": matrix.nbytes * 1e-6}
    yield {**fact, **run("--folder", folder, "--rows", rows)}
    for method in chosen(rows, names):
        told = ("--folder", folder, "--rows", rows, "--one", method.name)
        fact = {"rows": rows, "method": method.name, **run(*told)}
        fact["file"] = (folder / "codes").stat().st_size * 1e-6
        for effort, depth in method.asked:
            yield {**fact, "effort": effort, "depth": depth, **run(*told, "--effort", effort, "--depth", depth)}


def show(line: dict[str, Any]) -> None:
    effort = f"{line['effort']:,}" if line["effort"] else ""
    print(
        f"| {line['rows']:,} | {line['method']} | {effort} | {line['depth']:,} | {line['recall']:.3f} | "
        f"{line['ms']:.2f} | {line['memory']:.0f} | {line['file']:.0f} | {line['build_s']:.0f} |",
        flush=True,
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000, 100_000])
    parser.add_argument("--dimension", type=int, default=384, help="of random vectors")
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--like", type=Path, help="a file of benchmarks/like_real.py")
    parser.add_argument("--methods", nargs="+", help="only those whose names begin so")
    parser.add_argument("--json", type=Path)
    for name, kind in (("folder", Path), ("one", str), ("effort", int), ("depth", int)):
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)  # what one measuring process is told
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if args.folder:
        method = next((one for one in methods(args.rows[0]) if one.name == args.one), None)
        if method is not None and args.depth is None:
            build(method, args.folder)
        else:
            ask(method, args.effort, args.depth, args.folder)
        return
    lines = []
    names = ("rows", "method", "cells read or list", "re-ranked", "recall@10", "CPU ms", "memory, MB", "codes, MB")
    print("|".join(("", *(f" {name} " for name in (*names, "build, CPU s")), "")))
    print("|---:|---|" + "---:|" * len(names[2:]) + "---:|")
    if args.like:
        given = unit_rows(np.load(args.like).astype(np.float32))
        questions, like = given[-QUESTIONS:][: args.questions], Like(given[:-QUESTIONS])
    else:
        rng = np.random.default_rng(2)
        questions, like = unit_rows(rng.standard_normal((args.questions, args.dimension), dtype=np.float32)), None
    for rows in args.rows:
        with tempfile.TemporaryDirectory() as name:
            folder, dimension = Path(name), questions.shape[1]
            np.save(folder / "questions.npy", questions)
            write(folder / "rows.npy", like.rows(rows) if like else random_rows(rows, dimension), rows, dimension)
            for line in measure(folder, rows, args.methods):
                show(line)
                lines.append(line)
    if args.json:
        args.json.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
