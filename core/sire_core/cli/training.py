"""Training a scorer of evidence chains on a data set or an index, and measuring it on others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    from sire_core.recipes.iier.training import TrainedScorer, TrainingConfig

__all__ = ["TrainingSource", "run_training"]


@dataclass(frozen=True, slots=True)
class TrainingSource:
    """What a scorer is trained and measured on.

    Attributes:
        place: A data set, or an index folder.
        half: Questions to train on, by position from 0: `all`, `even` or `odd`; the others are held out.
        file: Questions for an index; None for a data set.
        tests: Further data sets to measure on.
        embedder: Embedder for data sets; an index has its own.
        extractions: Recorded extractions for data sets.
        settings: Settings of the recipe `iier`; for an index those of a search.

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
        from sire_core.recipes.iier.training import training_settings

        if self.in_index and self.file is None:
            raise ConfigurationError(f"{self.place} is an index: name its questions with --questions FILE.")
        if self.file is not None and not self.in_index:
            raise ConfigurationError(f"{self.file}: --questions FILE is for an index folder, and {self.place} is none.")
        if self.in_index and (self.tests or self.embedder or self.extractions):
            raise ConfigurationError("An index is used as it is: leave --test, --embedder and --extractions out.")
        known, used = recipe_by_name("iier").config, training_settings(with_graph=not self.in_index)
        for name in self.settings:
            if name in known and name not in used:
                raise ConfigurationError(
                    f"--set {name} has no effect on training{' over an index' * self.in_index}; leave it out. These "
                    f"have: {', '.join(used)}."
                )
        recipe_by_name("iier", **self.settings)

    @property
    def in_index(self) -> bool:
        """Whether an index is trained on."""
        return is_index(self.place)


def run_training(source: TrainingSource, config: TrainingConfig, progress: Progress) -> TrainedScorer:
    """Train on the questions of a data set, indexed in memory, or of an index, and measure on the others.

    Returns:
        The scorer. `card["metrics"]["match_rate"]` has the held-out questions and every test set, each with `neural`,
        `heuristic` and `random`.
    """
    from sire_core.models.sync import run_sync
    from sire_core.recipes.iier.training import measure_scorer, prepare_questions, train_scorer

    rates: dict[str, Mapping[str, float]] = {}
    opened = _index(source) if source.in_index else _in_memory(source, source.place, progress)
    with opened as (index, dataset):
        training = [question for question in dataset.half(source.half).questions if question.supporting]
        ids = {question.id for question in training}
        held_out = [question for question in dataset.questions if question.supporting and question.id not in ids]
        known = run_sync(prepare_questions(run_sync(index.asnapshot()), training, held_out))
        if known.left_out:
            note(f"{count(known.left_out, 'question')} left out: a held-out question has a gold passage of theirs.")
        data = {"name": dataset.name, "part": source.half, "left_out": known.left_out}
        trained = run_sync(train_scorer(known.view, known.training, config, data, progress))
        if known.held_out:
            name = f"{dataset.name}, {len(known.held_out)} held out"
            rates[name] = run_sync(measure_scorer(trained, known.view, known.held_out))
    for place in source.tests:
        with _in_memory(source, place, progress) as (index, dataset):
            known = run_sync(prepare_questions(run_sync(index.asnapshot()), dataset.questions))
            name = f"{dataset.name}, {len(known.training)}"
            rates[name] = run_sync(measure_scorer(trained, known.view, known.training))
    trained.card["metrics"]["match_rate"] = rates
    return trained


@contextmanager
def _in_memory(source: TrainingSource, place: Path, progress: Progress) -> Iterator[tuple[Index, DataSet]]:
    """Index a data set in memory."""
    from sire_core.evaluate.datasets import load_dataset

    dataset = load_dataset(place)
    options = IndexOptions(
        recipe="iier",
        settings=source.settings,
        embedder=source.embedder,
        # Extractions belong to the passages that are trained on; other sets have other ids.
        extractions=source.extractions if place == source.place else None,
        no_chunking=not dataset.whole,
        writes=True,
    )
    with open_index(options, progress) as index:
        index.build(dataset.documents)
        yield index, dataset


@contextmanager
def _index(source: TrainingSource) -> Iterator[tuple[Index, DataSet]]:
    """Open an index with the graph that its recipe built."""
    from sire_core.evaluate.datasets import load_questions

    assert source.file is not None  # checked
    held = [built.name for built in reversed(manifest_of(source.place).recipes)]
    name = next((name for name in ("iier", "smart") if name in held), "")
    if not name:
        raise ConfigurationError(
            f"{source.place} has no graph of passages (its recipes are {', '.join(held)}). Add one: sire index SRC... "
            f"--to {source.place} --recipe iier"
        )
    with open_index(IndexOptions(folder=source.place, recipe=name, settings=source.settings)) as index:
        yield index, load_questions(source.file, index.documents(), source.place.resolve().name)
