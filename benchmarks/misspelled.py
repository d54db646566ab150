"""Recall of `sire` and of hybrid search on questions whose longer words are misspelled.

`python benchmarks/misspelled.py FOLDER...`: the first 150 questions of the part `odd` of each data set that have gold
passages, as they are and with two neighboring letters swapped in half and in all of the words of five letters or more;
default embedder. R@5 / questions with a gold passage in the first place.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sire_core import Index
from sire_core.evaluate.datasets import load_dataset
from sire_core.recipes import flat, sire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sire_core.evaluate.datasets import DataSet
    from sire_core.protocols import Recipe
    from sire_core.questions import Question

_SHARES = (0.0, 0.5, 1.0)
_QUESTIONS = 150
_SEED = 7


def misspelled(question: str, share: float, chance: random.Random) -> str:
    """Two letters inside a share of the longer words swapped."""
    words = question.split()
    for place, word in enumerate(words):
        if len(word) > 4 and chance.random() < share:
            at = chance.randrange(1, len(word) - 2)
            words[place] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return " ".join(words)


def rates(recipe: Recipe, dataset: DataSet, questions: Sequence[Question]) -> list[str]:
    """R@5 and questions with gold first, for each share of misspelled words."""
    cells = []
    with Index(recipe=recipe, chunker=None) as index:
        index.build(dataset.documents)
        for share in _SHARES:
            chance = random.Random(_SEED)
            recall, first = 0.0, 0
            for question in questions:
                hits = index.search(misspelled(question.question, share, chance), 5)
                found = list(dict.fromkeys(document for hit in hits for document in hit.doc_ids))
                gold = set(question.supporting)
                recall += len(gold.intersection(found[:5])) / len(gold)
                first += bool(found) and found[0] in gold
            cells.append(f"{100 * recall / len(questions):.1f} / {100 * first / len(questions):.1f}")
    return cells


def main(folders: list[str]) -> None:
    """Print a row per data set and share of misspelled words."""
    print("| set | misspelled words | questions | hybrid | `sire` |\n|---|--:|--:|--:|--:|")
    for folder in folders:
        dataset = load_dataset(folder)
        questions = [question for question in dataset.part("odd").questions if question.supporting][:_QUESTIONS]
        columns = [rates(recipe, dataset, questions) for recipe in (flat(ranker="hybrid"), sire())]
        for share, *cells in zip(_SHARES, *columns, strict=True):
            print(f"| {Path(folder).name} | {share:.0%} | {len(questions)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
