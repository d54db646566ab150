"""What an evaluation prints and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sire_core.algorithms.pluralize import count
from sire_core.cli.output import note, say, terminal_width, write_rows, write_text

if TYPE_CHECKING:
    from sire_core.cli.eval_options import ReportOptions
    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import EvalRow
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.models.prices import Price


class Results:
    """Prints and writes the rows of an evaluation; with `ablations`, as the tables of papers."""

    def __init__(self, report: ReportOptions, *, ablations: bool) -> None:
        self._report = report
        self._ablations = ablations
        self._started: list[list[EvalRow]] = []

    def begin(self, dataset: DataSet, rows: int, config: EvalConfig, price: Price | None, *, cut: bool = False) -> None:
        """Say on stderr what is measured on what, and what answers cost."""
        from sire_core.evaluate.charts import check_chart
        from sire_core.evaluate.report import check_comparison
        from sire_core.evaluate.rows import corpus_size

        measurable = dataset.sample(config.limit, config.seed).measurable
        if self._report.plot is not None and measurable:
            check_chart(rows, with_gold=any(question.has_gold for question in measurable))
        if self._report.compare:
            check_comparison(dataset.name)
        sample = f"{len(measurable):,} of {count(len(dataset.measurable), 'question')}"
        size = corpus_size(len(dataset.documents), 0 if cut else dataset.passages)
        note(f"{dataset.name}: {size}, {sample}.")
        if config.answer is not None:
            from sire_core.evaluate.answer_eval import answer_cost

            asked = sum(bool(question.answers) for question in measurable)
            cost = answer_cost(dataset, asked, rows, config.answer).priced(price)
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
        width = None if self._report.wide else terminal_width()
        blocks = [format_ablations(table) if self._ablations else format_table(table, width) for table in tables]
        say("\n\n".join(blocks))
        if width is not None and any("\nNot shown: " in block for block in blocks):
            note("--wide shows all columns, and --json FILE writes them.")

    def say_more(self, tables: Sequence[Sequence[EvalRow]]) -> None:
        """Print the other tables and the chart; write the rows again, with the judgements."""
        from sire_core.evaluate.charts import chart
        from sire_core.evaluate.report import format_analysis, format_comparison, format_groups, format_kinds

        self._write(tables)
        for text in filter(None, map(format_analysis, tables)):
            say("\n" + text)
        if self._report.by_type:
            say("\n" + "\n\n".join(map(format_groups, tables)))
        if self._report.compare:
            say("\n" + "\n\n".join(map(format_comparison, tables)))
        if self._report.by_kind:
            say("\n" + format_kinds([row for table in tables for row in table]))
        if self._report.plot is not None:
            write_text(self._report.plot, chart(tables[0]))

    def _write(self, tables: Sequence[Sequence[EvalRow]]) -> None:
        if self._report.json_file is not None:
            write_rows(self._report.json_file, [row for table in tables for row in table])
