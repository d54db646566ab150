"""How often the sentences of an answer without a model hold what was asked for.

    python benchmarks/extracts.py [--learn | --refused] SET...

A set is a folder of SIRE_DATA. Where questions have `needs`, a need is met if a quote has most of the words of its
quotation; else a question is if they have its answer (those of the part `odd` that are answered by no yes or no). The
test part is not read. Left out are weights learned on the other sets of the kind (parts of documents with `needs`,
whole ones without). `--learn` prints those of all sets given, as `search/extracts.toml` has them. `--refused` prints
how many of 50 questions of the part `odd` of each set the documents of each set are said not to answer, those that are
quoted with a warning in brackets, and how many of `everyday_questions.txt`: about computers and the house, answered by
no set.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from listwise import listwise_weights

from sire_core import Index
from sire_core.evaluate.datasets import load_dataset
from sire_core.evaluate.rows import fold
from sire_core.search import extracts, unanswered
from sire_core.search.explanation import text_below_title
from sire_core.text.words import count_tokens, normalize_answer

if TYPE_CHECKING:
    from sire_core.questions import Question
    from sire_core.types import Hit

    Asked = tuple[int, Question, list[Hit]]

DATA = Path(os.environ.get("SIRE_DATA", "../shared/data"))
QUESTIONS, WHOLE_HITS = 300, 5
PENALTY = 0.01
PRICE = {"parts": 1.0, "whole": 0.5}
"""Taken from the learned weight of the logarithm of a sentence's tokens: what it takes of the budget."""
MOST, INSIDE, FEWEST = 0.7, 0.9, 5
"""Share of a quote's words in a sentence, or of a sentence's in the quote, that has so many at least."""
SHARES, REFUSED = (0.35, 0.4, 0.45), 50  # Values of `unanswered.MIN_SHARE` that are tried, and questions of each set
HARDLY_THERE = {"parts": ("time", "leads", "reached", "via"), "whole": ("time", "short", "code")}
"""Features whose weights are set by hand: too few sentences of the sets have them."""


def meets(text: str, quote: str) -> bool:
    """Whether a sentence is a quote, all but some words, or a part of it."""
    words, quoted = (set(re.findall(r"\w+", fold(one))) for one in (text, quote))
    shared = len(words & quoted)
    return shared >= MOST * len(quoted) or (len(words) >= FEWEST and shared >= INSIDE * len(words))


def met(question: Question, texts: Sequence[str]) -> list[bool]:
    """Whether some sentences meet each need of a question, or have its answer."""
    if question.needs:
        return [any(meets(text, quote) for text in texts for _, quote in need) for need in question.needs]
    whole = f" {normalize_answer(' '.join(texts))} "
    return [any(f" {normalize_answer(answer)} " in whole for answer in question.answers)]


def asked(name: str) -> list[Asked]:
    """Questions of a set with their numbers and hits."""
    dataset = load_dataset(DATA / name)
    with Index(recipe="sire") as index:
        index.build(dataset.documents)
        questions = [question for question in dataset.part("develop").questions if question.needs] or [
            question
            for question in dataset.part("odd").questions
            if question.answers and question.answers[0].lower() not in ("yes", "no")
        ]
        return [
            (number, question, index.search(question.question, extracts.PASSAGES))
            for number, question in enumerate(questions[:QUESTIONS])
        ]


def kind_of(rows: Sequence[Asked]) -> str:
    """Section of the weights that a set is about."""
    return "parts" if rows[0][1].needs else "whole"


def learned(rows: Sequence[Asked]) -> dict[str, float]:
    """Weights that give the sentences that meet a need the largest share of all (listwise softmax)."""
    tables, needs = [], []
    for _, question, hits in rows:
        scored = extracts.ScoredSentences.of(question.question, hits)
        places = np.flatnonzero(scored.is_open)
        wanted = np.array([met(question, [scored.candidates.text(place)]) for place in places.tolist()]).T
        if wanted.any():
            tables.append(np.mean(scored.parts, axis=0)[places])
            needs.append([np.flatnonzero(need) for need in wanted])
    weights = dict(zip(extracts.FEATURES, listwise_weights(tables, needs, PENALTY), strict=True))
    weights["tokens"] -= PRICE[kind_of(rows)]
    kind = kind_of(rows)
    weights |= {name: extracts.learned_weights()[kind][name] for name in HARDLY_THERE[kind]}
    return {name: round(weight, 2) for name, weight in weights.items()}


def share(rows: Sequence[Asked], weights: dict[str, float]) -> tuple[float, float, float]:
    """Percentage of needs that the quotes meet with some weights or the shipped ones, characters and tokens of them."""
    shipped = extracts.learned_weights
    if weights:
        extracts.learned_weights = lambda: {**shipped(), kind_of(rows): weights}
    try:
        chosen = [(question, extracts.extract_sentences(question.question, hits)) for _, question, hits in rows]
    finally:
        extracts.learned_weights = shipped
    values = [value for question, quotes in chosen for value in met(question, [one.quoted for one in quotes])]
    texts = ["\n".join(one.quoted for one in quotes) for _, quotes in chosen]
    return 100 * fmean(values), fmean(map(len, texts)), fmean(map(count_tokens, texts))


def refused(names: Sequence[str]) -> None:
    """Print the percentage of the questions of each set that the documents of each set are said not to answer."""
    sets = {name: load_dataset(DATA / name) for name in names}
    texts = {name: [one.question for one in dataset.part("odd").questions[:REFUSED]] for name, dataset in sets.items()}
    texts["everyday"] = Path(__file__).with_name("everyday_questions.txt").read_text("utf-8").splitlines()
    print(
        f"| documents | questions | {' | '.join(f'{share:.2f}' for share in SHARES)} |\n|---|---|{'--:|' * len(SHARES)}"
    )
    for name, dataset in sets.items():
        with Index(recipe="sire") as index:
            index.build(dataset.documents)
            for other, questions in texts.items():
                found = list(zip(questions, index.search_many(questions, extracts.PASSAGES), strict=True))
                values = []
                for unanswered.MIN_SHARE in SHARES:
                    judged = [unanswered.judge_hits(*one) for one in found]
                    doubted = 100 * fmean(not one.is_answered for one in judged)
                    values.append(f"{doubted:.0f} ({100 * fmean(one.is_near for one in judged) - 100 + doubted:.0f})")
                print(f"| {name} | {other} | {' | '.join(values)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", metavar="SET")
    parser.add_argument("--learn", action="store_true", help="print the weights that all sets give")
    parser.add_argument("--refused", action="store_true", help="print how many questions are refused")
    options = parser.parse_args()
    if options.refused:
        refused(options.sets)
        return
    rows = {name: asked(name) for name in options.sets}
    print("| set | needs or answers | five hits whole | met | left out | characters | tokens |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, own in rows.items():
        held = [met(q, [text_below_title(hit.unit) for hit in hits[:WHOLE_HITS]]) for _, q, hits in own]
        whole = 100 * fmean(value for values in held for value in values)
        others = [
            row for other, those in rows.items() if other != name and kind_of(those) == kind_of(own) for row in those
        ]
        shipped, characters, tokens = share(own, {})
        left_out, characters, tokens = share(own, learned(others)) if others else (float("nan"), characters, tokens)
        numbers = f"{whole:.1f} | {shipped:.1f} | {left_out:.1f} | {characters:.0f} | {tokens:.0f}"
        print(f"| {name} | {sum(map(len, held))} | {numbers} |", flush=True)
    for kind in sorted({kind_of(own) for own in rows.values()} if options.learn else ()):
        print(kind, learned([row for own in rows.values() if kind_of(own) == kind for row in own]))


if __name__ == "__main__":
    main()
