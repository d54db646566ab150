import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.models.prompt_format import count_votes, parse_order
from sire_core.recipes.msrag.graph import Incidence, nearby_entities, nearby_relations

ENTITIES = {"e1": ["p1", "p2"], "e2": ["p2"]}
RELATIONS = {"r1": ["p2"], "r2": ["p3"], "r3": ["p1"]}
CHUNKS = {"c1": ["p3"], "c2": ["p4"], "c3": ["p2"]}
# a-b, b-c, c-d, d-e, x-y as relations 0..4 over entities 0..6


def incidence(pairs):
    return Incidence.from_arrays(*np.array(pairs, dtype=np.int64).reshape(-1, 2).T, 20)


PATH = incidence([(r, e) for r, ends in enumerate(((0, 1), (1, 2), (2, 3), (3, 4), (5, 6))) for e in ends])
GRAPHS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=15).map(
    lambda pairs: incidence([(r, e) for r, ends in enumerate(pairs) for e in ends])
)


def votes(chunk_weight):
    weighted = ((ENTITIES, 1.0), (RELATIONS, 1.0), (CHUNKS, chunk_weight))
    return count_votes((weight, passages) for group, weight in weighted for passages in group.values())


def test_oracle_M1_votes():
    assert votes(1.0) == {"p2": 4, "p1": 2, "p3": 2, "p4": 1}
    assert votes(2.0) == {"p2": 5, "p3": 3, "p1": 2, "p4": 2}


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


@given(st.text(), st.lists(st.integers(), max_size=6))
def test_an_order_loses_and_invents_nothing(answer, items):
    assert sorted(parse_order(answer, items)) == sorted(items)


@given(st.lists(st.tuples(st.floats(0, 2), st.lists(st.integers(0, 4)))))
def test_an_item_votes_once_for_a_passage(items):
    found = count_votes(items)
    for passage in range(5):
        expected = sum(worth for worth, passages in items if passage in passages)
        assert found.get(passage, 0.0) == pytest.approx(expected)


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


@given(GRAPHS, st.integers(0, 5), st.integers(0, 4), st.integers(1, 3))
def test_more_hops_and_more_fanout_only_add(graph, seed, hops, fanout):
    near, relations = nearby_entities([seed], graph, hops)
    farther, more = nearby_entities([seed], graph, hops + 1)
    assert near.items() <= farther.items()
    assert relations.items() <= more.items()
    narrow = nearby_entities([seed], graph, hops, fanout, [1.0] * 20)
    assert set(narrow[0]) <= set(near)
    assert all(len([r for r in narrow[1].values() if r == hop]) <= fanout for hop in range(1, hops + 1))
