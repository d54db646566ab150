"""Left-out table of `sire` on documents of several passages: what is judged took no part in learning the weights.

The weights of passages that longer documents were cut into (`DocumentWeights`) are learned for each corpus on the part
`even` of the questions of all others but `JUDGED_ONLY` (listwise softmax over the candidates; a need's share is the sum
over the passages that meet it), and judged on the part `odd` of that corpus, beside BM25, vectors, hybrid and the
weights that ship; `release.py` judges on the part `test`, once a release. The last columns are what the left-out
weights gain over the best of BM25, vectors and hybrid, with a 95 % interval of paired bootstrap; the last row is that
of `ops`, `frameworks` and `manuals` together.
The other weights of `sire` were learned on encyclopaedias and on `cloud` by `evidence_weights.py`, on none of the
others.

    python benchmarks/left_out.py [--manuals FOLDER] [--embedder NAME] [--rerank MODEL] [--work FOLDER] [--learn]
                                  [--questions odd|test] [SET[@CHUNKS] ...]

A set is a folder of SIRE_DATA; `@langchain` and `@llama-index` cut its files by the framework's splitters. Sets of one
folder are left out together. `--manuals FOLDER` adds fourteen manuals of newcomers, and questions in people's own words
about twelve (`tried_manuals.py`): each is judged on its part `develop`, and the weights of the others are learned from
that of the first eight and of the questions in own words, too.
`--rerank colbert:FOLDER` adds hybrid search and `sire` with their first 20 hits reranked by that model; the gain is
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
from listwise import listwise_weights
from tried_manuals import EIGHT, HALF_OWN_WORDS, LAST, MANUALS, OWN_WORDS, load_manual

from sire_core import Index
from sire_core.evaluate import Experiment, load_dataset
from sire_core.evaluate.bootstrap import SIGNIFICANCE, holm, interval_of, randomization_p
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
TRIED = (*EIGHT, *LAST, *HALF_OWN_WORDS, *OWN_WORDS)
JUDGED_ONLY = ("cloud", *LAST, *HALF_OWN_WORDS)
"""Chunks without titles and the last manuals, which the weights that ship were not learned from either."""
BASELINES, HEADS = ("bm25", "dense", "hybrid"), ("BM25", "vectors", "hybrid")
LEFT_OUT, SHIPPED = "`sire`, weights of the other sets", "shipped weights"
CONFIG = EvalConfig(ks=(5,), budget=None, returns="passages")
FEATURES = ("words", "fused", "coverage", "sentence", "phrases", "heading", "alike", "meaning", "path", "step")
PENALTY = 0.02
STEP_SHARE = 2 / 3
"""Of the learned weight of steps: candidates far below the first five teach it, too. See docs/results/documents.md."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question: each feature of its candidates, `[passages]`, and for each need the rows that meet it."""

    features: dict[str, np.ndarray]
    needs: list[np.ndarray]


def gold(index: Index, dataset: DataSet, arrays: EvidenceIndex) -> dict[str, list[np.ndarray]]:
    """By question, for each of its needs the passages that meet it."""
    view = index.snapshot().view
    blank = ScoredRanking(np.zeros(view.size, dtype=np.float32), None, lambda _: ())
    hits = view.hits(arrays.chunks, np.zeros(len(arrays.chunks), dtype=np.float32), blank)
    quoted = run_sync(passages_by_need(index, dataset))
    of_name: dict[str, list[int]] = {}
    for row, hit in enumerate(hits):
        for name in {hit.unit.id, *hit.doc_ids}:
            of_name.setdefault(name, []).append(row)
    found: dict[str, list[np.ndarray]] = {}
    for question in dataset.questions:
        needs = quoted.get(question.id) or [{name} for name in question.supporting]
        found[question.id] = [np.array(sorted(row for name in need for row in of_name.get(name, ()))) for need in needs]
    return found


def features_of(index: Index) -> tuple[str, ...]:
    """The features whose weights are learned; cosines by themselves only of a neural embedder."""
    return FEATURES if is_lexical(index.snapshot().view.embedder_fingerprint) else ("vector", *FEATURES)


def examples(index: Index, dataset: DataSet) -> Iterator[Example]:
    """What `DocumentWeights` see of the questions to learn from, of passages that documents were cut into."""
    view, ranker = index.snapshot().view, EvidencePaths()
    arrays = EvidenceIndex.of(view)
    weights = shipped.Weights.of(view, arrays)
    needs = gold(index, dataset, arrays)
    unit_steps = replace(weights.document, step=1.0)
    features = features_of(index)
    for question in dataset.questions:
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
            columns = {name: extra[name] if name in extra else own[:, OWN.index(name)] for name in features}
            yield Example(columns, [row for row in rows if len(row)])


def learn(questions: Sequence[Example]) -> dict[str, float]:
    """Weights that maximise the share of what meets a need in the sum over the candidates, every question alike."""
    features = list(questions[0].features)
    tables = [np.array(list(question.features.values())).T for question in questions]
    weights = listwise_weights(tables, [question.needs for question in questions], PENALTY)
    learned = dict(zip(features, weights, strict=True))
    learned["step"] *= STEP_SHARE
    return {name: round(weight, 3) for name, weight in learned.items()}


@contextmanager
def with_weights(found: Mapping[str, float]) -> Iterator[None]:
    """Search with other weights of documents."""
    before = shipped.weights_for
    own = np.array([found.get(name, 0.0) for name in OWN])
    others = {name: found[name] for name in ("path", "step")}
    learned = replace(before(float("vector" in found)).document, own=own, **others)
    shipped.weights_for = lambda *shares: replace(before(*shares), document=learned)
    try:
        yield
    finally:
        shipped.weights_for = before


def recalls(row: EvalRow) -> np.ndarray:
    """R@5 of each question: all, on one document, on several, 0..100 or nan, `[3, questions]`."""
    every = np.array([100.0 * result.recall_passages(5) if result.wanted else np.nan for result in row.results])
    several = np.array([result.several for result in row.results])
    return np.stack([every, np.where(several, np.nan, every), np.where(several, every, np.nan)])


def means(found: np.ndarray) -> str:
    """Means: all (one / several)."""
    every, one, several = np.nanmean(found, axis=1)
    return f"{every:.1f} ({one:.1f} / {several:.1f})"


def gain(differences: np.ndarray, star: str = "") -> str:
    """Mean difference of paired questions, with a 95 % interval."""
    interval = interval_of(differences)
    return f"{interval.difference:+.1f} [{interval.low:.1f}, {interval.high:.1f}]{star}"


def over_best(rows: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """What the last left-out row of a set gains over the best of the rows before it: all questions, on several."""
    *others, ours = [found for name, found in rows.items() if name != SHIPPED]
    return [
        differences[~np.isnan(differences)]
        for part in (0, 2)
        for differences in [ours[part] - max((row[part] for row in others), key=np.nansum)]
    ]


def print_table(tables: Mapping[str, Sequence[Mapping[str, np.ndarray]]]) -> None:
    """A row for each group of sets; stars where a gain is more than chance, corrected for all gains of the table."""
    heads = list(next(iter(tables.values()))[0])
    gains = {
        title: [np.concatenate(parts) for parts in zip(*map(over_best, sets), strict=True)]
        for title, sets in tables.items()
    }
    p_values = holm([randomization_p(differences) for pair in gains.values() for differences in pair])
    stars = iter("*" if p < SIGNIFICANCE else "" for p in p_values)
    gain_heads = [f"{name}{', reranked' * heads[-1].endswith('reranked')}" for name in ("gain", "on several")]
    print(f"| set | questions | {' | '.join([*heads, *gain_heads])} |\n|---|--:|{'---|' * (len(heads) + 2)}")
    for title, sets in tables.items():
        together = [np.concatenate([rows[head] for rows in sets], axis=1) for head in heads]
        cells = [*map(means, together), *(gain(differences, next(stars)) for differences in gains[title])]
        print(f"| {title} | {together[0].shape[1]} | {' | '.join(cells)} |")
    print(f"\n*: more than chance at 5 %, {len(p_values)} comparisons (paired randomisation, Holm)")


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """A set whose questions are learned from in part, and judged in part.

    Attributes:
        dataset: With the questions that are judged.
        examples: Of the questions that other sets learn from.
        family: Name of its folder; sets of one folder are left out together.
    """

    dataset: DataSet
    examples: list[Example]
    family: str
    folder: Path
    embedder: str | None

    @classmethod
    def read(cls, name: str, options: argparse.Namespace, work: Path) -> JudgedSet:
        """Build the index of a set and collect what it teaches."""
        family, _, chunks = name.partition("@")
        is_manual, folder = family in MANUALS, work / (family if family in MANUALS else name)
        dataset = load_manual(options.manuals, name) if is_manual else load_dataset(DATA / family, chunks or None)
        parts = ("develop", "develop") if is_manual and options.questions == "odd" else ("even", options.questions)
        chunker = "sentences" if dataset.whole else None
        with Index(folder, recipe="sire", embedder=options.embedder, chunker=chunker) as index:
            index.build(dataset.documents)
            found = list(examples(index, dataset.part(parts[0])))
        return cls(dataset.part(parts[1]), found, family, folder, options.embedder)

    def rows(self, recipes: Sequence[Recipe | str], baselines: Sequence[str] = ()) -> list[np.ndarray]:
        """Recalls of recipes, the baselines first."""
        rows = Experiment(
            self.dataset, recipes, baselines, embedder=self.embedder, folder=self.folder, config=CONFIG
        ).run()
        return [recalls(row) for row in rows]

    def judge(self, weights: Mapping[str, float], reranker: str | None) -> dict[str, np.ndarray]:
        """Recalls of the baselines, and of `sire` by weights that have not seen the set and by those that ship."""
        *baselines, shipped_row = self.rows(["sire"], BASELINES)
        with with_weights(weights):
            found = [*baselines, *self.rows(["sire"]), shipped_row]
        table = dict(zip((*HEADS, LEFT_OUT, SHIPPED), found, strict=True))
        if reranker:
            again = {"rerank": "cross_encoder", "cross_encoder": reranker}
            table["hybrid, reranked"] = self.rows([recipe_by_name("flat", ranker="hybrid", **again)])[-1]
            with with_weights(weights):
                table["`sire`, reranked"] = self.rows([recipe_by_name("sire", **again)])[-1]
        return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--manuals", type=Path, default=None, help="a folder of unpacked Debian packages")
    parser.add_argument("--embedder", default=None)
    parser.add_argument("--rerank", default=None)
    parser.add_argument("--work", default=None, help="a folder that keeps the indexes, so that another run is short")
    parser.add_argument("--learn", action="store_true")
    parser.add_argument("--questions", default="odd", choices=("odd", "test"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(options.work or temporary)
        names = (*options.sets, *(TRIED if options.manuals else ()))
        sets = {name: JudgedSet.read(name, options, work) for name in names}

        def weights_without(family: str) -> dict[str, float]:
            learned = (s for name, s in sets.items() if s.family != family and name not in JUDGED_ONLY)
            return learn([one for s in learned for one in s.examples])

        if options.learn:
            print(weights_without(""))
            return
        rows = {name: judged.judge(weights_without(judged.family), options.rerank) for name, judged in sets.items()}
    groups = {name: [name] for name in sets if name not in TRIED}
    groups |= {"eight manuals of newcomers": EIGHT, "four more, held out": LAST}
    groups |= {"two more, half in people's own words": HALF_OWN_WORDS}
    groups |= {"twelve manuals, in people's own words": OWN_WORDS, "documentation": DOCUMENTATION}
    together = {title: [rows[name] for name in names if name in rows] for title, names in groups.items()}
    print_table({title: found for title, found in together.items() if found})


if __name__ == "__main__":
    main()
