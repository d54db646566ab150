"""`sire eval`: recipes and baselines measured on a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli.ablation_runs import AblationRow, ablation_rows, run_ablations
from sire_core.cli.arguments import grouped
from sire_core.cli.eval_measures import EvalAnswerOptions, MeasureOptions, ReportOptions
from sire_core.cli.eval_models import Results, eval_models, judged
from sire_core.cli.eval_options import ComparisonOptions, QuestionOptions, check_index, recipe_names
from sire_core.cli.evaluation import BASELINES, run_clusters, run_evaluation, run_existing, run_repeats
from sire_core.cli.evaluation_rows import Evaluation
from sire_core.cli.models import ModelOptions
from sire_core.cli.options import IndexOptions
from sire_core.cli.output import reporting, say, write_rows
from sire_core.cli.recipe_options import parse_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import EvalRow
    from sire_core.protocols import LanguageModel, Progress

__all__ = ["eval_"]


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
    names = _names(asking, compared)
    rows = ablation_rows(names, parse_settings(compared.settings)) if compared.ablations else {}
    builds = not (answering.reader_only or compared.clusters or asking.file is not None)
    with eval_models(calls, judge=answering.judge, to=compared.to, answers=answering.answers, builds=builds) as models:
        builder = models.asked if compared.clusters else None if answering.reader_only else models.builder
        made = compared.options(builder, models.folder, native=calls.native, workers=calls.workers)
        options = replace(made, wrap_model=models.named)
        config = measuring.config(asking, answering, models.asked, calls.workers)
        results = Results(shown, ablations=compared.ablations)
        with results.kept(), reporting() as progress:
            if asking.file is not None:
                tables = [
                    run_existing(dataset_dir, asking.file, names, options, config, progress, results, asking.half)
                ]
            elif compared.clusters:
                dataset = asking.of(load_dataset(dataset_dir, asking.chunks))
                dataset = _grouped(dataset, asking, models.asked, progress)
                _say_clusters(dataset, options, shown.json_file, progress)
                return
            else:
                dataset = asking.of(load_dataset(dataset_dir, asking.chunks))
                options = replace(options, no_chunking=options.no_chunking and not dataset.whole)
                cut = not options.no_chunking or asking.sentence_groups
                results.begin(dataset, len(BASELINES) + len(names), config, cut=cut)
                dataset = _grouped(dataset, asking, models.asked, progress)
                tables = _tables(Evaluation(dataset, options, config, progress), names, compared, results, rows)
        results.say(tables)
        results.say_more(tables if models.judge is None else _judged(tables, names, models.judge))


def _names(asking: QuestionOptions, compared: ComparisonOptions) -> list[str]:
    """Recipes that are measured; none where they are all that the index folder holds."""
    known = asking.file is None or compared.recipes
    return recipe_names(compared.recipes, ablations=compared.ablations) if known else []


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
    report = run_clusters(dataset, options, progress)
    if json_file is not None:
        write_rows(json_file, [report])
    say(report.table())


def _tables(
    asked: Evaluation,
    names: list[str],
    compared: ComparisonOptions,
    results: Results,
    rows: Mapping[str, Sequence[AblationRow]],
) -> list[list[EvalRow]]:
    """Rows of each paper, or one table of all recipes."""
    if compared.ablations:
        return [run_ablations(asked, name, results.table(), found) for name, found in rows.items()]
    if compared.repeats > 1:
        return [run_repeats(asked, names, compared.repeats, results.table())]
    return [run_evaluation(asked, names, results.table())]
