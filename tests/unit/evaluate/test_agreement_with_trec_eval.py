"""Our ranking metrics beside trec_eval's."""

import numpy as np
import pytest
import pytrec_eval

from sire_core.evaluate.retrieval import all_at_k, ndcg_at_k, recall_at_k, reciprocal_rank

_MEASURES = {"recall.2,5,10", "success.1", "recip_rank", "ndcg_cut.5,10"}


def test_recall_mrr_and_ndcg_agree_with_trec_eval():
    rng = np.random.default_rng(7)
    names = [f"d{i:02}" for i in range(30)]
    judged, run, rankings = {}, {}, {}
    for number in range(60):
        question = f"q{number}"
        ranking = list(rng.permutation(names)[: rng.integers(1, 25)])
        judged[question] = {str(name): 1 for name in rng.permutation(names)[: rng.integers(1, 6)]}
        rankings[question] = ranking
        run[question] = {str(name): float(len(ranking) - at) for at, name in enumerate(ranking)}
    theirs = pytrec_eval.RelevanceEvaluator(judged, _MEASURES).evaluate(run)
    assert len({found["ndcg_cut_10"] for found in theirs.values()}) > 20  # easy rankings would prove little
    for question, ranking in rankings.items():
        gold, found = list(judged[question]), theirs[question]
        for k in (2, 5, 10):
            assert recall_at_k(ranking, gold, k) == pytest.approx(found[f"recall_{k}"])
            assert all_at_k(ranking, gold, k) == (found[f"recall_{k}"] == 1.0)
        for k in (5, 10):
            assert ndcg_at_k(ranking, gold, k) == pytest.approx(found[f"ndcg_cut_{k}"])
        assert reciprocal_rank(ranking, gold) == pytest.approx(found["recip_rank"])
