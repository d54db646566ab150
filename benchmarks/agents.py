"""What an agent reads until it has seen all required quotes: one search tool against another, and against grep.

    python benchmarks/agents.py [--tokens N] [--questions PART] [--work FOLDER] [--json FILE] [SET ...]

The agent is a script, the same for all tools, so that only these differ. It asks the search tool the question, then the
question with a name of what it read: the rarest that no query has had. With grep it looks for the rarest word of the
question, reads the file with most matches around the first of them, and goes on to the next word; then to names. How
rare a word is, it knows from the corpus: it never wastes a call on a common one. It stops when all quotes of a question
that needs two documents were in an output, or when it has read `--tokens`. Tokens are those of all outputs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

from sire_core import Index
from sire_core.evaluate import load_dataset
from sire_core.evaluate.datasets import PARTS
from sire_core.evaluate.rows import fold
from sire_core.recipes import recipe_by_name
from sire_core.serve.tools import IndexTools
from sire_core.text.words import count_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sire_core.evaluate.datasets import DataSet
    from sire_core.questions import Question
    from sire_core.types import Document

    Tool = Callable[["Agent"], Iterator[str]]

DATA = Path(os.environ.get("SIRE_DATA", "../shared/data"))
SETS = ("ops", "frameworks")
K, CONTEXT_TOKENS = 5, 2000
GREP_LINES, LINE_CHARS, READ_LINES = 40, 200, 60
WORD = re.compile(r"[^\W_][\w./:-]*[^\W_]")
NAME = re.compile(r"\w+[A-Z0-9_./:-]\w")
"""A word with a sign, a digit or a capital inside: what an agent takes for the name of an option, file or class."""


@dataclass(slots=True)
class Corpus:
    """Documents by id, and the number of documents that have each word."""

    lines: dict[str, list[str]]
    lower_lines: dict[str, list[str]]
    frequency: Counter[str]

    @classmethod
    def of(cls, documents: Sequence[Document]) -> Corpus:
        """Count the words of documents."""
        lines = {document.id: document.text.splitlines() for document in documents}
        lower = {name: [line.lower() for line in some] for name, some in lines.items()}
        words = (set(WORD.findall("\n".join(some))) for some in lower.values())
        return cls(lines, lower, Counter(word for some in words for word in some))

    def rarest(self, words: Sequence[str], without: set[str]) -> str:
        """The rarest of some words that documents have, the first of equals; empty if none is left."""
        left = [word for word in words if word not in without and self.frequency[word]]
        return min(left, key=lambda word: self.frequency[word], default="")


@dataclass(slots=True)
class Agent:
    """A question, the names that the agent has read, and the words that it has used up."""

    question: str
    corpus: Corpus
    names: dict[str, None] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def read(self, output: str) -> None:
        """Note the names of an output."""
        self.names.update(dict.fromkeys(word.lower() for word in WORD.findall(output) if NAME.search(word)))

    def next_name(self) -> str:
        """The rarest name that was read and not used yet; empty if there is none."""
        self.used.update(WORD.findall(self.question.lower()))
        name = self.corpus.rarest([*self.names], self.used)
        self.used.add(name)
        return name


def searching(search: Callable[[str], str]) -> Tool:
    """Outputs of a search tool: for the question, then for the question with a name that was read."""

    def outputs(agent: Agent) -> Iterator[str]:
        yield search(agent.question)
        while name := agent.next_name():
            yield search(f"{agent.question} {name}")

    return outputs


def grepping(agent: Agent) -> Iterator[str]:
    """Outputs of `grep -n` and of reading around its matches, in turn."""
    read: set[str] = set()
    words = list(dict.fromkeys(WORD.findall(agent.question.lower())))
    while word := agent.corpus.rarest(words, agent.used) or agent.next_name():
        agent.used.add(word)
        matches: dict[str, list[int]] = {}
        lines = []
        for name, lower_lines in agent.corpus.lower_lines.items():
            for number, line in enumerate(lower_lines):
                if word in line:
                    matches.setdefault(name, []).append(number)
                    lines.append(f"{name}:{number + 1}:{agent.corpus.lines[name][number][:LINE_CHARS]}")
        yield "\n".join(lines[:GREP_LINES])
        best = max((name for name in matches if name not in read), key=lambda name: len(matches[name]), default="")
        if best:
            read.add(best)
            first = max(0, matches[best][0] - READ_LINES // 3)
            yield "\n".join(agent.corpus.lines[best][first : first + READ_LINES])


def tool_of(index: Index, **arguments: int) -> Tool:
    """The search tool that agents have over an index."""
    tools = IndexTools(index)

    async def tell(_: str) -> None: ...

    return searching(lambda query: asyncio.run(tools.call("search", {"query": query, **arguments}, tell)))


def run(question: Question, corpus: Corpus, tool: Tool, max_tokens: int) -> list[tuple[int, float]]:
    """Tokens read and share of the needs seen, after each call."""
    agent = Agent(question.question, corpus)
    needs = [[fold(quote.text) for quote in need] for need in question.needs]
    seen, tokens, history = [False] * len(needs), 0, list[tuple[int, float]]()
    for output in tool(agent):
        agent.read(output)
        tokens += count_tokens(output)
        if tokens > max_tokens and history:
            break
        text = fold(output)
        seen = [was or any(quote in text for quote in need) for was, need in zip(seen, needs, strict=True)]
        history.append((tokens, fmean(seen)))
        if all(seen):
            break
    return history


def measure(dataset: DataSet, work: Path, max_tokens: int) -> list[dict[str, object]]:
    """A row per tool."""
    corpus = Corpus.of(dataset.documents)
    questions = [question for question in dataset.questions if len(question.needs) > 1]
    indexes = {
        "sire": Index(work / "sire", recipe="sire"),
        "vectors": Index(work / "vectors", recipe="flat"),
        "BM25": Index(work / "bm25", recipe=recipe_by_name("flat", ranker="bm25")),
    }
    for name, index in indexes.items():
        if not (work / name.lower() / "manifest.json").exists():
            index.build(dataset.documents)
    tools = {
        f"`search` of `sire`, {CONTEXT_TOKENS:,} tokens": tool_of(indexes["sire"], max_tokens=CONTEXT_TOKENS),
        f"`search` of `sire`, {K} passages": tool_of(indexes["sire"], k=K),
        f"vectors, {K} passages": tool_of(indexes["vectors"], k=K),
        f"BM25, {K} passages": tool_of(indexes["BM25"], k=K),
        "grep, then read": grepping,
    }
    rows = []
    for name, tool in tools.items():
        runs = [run(question, corpus, tool, max_tokens) for question in questions]
        done = [history for history in runs if history[-1][1] == 1]
        rows.append(
            {
                "set": dataset.name,
                "tool": name,
                "questions": len(runs),
                "first": 100 * fmean(history[0][1] for history in runs),
                "three": 100 * fmean(history[:3][-1][1] for history in runs),
                "all": 100 * fmean(history[-1][1] for history in runs),
                "solved": 100 * len(done) / len(runs),
                "calls": median(map(len, done)) if done else None,
                "tokens": median(history[-1][0] for history in done) if done else None,
                "read": fmean(history[-1][0] for history in runs),
            }
        )
    return rows


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--tokens", type=int, default=10_000)
    parser.add_argument("--questions", default="odd", choices=PARTS)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.sets:
            dataset = load_dataset(DATA / name).part(options.questions)
            rows += measure(dataset, (options.work or Path(temporary)) / name, options.tokens)
    head = f"one call | three calls | {options.tokens:,} tokens | all seen | calls | tokens | tokens of all"
    print(f"| set | tool | {head} |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        rates = " | ".join(f"{row[key]:.1f}" for key in ("first", "three", "all", "solved"))
        print(
            f"| `{row['set']}` | {row['tool']} | {rates} | {row['calls']} | {row['tokens']:,.0f} | {row['read']:,.0f} |"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
