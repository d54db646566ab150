"""The manual without titles: what its questions name is there."""

import re
from pathlib import Path

from sire_core.evaluate.datasets import load_dataset

MANUAL = Path(__file__).parents[2] / "data" / "manual"


def test_the_manual_is_a_data_set_whose_evidence_stands_in_its_pages():
    data = load_dataset(MANUAL)
    assert len(data.documents) >= 30
    assert len(data.questions) == 30
    assert sum(len(set(question.supporting)) == 2 for question in data.questions) == 20
    for question in data.questions:
        metadata = question.metadata
        for page, section, quote in zip(question.supporting, metadata["sections"], metadata["evidence"], strict=True):
            text = (MANUAL / "corpus" / page).read_text(encoding="utf-8")
            assert re.search(rf"^#+ {re.escape(section)}$", text, re.MULTILINE), (page, section)
            assert quote in " ".join(text.split()), (page, quote)
