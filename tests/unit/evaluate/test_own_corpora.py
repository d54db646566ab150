"""The default recipe on corpora of our own: a tool's manual in Markdown, and small worlds in five languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from sire_core import Index
from sire_core.evaluate import load_dataset
from sire_core.recipes import flat, sire

DATA = Path(__file__).resolve().parents[2] / "data"


def found(place: Path) -> dict[str, list[tuple[int, int]]]:
    """For each question the number of pages it needs, and of those among the first five hits; by recipe."""
    dataset = load_dataset(place)
    rows = {}
    for name, recipe in (("dense", flat()), ("hybrid", flat(ranker="hybrid")), ("sire", sire())):
        with Index(recipe=recipe) as index:
            index.build(dataset.documents)
            rows[name] = [
                (len(needed), len(needed & {doc for hit in index.search(question.question, 5) for doc in hit.doc_ids}))
                for question in dataset.questions
                if (needed := set(question.supporting))
            ]
    return rows


def recall(rows: list[tuple[int, int]]) -> float:
    return sum(got / needed for needed, got in rows) / len(rows)


def test_both_parts_of_a_question_to_a_manual_are_found():
    rows = found(DATA / "manual")
    both = {name: sum(needed == got for needed, got in own if needed == 2) for name, own in rows.items()}
    assert both["sire"] >= 17
    assert both["sire"] >= max(both["dense"], both["hybrid"])
    assert recall(rows["sire"]) >= recall(rows["hybrid"])


@pytest.mark.parametrize("language", ["de", "es", "fr", "ja", "zh"])
def test_other_languages_are_not_below_hybrid_search(language):
    rows = found(DATA / "languages" / language)
    assert len(rows["sire"]) == 20
    assert recall(rows["sire"]) >= recall(rows["hybrid"])
