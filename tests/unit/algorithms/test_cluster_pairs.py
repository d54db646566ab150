"""Pair metrics of clusterings, and the time-pool ratio."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.algorithms.grouping import coverage, overlap, pairs, tper
from sire_core.errors import ConfigurationError

members = st.lists(st.lists(st.integers(0, 30), max_size=8), max_size=8)


def plain(codes):
    return [(int(code) >> 32, int(code) & 0xFFFFFFFF) for code in codes]


def test_oracle_S2_pairs_coverage_and_both_overlaps():
    gold = pairs([[1, 2, 3], [3, 5]])
    similarity = pairs([[1, 2], [3, 5, 6], [2, 3]])
    relatedness = pairs([[2, 3], [5, 6]])
    assert plain(gold) == [(1, 2), (1, 3), (2, 3), (3, 5)]
    assert coverage(similarity, gold) == 0.75
    assert coverage(relatedness, gold) == 0.25
    assert overlap(similarity, relatedness, gold) == pytest.approx(0.3333, abs=5e-5)
    assert overlap(relatedness, similarity, gold) == 1.0


def test_oracle_S3_tper_of_the_printed_table():
    printed = [(2.653, 1.560, 35070, 12371), (1.974, 1.437, 19100, 6939), (2.319, 1.502, 29934, 10031)]
    assert [round(tper(*row), 3) for row in printed] == [0.600, 0.499, 0.517]


@given(members)
def test_pairs_equal_the_definition(clusters):
    expected = {tuple(sorted(pair)) for cluster in clusters for pair in itertools.combinations(set(cluster), 2)}
    assert plain(pairs(clusters)) == sorted(expected)


def test_nothing_is_covered_without_gold():
    assert coverage(pairs([[1, 2]]), pairs([])) == 0.0
    assert overlap(pairs([]), pairs([[1, 2]]), pairs([[1, 2]])) == 0.0


@pytest.mark.parametrize("cluster", [[-1, 2], [0, 2**31]])
def test_members_out_of_range(cluster):
    with pytest.raises(ConfigurationError, match="row numbers"):
        pairs([cluster])


def test_tper_needs_positive_bases():
    with pytest.raises(ConfigurationError, match="positive"):
        tper(1.0, 0.0, 2, 1)
