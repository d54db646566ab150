"""check_documents."""

from __future__ import annotations

import pytest

from sire_core import Document
from sire_core.documents.validation import check_documents
from sire_core.errors import CorpusError


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
