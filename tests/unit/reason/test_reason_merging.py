"""Rankings of several searches as one, and answers that agree with their citations."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.reason.evidence import MergedRanking, Search
from sire_core.reason.reader import INSUFFICIENT, cite
from sire_core.search.ranking import ScoredRanking
from sire_core.types import PathStep


def search(query, scores, k):
    """A search over the whole pool that counts its first `k` as found."""
    ranking = ScoredRanking(
        np.array(scores, dtype=np.float32), None, lambda position: (PathStep("s", (), f"{query}{position}"),)
    )
    positions, found = asyncio.run(ranking.top(k))
    return Search(query, ranking, tuple(positions.tolist()), tuple(found.tolist()))


def top(ranking, n):
    positions, scores = asyncio.run(ranking.top(n))
    return list(zip(positions.tolist(), np.round(scores.astype(float), 4).tolist(), strict=True))


def test_oracle_Q2_merge_by_best_score_and_by_order():
    # p1, p2, p3 are positions 0, 1, 2.
    searches = [search("one", [0.8, 0.5, 0.1], 2), search("two", [0.0, 0.7, 0.6], 2)]
    assert top(MergedRanking(searches), 3) == [(0, 0.8), (1, 0.7), (2, 0.6)]
    assert [position for position, _ in top(MergedRanking(searches, "append"), 3)] == [0, 1, 2]
    late = [search("one", [0.5, 0.4, 0.1], 2), search("two", [0.0, 0.7, 0.9], 2)]
    assert [position for position, _ in top(MergedRanking(late), 3)] == [2, 1, 0]
    assert [position for position, _ in top(MergedRanking(late, "append"), 3)] == [0, 1, 2]


def test_relative_scores_compare_searches_on_one_scale():
    searches = [search("long question", [4.0, 3.9, 2.0], 2), search("short", [0.1, 0.2, 0.4], 2)]
    assert top(MergedRanking(searches, "max_score"), 3) == [(0, 4.0), (1, 3.9), (2, 0.4)]
    assert top(MergedRanking(searches, "relative"), 3) == [(0, 1.0), (2, 1.0), (1, 0.975)]
    assert np.allclose(MergedRanking(searches, "relative").scores_at(np.array([2, 1])), [1.0, 0.975])
    assert top(MergedRanking(searches[1:], "relative"), 2) == [(2, 0.4), (1, 0.2)]
    worst = [search("none", [-0.5, -0.1, -0.2], 2), search("short", [0.1, 0.2, 0.4], 1)]
    assert top(MergedRanking(worst, "relative"), 3) == [(2, 1.0), (1, -0.1), (0, 0.25)]


def test_the_path_names_the_search_that_scored_a_unit_best():
    merged = MergedRanking([search("one", [0.8, 0.5], 2), search("two", [0.1, 0.7], 2)])
    assert [step.note for step in merged.path(0)] == ["search for the question", "one0"]
    assert [step.note for step in merged.path(1)] == ["search 1: two", "two1"]
    assert [step.note for step in MergedRanking([search("one", [0.8, 0.5], 2)]).path(1)] == ["one1"]


@given(
    st.integers(1, 12).flatmap(
        lambda size: st.lists(st.lists(st.integers(0, 5), min_size=size, max_size=size), min_size=1, max_size=4)
    ),
    st.integers(1, 6),
    st.sampled_from(["max_score", "relative", "append"]),
)
@settings(max_examples=60, deadline=None)
def test_reading_further_never_changes_what_was_read(rows, k, merge):
    searches = [search(str(number), row, k) for number, row in enumerate(rows)]
    whole = top(MergedRanking(searches, merge), len(rows[0]) + 3)
    assert sorted(position for position, _ in whole) == list(range(len(rows[0])))
    for n in range(len(whole)):
        assert top(MergedRanking(searches, merge), n) == whole[:n]
    found = {position for each in searches for position in each.found}
    assert {position for position, _ in whole[: len(found)]} == found
    best = np.max(np.array(rows), axis=0)
    if merge == "max_score":
        listed = [score for position, score in whole if position in found]
        assert listed == sorted(listed, reverse=True)
        for position, score in whole:
            # A unit scores the best among the searches that list it; nothing scores more than its best anywhere.
            assert score <= best[position]


@pytest.mark.parametrize(
    ("text", "named", "sufficient", "expected"),
    [
        ("Varn Harbour [2]", [2], True, ("Varn Harbour [2]", (2,), True)),
        ("Varn Harbour", [2, 1, 2], True, ("Varn Harbour [2][1]", (2, 1), True)),
        ("Varn [2] Harbour [1]", [3], True, ("Varn [2] Harbour [1][3]", (2, 1, 3), True)),
        ("Varn Harbour [1, 3]", [], True, ("Varn Harbour [1][3]", (1, 3), True)),
        ("Varn Harbour [7][2]", [9], True, ("Varn Harbour[2]", (2,), True)),
        ("Varn Harbour [7]", [], True, ("Varn Harbour", (), True)),
        ("born [1931] in Varn [1]", [], True, ("born [1931] in Varn [1]", (1,), True)),
        ("Varn Harbour", [0, -1], True, ("Varn Harbour", (), True)),
        ("insufficient evidence", [1], True, (INSUFFICIENT, (), False)),
        ("Insufficient evidence. [1]", [], True, ("Insufficient evidence. [1]", (1,), False)),
        ("", [1], True, (INSUFFICIENT, (), False)),
        ("[2]", [2], True, (INSUFFICIENT, (2,), False)),
        ("The passages do not say.", [], False, ("The passages do not say.", (), False)),
    ],
)
def test_text_and_citations_agree(text, named, sufficient, expected):
    answer = cite(text, named, 3, sufficient=sufficient)
    assert (answer.text, answer.citations, answer.sufficient) == expected


@given(
    st.text(alphabet="ab [],;0123456789.", max_size=60), st.lists(st.integers(-3, 20), max_size=5), st.integers(0, 12)
)
def test_citations_always_point_at_hits_and_stand_in_the_text(text, named, hits):
    answer = cite(text, named, hits, sufficient=True)
    assert all(1 <= number <= hits for number in answer.citations)
    assert len(set(answer.citations)) == len(answer.citations)
    if answer.sufficient:
        assert all(f"[{number}]" in answer.text for number in answer.citations)
        assert set(answer.citations) >= {number for number in named if 1 <= number <= hits}
