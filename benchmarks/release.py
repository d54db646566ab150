"""The whole table of a release: R@5 of passages on every set, those that constants were chosen on and fresh ones.

    python benchmarks/release.py                                   # some hours of one core
    python benchmarks/release.py --sets firms/md ops               # a part

Sets of `DEVELOPED` had a part in choosing constants, weights or defaults, if only on their even-numbered questions;
their odd-numbered ones are asked. On those of `FRESH` nothing was ever chosen: all their questions are asked, once per
release. A set that is looked at for any choice moves to `DEVELOPED`. `left_out.py` judges `sire` with weights that were
learned without the judged set; here it is as it ships.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np
from left_out import BASELINES, CONFIG, DATA, gain

from sire_core.evaluate import Experiment, load_dataset
from sire_core.evaluate.datasets import load_questions
from sire_core.files.readers import read_documents

if TYPE_CHECKING:
    from sire_core.evaluate import DataSet

DEVELOPED = ("ops", "frameworks", "manuals", "web", "cloud", "2wikimultihopqa", "hotpotqa", "musique", "musique-more")
FRESH = ("firms/md", "firms/html")
RECIPES = ("sire", "hipporag2", "linearrag", "pagerank")


def asked(name: str) -> DataSet:
    """A set with the questions that are asked of it."""
    if name in FRESH:  # documents in a folder per format, questions beside these, which name them without ending
        read = read_documents(DATA / name)
        documents = [replace(found, id=str(PurePath(found.id).with_suffix(""))) for found in read.documents]
        return replace(load_questions((DATA / name).parent / "questions.jsonl", documents, name), whole=True)
    return load_dataset(DATA / name).part("odd")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=[*DEVELOPED, *FRESH])
    parser.add_argument("--recipes", nargs="+", default=RECIPES)
    parser.add_argument("--embedder", default=None)
    options = parser.parse_args()
    first, *others = options.recipes
    print(
        f"| set | questions | BM25 | vectors | hybrid | {first} | over the best of the three | {' | '.join(others)} |"
    )
    print(f"|---|--:|--:|--:|--:|--:|---|{'--:|' * len(others)}")
    for name in options.sets:
        rows = Experiment(
            asked(name), options.recipes, baselines=BASELINES, embedder=options.embedder, config=CONFIG
        ).run()
        recalls = [
            np.array([100 * result.recall_passages(5) for result in row.results if result.wanted]) for row in rows
        ]
        means = [f"{found.mean():.1f}" for found in recalls]
        size, baselines = len(recalls[0]), recalls[: len(BASELINES)]
        over = gain(recalls[len(BASELINES)], max(baselines, key=np.mean))
        label = f"{name} (fresh)" if name in FRESH else name
        print(f"| {label} | {size} | {' | '.join([*means[:4], over, *means[4:]])} |", flush=True)


if __name__ == "__main__":
    main()
