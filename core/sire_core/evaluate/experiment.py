"""`Experiment`: recipes and baselines that are built over one data set, asked its questions and measured.

All rows share one folder, so that every vector and every extraction record is made once.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sire_core.documents.chunker import SentenceChunker
from sire_core.errors import ConfigurationError, ModelError, StorageError
from sire_core.evaluate.bootstrap import mark_same, with_dense_notes, with_intervals, with_spread, with_tper
from sire_core.evaluate.datasets import check_measurable
from sire_core.evaluate.delivered import as_pieces
from sire_core.evaluate.retrieval import evidence_match, span_answers
from sire_core.evaluate.row_list import EvalRows
from sire_core.evaluate.rows import BASELINES, OF_PIECES, EvalRow, Setup
from sire_core.evaluate.runner import EvalConfig, evaluate
from sire_core.index import Index
from sire_core.index_options import MAX_FAILURE_RATIO, WORKERS
from sire_core.models.embedders import resolve_embedder
from sire_core.models.sync import run_sync
from sire_core.models.usage import CostRange, Price, UsageReport
from sire_core.progress import ProgressLike, progress_of
from sire_core.protocols.building import DEFAULT_PRESET
from sire_core.recipes.published import Ablation, ablations_of, presets_of, published_of
from sire_core.recipes.registry import factory_of, recipe_by_name, recipe_with, split_settings
from sire_core.storage.folder import file_lock
from sire_core.storage.index_files import IndexFiles, read_manifest
from sire_core.storage.manifest import Manifest
from sire_core.text.pluralize import count

if TYPE_CHECKING:
    from sire_core.evaluate.answer_metrics import AnsweredQuestion
    from sire_core.evaluate.datasets import DataSet
    from sire_core.protocols import Embedder, Extractor, LanguageModel, Progress, Recipe, WrapModel
    from sire_core.search.view import PoolView


_TEMPORARY = "sire-eval-"
_STAGES = ("extraction", "summaries", "searches", "answers")
_PASSAGES_PER_BATCH = 4096
_LOCK = "in-use.lock"
_JUST_MADE = 60.0  # Seconds in which a folder without a held lock may belong to a process that has not locked it yet

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """A row before it is built."""

    label: str  # What the row is called
    recipe: Recipe | str  # What is built and searched; of an index that is only asked, perhaps a name
    settings: Mapping[str, Any] = field(default_factory=dict)  # Settings that the row shows
    ablation: Ablation | None = None  # The row of a paper that it repeats
    k: int | None = None  # Hits that the reader of that paper sees; None takes what is configured
    note: str = ""  # What people should know of how the row is made


@dataclass(frozen=True, slots=True)
class Experiment:
    """Recipes and baselines over one data set.

    Example:
        >>> from sire_core.evaluate import Experiment, load_dataset
        >>> rows = Experiment(load_dataset("data/ops"), recipes=["sire", "pagerank"]).run()  # doctest: +SKIP
        >>> rows[-1].recall_passages(5), rows[-1].as_json()["interval"]  # doctest: +SKIP

    Attributes:
        dataset: Corpus and questions; see `load_dataset`. With `index`, its documents are those of the index; see
            `load_questions`.
        recipes: Names or recipes. With `index`, names of those that it holds; none means all of them.
        baselines: Rankers of `flat` (`bm25`, `dense`, `hybrid`, `tfidf`, `late`) whose rows come first.
        repeats: Builds with different seeds; rows have the means over all builds, and their spread.
        ablations: Measure the rows of each recipe's paper instead of the recipe; see `sire_core.recipes.published`.
        tables: With `ablations` only the rows of these tables of the papers; none means all.
        settings: Settings for every recipe given by name that has them; of a search where `index` is given.
        config: What is measured.
        budgets: Tokens within which recall of required evidence is measured, too, as `EvalConfig.budgets`; rows of
            BM25 and hybrid search over pieces of 450 characters are added to the baselines.
        piece_rankers: Rankers of these rows; `bm25` alone embeds no piece with `embedder`.
        folder: Where indexes are built; None takes a temporary folder.
        index: An index folder that is asked as it is; nothing is built, and the folder is only read.
        embedder: As in `Index`; None takes that of `folder`, or the default.
        chunk_tokens: Longest passage; None cuts whole documents as an index does, and nothing else.
        extractor: As in `Index`.
        language_model: Extracts and summarizes; with `config.model`, that one is asked in searches.
        extraction: As in `Index`.
        wrap_model: As in `Index`.
        seed: Seed of every random choice of a build.
        workers: Model calls in flight at once.
        max_failure_ratio: Share of failed passages above which a build stops.
        progress: As in `Index`.
        log: Called with a line of text about usage of models, failures and rows that are left out. Default: logs it.
        on_row: Called with each row as soon as it is finished.
    """

    dataset: DataSet
    recipes: Sequence[str | Recipe] = ("sire",)
    baselines: Sequence[str] = BASELINES
    repeats: int = 1
    ablations: bool = False
    tables: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    config: EvalConfig = field(default_factory=EvalConfig)
    budgets: Sequence[int] = ()
    piece_rankers: Sequence[str] = ("bm25", "hybrid")
    folder: Path | None = None
    index: Path | None = None
    embedder: Embedder | str | None = None
    chunk_tokens: int | None = None
    extractor: Extractor | None = None
    language_model: LanguageModel | None = None
    extraction: str | None = None
    wrap_model: WrapModel | None = None
    seed: int = 0
    workers: int = WORKERS
    max_failure_ratio: float = MAX_FAILURE_RATIO
    progress: ProgressLike = None
    log: Callable[[str], None] = _logger.warning
    on_row: Callable[[EvalRow], None] = lambda _: None

    def run(self) -> EvalRows:
        """See `arun`."""
        return run_sync(self.arun())

    async def arun(self) -> EvalRows:
        """Build the baselines and recipes and ask all of them the questions."""
        return EvalRows(await self._rows())

    def planned(self) -> list[PlannedRow]:
        """Decide on every row before the first is built; a paper's rows that lack something are left out and logged.

        Raises:
            ConfigurationError: A row makes no sense, or needs what is not installed.
        """
        experiment = self._answerable()
        plan = plan_rows(
            self.recipes,
            self.settings,
            baselines=self.baselines,
            ablations=self.ablations,
            tables=self.tables,
            log=self.log,
        )
        missing = [_missing(experiment, row) for row in plan]
        for row, reason in zip(plan, missing, strict=True):
            if reason and row.ablation is None:
                raise ConfigurationError(f"{row.label} cannot be built: {reason}.")
            if reason:
                self.log(f"{row.label}: left out, {reason}")
        return [row for row, reason in zip(plan, missing, strict=True) if not reason]

    def cost(self, price: Price | None = None) -> dict[str, CostRange]:
        """See `acost`."""
        return run_sync(self.acost(price))

    async def acost(self, price: Price | None = None) -> dict[str, CostRange]:
        """Expect calls, tokens and price of all rows, by stage: extraction, summaries, searches, answers.

        Asks the model nothing. Stages without calls are left out.
        """
        from sire_core.evaluate.answer_eval import AnswerConfig, answer_cost

        costs, extraction = dict.fromkeys(_STAGES, CostRange().priced(price)), dict[str, CostRange]()
        questions = self.dataset.sample(self.config.limit, self.config.seed).measurable
        for row in self.planned():
            with _open(self, row.recipe, self.folder) as index:
                expected = await index.aestimate(self.dataset.documents, price)
            before = extraction.get(expected.native, expected.extraction)
            extraction[expected.native] = max(before, expected.extraction, key=lambda cost: cost.calls)
            costs["summaries"] += expected.summaries
            config = _config_of(self, row)
            if config.answer is not None:
                answerable = sum(bool(question.answers) for question in questions)
                costs["answers"] += answer_cost(self.dataset, answerable, 1, config.answer).priced(price)
            settings = {} if isinstance(row.recipe, str) else row.recipe.config
            searching = sum(value == "model" for value in settings.values())  # one call of a search each
            costs["searches"] += answer_cost(self.dataset, len(questions), searching, AnswerConfig(k=5)).priced(price)
        costs["extraction"] = sum(extraction.values(), costs["extraction"])
        return {stage: cost for stage, cost in costs.items() if cost.calls[1]}

    def _answerable(self) -> Experiment:
        """The experiment, without answers where no question has accepted ones."""
        if self.config.answer is None or any(question.answers for question in self.dataset.measurable):
            return self
        self.log(
            f"{self.dataset.name} has no accepted answers: the model is asked for none, and rows have no EM or F1."
        )
        return replace(self, config=replace(self.config, answer=None))

    async def _rows(self) -> list[EvalRow]:
        if self.budgets:
            config = replace(self.config, budgets=tuple(self.budgets))
            return await replace(self, config=config, budgets=()).arun()
        if self.repeats > 1:
            return await _run_repeats(self)
        experiment = self._answerable()
        check_measurable(self.dataset.questions, self.dataset.name)
        if experiment.config.budgets and not any(q.needs or span_answers(q.answers) for q in self.dataset.measurable):
            raise ConfigurationError(
                f"{self.dataset.name} has neither quotes ('needs') nor answers that a text can hold, whose recall "
                "within budgets is measured. Leave budgets out; R@budget is of gold documents, within a single budget."
            )
        return await (_run_builds(experiment) if self.index is None else _run_existing(experiment, self.index))


async def _run_repeats(experiment: Experiment) -> list[EvalRow]:
    if experiment.index is not None:
        raise ConfigurationError("repeats is for recipes that are built, not for an index.")
    runs: list[list[EvalRow]] = []
    log = cache(experiment.log)  # what is left out is left out of every build
    try:
        for seed in range(experiment.seed, experiment.seed + experiment.repeats):
            folder = None if experiment.folder is None else experiment.folder / f"seed-{seed}"
            runs.append([])
            run = replace(experiment, folder=folder, seed=seed, repeats=1, log=log, on_row=runs[-1].append)
            runs[-1] = await run.arun()
    except BaseException:
        for row in with_spread(runs):
            experiment.on_row(row)
        raise
    return with_intervals(with_spread(runs))


async def _run_builds(experiment: Experiment) -> list[EvalRow]:
    """Build and ask every planned row."""
    rows: list[EvalRow] = []
    with temporary_folder(experiment.folder) as folder:
        _refuse_other_corpus(experiment.dataset, folder)
        resolved = replace(experiment, embedder=_embedder(experiment.embedder, folder))
        plan = resolved.planned()
        flat: Setup | None = None
        for row in plan:
            if flat is not None and row.ablation is None and _name(row.recipe) == "flat":
                setup = replace(flat, recipe=row.label, settings=row.settings)
                rows.append(await _ask(resolved, row, setup, folder))
                continue
            is_flat = _name(row.recipe) == "flat"
            with _own_copy(resolved, folder, shares=is_flat or experiment.ablations) as build_folder:
                setup = await _build(resolved, row, build_folder)
                flat = setup if is_flat else flat
                rows.append(await _ask(resolved, row, setup, build_folder))
                if is_flat and resolved.config.budgets and resolved.baselines:
                    rows += await _piece_rows(resolved, build_folder)
    rows = with_intervals(with_dense_notes(rows))
    return mark_same(with_tper(rows)) if experiment.ablations else rows


async def _piece_rows(experiment: Experiment, folder: Path) -> list[EvalRow]:
    """BM25 and hybrid search over small pieces of the passages of an index."""
    with _open(experiment, "flat", folder) as index:
        pieces = as_pieces(await asyncio.to_thread(index.documents))
    dataset = replace(experiment.dataset, documents=tuple(pieces), whole=False)
    of_pieces = replace(experiment, dataset=dataset, folder=None, chunk_tokens=None)
    if set(experiment.piece_rankers) <= {"bm25"}:
        of_pieces = replace(of_pieces, embedder="lexical")  # an index has vectors, which BM25 does not read
    rows: list[EvalRow] = []
    with temporary_folder(None) as own_folder:
        for ranker in experiment.piece_rankers:
            row = PlannedRow(f"{ranker}{OF_PIECES}", recipe_by_name("flat", ranker=ranker))
            rows.append(await _ask(of_pieces, row, await _build(of_pieces, row, own_folder), own_folder))
    return rows


async def _run_existing(experiment: Experiment, path: Path) -> list[EvalRow]:
    """Ask a copy of an index: the baselines need the recipe `flat`, which may be missing and costs nothing."""
    if experiment.ablations:
        raise ConfigurationError("An index is only read: leave ablations out.")
    manifest = read_manifest(path)
    plan = _plan_of_index(path, manifest, experiment.recipes, experiment.settings, experiment.baselines)
    with temporary_folder(None) as copy:
        with Index(path, embedder=experiment.embedder) as index:
            await asyncio.to_thread(index.save, copy)
        resolved = replace(experiment, embedder=_embedder(experiment.embedder, copy))
        if all(built.name != "flat" for built in manifest.recipes):
            with Index(copy, recipe="flat", embedder=resolved.embedder) as index:
                await index.aupdate([])
        rows: list[EvalRow] = []
        for number, row in enumerate(plan, 1):
            rows.append(await _ask(resolved, row, Setup(row.label, settings=row.settings), copy))
            if resolved.config.budgets and number == len(resolved.baselines):
                rows += await _piece_rows(resolved, copy)
    return with_intervals(with_dense_notes(rows))


def _open(experiment: Experiment, recipe: Recipe | str, folder: Path | None, progress: Progress | None = None) -> Index:
    chunker: SentenceChunker | str | None = "sentences" if experiment.dataset.whole else None
    if experiment.chunk_tokens is not None:
        chunker = SentenceChunker(experiment.chunk_tokens, overlap_tokens=experiment.chunk_tokens // 8)  # as 64 of 512
    names = ("language_model", "embedder", "extractor", "extraction", "wrap_model", "seed", "workers")
    same: dict[str, Any] = {name: getattr(experiment, name) for name in (*names, "max_failure_ratio")}
    return Index(folder, recipe=recipe, chunker=chunker, progress=progress, **same)


async def _build(experiment: Experiment, row: PlannedRow, folder: Path) -> Setup:
    name = _name(row.recipe)
    with _open(experiment, row.recipe, folder, progress_of(experiment.progress)) as index:
        start = time.perf_counter()
        report = await index.abuild(experiment.dataset.documents)
        seconds = time.perf_counter() - start
    for stage, used in report.usage.items():
        experiment.log(f"{name}: {UsageReport({stage: used}).describe()}")
    if report.failures:
        first = report.failures[0]
        failed = count(len(report.failures), "passage or summary", "passages or summaries")
        experiment.log(f"{name}: {failed} failed, first {first.where}: {first.reason}")
    paper: Mapping[str, Any] = {}
    if row.ablation is not None:
        printed, figures = row.ablation.figures(experiment.dataset.name)
        paper = {"table": row.ablation.table, **({"dataset": printed, **figures} if printed else {})}
    return Setup(
        row.label,
        build_s=seconds,
        paper=paper,
        settings=row.settings,
        family="" if row.ablation is None else row.ablation.recipe,
        calls={stage: used.calls for stage, used in report.usage.items() if used.calls},
        note=row.note,
    )


async def _ask(experiment: Experiment, row: PlannedRow, setup: Setup, folder: Path) -> EvalRow:
    """Ask a recipe that is built the questions, and have them answered where the configuration says so."""
    from sire_core.evaluate.answer_eval import answer_scores
    from sire_core.models.usage_meter import UsageMeter, with_meter

    config, progress = _config_of(experiment, row), progress_of(experiment.progress)
    meter, wrap = UsageMeter(), experiment.wrap_model
    counted = partial(with_meter, meter=meter)
    asking = replace(experiment, wrap_model=lambda model: counted(model if wrap is None else wrap(model)))
    if experiment.language_model is not None and config.model is not None:
        asking = replace(asking, language_model=counted(config.model))
    sample = experiment.dataset.sample(config.limit, config.seed)
    with _open(asking, row.recipe, folder) as index:
        # The first search opens the pool and makes the inverted index: not the time of a query.
        await index.asearch(experiment.dataset.measurable[0].question, 1)
        snapshot = await index.asnapshot()
        setup = _described(setup, index.stats(), snapshot.view, meter.report().total.calls)
        is_preset = snapshot.recipe.config.get("preset", DEFAULT_PRESET) != DEFAULT_PRESET
        if is_preset and setup.extraction.startswith("rules"):
            setup = setup.with_note("extraction by rules, without a model")
        stage = f"questions to {setup.recipe}"
        result = await evaluate(
            index, experiment.dataset, config, setup=setup, progress=lambda _, *at: progress(stage, *at)
        )
        result = replace(result, evidence_match=await evidence_match(index, sample))
        if config.missing and config.model is not None:
            from sire_core.evaluate.analysis import missing_triples

            missing = await missing_triples(index, sample, config.model, config.missing, config.seed, progress)
            result = replace(result, analysis={"missing": missing} if missing else {})
        if config.answer is not None:
            answered = await _answers(experiment, index, sample, setup, config)
            scores = {"via": config.answer.via, "reader": config.answer.reader.prompt, **answer_scores(answered)}
            result = replace(result, answers=scores, answered=answered)
    experiment.on_row(result)
    return result


async def _answers(
    experiment: Experiment, index: Index, sample: DataSet, setup: Setup, config: EvalConfig
) -> tuple[AnsweredQuestion, ...]:
    from sire_core.evaluate.answer_eval import answer_questions

    assert config.answer is not None
    stage, progress = f"answers from {setup.recipe}", progress_of(experiment.progress)
    answered = await answer_questions(index, sample, config.answer, lambda _, *at: progress(stage, *at))
    failed = sum(answer.stop == "model_failed" for answer in answered)
    if answered and failed == len(answered):
        raise ModelError(
            f"{setup.recipe}: none of {count(len(answered), 'question')} was answered, the model failed every time."
            " Check --base-url, --llm and the key with: sire ask."
        )
    if failed:
        experiment.log(f"{setup.recipe}: the model failed on {failed:,} of {count(len(answered), 'question')}")
    if unread := sum(answer.unread for answer in answered):
        readings = count(unread, "reading of a question", "readings of questions")
        experiment.log(f"{setup.recipe}: D-F1 counts {readings} as 0, for which the model failed")
    return answered


def _config_of(experiment: Experiment, row: PlannedRow) -> EvalConfig:
    """The configuration of a row; answers of a paper's row are read from as many hits as the paper reads."""
    config = experiment.config
    if config.answer is None:
        return config
    k = config.answer.k if config.depth is not None or row.k is None else row.k
    answer = {} if row.ablation is None else row.ablation.answer
    return replace(config, answer=replace(config.answer, **{"k": k, **answer}))


def _missing(experiment: Experiment, row: PlannedRow) -> str:
    """The missing prerequisite of a row, for people; empty when there is none."""
    ablation = row.ablation or Ablation("", row.label, _name(row.recipe))
    settings = {} if isinstance(row.recipe, str) else row.recipe.config
    built_with = {"paper": "umap", "neural": "torch"}
    needs = ablation.needs or built_with.get(settings.get("clustering") or settings.get("abstractor") or "", "")
    if ablation.answer and experiment.config.answer is None:
        has_answers = any(question.answers for question in experiment.dataset.measurable)
        return "it is about answers" + (
            ": --answer single --llm MODEL" if has_answers else ", which the data set lacks"
        )
    has_tokens, has_model = hasattr(experiment.embedder, "embed_tokens"), experiment.language_model is not None
    is_there, what = {
        "tokens": (has_tokens, "an embedder with token vectors: --embedder onnx:NAME_OR_FOLDER"),
        "model": (has_model, "a language model: --llm MODEL"),
        "torch": (find_spec("torch") is not None, 'torch: pip install "sire-rag[torch]"'),
        "umap": (find_spec("umap") is not None, 'the reference clustering: pip install "sire-rag[paper]"'),
    }.get(needs, (True, ""))
    return "" if is_there else f"it needs {what}"


@contextmanager
def _own_copy(experiment: Experiment, folder: Path, *, shares: bool) -> Iterator[Path]:
    """A copy of the folder for a recipe that shares only the vectors with others: its build time is its own."""
    if shares or experiment.folder is not None or experiment.language_model is not None:
        yield folder
        return
    with temporary_folder(None) as copy:
        if folder.exists():
            shutil.copytree(folder, copy)
        yield copy


def plan_rows(
    recipes: Sequence[str | Recipe],
    settings: Mapping[str, Any],
    *,
    baselines: Sequence[str] = BASELINES,
    ablations: bool = False,
    tables: Sequence[str] = (),
    log: Callable[[str], None] = _logger.warning,
) -> list[PlannedRow]:
    """Decide on every row before the first is built."""
    by_recipe = split_settings([name for name in recipes if isinstance(name, str)], settings)
    made_recipes = {name: recipe_by_name(name, **values) for name, values in by_recipe.items()}
    if ablations:
        return _plan_ablations([_name(recipe) for recipe in recipes], settings, tables, log)
    rows = [PlannedRow(name, recipe_by_name("flat", ranker=name)) for name in baselines]
    for recipe in recipes:
        if isinstance(recipe, str):
            k = published_of(recipe).context if "preset" in by_recipe[recipe] else None
            rows.append(PlannedRow(recipe, made_recipes[recipe], by_recipe[recipe], k=k))
        else:
            rows.append(PlannedRow(recipe.name, recipe, _changed(recipe)))
    return rows


def _plan_ablations(
    recipes: Sequence[str], settings: Mapping[str, Any], tables: Sequence[str], log: Callable[[str], None]
) -> list[PlannedRow]:
    def plan(name: str, ablation: Ablation) -> PlannedRow | None:
        try:
            return replace(_plan_ablation(ablation, settings), k=published_of(name).context)
        except ConfigurationError as error:
            log(f"{ablation.label}: left out, {error}")
            return None

    rows = [
        plan(name, ablation)
        for name in recipes
        for ablation in ablations_of(name)
        if not tables or not set(tables).isdisjoint(ablation.table.split(", "))
    ]
    baselines = [Ablation("baseline", ranker, "flat", {"ranker": ranker}) for ranker in ("dense", "hybrid")]
    first = published_of(recipes[0]).context if recipes else None
    return [*(replace(_plan_ablation(ablation, {}), k=first) for ablation in baselines), *filter(None, rows)]


def _plan_ablation(ablation: Ablation, settings: Mapping[str, Any]) -> PlannedRow:
    """A paper's row beside the given settings; an error where they do not go together."""
    config = recipe_by_name(ablation.recipe).config
    others = {key: value for key, value in settings.items() if key in config and key not in ablation.settings}
    if others.get("preset") not in presets_of(ablation.recipe):
        others.pop("preset", None)
    recipe = recipe_with(ablation.recipe, ablation.settings, others)
    idle = [key for key, value in others.items() if recipe.config[key] != value]  # these have their defaults again
    listed = {**{key: value for key, value in others.items() if key not in idle}, **ablation.settings}
    note = f"without {', '.join(idle)}, idle here" if idle else ""
    return PlannedRow(ablation.label, recipe, listed, ablation, note=note)


def _plan_of_index(
    path: Path,
    manifest: Manifest,
    recipes: Sequence[str | Recipe],
    settings: Mapping[str, Any],
    baselines: Sequence[str],
) -> list[PlannedRow]:
    """Rows of recipes that an index holds; none named means all but `flat`, which is a baseline."""
    recipe_names = manifest.recipe_names
    missing = [_name(recipe) for recipe in recipes if _name(recipe) not in recipe_names]
    if missing:
        raise ConfigurationError(f"{path} does not hold {', '.join(missing)}; it holds {', '.join(recipe_names)}.")
    chosen = list(recipes) or [name for name in recipe_names if name != "flat"]
    by_recipe = split_settings([name for name in chosen if isinstance(name, str)], settings)
    rows = [PlannedRow(name, recipe_by_name("flat", ranker=name)) for name in baselines]
    for recipe in chosen:
        if not isinstance(recipe, str):
            rows.append(PlannedRow(recipe.name, recipe, _changed(recipe)))
        elif not by_recipe[recipe]:
            rows.append(PlannedRow(recipe, recipe))
        else:
            changed = recipe_with(recipe, by_recipe[recipe], manifest.find(None, recipe).config)
            if not any(built.builds_like(changed) for built in manifest.recipes):
                raise ConfigurationError(
                    f"{', '.join(by_recipe[recipe])} of {recipe} changes what is built; {path} was built with "
                    "another value."
                )
            rows.append(PlannedRow(recipe, changed, by_recipe[recipe]))
    return rows


def _name(recipe: Recipe | str) -> str:
    return recipe if isinstance(recipe, str) else recipe.name


def _changed(recipe: Recipe) -> dict[str, Any]:
    """The preset of a recipe, and its settings that are not the defaults of its name and preset."""
    make, preset = factory_of(recipe.name), recipe.config.get("preset", DEFAULT_PRESET)
    named = {} if preset == DEFAULT_PRESET else {"preset": preset}
    defaults = make(**named).config if make else {}
    others = {key: value for key, value in recipe.config.items() if key not in defaults or defaults[key] != value}
    return {**named, **others}


def _described(setup: Setup, stats: Mapping[str, Any], view: PoolView, calls: int) -> Setup:
    """The setup with what the index says of itself, and the calls of one search."""
    return replace(
        setup,
        embedder=stats["embedder"],
        extraction=stats["extraction"] or "none",
        pool=stats["units"],
        passages=stats["passages"],
        perspectives=stats.get("perspectives", {}),
        calls={**setup.calls, **({"search": calls} if calls else {})},
        storage=_storage(view),
    )


def _storage(view: PoolView) -> dict[str, int]:
    """Bytes of vectors and texts in a pool by kind of unit."""
    width = view.matrix.shape[1] * view.matrix.dtype.itemsize
    sizes: Counter[str] = Counter()
    for start in range(0, view.size, _PASSAGES_PER_BATCH):
        for unit in view.units(range(start, min(start + _PASSAGES_PER_BATCH, view.size))):
            sizes[unit.kind.value] += width + len(unit.index_text.encode("utf-8", "replace"))
    return dict(sorted(sizes.items()))


def _embedder(embedder: Embedder | str | None, folder: Path) -> Embedder:
    """The embedder that is given, else the one that the folder was built with, else the default."""
    return resolve_embedder(embedder or read_manifest(folder).embedder_spec or None)


def _refuse_other_corpus(dataset: DataSet, folder: Path) -> None:
    """Refuse a folder with documents of another corpus: the build would remove them."""
    if not read_manifest(folder).generation:
        return
    with closing(IndexFiles(folder)) as files:
        others = set(files.store.documents()) - {document.id for document in dataset.documents}
    if others:
        raise ConfigurationError(
            f"{folder} holds {count(len(others), 'document')} that {dataset.name} does not have; the build would "
            "remove them. Name another folder."
        )


@contextmanager
def temporary_folder(wanted: Path | None) -> Iterator[Path]:
    """The folder that was named, or a temporary one."""
    if wanted is not None:
        yield wanted
        return
    _remove_left_behind(Path(tempfile.gettempdir()))
    # An interrupted build may still be writing when the folder goes.
    with (
        tempfile.TemporaryDirectory(prefix=_TEMPORARY, ignore_cleanup_errors=True) as folder,
        file_lock(Path(folder), _LOCK),
    ):
        yield Path(folder) / "index"


def _remove_left_behind(folder: Path) -> None:
    for lock in folder.glob(f"{_TEMPORARY}*/{_LOCK}"):
        with suppress(OSError, StorageError):  # it is in use, or gone
            if time.time() - lock.stat().st_mtime > _JUST_MADE:
                with file_lock(lock.parent, _LOCK):
                    shutil.rmtree(lock.parent, ignore_errors=True)
