"""Evidence chains: what a walk costs beside one scan of the passages, and what the density of the graph changes.

    python benchmarks/chains.py cost --passages 5000 50000
    python benchmarks/chains.py density DATASET_DIR --embedder st:MODEL --plot density.png --json density.json

`cost` walks random graphs as dense as those of Wikipedia passages and prints CPU milliseconds, for the median question:
of the product of the whole matrix with the question, of the walk (heuristic scorer, three seeds, five passages each),
and their ratio. `density` is figure 3 of the IIER paper: it builds the graph again and again with more and less
neighbours and shared keywords, and prints mean degree, recall and evidence match rate; `--plot` needs the extra
`plots`.
Use OMP_NUM_THREADS=1 for single-threaded libraries.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sire_core import Index
from sire_core.arrays.lists import Lists
from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.evaluate.datasets import DataSet, load_dataset
from sire_core.evaluate.retrieval import evidence_match
from sire_core.evaluate.runner import EvalConfig, evaluate
from sire_core.models.embedders import resolve_embedder
from sire_core.papers.iier.chain_graph import ChainGraph
from sire_core.papers.iier.rank import walk_chains
from sire_core.papers.iier.scorers import ChainQuestion, HeuristicScorer
from sire_core.recipes import iier
from sire_core.recipes.published import ablations_of
from sire_core.search.vectors.sq_index import KnownSimilarities

SEEDS, LENGTH, KEYWORDS = 3, 5, 5
HOLDERS = 0.01
"""Share of the passages that hold a keyword of the question."""


def random_graph(size: int, dimension: int, degree: int, rng: np.random.Generator) -> ChainGraph:
    """A graph of `size` random vectors, every node with about `degree` random neighbours."""
    left, right = rng.integers(0, size, (2, size * degree // 2))
    pairs = np.unique(np.sort(np.stack([left, right], axis=1)[left != right], axis=1), axis=0)
    sources, targets = np.concatenate([pairs, pairs[:, ::-1]]).T
    order = np.lexsort((targets, sources))
    weights = np.tile(np.stack([rng.random((3, len(pairs)))], axis=0)[0].T.astype(np.float32), (2, 1))
    return ChainGraph(
        positions=np.arange(size),
        vectors=unit_rows(rng.standard_normal((size, dimension), dtype=np.float32)),
        indptr=np.concatenate(([0], np.cumsum(np.bincount(sources, minlength=size)))).astype(np.int64),
        neighbors=targets[order].astype(np.int64),
        features=weights[order],
        keywords=Lists.of_lengths([0] * size, ()),
        postings=Lists.of_lengths((), ()),
        keyword_of={},
        keys=(),
    )


async def cost(size: int, dimension: int, degree: int, questions: int) -> dict[str, float]:
    """CPU milliseconds of a scan and of a walk, for the median question."""
    rng = np.random.default_rng(0)
    graph = random_graph(size, dimension, degree, rng)
    coverage = np.where(rng.random(size) < HOLDERS, rng.integers(0, 2**KEYWORDS, size), 0).astype(np.uint64)
    scans, walks = [], []
    for number in range(questions + 1):
        vector = unit_rows(rng.standard_normal((1, dimension), dtype=np.float32))[0]
        start = time.process_time()
        cosines = KnownSimilarities(graph.vectors @ vector)
        scanned = time.process_time()
        question = ChainQuestion("question", vector, cosines, ("keyword",) * KEYWORDS, coverage)
        seeds = rng.integers(0, size, SEEDS).tolist()
        begin = time.process_time()
        await walk_chains(graph, None, question, seeds, HeuristicScorer(), LENGTH)  # type: ignore[arg-type]  # no texts needed
        if number:  # the first time round warms up
            walks.append(1000 * (time.process_time() - begin))
            scans.append(1000 * (scanned - start))
    scan, walk = statistics.median(scans), statistics.median(walks)
    degree_found = len(graph.neighbors) / size
    return {"passages": size, "degree": degree_found, "scan_ms": scan, "walk_ms": walk, "ratio": walk / scan}


def density(dataset: DataSet, embedder: str | None, limit: int | None) -> list[dict[str, Any]]:
    """Mean degree, recall and evidence match rate of every density."""
    asked = dataset.sample(limit)
    config = EvalConfig(budget=None)
    made = resolve_embedder(embedder)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for settings in ({}, *(row.settings for row in ablations_of("iier") if row.table == "F3")):
            with Index(folder, recipe=iier(**settings), embedder=made) as index:
                index.build(asked.documents)
                graph = ChainGraph.of(index.view())
                row = asyncio.run(evaluate(index, asked, config))
                match = asyncio.run(evidence_match(index, asked))
            recall = {f"R@{k}": row.mean(f"R@{k} prov") for k in (2, 5)}
            rows.append(
                {"settings": dict(settings), "degree": len(graph.neighbors) / graph.size, **recall, "match": match}
            )
    return sorted(rows, key=lambda row: row["degree"])


def show(lines: Sequence[dict[str, Any]]) -> None:
    """Print a Markdown table."""
    names = list(lines[0])
    print("|", " | ".join(names), "|\n|" + "---|" * len(names))
    for line in lines:
        print(
            "|", " | ".join(f"{value:,.2f}" if isinstance(value, float) else str(value) for value in line.values()), "|"
        )


def plot(rows: Sequence[dict[str, Any]], path: Path, title: str) -> None:
    """Draw recall and match rate over the mean degree."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise SystemExit('A plot needs matplotlib: pip install "sire-rag[plots]"') from None
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    for name, mark in (("match", "o"), ("R@5", "s"), ("R@2", "^")):
        axes.plot([row["degree"] for row in rows], [row[name] for row in rows], marker=mark, label=name)
    axes.set(xlabel="mean degree of a passage", ylabel="percent", title=title)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    walking = modes.add_parser("cost")
    walking.add_argument("--passages", type=int, nargs="+", default=[5_000, 50_000])
    walking.add_argument("--dimension", type=int, default=384)
    walking.add_argument("--degree", type=int, default=14)
    walking.add_argument("--questions", type=int, default=200)
    sweep = modes.add_parser("density")
    sweep.add_argument("dataset", type=Path)
    sweep.add_argument("--embedder")
    sweep.add_argument("--limit", type=int, help="ask a sample of this many questions")
    sweep.add_argument("--plot", type=Path)
    for mode in (walking, sweep):
        mode.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.mode == "cost":
        lines: list[dict[str, Any]] = [
            dict(asyncio.run(cost(size, args.dimension, args.degree, args.questions))) for size in args.passages
        ]
    else:
        lines = density(load_dataset(args.dataset), args.embedder, args.limit)
        if args.plot:
            plot(lines, args.plot, args.dataset.name)
    show(lines)
    if args.json:
        args.json.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
