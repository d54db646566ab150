"""Token budgets over a ranked list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.errors import ConfigurationError
from sire_core.search.chains.evidence_chain import fit

LENGTHS = st.lists(st.integers(0, 200), max_size=30)


def test_oracle_R1_collapsed_budget():
    tokens = [1500, 1500, 1200, 300]
    assert fit(tokens, 3500, "break") == [0, 1]
    assert fit(tokens, 3500, "skip") == [0, 1, 3]
    assert fit(tokens, 3500) == [0, 1, 3]


@given(LENGTHS, st.integers(1, 500), st.sampled_from(["break", "skip"]))
def test_what_is_chosen_fits_in_order_and_nothing_that_fits_is_left_out(tokens, budget, policy):
    chosen = fit(tokens, budget, policy)
    assert chosen == sorted(set(chosen))
    spent = sum(tokens[i] for i in chosen)
    assert spent <= budget or chosen == [0]
    if policy == "break":
        assert chosen == list(range(len(chosen)))
    elif spent <= budget:
        left = [i for i in range(len(tokens)) if i not in chosen]
        assert all(sum(tokens[j] for j in chosen if j < i) + tokens[i] > budget for i in left)
    assert bool(chosen) == bool(tokens)


def test_a_single_unit_over_the_budget_is_not_lost():
    assert fit([900], 100) == [0]
    assert fit([900, 50], 100, "break") == [0]
    assert fit([900, 50], 100, "skip") == [1]
    assert fit([], 100) == []


@pytest.mark.parametrize(("budget", "policy"), [(0, "skip"), (-5, "break"), (10, "truncate")])
def test_bad_settings(budget, policy):
    with pytest.raises(ConfigurationError, match="budget"):
        fit([1], budget, policy)
