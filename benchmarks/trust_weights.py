"""Learn how far `sire` trusts vectors and words for a question (`trust.GATES`), and judge it with each set left out.

    python benchmarks/trust_weights.py --work FOLDER SET[,xWEIGHT][,EMBEDDER] ...

A set is a folder with `corpus.jsonl` or `docs/` and questions (also of `benchmarks/asked.py`); `SET@files` cuts its
documents as `sire index` does. Sets whose names begin alike up to `@` or a digit are left out together. The tables of
`weights.toml` are learned by themselves: `trust_words` from sets with the default embedder, `trust_vectors` from those
with a neural one. They minimise, by Powell's method on the part `even` of the questions, the mean over ranks 1, 2, 5
and 10 of a smooth step in the distance of the best passage that meets a need from that rank; a set counts as much as
its WEIGHT says (1). Printed: the tables that all sets give, and R@2, R@5 and R@10 of the part `odd` by BM25, by
vectors, without trust, and with the trust that the other sets give. All other weights are those that ship. Their
`trust_words` is of `mediqa`, `asked`, `asked2`, `ops`, `frameworks`, `manuals`, `cloud`, `musique-more`, `hotpotqa`,
`2wikimultihopqa` and `languages/en`.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from left_out import gold
from scipy.optimize import minimize

from sire_core import Index
from sire_core.evaluate import load_dataset
from sire_core.models.lexical_embedder import is_lexical
from sire_core.models.sync import run_sync
from sire_core.recipes.sire.evidence_index import EvidenceIndex
from sire_core.recipes.sire.question import OWN, QueryFeatures
from sire_core.recipes.sire.rank import EvidencePaths, ScoredPassages
from sire_core.recipes.sire.trust import GATES, Trust
from sire_core.recipes.sire.weights import Weights
from sire_core.search.vectors.sq_index import KnownSimilarities

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sire_core.evaluate.datasets import DataSet

RANKS, REPORTED = (1, 2, 5, 10), (2, 5, 10)
STEEPNESS, PENALTY = 0.3, 2e-4
NO_TRUST = Trust(np.zeros(len(GATES)), np.zeros(len(GATES)))


@dataclass(frozen=True, slots=True)
class Example:
    """A question: scores of its candidates without trust, what trust weighs, and rows that meet each need.

    Attributes:
        scores: `[candidates]`, on the scale on which trust is added.
        added: What a weight of 1 adds: standard scores of cosines or of BM25, `[candidates]`.
        gates: `[len(GATES)]`.
        needs: For each need the rows of `scores` that meet it; none where no candidate does.
        baselines: Scores by BM25 and by cosine, `[candidates]` each.
    """

    scores: np.ndarray
    added: np.ndarray
    gates: np.ndarray
    needs: list[np.ndarray]
    baselines: tuple[np.ndarray, np.ndarray]

    def ranking(self, table: np.ndarray) -> np.ndarray:
        """Scores with trust by a table of weights."""
        return self.scores + max(0.0, float(self.gates @ table)) * self.added

    def loss(self, table: np.ndarray) -> float:
        """Smooth share of needs that are not met at `RANKS`."""
        scores = self.ranking(table)
        best = np.sort(scores)[::-1]
        width = STEEPNESS * (scores.std() + 1e-9)
        missed = [1.0 if not len(rows) else _missed(best, scores[rows].max(), width) for rows in self.needs]
        return float(np.mean(missed))

    def recall(self, scores: np.ndarray) -> list[float]:
        """Share of needs that are met at `REPORTED`."""
        order = np.argsort(-scores, kind="stable")
        return [float(np.mean([np.isin(rows, order[:k]).any() for rows in self.needs])) for k in REPORTED]


def _missed(best: np.ndarray, score: float, width: float) -> float:
    rank = int(np.count_nonzero(best > score))
    borders = np.array([best[min(k if rank < k else k - 1, len(best) - 1)] for k in RANKS])
    return float(np.mean(1.0 / (1.0 + np.exp(np.clip((score - borders) / width, -30, 30)))))


def examples(index: Index, dataset: DataSet) -> Iterator[Example]:
    """Yield the questions of a set that have gold."""
    view, ranker = index.snapshot().view, EvidencePaths()
    arrays = EvidenceIndex.of(view)
    weights = replace(Weights.of(view, arrays), trust=NO_TRUST)
    needs = gold(index, dataset, arrays)
    column = OWN.index("words" if is_lexical(view.embedder_fingerprint) else "vector")
    for question in dataset.questions:
        if not needs.get(question.id):
            continue
        cosines = run_sync(view.similarities(question.question, run_sync(view.embed_query(question.question)), None))
        among = KnownSimilarities(np.asarray(cosines.all())[arrays.chunks])
        evidence = QueryFeatures(question.question, arrays, among, view.matrix, None, ranker.pool, weights.vector_share)
        passages, own, hops = ranker.evidence(evidence, weights)
        scored = ScoredPassages.of(evidence, passages, own, hops, weights)
        unit = np.where(evidence.is_cut(passages), evidence.unit, 1.0)
        yield Example(
            scored.scores(),
            unit * own[:, column],
            evidence.gates,
            [np.flatnonzero(np.isin(passages, rows)) for rows in needs[question.id]],
            (evidence.texts.bm25()[passages], among.at(passages).astype(np.float64)),
        )


def learn(sets: Sequence[Sequence[Example]], shares: Sequence[float]) -> np.ndarray:
    """Weights of `GATES` that sets together give, `[len(GATES)]`."""
    gates = np.concatenate([[example.gates for example in questions] for questions in sets])
    means, spreads = gates[:, :-1].mean(axis=0), gates[:, :-1].std(axis=0) + 1e-9

    def table(point: np.ndarray) -> np.ndarray:  # on standard scores of gates, where steps are of one size
        return np.append(point[:-1] / spreads, point[-1] - (point[:-1] * means / spreads).sum())

    def loss(point: np.ndarray) -> float:
        losses = [np.mean([example.loss(table(point)) for example in questions]) for questions in sets]
        return float(np.average(losses, weights=shares) + PENALTY * point @ point)

    start = np.array([-1.0, 0.8, 0.5, 0.5])
    options = {"maxiter": 3, "maxfev": 400, "xtol": 0.05, "ftol": PENALTY}
    return table(minimize(loss, start, method="Powell", options=options).x)


def report(parts: Mapping[str, tuple[list[Example], list[Example]]], shares: Mapping[str, float]) -> None:
    """Print the weights that the first parts of all sets give, and recall of the second with each set left out."""
    sets = {name: even for name, (even, _) in parts.items()}
    learned = learn(list(sets.values()), [shares[name] for name in sets])
    print({gate: round(weight, 2) for gate, weight in zip(GATES, learned, strict=True)})
    for name, (_, odd) in parts.items():
        family = re.split(r"[@\d]", name)[0]
        others = [other for other in sets if re.split(r"[@\d]", other)[0] != family]
        left_out = np.zeros(len(GATES))
        if others:
            left_out = learn([sets[other] for other in others], [shares[other] for other in others])
        cells = []
        for way in range(4):
            rows = [
                example.recall((*example.baselines, example.scores, example.ranking(left_out))[way]) for example in odd
            ]
            cells.append(" / ".join(f"{100 * share:.1f}" for share in np.mean(rows, axis=0)))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", metavar="SET[,xWEIGHT][,EMBEDDER]")
    parser.add_argument("--work", type=Path, required=True, help="a folder that keeps the indexes")
    options = parser.parse_args()
    tables: dict[str, dict[str, tuple[list[Example], list[Example]]]] = {}
    shares: dict[str, float] = {}
    for argument in options.sets:
        path, *choices = argument.split(",")
        share = next((float(choice[1:]) for choice in choices if re.fullmatch(r"x[\d.]+", choice)), 1.0)
        embedder = next((choice for choice in choices if not re.fullmatch(r"x[\d.]+", choice)), None)
        folder, _, chunks = path.partition("@")
        dataset = load_dataset(folder, chunks or None)
        name = path.rpartition("/")[2]
        chunker = "sentences" if dataset.whole else None
        with Index(
            options.work / f"{name}{'-by-meaning' if embedder else ''}",
            recipe="sire",
            embedder=embedder,
            chunker=chunker,
        ) as index:
            index.build(dataset.documents)
            table = "trust_vectors" if embedder else "trust_words"
            tables.setdefault(table, {})[name] = tuple(
                list(examples(index, dataset.part(part))) for part in ("even", "odd")
            )
            shares[name] = share
    for table, sets in tables.items():
        print(f"\n[{table}]\n\n| set | BM25 | vectors | without trust | left out |\n|{'---|' * 5}")
        report(sets, shares)


if __name__ == "__main__":
    main()
