"""Training a scorer of evidence chains on a data set or an index, and measuring it on others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sire_core.cli.options import IndexOptions, is_index, manifest_of, open_index
from sire_core.cli.output import count, note
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet
    from sire_core.index import Index
    from sire_core.protocols import Progress
    from sire_core.recipes.iier.examples import KnownQuestion
    from sire_core.recipes.iier.scorers import ChainScorer
    from sire_core.recipes.iier.training import TrainedScorer, TrainingConfig
    from sire_core.search.view import PoolView

__all__ = ["Taught", "run_training"]

_SEARCH = ("max_length", "seed_match", "fallback_seeds", "similar_seeds")
"""Settings of a search that training reads: where chains start, and how long they are."""


@dataclass(frozen=True, slots=True)
class Taught:
    """What a scorer learns from, and is measured on.

    Attributes:
        place: A data set, or an index folder.
        half: Which questions teach, by their place from 0: `all`, `even` or `odd`; the others are held out.
        file: Questions to an index; None for a data set.
        tests: Further data sets to measure on.
        embedder: Makes the vectors of data sets; an index has its own.
        extractions: Recorded extractions of data sets.
        settings: Of the recipe `iier`; for an index those of a search.

    Raises:
        ConfigurationError: They do not go together, or a setting has no effect on training.
    """

    place: Path
    half: str
    file: Path | None
    tests: tuple[Path, ...]
    embedder: str | None
    extractions: Path | None
    settings: Mapping[str, Any]

    def __post_init__(self) -> None:
        from sire_core.recipes import recipe_by_name
        from sire_core.recipes.iier.interaction_graph import InteractionGraph
        from sire_core.settings import Component

        if self.in_index and self.file is None:
            raise ConfigurationError(f"{self.place} is an index: say what was asked there, with --questions FILE.")
        if self.file is not None and not self.in_index:
            raise ConfigurationError(f"{self.file}: --questions FILE is for an index folder, and {self.place} is none.")
        if self.in_index and (self.tests or self.embedder or self.extractions):
            raise ConfigurationError("An index is taken as it is: leave --test, --embedder and --extractions out.")
        graph = () if self.in_index else tuple(Component(InteractionGraph).fields())
        known = recipe_by_name("iier").config
        for name in self.settings:
            if name in known and name not in {*_SEARCH, *graph}:
                raise ConfigurationError(
                    f"--set {name} has no effect on training{' over an index' * self.in_index}; leave it out. These "
                    f"have: {', '.join((*_SEARCH, *graph))}."
                )
        recipe_by_name("iier", **self.settings)

    @property
    def in_index(self) -> bool:
        """Whether an index is learned from."""
        return is_index(self.place)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A pool whose graph is walked, the questions that teach and those that are held out, and what it is called."""

    name: str
    view: PoolView
    teaching: Sequence[KnownQuestion]
    held_out: Sequence[KnownQuestion] = ()


def run_training(taught: Taught, config: TrainingConfig, progress: Progress) -> TrainedScorer:
    """Train on questions over a data set, indexed in memory, or an index, and measure on those that did not teach.

    Questions that share a gold passage with a held-out one are left out.

    Args:
        taught: What from, and what is measured on.
        config: How to train.
        progress: Told about every batch and epoch.

    Returns:
        The scorer. `card["metrics"]["match_rate"]` has the held-out questions and every test set, each with `neural`,
        `heuristic` and `random`.

    Raises:
        ConfigurationError: torch is missing, or the index has no graph of passages.
        CorpusError: There is nothing to learn from.
    """
    from sire_core.models.sync import run_sync
    from sire_core.recipes.iier.examples import without_shared_evidence
    from sire_core.recipes.iier.scorers import HeuristicScorer, RandomScorer
    from sire_core.recipes.iier.training import train_scorer

    rates: dict[str, Mapping[str, float]] = {}
    prepared = _in_index(taught) if taught.in_index else _in_memory(taught, taught.place, taught.half, progress)
    with prepared as found:
        learn, held = found.teaching, found.held_out
        kept = without_shared_evidence(learn, held)
        if len(kept) < len(learn):
            left = count(len(learn) - len(kept), "question")
            note(f"{left} left out: a held-out question has a gold passage of theirs.")
        data = {"name": found.name, "part": taught.half, "left_out": len(learn) - len(kept)}
        trained = run_sync(train_scorer(found.view, kept, config, data, progress))
        scorers: Mapping[str, ChainScorer] = {
            "neural": trained.scorer,
            "heuristic": HeuristicScorer(),
            "random": RandomScorer(config.seed),
        }
        if held:
            rates[f"{found.name}, {len(held)} held out"] = _rates(found.view, held, scorers, config.max_length)
    for place in taught.tests:
        with _in_memory(taught, place, "all", progress) as found:
            rates[f"{found.name}, {len(found.teaching)}"] = _rates(
                found.view, found.teaching, scorers, config.max_length
            )
    trained.card["metrics"]["match_rate"] = rates
    return trained


@contextmanager
def _in_memory(taught: Taught, place: Path, half: str, progress: Progress) -> Iterator[_Prepared]:
    """A data set, indexed."""
    from sire_core.evaluate.datasets import load_dataset

    dataset = load_dataset(place)
    options = IndexOptions(
        recipe="iier",
        settings=taught.settings,
        embedder=taught.embedder,
        # Those of the passages that are learned from; other sets have other ids.
        extractions=taught.extractions if place == taught.place else None,
        no_chunking=True,
        writes=True,
    )
    with open_index(options, progress) as index:
        index.build(dataset.documents)
        yield _asked(dataset, index, half)


@contextmanager
def _in_index(taught: Taught) -> Iterator[_Prepared]:
    """An index as it is served, with the graph that its recipe made."""
    from sire_core.evaluate.datasets import load_questions

    assert taught.file is not None  # checked
    held = [built.name for built in reversed(manifest_of(taught.place).recipes)]
    name = next((name for name in ("iier", "smart") if name in held), "")
    if not name:
        raise ConfigurationError(
            f"{taught.place} holds no graph of passages (it holds {', '.join(held)}). Add one: sire index SRC... "
            f"--to {taught.place} --recipe iier"
        )
    with open_index(IndexOptions(folder=taught.place, recipe=name, settings=taught.settings)) as index:
        dataset = load_questions(taught.file, index.documents(), taught.place.resolve().name)
        yield _asked(dataset, index, taught.half)


def _asked(dataset: DataSet, index: Index, half: str) -> _Prepared:
    """The questions as a walk over the index sees them, in the halves that `sire eval` asks."""
    from sire_core.models.sync import run_sync
    from sire_core.recipes.iier.evidence_chains import EvidenceChains
    from sire_core.recipes.iier.examples import known_questions

    snapshot = run_sync(index.asnapshot())
    view, ranker = snapshot.view, snapshot.recipe.ranker
    if not isinstance(ranker, EvidenceChains):
        raise ConfigurationError(f"{snapshot.recipe.name} of this index walks no chains; index with --recipe iier.")
    teach = [question for question in dataset.half(half).questions if question.supporting]
    chosen = {question.id for question in teach}
    held = [question for question in dataset.questions if question.supporting and question.id not in chosen]
    known = run_sync(known_questions(view, (*teach, *held), ranker))
    return _Prepared(dataset.name, view, known[: len(teach)], known[len(teach) :])


def _rates(
    view: PoolView, questions: Sequence[KnownQuestion], scorers: Mapping[str, ChainScorer], max_length: int
) -> dict[str, float]:
    from sire_core.models.sync import run_sync
    from sire_core.recipes.iier.examples import match_rate

    return {
        name: round(run_sync(match_rate(view, questions, scorer, max_length)), 2) for name, scorer in scorers.items()
    }
