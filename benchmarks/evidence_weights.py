"""Learn the weights of `EvidencePaths` on the even-numbered questions of data sets, and print them as Python.

`python benchmarks/evidence_weights.py FOLDER[,untitled][,EMBEDDER]...`, for example `data/cloud,st:MODEL`.

A passage's score is the logarithm of the sum of exponentials of its own evidence and of the steps to it. The weights
maximise the share that the gold passages of a question have in the sum over all its candidates (listwise softmax), less
a small penalty on their squares. Questions are numbered from 0 in the order of the data set's files. What the second
round sees depends on the weights of the first, so run it twice.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from sire_core import Index
from sire_core.evaluate.datasets import load_dataset
from sire_core.models.sync import run_sync
from sire_core.recipes import sire
from sire_core.search.rankers.evidence_index import EvidenceIndex
from sire_core.search.rankers.evidence_paths import EvidencePaths
from sire_core.search.rankers.evidence_question import OWN, STEP, QuestionEvidence
from sire_core.search.rankers.evidence_weights import OWN_WEIGHTS, STEP_WEIGHTS, TARGET_WEIGHTS
from sire_core.search.ranking import ScoredRanking

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_PENALTY = 1e-3
_ITERATIONS = 120


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: own evidence `[passages, OWN]`, steps `[steps, STEP]`, where they lead, and shares of gold."""

    own: Floats
    steps: Floats
    targets: NDArray[np.int64]
    gold: Floats


def asked(folder: str, embedder: str, *, untitled: bool) -> Iterator[Asked]:
    """Evidence of the even-numbered questions that have gold passages."""
    dataset = load_dataset(folder)
    ranker = EvidencePaths()
    with Index(recipe=sire(), embedder=embedder, chunker=None) as index:
        index.build([replace(page, title="") if untitled else page for page in dataset.documents])
        view = index.snapshot().view
        arrays = EvidenceIndex.of(view)
        blank = ScoredRanking(np.zeros(view.size, dtype=np.float32), None, lambda _: ())
        hits = view.hits(arrays.chunks, np.zeros(len(arrays.chunks), dtype=np.float32), blank)
        documents = [hit.doc_ids for hit in hits]
        for question in dataset.questions[::2]:
            wanted = set(question.supporting)
            if not wanted:
                continue
            vector = run_sync(view.embed_query(question.question))
            cosines = np.asarray(view.matrix @ vector, dtype=np.float32)[arrays.chunks]
            evidence = QuestionEvidence(question.question, arrays, cosines, view.matrix, None, ranker.pool)
            passages, own, leads = ranker.evidence(evidence)
            gold = np.array([not wanted.isdisjoint(documents[passage]) for passage in passages.tolist()], dtype=float)
            if gold.any():
                yield Asked(own, leads.features, np.searchsorted(passages, leads.targets), gold / gold.sum())


def learn(questions: list[Asked]) -> tuple[Floats, Floats, Floats]:
    """Weights of passages by themselves, of steps, and of passages at the end of a step."""
    start = np.concatenate(
        [
            [weights[name] for name in names]
            for weights, names in ((OWN_WEIGHTS, OWN), (STEP_WEIGHTS, STEP), (TARGET_WEIGHTS, OWN))
        ]
    )
    ends = len(OWN), len(OWN) + len(STEP)

    def loss(weights: Floats) -> tuple[float, Floats]:
        own, step, target = np.split(weights, ends)
        total, slope = 0.0, np.zeros_like(weights)
        for row in questions:
            alone = row.own @ own
            steps = row.steps @ step + (row.own @ target)[row.targets]
            most = alone.copy()
            np.maximum.at(most, row.targets, steps)
            first, second = np.exp(alone - most), np.exp(steps - most[row.targets])
            sums = first + np.bincount(row.targets, second, minlength=len(alone))
            scores = most + np.log(sums)
            whole = np.logaddexp.reduce(scores)
            total -= float(row.gold @ (scores - whole))
            pull = np.exp(scores - whole) - row.gold
            by_own, by_step = pull * first / sums, (pull / sums)[row.targets] * second
            by_target = np.bincount(row.targets, by_step, minlength=len(alone))
            slope += np.concatenate([row.own.T @ by_own, row.steps.T @ by_step, row.own.T @ by_target])
        count = len(questions)
        return total / count + _PENALTY * float(weights @ weights), slope / count + 2 * _PENALTY * weights

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _ITERATIONS})
    own, step, target = np.split(found.x, ends)
    return own, step, target


def main(arguments: list[str]) -> None:
    """Learn from all folders together."""
    questions: list[Asked] = []
    for argument in arguments:
        folder, *choices = argument.split(",")
        embedder = next((choice for choice in choices if choice != "untitled"), "lexical")
        questions += asked(folder, embedder, untitled="untitled" in choices)
    for name, features, weights in zip(("OWN", "STEP", "TARGET"), (OWN, STEP, OWN), learn(questions), strict=True):
        print(f"{name}_WEIGHTS =", dict(zip(features, weights.round(2).tolist(), strict=True)))


if __name__ == "__main__":
    main(sys.argv[1:])
