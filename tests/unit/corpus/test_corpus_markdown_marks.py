"""Marks that only programs read are undone or left out of Markdown: escapes, pictures as base64, marks of generators."""

import base64
import random
import textwrap
import time

import pytest

from sire_core.corpus.chunker import SentenceChunker, chunk_document
from sire_core.corpus.markdown_cleaning import clean_markdown, without_blobs
from sire_core.corpus.markdown_writing import undo_escapes
from sire_core.corpus.readers import read_documents
from sire_core.corpus.sections import plain_heading
from sire_core.types import Document

BASE64 = base64.b64encode(random.Random(3).randbytes(30_000)).decode()
WRAPPED = "\n".join(textwrap.wrap(BASE64, 64))
MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"max\_retry\_count and R&amp;D &copy; &#8364; &#x41;", "max_retry_count and R&D © € A"),
        (r"`a\_b &amp;` a\_b", r"`a\_b &amp;` a_b"),
        ("```\na\\_b\n```\n\n    a\\_b\n\na\\_b", "```\na\\_b\n```\n\n    a\\_b\n\na_b"),
        ("- item\n\n    a\\_b", "- item\n\n    a_b"),
        (r"\# no heading", r"\# no heading"),
        (r"\#1 of C\#", "#1 of C#"),
        ("| a\\|b | c\\_d |\n| --- | --- |\n| e\\|f | &lt; |", "| a\\|b | c_d |\n| --- | --- |\n| e\\|f | < |"),
        (r"\<!-- no comment --> but \<b\>", r"\<!-- no comment --> but <b>"),
        (r"C:\dir &unknown; AT&T a & b \\", "C:\\dir &unknown; AT&T a & b \\"),
        ("text " + "".join(f"\\{mark}" for mark in MARKS), f"text {MARKS}"),
    ],
)
def test_escapes_and_character_references_are_undone_outside_of_code(text, plain):
    assert undo_escapes(text) == plain


def test_names_with_escapes_are_found_in_text_headings_and_titles(tmp_path):
    (tmp_path / "a.md").write_text("# my\\_module \\#1\n\n## Use `a\\_b` \\<now\\>\n\nSet max\\_retry\\_count.\n")
    (tmp_path / "b.md").write_text("---\ntitle: R&amp;D of my\\_module\n---\nText.\n")
    first, second = read_documents(tmp_path).documents
    assert (first.title, second.title) == ("my_module #1", "R&D of my_module")
    assert "max_retry_count" in first.text
    (chunk,) = chunk_document(first, SentenceChunker())
    assert chunk.title == "my_module #1 > Use a\\_b <now>"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"Before ![A chart](data:image/png;base64,{BASE64}) behind.", "Before A chart behind."),
        (f"![A chart][c]\n\n[c]: data:image/png;base64,{BASE64}\nEnd.", "A chart End."),
        (f"![Chart] ![a][] ![x][y]\n\n[chart]: data:image/png;base64,{BASE64}\n", "Chart ![a][] ![x][y]"),
        (f"![A chart](data:image/png;base64,{WRAPPED}) behind.", "A chart behind."),
        (f"<img alt='A chart' src=\"data:image/png;base64,{BASE64}\"> behind.", "A chart behind."),
        (f"A key:\n\n-----BEGIN KEY-----\n{WRAPPED}\n-----END KEY-----\nEnd.", "A key: -----BEGIN KEY----- -----END KEY----- End."),
        (f"```\n{WRAPPED}\n```\nEnd.", "``` ``` End."),
        (f"x = 1\n//# sourceMappingURL=data:application/json;base64,{BASE64}\nEnd.", "x = 1 //# sourceMappingURL=data: End."),
        (f"Word {BASE64} word.", "Word word."),
        ("data: is a word.", None),
        ("\n".join(["0123456789abcdef" * 4] * 5), None),
        ("中文没有空格" * 70, None),
        ("https://a.example/" + "path-of-words/" * 12, None),
    ],
    ids=range(13),
)  # fmt: skip
def test_runs_that_are_no_words_are_no_passages(text, kept):
    found = " ".join(without_blobs(text).split())
    assert found == (" ".join(text.split()) if kept is None else kept)
    assert len(chunk_document(Document("d", text), SentenceChunker())) == 1


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (":::note\nText.\n:::", "Text."),
        ("::: warning Mind the gap\nText.\n:::", "Mind the gap\nText."),
        (":::tip[My title]\nText.", "My title\nText."),
        ('!!! tip "Speed"\n    Text.', "Speed\n    Text."),
        ("> [!NOTE]\n> Text.", "> \n> Text."),
        ('A {{< glossary_tooltip text="pod" term_id="p" >}} runs.', "A pod runs."),
        ('{{% alert title="Hot" %}}\nText.\n{{% /alert %}}', "Hot\nText."),
        ('<TabItem value="a" label="Apple">Text.</TabItem>', "Apple Text."),
        ('<Tabs>\n<TabItem value="a" label="Apple">\nText.\n</TabItem>\n</Tabs>', "Apple\nText."),
        ("import Tabs from '@theme/Tabs';\nText.", "Text."),
        ("{: .note }\nText.", "Text."),
        ("We import goods from 'Nordvik' and export them.", None),
        ("If x <T> holds, `{{< kept >}}`", None),
    ],
)
def test_marks_of_site_generators_are_no_text(text, kept):
    if kept is None:
        assert clean_markdown(text).replace("``", "`{{< kept >}}`") == text
    else:
        assert clean_markdown(text) == kept


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("Request Body { #request-body }", "Request Body"),
        ("Body {: #x .y }", "Body"),
        ("Body {{< ref >}}", "Body"),
        ("Body¶", "Body"),
        ("Vec<T> and <b>bold</b>", "Vec<T> and bold"),
        (r"Vec\<T\> &amp; more", "Vec<T> & more"),
        ("[![Build](a.svg)](b) Name", "Build Name"),
        ("<https://a.example>", "https://a.example"),
    ],
)
def test_headings_have_no_marks(line, heading):
    assert plain_heading(line) == heading


@pytest.mark.parametrize("piece", ["\\", "&", "`a ", "\\_", "&amp;", "\\#", "data:", "data:a/b,", "![a](data:", "<img ", "{{<", '<a b="', "A" * 60 + "\n"])  # fmt: skip
def test_undoing_marks_is_linear(piece):
    def seconds(length):
        text = piece * (length // len(piece))
        start = time.process_time()
        undo_escapes(clean_markdown(text))
        return time.process_time() - start

    seconds(1_000)
    assert seconds(160_000) < 8 * max(seconds(40_000), 0.05)
