"""Left-out table of `sire` on documents of several passages: what is judged took no part in learning the weights.

The weights of passages that longer documents were cut into (`DocumentWeights`) are learned for each corpus on the
even-numbered questions of all others but `JUDGED_ONLY` (listwise softmax over the candidates; a need's share is the sum
over the passages that meet it), and judged on the odd-numbered questions of that corpus, beside BM25, vectors, hybrid
and the weights that ship. The last columns are what the left-out weights gain over the best of BM25, vectors and
hybrid, with a 95 % interval of paired bootstrap; the last row is that of `ops`, `frameworks` and `manuals` together.
The other weights of `sire` were learned on encyclopaedias and on `cloud` by `evidence_weights.py`, on none of the
others.

    python benchmarks/left_out.py [--manuals FOLDER] [--embedder NAME] [--rerank MODEL] [--work FOLDER] [--learn]
                                  [SET[@CHUNKS] ...]

A set is a folder of SIRE_DATA; `@langchain` and `@llama-index` cut its files by the framework's splitters. Sets of one
folder are left out together. `--manuals FOLDER` adds twelve manuals of newcomers (`tried_manuals.py`): each is judged
on all of its twelve questions, and the weights of the others are learned from those of the first eight, too.
`--rerank colbert:FOLDER` adds hybrid search and `sire` with their first 20 hits read again by that model; the gain is
over the best of all other rows then. `--learn` prints the weights that all sets give, and judges nothing.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize
from tried_manuals import LAST, MANUALS, load_manual

from sire_core import Index
from sire_core.evaluate import Experiment, load_dataset
from sire_core.evaluate.rows import passages_by_need
from sire_core.evaluate.runner import EvalConfig
from sire_core.models.lexical_embedder import is_lexical
from sire_core.models.sync import run_sync
from sire_core.recipes import recipe_by_name
from sire_core.recipes.sire import weights as shipped
from sire_core.recipes.sire.evidence_index import EvidenceIndex
from sire_core.recipes.sire.question import OWN, QueryFeatures
from sire_core.recipes.sire.rank import EvidencePaths
from sire_core.search.ranking import ScoredRanking
from sire_core.search.vectors.sq_index import KnownSimilarities

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import EvalRow
    from sire_core.protocols import Recipe

DATA = Path(os.environ.get("SIRE_DATA", "../shared/data"))
DOCUMENTATION = ("ops", "frameworks", "manuals")
SETS = (*DOCUMENTATION, "web", "cloud")
JUDGED_ONLY = ("cloud", *LAST)
"""Chunks without titles and the last manuals, which the weights that ship were not learned from either."""
BASELINES = ("bm25", "dense", "hybrid")
CONFIG = EvalConfig(ks=(5,), budget=None, returns="passages")
FEATURES = ("words", "fused", "coverage", "sentence", "phrases", "heading", "alike", "path", "step")
PENALTY = 0.02
STEP_SHARE = 2 / 3
"""Of the learned weight of steps: candidates far below the first five teach it, too. See docs/results/documents.md."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question: its candidates' features, `[passages, features]`, and for each need the rows that meet it."""

    features: np.ndarray
    needs: list[np.ndarray]


def gold(index: Index, dataset: DataSet, arrays: EvidenceIndex, part: slice) -> dict[str, list[np.ndarray]]:
    """By question of a part, for each of its needs the passages that meet it."""
    view = index.snapshot().view
    blank = ScoredRanking(np.zeros(view.size, dtype=np.float32), None, lambda _: ())
    hits = view.hits(arrays.chunks, np.zeros(len(arrays.chunks), dtype=np.float32), blank)
    quoted = run_sync(passages_by_need(index, dataset))
    of_name: dict[str, list[int]] = {}
    for row, hit in enumerate(hits):
        for name in {hit.unit.id, *hit.doc_ids}:
            of_name.setdefault(name, []).append(row)
    found: dict[str, list[np.ndarray]] = {}
    for question in dataset.questions[part]:
        needs = quoted.get(question.id) or [{name} for name in question.supporting]
        found[question.id] = [np.array(sorted(row for name in need for row in of_name.get(name, ()))) for need in needs]
    return found


def examples(index: Index, dataset: DataSet, features: Sequence[str]) -> Iterator[Example]:
    """What `DocumentWeights` see of the questions to learn from, of passages that documents were cut into."""
    view, ranker = index.snapshot().view, EvidencePaths()
    arrays = EvidenceIndex.of(view)
    weights = shipped.Weights.of(view, arrays)
    needs = gold(index, dataset, arrays, halves(dataset.name)[0])
    unit_steps = replace(weights.document, step=1.0)
    for question in dataset.questions[halves(dataset.name)[0]]:
        cosines = run_sync(view.similarities(question.question, run_sync(view.embed_query(question.question)), None))
        among = KnownSimilarities(np.asarray(cosines.all())[arrays.chunks])
        evidence = QueryFeatures(question.question, arrays, among, view.matrix, None, ranker.pool, weights.vector_share)
        passages, own, hops = ranker.evidence(evidence, weights)
        lifts = np.zeros(len(passages))
        np.maximum.at(lifts, np.searchsorted(passages, hops.targets), unit_steps.lift(hops.features))
        extra = {"path": evidence.texts.path_share(passages), "step": lifts}
        cut = evidence.is_cut(passages)
        rows = [np.flatnonzero(cut & np.isin(passages, need)) for need in needs[question.id]]
        if any(map(len, rows)):
            columns = [extra[name] if name in extra else own[:, OWN.index(name)] for name in features]
            yield Example(np.array(columns).T, [row for row in rows if len(row)])


def learn(questions: Sequence[Example], features: Sequence[str]) -> dict[str, float]:
    """Weights that maximise the share of what meets a need in the sum over the candidates, every question alike."""
    spread = np.concatenate([question.features for question in questions]).std(axis=0) + 1e-9

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = PENALTY * weights @ weights, 2 * PENALTY * weights
        for question in questions:
            columns = question.features / spread
            scores = columns @ weights
            whole = np.logaddexp.reduce(scores)
            pull = np.exp(scores - whole)
            for rows in question.needs:
                part = np.logaddexp.reduce(scores[rows])
                share = 1.0 / len(question.needs) / len(questions)
                total += share * (whole - part)
                slope = slope + share * (pull @ columns - np.exp(scores[rows] - part) @ columns[rows])
        return float(total), slope

    found = minimize(loss, np.zeros(len(features)), jac=True, method="L-BFGS-B").x / spread
    learned = dict(zip(features, found.tolist(), strict=True))
    learned["step"] *= STEP_SHARE
    return {name: round(weight, 3) for name, weight in learned.items()}


@contextmanager
def with_weights(found: Mapping[str, float]) -> Iterator[None]:
    """Search with other weights of documents."""
    before = shipped.weights_for
    own = np.array([found.get(name, 0.0) for name in OWN])
    others = {name: found[name] for name in ("path", "step")}
    learned = replace(before(float("vector" in found)).document, own=own, **others)
    shipped.weights_for = lambda reliability: replace(before(reliability), document=learned)
    try:
        yield
    finally:
        shipped.weights_for = before


def halves(name: str) -> tuple[slice, slice]:
    """Which questions of a set the weights of the others are learned from, and on which its own are judged."""
    return (slice(None), slice(None)) if name in MANUALS else (slice(0, None, 2), slice(1, None, 2))


def recalls(row: EvalRow, name: str) -> np.ndarray:
    """R@5 of a set's judged questions: all, on one document, on several, 0..100 or nan, `[3, questions]`."""
    every = np.array([100.0 * result.recall_passages(5) if result.wanted else np.nan for result in row.results])
    several = np.array([result.several for result in row.results])
    return np.stack([every, np.where(several, np.nan, every), np.where(several, every, np.nan)])[:, halves(name)[1]]


def means(found: np.ndarray) -> str:
    """Means: all (one / several)."""
    every, one, several = np.nanmean(found, axis=1)
    return f"{every:.1f} ({one:.1f} / {several:.1f})"


def gain(found: np.ndarray, best: np.ndarray | float) -> str:
    """Mean difference of paired questions, with a 95 % interval."""
    difference = (found - best)[~np.isnan(found)]
    drawn = np.random.default_rng(0).integers(len(difference), size=(2000, len(difference)))
    low, high = np.percentile(difference[drawn].mean(axis=1), [2.5, 97.5])
    return f"{difference.mean():+.1f} [{low:.1f}, {high:.1f}]"


def print_row(title: str, *sets: Sequence[np.ndarray]) -> None:
    """Means of the rows of sets, and what the last that was left out gains over the best of those before it."""
    cells = [means(np.concatenate(rows, axis=1)) for rows in zip(*sets, strict=True)]
    for part in (0, 2):
        differences = []
        for shown in sets:
            again = len(shown) > len(BASELINES) + len(("left out", "shipped"))
            own, others = (shown[-1], shown[:-1]) if again else (shown[-2], shown[:-2])
            differences.append(own[part] - max((row[part] for row in others), key=np.nanmean))
        cells.append(gain(np.concatenate(differences), 0.0))
    print(f"| {title} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--manuals", type=Path, default=None, help="a folder of unpacked Debian packages")
    parser.add_argument("--embedder", default=None)
    parser.add_argument("--rerank", default=None)
    parser.add_argument("--work", default=None, help="a folder that keeps the indexes, so that another run is short")
    parser.add_argument("--learn", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or temporary
        datasets, learned_from, judged = {}, {}, {}
        features: tuple[str, ...] = FEATURES
        names = [*options.sets, *(MANUALS if options.manuals else ())]
        for name in names:
            folder, _, chunks = name.partition("@")
            is_set = name not in MANUALS
            datasets[name] = (
                load_dataset(DATA / folder, chunks or None) if is_set else load_manual(options.manuals, name)
            )

            def rows(name: str, baselines: Sequence[str] = (), recipe: Recipe | str = "sire") -> list[EvalRow]:
                return Experiment(
                    datasets[name],
                    recipes=[recipe],
                    baselines=baselines,
                    embedder=options.embedder,
                    folder=Path(work) / name,
                    config=CONFIG,
                ).run()

            judged[name] = {row.setup.recipe: recalls(row, name) for row in rows(name, BASELINES)}
            chunker = "sentences" if datasets[name].whole else None
            with Index(Path(work) / name, recipe="sire", embedder=options.embedder, chunker=chunker) as index:
                if not is_lexical(index.snapshot().view.embedder_fingerprint):
                    features = ("vector", *FEATURES)
                learned_from[name] = list(examples(index, datasets[name], features))
        if options.learn:
            teaching = [name for name in names if name not in JUDGED_ONLY]
            print(learn([example for name in teaching for example in learned_from[name]], features))
            return
        print("R@5, odd-numbered questions: all (one document / several)\n")
        again = {"rerank": "cross_encoder", "cross_encoder": options.rerank} if options.rerank else None
        heads = ["set", "BM25", "vectors", "hybrid", "`sire`, weights of the other sets", "as shipped"]
        heads += ["hybrid, read again", "`sire`, read again"] if again else []
        print(f"| {' | '.join(heads)} | gain | on several |\n|{'---|' * (len(heads) + 2)}")
        tables: dict[str, list[np.ndarray]] = {}
        for name in names:
            others = [n for n in names if n.partition("@")[0] not in (name.partition("@")[0], *JUDGED_ONLY)]
            weights = learn([example for n in others for example in learned_from[n]], features)
            with with_weights(weights):
                left_out = recalls(rows(name)[-1], name)
            shown = [*(judged[name][recipe] for recipe in BASELINES), left_out, judged[name]["sire"]]
            if again:
                shown.append(recalls(rows(name, recipe=recipe_by_name("flat", ranker="hybrid", **again))[-1], name))
                with with_weights(weights):
                    shown.append(recalls(rows(name, recipe=recipe_by_name("sire", **again))[-1], name))
            tables[name] = shown
            if name not in MANUALS:
                print_row(name, shown)
        first = [name for name in MANUALS if name not in LAST]
        groups = {"eight manuals of newcomers": first, "four more, judged only": LAST, "documentation": DOCUMENTATION}
        for title, together in groups.items():
            if found := [tables[name] for name in together if name in tables]:
                print_row(title, *found)


if __name__ == "__main__":
    main()
