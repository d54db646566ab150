"""Evidence recall of reasoning in rounds beside one search, with an oracle in place of the language model.

    python benchmarks/reasoning.py --recipes flat indexrag pagerank --embedder lexical --limit 200

The oracle knows the data set's own decomposition of a question (MuSiQue: `decomposition`, 2WikiMultihopQA: `evidences`)
and asks its sub-questions one by one; no model is involved, so that the figures measure search, merging and selection.
It uses an intermediate answer only when it stands in a passage that it was shown, and gives up otherwise. Questions
without a decomposition are left out. Recall is by provenance, over the same number of hits for every row.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sire_core import Hit, Index
from sire_core.evaluate.bootstrap import paired_bootstrap
from sire_core.evaluate.datasets import DataSet, load_dataset
from sire_core.evaluate.rows import EvalRow
from sire_core.evaluate.runner import EvalConfig, evaluate
from sire_core.models.embedders import resolve_embedder
from sire_core.protocols import Completion, Embedder, Prompt
from sire_core.reason import IRCoTConfig, SelfAskConfig, collect, reason
from sire_core.reason.prompts import READ_FOLLOW_UP
from sire_core.recipes import recipe_by_name
from sire_core.text.words import normalize_answer

STRATEGIES: dict[str, tuple[str, Any]] = {
    "ircot": ("ircot", IRCoTConfig("indexrag", steps=6)),
    "ircot hipporag": ("ircot", IRCoTConfig("hipporag", steps=6)),
    **{f"ircot original K={k}": ("ircot", IRCoTConfig("original", k=k)) for k in (2, 4, 6, 8)},
    "self-ask": ("self-ask", SelfAskConfig(steps=6)),
}


@dataclass(frozen=True)
class Hop:
    """A gold sub-question; `{0}` in it stands for the answer to hop 0, `needs` lists such hops."""

    question: str
    answer: str
    needs: tuple[int, ...] = ()


def musique_hops(row: Mapping[str, Any]) -> list[Hop]:
    """Sub-questions with `#1` in place of the first answer, some of them as `subject >> relation`."""
    hops = []
    for part in row.get("decomposition", ()):
        text = part["question"].replace("{", "(").replace("}", ")")
        needs = []
        for earlier in range(len(hops)):
            if f"#{earlier + 1}" in text:
                text = text.replace(f"#{earlier + 1}", f"{{{earlier}}}")
                needs.append(earlier)
        subject, arrow, relation = text.partition(" >> ")
        hops.append(Hop(f"{relation} of {subject}" if arrow else text, part["answer"], tuple(needs)))
    return hops


def wiki_hops(row: Mapping[str, Any]) -> list[Hop]:
    """A question per evidence triple; a head that is the tail of an earlier one is that one's answer."""
    hops: list[Hop] = []
    for head, relation, tail in row.get("evidences", ()):
        earlier = [i for i, hop in enumerate(hops) if hop.answer == head]
        subject = f"{{{earlier[0]}}}" if earlier else head.replace("{", "(").replace("}", ")")
        hops.append(Hop(f"What is the {relation} of {subject}?", tail, tuple(earlier[:1])))
    return hops


@dataclass
class Oracle:
    """A `LanguageModel` that asks the gold sub-questions of one question, whatever it is asked."""

    hops: Sequence[Hop]
    fingerprint: str = "oracle"
    asked: set[int] = field(default_factory=set)
    shown: str = ""
    calls: int = 0

    async def complete(self, prompt: Prompt, *, schema: type[Any] | None = None, **_: Any) -> Completion:
        """Answer a prompt of the reasoning."""
        self.calls += 1
        data = json.loads(prompt.data)
        self.shown += " ".join(normalize_answer(f"{p.get('title', '')} {p['text']}") for p in data.get("passages", ()))
        if prompt.instructions == READ_FOLLOW_UP:
            return Completion("noted")
        number = next((i for i, hop in enumerate(self.hops) if i not in self.asked and self._ready(hop)), None)
        if number is None:
            text = json.dumps({"reasoning": "", "search": "DONE"}) if schema else "So the final answer is: found."
        else:
            self.asked.add(number)
            query = self.hops[number].question.format(*(hop.answer for hop in self.hops))
            # The one text is a sentence to IRCoT and, with its marker, a follow-up question to self-ask.
            plain = f"Follow up: {query}" if "follow-up" in prompt.instructions else query
            text = json.dumps({"reasoning": "", "search": query}) if schema else plain
        return Completion(text, None if schema is None else schema.model_validate_json(text))

    def _ready(self, hop: Hop) -> bool:
        return all(f" {normalize_answer(self.hops[i].answer)} " in f" {self.shown} " for i in hop.needs)


@dataclass
class Reasoning:
    """Searches by reasoning; what `evaluate` takes for an index."""

    index: Index
    hops: Mapping[str, Sequence[Hop]]
    strategy: str
    config: Any
    calls: list[int] = field(default_factory=list)
    found: dict[str, Sequence[Hit]] = field(default_factory=dict)

    async def asearch(self, query: str, k: int, *, returns: str = "units") -> Sequence[Hit]:  # noqa: ARG002 - reasoning collects units
        """The evidence of one reasoning, which units and passages are both counted in."""
        if query in self.found:
            return self.found[query]
        oracle = Oracle(self.hops[query])
        steps = reason(self.strategy, self.index, query, model=oracle, k=k, config=self.config, answer=False)
        answer = (await collect(steps)).answer
        if answer.stop not in ("done", "answered", "repeated_query", "step_limit"):
            raise RuntimeError(f"{query}: {answer.stop} {answer.note}")
        self.calls.append(answer.usage.calls)
        self.found[query] = answer.hits
        return answer.hits


def load(folder: Path, limit: int | None) -> tuple[DataSet, dict[str, list[Hop]]]:
    """Questions with a decomposition, and the decompositions by question."""
    hops = {}
    for path in sorted(folder.glob("questions*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            hops[row["question"]] = musique_hops(row) or wiki_hops(row)
    data = load_dataset(folder)
    known = tuple(question for question in data.questions if hops.get(question.question) and question.supporting)
    return replace(data, questions=known).sample(limit), hops


def measure(
    data: DataSet, hops: Mapping[str, Sequence[Hop]], recipe: str, embedder: Embedder | str, strategies: Sequence[str]
) -> list[tuple[str, EvalRow, float]]:
    """One index, all strategies: name, row, mean calls."""
    index = Index(recipe=recipe_by_name(recipe), embedder=embedder, chunker=None)
    index.build(data.documents)
    config = EvalConfig(depth=20)
    rows = [(f"{recipe}, one search", asyncio.run(evaluate(index, data, config)), 0.0)]
    for name in strategies:
        under_test = Reasoning(index, hops, *STRATEGIES[name])
        row = asyncio.run(evaluate(under_test, data, config))
        rows.append((f"{recipe}, {name}", row, sum(under_test.calls) / len(under_test.calls)))
    return rows


def show(data: DataSet, measured: Sequence[tuple[str, EvalRow, float]]) -> None:
    """Rows of a Markdown table; differences are to the first row of the same recipe."""
    base = measured[0][1]
    for name, row, calls in measured:
        if name.endswith("one search"):
            base = row
        values = row.as_json()
        recall = " | ".join(f"{values['recall'][str(k)]:.1f}" for k in (2, 5, 10, 20))
        gain = paired_bootstrap(row, base)
        shown = "" if row is base else f"{gain.difference:+.1f} [{gain.low:.1f}, {gain.high:.1f}]"
        print(
            f"| {data.name} | {len(data.questions)} | {name} | {calls:.1f} | {recall} | {values['all']['5']:.1f} "
            f"| {values['answer_in_context']:.1f} | {shown} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("SIRE_DATA") or Path(__file__).resolve().parents[1] / ".." / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default, help="folder of the data sets")
    parser.add_argument("--sets", nargs="+", default=["musique", "2wikimultihopqa"])
    parser.add_argument("--recipes", nargs="+", default=["flat", "indexrag", "pagerank"])
    parser.add_argument("--strategies", nargs="+", default=["ircot"], choices=list(STRATEGIES))
    parser.add_argument("--embedder", default="lexical", help="as `sire index --embedder` takes it")
    parser.add_argument("--limit", type=int, default=None, help="questions per set; a seeded sample")
    options = parser.parse_args()
    print("| set | questions | row | calls | R@2 | R@5 | R@10 | R@20 | all@5 | answer@1500 | R@5 gain, 95 % interval |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|--:|---|")
    for name in options.sets:
        data, hops = load(options.data / name, options.limit)
        measured = []
        for recipe in options.recipes:
            measured += measure(data, hops, recipe, resolve_embedder(options.embedder), options.strategies)
        show(data, measured)


if __name__ == "__main__":
    main()
