"""What `sire eval` must not lose: what its models answered, counted together, and the rows that were finished."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sire_core.cli.output import count, note, say, write_rows, write_text
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.cli.eval_measures import ReportOptions
    from sire_core.cli.models import ModelOptions
    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import EvalRow
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.models.caching import AnswerStore
    from sire_core.models.usage_meter import UsageMeter
    from sire_core.protocols import LanguageModel, Progress, WrapModel

__all__ = ["EvalModels", "Results", "eval_models", "judged"]


@dataclass(frozen=True, slots=True)
class EvalModels:
    """Who is asked what in an evaluation.

    Attributes:
        builder: Extracts and summarizes; the index keeps what it answers. None without a model.
        asked: The same model for everything else (groups of sentences, topics, searches, answers, analyses); what it
            answers is kept in a file.
        judge: Compares answers; kept there, and counted with the others.
        named: Makes of a model that a setting names one that is kept there, and counted with the others; None without
            `--llm`, whose limits hold for all.
        folder: Where indexes are built; None takes a temporary folder.
    """

    builder: LanguageModel | None
    asked: LanguageModel | None
    judge: LanguageModel | None
    named: WrapModel | None
    folder: Path | None


@contextmanager
def eval_models(
    calls: ModelOptions, *, judge: str | None, to: Path | None, answers: Path | None, builds: bool
) -> Iterator[EvalModels]:
    """The models, and the places where what they answer is kept: those that are named, else temporary ones.

    Temporary places stay where they are when the evaluation does not come to its end, and a line says how to go on.

    Args:
        calls: `--llm` and its companions; their limits hold for all models together.
        judge: Name of the judge.
        to: `--to`.
        answers: `--answers`.
        builds: Whether the model is asked by builds.

    Raises:
        ConfigurationError: The model cannot be asked, or the answers cannot be kept.
    """
    from sire_core.evaluate.answer_file import AnswerFile
    from sire_core.models.caching import CachedModel

    model = calls.model()
    if model is None:
        if answers is not None:
            raise ConfigurationError("--answers FILE keeps what a model answers; it needs --llm MODEL.")
        yield EvalModels(None, None, None, None, to)
        return
    judging = None
    if judge is not None:
        unbounded = replace(calls, llm=judge, max_calls=None, max_tokens=None).model()
        assert unbounded is not None  # it has a name
        judging = unbounded.metered(model.meter, "judge")
    with _places(to, answers, model.meter, builds=builds) as (folder, file), closing(AnswerFile(file)) as kept:
        yield EvalModels(
            model,
            CachedModel(model, kept, "answers"),
            None if judging is None else CachedModel(judging, kept, "judge"),
            partial(_kept_once, {}, model.meter, kept),
            folder,
        )


def _kept_once(
    made: dict[LanguageModel, LanguageModel], meter: UsageMeter, kept: AnswerStore, named: LanguageModel
) -> LanguageModel:
    """What a model answers is kept; the same object for the same model, so that equal prompts at a time are one."""
    from sire_core.models.caching import CachedModel
    from sire_core.models.usage_meter import with_meter

    if named not in made:
        made[named] = CachedModel(with_meter(named, meter, "search"), kept, "search")
    return made[named]


def _beside(folder: Path) -> Path:
    """The file of answers beside a folder; not inside: an index is made in an empty folder only."""
    return Path(f"{folder}.answers.jsonl")


@contextmanager
def _places(
    to: Path | None, answers: Path | None, meter: UsageMeter, *, builds: bool
) -> Iterator[tuple[Path | None, Path]]:
    """Folder of the indexes, and file of the answers; temporary ones are kept where something was paid for."""
    if to is not None:
        file = answers or _beside(to)
        file.parent.mkdir(parents=True, exist_ok=True)
        yield to, file
        return
    place = Path(tempfile.mkdtemp(prefix="sire-eval-"))
    index = place / "index"
    words = ["--to", str(index)] if builds else ["--answers", str(_beside(index))]
    elsewhere = answers is not None and not builds  # nothing is in the temporary folder
    try:
        yield index if builds else None, answers or _beside(index)
    except BaseException:
        paid = meter.report().total.output_tokens
        if paid and elsewhere:
            note(f"What the model has answered is kept in {answers}. To go on, run the same command again.", "yellow")
        elif paid:
            note(
                f"What the model has answered is kept. The same command goes on from there with: {shlex.join(words)}",
                "yellow",
            )
        if elsewhere or not paid:
            shutil.rmtree(place, ignore_errors=True)
        raise
    shutil.rmtree(place, ignore_errors=True)


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

    def begin(self, dataset: DataSet, rows: int, config: EvalConfig, *, cut: bool = False) -> None:
        """Say on stderr what is measured on what.

        Args:
            dataset: What is asked.
            rows: How many there will be.
            config: What is measured.
            cut: Whether documents are still to be cut into passages, so that these cannot be counted yet.

        Raises:
            ConfigurationError: What was asked for could not be shown in the end.
        """
        from sire_core.evaluate.charts import check_chart
        from sire_core.evaluate.report import check_comparison
        from sire_core.evaluate.rows import corpus_size

        measurable = dataset.sample(config.limit, config.seed).measurable
        if self._shown.plot is not None and measurable:
            check_chart(rows, with_gold=any(question.has_gold for question in measurable))
        if self._shown.compare:
            check_comparison(dataset.name)
        asked = f"{len(measurable):,} of {count(len(dataset.measurable), 'question')}"
        size = corpus_size(len(dataset.documents), 0 if cut else dataset.passages)
        note(f"{dataset.name}: {size}, {asked}.")
        if dataset.unread:
            first = "; ".join(f"{failure.where}: {failure.reason}" for failure in dataset.unread[:1])
            note(f"{count(len(dataset.unread), 'file')} could not be read, such as {first}", "yellow")

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
