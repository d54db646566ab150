"""The arrays that a knowledge graph is kept in say what plain dictionaries would say."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sire_core.organize.graph.by_key import ByKey
from sire_core.organize.graph.elements import Elements, id_codes
from sire_core.organize.graph.name_lists import NameLists, list_hash
from sire_core.organize.graph.passage_names import PassageNames
from sire_core.organize.graph.ragged import Ragged
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact, Triple, digest

GROUPS = st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=4), max_size=6)
TYPES = {"keys": np.uint64, "worth": np.int64}
NAMES = st.lists(st.sampled_from(("Ann", "The Tide (film)", "The Tide", "Ünal II, Count of Bo", "\ud800")), max_size=2)


def of_hashes(hashes):
    return np.array(sorted(hashes), dtype=np.uint64)


def elements(ids):
    return Elements().followed(of_hashes([]), {key: (digest(found), True) for key, found in ids.items()})


@given(ids=st.lists(st.text(max_size=3), unique=True))
def test_codes_sort_as_the_ids_do(ids):
    made = np.array([digest(found) for found in ids], dtype="S24")
    assert np.array_equal(np.argsort(id_codes(made)), np.argsort(made))
    assert len(set(id_codes(made).tolist())) == len(ids)


@given(
    before=st.dictionaries(st.integers(0, 9), st.sampled_from("abc")),
    after=st.dictionaries(st.integers(0, 9), st.sampled_from("abc")),
    keys=st.sets(st.integers(0, 9)),
)
def test_elements_are_a_dictionary(before, after, keys):
    gone = of_hashes({*after, *keys})
    found = elements(before).followed(gone, {key: (digest(after[key]), key % 2 == 0) for key in after})
    expected = {key: (digest(kept), True) for key, kept in before.items() if key not in keys}
    expected |= {key: (digest(kept), key % 2 == 0) for key, kept in after.items()}
    assert found.among(of_hashes(range(10))) == expected
    there = Elements.from_arrays("x", found.arrays("x"))
    ids = {expected[key][0] for key in keys if key in expected}
    assert set(there.with_twins(of_hashes(keys)).tolist()) == keys | {k for k in expected if expected[k][0] in ids}


@given(groups=GROUPS, wanted=st.sets(st.integers(0, 7)))
def test_rows_by_key_are_those_that_a_walk_finds(groups, wanted):
    rows = [row for group in groups for row in group]
    table = Ragged.of(groups, TYPES)
    expected = {}
    for place, (key, _) in enumerate(rows):
        if key in wanted:
            expected.setdefault(key, []).append(place)
    by_key = ByKey.of(table)
    found = by_key.rows(of_hashes(wanted))
    assert list(found.items()) == list(expected.items())
    best = by_key.first(np.array(list(found), dtype=np.uint64), table["worth"])
    assert best == {key: max(places, key=lambda place: rows[place][1]) for key, places in expected.items()}
    counts = {key: sum(row[0] == key for row in rows) for key, _ in rows}
    assert by_key.above(1).tolist() == sorted(key for key, count in counts.items() if count > 1)


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

    grown = NameLists().followed(of_hashes(hashed(first)), hashed(first))
    grown = NameLists.from_arrays(grown.arrays()).followed(of_hashes(hashed(second)), hashed(second))
    made = NameLists().followed(of_hashes(hashed(second)), hashed(second))
    assert all(np.array_equal(one, made.arrays()[name]) for name, one in grown.arrays().items())
    hashes = of_hashes(hashed(second))
    assert [grown.names(place) for place in grown.places(hashes).tolist()] == [
        hashed(second)[found] for found in hashes.tolist()
    ]


@given(
    title=st.text(max_size=4),
    names=st.lists(st.text(max_size=3), max_size=3),
    facts=st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3))),
)
def test_a_note_keeps_what_a_passage_says(title, names, facts):
    entities = tuple(Entity(f"n{i}", name, "Person", tuple(names)) for i, name in enumerate(names))
    made = tuple(Fact(f"f{i}", text, (), triples=(Triple("n0", said, "x"),)) for i, (text, said) in enumerate(facts))
    chunk = Chunk("c", "d", 0, title, " ".join(names))
    said = PassageNames.of(chunk, ExtractionRecord(chunk.hash, "m", "p", entities=entities, facts=made))
    assert PassageNames.from_note("c", said.to_note()) == said
