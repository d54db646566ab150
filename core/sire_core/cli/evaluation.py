"""Evaluating recipes and baselines on one folder: every vector and every record is made once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sire_core.cli.models import say_usage
from sire_core.cli.options import IndexOptions, manifest_of, open_index
from sire_core.cli.output import count, note
from sire_core.errors import ConfigurationError, ModelError

if TYPE_CHECKING:
    from sire_core.evaluate.clusters import ClusterReport
    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import Row, Setup
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.protocols import Embedder, Progress
    from sire_core.recipes.ablation import Ablation

__all__ = ["BASELINES", "run_ablations", "run_clusters", "run_evaluation", "run_existing", "say_size"]

BASELINES = ("bm25", "dense", "hybrid")
"""Rows that are always there: the recipe `flat` with each ranker."""


def run_evaluation(
    dataset: DataSet, recipes: Sequence[str], options: IndexOptions, config: EvalConfig, progress: Progress
) -> list[Row]:
    """Build the baselines and each recipe, and ask all of them the questions.

    Args:
        dataset: Corpus and questions.
        recipes: Names of recipes.
        options: How indexes are made; without a folder a temporary one is used.
        config: What is measured.
        progress: Told about every batch and question.

    Returns:
        Rows of the baselines, then of the recipes. `build_s` of a recipe is what it costs beyond the passages' vectors,
        which the baselines paid for, and beyond the records of earlier recipes.

    Raises:
        ConfigurationError: There is nothing to ask, or the folder holds another corpus.
    """
    from sire_core.evaluate.rows import Setup

    rows = []
    with _shared(dataset, options) as shared:
        for name in dict.fromkeys(("flat", *recipes)):
            seconds = _build(dataset, replace(shared, recipe=name), progress)
            # A row `flat` beside `dense` only for those who asked for it.
            rankers = (*BASELINES, *([None] if name in recipes else [])) if name == "flat" else (None,)
            for ranker in rankers:
                asked = replace(shared, recipe=name, ranker=ranker, writes=False)
                rows.append(_ask(dataset, Setup(ranker or name, build_s=seconds), asked, config, progress))
    return rows


def run_existing(
    folder: Path, questions: Path, recipes: Sequence[str], options: IndexOptions, config: EvalConfig, progress: Progress
) -> list[Row]:
    """Ask an index that is there the questions of a file. The folder itself is only read.

    Args:
        folder: The index.
        questions: The file; its `supporting` holds ids of the index's documents.
        recipes: Names of recipes; empty for all that the folder holds.
        options: How the index is searched.
        config: What is measured.
        progress: Told about every question.

    Returns:
        Rows of the baselines, then of the recipes. Nothing is built, so that `build_s` is 0.

    Raises:
        ConfigurationError: The folder does not hold a recipe, or there is nothing to ask.
        CorpusError: The questions cannot be read, or name documents that are not there.
    """
    from sire_core.evaluate.datasets import load_questions
    from sire_core.evaluate.rows import Setup

    held = list(dict.fromkeys(built.name for built in manifest_of(folder).recipes))
    missing = [name for name in recipes if name not in held]
    if missing:
        raise ConfigurationError(f"{folder} does not hold {', '.join(missing)}; it holds {', '.join(held)}.")
    with _folder(None) as place:
        # A copy: the baselines need the recipe `flat`, which the folder may not hold, and costs nothing to add.
        copy = replace(options, folder=place / "index")
        with open_index(replace(options, folder=folder)) as index:
            documents = index.documents()
            index.save(place / "index")
        dataset = load_questions(questions, documents, folder.resolve().name)
        say_size(dataset, config)
        if not dataset.measurable:
            raise ConfigurationError(f"No question of {questions} has gold passages ('supporting') or answers.")
        copy = replace(copy, embedder=_embedder(copy, place / "index"))
        if "flat" not in held:
            with open_index(replace(copy, recipe="flat", writes=True)) as index:
                index.update([])
        asked = [(ranker, replace(copy, recipe="flat", ranker=ranker)) for ranker in BASELINES]
        asked += [(name, replace(copy, recipe=name)) for name in recipes or held if name != "flat" or recipes]
        return [_ask(dataset, Setup(label, build_s=0.0), found, config, progress) for label, found in asked]


def say_size(dataset: DataSet, config: EvalConfig) -> None:
    """Say on stderr what is measured on what."""
    questions = len(dataset.measurable)
    asked = f"{min(config.limit or questions, questions):,} of {count(questions, 'question')}"
    note(f"{dataset.name}: {count(len(dataset.documents), 'passage')}, {asked}.")


def run_ablations(
    dataset: DataSet, recipe: str, options: IndexOptions, config: EvalConfig, progress: Progress
) -> list[Row]:
    """Build every row of a recipe's paper in one folder, and ask all of them the questions.

    Args:
        dataset: Corpus and questions.
        recipe: A recipe with ablations; see `sire_core.recipes.ablations`.
        options: How indexes are made; without a folder a temporary one is used.
        config: What is measured.
        progress: Told about every batch and question.

    Returns:
        A row per ablation that can be made with these options, with the paper's figures in `Setup.paper`. `build_s` is
        what a row costs beyond the vectors and records of the rows before it.

    Raises:
        ConfigurationError: No ablations, nothing to ask, or the folder holds another corpus.
    """
    from sire_core.evaluate.rows import Setup
    from sire_core.recipes import recipe_by_name
    from sire_core.recipes.ablations import ablations_of

    rows = []
    with _shared(dataset, options) as shared:
        for ablation in ablations_of(recipe):
            if missing := _missing(ablation, shared):
                note(f"{ablation.label}: left out, {missing}", "yellow")
                continue
            # Every setting is named: an unnamed one means what the folder was built with last.
            settings = recipe_by_name(ablation.recipe, **ablation.settings).config
            asked = replace(shared, recipe=ablation.recipe, settings=settings)
            seconds = _build(dataset, asked, progress)
            printed, figures = ablation.figures(dataset.name)
            paper = {"table": ablation.table, **({"dataset": printed, **figures} if printed else {})}
            setup = Setup(ablation.label, build_s=seconds, paper=paper)
            rows.append(_ask(dataset, setup, replace(asked, writes=False), config, progress))
    return rows


def _missing(ablation: Ablation, options: IndexOptions) -> str:
    """What a row would need that is not there, for people; empty when it can be made."""
    if ablation.needs == "tokens" and not hasattr(options.embedder, "embed_tokens"):
        return "it needs an embedder with token vectors: --embedder st:NAME_OR_FOLDER"
    if ablation.needs == "model" and options.language_model is None:
        return "it needs a language model: --llm MODEL"
    if ablation.needs == "torch" and find_spec("torch") is None:
        return 'it needs torch: pip install "sire-rag[torch]"'
    return ""


def run_clusters(dataset: DataSet, options: IndexOptions) -> ClusterReport:
    """Cluster the passages by their texts and by their topics, and compare both with the gold passages of questions.

    Raises:
        ConfigurationError: No question has two gold passages.
    """
    from sire_core.evaluate.clusters import evaluate_clusters
    from sire_core.models.embedders import resolve_embedder
    from sire_core.models.sync import run_sync

    return run_sync(evaluate_clusters(dataset, resolve_embedder(options.embedder), seed=options.seed or 0))


@contextmanager
def _shared(dataset: DataSet, options: IndexOptions) -> Iterator[IndexOptions]:
    """Options of all rows: one folder and one embedder, whose model is loaded once."""
    if not dataset.measurable:
        raise ConfigurationError(f"No question of {dataset.name} has gold passages ('supporting') or answers.")
    with _folder(options.folder) as folder:
        _refuse_other_corpus(dataset, folder)
        yield replace(options, folder=folder, embedder=_embedder(options, folder), writes=True)


def _build(dataset: DataSet, options: IndexOptions, progress: Progress) -> float:
    with open_index(options, progress) as index:
        start = time.perf_counter()
        report = index.build(dataset.documents)
        seconds = time.perf_counter() - start
    say_usage(report, f"{options.recipe}: ")
    if report.failures:
        first = report.failures[0]
        failed = count(len(report.failures), "passage or summary", "passages or summaries")
        note(f"{options.recipe}: {failed} failed, first {first.where}: {first.reason}", "yellow")
    return seconds


def _ask(dataset: DataSet, setup: Setup, options: IndexOptions, config: EvalConfig, progress: Progress) -> Row:
    from sire_core.evaluate.answering import answer_questions, answer_scores
    from sire_core.evaluate.evidence_match import evidence_match
    from sire_core.evaluate.runner import evaluate
    from sire_core.models.sync import run_sync

    with open_index(options) as index:
        stats = index.stats()
        setup = replace(
            setup,
            embedder=stats["embedder"],
            extraction=stats["extraction"] or "none",
            pool=stats["units"],
            perspectives=stats.get("perspectives", {}),
        )
        # The first search opens the pool and makes the inverted index: not the time of a query.
        index.search(dataset.measurable[0].question, 1)
        stage = f"questions to {setup.recipe}"
        row = run_sync(evaluate(index, dataset, config, setup=setup, progress=lambda _, *at: progress(stage, *at)))
        asked = dataset.sample(config.limit, config.seed)
        row = replace(row, evidence_match=run_sync(evidence_match(index, asked)))
        if config.answer is None:
            return row
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
        return replace(row, answers={"via": config.answer.via, **answer_scores(answered)})


def _embedder(options: IndexOptions, folder: Path) -> Embedder:
    from sire_core.models.embedders import resolve_embedder

    return resolve_embedder(options.embedder or manifest_of(folder).embedder_spec or None)


def _refuse_other_corpus(dataset: DataSet, folder: Path) -> None:
    """A build makes the folder hold exactly the data set; that must not cost anybody an index of their own."""
    from sire_core.storage.index_files import IndexFiles

    if not manifest_of(folder).generation:
        return
    library = IndexFiles(folder)
    try:
        others = set(library.store.documents()) - {document.id for document in dataset.documents}
    finally:
        library.close()
    if others:
        raise ConfigurationError(
            f"{folder} holds {count(len(others), 'document')} that {dataset.name} does not have, and would lose them. "
            "Name another folder."
        )


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    import tempfile

    # An interrupted build may still be writing when the folder goes.
    with tempfile.TemporaryDirectory(prefix="sire-eval-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
