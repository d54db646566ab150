"""Documents that somebody else has cut: passages with ids, titles and metadata of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sire_core import Document, Index, Passage
from sire_core.errors import CorpusError
from sire_core.types import UnitKind

MANUAL = Document(
    "manual",
    title="Manual",
    metadata={"file_name": "manual.md", "page": 0},
    chunks=(
        Passage("The pump is started with the green lever.", id="n1", metadata={"page": 1}),
        Passage("The green lever is behind the panel.", id="n2", title="Panel", metadata={"page": 2}),
        "A text without anything of its own.",
    ),
)
LETTER = Document("letter", chunks=(Passage("The pump is loud.", id="n3", metadata={"page": 9}),))


def made(path=None, documents=(MANUAL, LETTER), recipe="raptor"):
    index = Index(path, recipe=recipe)
    index.build(documents)
    return index


def passages(index):
    units = index.view().units(range(index.view().size))
    return {
        unit.text: (unit.source_ids, unit.title, dict(unit.metadata)) for unit in units if unit.kind is UnitKind.CHUNK
    }


def test_passages_keep_their_ids_titles_and_metadata(tmp_path):
    with made(tmp_path / "index"):
        pass
    with Index(tmp_path / "index") as index:
        assert passages(index) == {
            "The pump is started with the green lever.": (("n1",), "Manual", {"file_name": "manual.md", "page": 1}),
            "The green lever is behind the panel.": (("n2",), "Panel", {"file_name": "manual.md", "page": 2}),
            "A text without anything of its own.": ((), "Manual", {"file_name": "manual.md", "page": 0}),
            "The pump is loud.": (("n3",), "", {"page": 9}),
        }
        joined = "\n\n".join(passages(index))
        manual, letter = index.documents()
        assert (manual, letter) == (replace(MANUAL, text=manual.text), replace(LETTER, text="The pump is loud."))
        assert joined == f"{manual.text}\n\n{letter.text}"


def test_filters_look_at_the_metadata_of_passages():
    index = made()
    found = index.search("green lever pump", filter="page=2")
    assert {chunk for hit in found for chunk in hit.unit.source_ids} == {"n2"}
    assert [hit.unit.source_ids for hit in index.search("pump", filter={"page": {"gt": 2}})] == [("n3",)]


def test_a_new_id_or_new_metadata_of_a_passage_is_a_change_that_keeps_its_text():
    index = made()
    renamed = Document("letter", chunks=(Passage("The pump is loud.", id="other", metadata={"page": 10}),))
    report = index.update([renamed])
    assert (report.updated, report.unchanged) == (1, 0)
    assert passages(index)["The pump is loud."] == (("other",), "", {"page": 10})
    assert passages(index) == passages(made(documents=(MANUAL, renamed)))
    assert index.update([renamed]).unchanged == 1


def test_equal_passages_of_two_documents_are_one_unit_with_both_ids():
    twins = [Document(name, chunks=(Passage("The same text.", id=f"id of {name}"),)) for name in ("a", "b")]
    index = made(documents=twins)
    assert passages(index) == {"The same text.": (("id of a", "id of b"), "", {})}


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        (("fine", 3), "Passage objects"),
        ((Passage("text", id=7),), "id of a passage is int"),
        ((Passage(None),), "text of a passage"),
        ((Passage("text", metadata=["a"]),), "metadata of a passage is list"),
        ((Passage("text", metadata={"a": object()}),), "cannot be stored as JSON"),
    ],
)
def test_passages_that_make_no_sense_are_refused(chunks, message):
    with pytest.raises(CorpusError, match=message):
        Index().build([Document("d", chunks=chunks)])
