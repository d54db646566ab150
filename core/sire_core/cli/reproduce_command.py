"""`sire reproduce`: the main table of a paper, measured with a model of one's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from sire_core.cli import option_groups
from sire_core.cli.eval_command import Results
from sire_core.cli.eval_options import TableOptions
from sire_core.cli.model_options import SpendingOptions, ask_to_go_on, eval_models
from sire_core.cli.option_groups import grouped, option
from sire_core.cli.output import note, reporting
from sire_core.errors import ConfigurationError
from sire_core.evaluate.datasets import load_dataset
from sire_core.models.usage import CostRange, Price

if TYPE_CHECKING:
    from sire_core.evaluate.experiment import Experiment


@dataclass(frozen=True, slots=True)
class SampleOptions:
    """Options of the data: how much of it, and what it is built with."""

    group: ClassVar[str] = "Data"

    questions: Annotated[
        int | None, option("--questions N", "Ask a random sample of the questions. Default: all.", min=1)
    ] = None
    passages: Annotated[
        int | None,
        option(
            "--passages N",
            "Index only the documents that these questions need and random others, N in all, for a cheap trial: "
            "recall is then easier than the paper's. Default: all.",
            min=1,
        ),
    ] = None
    embedder: option_groups.Embedder = None
    to: Annotated[
        Path | None,
        option(
            "--to DIR",
            "Keep the index and all answers here; the same command goes on from there. Default: a folder named after "
            "the paper and the data.",
        ),
    ] = None


@grouped
def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="The recipe of the paper, such as `sirerag`.")],
    dataset_dir: Annotated[Path, typer.Argument(metavar="DATASET", help="A data set, as for `sire eval`.")],
    data: SampleOptions,
    calls: SpendingOptions,
    report: TableOptions,
) -> None:
    """Measure the main table of a paper with your model.

    Builds every row of the table with the paper's settings and prompts of the paper's structure, asks the questions,
    has them answered where the table has answers, and shows the paper's figures below. Says first what all of that is
    expected to cost and asks. What was answered is kept: the same command goes on where it was interrupted.

    Example: sire reproduce sirerag data/musique --llm gpt-4o-mini --questions 100
    """
    from sire_core.evaluate.answer_eval import AnswerConfig
    from sire_core.evaluate.experiment import Experiment
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.reason.answer_reader import ReaderConfig
    from sire_core.recipes.published import data_set_name, published_of, recipes_with_ablations

    main = published_of(paper).main
    if main is None:
        papers = ", ".join(name for name in recipes_with_ablations() if published_of(name).main)
        raise ConfigurationError(f"{paper!r} has no main table; choose one of {papers}.")
    if calls.llm is None:
        raise ConfigurationError("A table is reproduced with a model: give --llm MODEL.")
    dataset = load_dataset(dataset_dir).sample(data.questions)
    if data.passages is not None:
        dataset = dataset.around(data.passages)
    folder = data.to or Path(f"{paper}-{dataset_dir.resolve().stem}")
    with eval_models(calls, None, to=folder, answers=None, builds=True, reader_only=False) as models:
        answer = AnswerConfig(main.answer, reader=ReaderConfig("paper"), model=models.asked) if main.answer else None
        results = Results(report, ablations=True)
        experiment = Experiment(
            dataset,
            [paper],
            ablations=True,
            tables=main.tables,
            settings={"preset": main.of_set.get(data_set_name(dataset.name), main.preset)},
            config=EvalConfig(answer=answer, model=models.asked),
            folder=models.folder,
            embedder=data.embedder,
            language_model=models.builder,
            extraction="native" if calls.native else None,
            wrap_model=models.named,
            workers=calls.workers,
            log=cache(note),
            on_row=results.table(),
        )
        note(f"{dataset.name}: {len(dataset.measurable):,} questions, {len(dataset.documents):,} documents.")
        _note_costs(experiment, calls.price(), folder)
        plan = replace(experiment, log=lambda _: None).planned()
        if paper not in {row.recipe if isinstance(row.recipe, str) else row.recipe.name for row in plan}:
            raise ConfigurationError(f"No row of {paper} itself is left; install or give what the lines above name.")
        ask_to_go_on(yes=calls.yes, refused="Stopped. No model was called.")
        with results.shown_on_failure(), reporting() as progress:
            rows = replace(experiment, progress=progress).run()
        results.say([rows])


def _note_costs(experiment: Experiment, price: Price | None, folder: Path) -> None:
    costs = experiment.cost(price)
    total = sum(costs.values(), CostRange().priced(price))
    note(f"Expected in all: {total.describe()}, less what is stored in {folder}.")
    for stage, cost in costs.items():
        note(f"  {stage}: {cost.describe()}")
