"""Words that scanned text cuts at the end of a line are put together again."""

import time

import pytest

from sire_core.corpus.readers import read_documents


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
    def took(times):
        start = time.perf_counter()
        read(tmp_path, "Ur-\nkunde. " + piece * times)
        return time.perf_counter() - start

    took(1000)
    assert took(80_000) < 30 * max(took(8_000), 0.005)
