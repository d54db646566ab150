"""How often the sentences of an answer without a model hold what was asked for.

    python benchmarks/extracts.py [--learn] SET...

A set is a folder of SIRE_DATA. Where questions have `needs`, a need is met if a sentence has most of the words of its
quote; else a question is if they have its answer (odd questions that are answered by no yes or no). With `needs` the
last column is left out: weights learned on the even questions of the other sets. `--learn` prints those of all.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from sire_core import Index
from sire_core.evaluate.datasets import load_dataset
from sire_core.evaluate.rows import fold
from sire_core.search import extracts
from sire_core.search.explanation import text_below_title
from sire_core.text.words import normalize_answer

if TYPE_CHECKING:
    from sire_core.questions import Question
    from sire_core.types import Hit

    Asked = tuple[int, Question, list[Hit]]

DATA = Path(os.environ.get("SIRE_DATA", "../shared/data"))
QUESTIONS, HITS, SENTENCES = 300, 10, 5
PENALTY = 0.01
MOST, INSIDE, FEWEST = 0.7, 0.9, 5
"""Share of a quote's words in a sentence, or of a sentence's in the quote, that has so many at least."""


def meets(text: str, quote: str) -> bool:
    """Whether a sentence is a quote, all but some words, or a part of it."""
    words, quoted = (set(re.findall(r"\w+", fold(one))) for one in (text, quote))
    shared = len(words & quoted)
    return shared >= MOST * len(quoted) or (len(words) >= FEWEST and shared >= INSIDE * len(words))


def met(question: Question, texts: Sequence[str]) -> list[bool]:
    """Whether some sentences meet each need of a question, or have its answer."""
    if question.needs:
        return [any(meets(text, quote) for text in texts for _, quote in need) for need in question.needs]
    whole = f" {normalize_answer(' '.join(texts))} "
    return [any(f" {normalize_answer(answer)} " in whole for answer in question.answers)]


def asked(name: str) -> list[Asked]:
    """Questions of a set with their numbers and hits."""
    dataset = load_dataset(DATA / name)
    with Index(recipe="sire") as index:
        index.build(dataset.documents)
        return [
            (number, question, index.search(question.question, HITS))
            for number, question in enumerate(dataset.questions[:QUESTIONS])
            if question.needs or (number % 2 and question.answers and question.answers[0].lower() not in ("yes", "no"))
        ]


def learned(rows: Sequence[Asked]) -> dict[str, float]:
    """Weights that give the sentences that meet a need the largest share of all (listwise softmax)."""
    cases = []
    for _, question, hits in rows:
        _, candidates = extracts.sentence_candidates(question.question, hits)
        if candidates:
            features = np.array([[float(value) for value in one.features.values()] for one in candidates])
            cases.append((features, np.array([met(question, [one.extract.text]) for one in candidates]).T))
    spread = np.concatenate([features for features, _ in cases]).std(axis=0) + 1e-6

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = PENALTY * len(cases) * weights @ weights, 2 * PENALTY * len(cases) * weights
        for features, wanted in cases:
            scores = features / spread @ weights
            odds = np.exp(scores - scores.max())
            for need in wanted[wanted.any(axis=1)]:
                share = odds[need].sum() / odds.sum()
                pull = odds / odds.sum() - np.where(need, odds, 0.0) / odds[need].sum()
                total -= np.log(share) / len(wanted)
                slope = slope + (features / spread).T @ pull / len(wanted)
        return total, slope

    found = minimize(loss, np.zeros(len(spread)), jac=True, method="L-BFGS-B")
    return dict(zip(extracts.FIT, (found.x / spread).round(2).tolist(), strict=True))


def share(rows: Sequence[Asked], weights: dict[str, float]) -> float:
    """Percentage of needs that the chosen sentences meet with some weights."""
    shipped = dict(extracts.FIT)
    extracts.FIT.update(weights)
    chosen = [
        (q, [text for one in extracts.extract_sentences(q.question, hits) for text in (one.quoted, one.text)])
        for _, q, hits in rows
    ]
    extracts.FIT.update(shipped)
    return 100 * fmean(value for question, texts in chosen for value in met(question, texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", metavar="SET")
    parser.add_argument("--learn", action="store_true", help="print the weights that all sets give")
    options = parser.parse_args()
    rows = {name: asked(name) for name in options.sets}
    print("| set | needs or answers | met | five hits whole | weights of the other sets |\n|---|--:|--:|--:|--:|")
    for name, own in rows.items():
        held = [met(q, [text_below_title(hit.unit) for hit in hits[:SENTENCES]]) for _, q, hits in own]
        others = [row for other, found in rows.items() if other != name for row in found if row[0] % 2 == 0]
        left_out = f"{share(own, learned(others)):.1f}" if own[0][1].needs and others else ""
        whole = 100 * fmean(value for values in held for value in values)
        print(f"| {name} | {sum(map(len, held))} | {share(own, {}):.1f} | {whole:.1f} | {left_out} |", flush=True)
    if options.learn:
        print(learned([row for own in rows.values() for row in own if row[0] % 2 == 0]))


if __name__ == "__main__":
    main()
