"""`sire`: passages by their own evidence and by the sentences that lead to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.testing.doubles import HashEmbedder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

QUESTION = "When was the spouse of Orla Venn born?"
PAGES = (
    Document("orla", "Orla Venn was a painter of harbours. In 1931 she married Tobin Marsh.", title="Orla Venn"),
    Document("tobin", "Tobin Marsh (3 May 1899 to 1970) built organs in Leith.", title="Tobin Marsh"),
    Document("ida", "Ida Krell was a painter of horses, born in 1890, whose spouse wrote plays.", title="Ida Krell"),
    Document("boats", "Harbours were painted by many; a painter was seldom born beside one.", title="Harbour art"),
    *(Document(f"o{i}", f"Mill number {i} grinds barley beside the river Aln.", title=f"Mill {i}") for i in range(12)),
)
UNTITLED = tuple(replace(page, title="") for page in PAGES)


def ranked(documents: tuple[Document, ...], question: str = QUESTION, k: int = 2, **settings: object) -> list[str]:
    """Ids of the first documents."""
    from sire_core.recipes import sire

    with Index(recipe=sire(**settings)) as index:
        index.build(documents)
        return [hit.doc_ids[0] for hit in index.search(question, k)]


@pytest.mark.parametrize("documents", [PAGES, UNTITLED], ids=["titled", "untitled"])
def test_a_passage_is_reached_over_the_sentence_that_names_it(documents: tuple[Document, ...]) -> None:
    assert ranked(documents) == ["orla", "tobin"]
    assert ranked(documents, rounds=0) != ["orla", "tobin"], "the second passage shares no word with the question"


def test_steps_are_read_with_the_question_in_one_more_batch() -> None:
    """What `read_steps` sends to the embedder, and that it moves the end of a step."""
    from sire_core.recipes import sire

    class Recording(HashEmbedder):
        asked: list[list[str]]

        async def embed(self, texts: Sequence[str], kind: str = "document") -> NDArray[np.float32]:
            if kind == "query":
                self.asked.append(list(texts))
            return await super().embed(texts, kind)

    scores = {}
    for number in (0, 24):
        embedder = Recording()
        embedder.asked = []
        with Index(recipe=sire(read_steps=number), embedder=embedder) as index:
            index.build(PAGES)
            hits = index.search(QUESTION, 4)
        scores[number] = {hit.doc_ids[0]: hit.score for hit in hits}
        assert embedder.asked[0] == [QUESTION]
        assert len(embedder.asked) == (2 if number else 1)
    assert f"{QUESTION} In 1931 she married Tobin Marsh." in embedder.asked[1]
    assert len(embedder.asked[1]) <= 24
    assert scores[0]["tobin"] != scores[24]["tobin"]


def test_the_path_shows_the_sentence() -> None:
    with Index(recipe="sire") as index:
        index.build(PAGES)
        first, second = index.search(QUESTION, 2)
        passages = {first.doc_ids[0]: first.unit.id, second.doc_ids[0]: second.unit.id}
        assert [step.step for step in second.path] == ["question", "entity", "vector:chunk"]
        step = second.path[1]
        assert step.note == "names Tobin Marsh: In 1931 she married Tobin Marsh."
        assert step.ids[0] == passages["orla"]
        assert step.ids[-1] == passages["tobin"]


def test_the_sentence_is_found_behind_a_first_line_that_is_one() -> None:
    """A question above its answer: the line is what the passage is called, and no sentence of it."""
    from sire_core.recipes import sire

    asked: list[str] = []

    class Recording(HashEmbedder):
        async def embed(self, texts: Sequence[str], kind: str = "document") -> NDArray[np.float32]:
            asked.extend(texts if kind == "query" else ())
            return await super().embed(texts, kind)

    line = "Which ship did the Baltic Line lose in 1911?"
    told = "Her captain on that last voyage was Olaf Brandt of Riga."
    pages = [
        Document("lost", f"{line}\nThe Northern Wren of the Baltic Line was lost off Gotland in a storm. {told}"),
        Document("olaf", "Olaf Brandt sailed for thirty years. His mother was Marta Krumin, a weaver.", "Olaf Brandt"),
    ]
    question = "Who was the mother of the captain of the Northern Wren on her last voyage?"
    with Index(recipe=sire(read_steps=9), embedder=Recording()) as index:
        index.build(pages)
        paths = {hit.doc_ids[0]: hit.path for hit in index.search(question, 2)}
    [step] = [step for step in paths["olaf"] if step.step == "entity"]
    assert step.note == f"names Olaf Brandt: {told}"
    assert f"{question} {told}" in asked


def test_only_allowed_passages_are_walked() -> None:
    documents = tuple(replace(page, metadata={"open": page.id != "orla"}) for page in PAGES)
    with Index(recipe="sire") as index:
        index.build(documents)
        hits = index.search(QUESTION, 20, filter={"open": True})
        assert {hit.doc_ids[0] for hit in hits} == {page.id for page in PAGES} - {"orla"}
        hidden = {unit for hit in index.search(QUESTION, 20) if hit.doc_ids == ("orla",) for unit in [hit.unit.id]}
        assert not hidden & {found for hit in hits for step in hit.path for found in step.ids}
        closed = index.search(QUESTION, 20, filter={"open": False})
        assert [hit.doc_ids for hit in closed] == [("orla",)]


def test_a_history_ranks_as_a_rebuild(tmp_path: object) -> None:
    with Index(recipe="sire", embedder="lexical") as grown, Index(recipe="sire", embedder="lexical") as fresh:
        grown.build(PAGES)
        grown.delete(["tobin"])
        assert "tobin" not in [hit.doc_ids[0] for hit in grown.search(QUESTION, 20)]
        grown.add([PAGES[1]])
        fresh.build(PAGES)
        assert [hit.doc_ids for hit in grown.search(QUESTION, 2)] == [("orla",), ("tobin",)]
        assert [hit.doc_ids for hit in fresh.search(QUESTION, 2)] == [("orla",), ("tobin",)]


def test_one_document_and_strange_questions() -> None:
    with Index(recipe="sire") as index:
        index.build(PAGES[:1])
        for question in (QUESTION, "?", "the of and", "& &", "\u6771\u4eac", "x" * 10_000, "Orla " * 3_000):
            assert [hit.doc_ids for hit in index.search(question, 3)] == [("orla",)]


@pytest.mark.parametrize(
    ("question", "pages"),
    [
        (
            "Wann wurde die Frau von Anton Bielek geboren?",
            ("Anton Bielek war ein Maler. Er heiratete Jana Strohm.", "Jana Strohm (1901 in Graz) sang im Chor."),
        ),
        (
            "\u5c71\u7530\u592a\u90ce\u306e\u59bb\u306f\u3044\u3064\u751f\u307e\u308c\u305f\u304b",
            (
                "\u5c71\u7530\u592a\u90ce\u306f\u753b\u5bb6\u3067\u3042\u308b\u3002\u9234\u6728\u82b1\u5b50\u3068\u7d50\u5a5a\u3057\u305f\u3002",
                "\u9234\u6728\u82b1\u5b50\u306f1901\u5e74\u306b\u4eac\u90fd\u3067\u751f\u307e\u308c\u305f\u3002",
            ),
        ),
    ],
    ids=["German", "Japanese"],
)
def test_other_languages(question: str, pages: tuple[str, str]) -> None:
    documents = (Document("first", pages[0]), Document("second", pages[1]), *PAGES[4:])
    assert set(ranked(documents, question)) == {"first", "second"}


def test_everyday_phrases_do_not_lead() -> None:
    pages = (
        Document("default", "The Default is a 1994 novel by Ada Quill.", title="Default"),
        Document("threads", "The thread pool has four threads by default; UV_THREADPOOL_SIZE sets it.", title="Pool"),
        *PAGES[4:],
    )
    assert ranked(pages, "how many threads does the pool have by default?", k=1) == ["threads"]


def test_a_heading_that_asks_the_question_comes_first() -> None:
    filler = "The volume is kept, the volume is copied, and restoring waits until a volume is free."
    pages = [
        Document("told", f"Backups of volumes\n\n{filler} {filler}"),
        Document("asked", "Restoring a volume\n\nOpen the console, choose the snapshot and press the second button."),
        *(Document(f"o{i}", f"Release notes {i}\n\nMinor repairs of part {i} of the console.") for i in range(12)),
    ]
    assert ranked(tuple(pages), "How do I go about restoring a volume?", k=1) == ["asked"]


def test_what_the_question_names_itself_is_not_explained_by_another_passage() -> None:
    with Index(recipe="sire") as index:
        index.build(PAGES)
        hits = {hit.doc_ids[0]: hit.path for hit in index.search("When did Orla Venn and Tobin Marsh marry?", 2)}
        assert [step.step for step in hits["tobin"]] == ["question", "vector:chunk"]
        assert hits["tobin"][0].note == "the question names Tobin Marsh"
        unnamed = {hit.doc_ids[0]: hit.path for hit in index.search(QUESTION, 2)}
        assert [step.step for step in unnamed["tobin"]][:2] == ["question", "entity"], "led to by what names him"
