"""Personalised PageRank for one question, side by side: the push of this package, scipy and networkx.

    python benchmarks/pagerank.py --nodes 30000 --edges 100000 --json pagerank.json

The graph joins passages and entities as a knowledge graph does: passages mostly name entities that their neighbours
name too, the others with a heavy tail. Each row is the median time of one walk from eight seeds; `ratio` is the time
divided by that of the first row; `overlap` is the share of the best 20 nodes that agree with a precise solution. The
first threshold is the ranker's. One process; set OMP_NUM_THREADS=1 for single-threaded libraries.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sire_core.arrays.personalized_pagerank import CSRGraph, personalized_pagerank

Scores = NDArray[np.float64]


def make_graph(nodes: int, edges: int, rng: np.random.Generator) -> CSRGraph:
    """A bipartite graph of `nodes` nodes and about `edges` undirected edges."""
    passages = nodes // 6
    entities = nodes - passages
    left = rng.integers(0, passages, edges)
    heavy = np.minimum(rng.zipf(1.4, edges) - 1, 10**9) % entities
    near = (left * (entities // passages) + rng.integers(0, 40, edges)) % entities
    right = np.where(rng.random(edges) < 0.8, near, heavy)
    pairs = np.unique(np.stack([left, passages + right], axis=1), axis=0)
    sources, targets = np.concatenate([pairs, pairs[:, ::-1]]).T
    return CSRGraph.from_edges(nodes, sources, targets, rng.uniform(0.5, 2.0, len(sources)))


def power_iteration(matrix: csr_array, start: Scores, follow: float, tolerance: float) -> Scores:
    """The textbook loop over a transposed transition matrix."""
    scores = start
    while True:
        following = (1 - follow) * start + follow * (matrix @ scores)
        following += start * (1.0 - following.sum())  # from nodes without edges back to the seeds
        if np.abs(following - scores).sum() < tolerance:
            return following
        scores = following


def timed(run: Callable[[], Scores], repeats: int) -> tuple[float, Scores]:
    """Median milliseconds and the result of the last run."""
    spent = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = run()
        spent.append((time.perf_counter() - begin) * 1000)
    return statistics.median(spent), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=30_000)
    parser.add_argument("--edges", type=int, default=100_000)
    parser.add_argument("--follow", type=float, default=0.9)
    parser.add_argument("--thresholds", type=float, nargs="+", default=[3e-5, 3e-6], help="precision of the push")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    graph = make_graph(options.nodes, options.edges, rng)
    start = np.zeros(graph.size)
    start[rng.choice(options.nodes // 6, 8, replace=False)] = 1 / 8
    lengths = np.diff(graph.indptr)
    matrix = csr_array((graph.probabilities, graph.targets, graph.indptr), shape=(graph.size, graph.size)).T.tocsr()
    network = nx.DiGraph()
    network.add_nodes_from(range(graph.size))
    sources = np.repeat(np.arange(graph.size), lengths)
    columns = (sources.tolist(), graph.targets.tolist(), graph.probabilities.tolist())
    network.add_weighted_edges_from(zip(*columns, strict=True))
    seeds = {int(node): 1.0 for node in np.flatnonzero(start)}

    def push(threshold: float) -> Callable[[], Scores]:
        return lambda: personalized_pagerank(graph, start, options.follow, threshold=threshold).scores

    def walk() -> Scores:
        found = nx.pagerank(network, options.follow, seeds, max_iter=500)
        return np.array([found[node] for node in range(graph.size)])

    rows = {f"push {limit:g}": push(limit) for limit in options.thresholds}
    rows["power iteration, scipy"] = lambda: power_iteration(matrix, start, options.follow, 1e-6)
    rows["networkx"] = walk
    exact = personalized_pagerank(graph, start, options.follow, threshold=1e-10).scores
    best = set(np.argsort(-exact, kind="stable")[:20].tolist())
    results = []
    for name, run in rows.items():
        spent, scores = timed(run, 3 if name == "networkx" else options.repeats)
        overlap = len(best & set(np.argsort(-scores, kind="stable")[:20].tolist())) / 20
        results.append({"row": name, "ms": round(spent, 3), "overlap": overlap})
    for row in results:
        row["ratio"] = round(float(row["ms"]) / float(results[0]["ms"]), 1)
        print(f"{row['row']:24} {row['ms']:10.3f} ms  x{row['ratio']:8.1f}  top 20 {row['overlap']:.2f}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
