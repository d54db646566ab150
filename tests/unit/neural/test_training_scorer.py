"""Training the chain scorer: the same seed gives the same file, what it learns, what it leaves alone."""

import asyncio
import math

import numpy as np
import pytest

from sire_core.errors import CorpusError
from sire_core.papers.iier.neural import EDGE_FEATURES, PAIR_FEATURES, score_features, scorer_digest
from sire_core.papers.iier.scorers import HeuristicScorer, RandomScorer
from sire_core.papers.iier.training import (
    FIRST_WEIGHTS,
    TrainingConfig,
    make_examples,
    match_rate,
    train_scorer,
    without_shared_evidence,
)

torch = pytest.importorskip("torch", reason="the torch extra is missing")

from sire_core.papers.iier.scorer_networks import step_loss  # noqa: E402 - needs torch

QUICK = {"epochs": 8, "batch": 8, "rate": 0.03, "max_length": 2}


def train(painters, part=slice(None), progress=None, **settings):
    view, known = painters
    return asyncio.run(train_scorer(view, known[part], TrainingConfig(**{**QUICK, **settings}), None, progress))


@pytest.fixture(scope="module")
def trained(painters):
    return train(painters)


def test_the_same_seed_gives_the_same_digest(painters, trained):
    again = train(painters)
    assert scorer_digest(again.weights, again.card) == scorer_digest(trained.weights, trained.card)
    other = train(painters, seed=1)
    assert scorer_digest(other.weights, other.card) != scorer_digest(trained.weights, trained.card)
    assert any((other.weights[name] != array).any() for name, array in trained.weights.items())


def test_numpy_scores_are_those_of_the_torch_model(painters, trained):
    from sire_core.papers.iier.scorer_networks import SHARPNESS, LightScorer

    view, known = painters
    examples = make_examples(view, known, "all_shortest", 2)
    model = LightScorer(len(PAIR_FEATURES), len(EDGE_FEATURES), FIRST_WEIGHTS)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in trained.weights.items()})
    with torch.no_grad():
        logits = model(torch.from_numpy(examples.pair), torch.from_numpy(examples.edge)).numpy()
    ours = score_features(trained.weights, examples.pair, examples.edge)
    assert np.allclose(ours * SHARPNESS, logits, atol=1e-4)
    assert np.ptp(ours) > 0.1


def test_training_finds_what_the_heuristic_misses_on_held_out_questions(painters):
    # All painters share the keyword "painter"; that the next passage has to be titled by a keyword must be learned.
    view, known = painters
    made = train(painters, slice(0, None, 2))
    rates = {
        name: asyncio.run(match_rate(view, known[1::2], scorer, 2))
        for name, scorer in (("neural", made.scorer), ("heuristic", HeuristicScorer()), ("random", RandomScorer()))
    }
    assert rates["heuristic"] == 50.0  # the painter, who is the seed
    assert rates["random"] < 75.0
    assert rates["neural"] == 100.0
    assert made.card["metrics"]["epoch"] > 0


def test_nothing_to_learn_from_is_said(painters):
    view, known = painters
    with pytest.raises(CorpusError, match="at least two questions"):
        asyncio.run(train_scorer(view, known[:1]))
    alone = [type(one)(one.question, one.seeds, one.evidence[:1]) for one in known]
    with pytest.raises(CorpusError, match="nothing to learn from"):
        asyncio.run(train_scorer(view, alone))


def test_listwise_loss_is_cross_entropy_with_shared_mass():
    scores, owners = torch.tensor([0.0, 0.0, 0.0, 0.0, 2.0]), torch.tensor([0, 0, 0, 1, 1])
    right = torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0])
    expected = (math.log(3) + math.log(1 + math.exp(-2))) / 2
    assert step_loss(scores, right, owners, 2).item() == pytest.approx(expected)
    # Two right ones of three share the mass: the loss stays log 3 while nothing tells them apart.
    both = torch.tensor([1.0, 1.0, 0.0, 0.0, 1.0])
    assert step_loss(scores, both, owners, 2).item() == pytest.approx(expected)
    assert step_loss(scores * 50, right, owners, 2).item() < expected


def test_questions_that_share_a_gold_passage_with_a_held_out_one_do_not_teach(painters):
    _, known = painters
    assert without_shared_evidence(known[:8], known[8:]) == ()  # painter i and painter i + 8 share a town
    assert without_shared_evidence(known[:4], known[4:8]) == known[:4]
