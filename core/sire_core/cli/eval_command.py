"""`sire eval`: recipes and baselines measured on a data set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli.eval_groups import (
    ComparisonOptions,
    EvalAnswerOptions,
    MeasureOptions,
    QuestionOptions,
    ReportOptions,
)
from sire_core.cli.eval_models import eval_models
from sire_core.cli.eval_options import QuestionSelection, check_index, recipe_names
from sire_core.cli.evaluation import (
    judged,
    run_ablations,
    run_clusters,
    run_evaluation,
    run_existing,
    run_repeats,
    say_size,
)
from sire_core.cli.groups import grouped
from sire_core.cli.models import ModelOptions
from sire_core.cli.options import IndexOptions
from sire_core.cli.output import say
from sire_core.cli.progress import reporting

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import EvalRow
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.protocols import LanguageModel, Progress

__all__ = ["eval_"]


@grouped
def eval_(
    dataset_dir: Annotated[
        Path,
        typer.Argument(
            metavar="DATASET_DIR_or_INDEX",
            help="A folder with corpus.jsonl and questions*.jsonl, or an official HotpotQA, 2WikiMultiHopQA or MuSiQue "
            "file. Or an index folder, with --questions.",
        ),
    ],
    asking: QuestionOptions,
    compared: ComparisonOptions,
    measuring: MeasureOptions,
    answering: EvalAnswerOptions,
    calls: ModelOptions,
    shown: ReportOptions,
) -> None:
    """Measure recipes on a data set.

    Beside them stand the baselines bm25, dense and hybrid over the passages. All rows share the passages' vectors
    (in the baselines' build seconds); with --llm or --to also what earlier rows extracted. R@k counts what a search for
    passages returns; `vs hybrid` is the difference of R@5 with its 95 % interval over the questions, a star where zero
    lies outside.

    With --ablations the rows are those of the recipe's paper instead, whose answers came from other models; --answer
    puts the EM and F1 of yours beside the paper's.

    Example: sire eval data/musique -r raptor,sirerag --limit 50 --json rows.json

    An index that is there is asked the questions of a file, with the recipes that it holds; nothing is built and the
    folder is only read: sire eval my-index --questions questions.jsonl
    """
    asked = asking.asked()
    shown.check(compared, asking, answering, measuring, calls.llm)
    check_index(dataset_dir, asked, builds=compared.builds)
    given = compared.recipes
    names = recipe_names(given, ablations=compared.ablations) if given or asked.file is None else []
    builds = not (answering.reader_only or compared.clusters or asked.file is not None)
    with eval_models(calls, judge=answering.judge, to=compared.to, answers=answering.answers, builds=builds) as models:
        grouping = models.asked if asking.sentence_groups else None
        builder = models.asked if compared.clusters else None if answering.reader_only else models.builder
        options = compared.options(builder, models.folder, native=calls.native, workers=calls.workers)
        config = measuring.config(asking, answering, models.asked, calls.workers)
        with reporting() as progress:
            if compared.clusters:
                _say_clusters(_data(dataset_dir, asked, grouping, progress), options, shown.json_file, progress)
                return
            if asked.file is not None:
                tables = [run_existing(dataset_dir, asked.file, names, options, config, progress, asked.half)]
            else:
                dataset = _data(dataset_dir, asked, grouping, progress)
                say_size(dataset, config)
                tables = _tables(dataset, names, options, config, progress, compared)
        _say(tables, shown, ablations=compared.ablations)
        if models.judge is not None:
            with reporting() as progress:
                tables = [judged(table, names, models.judge, progress) for table in tables]
        _say_more(tables, shown)


def _data(place: Path, asked: QuestionSelection, grouped: LanguageModel | None, progress: Progress) -> DataSet:
    """The data set as it was asked for, its documents cut by a model where there is one."""
    from sire_core.evaluate.datasets import load_dataset

    dataset = asked.of(load_dataset(place))
    if grouped is None:
        return dataset
    from sire_core.corpus.sentence_groups import group_sentences
    from sire_core.models.sync import run_sync

    return replace(dataset, documents=tuple(run_sync(group_sentences(dataset.documents, grouped, progress))))


def _say(tables: list[list[EvalRow]], shown: ReportOptions, *, ablations: bool) -> None:
    """Write the rows and print the tables, before anything else may fail."""
    from sire_core.evaluate.report import format_ablations, format_table

    _write(tables, shown)
    say("\n\n".join(map(format_ablations if ablations else format_table, tables)))


def _write(tables: list[list[EvalRow]], shown: ReportOptions) -> None:
    from sire_core.evaluate.report import write_rows

    if shown.json_file is not None:
        write_rows(shown.json_file, [row for table in tables for row in table])


def _say_more(tables: list[list[EvalRow]], shown: ReportOptions) -> None:
    """What was asked for beside the tables; the rows again, with what a judge said."""
    from sire_core.evaluate.charts import chart
    from sire_core.evaluate.report import format_analysis, format_comparison, format_groups, write_text

    _write(tables, shown)
    for found in filter(None, map(format_analysis, tables)):
        say("\n" + found)
    if shown.by_type:
        say("\n" + "\n\n".join(map(format_groups, tables)))
    if shown.compare:
        say("\n" + "\n\n".join(map(format_comparison, tables)))
    if shown.by_kind:
        _say_kinds([row for table in tables for row in table])
    if shown.plot is not None:
        write_text(shown.plot, chart(tables[0]))


def _say_clusters(dataset: DataSet, options: IndexOptions, json_file: Path | None, progress: Progress) -> None:
    from sire_core.evaluate.report import write_rows

    report = run_clusters(dataset, options, progress)
    if json_file is not None:
        write_rows(json_file, [report])
    say(report.table())


def _tables(
    dataset: DataSet,
    names: list[str],
    options: IndexOptions,
    config: EvalConfig,
    progress: Progress,
    compared: ComparisonOptions,
) -> list[list[EvalRow]]:
    """Rows of each paper, or one table of all recipes."""
    if compared.ablations:
        return [run_ablations(dataset, name, options, config, progress) for name in names]
    if compared.repeats > 1:
        return [run_repeats(dataset, names, options, config, progress, compared.repeats)]
    return [run_evaluation(dataset, names, options, config, progress)]


def _say_kinds(rows: list[EvalRow]) -> None:
    say("\nWhat each kind of unit brings: mean number among the first hits, and points of recall it was first to bring")
    header = f"{'recipe':<12} {'kind':<14} {'hits@5':>7} {'hits@20':>8} {'R@5':>6} {'R@20':>6}"
    say(header)
    for row in rows:
        for kind, value in row.by_kind().items():
            say(
                f"{row.setup.recipe:<12} {kind:<14} {value['hits_5']:>7.2f} {value['hits_20']:>8.2f} "
                f"{value['gold_5']:>6.1f} {value['gold_20']:>6.1f}"
            )
