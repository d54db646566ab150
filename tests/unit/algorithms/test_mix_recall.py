"""Mix recall: votes, expansion, aliases and similar names."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.knowledge.same_names import merge_aliases, similar_names
from sire_core.models.prompt_format import parse_order
from sire_core.papers.msrag.element_graph import Incidence, nearby_entities, nearby_relations

# a-b, b-c, c-d, d-e, x-y as relations 0..4 over entities 0..6


def incidence(pairs):
    return Incidence.from_arrays(*np.array(pairs, dtype=np.int64).reshape(-1, 2).T, 20)


PATH = incidence([(r, e) for r, ends in enumerate(((0, 1), (1, 2), (2, 3), (3, 4), (5, 6))) for e in ends])


@pytest.mark.parametrize(
    ("hops", "entities", "relations"),
    [(0, {0}, set()), (1, {0, 1}, {0}), (2, {0, 1, 2}, {0, 1}), (4, {0, 1, 2, 3, 4}, {0, 1, 2, 3})],
)
def test_oracle_M2_expansion_from_an_entity(hops, entities, relations):
    found = nearby_entities([0], PATH, hops)
    assert set(found[0]) == entities
    assert set(found[1]) == relations


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("2#0", "CABD"), ("2#0#2#9", "CABD"), ("", "ABCD"), ("Text 1 then 3", "BDAC"), ("9" * 5000, "ABCD")],
)
def test_oracle_M4_order_from_numbers(answer, expected):
    assert parse_order(answer, ["pA", "pB", "pC", "pD"]) == [f"p{letter}" for letter in expected]


def test_relations_one_hop_apart_share_an_entity():
    assert nearby_relations([0], PATH, 0) == {0: 0}
    assert nearby_relations([0], PATH, 2) == {0: 0, 1: 1, 2: 2}
    assert nearby_relations([0], PATH, 9) == {0: 0, 1: 1, 2: 2, 3: 3}


def test_fanout_keeps_the_most_similar_and_what_is_forbidden_is_not_entered():
    star = incidence([(r, e) for r in range(1, 5) for e in (0, 10 + r)])
    similarity = [0.0] * 20
    similarity[3], similarity[4] = 0.9, float("-inf")
    entities, relations = nearby_entities([0], star, 1, 2, similarity)
    assert relations == {3: 1, 1: 1}
    assert set(entities) == {0, 11, 13}
    assert 4 not in nearby_relations([1], star, 5, None, similarity)


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


def unit(rows):
    rows = np.asarray(rows, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_word_of_too_many_names_links_none():
    names = [f"Bridge {letter}" for letter in "abcdef"]
    vectors = unit([[1, 0]] * 6)
    assert len(similar_names(names, vectors, 0.5, max_names_per_word=5)[0]) == 0
    assert len(similar_names(names, vectors, 0.5, max_names_per_word=6)[0]) == 15


@given(
    st.lists(st.sampled_from(["red fox", "red", "fox den", "old den", "sea"]), max_size=12),
    st.floats(-1, 1),
    st.integers(0, 99),
)
def test_it_finds_what_comparing_all_pairs_finds(names, threshold, seed):
    vectors = unit(np.random.default_rng(seed).normal(size=(len(names), 3))) if names else np.empty((0, 3), np.float32)
    first, second, _ = similar_names(names, vectors, threshold)
    expected = [
        (i, j)
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if set(names[i].split()) & set(names[j].split())
        and np.einsum("d,d->", vectors[i], vectors[j], dtype=np.float32) >= threshold + 1e-5
    ]
    assert set(expected) <= set(zip(first.tolist(), second.tolist(), strict=True))
    assert all(set(names[i].split()) & set(names[j].split()) for i, j in zip(first, second, strict=True))
