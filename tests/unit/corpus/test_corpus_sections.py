"""Markdown cleaned and cut at headings; what a framework's splitter left is kept."""

import pytest

from sire_core import Document, Index, Passage
from sire_core.documents.block_reading import read_blocks
from sire_core.documents.blocks import block_text
from sire_core.documents.chunker import SentenceChunker, chunk_document
from sire_core.documents.markdown_cleaning import clean_markdown
from sire_core.documents.markdown_sections import paths_of
from sire_core.extraction.passage_sections import Piece, pieces_of
from sire_core.files.readers import read_documents

PAGE = """---
sidebar: 3
updated: 2026-03-02
---

# Queue

<!-- YAML
added: v0.9.0
-->

[Back](a.md) | [Next: Store](b.md)

<a id="claim"></a>

## queue.claim(*, wait=10) {#claim}

Claims the next job.

```bash
# not a heading
<!-- kept -->
brindle serve
```

## Order

| Job | When |
|-----|------|
| a | first |
| b | later |

Setext
------

The [end](c.md) of it.
"""


def titles(text, **settings):
    chunks = chunk_document(Document("d", text, "Queue"), SentenceChunker(**settings))
    return [(chunk.title, chunk.text) for chunk in chunks]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "# key make\n\n## Description\n\nMakes.\n\n# key export\n\nIt is sent.\n\n## Description\n\nExports.",
            ["key make > Description", "key export", "key export > Description"],
        ),
        (
            "# key make\n\nAll about keys.\n\n# Known uses\n\n## Description\n\nExports.",
            ["key make", "key make > Known uses > Description"],
        ),
        (
            "# key make\n\n## Abstract\n\nKeys of all.\n\n# 1 On use\n\n## Aim\n\nFew keys.\n\n# Note\n\n## Aim\n\nMore keys.",
            ["key make > Abstract", "key make > 1 On use > Aim", "key make > Note > Aim"],
        ),
    ],
)
def test_a_chapter_beside_the_first_one_does_not_stand_under_it(text, expected):
    document = Document("d", text, "key make")
    chunks = chunk_document(document, SentenceChunker(8, 0))
    assert list(dict.fromkeys(chunk.title for chunk in chunks)) == expected


def test_readers_see_no_comments_front_matter_anchors_or_navigation():
    cleaned = clean_markdown(PAGE)
    assert not any(mark in cleaned for mark in ("sidebar", "YAML", "added", "<a id", "{#claim}", "Back"))
    assert "<!-- kept -->" in cleaned
    assert "The [end](c.md) of it." in cleaned
    assert clean_markdown(cleaned) == cleaned
    assert clean_markdown("Plain.\n\n  Kept -- as it is.\n") == "Plain.\n\n  Kept -- as it is.\n"


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("It starts with `<!--` here.\n\nMore.", None),
        ("`a <!-- b --> c` and <!-- gone -->that", "`a <!-- b --> c` and that"),
        ("Code:\n\n    <!-- begin -->\n    x", None),
        ("<!-- a -->`b`<!-- c", "`b`<!-- c"),
        ("A comment starts with <!-- and ends later.\n\nThe captain was Ivo Tarn.", None),
        (
            "It starts with <!-- here.\n\nThe captain.\n\n<!-- gone -->\nIvo.",
            "It starts with <!-- here.\n\nThe captain.\n\nIvo.",
        ),
        ("It starts with <!-- here:\n```\n<!-- kept -->\n```", None),
        ("<!-- one\n\ntwo -->Three <!-- four\nfive --> six", "Three \n six"),
        ("<!-- never closed\n\nThe captain.", None),
        ("````\n```\n````\nIvo <!-- gone -->Tarn", "````\n```\n````\nIvo Tarn"),
        ("```bash\n<!-- kept -->\n``` no end\n<!-- kept -->", None),
        ("```code``` in a line\n<!-- gone -->\nIvo", "```code``` in a line\nIvo"),
        ("---\n\n# Title\n\nNote: read this.\n\n---\nTail.", None),
        ("---\n# Title\n\nNote: read this.\n\n---\nTail.", None),
        ("---\nThe captain said: go.\n---\nTail.", None),
        ("---\ntitle: Queues\nProse goes on.\n---\nTail.", None),
        ("+++\nJust a line.\n+++\nTail.", None),
        ("---\ntitle: Queues\n# note\n---\nTail.", "Tail."),
        ("---\ntags: [\n  a\n]\n\nmore:\n-\n  b: c\n---\nTail.", "Tail."),
        ("---\ntitle: Queues\ntags:\n  - a\n- b\n---\nTail.", "Tail."),
    ],
)
def test_code_and_rules_are_no_comments_and_no_front_matter(text, cleaned):
    assert clean_markdown(text) == (text if cleaned is None else cleaned)


def test_front_matter_gives_title_and_metadata(tmp_path):
    page = tmp_path / "queues.md"
    page.write_text(
        '---\ntitle: "Heron queue"\nlang: en\nversion: 3\nratio: 0.5  # of all\ndraft: false\n'
        "tags: [a, b]\nnested:\n  key: value\n---\n# Overview\n\nIt was designed by Ann Hask.\n",
        encoding="utf-8",
    )
    [document] = read_documents([page]).documents
    assert document.title == "Heron queue"
    assert document.metadata == {
        "source": "queues.md",
        "lang": "en",
        "version": 3,
        "ratio": 0.5,
        "draft": False,
        "tags": ["a", "b"],
    }
    assert document.text.startswith("# Overview")


def test_lists_of_front_matter_can_be_filtered(tmp_path):
    block = '---\ntags:\n  - red\n  - "deep: blue"\nrank:\n- 1\n- 2\nnested:\n  - key: value\n  - plain\ndeep:\n  - key: value\nempty:\nlast: 5\n---\n'
    (tmp_path / "page.md").write_text(block + "# Page\n\nThe heron queue keeps messages.\n")
    [document] = read_documents([tmp_path / "page.md"]).documents
    kept = {"source": "page.md", "tags": ["red", "deep: blue"], "rank": [1, 2], "nested": ["plain"], "last": 5}
    assert document.metadata == kept
    index = Index(recipe="flat")
    index.build([document])
    assert index.search("heron", filter="tags contains red")
    assert not index.search("heron", filter="tags contains green")


@pytest.mark.parametrize(
    ("block", "title", "fields"),
    [
        ("---\n# Feel free\n\nlayout: home\ntitle: Welcome\n---", "Welcome", {"layout": "home"}),
        ('---\n"title": "Quoted" # so\n\'by\': Ann\n---', "Quoted", {"by": "Ann"}),
        ("---\nlast updated: 2024\nPage Owner: Ann\ntitle: Queues\n---", "Queues", {
            "last updated": 2024, "Page Owner": "Ann",
        }),
        ('+++\n# of Hugo\ntitle = "Queues"\nweight = 3\ndraft = false\ntags = ["a"]\n[params]\nx = 1\n+++', "Queues", {
            "weight": 3, "draft": False, "tags": ["a"],
        }),
        ("---\ntitle: Queues\nversion: 3.10\ncode: 007\nratio: -0.5\nyears: [1990, 08]\n---", "Queues", {
            "version": "3.10", "code": "007", "ratio": -0.5, "years": [1990, "08"],
        }),
        ("---\ntitle: Queues\nsource: https://heron.example\n---", "Queues", {"page_source": "https://heron.example"}),
    ],
)  # fmt: skip
def test_front_matter_as_people_write_it(tmp_path, block, title, fields):
    (tmp_path / "page.md").write_text(f"{block}\nIt was designed by Ann Hask.\n", encoding="utf-8")
    [document] = read_documents([tmp_path]).documents
    assert (document.title, document.metadata) == (title, {"source": "page.md", **fields})
    assert document.text.strip() == "It was designed by Ann Hask."


def test_a_number_is_no_title(tmp_path):
    (tmp_path / "changes.md").write_text("## 3.2.0\n\nQueues are faster.\n\n## 3.1.4\n\nA leak is closed.")
    [document] = read_documents([tmp_path]).documents
    assert (document.title, document.metadata) == ("changes", {"source": "changes.md"})


def test_headings_make_paths_outside_of_code():
    paths = paths_of(clean_markdown(PAGE))
    assert paths == [("Queue", "queue.claim(*, wait=10)"), ("Queue", "Order"), ("Queue", "Setext")]


@pytest.mark.parametrize(
    "code",
    [
        "````md\n```\n# No heading\n````",
        "~~~\n```\n# No heading\n~~~~",
        "```\n# No heading\n    ```\n# Nor this\n```",
        "- ```\n  # No heading\n  ```",
        "1. Do:\n    ```\n    # No heading",
        "```text``` is code in a line",
    ],
)
def test_a_fence_ends_where_markdown_ends_it(code):
    text = f"# Queue\n\n{code}\n\nIvo Tarn.\n\n## Order\n\nFirst come, first served."
    if not code.endswith("# No heading"):
        kinds = {block_text(text, block): block.kind for block in read_blocks(text)}
        assert kinds["Ivo Tarn."] == "paragraph"
        assert Piece("prose", "Ivo Tarn.") in pieces_of(text)
    assert paths_of(text) == [("Queue",), ("Queue", "Order")]
    assert pieces_of(text)[-2:] == [Piece("heading", "Order"), Piece("prose", "First come, first served.")]


def test_chunks_carry_the_path_that_all_of_their_text_stands_under():
    assert [title for title, _ in titles(PAGE, max_tokens=40, overlap_tokens=0)] == [
        "Queue > queue.claim(*, wait=10)",
        "Queue > Order",
        "Queue > Setext",
    ]
    assert [title for title, _ in titles(PAGE, max_tokens=512)] == ["Queue"]


def test_a_heading_with_nothing_but_another_below_it_stays_with_that():
    text = "\n\n".join(
        ["# Changes", "Of the queue."] + [f"## 2.{n}.0\n### Fixed\n\n- Leak {n} is closed." for n in range(20)]
    )
    found = titles(text, max_tokens=80, overlap_tokens=0)
    assert len(found) > 5
    assert all(part.startswith(("# Changes", "## 2.")) and part.endswith("closed.") for _, part in found)
    assert titles("# A\n\n# B\n\n## C\n\nIt ends.\n\n## D", max_tokens=8, overlap_tokens=0) == [
        ("Queue > A", "# A"),
        ("Queue > B > C", "# B\n\n## C\n\nIt ends."),
        ("Queue > B > D", "## D"),
    ]


def test_code_and_tables_stay_whole():
    found = [text for _, text in titles(PAGE, max_tokens=40, overlap_tokens=0)]
    assert any("```bash\n# not a heading\n<!-- kept -->\nbrindle serve\n```" in text for text in found)
    assert any("| Job | When |\n|-----|------|\n| a | first |\n| b | later |" in text for text in found)


def test_nothing_but_markup_is_lost():
    words = " ".join(text for _, text in titles(PAGE, max_tokens=40, overlap_tokens=0)).split()
    assert words == clean_markdown(PAGE).split()


@pytest.mark.parametrize(
    ("metadata", "title"),
    [
        ({"Header 1": "Queue", "Header 2": "queue.claim()"}, "Queue > queue.claim()"),
        ({"Header 2": "Order", "source": "queue.md"}, "Order"),
        ({"header_path": "/Queue/Order/"}, "Queue > Order"),
        ({"header_path": "/"}, ""),
        ({"source": "queue.md", "start_index": 1200}, ""),
    ],
)
def test_a_framework_splitters_chunks_keep_their_headers_and_are_not_cut_again(metadata, title):
    text = "One sentence. " * 60
    cut = chunk_document(Document("d", text, metadata=metadata), SentenceChunker(32, 0))
    whole = metadata.get("header_path") != "/"
    assert {chunk.title for chunk in cut} == {title}
    assert (len(cut) == 1) == whole
    (given,) = chunk_document(Document("d", title="Manual", chunks=(Passage("Text.", metadata=metadata),)))
    assert given.title == (f"Manual > {title}" if title else "Manual")


@pytest.mark.parametrize("head", ["---\ntitle: The queue\n---\n", "Title: The queue\nAuthor: Ann\n\n"])
def test_the_title_in_front_of_a_file_is_that_of_all_its_passages(head):
    text = f"{head}# First\n\n{'One sentence. ' * 40}\n\n# Second\n\n{'Two sentences. ' * 40}"
    found = chunk_document(Document("d", text), SentenceChunker(80, 0))
    assert {chunk.title.split(" > ")[0] for chunk in found} == {"The queue"}
    cut = chunk_document(Document("d", chunks=(Passage(text[:100]), Passage(text[100:]))))
    assert [chunk.title for chunk in cut] == ["The queue", "The queue"]


WIKI = """Access Control Lists
====================

ACLs can be enabled in dovecot.conf with:

---%<-------------------------------------------------------------------------
plugin {
  # Without global ACLs:
  acl = vfile

# If enabled, don't try to find ACL files.

  #acl_globals_only = yes
}
---%<-------------------------------------------------------------------------

Global ACLs
-----------

Global ACLs apply to all mailboxes.
"""
COMMENTS = """# enable the frobber only on Sundays
frob = yes

# The rest

[section]
other: 2

  # an indented one

# Return to the directory
cd $orgDir

# one
# two

# A lone comment

plugin {
}

#  }

}
---
"""
OUTLINE = """# Frobnicator

frob makes things of other things.

## Install

    pip install frob

```
# a comment in code
frob = yes
```

## Settings
Every setting is a line.

# comment of a setting
key = value

### [Links](a.md)

[A list](b.md) of links.
"""


@pytest.mark.parametrize("name", ["a.txt", "README", "a.text", "a.conf", "a.yaml"])
def test_comments_in_text_files_are_no_headings(tmp_path, name):
    (tmp_path / name).write_text(COMMENTS)
    (document,) = read_documents(tmp_path).documents
    assert paths_of(document.text) == [()]
    assert [line.strip() for line in document.text.split("\n")] == [line.strip() for line in COMMENTS.split("\n")]
    chunks = chunk_document(document, SentenceChunker(12, 0))
    assert {chunk.title for chunk in chunks} == {document.title}
    assert any(chunk.text.lstrip().startswith("#") for chunk in chunks)
    assert not any(
        piece.kind == "heading" and ("comment" in piece.text or "frobber" in piece.text)
        for chunk in chunks
        for piece in pieces_of(chunk.text)
    )


def test_underlined_lines_and_outlines_of_text_files_stay_headings(tmp_path):
    for name, text in {"wiki.txt": WIKI, "README": OUTLINE, "a.md": OUTLINE, "b.md": COMMENTS}.items():
        (tmp_path / name).write_text(text)
    found = {
        document.id: [path[-1] for path in paths_of(document.text) if path]
        for document in read_documents(tmp_path).documents
    }
    assert found["wiki.txt"] == ["Access Control Lists", "Global ACLs"]
    assert found["README"] == ["Frobnicator", "Install", "Settings", "Links"]
    assert found["a.md"] == ["Frobnicator", "Install", "Settings", "comment of a setting", "Links"]
    assert {"enable the frobber only on Sundays", "A lone comment"} < set(found["b.md"])
    assert "}" not in found["b.md"]
