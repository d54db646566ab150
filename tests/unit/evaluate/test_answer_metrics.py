"""Metrics of answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.evaluate.answer_eval import (
    acc,
    acc_at,
    best_over_golds,
    exact_match,
    f1,
    f1_hotpot,
    perspective_coverage,
    word_coverage,
)

METRICS = (exact_match, f1, f1_hotpot, acc, word_coverage)


@pytest.mark.parametrize(
    ("prediction", "gold", "em", "f", "f_hotpot", "contains"),
    [
        ("The Weston-super-Mare.", "Weston-super-Mare", 1, 1, 1, 1),
        ("He was born in Weston-super-Mare", "Weston-super-Mare", 0, 0.3333, 0.3333, 1),
        ("Yes, both in Iran.", "yes", 0, 0.4, 0, 1),
        ("Norway", "no", 0, 0, 0, 1),
        ("22 January 1561", "January 1561", 0, 0.8, 0.8, 1),
        ("", "", 1, 1, 1, 1),
        ("to be to", "to be", 0, 0.8, 0.8, 1),
    ],
)
def test_oracle_T1_answer_metrics(prediction, gold, em, f, f_hotpot, contains):
    assert exact_match(prediction, gold) == em
    assert f1(prediction, gold) == pytest.approx(f, abs=5e-5)
    assert f1_hotpot(prediction, gold) == pytest.approx(f_hotpot, abs=5e-5)
    assert acc(prediction, gold) == contains


@pytest.mark.parametrize(
    ("answer", "coverage", "at_25", "at_50"),
    [
        ("Cats, dogs and bats are mammals", 0.5714, 1, 1),
        ("bats fly", 0.1429, 0, 0),
        ("cows produce milk daily", 0.4286, 1, 0),
    ],
)
def test_oracle_T2_word_coverage(answer, coverage, at_25, at_50):
    gold = "cows cats dogs and bats produce milk"
    assert word_coverage(answer, gold) == pytest.approx(coverage, abs=5e-5)
    assert acc_at(answer, gold, 0.25) == at_25
    assert acc_at(answer, gold, 0.5) == at_50


def test_oracle_T3_perspective_coverage():
    perspectives = ["bats produce milk", "bats possess wings", "bats hunt at night"]
    answer = "Bats have wings and produce milk"
    assert [word_coverage(answer, p) for p in perspectives] == pytest.approx([1, 0.6667, 0.25], abs=5e-5)
    assert perspective_coverage(answer, perspectives) == pytest.approx(0.6667, abs=5e-5)


@pytest.mark.parametrize(
    ("prediction", "gold", "em", "f", "contains", "coverage"),
    [
        ("", "A", 0, 0, 0, 0),
        ("Paris", "A", 0, 0, 0, 0),
        ("A.", "A", 1, 1, 1, 1),
        ("She had an A in it", "A", 0, 2 / 7, 1, 1),
        ("She had a cold", "A", 0, 0, 0, 0),
        ("Paris", "+", 0, 0, 0, 0),
        ("+", "+", 1, 1, 1, 1),
        ("Paris", "", 0, 0, 0, 1),
    ],
)
def test_an_answer_of_which_normalisation_leaves_nothing_is_compared_as_it_is_written(
    prediction, gold, em, f, contains, coverage
):
    assert exact_match(prediction, gold) == em
    assert f1(prediction, gold) == f1_hotpot(prediction, gold) == pytest.approx(f)
    assert acc(prediction, gold) == contains
    assert word_coverage(prediction, gold) == coverage
    assert best_over_golds(acc, prediction, ["", gold]) == contains  # what is blank accepts nothing


@pytest.mark.parametrize("call", [lambda: best_over_golds(f1, "x", []), lambda: perspective_coverage("x", [])])
def test_a_question_without_reference_is_refused(call):
    with pytest.raises(ValueError, match="leave the question out"):
        call()


texts = st.text(alphabet="ab .,-'XYno \n", max_size=30)


@given(texts, texts)
def test_metrics_are_rates_and_perfect_on_the_gold_answer(prediction, gold):
    for metric in METRICS:
        assert 0 <= metric(prediction, gold) <= 1
        assert metric(gold, gold) == 1
    assert exact_match(prediction, gold) <= acc(prediction, gold)
    assert exact_match(prediction, gold) <= f1_hotpot(prediction, gold) <= f1(prediction, gold)
