"""`sire eval`: recipes and baselines measured on a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli.ablation_runs import AblationRow, ablation_rows, run_ablations
from sire_core.cli.arguments import grouped
from sire_core.cli.eval_measures import EvalAnswerOptions, MeasureOptions, ReportOptions
from sire_core.cli.eval_models import eval_models
from sire_core.cli.eval_options import ComparisonOptions, QuestionOptions, check_index, recipe_names
from sire_core.cli.evaluation import BASELINES, run_clusters, run_evaluation, run_existing, run_repeats
from sire_core.cli.models import ModelOptions
from sire_core.cli.options import IndexOptions
from sire_core.cli.output import count, note, reporting, say
from sire_core.cli.recipe_options import parse_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import EvalRow
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.protocols import LanguageModel, Progress

__all__ = ["Results", "eval_", "judged"]


@grouped
def eval_(
    dataset_dir: Annotated[
        Path,
        typer.Argument(
            metavar="DATASET_DIR_or_INDEX",
            help="A folder with corpus.jsonl and questions*.jsonl, an official file of HotpotQA, 2WikiMultiHopQA, "
            "MuSiQue and others, or, with --questions FILE, an index folder.",
        ),
    ],
    asking: QuestionOptions,
    compared: ComparisonOptions,
    measuring: MeasureOptions,
    answering: EvalAnswerOptions,
    calls: ModelOptions,
    shown: ReportOptions,
) -> None:
    """Measure recipes on a data set or an index.

    The baselines bm25, dense and hybrid over the passages are measured, too. All rows share the vectors of the
    passages, whose time counts in the build of the baselines; with --llm or --to they also share extraction. R@k is
    measured on the passages that a search returns. `vs hybrid` is the difference of R@5 with its 95 % interval over the
    questions; a star means that the interval excludes zero.

    With --ablations the rows are those of the recipe's paper. The published answers came from other models; --answer
    adds the EM and F1 of yours.

    Example: sire eval data/musique -r raptor,sirerag --limit 50 --json rows.json

    For an existing index, with your own questions (nothing is built, and the folder is only read): sire eval my-index
    --questions questions.jsonl
    """
    from sire_core.evaluate.datasets import load_dataset

    shown.check(compared, asking, answering, measuring, calls.llm)
    check_index(dataset_dir, asking, builds=compared.builds)
    known = asking.file is None or compared.recipes  # else all that the folder holds
    names = recipe_names(compared.recipes, ablations=compared.ablations) if known else []
    rows = ablation_rows(names, parse_settings(compared.settings)) if compared.ablations else {}
    builds = not (answering.reader_only or compared.clusters or asking.file is not None)
    with eval_models(calls, judge=answering.judge, to=compared.to, answers=answering.answers, builds=builds) as models:
        builder = models.asked if compared.clusters else None if answering.reader_only else models.builder
        made = compared.options(builder, models.folder, native=calls.native, workers=calls.workers)
        options = replace(made, named_models=models.named)
        config = measuring.config(asking, answering, models.asked, calls.workers)
        results = Results(shown, ablations=compared.ablations)
        with results.kept(), reporting() as progress:
            if asking.file is not None:
                tables = [
                    run_existing(dataset_dir, asking.file, names, options, config, progress, results, asking.half)
                ]
            elif compared.clusters:
                dataset = _grouped(asking.of(load_dataset(dataset_dir)), asking, models.asked, progress)
                _say_clusters(dataset, options, shown.json_file, progress)
                return
            else:
                dataset = asking.of(load_dataset(dataset_dir))
                results.begin(dataset, len(BASELINES) + len(names), config)
                dataset = _grouped(dataset, asking, models.asked, progress)
                tables = _tables(dataset, names, options, config, progress, compared, results, rows)
        results.say(tables)
        results.say_more(tables if models.judge is None else _judged(tables, names, models.judge))


def _judged(tables: list[list[EvalRow]], names: list[str], judge: LanguageModel) -> list[list[EvalRow]]:
    with reporting() as progress:
        return [judged(table, names, judge, progress) for table in tables]


def _grouped(dataset: DataSet, asking: QuestionOptions, model: LanguageModel | None, progress: Progress) -> DataSet:
    """The data set, its documents cut by a model where that is asked for."""
    if model is None or not asking.sentence_groups:
        return dataset
    from sire_core.corpus.sentence_groups import group_sentences
    from sire_core.models.sync import run_sync

    return replace(dataset, documents=tuple(run_sync(group_sentences(dataset.documents, model, progress))))


def _say_clusters(dataset: DataSet, options: IndexOptions, json_file: Path | None, progress: Progress) -> None:
    from sire_core.cli.output import write_rows

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
    results: Results,
    rows: Mapping[str, Sequence[AblationRow]],
) -> list[list[EvalRow]]:
    """Rows of each paper, or one table of all recipes."""
    if compared.ablations:
        return [
            run_ablations(dataset, name, options, config, progress, results.table(), found)
            for name, found in rows.items()
        ]
    if compared.repeats > 1:
        return [run_repeats(dataset, names, options, config, progress, compared.repeats, results.table())]
    return [run_evaluation(dataset, names, options, config, progress, results.table())]


class Results:
    """What comes of an evaluation.

    Args:
        shown: What is printed and written.
        ablations: Whether the rows are those of papers.
    """

    def __init__(self, shown: ReportOptions, *, ablations: bool) -> None:
        self._shown = shown
        self._ablations = ablations
        self._started: list[list[EvalRow]] = []

    def begin(self, dataset: DataSet, rows: int, config: EvalConfig) -> None:
        """Say on stderr what is measured on what.

        Args:
            dataset: What is asked.
            rows: How many there will be.
            config: What is measured.

        Raises:
            ConfigurationError: What was asked for could not be shown in the end.
        """
        from sire_core.evaluate.charts import check_chart
        from sire_core.evaluate.report import check_comparison

        measurable = dataset.sample(config.limit, config.seed).measurable
        if self._shown.plot is not None and measurable:
            check_chart(rows, with_gold=any(question.supporting for question in measurable))
        if self._shown.compare:
            check_comparison(dataset.name)
        asked = f"{len(measurable):,} of {count(len(dataset.measurable), 'question')}"
        note(f"{dataset.name}: {count(len(dataset.documents), 'passage')}, {asked}.")

    def table(self) -> Callable[[EvalRow], None]:
        """Start a table; what is returned is told of every row that is finished."""
        self._started.append([])
        return self._started[-1].append

    @contextmanager
    def kept(self) -> Iterator[None]:
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
        say("\n\n".join(map(format_ablations if self._ablations else format_table, tables)))

    def say_more(self, tables: Sequence[Sequence[EvalRow]]) -> None:
        """What was asked for beside the tables; the rows are written again, with what a judge said."""
        from sire_core.cli.output import write_text
        from sire_core.evaluate.charts import chart
        from sire_core.evaluate.report import format_analysis, format_comparison, format_groups

        self._write(tables)
        for found in filter(None, map(format_analysis, tables)):
            say("\n" + found)
        if self._shown.by_type:
            say("\n" + "\n\n".join(map(format_groups, tables)))
        if self._shown.compare:
            say("\n" + "\n\n".join(map(format_comparison, tables)))
        if self._shown.by_kind:
            _say_kinds([row for table in tables for row in table])
        if self._shown.plot is not None:
            write_text(self._shown.plot, chart(tables[0]))

    def _write(self, tables: Sequence[Sequence[EvalRow]]) -> None:
        from sire_core.cli.output import write_rows

        if self._shown.json_file is not None:
            write_rows(self._shown.json_file, [row for table in tables for row in table])


def _say_kinds(rows: Sequence[EvalRow]) -> None:
    say("\nWhat each kind of unit contributes: mean number among the first hits, points of recall found first")
    header = f"{'recipe':<12} {'kind':<14} {'hits@5':>7} {'hits@20':>8} {'R@5':>6} {'R@20':>6}"
    say(header)
    for row in rows:
        for kind, value in row.by_kind().items():
            say(
                f"{row.setup.recipe:<12} {kind:<14} {value['hits_5']:>7.2f} {value['hits_20']:>8.2f} "
                f"{value['gold_5']:>6.1f} {value['gold_20']:>6.1f}"
            )


def judged(rows: Sequence[EvalRow], names: Sequence[str], model: LanguageModel, progress: Progress) -> list[EvalRow]:
    """The rows with what a judge says of their answers beside those of the first recipe (MS-RAG table 4).

    Args:
        rows: Answered; the baselines among them are compared, too.
        names: The recipes that were asked for; the first one is what the others are compared with, or the first row
            where none is among the rows.
        model: The judge.
        progress: Told about every pair.
    """
    from sire_core.evaluate.analysis import compare_answers
    from sire_core.models.sync import run_sync

    first = next((row for row in rows if names and row.setup.recipe == names[0]), rows[0])
    found = []
    for row in rows:
        if row is first or not row.answered:
            found.append(row)
            continue
        shares = run_sync(compare_answers(row.answered, first.answered, model, progress))
        if left := int(shares.get("not judged", 0)):
            judged_pairs = f"{len(row.answered) - left:,} of {count(len(row.answered), 'pair')}"
            note(
                f"{row.setup.recipe}: the judge stopped after {judged_pairs}, at --max-calls or --max-tokens", "yellow"
            )
        found.append(replace(row, analysis={**row.analysis, "judge": {"against": first.setup.recipe, **shares}}))
    return found
