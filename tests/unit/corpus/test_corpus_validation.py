"""check_documents."""

from __future__ import annotations

import enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.algorithms.text import clean_text
from sire_core.corpus.validation import check_documents
from sire_core.errors import CorpusError
from sire_core.types import Document


class Label(str, enum.Enum):
    RED = "red"


def test_values_become_plain():
    (document,) = check_documents(
        [Document(Label.RED, "a\0\ud800", metadata={"t": (1, 2), "l": Label.RED}, chunks=["p"])]
    )
    assert type(document.id) is str
    assert document == Document("red", "a\ufffd", metadata={"t": [1, 2], "l": "red"}, chunks=("p",))
    assert type(document.metadata["l"]) is str


def test_metadata_is_copied():
    metadata = {"tags": ["a"]}
    (document,) = check_documents([Document("a", metadata=metadata)])
    metadata["tags"].append("b")
    assert document.metadata == {"tags": ["a"]}


def test_contradictions_list_the_ids():
    documents = [Document(f"d{n % 12}", text) for text in ("x", "y") for n in range(12)]
    with pytest.raises(
        CorpusError, match=r"^12 document id.*'d0' \(document number 0 and document number 12.*and 2 more"
    ):
        check_documents(documents)


CYCLE: dict = {}
CYCLE["self"] = CYCLE
DEEP: list = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (Document(""), "number 1 has a blank id"),
        (Document(" "), "blank id"),
        (Document(" \0"), "number 1: the id .* holds a NUL"),
        (Document(5), "use str\\(id\\)"),
        (Document("a", None), "'a' \\(number 1\\): text is NoneType"),
        (Document("a", title=3), "title is int"),
        (Document("a", metadata=[]), "metadata is list"),
        (Document("a", chunks="uncut text"), "chunks must be"),
        (Document("a", chunks=(1,)), "chunks must be"),
        (Document("a", metadata={1: 2}), "metadata key 1"),
        (Document("a", metadata={"ok": 1, "what": object()}), "Document 'a'.*key 'what'.*type object"),
        (Document("a", metadata={"c": CYCLE}), "key 'c'"),
        (Document("a", metadata={"d": DEEP}), "key 'd'"),
        ({"id": "a"}, "number 1 is a dict; pass Document"),
        ("text", "number 1 is a str"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_documents_are_named(document, reason):
    with pytest.raises(CorpusError, match=reason):
        check_documents([Document("first"), document])


@pytest.mark.parametrize("given_value", ["text", b"", {"id": "a"}, Document("a"), 5, None])
def test_something_that_is_no_list_of_documents(given_value):
    with pytest.raises(CorpusError, match="list of Document objects"):
        check_documents(given_value)


@given(st.text(st.characters(exclude_categories=()) | st.sampled_from("\0\ud83d\ude00")))
def test_clean_text_is_encodable_and_changes_nothing_else(text):
    cleaned = clean_text(text)
    cleaned.encode("utf-8")
    assert "\0" not in cleaned
    assert clean_text(cleaned) == cleaned
    if not any("\ud800" <= c <= "\udfff" or c == "\0" for c in text):
        assert cleaned == text
