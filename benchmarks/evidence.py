"""Recall of required evidence within budgets of tokens of what is delivered; what is judged took no part in learning.

The weights of `search/context.toml` are learned for each set on the questions of the others outside the test part
(listwise softmax over the pieces of the first passages; a need's share is the sum over the pieces that hold its quote),
and judged on the parts `even` and `odd` of that set, on the part `test` only by `release.py`: whole passages of BM25
and of `sire`, BM25 over pieces of 450 characters, the context that is chosen from passages of `sire`, and the same over
chunks of LangChain's splitters and nodes of LlamaIndex; of those nodes also contexts of what BM25 and vectors alone
found, as `EvidenceCompressor` does it. Labels and headings count. The last lines are what contexts
gain over the best row that is not ours, over the best of those with twice the tokens, over the same hits whole and over
the best size of passages, with a 95 % interval of paired bootstrap.

    python benchmarks/evidence.py [--rerank MODEL] [--embedder NAME] [--sizes] [--manuals FOLDER] [SET ...]

A set is a folder of SIRE_DATA with `docs/` and `needs`; `--manuals` adds twelve manuals of newcomers as one set
(`tried_manuals.py`), as passages only. `--embedder` (lexical, onnx:FOLDER) adds the rows of LangChain and LlamaIndex
that `evidence_baselines.py` describes, over that embedder. `--rerank colbert:FOLDER` adds contexts whose best 40 pieces
that model scored. `--sizes` adds `sire` over passages of 256, 160 and 100 tokens, whole. `--work` keeps the indexes.
`--learn` prints the weights and judges nothing.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from listwise import listwise_weights
from tried_manuals import EIGHT, LAST, load_manual

from sire_core import Index
from sire_core.documents.chunker import SentenceChunker
from sire_core.evaluate import load_dataset
from sire_core.evaluate.delivered import as_pieces, delivered_recall, whole_evidence
from sire_core.evaluate.rows import fold, passage_names
from sire_core.models.cross_encoder import load_cross_encoder
from sire_core.recipes import recipe_by_name
from sire_core.search import context
from sire_core.search.context import FEATURES, POOL, Candidates, ContextOptions, ranked, select_context

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sire_core.evaluate.datasets import DataSet
    from sire_core.protocols import Recipe
    from sire_core.questions import Question
    from sire_core.search.context import ScoreTexts
    from sire_core.types import Document, Hit

    Ranked = list[list[context.RankedPassage]]

DATA = Path(os.environ.get("SIRE_DATA", "../shared/data"))
SETS = ("ops", "frameworks", "manuals")
WAYS_IN = {"passages": "", "LangChain's chunks": "langchain", "LlamaIndex's nodes": "llama-index"}
BUDGETS = (300, 1000, 2000, 4000)
SIZES = (256, 160, 100)
TRIED = "manuals of newcomers"
HITS = 100
PENALTY = 0.02
LEARNED = FEATURES[:-2]
"""All features but the place in the passage, which parts of documents do not need, and the reranker's, whose weight is
1: as much as the others together say."""


@dataclass(frozen=True, slots=True)
class Example:
    """Features of a question's candidates, `[pieces, features]`, and for each need the pieces that hold its quote."""

    features: np.ndarray
    needs: list[np.ndarray]


def opened(
    work: Path, name: str, documents: Sequence[Document], recipe: Recipe | str, *, whole: bool, tokens: int = 512
) -> Index:
    """An index of a set, built if it is not there yet."""
    index = Index(work / name, recipe=recipe, chunker=SentenceChunker(tokens, tokens // 8) if whole else None)
    index.update(() if (work / name / "manifest.json").exists() else documents)
    return index


def passages_of(index: Index, questions: Sequence[Question]) -> tuple[list[list[Hit]], Ranked]:
    """The first hits of each question, and the passages that contexts are chosen from."""
    snapshot = index.snapshot()
    hits = [snapshot.search(question.question, HITS) for question in questions]
    return hits, [snapshot.with_neighbors(found[:POOL]) for found in hits]


def example(question: Question, passages: list[context.RankedPassage]) -> Example:
    """Features of the pieces of a question's passages; quotes may reach from one piece into the next."""
    candidates = Candidates.of(question.question, passages)
    names = [passage_names(one.hit.unit, one.hit.doc_ids) for one in passages]
    texts = [fold(candidates.text(place)) for place in range(len(candidates.owner))]
    needs = []
    for need in question.needs:
        rows: set[int] = set()
        for quote in need:
            wanted = fold(quote.text)
            of_document = [place for place, row in enumerate(candidates.owner) if quote.doc in names[row]]
            whole = {place for place in of_document if wanted in texts[place]}
            over = {place for place in of_document[:-1] if wanted in " ".join(texts[place : place + 2])}
            rows |= whole or {place + more for place in over for more in (0, 1)}
        needs.append(np.array(sorted(rows), dtype=np.int64))
    return Example(candidates.features[:, : len(LEARNED)], needs)


def learn(examples: Sequence[Example]) -> dict[str, float]:
    """Weights that maximise the share of what meets a need in the sum over the candidates, every question alike."""
    examples = [one for one in examples if any(map(len, one.needs))]
    weights = listwise_weights([one.features for one in examples], [one.needs for one in examples], PENALTY)
    return {name: round(weight, 2) for name, weight in zip(LEARNED, weights, strict=True)}


def whole_recalls(questions: Sequence[Question], hits: list[list[Hit]]) -> np.ndarray:
    """Recall of whole hits, 0..100, `[budgets, questions]`."""
    pairs = list(zip(questions, hits, strict=True))
    return np.array([[100.0 * (delivered_recall(q, whole_evidence(h, b)) or 0) for q, h in pairs] for b in BUDGETS])


def remembering(model: str) -> ScoreTexts:
    """A reranker that scores each pair of a question and a text once."""
    reranker, scores = load_cross_encoder(model), {}

    def score(question: str, texts: Sequence[str]) -> np.ndarray:
        unread = [text for text in dict.fromkeys(texts) if (question, text) not in scores]
        scores.update(zip(((question, text) for text in unread), reranker.scores(question, unread), strict=True))
        return np.array([scores[question, text] for text in texts], dtype=np.float32)

    return score


def context_recalls(
    questions: Sequence[Question], passages: Ranked, weights: Mapping[str, float], rerank: ScoreTexts | None = None
) -> np.ndarray:
    """Recall of contexts that some weights choose, 0..100, `[budgets, questions]`."""
    shipped, options = context.learned_weights, ContextOptions(rerank=rerank)
    context.learned_weights = lambda: {**weights, "rerank": shipped()["rerank"]}
    try:
        pairs = list(zip(questions, passages, strict=True))
        chosen = [[select_context(q.question, p, b, options).evidence for q, p in pairs] for b in BUDGETS]
    finally:
        context.learned_weights = shipped
    return np.array(
        [[100.0 * (delivered_recall(q, e) or 0) for q, e in zip(questions, row, strict=True)] for row in chosen]
    )


def gain(found: np.ndarray, best: np.ndarray) -> str:
    """Mean difference of paired questions, with a 95 % interval."""
    difference = found - best
    drawn = np.random.default_rng(0).integers(len(difference), size=(2000, len(difference)))
    low, high = np.percentile(difference[drawn].mean(axis=1), [2.5, 97.5])
    return f"{difference.mean():+.1f} [{low:.1f}, {high:.1f}]"


class Measured:
    """A set: rankings of all ways in, and what to learn from."""

    def __init__(self, name: str, files: DataSet, work: Path, options: argparse.Namespace) -> None:
        self.questions = files.part(options.questions).questions
        self.rows: dict[str, np.ndarray] = {}
        self.hits: dict[str, list[list[Hit]]] = {}
        self.passages: dict[str, Ranked] = {}  # that contexts are chosen from, by the row of the same hits whole
        documents: list[Document] = []
        for title, chunks in (WAYS_IN if name in SETS else {"passages": ""}).items():
            dataset = load_dataset(DATA / name, chunks) if chunks else files
            folder = f"{name}@{chunks}" if chunks else name
            with opened(work, folder, dataset.documents, "sire", whole=dataset.whole) as index:
                hits, self.passages[f"`sire`, {title}"] = passages_of(index, self.questions)
                documents = documents if chunks else index.documents()
            self.rows[f"`sire`, {title}"] = whole_recalls(self.questions, hits)
            self.search_flat(f"BM25, {title}", "bm25", work / folder)
            if chunks == "llama-index":
                self.search_flat(f"vectors, {title}", "dense", work / folder)
                for row in (f"BM25, {title}", f"vectors, {title}"):
                    self.passages[row] = [ranked(of_question[:POOL]) for of_question in self.hits[row]]
        opened(work, f"{name}@pieces", as_pieces(documents), "flat", whole=False).close()
        self.search_flat("BM25, pieces", "bm25", work / f"{name}@pieces")
        for tokens in SIZES if options.sizes else ():
            with opened(work, f"{name}@{tokens}", files.documents, "sire", whole=True, tokens=tokens) as index:
                found = [index.search(question.question, 4 * HITS) for question in self.questions]
            self.rows[f"`sire`, passages of {tokens} tokens"] = whole_recalls(self.questions, found)
        if options.embedder:
            from evidence_baselines import of_langchain, of_llama_index

            for searches in (of_langchain(documents, options.embedder), of_llama_index(documents, options.embedder)):
                for row, search in searches.items():
                    found = [search(question.question) for question in self.questions]
                    self.rows[row] = whole_recalls(self.questions, found)
        develop = files.part("develop").questions if name in SETS else ()
        with opened(work, name, (), "sire", whole=files.whole) as index:
            self.examples = [example(*pair) for pair in zip(develop, passages_of(index, develop)[1], strict=True)]

    def search_flat(self, row: str, ranker: str, folder: Path) -> None:
        """Add the row of BM25 or of vectors over the passages of an index."""
        with Index(folder, recipe=recipe_by_name("flat", ranker=ranker)) as index:
            self.hits[row] = [index.search(question.question, HITS) for question in self.questions]
        self.rows[row] = whole_recalls(self.questions, self.hits[row])

    def add_contexts(self, weights: Mapping[str, float], rerank: ScoreTexts | None) -> None:
        """Add the rows of contexts that some weights choose."""
        for title, passages in self.passages.items():
            row = f"**context**, {title.removeprefix('`sire`, ')}"
            self.rows[row] = context_recalls(self.questions, passages, weights)
            if rerank:
                self.rows[f"{row}, reranked"] = context_recalls(self.questions, passages, weights, rerank)


def joined(sets: Sequence[Measured]) -> dict[str, np.ndarray]:
    """Rows that all sets have, `[budgets, questions of all]`."""
    titles = [title for title in sets[0].rows if all(title in each.rows for each in sets)]
    return {title: np.concatenate([each.rows[title] for each in sets], axis=1) for title in titles}


def table(name: str, rows: Mapping[str, np.ndarray]) -> None:
    """Print means of a set's rows: ours last."""
    for title in sorted(rows, key=lambda title: (title[0] == "*", title[0] == "`")):
        cells = [f"{value:.1f}" for value in rows[title].mean(axis=1)]
        print(f"| {name} | {title} | {' | '.join(cells)} |", flush=True)


def gains(rows: Mapping[str, np.ndarray]) -> None:
    """Print what contexts gain over other rows, paired by question."""

    def best(titles: Sequence[str]) -> list[np.ndarray]:
        return [max((rows[title][budget] for title in titles), key=np.mean) for budget in range(len(BUDGETS))]

    theirs = best([title for title in rows if title[0] not in "`*"])
    sizes = best([title for title in rows if title.startswith("`sire`, passages")])
    for title in (title for title in rows if title.startswith("*")):
        chosen_from = title.removeprefix("**context**, ").removesuffix(", reranked")
        over = {
            "the best row that is not ours": theirs,
            "the best of those with twice the tokens": [theirs[0], theirs[2], theirs[3], theirs[3]],
            "the same hits, whole": rows.get(f"`sire`, {chosen_from}", rows.get(chosen_from)),
            "the best size of passages, whole": sizes,
        }
        for words, other in over.items():
            cells = [gain(rows[title][budget], other[budget]) for budget in range(len(BUDGETS))]
            print(f"| {title} | {words} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--rerank", default=None)
    parser.add_argument("--embedder", default=None, help="also measure what the frameworks offer, over this embedder")
    parser.add_argument("--work", type=Path, default=None, help="a folder that keeps the indexes")
    parser.add_argument("--sizes", action="store_true", help="also measure other sizes of passages, whole")
    parser.add_argument("--manuals", type=Path, default=None, help="a folder of unpacked Debian packages")
    parser.add_argument("--learn", action="store_true")
    parser.add_argument("--questions", default="develop", choices=("develop", "test"))
    options = parser.parse_args()
    if len(options.sets) < 2 and not options.learn:
        parser.error("name two sets at least: the weights for each are learned on the others")
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        measured = {name: Measured(name, load_dataset(DATA / name), work, options) for name in options.sets}
        tried = [
            Measured(name, load_manual(options.manuals, name), work, options)
            for name in ((*EIGHT, *LAST) if options.manuals else ())
        ]
    if options.learn:
        print(learn([one for own in measured.values() for one in own.examples]))
        return
    rerank = remembering(options.rerank) if options.rerank else None
    budgets = " | ".join(f"{budget:,}" for budget in BUDGETS)
    rule = f"|---|---|{'--:|' * len(BUDGETS)}"
    print(f"| set | row | {budgets} |\n{rule}")
    for name, own in measured.items():
        weights = learn([one for other, rows in measured.items() if other != name for one in rows.examples])
        own.add_contexts(weights, rerank)
        table(name, own.rows)
    weights = learn([one for own in measured.values() for one in own.examples])
    for own in tried:
        own.add_contexts(weights, rerank)
    if tried:
        table(TRIED, joined(tried))
    print(f"\n| gain of | over | {budgets} |\n{rule}")
    gains(joined(list(measured.values())))
    if tried:
        print(f"\n| gain, {TRIED} too, of | over | {budgets} |\n{rule}")
        gains(joined([*measured.values(), *tried]))


if __name__ == "__main__":
    main()
