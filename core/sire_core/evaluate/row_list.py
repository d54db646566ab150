"""`EvalRows`: the rows of an experiment, as tables for papers, files of TREC, and compared with each other."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.evaluate.bootstrap import interval_of, paired_differences
from sire_core.evaluate.qrels import write_qrels
from sire_core.evaluate.rows import EvalRow, spread
from sire_core.evaluate.trec_files import judgements_of, write_run

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FLIPS, _BATCH = 10_000, 500
_PRINTED_WIDTH = 120
_LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Difference of one row from another, over the questions of both.

    Attributes:
        first: Name of the row that is compared.
        second: Name of the row that it is compared with.
        measure: What is compared, such as `nDCG@10`.
        difference: Mean of the first minus mean of the second, in points (0 to 100).
        low: Lower end of its 95 % interval (paired bootstrap).
        high: Upper end.
        p: Probability of a difference as large by chance (paired randomisation test, 10,000 sign flips).
        p_corrected: The same for all comparisons of the list together (Holm).
    """

    first: str
    second: str
    measure: str
    difference: float
    low: float
    high: float
    p: float
    p_corrected: float

    def __str__(self) -> str:
        """The difference, its interval, and the corrected probability."""
        shown = (
            f"{self.difference:+.1f} [{self.low:.1f}, {self.high:.1f}] of {self.measure}, p = {self.p_corrected:.3f}"
        )
        return f"{self.first} against {self.second}: {shown}"

    @property
    def significant(self) -> bool:
        """True if the corrected probability is below 5 %."""
        return self.p_corrected < 0.05


class EvalRows(list[EvalRow]):
    """The rows of an experiment: a list, and what papers need of it."""

    def __str__(self) -> str:
        """The rows as `sire eval` prints them."""
        from sire_core.evaluate.report import format_table

        return format_table(self, _PRINTED_WIDTH)

    def row(self, name: str) -> EvalRow:
        """Return the first row of this name.

        Raises:
            ConfigurationError: There is none.
        """
        row = next((row for row in self if row.setup.recipe == name), None)
        if row is None:
            names = ", ".join(row.setup.recipe for row in self)
            raise ConfigurationError(f"There is no row {name!r} among {names}.")
        return row

    def table(self, measures: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """A dictionary per row: names and sizes, then a mean of each measure, 0 to 100, unrounded.

        Args:
            measures: Such as `R@5`, `nDCG@10`, `MRR`, `all@5`, `answer@budget`; None takes all that were measured.
        """
        chosen = list(measures) if measures is not None else self.measures()
        return [
            {
                "row": row.setup.recipe,
                "dataset": row.dataset,
                "questions": len(row.results),
                "passages": row.passages,
                "embedder": row.setup.embedder,
                **{name: row.mean(name) for name in chosen},
            }
            for row in self
        ]

    def measures(self) -> list[str]:
        """Return the measures that the rows have, in the order of tables."""
        ks = sorted({k for row in self for k in row.ks})
        names = [f"{name}@{k}" for name in ("R", "nDCG", "all") for k in ks]
        budget = ["R@budget", "answer@budget"] if any(row.budget for row in self) else []
        return [*names, "MRR", *budget]

    def to_csv(self, path: str | Path | None = None, measures: Sequence[str] | None = None) -> str:
        """Return the table as CSV; also written to `path` if there is one."""
        rows, out = self.table(measures), io.StringIO()
        writer = csv.DictWriter(out, list(rows[0]) if rows else ["row"], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _number(value, 4) for name, value in row.items()} for row in rows)
        return _written(out.getvalue(), path)

    def to_latex(
        self, path: str | Path | None = None, measures: Sequence[str] = ("R@5", "R@10", "nDCG@10", "MRR")
    ) -> str:
        """Return the table for LaTeX (package booktabs), with the best of each column in bold; also written to `path`.

        Of repeated builds the standard deviation stands beside the mean.

        Args:
            path: A file; None writes none.
            measures: The columns.
        """
        rows = self.table(measures)
        best = {name: max((_number(row[name], 1) for row in rows), key=_value, default="") for name in measures}
        lines = [f"\\begin{{tabular}}{{l{'r' * len(measures)}}}", "\\toprule"]
        lines += [" & ".join(["", *map(_escaped, measures)]) + r" \\", "\\midrule"]
        for row, named in zip(self, rows, strict=True):
            cells = [_number(named[name], 1) for name in measures]
            shown = [
                (f"\\textbf{{{cell}}}" if cell and cell == best[name] else cell or "--") + _deviation(row, name)
                for name, cell in zip(measures, cells, strict=True)
            ]
            lines.append(" & ".join([_escaped(named["row"]), *shown]) + r" \\")
        return _written("\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""]), path)

    def to_pandas(self, measures: Sequence[str] | None = None) -> Any:
        """Return the table as a `pandas.DataFrame`.

        Raises:
            ConfigurationError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ConfigurationError("to_pandas needs: pip install pandas. to_csv needs nothing.") from error
        return pd.DataFrame(self.table(measures))

    def plot(self, over: str = "k", path: str | Path | None = None) -> Any:
        """Draw recall of every row, and return the axes of matplotlib.

        Args:
            over: `k`, R@k at the cut-offs; `tokens`, recall of required evidence within the budgets of
                `Experiment.budgets`, contexts dashed; `cost`, recall at the middle cut-off over milliseconds a search.
            path: A file, such as `recall.pdf`; None writes none.

        Raises:
            ConfigurationError: matplotlib is not installed, or no row was measured in this way.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ConfigurationError("plot needs: pip install matplotlib. to_csv needs nothing.") from error
        lines = [(row, style, points) for row in self for style, points in _points(row, over) if points]
        if not lines:
            raise ConfigurationError(f"No row was measured over {over!r}: it is k, tokens (with budgets=) or cost.")
        axes = Figure(layout="constrained").subplots()
        for row, style, points in lines:
            label = row.setup.recipe + (", context" if style == "--" else "")
            axes.plot(*zip(*points, strict=True), style, marker="o", label=label)
        names = {"k": "k", "tokens": "tokens", "cost": "milliseconds a search"}
        axes.set(xlabel=names[over], ylabel="recall, %", xscale="linear" if over == "k" else "log")
        axes.legend()
        if path is not None:
            axes.figure.savefig(path)
        return axes

    def compare(self, measure: str = "R@5", *, baseline: str | None = None) -> list[Comparison]:
        """Compare rows over their questions, with p-values that are corrected for all comparisons (Holm).

        Args:
            measure: Such as `R@5`, `nDCG@10`, `MRR`, `all@5`, `answer@budget`.
            baseline: Name of the row that every other one is compared with; None compares each two rows.

        Raises:
            ConfigurationError: A row or measure is unknown, or two rows have other questions.
        """
        if baseline is None:
            pairs = [(one, other) for other, one in combinations(self, 2)]
        else:
            base = self.row(baseline)
            pairs = [(row, base) for row in self if row is not base]
        differences = [paired_differences(one, other, measure) for one, other in pairs]
        p_values = list(map(randomization_p, differences))
        return [
            Comparison(one.setup.recipe, other.setup.recipe, measure, *interval, p=p, p_corrected=corrected)
            for (one, other), interval, p, corrected in zip(
                pairs, map(_ends, differences), p_values, holm(p_values), strict=True
            )
        ]

    def export(self, folder: str | Path, measure: str = "nDCG@10") -> list[Path]:
        """Write everything for a paper: the table, runs and judgements for programs of TREC, comparisons.

        Args:
            folder: Made if it is not there; files in it are replaced.
            measure: What the rows are compared by.

        Returns:
            The files: `rows.csv`, `rows.tex`, `comparisons.csv`, `qrels.txt`, and a run per row.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.to_csv(folder / "rows.csv")
        self.to_latex(folder / "rows.tex")
        comparisons = [{name: getattr(c, name) for name in Comparison.__slots__} for c in self.compare(measure)]
        out = io.StringIO()
        writer = csv.DictWriter(out, Comparison.__slots__, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _number(value, 4) for name, value in row.items()} for row in comparisons)
        _written(out.getvalue(), folder / "comparisons.csv")
        files = ["rows.csv", "rows.tex", "comparisons.csv", "qrels.txt"]
        write_qrels(folder / "qrels.txt", {q: grades for row in self[:1] for q, grades in judgements_of(row).items()})
        for number, row in enumerate(self, start=1):
            files.append(f"{number:02}-{re.sub(r'[^0-9A-Za-z.+-]+', '-', row.setup.recipe)[:60]}.run")
            write_run(folder / files[-1], row)
        return [folder / name for name in files]


def _points(row: EvalRow, over: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """Lines of a row in a plot: a style, and recall over something."""
    middle = sorted(row.ks)[(len(row.ks) - 1) // 2]
    curves: Mapping[str, Mapping[str, Iterable[tuple[float, float | None]]]] = {
        "k": {"-": [(k, row.recall_passages(k)) for k in sorted(row.ks)]},
        "tokens": {
            "-": [(tokens, row.mean(f"tokens@{tokens}")) for tokens in row.budgets],
            "--": [(tokens, row.mean(f"context@{tokens}")) for tokens in row.budgets],
        },
        "cost": {"": [(row.query_p50_ms(), row.recall_passages(middle))] if row.query_p50_ms() else []},
    }
    return [(style, [(x, y) for x, y in values if y is not None]) for style, values in curves.get(over, {}).items()]


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for the number of tests (Holm 1979): no error among all of them, at the level of each."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, highest = [0.0] * len(p_values), 0.0
    for rank, number in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p_values[number]))
        corrected[number] = highest
    return corrected


def randomization_p(differences: NDArray[np.float64], seed: int = 0) -> float:
    """Share of random signs of paired differences, `[n]`, with a mean as far from 0 as theirs; at least 1 / 10,001."""
    rng = np.random.default_rng(seed)
    seen, extreme = abs(differences.sum()) - 1e-12, 1
    for start in range(0, _FLIPS, _BATCH):
        signs = rng.integers(0, 2, size=(min(_BATCH, _FLIPS - start), len(differences))) * 2 - 1
        extreme += int((np.abs(signs @ differences) >= seen).sum())
    return extreme / (_FLIPS + 1)


def _ends(differences: NDArray[np.float64]) -> tuple[float, float, float]:
    """The mean of differences, and both ends of its interval."""
    interval = interval_of(differences)
    return interval.difference, interval.low, interval.high


def _deviation(row: EvalRow, measure: str) -> str:
    """The standard deviation over repeated builds, for LaTeX."""
    figures = spread(build.mean(measure) for build in row.builds)
    return rf" $\pm$ {figures['sd']:.1f}" if figures else ""


def _number(value: Any, digits: int) -> Any:
    return f"{value:.{digits}f}" if isinstance(value, float) else "" if value is None else value


def _value(cell: str) -> float:
    return float(cell) if cell else -1.0


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
