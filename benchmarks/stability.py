"""How much R@5 moves with what should not matter: the seed, the order of the corpus, and the way an index came about.

    python benchmarks/stability.py --sets musique --recipes sire sirerag

Five builds are of the same documents: three seeds, and the corpus in two other orders. Then an index that grew in four
slices, and one that held as many other passages first, which were deleted. The last row is what is left of the set when
half of its passages are gone: deleted from the whole index, and built from the other half at once. Questions that lost
a gold passage are left out there. Rows of one table should agree within their spread; a difference says that an index
depends on its history.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sire_core import Document, Index
from sire_core.evaluate.datasets import DataSet, load_dataset
from sire_core.evaluate.rows import EvalRow
from sire_core.evaluate.runner import EvalConfig, evaluate
from sire_core.models.embedders import resolve_embedder
from sire_core.models.sync import run_sync

_SLICES = 4
_CONFIG = EvalConfig(budget=None, returns="passages")

History = Callable[[Index], None]


def shuffled(documents: Sequence[Document], seed: int) -> list[Document]:
    order = np.random.default_rng(seed).permutation(len(documents))
    return [documents[number] for number in order]


def built(documents: Sequence[Document]) -> History:
    return lambda index: _done(index.build(documents))


def grown(documents: Sequence[Document]) -> History:
    """In slices; the first one is built, the others are added."""

    def grow(index: Index) -> None:
        size = -(-len(documents) // _SLICES)
        index.build(documents[:size])
        for start in range(size, len(documents), size):
            index.add(documents[start : start + size])

    return grow


def shrunk(documents: Sequence[Document], gone: Sequence[Document]) -> History:
    """Built with others that are then deleted."""

    def shrink(index: Index) -> None:
        index.build(shuffled([*documents, *gone], 11))
        index.delete([document.id for document in gone])

    return shrink


def _done(_: Any) -> None:
    """What a build reports is of no interest here."""


def measured(dataset: DataSet, recipe: str, embedder: str, seed: int, history: History) -> EvalRow:
    """The row of an index that came about in some way."""
    with tempfile.TemporaryDirectory(prefix="sire-stability-") as folder:
        index = Index(
            Path(folder) / "index", recipe=recipe, embedder=resolve_embedder(embedder), chunker=None, seed=seed
        )
        try:
            history(index)
            return run_sync(evaluate(index, dataset, _CONFIG))
        finally:
            index.close()


def half_of(dataset: DataSet) -> tuple[DataSet, list[Document]]:
    """A seeded half of the passages with the questions that keep all their gold passages, and the other half."""
    order = shuffled(dataset.documents, 7)
    kept = {document.id for document in order[: len(order) // 2]}
    # Most questions would lose a passage: every second question that can be kept whole keeps its passages.
    for question in dataset.part("even").questions:
        kept.update(question.supporting)
    left = tuple(document for document in dataset.documents if document.id in kept)
    asked = tuple(question for question in dataset.questions if kept.issuperset(question.supporting))
    gone = [document for document in dataset.documents if document.id not in kept]
    return replace(dataset, documents=left, questions=asked), gone


def run(dataset: DataSet, recipe: str, embedder: str) -> None:
    """Measure a recipe and print its rows."""
    documents = dataset.documents
    half, gone = half_of(dataset)
    cases: list[tuple[str, str, DataSet, int, History]] = [
        *(("whole", f"seed {seed}", dataset, seed, built(documents)) for seed in range(3)),
        *(("whole", f"order {seed}", dataset, 0, built(shuffled(documents, seed))) for seed in (1, 2)),
        ("whole", f"grown in {_SLICES} slices", dataset, 0, grown(documents)),
        ("half", "built", half, 0, built(half.documents)),
        ("half", "the rest deleted", half, 0, shrunk(half.documents, gone)),
    ]
    rows: dict[str, list[EvalRow]] = {"whole": [], "half": []}
    for group, name, data, seed, history in cases:
        print(f"{recipe}: {group}, {name}", file=sys.stderr, flush=True)
        row = measured(data, recipe, embedder, seed, history)
        rows[group].append(row)
        print(_line(recipe, f"{group}: {name}", row), flush=True)
    for group, found in rows.items():
        same = _same(found)
        values = [row.recall_passages(5) or 0.0 for row in found]
        spread = f"{min(values):.1f} to {max(values):.1f} (sd {np.std(values, ddof=1):.1f})"
        print(f"| {recipe} | **{group}: spread** | | | {spread} | | {same:.1f} |")


def _line(recipe: str, name: str, row: EvalRow) -> str:
    cells = [f"{value or 0.0:.1f}" for value in (row.recall_passages(2), row.recall_passages(5), row.mean("all@5"))]
    return f"| {recipe} | {name} | {len(row.with_gold)} | {cells[0]} | {cells[1]} | {cells[2]} | |"


def _same(rows: Sequence[EvalRow]) -> float:
    """Share of questions whose first five passages are the same set in all rows."""
    tops = [[frozenset(result.passages[:5]) for result in row.results] for row in rows]
    return 100.0 * float(np.mean([len(set(found)) == 1 for found in zip(*tops, strict=True)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("SIRE_DATA") or Path(__file__).resolve().parents[1] / ".." / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default, help="folder of the data sets")
    parser.add_argument("--sets", nargs="+", default=["musique"])
    parser.add_argument("--recipes", nargs="+", default=["sire", "pagerank", "iier", "sirerag"])
    parser.add_argument("--embedder", default="lexical", help="as `sire index --embedder` takes it")
    options = parser.parse_args()
    for name in options.sets:
        dataset = load_dataset(options.data / name)
        print(f"\n### {dataset.name}, {options.embedder} embedder\n")
        print("| recipe | index | questions | R@2 | R@5 | all@5 | same five passages, % of questions |")
        print("|---|---|--:|--:|--:|--:|--:|")
        for recipe in options.recipes:
            run(dataset, recipe, options.embedder)


if __name__ == "__main__":
    main()
