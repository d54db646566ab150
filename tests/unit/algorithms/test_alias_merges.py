from hypothesis import given
from hypothesis import strategies as st

from sire_core.knowledge.names import merge_aliases

NAMES = st.sampled_from(["a", "b", "c", "a b", "a b c", "b c", "d e", "f"])


def merged(canonical):
    """Groups of more than one name, the canonical one first, the others in order."""
    groups = {chosen: [] for chosen in canonical.values()}
    for name, chosen in canonical.items():
        groups[chosen] += [name] if name != chosen else []
    return sorted((chosen, *sorted(others)) for chosen, others in groups.items() if others)


def test_oracle_M3_alias_groups():
    groups = [["Fred Gehrke", "Clarence Fred Gehrke"], ["C. F. Gehrke", "Clarence Fred Gehrke"], ["Paris"]]
    found = merge_aliases(groups)
    assert merged(found) == [("Clarence Fred Gehrke", "C. F. Gehrke", "Fred Gehrke")]
    assert found["Fred Gehrke"] == found["C. F. Gehrke"] == "Clarence Fred Gehrke"
    assert found["Paris"] == "Paris"
    assert len(set(found.values())) == 2


def test_types_that_contradict_are_not_merged():
    names, types = [["Paris of France", "Paris, France"]], {"Paris of France": "Person", "Paris, France": "Location"}
    assert len(merged(merge_aliases(names))) == 1
    assert merged(merge_aliases(names, types)) == []


def test_a_short_form_of_several_names_joins_none():
    names = [["Robert E. Lee", "R. Lee"], ["Ron A. Lee", "R. Lee"]]
    assert len(merged(merge_aliases(names[:1]))) == 1
    assert merged(merge_aliases(names)) == []


def test_one_word_of_a_name_is_not_merged_with_it():
    found = merge_aliases([["Henry of Flanders", "Henry"], ["British Film Institute", "BFI"]])
    assert merged(found) == [("British Film Institute", "BFI")]


@given(st.lists(st.lists(NAMES, max_size=4), max_size=8), st.integers(1, 8))
def test_every_name_has_one_canonical_name_in_its_group(groups, most):
    found = merge_aliases(groups, max_names=most)
    assert set(found) == {name for group in groups for name in group}
    for name, chosen in found.items():
        assert found[chosen] == chosen
        assert len(chosen) >= len(name)
    assert all(1 < len(names) <= most for names in merged(found))
