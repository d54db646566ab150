"""Finding the nearest vectors through codes, beside the exact scan: recall, time as a ratio, size.

    OMP_NUM_THREADS=1 python benchmarks/scan.py --rows 100000 1000000 --json scan.json
    OMP_NUM_THREADS=1 python benchmarks/scan.py --vectors vectors.npy

Without `--vectors`, rows and questions are random unit vectors: the worst case, because no row is near any question.
Every method reads its codes, takes the best few (`depth`) and ranks those by exact float32 products with the rows
of a memory-mapped file; the exact scan is one matrix product over that file and a partial sort. Times are medians over
single questions, one thread, asked of all methods in turn, so that a busy machine is as busy for each of them.

- fp16, 8 bit, 4 bit: every number of a vector rounded (faiss.IndexScalarQuantizer; "uniform" has one range for all).
- pq-N: N products of 4-bit codes, summed in registers (faiss.IndexPQFastScan).
- rabitq: the sign of every number (faiss.IndexRaBitQFastScan).
- ivf: float32 rows in sqrt(rows) cells, a tenth of which are read (faiss.IndexIVFFlat); only up to 200,000 rows.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from sire_core.algorithms.vectors import unit_rows

Floats = NDArray[np.float32]
Search = Callable[[Floats], NDArray[np.int64]]

K = 10
TRAINED_ON = 20_000
IP = faiss.METRIC_INNER_PRODUCT


def random_file(path: Path, rows: int, dimension: int) -> Floats:
    rng = np.random.default_rng(0)
    matrix = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, dimension))
    for start in range(0, rows, 50_000):
        part = matrix[start : start + 50_000]
        part[:] = unit_rows(rng.standard_normal(part.shape, dtype=np.float32))
    matrix.flush()
    return np.load(path, mmap_mode="r")


def best(matrix: Floats, found: NDArray[np.int64], question: Floats) -> NDArray[np.int64]:
    found = np.sort(found[found >= 0])
    return found[np.argsort(-(matrix[found] @ question), kind="stable")[:K]]


def exact(matrix: Floats) -> Search:
    def search(question: Floats) -> NDArray[np.int64]:
        scores = matrix @ question
        return np.argpartition(-scores, K)[:K]

    return search


def through(index: Any, matrix: Floats, depth: int) -> Search:
    return lambda question: best(matrix, index.search(question[None], depth)[1][0], question)


def indexes(rows: int, d: int) -> Iterator[tuple[str, Any, float, tuple[int, ...]]]:
    """Name, index, bytes of a row's code, depths."""
    quantizer = faiss.ScalarQuantizer
    for name, kind, size, depths in (
        ("fp16", quantizer.QT_fp16, 2 * d, (4 * K,)),
        ("8 bit", quantizer.QT_8bit, d, (4 * K,)),
        ("8 bit uniform", quantizer.QT_8bit_uniform, d, (4 * K,)),
        ("4 bit", quantizer.QT_4bit, d / 2, (4 * K, 10 * K)),
    ):
        yield name, faiss.IndexScalarQuantizer(d, kind, IP), size, depths
    yield f"pq-{d // 2}", faiss.IndexPQFastScan(d, d // 2, 4, IP), d / 4, (100, 400, 1000, 2000)
    if hasattr(faiss, "IndexRaBitQFastScan"):
        yield "rabitq", faiss.IndexRaBitQFastScan(d, IP), d / 8, (1000, 4000)
    if rows <= 200_000:
        cells = int(rows**0.5)
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(d), d, cells, IP)
        index.nprobe = max(1, cells // 10)
        yield "ivf", index, 4 * d, (K,)


def measure(matrix: Floats, questions: Floats) -> list[dict[str, Any]]:
    rows, dimension = matrix.shape
    sample = np.array(matrix[np.random.default_rng(1).choice(rows, min(rows, TRAINED_ON), replace=False)])
    searches: dict[tuple[str, int], Search] = {("exact", K): exact(matrix)}
    facts: dict[str, dict[str, float]] = {"exact": {"megabytes": rows * dimension * 4e-6, "build_s": 0.0}}
    for name, index, size, depths in indexes(rows, dimension):
        start = time.perf_counter()
        index.train(sample)
        for at in range(0, rows, 50_000):
            index.add(np.array(matrix[at : at + 50_000]))
        facts[name] = {"megabytes": rows * size * 1e-6, "build_s": time.perf_counter() - start}
        searches.update(((name, depth), through(index, matrix, depth)) for depth in depths)
    seconds: dict[tuple[str, int], list[float]] = {key: [] for key in searches}
    recall: dict[tuple[str, int], list[float]] = {key: [] for key in searches}
    for number, question in enumerate((questions[0], *questions)):  # the first time round warms up
        border = np.partition(matrix @ question, -K)[-K] - 1e-6  # rows that score the same are as good
        for key, search in searches.items():
            start = time.perf_counter()
            hits = search(question)
            if number:
                seconds[key].append(time.perf_counter() - start)
                recall[key].append(float((matrix[hits] @ question >= border).sum()) / K)
    base = statistics.median(seconds["exact", K])
    return [
        {
            "rows": rows,
            "method": name,
            "depth": depth,
            "recall": statistics.fmean(recall[name, depth]),
            "ms": 1000 * statistics.median(seconds[name, depth]),
            "speed": base / statistics.median(seconds[name, depth]),
            **facts[name],
        }
        for name, depth in searches
    ]


def show(lines: list[dict[str, Any]]) -> None:
    print("| rows | method | re-ranked | recall@10 | ms | times as fast | codes, MB | build, s |")
    print("|-----:|--------|----------:|----------:|---:|--------------:|----------:|---------:|")
    for line in lines:
        print(
            f"| {line['rows']:,} | {line['method']} | {line['depth']:,} | {line['recall']:.4f} | {line['ms']:.2f} | "
            f"{line['speed']:.1f} | {line['megabytes']:.0f} | {line['build_s']:.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000, 100_000])
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--vectors", type=Path, help="A float32 .npy file instead; its last rows are the questions.")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    faiss.omp_set_num_threads(1)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        if args.vectors:
            given = unit_rows(np.load(args.vectors).astype(np.float32))
            lines += measure(given[: -args.questions], given[-args.questions :])
        else:
            rng = np.random.default_rng(2)
            questions = unit_rows(rng.standard_normal((args.questions, args.dimension), dtype=np.float32))
            for rows in args.rows:
                lines += measure(random_file(Path(folder) / f"{rows}.npy", rows, args.dimension), questions)
    show(lines)
    if args.json:
        args.json.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
