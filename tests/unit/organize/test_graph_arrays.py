"""The arrays that a knowledge graph is kept in say what plain dictionaries would say."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sire_core.algorithms.grouping import id_codes
from sire_core.algorithms.lists import Ragged
from sire_core.knowledge.edge_columns import EdgeChange, EdgeColumns, NameLists, list_hash, updated_blocks
from sire_core.types import digest

GROUPS = st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=4), max_size=6)
TYPES = {"keys": np.uint64, "worth": np.int64}
NAMES = st.lists(st.sampled_from(("Ann", "The Tide (film)", "The Tide", "Ünal II, Count of Bo", "\ud800")), max_size=2)


def of_hashes(hashes):
    return np.array(sorted(hashes), dtype=np.uint64)


@given(ids=st.lists(st.text(max_size=3), unique=True))
def test_codes_sort_as_the_ids_do(ids):
    made = np.array([digest(found) for found in ids], dtype="S24")
    assert np.array_equal(np.argsort(id_codes(made)), np.argsort(made))
    assert len(set(id_codes(made).tolist())) == len(ids)


@given(groups=GROUPS, others=GROUPS, data=st.data())
def test_groups_are_taken_with_their_rows(groups, others, data):
    both = groups + others
    chosen = data.draw(st.lists(st.sampled_from(range(len(both)))) if both else st.just([]))
    found = Ragged.of(groups, TYPES).chosen(Ragged.of(others, TYPES), np.array(chosen, dtype=np.int64))
    assert list(zip(*found.columns.values(), strict=True)) == [row for place in chosen for row in both[place]]
    again = Ragged.from_arrays("x", found.arrays("x")).take(np.arange(len(chosen))[::-1])
    assert list(zip(*again.columns.values(), strict=True)) == [row for place in chosen[::-1] for row in both[place]]


@given(first=st.lists(NAMES), second=st.lists(NAMES))
def test_lists_that_follow_are_those_that_are_made_at_once(first, second):
    def hashed(lists):
        return {list_hash(names): names for names in lists}

    grown = NameLists().updated(of_hashes(hashed(first)), hashed(first))
    grown = NameLists.from_arrays(grown.arrays()).updated(of_hashes(hashed(second)), hashed(second))
    made = NameLists().updated(of_hashes(hashed(second)), hashed(second))
    assert all(np.array_equal(one, made.arrays()[name]) for name, one in grown.arrays().items())
    hashes = of_hashes(hashed(second))
    assert [grown.names(place) for place in grown.places(hashes).tolist()] == [
        hashed(second)[found] for found in hashes.tolist()
    ]


EDGES = st.dictionaries(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), st.tuples(NAMES, st.booleans()))


@given(before=EDGES, after=EDGES)
def test_blocks_of_edges_are_a_dictionary(before, after):
    def change(ends, names=(), title=False, *, put):
        return EdgeChange(digest(ends[0]), digest(ends[1]), document[ends[0]], put, list(names), title)

    document = {source: 300 * place for place, source in enumerate("abc")}
    blocks = {}
    for now, gone in ((before, {}), (after, before)):
        changes = [change(ends, put=False) for ends in gone if ends not in now]
        changes += [change(ends, *found, put=True) for ends, found in now.items()]
        stored = {key: block for key, block in blocks.items() if block}
        blocks |= updated_blocks(
            "says", changes, lambda keys, stored=stored: {k: stored[k] for k in keys if k in stored}
        )
    columns = EdgeColumns.of_blocks([block for block in blocks.values() if block])
    found = {
        (source.decode(), target.decode()): (columns.lists.names(int(number)), bool(title))
        for source, target, number, title in zip(
            columns.sources, columns.targets, columns.numbers, columns.titles, strict=True
        )
    }
    assert found == {(digest(a), digest(b)): (list(names), title) for (a, b), (names, title) in after.items()}
