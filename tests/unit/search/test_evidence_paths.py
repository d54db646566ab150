"""`sire`: passages by their own evidence and by the sentences that lead to them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.algorithms.lists import Lists
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError
from sire_core.recipes.sire import names
from sire_core.recipes.sire.index import EvidenceIndex
from sire_core.recipes.sire.names import SpelledText
from sire_core.recipes.sire.passages import PassageWords, name_words, passage_headings
from sire_core.search.passages import opening_name, passage_sentences
from sire_core.testing.doubles import HashEmbedder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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


@pytest.mark.parametrize("pages", [PAGES, UNTITLED], ids=["titled", "untitled"])
def test_words_and_names_of_unchanged_passages_are_not_read_again(
    monkeypatch: pytest.MonkeyPatch, pages: tuple[Document, ...]
) -> None:
    read: list[int] = []
    parsed: list[str] = []
    whole = PassageWords.read.__func__  # type: ignore[attr-defined]

    def counted(cls: type, ids: Sequence[bytes], units: object) -> PassageWords:
        read.append(len(ids))
        return whole(cls, ids, units)

    def noted(name: str) -> list[str]:
        parsed.append(name)
        return name_words(name)

    monkeypatch.setattr(PassageWords, "read", classmethod(counted))
    monkeypatch.setattr(names, "name_words", noted)
    monkeypatch.setattr(names, "_AT_ONCE", 5)  # the grown index is made in many parts, the fresh one in one
    monkeypatch.setattr(names, "_PASSAGES_AT_ONCE", 3)
    with Index(recipe="sire", embedder=HashEmbedder()) as grown, Index(recipe="sire", embedder=HashEmbedder()) as fresh:
        grown.build(pages[:-2])
        grown.search(QUESTION)
        before = set(parsed)
        grown.delete(["ida"])
        text = (
            "Orla Venn & Sons (1931) sold harbours by the painter Élise Aubry near Mill 3 and Mill 10 to Tobin Marsh."
        )
        changed = [replace(pages[0], text=text), *(replace(p, text=f"{p.text} It is new.") for p in pages[-2:])]
        parsed.clear()
        grown.update(changed)
        grown.search(QUESTION)
        assert not before.intersection(parsed), "names that passages had before are not parsed again"
        monkeypatch.setattr(names, "_AT_ONCE", 1000)
        monkeypatch.setattr(names, "_PASSAGES_AT_ONCE", 1000)
        fresh.build(grown.documents())
        fresh.search(QUESTION)
        assert read == [len(pages) - 2, 3, len(pages) - 1]
        for index in (grown, fresh):  # behind all others: what is there keeps its numbers
            index.add([Document("zoe", f"{text} Zoe Quill saw it.", title="Zoe Quill")])
            index.search(QUESTION)
        one, other = (EvidenceIndex.of(index.snapshot().view) for index in (grown, fresh))
        for field in (entry for entry in fields(EvidenceIndex) if entry.init):
            mine, whole_value = getattr(one, field.name), getattr(other, field.name)
            for a, b in zip(parts(mine), parts(whole_value), strict=True):
                np.testing.assert_array_equal(a, b, err_msg=field.name)


def test_names_are_looked_for_in_passages_that_may_name_others_than_before(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    whole = SpelledText.of_passages

    def counted(self: SpelledText, wanted: NDArray[np.bool_]) -> SpelledText:
        looked.append(int(wanted.sum()))
        return whole(self, wanted)

    monkeypatch.setattr(SpelledText, "of_passages", counted)
    settings: dict[str, Any] = {"recipe": "sire", "embedder": HashEmbedder()}
    steps = [
        [Document("leith", "Leith is a harbour. Few organs are built there.", title="Leith")],  # `tobin` names it
        [Document("grey", "A grey day.", title="Grey")],
        [Document("tobin", "Nobody knows of him.", title="T. Marsh")],  # `orla` named him
    ]
    with Index(**settings) as grown:
        grown.build(PAGES)
        for put in steps:
            looked.clear()
            grown.update(put)
            grown.search(QUESTION)
            assert 0 < sum(looked) <= 3
            with Index(**settings) as fresh:
                fresh.build(grown.documents())
                one, other = (EvidenceIndex.of(index.snapshot().view) for index in (grown, fresh))
                for field in (entry for entry in fields(EvidenceIndex) if entry.init):
                    both = (parts(getattr(index, field.name)) for index in (one, other))
                    for a, b in zip(*both, strict=True):
                        np.testing.assert_array_equal(a, b, err_msg=field.name)


def parts(value: Lists | NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Arrays of a field."""
    return (value.starts, value.values) if isinstance(value, Lists) else (np.asarray(value),)


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


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Aylwin is a 1920 film by Henry Edwards.", "Aylwin"),
        ("The Lamp of Sorrow (1911) is a play.", "Lamp of Sorrow"),
        ("She was born in Leith.", ""),
        ("When it rains, close the lid.", ""),
        ("", ""),
    ],
)
def test_opening_names(text: str, name: str) -> None:
    assert opening_name(text) == name


def test_sentences_are_neither_tiny_nor_endless() -> None:
    text = "Yes. " + "\n".join(f"- item number {i} of a long list" for i in range(100))
    found = passage_sentences(text)
    assert " ".join(" ".join(found).split()) == " ".join(text.split())
    assert all(25 <= len(sentence) <= 450 for sentence in found)


def test_lists() -> None:
    lists = Lists.of_pairs(np.array([2, 0, 2, 2]), np.array([5, 1, 3, 5]), 4)
    assert [lists.of(row).tolist() for row in range(len(lists))] == [[1], [], [3, 5], []]
    places, values = lists.take(np.array([2, 1, 0]))
    assert (places.tolist(), values.tolist()) == ([0, 0, 2], [3, 5, 1])
    assert [lists.inverted(6).of(value).tolist() for value in range(6)] == [[], [0], [], [2], [], [2]]


def test_settings_are_checked() -> None:
    from sire_core.recipes import sire

    with pytest.raises(ConfigurationError, match="rounds"):
        sire(rounds=-1)


@pytest.mark.parametrize(
    ("title", "text", "headings"),
    [
        ("", "Restoring a volume\n\nRun the command below.", ["Restoring a volume"]),
        ("", "# Restoring a `volume`\nRun it.\n\n## Options\n\n* one", ["Restoring a volume", "Options"]),
        ("", "See below.\n\n Known limits \n\nNone yet. Ask us.", ["Known limits"]),
        ("Guide > Queue > Limits", "There are none.", ["Guide", "Queue", "Limits"]),
        ("Aylwin (film)", "Aylwin is a 1920 film.", []),
        ("", "One line alone", []),
        ("", "It starts.\n\n1. Open the door\n\n* An item\n\nIt ends here.", []),
    ],
)
def test_lines_that_stand_alone_are_headings(title: str, text: str, headings: list[str]) -> None:
    assert passage_headings(title, text) == headings


def test_a_heading_that_asks_the_question_comes_first() -> None:
    filler = "The volume is kept, the volume is copied, and restoring waits until a volume is free."
    pages = [
        Document("told", f"Backups of volumes\n\n{filler} {filler}"),
        Document("asked", "Restoring a volume\n\nOpen the console, choose the snapshot and press the second button."),
        *(Document(f"o{i}", f"Release notes {i}\n\nMinor repairs of part {i} of the console.") for i in range(12)),
    ]
    assert ranked(tuple(pages), "How do I go about restoring a volume?", k=1) == ["asked"]


def test_a_build_makes_what_the_first_search_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Index(tmp_path / "ix", recipe="sire", embedder=HashEmbedder()) as index:
        index.build(demo_documents())
    monkeypatch.setattr(EvidenceIndex, "_read", None)
    with Index(tmp_path / "ix", embedder=HashEmbedder()) as index:
        assert index.search("Who directed The Salt Lantern?", 3)


def test_what_the_question_names_itself_is_not_explained_by_another_passage() -> None:
    with Index(recipe="sire") as index:
        index.build(PAGES)
        hits = {hit.doc_ids[0]: hit.path for hit in index.search("When did Orla Venn and Tobin Marsh marry?", 2)}
        assert [step.step for step in hits["tobin"]] == ["question", "vector:chunk"]
        assert hits["tobin"][0].note == "the question names Tobin Marsh"
        unnamed = {hit.doc_ids[0]: hit.path for hit in index.search(QUESTION, 2)}
        assert [step.step for step in unnamed["tobin"]][:2] == ["question", "entity"], "led to by what names him"
