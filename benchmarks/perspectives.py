"""Perspectives of a graph: what is found, and how long it takes beside one run of Leiden (graspologic-native).

    python benchmarks/perspectives.py --json perspectives.json

First table: graphs with two independent planted partitions on the same vertices. NMI is that of the best level of the
best of two trees with each partition; `shared` is the mean NMI of the two trees. Second table: planted communities of
20 vertices with 30 % of the edges elsewhere; CPU time of one Leiden run, of the entropy merging alone, of one tree and
of the whole abstraction (three trees), and their ratios to Leiden, medians over the repeats, in one process.
Set OMP_NUM_THREADS=1 for single-threaded libraries.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sire_core.papers.smart.communities import MergeLevel, entropy_tree, merge_communities
from sire_core.papers.smart.encoding_tree import (
    EncodingTree,
    UndirectedGraph,
    decoding_information,
    modularity,
    normalized_mutual_information,
)
from sire_core.papers.smart.perspectives import abstract_greedy, leiden_labels, tree_information

Labels = NDArray[np.int64]


def two_partitions(
    size: int, blocks: tuple[int, int], inside: tuple[float, float], rng: np.random.Generator
) -> tuple[UndirectedGraph, Labels, Labels]:
    """A graph whose edges follow two independent partitions."""
    first, second = (rng.integers(0, count, size) for count in blocks)
    left, right = np.triu_indices(size, 1)
    chance = 0.005 + inside[0] * (first[left] == first[right]) + inside[1] * (second[left] == second[right])
    chosen = rng.random(len(left)) < chance
    return UndirectedGraph.from_edges(size, np.stack([left[chosen], right[chosen]], axis=1)), first, second


def communities(edges: int, rng: np.random.Generator) -> UndirectedGraph:
    """About `edges` edges among 0.3 times as many vertices: most inside communities of 20, others with a heavy tail."""
    size = int(0.3 * edges)
    left = rng.integers(0, size, int(1.7 * edges))
    near = left // 20 * 20 + rng.integers(0, 20, len(left))
    heavy = np.minimum(rng.zipf(1.6, len(left)) - 1, 10**9) % size
    right = np.minimum(np.where(rng.random(len(left)) < 0.7, near, heavy), size - 1)
    pairs = np.unique(np.sort(np.stack([left, right], axis=1), axis=1), axis=0)
    pairs = rng.permutation(pairs[pairs[:, 0] != pairs[:, 1]])[:edges]
    return UndirectedGraph.from_edges(size, pairs, rng.integers(1, 11, len(pairs)).astype(float))


def recovery(trees: tuple[EncodingTree, ...], partition: Labels) -> float:
    return max(normalized_mutual_information(level, partition) for tree in trees for level in tree.filled())


def methods(graph: UndirectedGraph, seed: int) -> dict[str, Callable[[], tuple[EncodingTree, ...]]]:
    rows: dict[str, Callable[[], tuple[EncodingTree, ...]]] = {
        "leiden, one run": lambda: (EncodingTree(graph.size, (leiden_labels(graph, 1.0, seed),)),),
        "greedy, two trees": lambda: tuple(found.tree for found in abstract_greedy(graph, kappa=2, seed=seed)),
    }
    if find_spec("torch"):
        from sire_core.papers.smart.derive import Perspectives
        from sire_core.papers.smart.soft_trees import abstract_neural

        features = np.random.default_rng(seed).standard_normal((graph.size, 64)).astype(np.float32)
        for name in ("se", "modularity"):
            settings = Perspectives(abstractor="neural", kappa=2, diversity=0.3, loss=name)
            rows[f"neural, {name}"] = lambda settings=settings: abstract_neural(graph, features, settings, seed)
    return rows


def quality(seeds: int) -> list[dict[str, Any]]:
    cases = [
        (240, (4, 4), (0.25, 0.2)),
        (240, (4, 4), (0.25, 0.25)),
        (400, (8, 8), (0.4, 0.3)),
        (600, (6, 10), (0.25, 0.25)),
    ]
    results = []
    for size, blocks, inside in cases:
        found: dict[str, list[tuple[float, ...]]] = {}
        for seed in range(seeds):
            graph, first, second = two_partitions(size, blocks, inside, np.random.default_rng(seed))
            for name, run in methods(graph, seed).items():
                begin = time.process_time()
                trees = run()
                spent = time.process_time() - begin
                saved = float(np.mean([decoding_information(graph, tree) for tree in trees]))
                shared = tree_information(*trees, normalized_mutual_information) if len(trees) == 2 else 0.0
                flat = float(np.mean([max(modularity(graph, level) for level in tree.filled()) for tree in trees]))
                row = (recovery(trees, first), recovery(trees, second), saved, flat, shared, spent)
                found.setdefault(name, []).append(row)
        for name, rows in found.items():
            nmi_first, nmi_second, saved, flat, shared, spent = (float(column) for column in np.mean(rows, axis=0))
            both = sum(min(row[:2]) >= 0.9 for row in rows)
            case = f"n={size} blocks={blocks} p={inside}"
            print(
                f"{case:38} {name:18} NMI {nmi_first:.2f} {nmi_second:.2f}  both >= .9: {both}/{len(rows)}"
                f"  D {saved:.2f}  Q {flat:.2f}  shared {shared:.2f}  {spent:.2f} s"
            )
            results.append({
                "case": case, "method": name, "nmi": [nmi_first, nmi_second], "both": both, "runs": len(rows),
                "decoding_bits": saved, "modularity": flat, "shared_nmi": shared, "cpu_s": spent,
            })  # fmt: skip
    return results


def speed(sizes: list[int], repeats: int) -> list[dict[str, Any]]:
    results = []
    for edges in sizes:
        graph = communities(edges, np.random.default_rng(0))
        starts, targets, weights = graph.rows()
        runs: dict[str, Callable[[], object]] = {
            "leiden": lambda g=graph, s=starts, t=targets, w=weights: leiden_once(g.size, s, t, w),
            "merging": lambda g=graph: merge_communities(MergeLevel.of(g)),
            "one tree": lambda g=graph: entropy_tree(g, 3),
            "three trees": lambda g=graph: abstract_greedy(g, kappa=3),
        }
        spent: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(repeats):
            for name, run in runs.items():
                begin = time.process_time()
                run()
                spent[name].append(time.process_time() - begin)
        base = statistics.median(spent["leiden"])
        for name, times in spent.items():
            seconds = statistics.median(times)
            print(f"{len(graph.edges):9,} edges  {name:12} {seconds:8.3f} s  x{seconds / base:6.1f} of one Leiden run")
            results.append({"edges": len(graph.edges), "row": name, "cpu_s": seconds, "ratio": seconds / base})
    return results


def leiden_once(size: int, starts: Labels, targets: Labels, weights: NDArray[np.float64]) -> object:
    """The library alone, without our conversions."""
    from graspologic_native import leiden_csr

    return leiden_csr(starts, targets.astype(np.int32), weights, size, seed=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--seeds", type=int, default=3, help="graphs per planted case")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {"quality": quality(options.seeds), "speed": speed(options.edges, options.repeats)}
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
