"""Blocks: structure is parsed once, as spans of the text, in linear time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.documents.block_reading import read_blocks
from sire_core.documents.blocks import ROW, block_text, headings_above, row_cells
from sire_core.documents.furniture import is_contents

PIECES = st.sampled_from(
    "# |## |- |  - |1. |> |```|~~~|    |\t|===|---|a|Bell: x|From: a|To: b|[x](y)|![x](y)|[x]: y| | b |.|\n|\n\n|\f|\r\n|\r"
    "|\u00a0|\u2028|\x00|*|#|`|\\|<b>|....3".split("|")
) | st.sampled_from(["| a | b |\n|---|---|\n| c | d |\n", "a|b\n-|-\n", "---\ntitle: x\n---\n"])
TEXTS = st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60)

CASES = {
    "words without marks": ("The bell\nrings.\n\nIt is old.", ["paragraph The bell\nrings.", "paragraph It is old."]),
    "headings": ("# A #\nb\n\nC\n===\n\n## D *e*\n", ["heading1 A", "paragraph b", "heading1 C", "heading2 D *e*"]),
    "no headings": (
        "make\n# a comment\nrun\n\n# {\n\ntwo\nlines\n---\n\n- # x\n\na\n-",
        [
            "paragraph make\n# a comment\nrun",
            "furniture # {",
            "paragraph two\nlines\n---",
            "item1 # x",
            "paragraph a\n-",
        ],
    ),
    "items": (
        "- one\n  more\n\n  again\n  - two\n3) three\n   ```sh\n   run\n   ```\n-\n  last",
        ["item1 one\nmore", "paragraph1 again", "item2 two", "item1 three", "code1 run", "item1 last"],
    ),
    "rows": ("| a | b\\|c |\n|---|--:|\n| 1 | 2 |\nbehind", ["row1 a | b|c", "row 1 | 2", "paragraph behind"]),
    "rows without a header": ("| 1 | 2 |\n| 3 |\n\n|x", ["row 1 | 2", "row 3", "paragraph |x"]),
    "lines of CSV": (
        'Phones\nName,Phone,Room\nUlf,+47 1,"G, 7"\nOda,+47 2,\nTeo,',
        [
            "paragraph Phones",
            "row1 Name | Phone | Room",
            "row Ulf | +47 1 | G, 7",
            "row Oda | +47 2 | ",
            "paragraph Teo,",
        ],
    ),
    "lines of tabs": (
        "Name\tRoom\tSince\na, b\tc\t2001\nd\te\t2002",
        ["row1 Name | Room | Since", "row a, b | c | 2001", "row d | e | 2002"],
    ),
    "lines of bars": (
        "Area | Who | Since\nBells | Ulf | 2001\nRopes | Oda | 2002",
        ["row1 Area | Who | Since", "row Bells | Ulf | 2001", "row Ropes | Oda | 2002"],
    ),
    "code": (
        "```sh\n# no heading\n  x\n```\n\n    set: off\n      more\n\n~~~\nnever closed",
        ["code # no heading\n  x", "code set: off\n  more", "code never closed"],
    ),
    "code that begins above": ("run\n\nmore\n```\n\n## After it", ["code run\n\nmore", "heading2 After it"]),
    "quotes": ("> said\n> again\n\nx", ["quote said\nagain", "paragraph x"]),
    "front matter": (
        "---\ntitle: Bells\ntags:\n  - a\n---\n\nText.",
        ["furniture ---", "field title: Bells", "field tags:\n  - a", "furniture ---", "paragraph Text."],
    ),
    "a mail that answers one": (
        (
            "From: A <a@b>\nTo: C,\n  D\n\nDear C,\n\nRing it: now.\n\nKind regards,\nA\n\n--\nA B\nHead\n\n"
            "From: C\nSent: today\n\nHi A!\n\nok"
        ),
        [
            "field From: A <a@b>",
            "field To: C,\n  D",
            "furniture Dear C,",
            "paragraph Ring it: now.",
            "furniture Kind regards,\nA",
            "furniture --\nA B\nHead",
            "field From: C",
            "field Sent: today",
            "furniture Hi A!",
            "paragraph ok",
        ],
    ),
    "options are no fields": (
        "# ring\n\nType: number\nDefault: 4\n\nBest regards to: all",
        ["heading1 ring", "paragraph Type: number\nDefault: 4", "paragraph Best regards to: all"],
    ),
    "cards are no fields": ("Firm: Brandvig\nPhone: 555", ["paragraph Firm: Brandvig\nPhone: 555"]),
    "contents": (
        (
            "# Table of contents\n\n- Bells\n- Ropes\n\n# Contents\n\nThe bell is made of these parts.\n\n- bronze\n\n# B\n\n"
            "1 Ring ........ 4\n2 Rope ..... 5"
        ),
        [
            "furniture # Table of contents",
            "furniture1 Bells",
            "furniture1 Ropes",
            "heading1 Contents",
            "paragraph The bell is made of these parts.",
            "furniture1 bronze",
            "heading1 B",
            "furniture 1 Ring ........ 4\n2 Rope ..... 5",
        ],
    ),
    "an index of terms": (
        "# Bells\n\nOld.\n\n# Term Index\n\n## Symbols\n\n- -m\n\n## B\n\nbell\n\nBells [Bells]\n\n## R\n\n- rope\n\n# End\n\nx",
        [
            *("heading1 Bells", "paragraph Old.", "furniture # Term Index", "furniture ## Symbols", "furniture1 -m"),
            *("furniture ## B", "furniture bell", "furniture Bells [Bells]", "furniture ## R", "furniture1 rope"),
            *("heading1 End", "paragraph x"),
        ],
    ),
    "a licence behind something else": (
        (
            f"# Bells\n\n{'Old. ' * 40}\n\n## A. GNU Free Documentation License\n\nVersion 1.3\n\nEveryone is permitted to copy and "
            "distribute.\n\n### 0. PREAMBLE\n\nFree.\n\n## MIT License\n\nIs what the bells are under."
        ),
        [
            *(
                "heading1 Bells",
                f"paragraph {('Old. ' * 40).strip()}",
                "furniture ## A. GNU Free Documentation License",
            ),
            *("furniture Version 1.3", "furniture Everyone is permitted to copy and distribute."),
            *("furniture ### 0. PREAMBLE", "furniture Free.", "heading2 MIT License"),
            "paragraph Is what the bells are under.",
        ],
    ),
    "a licence alone": (
        "# MIT License\n\nPermission is hereby granted.",
        ["heading1 MIT License", "paragraph Permission is hereby granted."],
    ),
    "an index with pages": (
        "B\n\n- bell, 4\n- bow, 5\n\nC\n\n- clapper, 4-6\n\nR\n\n- rope, 7\n\nS\n\n- stay, 12",
        [
            *("furniture B", "furniture1 bell, 4", "furniture1 bow, 5", "furniture C", "furniture1 clapper, 4-6"),
            *("furniture R", "furniture1 rope, 7", "furniture S", "furniture1 stay, 12"),
        ],
    ),
    "lists under letters": (
        "# Keepers\n\n## A\n\n- Ada, east pier\n\n## B\n\n- Bo, west pier\n\n## C\n\n- Cy\n\n## D\n\n- Dee",
        [
            *("heading1 Keepers", "heading2 A", "item1 Ada, east pier", "heading2 B", "item1 Bo, west pier"),
            *("heading2 C", "item1 Cy", "heading2 D", "item1 Dee"),
        ],
    ),
    "a glossary": (
        "# Index of terms\n\n## B\n\nbell\n\nIt rings.\n\n## R\n\nrope\n\nIt pulls.",
        [
            *("heading1 Index of terms", "heading2 B", "paragraph bell", "paragraph It rings."),
            *("heading2 R", "paragraph rope", "paragraph It pulls."),
        ],
    ),
    "menus": (
        "[a](b) | [c](d)\n[e](f)\n\nSee [a](b).\n\n- [a](b)\n- [c](d)\n\n[x]: http://y 'z'",
        [
            "furniture [a](b) | [c](d)\n[e](f)",
            "paragraph See [a](b).",
            "item1 [a](b)",
            "item1 [c](d)",
            "furniture [x]: http://y 'z'",
        ],
    ),
    "captions": (
        "![A bell](b.png)\n\nFigure 2-1: The rope\n\nTables 2 and 3 say so.",
        ["caption ![A bell](b.png)", "caption Figure 2-1: The rope", "paragraph Tables 2 and 3 say so."],
    ),
    "pages": (
        "Bell guide\n\nOne.\n\n1\n\fBell guide\n\nTwo.\n\n2\n\fBell guide\n\nThree.\n\nPage 3 of 3",
        [
            *("furniture Bell guide", "paragraph One.", "furniture 1", "furniture Bell guide", "paragraph Two."),
            *("furniture 2", "furniture Bell guide", "paragraph Three.", "furniture Page 3 of 3"),
        ],
    ),
    "old line ends": ("# A\r\n\r\nb\rc\r\r- d", ["heading1 A", "paragraph b\rc", "item1 d"]),
}


def shown(text, **options):
    return [f"{block.kind}{block.level or ''} {block_text(text, block)}" for block in read_blocks(text, **options)]


@pytest.mark.parametrize("name", CASES)
def test_each_piece_of_a_text_has_one_kind(name):
    text, blocks = CASES[name]
    assert shown(text) == blocks


@pytest.mark.parametrize(
    "text",
    [
        "However,we went\nto the,place and\nfound,it 3 times.",
        "Smith, John, Founder\nDoe, Jane, 42\nFoo, Bar, 43",
        "apples,pears,plums\nred,green,blue\nbig,small,tiny",
        "2026-01-01 10:00:00,123 INFO a,b\n2026-01-01 10:00:00,124 INFO a,b\n2026-01-01 10:00:00,125 INFO a,b",
        "INFO\tmain\t12 ms\nWARN\tmain\t13 ms\nINFO\tmain\t14 ms",
        "int a,b,c;\nx,1,2;\ny,2,3;",
        "import a,b,c\nx,y,z = 1,2,3\nprint(x,y,z)",
        "SELECT a,b,c\nFROM t1,t2,t3\nWHERE x=1,2,3",
        "cat a | grep b | sort 1\nps | grep c | wc 2\nls | grep d | wc 3",
    ],
)
def test_prose_lists_logs_and_code_with_separators_are_no_tables(text):
    assert shown(text) == [f"paragraph {text}"]


def test_lines_of_a_file_of_values_are_rows_without_a_header():
    text = "Ulf Tangen,Ticketing\nOda Brandvik,Operations\nin two, or three, words"
    assert shown(text, of_values=True)[:2] == ["row Ulf Tangen | Ticketing", "row Oda Brandvik | Operations"]
    assert shown(text) == [f"paragraph {text}"]


def test_plain_text_has_paragraphs_lists_and_quoted_lines():
    text = "# 3\n|a|b|\n|-|-|\n\n    indented\n\n- item\n\n> said"
    assert shown(text, markdown=False) == [
        "paragraph # 3\n|a|b|\n|-|-|",
        "paragraph indented",
        "item1 item",
        "quote said",
    ]


def test_blocks_know_their_headings_and_pages():
    text = "# A\n\nx\n\n### B\n\ny\n\f## C\n\nz\n\n# D\n\n| a | b |\n|--|--|\n| c |"
    blocks = read_blocks(text)
    paths = {
        block_text(text, block): [block_text(text, above) for above in headings_above(blocks, number)]
        for number, block in enumerate(blocks)
    }
    assert (paths["x"], paths["B"], paths["y"]) == (["A"], ["A"], ["A", "B"])
    assert (paths["z"], paths["D"]) == (["A", "C"], [])
    assert [block.page for block in blocks] == [1, 1, 1, 1, 2, 2, 2, 2, 2]
    assert row_cells(text, blocks[-1]) == ["c"]
    assert {block.page for block in read_blocks("# A\n\nx")} == {0}


@pytest.mark.parametrize("heading", ["Contents", "Table of Contents:", "Inhaltsverzeichnis", "\u76ee\u6b21"])
def test_headings_that_announce_contents(heading):
    assert is_contents(heading)
    assert not is_contents(f"{heading} of the box")


@given(TEXTS, st.booleans())
def test_blocks_are_ordered_disjoint_and_hold_all_text(text, markdown):
    blocks = read_blocks(text, markdown=markdown)
    end = 0
    for number, block in enumerate(blocks):
        assert end <= block.start < block.end <= len(text)
        assert not text[end : block.start].strip()
        assert text[block.start : block.end].strip()
        assert -1 <= block.path < number
        assert block.path < 0 or blocks[block.path].kind == "heading"
        block_text(text, block)
        end = block.end
    assert not text[end:].strip()


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Lists on petrel:\nreef   Elin Voss\nsailors-forum  x\nall    Ravi Menon", "p"),  # the gaps are not aligned
        ("Lists on petrel:\nreef   Elin Voss\nforum  Tomas Brekke\nall    Ravi Menon", "prrr"),
        ("reef   Elin Voss\nforum  Tomas Brekke", "p"),  # two lines
        ("NAME   READY  AGE\nmill   1/1    2d\nlock   0/1    9d", "hrr"),
        ("It was late.  He went home,\nwhere nobody was.  He ate\nbread and went to bed.  Then", "p"),
    ],
)
def test_lines_set_in_columns_by_spaces_are_rows(text, kinds):
    blocks = read_blocks(text)
    letters = ["h" if block.kind == ROW and block.level else block.kind[0] for block in blocks]
    assert "".join(letters) == kinds
