"""Evaluating recipes and baselines on one folder: every vector and every record is made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sire_core.cli.evaluation_rows import Evaluation, apart, embedder_for, folder_for
from sire_core.cli.options import IndexOptions, chunker_of, manifest_of, open_index
from sire_core.cli.recipe_options import settings_had
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.cli.eval_models import Results
    from sire_core.evaluate.clusters import ClusterReport
    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import EvalRow
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.protocols import Progress

__all__ = ["BASELINES", "run_clusters", "run_evaluation", "run_existing", "run_repeats", "settings_by_recipe"]

BASELINES = ("bm25", "dense", "hybrid")
"""Rows that are always there: the recipe `flat` with each ranker."""


class Rows:
    """Rows so far; somebody is told of each."""

    def __init__(self, finished: Callable[[EvalRow], None] | None) -> None:
        self.found: list[EvalRow] = []
        self._finished = finished

    def add(self, row: EvalRow) -> None:
        self.found.append(row)
        if self._finished is not None:
            self._finished(row)


def run_evaluation(
    asked: Evaluation, recipes: Sequence[str], finished: Callable[[EvalRow], None] | None = None
) -> list[EvalRow]:
    """Build the baselines and each recipe, and ask all of them the questions.

    Args:
        asked: What is measured on what. Settings go to the recipes that have them, never to the baselines.
        recipes: Names of recipes.
        finished: Told about every row as soon as it is there.

    Returns:
        Rows of the baselines, then of the recipes, with intervals against `hybrid`. `build_s` of a recipe is what it
        costs beyond the passages' vectors, which the baselines paid for; with a model or a folder that is kept, also
        beyond what earlier recipes left there.

    Raises:
        ConfigurationError: There is nothing to ask, the folder holds another corpus, or no recipe has a setting.
    """
    from sire_core.evaluate.bootstrap import with_intervals
    from sire_core.evaluate.rows import Setup

    given = settings_by_recipe(recipes, asked.options.settings)
    rows = Rows(finished)
    with asked.shared() as common:
        made = replace(common, recipe="flat")
        built = asked.build(made)
        for ranker in BASELINES:
            rows.add(asked.ask(Setup(ranker, build_s=built.seconds), replace(made, ranker=ranker, writes=False)))
        for name in recipes:
            with apart(common, kept=asked.options.folder is not None) as own:
                made = replace(own, recipe=name, settings=given[name])
                if name != "flat":
                    built = asked.build(made)
                setup = Setup(name, build_s=built.seconds, settings=given[name], calls=built.calls)
                rows.add(asked.ask(setup, replace(made, writes=False)))
    return with_intervals(rows.found)


def settings_by_recipe(recipes: Sequence[str], settings: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """The settings that each recipe has, of those that were given.

    Raises:
        ConfigurationError: No recipe has one of them, or a recipe refuses a value.
    """
    from sire_core.recipes import recipe_by_name

    chosen = settings_had(recipes, settings or {})
    for name, own in chosen.items():
        recipe_by_name(name, **own)
    return chosen


def run_repeats(
    asked: Evaluation, recipes: Sequence[str], builds: int, finished: Callable[[EvalRow], None]
) -> list[EvalRow]:
    """`run_evaluation` with several seeds, each in a folder of its own, as one row per recipe with its spread.

    Args:
        asked: What is measured on what; the seed of its options is the first one.
        recipes: Names of recipes.
        builds: How many.
        finished: Told about the rows over the builds so far when a later one fails.

    Returns:
        The rows of the first build; `EvalRow.repeats` has means and standard deviations over all builds.
    """
    from sire_core.evaluate.bootstrap import with_spread

    options, first = asked.options, asked.options.seed or 0
    runs: list[list[EvalRow]] = []
    try:
        for seed in range(first, first + builds):
            place = None if options.folder is None else options.folder / f"seed-{seed}"
            made = replace(asked, options=replace(options, folder=place, seed=seed))
            runs.append([])
            runs[-1] = run_evaluation(made, recipes, runs[-1].append)
    except BaseException:
        for row in with_spread(runs):
            finished(row)
        raise
    return with_spread(runs)


def run_existing(
    folder: Path,
    questions: Path,
    recipes: Sequence[str],
    options: IndexOptions,
    config: EvalConfig,
    progress: Progress,
    results: Results,
    half: str = "all",
) -> list[EvalRow]:
    """Ask an index that is there the questions of a file. The folder itself is only read.

    Args:
        folder: The index.
        questions: The file; its `supporting` holds ids of the index's documents.
        recipes: Names of recipes; empty for all that the folder holds.
        options: How the index is searched; settings are those of a search.
        config: What is measured.
        progress: Told about every question.
        results: Told what is asked, and about every row as soon as it is there.
        half: Which questions of the file: `even`, `odd` or `all`.

    Returns:
        Rows of the baselines, then of the recipes, as `run_evaluation`. Nothing is built, so that `build_s` is 0.

    Raises:
        ConfigurationError: The folder does not hold a recipe, or there is nothing to ask.
        CorpusError: The questions cannot be read, or name documents that are not there.
    """
    from sire_core.evaluate.bootstrap import with_intervals
    from sire_core.evaluate.datasets import load_questions
    from sire_core.evaluate.rows import Setup
    from sire_core.index import Index

    held, names = _held_recipes(folder, recipes)
    given = settings_by_recipe(names, options.settings)
    with folder_for(None) as place:
        # A copy: the baselines need the recipe `flat`, which the folder may not hold, and costs nothing to add.
        copy = replace(options, folder=place / "index", settings=None)
        with open_index(replace(options, folder=folder, settings=None)) as index:
            documents = index.documents()
            index.save(place / "index")
        dataset = load_questions(questions, documents, folder.resolve().name).half(half)
        results.begin(dataset, len(BASELINES) + len(names), config)
        if not dataset.measurable:
            raise ConfigurationError(f"No question of {questions} has gold ('supporting' or 'needs') or answers.")
        copy = replace(copy, embedder=embedder_for(copy, place / "index"))
        if "flat" not in held:
            # Not as a command's change: its checks keep what models made for other recipes, which `flat` leaves alone.
            chunker = chunker_of(copy, manifest_of(folder))
            with Index(copy.folder, recipe="flat", embedder=copy.embedder, chunker=chunker) as index:
                index.update([])
        rows = [(Setup(ranker), replace(copy, recipe="flat", ranker=ranker)) for ranker in BASELINES]
        rows += [
            (Setup(name, settings=given[name]), replace(copy, recipe=name, settings=given[name])) for name in names
        ]
        asked, done = Evaluation(dataset, copy, config, progress), Rows(results.table())
        for setup, found in rows:
            done.add(asked.ask(setup, found))
        return with_intervals(done.found)


def _held_recipes(folder: Path, wanted: Sequence[str]) -> tuple[list[str], Sequence[str]]:
    """Recipes that a folder holds, and those to ask: the wanted ones, else all but `flat`, which is a baseline."""
    held = list(dict.fromkeys(built.name for built in manifest_of(folder).recipes))
    missing = [name for name in wanted if name not in held]
    if missing:
        raise ConfigurationError(f"{folder} does not hold {', '.join(missing)}; it holds {', '.join(held)}.")
    return held, wanted or [name for name in held if name != "flat"]


def run_clusters(dataset: DataSet, options: IndexOptions, progress: Progress) -> ClusterReport:
    """Cluster the passages by their texts and by their topics, and compare both with the gold passages of questions.

    Args:
        dataset: Corpus and questions.
        options: Embedder, seed, the language model that names topics (the words that tell passages apart where there is
            none), and of the settings `clustering`.
        progress: Told about every topic that a model names.

    Raises:
        ConfigurationError: No question has two gold passages, or another setting is given.
    """
    from sire_core.evaluate.clusters import evaluate_clusters, model_topics
    from sire_core.models.embedders import resolve_embedder
    from sire_core.models.sync import run_sync
    from sire_core.trees.settings import TreeSettings

    given = dict(options.settings or {})
    if set(given) - {"clustering"}:
        raise ConfigurationError("--clusters has one setting: --set clustering=paper (or leiden).")
    method = TreeSettings(**given).clustering
    model = options.language_model
    topics = None if model is None else run_sync(model_topics(dataset, model, progress))
    embedder = resolve_embedder(options.embedder)
    return run_sync(evaluate_clusters(dataset, embedder, topics=topics, seed=options.seed or 0, method=method))
