"""`sire eval`: recipes and baselines measured on a data set or an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sire_core.cli.eval_options import (
    ComparisonOptions,
    DataSetOrIndex,
    EvalAnswerOptions,
    MeasureOptions,
    QuestionOptions,
    ReportOptions,
    TableOptions,
    check_index,
    recipe_names,
)
from sire_core.cli.model_options import ModelOptions, eval_models
from sire_core.cli.option_groups import grouped
from sire_core.cli.options import IndexOptions, check_target, manifest_of, open_index
from sire_core.cli.output import note, output_width, reporting, say, write_rows
from sire_core.evaluate.datasets import DataSet, load_dataset, load_questions
from sire_core.text.pluralize import count

if TYPE_CHECKING:
    from sire_core.evaluate.experiment import Experiment
    from sire_core.evaluate.gate import Gate
    from sire_core.evaluate.rows import EvalRow
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.models.usage import Price
    from sire_core.protocols import LanguageModel, Progress


class Results:
    """Prints and writes the rows of an evaluation; with `ablations`, as the tables of papers."""

    def __init__(self, report: TableOptions, *, ablations: bool) -> None:
        self._report = report
        self._ablations = ablations
        self._started: list[list[EvalRow]] = []

    def begin(self, dataset: DataSet, rows: int, config: EvalConfig, price: Price | None, *, cut: bool = False) -> None:
        """Say on stderr what is measured on what, and what answers cost."""
        from sire_core.evaluate.rows import corpus_size

        measurable = dataset.sample(config.limit, config.seed).measurable
        sample = f"{len(measurable):,} of {count(len(dataset.measurable), 'question')}"
        size = corpus_size(len(dataset.documents), 0 if cut else dataset.passages)
        note(f"{dataset.name}: {size}, {sample}.")
        answerable = sum(bool(question.answers) for question in measurable)
        if config.answer is not None and answerable:
            from sire_core.evaluate.answer_eval import answer_cost

            cost = answer_cost(dataset, answerable, rows, config.answer).priced(price)
            note(f"Answers: {cost.describe()}, less what is stored already. --max-calls and --max-tokens bound it.")
        if dataset.unread:
            first = "; ".join(f"{failure.where}: {failure.reason}" for failure in dataset.unread[:1])
            note(f"{count(len(dataset.unread), 'file')} skipped, such as {first}", "yellow")

    def table(self) -> Callable[[EvalRow], None]:
        """Start a table; what is returned is told of every row that is finished."""
        self._started.append([])
        return self._started[-1].append

    @contextmanager
    def shown_on_failure(self) -> Iterator[None]:
        """Write and show the rows that were finished when the evaluation does not come to its end."""
        try:
            yield
        except BaseException:
            tables = [table for table in self._started if table]
            if tables:
                rows = sum(map(len, tables))
                note(f"The evaluation did not come to its end; {count(rows, 'row')} of it:", "yellow")
                self.say(tables)
            raise

    def say(self, tables: Sequence[Sequence[EvalRow]]) -> None:
        """Write the rows and print the tables."""
        from sire_core.evaluate.report import format_ablations, format_table

        self._write(tables)
        width = None if self._report.wide else output_width()
        blocks = [format_ablations(table) if self._ablations else format_table(table, width) for table in tables]
        say("\n\n".join(blocks))
        if width is not None and any("\nNot shown: " in block for block in blocks):
            note("--wide shows all columns, and --json FILE writes them.")

    def say_more(self, tables: Sequence[Sequence[EvalRow]], report: ReportOptions) -> None:
        """Print the other tables; write the rows again, with the judgements."""
        from sire_core.evaluate.report import format_analysis, format_comparison, format_groups, format_kinds

        self._write(tables)
        for text in filter(None, map(format_analysis, tables)):
            say("\n" + text)
        if report.by_type:
            say("\n" + "\n\n".join(map(format_groups, tables)))
        if report.compare:
            say("\n" + "\n\n".join(map(format_comparison, tables)))
        if report.by_kind:
            say("\n" + format_kinds([row for table in tables for row in table]))

    def _write(self, tables: Sequence[Sequence[EvalRow]]) -> None:
        rows = [row for table in tables for row in table]
        if self._report.json_file is not None:
            write_rows(self._report.json_file, rows)
        if self._report.export is not None:
            from sire_core.evaluate.row_list import EvalRows

            EvalRows(rows).export(self._report.export)


@grouped
def eval_(
    dataset_dir: DataSetOrIndex,
    asking: QuestionOptions,
    compared: ComparisonOptions,
    measuring: MeasureOptions,
    answering: EvalAnswerOptions,
    calls: ModelOptions,
    report: ReportOptions,
) -> None:
    """Measure recipes on a data set or an index.

    The baselines bm25, dense and hybrid over the passages are measured, too. All rows share the vectors of the
    passages, whose time counts in the build of the baselines; with --llm or --to they also share extraction. R@k is
    measured on the passages that a search returns. `vs hybrid` is the difference of R@5 with its 95 % interval over the
    questions; a star means that chance is below 5 %, corrected for the number of rows.

    With --ablations the rows are those of the recipe's paper. The published answers came from other models; --answer
    adds the EM and F1 of yours.

    Example: sire eval data/musique -r raptor,sirerag --limit 50 --json rows.json

    With --fail-under or --baseline the exit code is 1 if a recipe finds less, so that a build server can tell.

    For an existing index, with your own questions (nothing is built, and the folder is only read): sire eval my-index
    --questions questions.jsonl
    """
    from sire_core.evaluate.report import check_comparison

    report.check(asking, answering, measuring, calls.llm)
    check_index(dataset_dir, asking, builds=compared.builds)
    check_target(IndexOptions(compared.to if compared.repeats == 1 else None, embedder=compared.embedder))
    answering = answering.like_paper(compared.values)
    names = _names(dataset_dir, asking, compared)
    builds = not (answering.reader_only or asking.file is not None)
    with eval_models(
        calls,
        answering.judge,
        to=compared.to,
        answers=answering.answers,
        builds=builds,
        reader_only=answering.reader_only,
    ) as models:
        config = report.gate.widen(measuring.config(asking, answering, models.asked, calls.workers))
        results = Results(report, ablations=compared.ablations)
        with results.shown_on_failure(), reporting() as progress:
            dataset = _dataset(dataset_dir, asking, compared, models.asked, progress)
            if report.compare:
                check_comparison(dataset.name)
            is_cut = compared.chunk_tokens is not None or dataset.whole or asking.sentence_groups
            rows = _row_count(names, ablations=compared.ablations)
            results.begin(dataset, rows, config, calls.price(), cut=is_cut)
            experiment = compared.experiment(dataset, models, calls)
            index = dataset_dir if asking.file else None
            experiment = replace(experiment, config=config, progress=progress, index=index)
            others = _runs(report.runs or (), dataset, config)
            tables = [[*replace(one, on_row=results.table()).run(), *others] for one in _tables_of(experiment, names)]
        results.say(tables)
        tables = _judged(tables, names, models.judge)
        results.say_more(tables, report)
    _exit_below(report.gate, [row for table in tables for row in table])


def _exit_below(gate: Gate, rows: Sequence[EvalRow]) -> None:
    """End with code 1 where a recipe finds less than `--fail-under` or `--baseline` asks for."""
    if failures := gate.failures(rows):
        for failure in failures:
            note(failure, "red")
        raise typer.Exit(1)


def _names(folder: Path, asking: QuestionOptions, compared: ComparisonOptions) -> list[str]:
    """Recipes that are measured; every row of theirs is settled before anything is built."""
    if asking.file is not None and not compared.recipes:
        return [name for name in manifest_of(folder).recipe_names if name != "flat"]
    names = recipe_names(compared.recipes, ablations=compared.ablations)
    if asking.file is None:
        from sire_core.evaluate.experiment import plan_rows

        plan_rows(names, compared.values, ablations=compared.ablations, log=lambda _: None)
    return names


def _row_count(names: Sequence[str], *, ablations: bool) -> int:
    """Rows that are measured at most; with ablations every table has two baselines."""
    from sire_core.evaluate.rows import BASELINES
    from sire_core.recipes.published import ablations_of

    return sum(2 + len(ablations_of(name)) for name in names) if ablations else len(BASELINES) + len(names)


def _dataset(
    folder: Path, asking: QuestionOptions, compared: ComparisonOptions, model: LanguageModel | None, progress: Progress
) -> DataSet:
    """The data set as it was asked for, or the questions of a file over the documents of an index."""
    if asking.file is None:
        dataset = asking.of(load_dataset(folder, asking.chunks))
    else:
        with open_index(IndexOptions(folder=folder, embedder=compared.embedder)) as index:
            documents = index.documents()
        dataset = load_questions(asking.file, documents, folder.resolve().name).part(asking.part)
    return _group_sentences(dataset, model, progress) if asking.sentence_groups else dataset


def _tables_of(experiment: Experiment, names: Sequence[str]) -> list[Experiment]:
    """The experiment, or with ablations one for each recipe: each paper has its own table."""
    if not experiment.ablations:
        return [replace(experiment, recipes=names)]
    from sire_core.recipes.registry import split_settings

    settings_by_recipe = split_settings(names, experiment.settings)
    return [replace(experiment, recipes=[name], settings=settings_by_recipe[name]) for name in names]


def _runs(files: Sequence[Path], dataset: DataSet, config: EvalConfig) -> list[EvalRow]:
    from sire_core.evaluate.trec_files import read_run, row_of_run

    sample = dataset.sample(config.limit, config.seed)
    return [row_of_run(sample, read_run(file), file.stem, config.ks) for file in files]


def _judged(tables: list[list[EvalRow]], names: Sequence[str], judge: LanguageModel | None) -> list[list[EvalRow]]:
    """The tables, with a judge's comparison of the answers where there is one."""
    if judge is None:
        return tables
    from sire_core.evaluate.analysis import judge_rows
    from sire_core.models.sync import run_sync

    with reporting() as progress:
        return [run_sync(judge_rows(table, names, judge, progress, note)) for table in tables]


def _group_sentences(dataset: DataSet, model: LanguageModel | None, progress: Progress) -> DataSet:
    from sire_core.models.sync import run_sync
    from sire_core.papers.sirerag.sentence_groups import group_sentences

    assert model is not None  # the options were checked
    return replace(dataset, documents=tuple(run_sync(group_sentences(dataset.documents, model, progress))))
