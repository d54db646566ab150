"""Metrics at a token budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.algorithms.text import count_tokens, normalize_answer, truncate_tokens
from sire_core.errors import ConfigurationError
from sire_core.evaluate.retrieval import BudgetScorer, span_answers

PASSAGES = {"d1": "Ann was born\n in Rome.", "d2": "Rome lies in Italy.", "d3": "", "d4": "Bo likes tea."}


def scorer(budget):
    return BudgetScorer(budget, PASSAGES)


def test_context_is_cut_at_the_budget_and_the_last_text_is_truncated():
    context = scorer(8).context(["Ann was born in Rome.", "Rome lies in Italy.", "never read"])
    assert context.text == "Ann was born in Rome. Rome lies"
    assert context.tokens == 8
    assert scorer(100).context(["one", "two three"]).tokens == 3


def test_a_synthetic_text_counts_only_where_it_quotes_the_passage():
    quoting = scorer(99).context(["Summary: Ann was  born in Rome. Rome lies in a country."])
    assert scorer(99).recall(quoting, ["d1", "d2"]) == 0.5


def test_a_passage_split_over_neighboring_hits_counts():
    assert scorer(99).recall(scorer(99).context(["Bo likes", "tea."]), ["d4"]) == 1


def test_answers_are_found_at_token_boundaries_after_normalization():
    context = scorer(99).context(["He moved to Norway in", "the 1561's."])
    assert scorer(9).answer(context, ["in the 1561's"]) == 1
    assert scorer(9).answer(context, ["Nor"]) == 0
    assert scorer(9).answer(context, ["Nor", "NORWAY!"]) == 1
    assert scorer(9).answer(context, ["He"]) == scorer(9).answer(context, ["1561s"]) == 1


@pytest.mark.parametrize("answers", [(), ("yes",), ("No.", "none at all"), ("noanswer",), ("the",)])
def test_questions_whose_answer_cannot_stand_in_a_passage_are_left_out(answers):
    assert span_answers(answers) == []
    assert scorer(9).answer(scorer(9).context(["yes no the"]), answers) is None


def test_an_alias_that_reads_like_no_is_not_looked_for():
    assert span_answers(["Norway", "NO", "NOR"]) == ["norway", "nor"]
    assert scorer(9).answer(scorer(9).context(["No answer."]), ["Norway", "NO"]) == 0


def test_a_budget_below_one_is_refused():
    with pytest.raises(ConfigurationError, match="at least 1"):
        scorer(0)


texts = st.lists(st.text(alphabet="ab.'the \n", max_size=12), max_size=5)


@given(texts, st.integers(1, 20))
def test_cached_pieces_equal_the_plain_definition(parts, budget):
    whole = truncate_tokens("\n".join(parts), budget)
    shared = scorer(budget)
    shared.context(parts)
    context = shared.context(parts)
    assert context.text == " ".join(whole.split())
    assert context.answer_text == normalize_answer(whole)
    assert context.tokens == count_tokens(whole) <= budget
