"""How documents are cut, and words that a line cut."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core import Document, Index, Passage
from sire_core.documents.block_reading import read_blocks
from sire_core.documents.blocks import HEADING, repeated_of
from sire_core.documents.chunker import SentenceChunker, chunk_document, joined
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.extend import count_tokens, split_sentences
from sire_core.files.readers import read_documents
from sire_core.models.openai.client import OpenAIChat
from sire_core.papers.sirerag.sentence_groups import group_sentences
from sire_core.types import UnitKind
from support.growth import growth
from support.scripted_server import ScriptedServer

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


TEXT = "Ports are many. Amber is one. Elm is another. Amber opened in 1901. It closed in 1931."


def groups(call):
    assert len(call.fields["sentences"]) == 5
    # The fourth is left out, and the second group does not keep together.
    return json.dumps(
        {
            "groups": {
                "group_1": {"sentences": [1], "topic": "ports", "abstractiveness": "high"},
                "group_2": {"sentences": [2, 3, 5], "topic": "two ports", "abstractiveness": "LOW"},
            }
        }
    )


async def cut(script, *documents):
    with ScriptedServer(script) as server:
        model = OpenAIChat("m", base_url=server.base_url, api_key="none")
        try:
            return await group_sentences(documents, model)
        finally:
            await model.aclose()


async def test_groups_are_passages_with_labels_and_no_sentence_is_lost():
    (found,) = await cut(groups, Document("d", TEXT, "Ports"))
    assert [passage.text for passage in found.passages] == [
        "Ports are many.",
        "Amber is one. Elm is another. Amber opened in 1901. It closed in 1931.",
    ]
    assert [dict(passage.metadata) for passage in found.passages] == [
        {"abstractiveness": "high", "topic": "ports"},
        {"abstractiveness": "low", "topic": "two ports"},
    ]


async def test_what_does_not_keep_together_is_cut_and_what_fails_is_one_passage(caplog):
    def apart(call):
        numbers = [[1, 3, 5], [2, 4]]
        return json.dumps({"groups": [{"sentences": group, "abstractiveness": "high"} for group in numbers]})

    (found,) = await cut(apart, Document("d", TEXT))
    assert len(found.passages) == 5
    (whole,) = await cut(lambda call: "no idea", Document("d", TEXT, "Ports"))
    assert [passage.text for passage in whole.passages] == [TEXT]
    assert "'Ports' were not grouped" in caplog.text


TEXTS = st.lists(
    st.sampled_from(
        [*"abAB1., ;:!?\n\r\t'\"#\u3002\uff0c\u4f60\u00e9\u2028\U0001f600", "word ", "a long one ", "End. "]
    ),
    max_size=300,
).map("".join)
CHUNKERS = st.integers(1, 40).flatmap(
    lambda largest: st.builds(SentenceChunker, st.just(largest), st.integers(0, largest - 1))
)


def uncovered(text: str, chunks: list[str]) -> str:
    """What is left when the chunks are laid on the text in order, none leaving out a character before it."""
    covered = 0
    for chunk in chunks:
        gap = covered
        while text[gap].isspace():
            gap += 1
        # The latest place without a gap: at least as good as the true one where text repeats itself.
        covered = max(covered, text.rindex(chunk, 0, gap + len(chunk)) + len(chunk))
    return text[covered:].strip()


@settings(max_examples=300, deadline=None)
@given(TEXTS, CHUNKERS)
def test_nothing_is_lost_and_no_chunk_is_too_large(text, chunker):
    chunks = chunker.split(text)
    assert all(count_tokens(chunk) <= chunker.max_tokens for chunk in chunks)
    assert all(chunk == chunk.rstrip() and chunk.strip() for chunk in chunks)  # code keeps its indentation
    assert chunks == SentenceChunker(**chunker.settings()).split(text)
    assert uncovered(text, chunks) == ""


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=40), st.integers(12, 40), st.integers(0, 11))
def test_overlap_is_whole_sentences_within_its_limit(lengths, largest, overlap):
    sentences = [f"S{number}" + " w" * (length - 1) + "." for number, length in enumerate(lengths)]
    largest += 1  # the full stop
    chunks = SentenceChunker(largest, overlap).split(" ".join(sentences))
    parts = [split_sentences(chunk) for chunk in chunks]
    assert list(dict.fromkeys(s for part in parts for s in part)) == sentences
    for before, after in pairwise(parts):
        repeated = [s for s in after if s in before]
        assert repeated == after[: len(repeated)]
        assert repeated == before[len(before) - len(repeated) :]
        assert sum(map(count_tokens, repeated)) <= overlap
        assert len(repeated) < len(after)


def test_long_sentence_is_cut_at_clauses_then_words_then_inside_words():
    clauses = "red fish, blue fish; old fish: new fish"
    assert SentenceChunker(4, 0).split(clauses) == ["red fish,", "blue fish;", "old fish:", "new fish"]
    assert SentenceChunker(3, 0).split("one two three four five") == ["one two three", "four five"]
    assert SentenceChunker(2, 0).split("a-b-c") == ["a-", "b-", "c"]
    assert SentenceChunker(2, 0).split("x" * 40) == ["x" * 32, "x" * 8]
    # A comma inside a number is no clause boundary.
    assert SentenceChunker(5, 0).split("about 10,000 souls, maybe") == ["about 10,000", "souls, maybe"]


def test_text_without_spaces_is_cut_at_its_own_punctuation():
    assert SentenceChunker(3, 0).split("\u4f60\u597d\uff0c\u4e16\u754c\u3002\u518d\u89c1") == [
        "\u4f60\u597d\uff0c",
        "\u4e16\u754c\u3002",
        "\u518d\u89c1",
    ]


def passages_of(text, chunker):
    chunks = chunk_document(Document("d", text), chunker)
    return [Passage(chunk.text, blocks=chunk.blocks, repeated=repeated_of(chunk.layout)) for chunk in chunks]


HEAD = "| Name | Room |\n|---|---|"
ROWS = [f"| Person, the {number}th | Office {number} |" for number in range(40)]
STAFF = "\n".join([HEAD, *ROWS])


@pytest.mark.parametrize(
    ("before", "behind"), [("", ""), ("The staff. All of it.\n\n", "\n\nThat was all. It is of 2024.")]
)
def test_a_long_table_is_cut_between_rows_and_repeats_its_header(before, behind):
    chunker = SentenceChunker(60, 8)
    chunks = chunker.split(f"{before}{STAFF}{behind}")
    assert chunks == [passage.text for passage in passages_of(f"{before}{STAFF}{behind}", chunker)]
    assert len(chunks) > 5
    assert all(count_tokens(chunk) <= 60 for chunk in chunks)
    assert all(chunk.startswith(HEAD) for chunk in chunks[1:])
    assert [line for chunk in chunks for line in chunk.split("\n") if line.startswith("| Person")] == ROWS
    assert joined(passages_of(f"{before}{STAFF}{behind}", chunker)) == f"{before}{STAFF}{behind}"


def test_long_lines_of_values_are_cut_between_rows_and_repeat_their_header_if_there_is_one():
    rows = [f"Person {number},Office {number},{number}" for number in range(40)]
    with_header = passages_of("\n".join(["Name,Room,Since", *rows]), SentenceChunker(60, 8))
    assert len(with_header) > 5
    assert all(passage.text.startswith("Name,Room,Since\nPerson") for passage in with_header)
    assert {block.kind for passage in with_header for block in passage.blocks} == {"row"}
    assert [passage.blocks[0].level for passage in with_header] == [1] * len(with_header)
    bare = SentenceChunker(60, 8).split("\n".join(f"| {row.replace(',', ' | ')} |" for row in rows))
    assert [line for chunk in bare for line in chunk.split("\n")].count("| Person 0 | Office 0 | 0 |") == 1


def test_a_row_or_a_header_longer_than_a_chunk_is_cut_within_the_limit():
    chunks = SentenceChunker(30, 0).split(f"{HEAD}\n| {'word ' * 60}| 1 |\n| Ann | 2 |")
    assert all(chunk.startswith(HEAD) and count_tokens(chunk) <= 30 for chunk in chunks)
    assert sum(chunk.count("word") for chunk in chunks) == 60
    wide = "| a | b | c | d |\n|---|---|---|---|\n| 1 | 2 | 3 | 4 |\n| 5 | 6 | 7 | 8 |"
    chunks = SentenceChunker(18, 0).split(wide)
    assert all(count_tokens(chunk) <= 18 for chunk in chunks)
    assert "".join(chunks).count("| 5 | 6 | 7 | 8 |") == "".join(chunks).count("| a | b | c | d |") == 1


def test_long_code_is_cut_between_its_lines():
    code = "\n".join(["```python", *(f"    call({number}, {number}, {number})" for number in range(30)), "```"])
    chunks = SentenceChunker(40, 8).split(f"See this.\n\n{code}\n\nThat was it.")
    assert len(chunks) > 5
    cut = [line for chunk in chunks for line in chunk.split("\n")]
    assert [line for line in cut if "call" in line] == code.split("\n")[1:-1]


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"Verse {number // 3}. Amen. Amen. Amen. " for number in range(60)).strip(),
        " ".join(["GET /health 200."] * 300),
        " ".join(f"Sentence {number} of the log, as it is." for number in range(90)),
        "\n\n".join(f"## Part {number}\n\n" + "It rained. " * 40 + "Amen." for number in range(4)),
    ],
)
def test_joined_chunks_are_the_text_even_where_it_repeats_itself(text):
    for chunker in (SentenceChunker(50, 16), SentenceChunker(50, 0), SentenceChunker(64, 40)):
        assert joined(passages_of(text, chunker)).split() == text.split()


@pytest.mark.parametrize(
    ("given_settings", "named"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 12.5}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"overlap_tokens": -1}, "overlap_tokens"),
        ({"overlap_tokens": "8"}, "overlap_tokens"),
        ({"max_tokens": 64, "overlap_tokens": 64}, "smaller than max_tokens"),
    ],
)
def test_settings_are_checked(given_settings, named):
    with pytest.raises(ConfigurationError, match=named):
        SentenceChunker(**given_settings)


def test_given_chunks_are_taken_as_they_are():
    given_chunks = ("  first, as it is ", " ", "second. third.")
    chunks = chunk_document(Document("d", "ignored", chunks=given_chunks), SentenceChunker(2, 0))
    assert [(c.position, c.text) for c in chunks] == [(0, given_chunks[0]), (1, given_chunks[2])]
    whole = chunk_document(Document("d", " kept verbatim\n"), None)
    assert [c.text for c in whole] == [" kept verbatim\n"]


def read(tmp_path, text, name="scan.txt"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    (document,) = read_documents(tmp_path / name).documents
    return document.text


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Leopold Wieczo-\nrek verwahrte sie.", "Leopold Wieczorek\nverwahrte sie."),
        (
            "The trea-\nsurer, Miss Hor-\ntensia Blythe, re-\nsigned.",
            "The treasurer,\nMiss Hortensia\nBlythe, resigned.",
        ),
        ("Er sah die Ur-\nkun-\nden im Turm.\n\nSie lagen dort.", "Er sah die Urkunden\nim Turm.\n\nSie lagen dort."),
        ("Они жили в дерев-\nне у реки.", "Они жили в деревне\nу реки."),
        ("They in-\nform us. To inform is to form, in a way.", "They inform\nus. To inform is to form, in a way."),
        # Manuals as text: justified, indented, with hanging items.
        ("       Pages are index-\n       ing words.", "       Pages are indexing\n       words."),
        (
            "       -q     Quiet: no mes-\n              sages, one can-\n              not read them.",
            "       -q     Quiet: no messages,\n              one cannot\n              read them.",
        ),
        (
            "       The read-only com\u2010\n       mand --ver\u2010\n       bose, in g/seg\u2010\n       type(8).",
            "       The read-only command\n       --verbose,\n       in g/segtype(8).",
        ),
        ("See a-b. It is un\u2010\n", "See a-b. It is un\u2010\n"),
    ],
)
def test_a_word_goes_on_behind_the_end_of_a_line(tmp_path, text, whole):
    assert read(tmp_path, text) == whole


@pytest.mark.parametrize(
    "text",
    [
        "Vor-\nund Nachteile.",
        "The Heron-\nTarn line.",
        "A state-of-the-\nart crane.",
        "A mezzo-\nsoprano sang. Every mezzo-soprano sings.",
        "A long-\nterm plan: one term is long.",
        "Use it:\n```\nabc-\ndef\n```\n",
        "total = gross-\n        net",
        "    total = gross-\n    net",
        "    It has a battery-\n    backed cache.",
        "Pass --max-\nretries or /usr/lib-\nexec.",
        "Write to ann-\nmarie@example.com.",
        "A well\u2010\nknown one, and a well\u2010known other; a-b.",
        "- one -\n- two -\nthree",
    ],
)
def test_a_hyphen_that_belongs_to_the_text_stays(tmp_path, text):
    assert read(tmp_path, text) == text


def test_markdown_is_wrapped_by_its_authors(tmp_path):
    assert read(tmp_path, "A mezzo-\nsoprano sang.", "page.md") == "A mezzo-\nsoprano sang."


@pytest.mark.parametrize(
    "piece", ["ab-\n", "a", "ab-\nB", "a-", "ab-\n" + 40 * " ", "ab\u2010\n", "a-b " + "a\u2010\n "]
)
def test_joining_is_linear(tmp_path, piece):
    # Ten times the text, a quadratic method would need a hundred times the time.
    assert growth(lambda times: read(tmp_path, "Ur-\nkunde. " + piece * times), 8_000, 80_000) < 20


@pytest.mark.parametrize("indent", ["", "    "])
def test_long_code_is_cut_between_lines_and_each_part_begins_with_its_fence(indent):
    lines = [line for n in range(40) for line in (f"# Comment {n}", "", f"key_{n}: value")]
    code = "\n".join(f"{indent}{line}".rstrip() for line in ("```yaml", *lines, "```"))
    text = f"1. What the keys mean:\n\n{code}\n\n{indent}What follows.\n"
    chunker = SentenceChunker(60, 15)
    passages = passages_of(text, chunker)
    assert len(passages) == 5
    assert all(passage.text.startswith(f"{indent}```yaml\n") for passage in passages[1:])
    assert not any(block.kind == HEADING for passage in passages for block in read_blocks(passage.text))
    assert {block.kind for passage in passages[1:-1] for block in passage.blocks} == {"code"}
    assert all(count_tokens(passage.text) <= 60 for passage in passages)
    assert joined(passages).split() == text.split()
