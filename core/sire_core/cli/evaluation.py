"""Evaluating recipes and baselines on one folder: every vector and every record is made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sire_core.cli.evaluation_rows import apart, ask, build, embedder_for, folder_for, shared
from sire_core.cli.options import IndexOptions, chunker_of, manifest_of, open_index
from sire_core.cli.output import note
from sire_core.cli.recipe_options import settings_had
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.cli.eval_results import Results
    from sire_core.evaluate.clusters import ClusterReport
    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import EvalRow
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.protocols import Progress
    from sire_core.recipes.ablation import Ablation

__all__ = [
    "BASELINES",
    "run_ablations",
    "run_clusters",
    "run_evaluation",
    "run_existing",
    "run_repeats",
    "settings_by_recipe",
]

BASELINES = ("bm25", "dense", "hybrid")
"""Rows that are always there: the recipe `flat` with each ranker."""


class _Rows:
    """Rows so far; somebody is told of each."""

    def __init__(self, finished: Callable[[EvalRow], None] | None) -> None:
        self.found: list[EvalRow] = []
        self._finished = finished

    def add(self, row: EvalRow) -> None:
        self.found.append(row)
        if self._finished is not None:
            self._finished(row)


def run_evaluation(
    dataset: DataSet,
    recipes: Sequence[str],
    options: IndexOptions,
    config: EvalConfig,
    progress: Progress,
    finished: Callable[[EvalRow], None] | None = None,
) -> list[EvalRow]:
    """Build the baselines and each recipe, and ask all of them the questions.

    Args:
        dataset: Corpus and questions.
        recipes: Names of recipes.
        options: How indexes are made; without a folder a temporary one is used. Settings go to the recipes that have
            them, never to the baselines.
        config: What is measured.
        progress: Told about every batch and question.
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

    given = settings_by_recipe(recipes, options.settings)
    rows = _Rows(finished)
    with shared(dataset, replace(options, settings=None)) as common:
        made = replace(common, recipe="flat")
        built = build(dataset, made, progress)
        for ranker in BASELINES:
            asked = replace(made, ranker=ranker, writes=False)
            rows.add(ask(dataset, Setup(ranker, build_s=built.seconds), asked, config, progress))
        for name in recipes:
            with apart(common, kept=options.folder is not None) as own:
                made = replace(own, recipe=name, settings=given[name])
                if name != "flat":
                    built = build(dataset, made, progress)
                setup = Setup(name, build_s=built.seconds, settings=given[name], calls=built.calls)
                rows.add(ask(dataset, setup, replace(made, writes=False), config, progress))
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
    dataset: DataSet,
    recipes: Sequence[str],
    options: IndexOptions,
    config: EvalConfig,
    progress: Progress,
    builds: int,
    finished: Callable[[EvalRow], None],
) -> list[EvalRow]:
    """`run_evaluation` with several seeds, each in a folder of its own, as one row per recipe with its spread.

    Args:
        dataset: Corpus and questions.
        recipes: Names of recipes.
        options: Their seed is the first one.
        config: What is measured.
        progress: Told about every batch and question.
        builds: How many.
        finished: Told about the rows over the builds so far when a later one fails.

    Returns:
        The rows of the first build; `EvalRow.repeats` has means and standard deviations over all builds.
    """
    from sire_core.evaluate.row_sets import with_spread

    first = options.seed or 0
    runs: list[list[EvalRow]] = []
    try:
        for seed in range(first, first + builds):
            place = None if options.folder is None else options.folder / f"seed-{seed}"
            made = replace(options, folder=place, seed=seed)
            runs.append([])
            runs[-1] = run_evaluation(dataset, recipes, made, config, progress, runs[-1].append)
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

    held = list(dict.fromkeys(built.name for built in manifest_of(folder).recipes))
    missing = [name for name in recipes if name not in held]
    if missing:
        raise ConfigurationError(f"{folder} does not hold {', '.join(missing)}; it holds {', '.join(held)}.")
    names = recipes or [name for name in held if name != "flat"]
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
            raise ConfigurationError(f"No question of {questions} has gold passages ('supporting') or answers.")
        copy = replace(copy, embedder=embedder_for(copy, place / "index"))
        if "flat" not in held:
            # Not as a command's change: its checks keep what models made for other recipes, which `flat` leaves alone.
            chunker = chunker_of(copy, manifest_of(folder))
            with Index(copy.folder, recipe="flat", embedder=copy.embedder, chunker=chunker) as index:
                index.update([])
        asked = [(Setup(ranker), replace(copy, recipe="flat", ranker=ranker)) for ranker in BASELINES]
        asked += [
            (Setup(name, settings=given[name]), replace(copy, recipe=name, settings=given[name])) for name in names
        ]
        rows = _Rows(results.table())
        for setup, found in asked:
            rows.add(ask(dataset, setup, found, config, progress))
        return with_intervals(rows.found)


def run_ablations(
    dataset: DataSet,
    recipe: str,
    options: IndexOptions,
    config: EvalConfig,
    progress: Progress,
    finished: Callable[[EvalRow], None] | None = None,
) -> list[EvalRow]:
    """Build every row of a recipe's paper in one folder, and ask all of them the questions.

    Args:
        dataset: Corpus and questions.
        recipe: A recipe with ablations; see `sire_core.recipes.ablations`.
        options: How indexes are made; without a folder a temporary one is used. Settings are those that every row of
            this recipe has beside its own.
        config: What is measured.
        progress: Told about every batch and question.
        finished: Told about every row as soon as it is there.

    Returns:
        The rows `dense` and `hybrid`, then one per ablation that can be made with these options, with the paper's
        figures in `Setup.paper`; a row that found what an earlier one of its recipe found is marked. `build_s` is what
        a row costs beyond the vectors and records of the rows before it.

    Raises:
        ConfigurationError: No ablations, nothing to ask, or the folder holds another corpus.
    """
    from sire_core.evaluate.bootstrap import with_intervals
    from sire_core.evaluate.row_sets import mark_same, with_tper
    from sire_core.evaluate.rows import Setup
    from sire_core.recipes import recipe_by_name
    from sire_core.recipes.ablation import CONTEXT, Ablation
    from sire_core.recipes.ablations import ablations_of

    given = settings_by_recipe([recipe], options.settings)[recipe]
    if config.answer is not None and config.depth is None:  # no -k: as many hits as the paper reads
        config = replace(config, answer=replace(config.answer, k=CONTEXT.get(recipe, config.answer.k)))
    baselines = [Ablation("baseline", ranker, "flat", {"ranker": ranker}) for ranker in ("dense", "hybrid")]
    rows = _Rows(finished)
    with shared(dataset, replace(options, settings=None)) as common:
        for ablation in (*baselines, *ablations_of(recipe)):
            if missing := _missing(ablation, common, config):
                note(f"{ablation.label}: left out, {missing}", "yellow")
                continue
            # Every setting is named: an unnamed one means what the folder was built with last.
            own = {**(given if ablation.recipe == recipe else {}), **ablation.settings}
            made = replace(common, recipe=ablation.recipe, settings=recipe_by_name(ablation.recipe, **own).config)
            built = build(dataset, made, progress)
            printed, figures = ablation.figures(dataset.name)
            paper = {"table": ablation.table, **({"dataset": printed, **figures} if printed else {})}
            setup = Setup(
                ablation.label,
                build_s=built.seconds,
                paper=paper,
                settings=own,
                family=ablation.recipe,
                calls=built.calls,
            )
            answer = config.answer and replace(config.answer, **ablation.answer)
            asked = replace(config, answer=answer)
            rows.add(ask(dataset, setup, replace(made, writes=False), asked, progress))
    return mark_same(with_tper(with_intervals(rows.found)))


def _missing(ablation: Ablation, options: IndexOptions, config: EvalConfig) -> str:
    """What a row would need that is not there, for people; empty when it can be made."""
    if ablation.answer and config.answer is None:
        return "it is about answers: --answer single --llm MODEL"
    if ablation.needs == "tokens" and not hasattr(options.embedder, "embed_tokens"):
        return "it needs an embedder with token vectors: --embedder st:NAME_OR_FOLDER"
    if ablation.needs == "model" and options.language_model is None:
        return "it needs a language model: --llm MODEL"
    if ablation.needs == "torch" and find_spec("torch") is None:
        return 'it needs torch: pip install "sire-rag[torch]"'
    if ablation.needs == "umap" and find_spec("umap") is None:
        return 'it needs the reference clustering: pip install "sire-rag[paper]"'
    return ""


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
    from sire_core.organize.trees.settings import TreeSettings

    given = dict(options.settings or {})
    if set(given) - {"clustering"}:
        raise ConfigurationError("--clusters has one setting: --set clustering=paper (or leiden).")
    method = TreeSettings(**given).clustering
    model = options.language_model
    topics = None if model is None else run_sync(model_topics(dataset, model, progress))
    embedder = resolve_embedder(options.embedder)
    return run_sync(evaluate_clusters(dataset, embedder, topics=topics, seed=options.seed or 0, method=method))
