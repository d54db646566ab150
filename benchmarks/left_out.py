"""Left-out table of `sire` on documents of several passages: what is judged took no part in choosing the weights.

`DocumentWeights` (how parts of documents are ranked) are chosen from a small grid for each corpus by the even-numbered
questions of all other corpora, and judged on the odd-numbered questions of that corpus, beside BM25, vectors, hybrid.
The last column has the weights that ship. The other weights of `sire` were learned on encyclopaedias and on the even
questions of `cloud` (`evidence_weights.py`), on none of the others.

    python benchmarks/left_out.py [SET ...]      # folders of SIRE_DATA; by default ops frameworks manuals web cloud
"""

from __future__ import annotations

import os
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sire_core.evaluate import Experiment, load_dataset
from sire_core.evaluate.runner import EvalConfig
from sire_core.recipes.sire import weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import EvalRow

DATA = Path(os.environ.get("SIRE_DATA", "../shared/data"))
SETS = ("ops", "frameworks", "manuals", "web", "cloud")
GRID = [
    weights.DocumentWeights(cosine=cosine, features=features, repeat=repeat)
    for cosine, features, repeat in product((0.15, 0.3), (0.0, 0.3, 0.6), (0.0, 0.3))
]
CONFIG = EvalConfig(ks=(5,), budget=None, returns="passages")


def rows(dataset: DataSet, folder: Path, baselines: Sequence[str] = ()) -> list[EvalRow]:
    """Rows of one data set, from the index in `folder`, which is built if there is none."""
    return Experiment(dataset, recipes=["sire"], baselines=baselines, folder=folder, config=CONFIG).run()


def recalls(row: EvalRow) -> np.ndarray:
    """R@5 of all questions, of those on one document and of those on several, 0..100 or nan, `[3, questions]`."""
    every = np.array([100.0 * result.recall_passages(5) if result.wanted else np.nan for result in row.results])
    several = np.array([result.type != "single" and len(result.wanted) > 1 for result in row.results])
    return np.stack([every, np.where(several, np.nan, every), np.where(several, every, np.nan)])


def shown(found: np.ndarray) -> str:
    """Means over the odd-numbered questions: all (one / several)."""
    means = np.nanmean(found[:, 1::2], axis=1)
    return f"{means[0]:.1f} ({means[1]:.1f} / {means[2]:.1f})"


def main(names: Sequence[str]) -> None:
    judged: dict[str, dict[str, np.ndarray]] = {}
    tried: dict[str, list[np.ndarray]] = {}
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            dataset, folder = load_dataset(DATA / name), Path(work) / name
            judged[name] = {
                row.setup.recipe: recalls(row) for row in rows(dataset, folder, ("bm25", "dense", "hybrid"))
            }
            tried[name] = []
            for choice in GRID:
                weights.DOCUMENT = choice
                weights.weights_of.cache_clear()
                tried[name].append(recalls(rows(dataset, folder)[-1]))
    print("R@5, odd-numbered questions: all (one document / several)\n")
    print("| set | BM25 | vectors | hybrid | `sire`, weights of the other sets | `sire` as shipped |")
    print("|---|---|---|---|---|---|")
    for name in names:
        others = [other for other in names if other != name]
        fit = [np.mean([np.nanmean(tried[other][n][0, ::2]) for other in others]) for n in range(len(GRID))]
        left_out = tried[name][int(np.argmax(fit))]
        cells = [*(judged[name][recipe] for recipe in ("bm25", "dense", "hybrid")), left_out, judged[name]["sire"]]
        print(f"| {name} | {' | '.join(map(shown, cells))} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or SETS)
