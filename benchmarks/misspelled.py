"""Recall of `sire` and of hybrid search on questions whose longer words are misspelled.

`python benchmarks/misspelled.py FOLDER...`: the first 150 questions of the part `odd` of each data set that have gold
passages, as they are and with two neighboring letters swapped in half and in all of the words of five letters or more;
default embedder. R@5, and questions with a gold passage in the first place.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from sire_core import Index
from sire_core.evaluate.datasets import load_dataset
from sire_core.recipes import flat, sire

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


def main(folders: list[str]) -> None:
    """Print a row per data set and share of misspelled words."""
    for folder in folders:
        dataset = load_dataset(folder)
        questions = [question for question in dataset.part("odd").questions if question.supporting][:_QUESTIONS]
        for name, recipe in (("hybrid", flat(ranker="hybrid")), ("sire", sire())):
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
                    count = len(questions)
                    rates = f"R@5 {100 * recall / count:.1f}, gold first {100 * first / count:.1f}"
                    print(f"{Path(folder).name}, {share:.0%} misspelled, {name}: {rates} of {count}")


if __name__ == "__main__":
    main(sys.argv[1:])
