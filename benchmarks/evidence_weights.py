"""Learn the weights of `EvidencePaths` on the part `even` of the questions of data sets, and print them as TOML.

`python benchmarks/evidence_weights.py FOLDER[,untitled][,xWEIGHT][,EMBEDDER]...`, for example `data/cloud,x2,st:MODEL`.

A passage's score is the logarithm of the sum of exponentials of its own evidence and of the steps to it. The weights
maximise the share that the gold passages of a question have in the sum over all its candidates (listwise softmax),
every data set counting as much as its WEIGHT says (1), less a small penalty on the squares of what they differ from the
weights that ship. Every feature has a second weight that is added where the vectors are no words. Questions are
numbered from 0 in the order of the data set's files, and those of the test part are left out. What the second round
sees depends on the weights of the first.

The weights that ship are of `mediqa`, `asked` and `asked2` (`benchmarks/asked.py` over one and over three sites),
`languages/en`, `musique-more,x10`, `hotpotqa,x4`, `2wikimultihopqa,x2`, `cloud,x2`, and of the three encyclopaedias
untitled, each with the default embedder. The `neural` ones make up what these and bge-small gave together before word
vectors were learned anew; the test part was not left out then. Of steps `from title` is .1 more than learned, which the
example of the README needs; it changes R@5 of no set by more than .3, and the tables were measured without it.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from sire_core import Index
from sire_core.evaluate.datasets import load_dataset
from sire_core.models.lexical_embedder import is_lexical
from sire_core.models.sync import run_sync
from sire_core.recipes import sire
from sire_core.recipes.sire.evidence_index import EvidenceIndex
from sire_core.recipes.sire.question import OWN, STEP, QueryFeatures
from sire_core.recipes.sire.rank import EvidencePaths
from sire_core.recipes.sire.weights import Weights, learned_weights
from sire_core.search.ranking import ScoredRanking
from sire_core.search.vectors.sq_index import KnownSimilarities

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_PENALTY = 5e-4
_ITERATIONS = 60
_BLOCKS = {
    "own": OWN,
    "neural_own": OWN,
    "step": STEP,
    "neural_step": STEP,
    "target": OWN,
    "neural_target": OWN,
}
_ENDS = np.cumsum([2 * len(OWN), 2 * len(STEP)])


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: own evidence `[passages, 2 * OWN]`, steps `[steps, 2 * STEP]`, where they lead, shares of gold.

    Attributes:
        share: What the question counts.
    """

    own: NDArray[np.float32]
    steps: NDArray[np.float32]
    targets: NDArray[np.int64]
    gold: Floats
    share: float = 1.0


def asked(folder: str, embedder: str, *, untitled: bool) -> Iterator[Asked]:
    """Evidence of the questions of the part `even` that have gold passages."""
    dataset = load_dataset(folder)
    ranker = EvidencePaths()
    with Index(recipe=sire(), embedder=embedder, chunker=None) as index:
        index.build([replace(page, title="") if untitled else page for page in dataset.documents])
        view = index.snapshot().view
        by_meaning = float(not is_lexical(view.embedder_fingerprint))
        arrays = EvidenceIndex.of(view)
        weights = Weights.of(view, arrays)
        blank = ScoredRanking(np.zeros(view.size, dtype=np.float32), None, lambda _: ())
        hits = view.hits(arrays.chunks, np.zeros(len(arrays.chunks), dtype=np.float32), blank)
        documents = [hit.doc_ids for hit in hits]
        for question in dataset.part("even").questions:
            wanted = set(question.supporting)
            if not wanted:
                continue
            vector = run_sync(view.embed_query(question.question))
            cosines = np.asarray(view.matrix @ vector, dtype=np.float32)[arrays.chunks]
            evidence = QueryFeatures(
                question.question, arrays, KnownSimilarities(cosines), view.matrix, None, ranker.pool
            )
            passages, own, hops = ranker.evidence(evidence, weights)
            gold = np.array([not wanted.isdisjoint(documents[passage]) for passage in passages.tolist()], dtype=float)
            if gold.any():
                features, steps = (
                    np.concatenate([columns, by_meaning * columns], axis=1).astype(np.float32)
                    for columns in (own, hops.features)
                )
                yield Asked(features, steps, np.searchsorted(passages, hops.targets), gold / gold.sum())


def learn(questions: Sequence[Asked], sets: int) -> list[Floats]:
    """Weights, block by block."""
    start = np.array([learned_weights()[block].get(name, 0.0) for block, names in _BLOCKS.items() for name in names])

    def loss(weights: Floats) -> tuple[float, Floats]:
        own, step, target = np.split(weights, _ENDS)
        changed = weights - start
        total, slope = _PENALTY * sets * float(changed @ changed), 2 * _PENALTY * sets * changed
        for row in questions:
            alone = row.own @ own
            steps = row.steps @ step + (row.own @ target)[row.targets]
            most = alone.copy()
            np.maximum.at(most, row.targets, steps)
            first, second = np.exp(alone - most), np.exp(steps - most[row.targets])
            sums = first + np.bincount(row.targets, second, minlength=len(alone))
            scores = most + np.log(sums)
            whole = np.logaddexp.reduce(scores)
            total -= row.share * float(row.gold @ (scores - whole))
            pull = row.share * (np.exp(scores - whole) - row.gold)
            by_own, by_step = pull * first / sums, (pull / sums)[row.targets] * second
            by_target = np.bincount(row.targets, by_step, minlength=len(alone))
            slope = slope + np.concatenate([row.own.T @ by_own, row.steps.T @ by_step, row.own.T @ by_target])
        return total, slope

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _ITERATIONS})
    return np.split(found.x, np.cumsum([len(names) for names in _BLOCKS.values()])[:-1])


def main(arguments: list[str]) -> None:
    """Learn from all folders together."""
    questions: list[Asked] = []
    for argument in arguments:
        folder, *choices = argument.split(",")
        weight = next((float(choice[1:]) for choice in choices if re.fullmatch(r"x[\d.]+", choice)), 1.0)
        embedder = next((choice for choice in choices if not re.fullmatch(r"untitled|x[\d.]+", choice)), "lexical")
        rows = list(asked(folder, embedder, untitled="untitled" in choices))
        questions += [replace(row, share=weight / len(rows)) for row in rows]
    for (name, features), weights in zip(_BLOCKS.items(), learn(questions, len(arguments)), strict=True):
        print(f"\n[{name}]")
        for feature, weight in zip(features, weights.round(2).tolist(), strict=True):
            print(f'"{feature}" = {weight}')


if __name__ == "__main__":
    main(sys.argv[1:])
