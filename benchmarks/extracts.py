"""How often the sentences of an answer without a model hold the answer: python benchmarks/extracts.py DATA_SET..."""

from __future__ import annotations

import sys
from statistics import fmean

from sire_core import Index
from sire_core.algorithms.snippets import rate_sentences, read_sentences
from sire_core.algorithms.text import normalize_answer
from sire_core.evaluate.datasets import load_dataset
from sire_core.reason import extract_answer
from sire_core.search.explanation import text_below_title

QUESTIONS, HITS, SENTENCES = 300, 10, 5


def holds(text: str, answers: tuple[str, ...]) -> bool:
    """Whether a text has one of some answers as words."""
    return any(f" {normalize_answer(answer)} " in f" {normalize_answer(text)} " for answer in answers)


def main(folder: str) -> None:
    """Print a row: the odd questions among the first with an answer that is no yes or no."""
    dataset = load_dataset(folder)
    asked = [q for q in dataset.questions[1:QUESTIONS:2] if q.answers and q.answers[0].lower() not in ("yes", "no")]
    found: dict[str, list[bool]] = {}
    with Index(recipe="sire") as index:
        index.build(dataset.documents)
        for question in asked:
            hits = index.search(question.question, HITS)
            read = [read_sentences(text_below_title(hit.unit)) for hit in hits[:SENTENCES]]
            split = [sentences for sentences in read if sentences]
            rates = [rate_sentences(sentences, question.question) for sentences in split]
            best = [sentences[rate.index(max(rate))].text for sentences, rate in zip(split, rates, strict=True)]
            texts = {
                "extracted": extract_answer(question.question, hits).text,
                "best sentence of five hits": " ".join(best),
                "first sentence of five hits": " ".join(sentences[0].text for sentences in split),
                "five whole hits": " ".join(hit.unit.text for hit in hits[:SENTENCES]),
            }
            for name, text in texts.items():
                found.setdefault(name, []).append(holds(text, question.answers))
    rates_shown = ", ".join(f"{name} {100 * fmean(values):.1f}" for name, values in found.items())
    print(f"{dataset.name}, {len(asked)} questions: {rates_shown}")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        main(name)
