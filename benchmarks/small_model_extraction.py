"""What a small model extracts beside what rules find, on the candidate passages of a few questions.

    python benchmarks/small_model_extraction.py --llm qwen2.5-coder-1.5b --base-url http://127.0.0.1:8977/v1   # asks
    python benchmarks/small_model_extraction.py --llm qwen2.5-coder-1.5b                                    # shows it

Candidates are the gold passages of every question and the first passages that vectors find for it; together they are
the pool that R@5 is measured on, once with each kind of record. Answers are kept in the work folder by the digest of
what was asked (they quote passages, so they are not for the repository), and nothing is asked twice. Passages that are
not answered yet are left out of every row. `model` is the joint prompt, `model+rules` the short one whose records are
completed by the rules.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from recorded_answers import RecordedAnswers
from small_model import AbsentModel

from sire_core import Document, Index
from sire_core.errors import ModelError
from sire_core.evaluate.datasets import DataSet, load_dataset
from sire_core.evaluate.runner import EvalConfig, evaluate
from sire_core.extraction.merged import MergedExtractor
from sire_core.extraction.model_extractor import ModelExtractor
from sire_core.extraction.rules import RulesExtractor
from sire_core.models.base import ModelWrapper
from sire_core.models.caching import CachedModel
from sire_core.models.openai.client import OpenAIChat
from sire_core.protocols import ChunkInContext, Completion, Extractor, LanguageModel, ModelRequest
from sire_core.types import Chunk, ExtractionRecord

ROOT = Path(__file__).resolve().parents[1]


class Watched(ModelWrapper):
    """Notes how answers ended and how long they took."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model)
        self.ends: list[str] = []

    async def answer(self, request: ModelRequest) -> Completion:
        """Pass the answer on."""
        begun = time.monotonic()
        try:
            done = await super().answer(request)
        except ModelError as error:
            print(f"failed after {time.monotonic() - begun:.0f} s: {str(error)[:200]}", file=sys.stderr, flush=True)
            raise
        self.ends.append(done.finish)
        tokens = f"{done.input_tokens} + {done.output_tokens} tokens"
        print(f"{done.finish} after {time.monotonic() - begun:.0f} s, {tokens}", file=sys.stderr, flush=True)
        return done


@dataclass(frozen=True)
class Kept:
    """An extractor of records that are there."""

    records: Mapping[str, ExtractionRecord]
    fingerprint: str
    links_titles: bool

    async def extract(self, chunks: Sequence[ChunkInContext]) -> AsyncIterator[Sequence[ExtractionRecord]]:
        """Yield them."""
        yield [self.records[item.chunk.hash] for item in chunks]


def candidates(dataset: DataSet, questions: int, each: int) -> DataSet:
    """The pool of a few questions: their gold passages and what vectors find for them."""
    asked = dataset.part("odd").sample(questions)
    index = Index(recipe="flat", chunker=None)
    index.build(dataset.documents)
    wanted: dict[str, None] = {}
    for question in asked.questions:
        wanted.update(dict.fromkeys(question.supporting))
        wanted.update(dict.fromkeys(hit.doc_ids[0] for hit in index.search(question.question, each)))
    return replace(asked, documents=tuple(document for document in dataset.documents if document.id in wanted))


def chunk_of(document: Document) -> Chunk:
    """The one passage of a document, as an index without a chunker makes it."""
    return Chunk(f"{document.id}#0", document.id, 0, document.title, document.text)


async def extracted(extractor: Extractor, chunks: Sequence[Chunk]) -> dict[str, ExtractionRecord]:
    """Records by the hash of the passage, those that failed left out."""
    found = {}
    async for batch in extractor.extract([ChunkInContext(chunk) for chunk in chunks]):
        found.update({record.hash: record for record in batch if record.status != "failed"})
    return found


def show(dataset: DataSet, kinds: Mapping[str, Mapping[str, ExtractionRecord]], recipes: Sequence[str]) -> None:
    """Markdown: size of the records, and R@5 of recipes that stand on them."""
    print(f"\n### {dataset.name}: {len(dataset.documents)} passages, {len(dataset.questions)} questions\n")
    head = "".join(f" R@2 / R@5 {recipe} |" for recipe in recipes)
    print(f"| records | facts | sentences | entities | triples |{head}\n|---|--:|--:|--:|--:|{'---|' * len(recipes)}")
    sentences = {document.id: max(1, document.text.count(". ") + 1) for document in dataset.documents}
    for name, records in kinds.items():
        sizes = [
            fmean(len(record.facts) for record in records.values()),
            fmean(sentences.values()),
            fmean(len(record.entities) for record in records.values()),
            fmean(sum(len(fact.triples) for fact in record.facts) for record in records.values()),
        ]
        cells = [f"{value:.1f}" for value in sizes]
        for recipe in recipes:
            extractor = Kept(records, f"kept/{name}", links_titles=name != "model")
            with tempfile.TemporaryDirectory() as folder:
                index = Index(folder, recipe=recipe, extractor=extractor, chunker=None)
                index.build(dataset.documents)
                row = asyncio.run(evaluate(index, dataset, EvalConfig(budget=None, returns="passages")))
                index.close()
            cells.append(f"{row.recall_passages(2):.1f} / {row.recall_passages(5):.1f}")
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("SIRE_DATA") or ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default, help="folder of the sets; default: SIRE_DATA")
    parser.add_argument("--set", default="musique")
    parser.add_argument("--questions", type=int, default=12)
    parser.add_argument("--each", type=int, default=6, help="passages that vectors find for a question")
    parser.add_argument("--recipes", nargs="+", default=["pagerank", "sire"])
    parser.add_argument("--llm", required=True, help="the model's name; part of what answers are kept by")
    parser.add_argument("--base-url", help="where it is served; without, nothing is asked")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "small-model", help="where answers are kept")
    parser.add_argument("--kinds", nargs="+", default=["model", "model+rules"], choices=["model", "model+rules"])
    parser.add_argument("--most", type=int, default=10**9, help="passages to ask about in this run, of each kind")
    parser.add_argument("--concurrency", type=int, default=1, help="calls at once; as many as the server has slots")
    options = parser.parse_args()
    dataset = candidates(load_dataset(options.data / options.set), options.questions, options.each)
    chat = OpenAIChat(
        options.llm, base_url=options.base_url, api_key="none", deadline=7200.0, concurrency=options.concurrency
    )
    options.work.mkdir(parents=True, exist_ok=True)
    answers = RecordedAnswers(options.work / f"extraction-{options.set}.jsonl")
    chunks = [chunk_of(document) for document in dataset.documents]
    makers = {"model": ModelExtractor, "model+rules": MergedExtractor}
    kept = {kind: makers[kind](CachedModel(AbsentModel(chat.fingerprint), answers)) for kind in options.kinds}
    if options.base_url:
        for kind in options.kinds:
            known = asyncio.run(extracted(kept[kind], chunks))
            todo = [chunk for chunk in chunks if chunk.hash not in known][: options.most]
            asking = makers[kind](CachedModel(Watched(chat), answers), concurrency=options.concurrency)
            asyncio.run(extracted(asking, todo))
    kinds = {kind: asyncio.run(extracted(extractor, chunks)) for kind, extractor in kept.items()}
    there = [chunk for chunk in chunks if all(chunk.hash in records for records in kinds.values())]
    ids = {chunk.doc_id for chunk in there}
    pool = replace(
        dataset,
        documents=tuple(document for document in dataset.documents if document.id in ids),
        questions=tuple(question for question in dataset.questions if ids.issuperset(question.supporting)),
    )
    print(
        f"{len(there)} of {len(chunks)} passages are answered, {len(pool.questions)} questions whole", file=sys.stderr
    )
    if there:
        rules = {record.hash: record for record in RulesExtractor().records(there)}
        asked = {kind: {chunk.hash: records[chunk.hash] for chunk in there} for kind, records in kinds.items()}
        show(pool, {"rules": rules, **asked}, options.recipes if pool.questions else [])
    answers.close()


if __name__ == "__main__":
    main()
