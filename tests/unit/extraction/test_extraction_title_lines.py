"""Titles that stand above the text, as splitters and exports leave them."""

import time

import pytest

from sire_core import Document, Index
from sire_core.corpus.sections import title_line
from sire_core.data import demo_documents, demo_questions
from sire_core.extraction.rules import RulesExtractor
from sire_core.types import Chunk

TEXT = "The Salt Lantern is a 1924 drama film directed by Petra Quillon. It was made in Varn Harbour."


def record(title, text):
    (found,) = RulesExtractor().records([Chunk("a#0", "a", 0, title, text)])
    return found


def test_a_first_line_that_is_a_title_is_read_as_the_title():
    beside, above = record("The Salt Lantern", TEXT), record("", f"The Salt Lantern\n{TEXT}")
    assert [fact.text for fact in above.facts] == [fact.text for fact in beside.facts]
    assert [(entity.name, entity.type) for entity in above.entities] == [(e.name, e.type) for e in beside.entities]
    assert above.topic == beside.topic == "The Salt Lantern"


@pytest.mark.parametrize(
    "text",
    [
        TEXT,  # one line
        "The Salt Lantern is a film.\nIt was made in Varn Harbour by a crew of forty people in 1924.",  # a sentence
        "The Salt Lantern, a drama\nby Petra Quillon was made in Varn\nHarbour in the year 1924.",  # wrapped lines
        "Ingredients\n- two eggs and a lot of flour from the mill",
        "Options\n| name | meaning of this option |",
        "see also the older pages\nThe Salt Lantern is a 1924 drama film directed by Petra Quillon.",
        "Title\n",
        "\n\n",
        "",
    ],
)
def test_what_is_no_title_stays_text(text):
    assert title_line(text) == ("", text)


def test_names_of_the_first_line_join_passages_as_titles_do():
    """The demo's questions need two passages; the titles stand in the texts."""
    documents = [Document(d.id, f"{d.title}\n{d.text}") for d in demo_documents()]
    titled, written = (Index(recipe="pagerank") for _ in range(2))
    titled.build(demo_documents())
    written.build(documents)
    wanted = [
        (question.question, set(question.supporting)) for question in demo_questions() if len(question.supporting) > 1
    ]

    def found(index):
        return sum(len(gold & {hit.doc_ids[0] for hit in index.search(text, 3)}) for text, gold in wanted)

    assert found(written) >= found(titled) - 1
    written.close()
    titled.close()


def test_a_megabyte_of_anything_takes_no_longer_than_its_length():
    for text in ("a " * 500_000, "A\n" * 500_000, "A" * 1_000_000 + "\n" + "B" * 1_000_000):
        begun = time.perf_counter()
        title_line(text)
        assert time.perf_counter() - begun < 1
