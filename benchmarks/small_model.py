"""Answers of a small model over the contexts of several recipes, question by question, as long as time allows.

    python benchmarks/small_model.py --llm qwen2.5-coder-1.5b --base-url http://127.0.0.1:8977/v1   # asks
    python benchmarks/small_model.py --llm qwen2.5-coder-1.5b --table                               # shows it

Any OpenAI-compatible server will do. Every question is read over every recipe before the next one is asked, so that a
run that was interrupted compares the recipes on the same questions. Answers are kept by the digest of what was asked
(no question and no passage is written) and nothing is asked twice; a recipe whose contexts changed is asked again.
Indexes are built without a model. Questions are a seeded sample of the odd ones; the reader has the papers' prompt.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from recorded_answers import RecordedAnswers

from sire_core import Index
from sire_core.cli.options import IndexOptions, manifest_of, open_index
from sire_core.errors import ModelError, StorageError
from sire_core.evaluate.answer_eval import AnswerConfig, AnsweredQuestion, answer_questions
from sire_core.evaluate.bootstrap import Interval, mean_interval
from sire_core.evaluate.datasets import DataSet, load_dataset
from sire_core.models.base import ModelBase
from sire_core.models.caching import CachedModel
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.sync import run_sync
from sire_core.protocols import Completion, LanguageModel, ModelRequest
from sire_core.reason import STRATEGIES, ReaderConfig

RECIPES = ("dense", "hybrid", "pagerank", "sire")
ROOT = Path(__file__).resolve().parents[1]


class AbsentModel(ModelBase):
    """Stands for a model that is not there: only what it has answered before can be read."""

    fingerprint = ""

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint

    async def answer(self, request: ModelRequest) -> Completion:  # noqa: ARG002 - there is nobody to ask
        """Nobody is there."""
        raise ModelError("not answered yet")


def indexes(
    dataset: DataSet, recipes: Sequence[str], embedder: str, folder: Path, stack: ExitStack
) -> dict[str, Index]:
    """An open index for every recipe, built in one folder where they are not there yet."""
    options = IndexOptions(folder=folder, embedder=embedder, no_chunking=True)
    try:
        manifest_of(folder)
    except StorageError:  # of an older format; everything but the answers can be made again
        shutil.rmtree(folder)
    found = {}
    for recipe in recipes:
        flat = recipe in ("dense", "bm25", "hybrid")
        named = replace(options, recipe="flat" if flat else recipe)
        with open_index(replace(named, writes=True)) as index:
            index.build(dataset.documents)
        found[recipe] = stack.enter_context(open_index(replace(named, ranker=recipe if flat else None)))
    return found


def ask(
    dataset: DataSet, places: dict[str, Index], model: LanguageModel, config: AnswerConfig, number: int
) -> dict[str, AnsweredQuestion]:
    """The answers to one question by recipe; empty unless all are there."""
    one = replace(dataset, questions=(dataset.questions[number],))
    answered = {}
    for recipe, index in places.items():
        (answer,) = run_sync(answer_questions(index, one, replace(config, model=model)))
        if answer.stop == "model_failed":
            return {}
        answered[recipe] = answer
    return answered


def show(name: str, answered: Sequence[dict[str, AnsweredQuestion]], recipes: Sequence[str]) -> None:
    """Markdown: means with 95 % intervals, and differences to `hybrid` over the same questions."""
    print(f"\n### {name}: {len(answered)} questions\n")
    print("| recipe | EM | F1 | Acc | F1 minus hybrid | R@5 of the context | calls |\n|---|---|---|--:|---|--:|--:|")
    for recipe in recipes:
        own = [found[recipe] for found in answered]
        em, f1 = (mean_interval([answer.rates[metric] for answer in own]) for metric in ("EM", "F1"))
        beside = recipe != "hybrid" and "hybrid" in recipes
        gain = (
            _signed(mean_interval([f[recipe].rates["F1"] - f["hybrid"].rates["F1"] for f in answered]))
            if beside
            else ""
        )
        inside = fmean(len(set(a.question.supporting) & set(a.documents[:5])) / len(a.question.supporting) for a in own)
        acc = 100 * fmean(answer.rates["Acc"] for answer in own)
        calls = fmean(answer.calls for answer in own)
        print(f"| {recipe} | {_plain(em)} | {_plain(f1)} | {acc:.1f} | {gain} | {100 * inside:.1f} | {calls:.1f} |")


def _plain(value: Interval) -> str:
    return f"{value.difference:.1f} [{value.low:.1f}, {value.high:.1f}]"


def _signed(value: Interval) -> str:
    return f"{value.difference:+.1f} [{value.low:.1f}, {value.high:.1f}]{'*' * value.significant}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("SIRE_DATA") or ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default, help="folder of the sets; default: SIRE_DATA")
    parser.add_argument("--sets", nargs="+", default=["musique", "2wikimultihopqa"])
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES))
    parser.add_argument("--llm", required=True, help="the model's name; part of what answers are kept by")
    parser.add_argument("--base-url", help="where it is served")
    parser.add_argument("--table", action="store_true", help="ask nothing: the table of what is answered")
    parser.add_argument("--limit", type=int, default=30, help="questions per set")
    parser.add_argument("--via", default="single", choices=list(STRATEGIES), help="how questions are answered")
    parser.add_argument("-k", type=int, default=10, help="hits of a search")
    parser.add_argument("--context-tokens", type=int, default=600)
    parser.add_argument("--embedder", default="lexical")
    parser.add_argument("--answers", type=Path, default=ROOT / "benchmarks" / "results" / "small-model.jsonl")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "small-model", help="where indexes are kept")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no question later than this")
    options = parser.parse_args()
    asked = OpenAIChat(options.llm, base_url=options.base_url, api_key="none", timeout=600.0, concurrency=1)
    absent = options.table or not options.base_url
    answers = RecordedAnswers(options.answers)
    model = CachedModel(AbsentModel(asked.fingerprint) if absent else asked, answers, "answers")
    config = AnswerConfig(options.via, k=options.k, workers=1, reader=ReaderConfig("paper", options.context_tokens))
    begun = time.monotonic()
    with ExitStack() as stack:
        sets = {name: load_dataset(options.data / name).part("odd") for name in options.sets}
        sets = {
            name: replace(data, questions=tuple(q for q in data.questions if q.answers)) for name, data in sets.items()
        }
        sets = {name: data.sample(options.limit) for name, data in sets.items()}
        places = {
            name: indexes(data, options.recipes, options.embedder, options.work / name, stack)
            for name, data in sets.items()
        }
        found: dict[str, list[dict[str, AnsweredQuestion]]] = {name: [] for name in sets}
        for number in range(options.limit):
            for name, data in sets.items():
                late = not absent and time.monotonic() - begun > 60 * options.minutes
                if number >= len(data.questions) or late:
                    continue
                row = ask(data, places[name], model, config, number)
                if row:
                    found[name].append(row)
                    print(f"{name} {number}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    found = {name: rows for name, rows in found.items() if rows}
    if len(found) > 1:
        found[", ".join(found)] = [row for rows in found.values() for row in rows]
    for name, rows in found.items():
        show(f"{name}, {options.via}", rows, options.recipes)
    answers.close()


if __name__ == "__main__":
    main()
