"""`EvalRows`: the rows of an experiment, as tables for papers, files of TREC, and compared with each other."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.evaluate.bootstrap import interval_of
from sire_core.evaluate.qrels import write_qrels
from sire_core.evaluate.retrieval import all_at_k, reciprocal_rank
from sire_core.evaluate.rows import EvalRow, QuestionResult
from sire_core.evaluate.trec_files import judgements_of, run_of, write_run

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MEASURE = re.compile(r"(R|all|nDCG)@(\d{1,4})|MRR|answer@budget|R@budget")
_FLIPS, _BATCH = 10_000, 500
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

    @property
    def significant(self) -> bool:
        """True if the corrected probability is below 5 %."""
        return self.p_corrected < 0.05


class EvalRows(list[EvalRow]):
    """The rows of an experiment: a list, and what papers need of it."""

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
                **{name: _mean(per_question(row, name)) for name in chosen},
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

        Args:
            path: A file; None writes none.
            measures: The columns.
        """
        rows = self.table(measures)
        best = {name: max((_number(row[name], 1) for row in rows), key=_value, default="") for name in measures}
        lines = [f"\\begin{{tabular}}{{l{'r' * len(measures)}}}", "\\toprule"]
        lines += [" & ".join(["", *map(_escaped, measures)]) + r" \\", "\\midrule"]
        for row in rows:
            cells = [_number(row[name], 1) for name in measures]
            shown = [
                f"\\textbf{{{cell}}}" if cell and cell == best[name] else cell or "--"
                for name, cell in zip(measures, cells, strict=True)
            ]
            lines.append(" & ".join([_escaped(row["row"]), *shown]) + r" \\")
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
        names = [row.setup.recipe for row in self]
        if baseline is not None and baseline not in names:
            raise ConfigurationError(f"There is no row {baseline!r} among {', '.join(names)}.")
        pairs = [
            (one, other)
            for other, one in combinations(self, 2)
            if baseline is None or baseline in (one.setup.recipe, other.setup.recipe)
        ]
        pairs = [(other, one) if one.setup.recipe == baseline else (one, other) for one, other in pairs]
        differences = [_compared(one, other, measure) for one, other in pairs]
        corrected = holm([comparison[-1] for comparison in differences])
        return [
            Comparison(one.setup.recipe, other.setup.recipe, measure, *values, p)
            for (one, other), values, p in zip(pairs, differences, corrected, strict=True)
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
            write_run(folder / files[-1], run_of(row), row.setup.recipe)
        return [folder / name for name in files]


def _points(row: EvalRow, over: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """Lines of a row in a plot: a style, and recall over something."""
    middle = sorted(row.ks)[(len(row.ks) - 1) // 2]
    curves: Mapping[str, Mapping[str, Iterable[tuple[float, float | None]]]] = {
        "k": {"-": [(k, row.recall_passages(k)) for k in sorted(row.ks)]},
        "tokens": {"-": row.recall_within().items(), "--": row.context_within().items()},
        "cost": {"": [(row.query_p50_ms(), row.recall_passages(middle))] if row.query_p50_ms() else []},
    }
    return [(style, [(x, y) for x, y in values if y is not None]) for style, values in curves.get(over, {}).items()]


def per_question(row: EvalRow, measure: str) -> dict[str, float]:
    """Values of a measure, 0 to 1, by id of the question; questions for which there is none are left out.

    Raises:
        ConfigurationError: There is no such measure.
    """
    match = _MEASURE.fullmatch(measure)
    if match is None:
        raise ConfigurationError(
            f"There is no measure {measure!r}: it is R@K, nDCG@K, all@K, MRR, R@budget or answer@budget."
        )
    budget = {"R@budget": "recall_at_budget", "answer@budget": "answer_in_context"}.get(measure)
    if budget is not None:
        values = {result.id: getattr(result, budget) for result in row.results}
        return {name: float(value) for name, value in values.items() if value is not None}
    k = int(match[2] or 0)
    of: Mapping[str | None, Callable[[QuestionResult], float]] = {
        "R": lambda result: result.recall_passages(k),
        "nDCG": lambda result: result.ndcg(k),
        "all": lambda result: all_at_k(result.passages, result.wanted, k),
        None: lambda result: reciprocal_rank(result.passages, result.wanted),
    }
    return {result.id: of[match[1]](result) for result in row.with_gold}


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


def _compared(row: EvalRow, other: EvalRow, measure: str) -> tuple[float, float, float, float]:
    """Difference, both ends of its interval in points, and p."""
    ours, theirs = per_question(row, measure), per_question(other, measure)
    if not ours or ours.keys() != theirs.keys():
        raise ConfigurationError(
            f"{row.setup.recipe} and {other.setup.recipe} cannot be compared by {measure}: they have {len(ours)} and "
            f"{len(theirs)} questions with it, {len(ours.keys() & theirs.keys())} in common."
        )
    differences = np.array([100.0 * (ours[name] - theirs[name]) for name in ours])
    interval = interval_of(differences)
    return interval.difference, interval.low, interval.high, randomization_p(differences)


def _mean(values: Mapping[str, float]) -> float | None:
    return 100.0 * sum(values.values()) / len(values) if values else None


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
