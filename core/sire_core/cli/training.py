"""Training a scorer of evidence chains on a data set, and measuring it on others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sire_core.cli.options import IndexOptions, open_index
from sire_core.cli.output import can_be_written, count, note
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet
    from sire_core.protocols import Embedder, Progress
    from sire_core.search.chains.examples import KnownQuestion
    from sire_core.search.chains.scorers import ChainScorer
    from sire_core.search.chains.training import TrainedScorer, TrainingConfig
    from sire_core.search.view import PoolView

__all__ = ["PARTS", "check_target", "run_training"]

PARTS = ("all", "even", "odd")
"""Which questions teach, by their place in the data set from 0; the others are held out."""


def run_training(
    dataset: DataSet,
    tests: Sequence[DataSet],
    part: str,
    embedder: Embedder,
    settings: Mapping[str, Any],
    config: TrainingConfig,
    progress: Progress,
) -> TrainedScorer:
    """Index a data set in memory, train on its questions and measure match rates on questions that did not teach.

    Args:
        dataset: To learn from. Questions that share a gold passage with a held-out one are left out.
        tests: Also measured on.
        part: One of `PARTS`.
        embedder: Of all sets.
        settings: Of the recipe `iier`; those of the graph and the seeds count.
        config: How to train.
        progress: Told about every batch and epoch.

    Returns:
        The scorer. `card["metrics"]["match_rate"]` has the held-out questions and every test set, each with `neural`,
        `heuristic` and `random`.

    Raises:
        ConfigurationError: Unknown part, or torch is missing.
        CorpusError: There is nothing to learn from.
    """
    from sire_core.models.sync import run_sync
    from sire_core.search.chains.examples import without_shared_evidence
    from sire_core.search.chains.training import train_scorer

    if part not in PARTS:
        raise ConfigurationError(f"--questions is one of {', '.join(PARTS)}, not {part!r}.")
    rates: dict[str, Mapping[str, float]] = {}
    with _prepared(dataset, embedder, settings, progress) as (view, questions):
        learn, held = _parts(questions, part)
        kept = without_shared_evidence(learn, held)
        if len(kept) < len(learn):
            left = count(len(learn) - len(kept), "question")
            note(f"{left} left out: a held-out question has a gold passage of theirs.")
        data = {"name": dataset.name, "part": part, "left_out": len(learn) - len(kept)}
        trained = run_sync(train_scorer(view, kept, config, data, progress))
        if held:
            rates[f"{dataset.name}, {len(held)} held out"] = _rates(view, held, trained, config)
    for test in tests:
        with _prepared(test, embedder, settings, progress) as (view, questions):
            rates[f"{test.name}, {len(questions)}"] = _rates(view, questions, trained, config)
    trained.card["metrics"]["match_rate"] = rates
    return trained


@contextmanager
def _prepared(
    dataset: DataSet, embedder: Embedder, settings: Mapping[str, Any], progress: Progress
) -> Iterator[tuple[PoolView, tuple[KnownQuestion, ...]]]:
    from sire_core.models.sync import run_sync
    from sire_core.recipes import recipe_by_name
    from sire_core.search.chains.evidence_chains import EvidenceChains
    from sire_core.search.chains.examples import known_questions

    ranker = recipe_by_name("iier", **settings).ranker
    assert isinstance(ranker, EvidenceChains)
    options = IndexOptions(recipe="iier", settings=settings, embedder=embedder, no_chunking=True, writes=True)
    with open_index(options, progress) as index:
        index.build(dataset.documents)
        view = index.view()
        yield view, run_sync(known_questions(view, dataset.questions, ranker))


def _parts(questions: Sequence[KnownQuestion], part: str) -> tuple[Sequence[KnownQuestion], Sequence[KnownQuestion]]:
    if part == "all":
        return questions, ()
    return (questions[0::2], questions[1::2]) if part == "even" else (questions[1::2], questions[0::2])


def _rates(
    view: PoolView, questions: Sequence[KnownQuestion], trained: TrainedScorer, config: TrainingConfig
) -> dict[str, float]:
    from sire_core.models.sync import run_sync
    from sire_core.search.chains.examples import match_rate
    from sire_core.search.chains.scorers import HeuristicScorer, RandomScorer

    scorers: Mapping[str, ChainScorer] = {
        "neural": trained.scorer,
        "heuristic": HeuristicScorer(),
        "random": RandomScorer(config.seed),
    }
    return {
        name: round(run_sync(match_rate(view, questions, scorer, config.max_length)), 2)
        for name, scorer in scorers.items()
    }


def check_target(path: Path) -> None:
    """Refuse a place where the checkpoint cannot be written, before anything is trained.

    Raises:
        ConfigurationError: The folder is missing, or the path is a folder itself.
    """
    if not can_be_written(path):
        raise ConfigurationError(f"--to {path}: name a file in a folder that exists and is yours to write.")
