"""Blocks of passages are stored with them, and read anew once for indexes that have none."""

from __future__ import annotations

import logging
import sqlite3

from sire_core import Document, Index, Passage
from sire_core.documents.blocks import layout_of, read_blocks, repeated_of, stored_blocks

TEXT = (
    "# Bells\n\nThe Osby bell rings at noon.\n\n| bell | age |\n|---|---|\n| Osby | 2 |\n\n## Ropes\n\n```\nring\n```"
)


def test_blocks_are_stored_in_a_few_letters_each():
    blocks = read_blocks(f"{TEXT}\n\f\n- one\n  - two\n\nGoodbye.")
    layout = layout_of(blocks, 12)
    assert len(layout) < 9 * len(blocks)
    assert stored_blocks(f"{TEXT}\n\f\n- one\n  - two\n\nGoodbye.", layout) == blocks
    assert repeated_of(layout) == 12
    assert stored_blocks("Another text.", layout) == read_blocks("Another text.")


def test_hits_and_documents_have_blocks(tmp_path):
    own = Passage("> said", blocks=())
    with Index(tmp_path, recipe="flat") as index:
        index.build([Document("a", TEXT, "Bells"), Document("b", chunks=(own, "Name"))])
        (hit,) = index.search("Osby bell noon", 1)
        assert [block.kind for block in hit.unit.blocks] == ["heading", "paragraph", "row", "row", "heading", "code"]
        assert index.documents(["a"])[0].text == TEXT
        assert index.search("said", 1)[0].unit.blocks[0].kind == "quote"


def test_an_older_index_is_read_anew_once(tmp_path, caplog):
    def layouts():
        with sqlite3.connect(tmp_path / "index.sqlite") as database:
            return dict(database.execute("SELECT id, body FROM layouts").fetchall())

    with Index(tmp_path, recipe="flat") as index:
        index.build([Document("a", TEXT, "Bells")])
    stored = layouts()
    with sqlite3.connect(tmp_path / "index.sqlite") as database:
        database.execute("DROP TABLE layouts")
        database.execute("DELETE FROM sums WHERE name='layouts'")
    with Index(tmp_path, recipe="flat") as index, caplog.at_level(logging.WARNING):
        assert len(index.search("Osby bell noon", 1)[0].unit.blocks) == 6
        index.add([Document("b", "Kolm is a town.")])
        assert "The structure of 1 passage of an older version is read anew" in caplog.text
        caplog.clear()
        index.add([Document("c", "Holt is a town.")])
        assert not caplog.records
    assert stored.items() < layouts().items()
    assert len(layouts()) == 3


def test_the_languages_of_an_older_index_are_found_once(tmp_path, caplog):
    with Index(tmp_path, recipe="flat") as index:
        index.build([Document("a", "Das Haus ist alt, und die Leute sind nicht da.")])
    with sqlite3.connect(tmp_path / "index.sqlite") as database:
        database.execute("DROP TABLE layouts")
        database.execute("DELETE FROM sums WHERE name='layouts'")
    with Index(tmp_path, recipe="flat") as index, caplog.at_level(logging.WARNING):
        index.add([Document("b", "Kolm is a town in the north of the country.")])
        assert "read anew" in caplog.text
        assert index.stats()["languages"] == {"de": 1, "en": 1}
