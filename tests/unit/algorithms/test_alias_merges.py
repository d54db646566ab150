from hypothesis import given
from hypothesis import strategies as st

from sire_core.algorithms.aliases import merge_aliases

NAMES = st.sampled_from(["a", "b", "c", "a b", "a b c", "b c", "d e", "f"])


def test_oracle_M3_alias_groups():
    groups = [["Fred Gehrke", "Clarence Fred Gehrke"], ["C. F. Gehrke", "Clarence Fred Gehrke"], ["Paris"]]
    found = merge_aliases(groups)
    assert found.merged == (("Clarence Fred Gehrke", "C. F. Gehrke", "Fred Gehrke"),)
    assert found.canonical["Fred Gehrke"] == found.canonical["C. F. Gehrke"] == "Clarence Fred Gehrke"
    assert found.canonical["Paris"] == "Paris"
    assert len(set(found.canonical.values())) == 2
    assert found.refused == ()


def test_types_that_contradict_are_not_merged():
    found = merge_aliases([["Paris Hilton", "Paris"]], {"Paris Hilton": "Person", "Paris": "Location"})
    assert found.merged == ()
    assert found.refused == (("Paris Hilton", "Paris", "types differ: Person and Location"),)


def test_a_short_form_of_several_names_joins_none():
    found = merge_aliases([["Robert E. Lee", "R. Lee"], ["Ron A. Lee", "R. Lee"]])
    assert found.merged == ()
    assert {reason for _, _, reason in found.refused} == {"several names have this short form"}


def test_one_word_of_a_name_is_not_merged_with_it():
    found = merge_aliases([["Henry of Flanders", "Henry"], ["British Film Institute", "BFI"]])
    assert found.merged == (("British Film Institute", "BFI"),)
    assert found.refused == (("Henry of Flanders", "Henry", "one word of the name may be another's"),)


def test_groups_do_not_grow_without_end():
    groups = [[f"name {i}", f"name {i + 1}"] for i in range(10)]
    found = merge_aliases(groups, max_names=4)
    assert [len(names) for names in found.merged] == [4, 4, 3]
    assert {reason for _, _, reason in found.refused} == {"more than 4 names"}


@given(st.lists(st.lists(NAMES, max_size=4), max_size=8), st.integers(1, 8))
def test_every_name_has_one_canonical_name_in_its_group(groups, most):
    found = merge_aliases(groups, max_names=most)
    assert set(found.canonical) == {name for group in groups for name in group}
    for name, chosen in found.canonical.items():
        assert found.canonical[chosen] == chosen
        assert len(chosen) >= len(name)
    assert all(1 < len(names) <= most for names in found.merged)
    assert sorted(set(found.canonical.values())) == sorted(
        {names[0] for names in found.merged} | {n for n in found.canonical if not any(n in m for m in found.merged)}
    )
