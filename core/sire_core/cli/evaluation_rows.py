"""One row of an evaluation: a folder that all rows share, a recipe built in it, and the questions asked."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sire_core.cli.models import say_usage
from sire_core.cli.options import IndexOptions, manifest_of, open_index
from sire_core.cli.output import count, note
from sire_core.errors import ConfigurationError, ModelError

if TYPE_CHECKING:
    from sire_core.evaluate.answered import AnsweredQuestion
    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import EvalRow, Setup
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.index import Index
    from sire_core.protocols import Embedder, Progress

__all__ = ["Built", "Evaluation", "apart", "embedder_for", "folder_for"]

_TEMPORARY = "sire-eval-"
_BATCH = 4096
_LOCK = "in-use.lock"
_JUST_MADE = 60.0
"""Seconds in which a folder without a held lock may be one whose process has not come to taking it."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is measured on what.

    Attributes:
        dataset: Corpus and questions.
        options: How indexes are made; without a folder a temporary one is used.
        config: What is measured.
        progress: Told about every batch and question.
    """

    dataset: DataSet
    options: IndexOptions
    config: EvalConfig
    progress: Progress

    @contextmanager
    def shared(self) -> Iterator[IndexOptions]:
        """Options of all rows: one folder and one embedder, whose model is loaded once; without settings of recipes.

        Raises:
            ConfigurationError: There is nothing to ask, or the folder holds another corpus.
        """
        if not self.dataset.measurable:
            raise ConfigurationError(
                f"No question of {self.dataset.name} has gold ('supporting' or 'needs') or answers."
            )
        with folder_for(self.options.folder) as folder:
            _refuse_other_corpus(self.dataset, folder)
            embedder = embedder_for(self.options, folder)
            yield replace(self.options, folder=folder, embedder=embedder, settings=None, writes=True)

    def build(self, options: IndexOptions) -> Built:
        """Build a recipe in the folder."""
        with open_index(options, self.progress) as index:
            start = time.perf_counter()
            report = index.build(self.dataset.documents)
            seconds = time.perf_counter() - start
        say_usage(report, f"{options.recipe}: ")
        if report.failures:
            first = report.failures[0]
            failed = count(len(report.failures), "passage or summary", "passages or summaries")
            note(f"{options.recipe}: {failed} failed, first {first.where}: {first.reason}", "yellow")
        return Built(seconds, {stage: used.calls for stage, used in report.usage.items() if used.calls})

    def ask(self, setup: Setup, options: IndexOptions) -> EvalRow:
        """Ask a built recipe the questions, and have them answered where the configuration says so.

        Raises:
            ModelError: The model answered nothing at all.
        """
        from sire_core.evaluate.answering import answer_scores
        from sire_core.evaluate.retrieval import evidence_match
        from sire_core.evaluate.runner import evaluate
        from sire_core.models.sync import run_sync
        from sire_core.models.usage_meter import UsageMeter, with_meter

        dataset, config, progress = self.dataset, self.config, self.progress
        meter, named = UsageMeter(), options.wrap_model
        counted = partial(with_meter, meter=meter)
        options = replace(options, wrap_model=lambda model: counted(model if named is None else named(model)))
        if options.language_model is not None and config.model is not None:
            options = replace(options, language_model=counted(config.model))
        with open_index(options) as index:
            stats = index.stats()
            # The first search opens the pool and makes the inverted index: not the time of a query.
            index.search(dataset.measurable[0].question, 1)
            of_search = meter.report().total.calls
            setup = replace(
                setup,
                embedder=stats["embedder"],
                extraction=stats["extraction"] or "none",
                pool=stats["units"],
                passages=stats["chunks"],
                perspectives=stats.get("perspectives", {}),
                calls={**setup.calls, **({"search": of_search} if of_search else {})},
                storage=_storage(index),
            )
            stage = f"questions to {setup.recipe}"
            row = run_sync(evaluate(index, dataset, config, setup=setup, progress=lambda _, *at: progress(stage, *at)))
            asked = dataset.sample(config.limit, config.seed)
            row = replace(row, evidence_match=run_sync(evidence_match(index, asked)))
            row = replace(row, analysis=_analysis(index, asked, row, config, progress))
            if config.answer is None:
                return row
            answered = _answers(index, asked, setup, config, progress)
            scores = {"via": config.answer.via, "reader": config.answer.reader.prompt, **answer_scores(answered)}
            return replace(row, answers=scores, answered=answered)


@contextmanager
def apart(options: IndexOptions, *, kept: bool) -> Iterator[IndexOptions]:
    """Options of a recipe that shares nothing with others but the passages' vectors: it builds in a copy of the folder.

    Its build seconds are then its own, whatever was built before. With a model all rows share one folder, since nothing
    that was paid for may be paid again; so do they in a folder that is to be kept.

    Args:
        options: The shared folder, which holds the vectors.
        kept: Whether the folder was named by the user.
    """
    if kept or options.language_model is not None or options.folder is None:
        yield options
        return
    with folder_for(None) as place:
        shutil.copytree(options.folder, place / "index")
        yield replace(options, folder=place / "index")


class Built(NamedTuple):
    """What a build took: wall seconds, and requests to the model by stage."""

    seconds: float
    calls: Mapping[str, int]


def _storage(index: Index) -> dict[str, int]:
    """Bytes of vectors and texts in a pool by kind of unit."""
    view = index.view()
    width = view.matrix.shape[1] * view.matrix.dtype.itemsize
    found: Counter[str] = Counter()
    for start in range(0, view.size, _BATCH):
        for unit in view.units(range(start, min(start + _BATCH, view.size))):
            found[unit.kind.value] += width + len(unit.index_text.encode("utf-8", "replace"))
    return dict(sorted(found.items()))


def _analysis(index: Index, asked: DataSet, row: EvalRow, config: EvalConfig, progress: Progress) -> dict[str, Any]:
    """What the modes that were asked for find; nothing for recipes without relations."""
    from sire_core.evaluate.analysis import graph_errors, missing_triples
    from sire_core.models.sync import run_sync

    found: dict[str, Any] = {}
    if config.errors:
        found["errors"] = run_sync(graph_errors(index, asked, row, config.model))
    if config.missing and config.model is not None:
        found["missing"] = run_sync(missing_triples(index, asked, config.model, config.missing, config.seed, progress))
    return {name: values for name, values in found.items() if values}


def _answers(
    index: Index, asked: DataSet, setup: Setup, config: EvalConfig, progress: Progress
) -> tuple[AnsweredQuestion, ...]:
    """The model's answers.

    Raises:
        ModelError: It failed every time.
    """
    from sire_core.evaluate.answering import answer_questions
    from sire_core.models.sync import run_sync

    assert config.answer is not None
    stage = f"answers from {setup.recipe}"
    answered = run_sync(answer_questions(index, asked, config.answer, lambda _, *at: progress(stage, *at)))
    failed = sum(found.stop == "model_failed" for found in answered)
    if answered and failed == len(answered):
        raise ModelError(
            f"{setup.recipe}: none of {count(len(answered), 'question')} was answered, the model failed every time."
            " Check --base-url, --llm and the key with: sire ask."
        )
    if failed:
        note(f"{setup.recipe}: the model failed on {failed:,} of {count(len(answered), 'question')}", "yellow")
    if unread := sum(found.unread for found in answered):
        readings = count(unread, "reading of a question", "readings of questions")
        note(f"{setup.recipe}: D-F1 counts {readings} as 0, for which the model failed", "yellow")
    return answered


def embedder_for(options: IndexOptions, folder: Path) -> Embedder:
    """The embedder that options name, else what the folder was built with, else the default."""
    from sire_core.models.embedders import resolve_embedder

    return resolve_embedder(options.embedder or manifest_of(folder).embedder_spec or None)


def _refuse_other_corpus(dataset: DataSet, folder: Path) -> None:
    """A build makes the folder hold exactly the data set; that must not cost anybody an index of their own."""
    from sire_core.storage.index_files import IndexFiles

    if not manifest_of(folder).generation:
        return
    files = IndexFiles(folder)
    try:
        others = set(files.store.documents()) - {document.id for document in dataset.documents}
    finally:
        files.close()
    if others:
        raise ConfigurationError(
            f"{folder} holds {count(len(others), 'document')} that {dataset.name} does not have, and would lose them. "
            "Name another folder."
        )


@contextmanager
def folder_for(given: Path | None) -> Iterator[Path]:
    """The folder that was named, or a temporary one."""
    if given is not None:
        yield given
        return
    import tempfile

    _remove_left_behind(Path(tempfile.gettempdir()))
    # An interrupted build may still be writing when the folder goes.
    with (
        tempfile.TemporaryDirectory(prefix=_TEMPORARY, ignore_cleanup_errors=True) as folder,
        _held(Path(folder)),
    ):
        yield Path(folder) / "index"


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold the lock of a temporary folder; the operating system frees it when the process dies."""
    import sqlite3

    with closing(sqlite3.connect(str(folder / _LOCK), timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            raise OSError(f"{folder} is in use") from error
        yield


def _remove_left_behind(place: Path) -> None:
    """Remove the temporary folders of runs that were killed."""
    for lock in place.glob(f"{_TEMPORARY}*/{_LOCK}"):
        with suppress(OSError):
            if time.time() - lock.stat().st_mtime > _JUST_MADE:
                with _held(lock.parent):
                    shutil.rmtree(lock.parent, ignore_errors=True)
