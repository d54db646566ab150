"""Vectors of any number with the neighbors of real ones, and the figures by which the two can be compared.

    python benchmarks/like_real.py --data DIR --embedder lexical --to vectors.npy
    python benchmarks/like_real.py --compare vectors.npy

The first line embeds passages, their first sentences and the questions of the sets (the last rows of the file are
questions). The second prints the table of figures, real beside generated.

A generated row is a smoothed copy of a real one (smoothed bootstrap): the real row plus a normal deviate with the
covariance of its nearest neighbors, scaled by one factor. The factor is chosen so that, when half of the real rows
generate as many as there are, the median nearest neighbor is as near as among the real rows. Questions stay real.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.models.embedders import resolve_embedder

Floats = NDArray[np.float32]

DATA = Path(os.environ.get("SIRE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SETS = ("2wikimultihopqa", "hotpotqa", "musique-more", "cloud")
QUESTIONS = 400
NEIGHBORS = 32
SAMPLED = 500
BLOCK = 50_000


def nearest(rows: Floats, of: Floats, k: int) -> tuple[NDArray[np.int64], Floats]:
    """Positions and cosines of the `k` nearest rows of each of a few vectors, nearest first."""
    best = np.full((len(of), k), -2, dtype=np.float32)
    found = np.zeros((len(of), k), dtype=np.int64)
    for start in range(0, len(rows), BLOCK):
        scores = np.concatenate((best, of @ rows[start : start + BLOCK].T), axis=1)
        names = np.concatenate(
            (found, np.broadcast_to(np.arange(start, start + scores.shape[1] - k), (len(of), scores.shape[1] - k))),
            axis=1,
        )
        order = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        best, found = np.take_along_axis(scores, order, 1), np.take_along_axis(names, order, 1)
    order = np.argsort(-best, axis=1, kind="stable")
    return np.take_along_axis(found, order, 1), np.take_along_axis(best, order, 1)


def nearest_cosine(rows: Floats) -> float:
    """Median cosine of a row with its nearest other one."""
    sample = rows[:: max(1, len(rows) // SAMPLED)][:SAMPLED]
    return float(np.median(nearest(rows, sample, 2)[1][:, 1]))


class Like:
    """A source of rows with the neighbors of given ones.

    Args:
        real: Unit rows `[n, d]`, in no order.
    """

    def __init__(self, real: Floats) -> None:
        half, aim = real[: len(real) // 2], nearest_cosine(real)
        neighbors = _neighbors(half)
        low, high = 0.1, 2.0
        for _ in range(6):  # the wider the kernel, the farther the nearest row
            self.scale = (low + high) / 2
            copied = np.concatenate(list(_copies(half, neighbors, self.scale, len(real), seed=1)))
            low, high = (self.scale, high) if nearest_cosine(copied) > aim else (low, self.scale)
        self._real, self._neighbors = real, _neighbors(real)

    def rows(self, count: int) -> Iterator[Floats]:
        """Blocks of unit rows."""
        return _copies(self._real, self._neighbors, self.scale, count, seed=2)


def _neighbors(rows: Floats) -> NDArray[np.int64]:
    parts = [nearest(rows, rows[start : start + 1000], NEIGHBORS + 1)[0] for start in range(0, len(rows), 1000)]
    return np.concatenate(parts)[:, 1:]


def _copies(real: Floats, neighbors: NDArray[np.int64], scale: float, count: int, seed: int) -> Iterator[Floats]:
    rng = np.random.default_rng(seed)
    for start in range(0, count, BLOCK):
        copied = np.sort(rng.integers(len(real), size=min(BLOCK, count - start)))
        made = np.empty((len(copied), real.shape[1]), dtype=np.float32)
        borders = np.flatnonzero(np.diff(copied, prepend=-1, append=len(real)))
        for low, high in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            around = real[neighbors[copied[low]]]
            weights = rng.standard_normal((high - low, len(around)), dtype=np.float32)
            made[low:high] = real[copied[low]] + (scale / len(around) ** 0.5) * (
                weights @ (around - around.mean(axis=0))
            )
        yield unit_rows(rng.permutation(made))


def figures(rows: Floats, questions: Floats) -> dict[str, float]:
    """What makes a search for neighbors easy or hard."""
    sample = np.array(rows[:: max(1, len(rows) // SAMPLED)][:SAMPLED])
    near = nearest(rows, sample, 21)[1][:, 1:]
    asked = nearest(rows, questions, 10)[1]
    distances = np.sqrt(np.maximum(2 - 2 * near.astype(np.float64), 1e-12))
    with np.errstate(divide="ignore"):
        ids = -1 / np.log(distances / distances[:, -1:])[:, :-1].mean(axis=1)
    some = np.array(rows[:: max(1, len(rows) // 20_000)])
    spectrum = np.linalg.eigvalsh(np.cov(some.T))[::-1]
    shares = np.cumsum(spectrum) / spectrum.sum()
    return {
        "nearest row": float(np.median(near[:, 0])),
        "fifth": float(np.median(near[:, 4])),
        "nearest row of a question": float(np.median(asked[:, 0])),
        "tenth": float(np.median(asked[:, 9])),
        "local intrinsic dimension": float(np.median(ids)),
        "variance in 10 directions": float(shares[9]),
        "in 50": float(shares[49]),
        "in 150": float(shares[149]),
    }


def compare(real: Floats, questions: Floats, counts: list[int]) -> None:
    """Print the figures of real and generated rows, at several numbers of rows."""
    like = Like(real)
    few = len(real) // 4
    table = [("real", count, figures(real[:count], questions)) for count in (few, len(real))]
    for count in (few, len(real), *counts):
        table += [("generated", count, figures(np.concatenate(list(like.rows(count))), questions))]
    print(f"scale of the kernel {like.scale:.3f}\n\n| | rows | {' | '.join(table[0][2])} |")
    print(f"|---|---:|{'---:|' * len(table[0][2])}")
    for name, count, numbers in table:
        print(f"| {name} | {count:,} | {' | '.join(f'{number:.3f}' for number in numbers.values())} |", flush=True)


async def embedded(data: Path, spec: str, most: int) -> Floats:
    """Vectors of passages and first sentences of the sets, mixed, with vectors of questions as the last rows."""
    texts, questions = [], []
    for name in SETS:
        for line in (data / name / "corpus.jsonl").open(encoding="utf-8"):
            passage = json.loads(line)
            texts += [f"{passage['title']}\n{passage['text']}".strip(), re.split(r"(?<=[.!?])\s", passage["text"])[0]]
        questions += [json.loads(line)["question"] for line in (data / name / "questions.jsonl").open(encoding="utf-8")]
    drawn = random.Random(0)
    texts = sorted({text for text in texts if len(text) > 25})
    texts = drawn.sample(texts, min(most, len(texts)))
    embedder = resolve_embedder(spec)
    if hasattr(embedder, "fit"):
        embedder = embedder.fit(texts)
    texts += drawn.sample(questions, QUESTIONS)
    return np.concatenate([await embedder.embed(texts[at : at + 1000]) for at in range(0, len(texts), 1000)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets; default: SIRE_DATA")
    parser.add_argument("--embedder", default="lexical")
    parser.add_argument("--most", type=int, default=20_000, help="so many texts at most")
    parser.add_argument("--to", type=Path, help="write the vectors of the sets")
    parser.add_argument("--compare", type=Path, help="a file that --to wrote")
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000])
    args = parser.parse_args()
    if args.to:
        np.save(args.to, asyncio.run(embedded(args.data, args.embedder, args.most)))
    if args.compare:
        given = unit_rows(np.load(args.compare).astype(np.float32))
        compare(given[:-QUESTIONS], given[-QUESTIONS:], args.rows)


if __name__ == "__main__":
    main()
