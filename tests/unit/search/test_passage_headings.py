"""Lines of a passage that count as headings."""

import pytest

from sire_core.recipes.sire.passage_arrays import passage_headings
from sire_core.types import Unit, UnitKind


def headings_of(title, text):
    return passage_headings(Unit("a", UnitKind.CHUNK, text, ("a",), title=title))


@pytest.mark.parametrize(
    ("line", "is_heading"),
    [
        ("Default: `False`", False),
        ("Default: `{}` (Empty dictionary)", False),
        ("Default: see below", False),
        ("Type: string", False),
        ("Default value: `nil`", False),
        ("Release date: 2024-05-09", False),
        ("Step 2: Plan the move", True),
        ("Queues: A History of Waiting", True),
        ("Types of locks", True),
        ("### Default: `False`", True),
    ],
)
def test_a_value_on_a_line_of_its_own_is_no_heading(line, is_heading):
    found = headings_of("Settings", f"### LOCK_SECONDS\n\n{line}\n\nHow long a lock is held.")
    assert found[0] == "LOCK_SECONDS"
    assert len(found) == 1 + is_heading


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("```\n# start it\nrun\n```\n\n## After it", ["After it"]),
        ("    # only on Sundays\n    frob = yes\n\n# Frobs", ["Frobs"]),
        ("run\n```\n\n## After it\n\nIt runs.", ["After it"]),  # cut within code
    ],
)
def test_comments_of_code_are_no_headings(text, headings):
    assert headings_of("Guide", text) == headings
