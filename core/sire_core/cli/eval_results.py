"""`Results`: the rows of an evaluation, written and shown before anything else may fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from sire_core.cli.output import count, note, say

if TYPE_CHECKING:
    from sire_core.cli.eval_measures import ReportOptions
    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import EvalRow
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.protocols import LanguageModel, Progress

__all__ = ["Results", "judged"]


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
        from sire_core.evaluate.charts import chart
        from sire_core.evaluate.files import write_text
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
        from sire_core.evaluate.files import write_rows

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
