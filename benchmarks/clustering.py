"""Our soft clustering against RAPTOR's, side by side: CPU time, and what the clusters bring together.

    python benchmarks/clustering.py --embedder MODEL_DIR --data DATA_DIR --json clustering.json

Rows: `raptor` is the reference's procedure with its parameters (umap-learn and scikit-learn's Gaussian mixtures,
clusters over 3,500 tokens clustered again); `ours` is the default of this package under the same token limit; `ours,
matched` has its resolution raised until it puts no more pairs together than `raptor` (only where the default does);
`k-means` is spherical k-means with as many clusters as `raptor`. All on the same vectors, one thread, one process.
The reference varies from seed to seed, so a single row of it is a sample.

Yardsticks, both as pair recall, the share of a set of passage pairs that is inside some cluster:
- mention: unordered pairs where the text of one passage names the title of the other: the title's words and punctuation
  marks, a bracketed part at its end left out, occur in the text one after the other, in the same case. Titles that more
  than 20 passages name are left out.
- support: pairs of passages that support the same question.
Against them stands the share, per mille, of all pairs of passages that are inside some cluster.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sire_core.arrays.grouping import coverage, pairs
from sire_core.papers.trees.clustering import paper_clusters, soft_clusters, split_by_tokens
from sire_core.text.words import count_tokens

Clusters = list[NDArray[np.int64]]

TOKEN_LIMIT = 3500
MENTION_LIMIT = 20
REPEATS = 5
FULL = 10**9
WORD = re.compile(r"\w+|[^\w\s]")
BRACKETS = re.compile(r"\s*\([^()]*\)\s*$")


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def mention_pairs(passages: Sequence[dict[str, Any]]) -> NDArray[np.int64]:
    titled: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, passage in enumerate(passages):
        titled[tuple(WORD.findall(BRACKETS.sub("", passage["title"])))].append(row)
    titled.pop((), None)
    lengths: dict[str, set[int]] = defaultdict(set)
    for title in titled:
        lengths[title[0]].add(len(title))
    named_by: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for row, passage in enumerate(passages):
        words = WORD.findall(passage["text"])
        for start, word in enumerate(words):
            for length in lengths.get(word, ()):
                title = tuple(words[start : start + length])
                if title in titled:
                    named_by[title].add(row)
    return pairs(
        [a, b] for title, rows in named_by.items() if len(rows) <= MENTION_LIMIT for a in rows for b in titled[title]
    )


def support_pairs(passages: Sequence[dict[str, Any]], folder: Path) -> NDArray[np.int64]:
    row_of = {passage["id"]: row for row, passage in enumerate(passages)}
    questions = [question for path in sorted(folder.glob("questions*.jsonl")) for question in read_lines(path)]
    return pairs([row_of[p] for p in question["supporting"] if p in row_of] for question in questions)


def embed(passages: Sequence[dict[str, Any]], model: str, cache: Path | None) -> NDArray[np.float32]:
    if cache is not None and cache.exists():
        return np.asarray(np.load(cache), dtype=np.float32)
    from sentence_transformers import SentenceTransformer

    texts = [f"{passage['title']}\n{passage['text']}" for passage in passages]
    encoder = SentenceTransformer(model, device="cpu")
    vectors = np.asarray(encoder.encode(texts, normalize_embeddings=True, show_progress_bar=False), dtype=np.float32)
    if cache is not None:
        cache.parent.mkdir(parents=True, exist_ok=True)
        np.save(cache, vectors)
    return vectors


def raptor(vectors: NDArray[np.float32], tokens: NDArray[np.int64]) -> Clusters:
    """The reference, with a seed for UMAP, and without recursing into clusters that do not get smaller."""
    rng = np.random.default_rng(0)
    waiting = paper_clusters(vectors, rng=rng, repair=False)
    done = []
    while waiting:
        cluster = waiting.pop()
        parts = [cluster]
        if len(cluster) > 1 and tokens[cluster].sum() > TOKEN_LIMIT:
            parts = [cluster[part] for part in paper_clusters(vectors[cluster], rng=rng, repair=False)]
        if all(len(part) < len(cluster) for part in parts):
            waiting += parts
        else:
            done += parts
    return done


def ours(vectors: NDArray[np.float32], tokens: NDArray[np.int64], **options: float) -> Clusters:
    rng = np.random.default_rng(0)
    clusters = soft_clusters(vectors, rng=rng, **options)  # type: ignore[arg-type]  # only numbers are passed
    return [part for cluster in clusters for part in split_by_tokens(cluster, tokens, vectors, TOKEN_LIMIT, rng=rng)]


def k_means(vectors: NDArray[np.float32], count: int) -> Clusters:
    model = faiss.Kmeans(vectors.shape[1], count, spherical=True, seed=1, min_points_per_centroid=1)
    model.train(vectors)
    labels = model.index.search(vectors, 1)[1][:, 0]
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def timed(make: Callable[[], Clusters], repeats: int) -> tuple[Clusters, float]:
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        clusters = make()
        seconds.append(time.process_time() - start)
    return clusters, statistics.median(seconds)


def measure(
    name: str, make: Callable[[], Clusters], n: int, gold: dict[str, NDArray[np.int64]], repeats: int = REPEATS
) -> dict[str, Any]:
    clusters, seconds = timed(make, repeats)
    together = pairs(clusters)
    sizes = [len(cluster) for cluster in clusters]
    return {
        "method": name,
        "cpu_seconds": round(seconds, 4),
        "clusters": len(clusters),
        "mean_size": round(statistics.mean(sizes), 2),
        "largest": max(sizes),
        "memberships": round(sum(sizes) / n, 3),
        "left_out": n - len(np.unique(np.concatenate(clusters))),
        "pairs_permille": round(len(together) / (n * (n - 1) / 2) * 1000, 3),
        **{f"{kind}_recall": round(coverage(together, codes), 4) for kind, codes in gold.items()},
    }


def compare(name: str, passages: Sequence[dict[str, Any]], vectors: NDArray[np.float32], folder: Path) -> list[Any]:
    n = len(passages)
    tokens = np.array([count_tokens(f"{passage['title']}\n{passage['text']}") for passage in passages])
    gold = {"mention": mention_pairs(passages), "support": support_pairs(passages, folder)}
    reference = measure("raptor", lambda: raptor(vectors, tokens), n, gold, repeats=1)
    rows = [reference, measure("ours", lambda: ours(vectors, tokens), n, gold)]
    resolution = 0.015
    while rows[-1]["pairs_permille"] > reference["pairs_permille"]:
        del rows[2:]
        resolution *= 1.1
        rows.append(
            measure("ours, matched", lambda r=resolution: ours(vectors, tokens, resolution=r), n, gold)  # type: ignore[misc]  # bound now
        )
    rows.append(measure("k-means", lambda: k_means(vectors, reference["clusters"]), n, gold, repeats=1))
    for row in rows:
        row |= {
            "set": name,
            "passages": n,
            "mention_pairs": len(gold["mention"]),
            "support_pairs": len(gold["support"]),
            "times_cheaper": round(reference["cpu_seconds"] / row["cpu_seconds"], 1),
        }
    print_rows(rows)
    return rows


def print_rows(rows: Sequence[dict[str, Any]]) -> None:
    for row in rows:
        cost = "1" if row["method"] == "raptor" else f"1 / {row['times_cheaper']:.0f}"
        print(
            f"| {row['set']} | {row['passages']:,} | {row['method']} | {cost} | {row['clusters']} "
            f"| {row['mean_size']:.1f} | {row['memberships']:.2f} | {row['pairs_permille']:.2f} "
            f"| {row['mention_recall']:.3f} | {row['support_recall']:.3f} |",
            flush=True,
        )


def growth(rows: Sequence[dict[str, Any]], method: str) -> float:
    """Exponent p of time ~ passages ** p between the smallest and the largest size of the first set."""
    of_method = [row for row in rows if row["method"] == method and row["set"] == rows[0]["set"]]
    first, last = of_method[0], of_method[-1]
    if first["passages"] == last["passages"]:
        return math.nan
    return math.log(last["cpu_seconds"] / first["cpu_seconds"]) / math.log(last["passages"] / first["passages"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Soft clustering against RAPTOR's.")
    parser.add_argument("--embedder", required=True, help="path or name of a sentence-transformers model")
    parser.add_argument("--data", type=Path, required=True, help="folder with 2wikimultihopqa and hotpotqa")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 3000, FULL], help="first passages of 2Wiki")
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--cache", type=Path, help="keep vectors here between runs")
    arguments = parser.parse_args()
    # Compilation and imports are not what is compared.
    warm = np.random.default_rng(0).standard_normal((200, 16)).astype(np.float32)
    for method in ("leiden", "paper"):
        soft_clusters(warm, rng=np.random.default_rng(0), method=method)
    rows = []
    head = "CPU against raptor | clusters | mean size | memberships | pairs ‰ | mention recall | support recall"
    print(f"| set | passages | method | {head} |\n|---|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, sizes in (("2wikimultihopqa", sorted(arguments.sizes)), ("hotpotqa", [FULL])):
        folder = arguments.data / name
        passages = read_lines(folder / "corpus.jsonl")
        cache = arguments.cache / f"{name}.npy" if arguments.cache else None
        vectors = embed(passages, arguments.embedder, cache)
        for size in sizes:
            with threadpool_limits(limits=1):
                rows += compare(name, passages[:size], vectors[:size], folder)
    for method in ("raptor", "ours"):
        print(f"growth exponent of {method}: {growth(rows, method):.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
