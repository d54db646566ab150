"""`EvalRows`: the rows of an experiment, as tables for papers, files of TREC, and compared with each other."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

from sire_core.errors import ConfigurationError
from sire_core.evaluate.bootstrap import Comparison, compare_rows
from sire_core.evaluate.qrels import write_qrels
from sire_core.evaluate.rows import ANSWER_RATES, EvalRow, spread
from sire_core.evaluate.trec_files import judgements_of, write_run

_PRINTED_WIDTH = 120
_LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}"}


class EvalRows(list[EvalRow]):
    """The rows of an experiment: a list, and what papers need of it."""

    def __str__(self) -> str:
        """The rows as `sire eval` prints them."""
        from sire_core.evaluate.report import format_table

        text = format_table(self, _PRINTED_WIDTH)
        return f"{text}\n\nto_csv() has all columns." if "\nNot shown: " in text else text

    @property
    def labels(self) -> list[str]:
        """A name for each row, such as `hipporag2, published damping=0.3`; further rows of a name are numbered."""
        labels = [row.label for row in self]
        numbers = [labels[: position + 1].count(label) for position, label in enumerate(labels)]
        return [label if n == 1 else f"{label} ({n})" for label, n in zip(labels, numbers, strict=True)]

    def row(self, name: str) -> EvalRow:
        """Return the row with this label, or the only one whose label begins with this name.

        Raises:
            ConfigurationError: There is none, or there are several.
        """
        rows = dict(zip(self.labels, self, strict=True))
        begun = [label for label in rows if label == name or label.startswith((f"{name}, ", f"{name} "))]
        if name in rows or len(begun) == 1:
            return rows[name if name in rows else begun[0]]
        problem = f"Several rows begin with {name!r}" if begun else f"There is no row {name!r}"
        raise ConfigurationError(f"{problem}; choose one of: {'; '.join(begun or rows)}.")

    def table(self, measures: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """A dictionary per row: names and sizes, then a mean of each measure, 0 to 100, unrounded.

        Where builds were repeated their number stands there, too, and behind each mean its standard deviation, such as
        `R@5 sd`.

        Args:
            measures: Such as `R@5`, `nDCG@10`, `MRR`, `all@5`, `answer@budget`; None takes all that were measured.
        """
        chosen = list(measures) if measures is not None else self.measures()
        is_repeated = any(row.builds for row in self)
        return [
            {
                "row": label,
                "dataset": row.dataset,
                "questions": len(row.results),
                "passages": row.passages,
                "embedder": row.setup.embedder,
                "note": row.setup.note,
                **({"builds": len(row.builds) or 1} if is_repeated else {}),
                **{key: value for name in chosen for key, value in _figures(row, name, is_repeated).items()},
            }
            for label, row in zip(self.labels, self, strict=True)
        ]

    def measures(self) -> list[str]:
        """Return the measures that the rows have, in the order of tables."""
        ks = sorted({k for row in self for k in row.ks})
        names = [f"{name}@{k}" for name in ("R", "nDCG", "all") for k in ks]
        budget = ["R@budget", "answer@budget"] if any(row.budget for row in self) else []
        within = [
            f"{name}@{n}" for name in ("tokens", "context") for n in sorted({n for row in self for n in row.budgets})
        ]
        answers = ANSWER_RATES if any(row.answered for row in self) else ()
        return [*names, "MRR", *budget, *within, *answers]

    def to_csv(self, path: str | Path | None = None, measures: Sequence[str] | None = None) -> str:
        """Return the table as CSV; also written to `path` if there is one."""
        rows = self.table(measures)
        return _written(_csv(rows, list(rows[0]) if rows else ["row"]), path)

    def to_latex(
        self, path: str | Path | None = None, measures: Sequence[str] = ("R@5", "R@10", "nDCG@10", "MRR")
    ) -> str:
        """Return the table for LaTeX (package booktabs), with the best of each column in bold; also written to `path`.

        Of repeated builds the standard deviation stands beside the mean; notes on rows stand below.

        Args:
            path: A file; None writes none.
            measures: The columns.
        """
        rows = self.table(measures)
        best = {name: max((_number(row[name], 1) for row in rows), key=_value, default="") for name in measures}
        lines = [f"\\begin{{tabular}}{{l{'r' * len(measures)}}}", "\\toprule"]
        lines += [" & ".join(["", *map(_escaped, measures)]) + r" \\", "\\midrule"]
        for named in rows:
            cells = [_number(named[name], 1) for name in measures]
            shown = [
                (f"\\textbf{{{cell}}}" if cell and cell == best[name] else cell or "--")
                + (rf" $\pm$ {sd:.1f}" if (sd := named.get(f"{name} sd")) is not None else "")
                for name, cell in zip(measures, cells, strict=True)
            ]
            lines.append(" & ".join([_escaped(named["row"]), *shown]) + r" \\")
        notes = [_escaped(f"{row['row']}: {row['note']}") for row in rows if row["note"]]
        below = rf"\multicolumn{{{len(measures) + 1}}}{{l}}{{\footnotesize %s}} \\"
        return _written(
            "\n".join([*lines, "\\bottomrule", *(below % note for note in notes), "\\end{tabular}", ""]), path
        )

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
        rows = zip(self.labels, self, strict=True)
        lines = [(label, style, points) for label, row in rows for style, points in _points(row, over) if points]
        if not lines:
            raise ConfigurationError(f"No row was measured over {over!r}: it is k, tokens (with budgets=) or cost.")
        figure = Figure(layout="constrained")
        axes = figure.subplots()
        for label, style, points in lines:
            name = label + (", context" if style == "--" else "")
            axes.plot(*zip(*points, strict=True), style, marker="o", label=name)
        names = {"k": "k", "tokens": "tokens", "cost": "milliseconds a search"}
        axes.set(xlabel=names[over], ylabel="recall, %", xscale="linear" if over == "k" else "log")
        axes.legend()
        if path is not None:
            figure.savefig(path)
        return axes

    def compare(self, measure: str = "R@5", *, baseline: str | None = None) -> list[Comparison]:
        """Compare rows over their questions, with p-values that are corrected for all comparisons (Holm).

        Args:
            measure: Such as `R@5`, `nDCG@10`, `MRR`, `all@5`, `answer@budget`.
            baseline: Label of the row that every other one is compared with; None compares each two rows.

        Raises:
            ConfigurationError: A row or measure is unknown, or two rows have other questions.
        """
        if baseline is None:
            pairs = [(one, other) for other, one in combinations(self, 2)]
        else:
            base = self.row(baseline)
            pairs = [(row, base) for row in self if row is not base]
        labels = dict(zip(map(id, self), self.labels, strict=True))
        return [
            replace(compared, first=labels[id(one)], second=labels[id(other)])
            for compared, (one, other) in zip(compare_rows(pairs, measure), pairs, strict=True)
        ]

    def export(self, folder: str | Path, measure: str = "nDCG@10") -> list[Path]:
        """Write everything for a paper: the table, runs and judgements for programs of TREC, comparisons.

        Args:
            folder: Made if it is not there; files in it are replaced.
            measure: What the rows are compared by.

        Returns:
            The files: `rows.csv`, `rows.tex`, `comparisons.csv`, `qrels.txt`, and a run per row, or one per build where
            builds were repeated: their means are in the tables.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.to_csv(folder / "rows.csv")
        self.to_latex(folder / "rows.tex")
        comparisons = [{name: getattr(c, name) for name in Comparison.__slots__} for c in self.compare(measure)]
        _written(_csv(comparisons, Comparison.__slots__), folder / "comparisons.csv")
        files = ["rows.csv", "rows.tex", "comparisons.csv", "qrels.txt"]
        write_qrels(folder / "qrels.txt", {q: grades for row in self[:1] for q, grades in judgements_of(row).items()})
        for number, row in enumerate(self, start=1):
            name = f"{number:02}-{re.sub(r'[^0-9A-Za-z.+-]+', '-', row.label)[:60]}"
            for build, one in enumerate(row.builds or (row,), start=1):
                files.append(f"{name}-build-{build}.run" if row.builds else f"{name}.run")
                write_run(folder / files[-1], one)
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


def _figures(row: EvalRow, measure: str, is_repeated: bool) -> dict[str, float | None]:
    """The mean of a measure, and its standard deviation over repeated builds."""
    deviation = spread(build.mean(measure) for build in row.builds).get("sd")
    return {measure: row.mean(measure), **({f"{measure} sd": deviation} if is_repeated else {})}


def _csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _number(value, 4) for name, value in row.items()} for row in rows)
    return out.getvalue()


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
