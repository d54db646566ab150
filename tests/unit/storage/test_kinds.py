"""Kinds of units, pools that follow commits, and the blocks and languages that are stored with passages."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import sqlite3

import pytest

from sire_core import Document, Index, Passage
from sire_core.documents.block_reading import read_blocks, stored_blocks
from sire_core.documents.blocks import layout_of, repeated_of
from sire_core.errors import ConfigurationError
from sire_core.extend import Flat, PlainDerivation
from sire_core.papers.indexrag.select import Quota, QuotaRange
from sire_core.protocols import Recipe
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Unit, UnitKind
from support.command import run_python
from support.indexes import indexed

FIRST, SECOND = UnitKind.define("first_words"), UnitKind.define("second_words")


def words(passages):
    """The first two words of every passage; of one that is named Zoe, no second."""
    units = []
    for passage in passages:
        first, second = passage.unit.text.split()[:2]
        units.append(Unit("", FIRST, first, passage.unit.chunk_ids))
        if first != "Zoe":
            units.append(Unit("", SECOND, second, passage.unit.chunk_ids))
    return units, []


def opened(path):
    organizer = PlainDerivation("words", words, needs_records=False)
    quota = Quota(ranges=(("first_words", QuotaRange(high=1)),))
    recipe = Recipe("words", "words", "", organizers=(organizer,), ranker=Flat(), selectors=(quota,))
    return Index(path, recipe=recipe, embedder=HashEmbedder())


def kinds(index):
    view = index.view()
    units = view.units(range(view.size))
    assert [str(unit.kind) for unit in units] == [view.kind_names[code] for code in view.kinds]
    return sorted((unit.kind.value, unit.text) for unit in units if unit.kind is not UnitKind.CHUNK)


def test_a_pool_with_kinds_of_ones_own_follows_changes_and_is_read_again(tmp_path):
    with opened(tmp_path) as index:
        index.build([Document("a", "Zoe sang.")])
        assert kinds(index) == [("first_words", "Zoe")]
        index.add([Document("b", "Bob swam.")])  # brings a kind that this pool did not have
        expected = [("first_words", "Bob"), ("first_words", "Zoe"), ("second_words", "swam.")]
        assert kinds(index) == expected
        hits = index.search("Zoe and Bob", 4, returns="units")
        assert [hit.unit.kind for hit in hits].count(FIRST) == 1  # the quota names it
    with opened(tmp_path) as index:
        assert kinds(index) == expected
        assert index.stats()["kinds"] == {"chunk": 2, "first_words": 2, "second_words": 1}


def test_a_process_that_never_heard_of_a_kind_reads_it(tmp_path):
    with opened(tmp_path) as index:
        index.build([Document("a", "Ann sang."), Document("b", "Bob swam.")])
    code = "import sys; from sire_core.testing.contracts import read_contents as read\n"
    code += "import json; print(json.dumps(sorted({unit.kind for unit in read(sys.argv[1]).units.values()})))"
    done = run_python(code, tmp_path)
    assert json.loads(done.stdout) == ["chunk", "first_words", "second_words"]


def test_a_kind_is_one_object_under_one_name():
    assert UnitKind.define("first_words") is FIRST
    assert UnitKind("first_words") is FIRST
    assert UnitKind.define("chunk") is UnitKind.CHUNK
    assert copy.deepcopy(FIRST) is FIRST
    assert pickle.loads(pickle.dumps([FIRST, UnitKind.AKU])) == [FIRST, UnitKind.AKU]
    assert FIRST in list(UnitKind)
    with pytest.raises(ConfigurationError, match="'No kind' names no kind"):
        UnitKind.define("No kind")
    with pytest.raises(ValueError, match="chnk"):  # a name that nobody defined is a slip
        UnitKind("chnk")


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
    with indexed([Document("a", TEXT, "Bells"), Document("b", chunks=(own, "Name"))], tmp_path, recipe="flat") as index:
        (hit,) = index.search("Osby bell noon", 1)
        assert [block.kind for block in hit.unit.blocks] == ["heading", "paragraph", "row", "row", "heading", "code"]
        assert index.documents(["a"])[0].text == TEXT
        assert index.search("said", 1)[0].unit.blocks[0].kind == "quote"


def test_an_older_index_is_read_anew_once(tmp_path, caplog):
    def layouts():
        with sqlite3.connect(tmp_path / "index.sqlite") as database:
            return dict(database.execute("SELECT id, body FROM layouts").fetchall())

    indexed([Document("a", TEXT, "Bells")], tmp_path, recipe="flat").close()
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
    indexed([Document("a", "Das Haus ist alt, und die Leute sind nicht da.")], tmp_path, recipe="flat").close()
    with sqlite3.connect(tmp_path / "index.sqlite") as database:
        database.execute("DROP TABLE layouts")
        database.execute("DELETE FROM sums WHERE name='layouts'")
    with Index(tmp_path, recipe="flat") as index, caplog.at_level(logging.WARNING):
        index.add([Document("b", "Kolm is a town in the north of the country.")])
        assert "read anew" in caplog.text
        assert index.stats()["languages"] == {"de": 1, "en": 1}
