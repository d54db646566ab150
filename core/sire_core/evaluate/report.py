"""Writing rows: JSON for scripts, a Markdown table for people."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from sire_core.algorithms.wording import count
from sire_core.errors import ConfigurationError
from sire_core.evaluate.rows import Row

_LEFT_OUT = ("recipe", "embedder", "extraction", "R@2", "R@10", "R@5 literal", "MRR")  # for lines that fit a screen

__all__ = ["format_ablations", "format_table", "write_rows"]


class Jsonable(Protocol):
    """A result that can be written."""

    def as_json(self) -> dict[str, Any]:
        """JSON-serialisable values."""


def write_rows(path: str | Path, rows: Sequence[Jsonable]) -> None:
    """Write rows as a JSON list (`as_json`); the file is replaced in one step.

    Raises:
        ConfigurationError: The file cannot be written.
    """
    path = Path(path)
    text = json.dumps([row.as_json() for row in rows], ensure_ascii=False, indent=1) + "\n"
    partial = ""
    try:
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(partial).chmod(0o644)  # mkstemp makes files that only their owner can read
        Path(partial).replace(path)
    except OSError as error:
        if partial:
            Path(partial).unlink(missing_ok=True)
        reason = error.strerror or error
        raise ConfigurationError(f"{path} cannot be written ({reason}); name a file in a folder you own.") from error


def format_table(rows: Sequence[Row]) -> str:
    """Markdown: one table per data set in order of first appearance, one line per row in the given order.

    Columns: the setup, R@k by provenance, all@5 and R@5 literal (the smallest cut-off where 5 is not measured), MRR,
    the two budget metrics, build seconds and median milliseconds of a search. A metric that no question counts for is
    shown as "-".
    """
    names = list(dict.fromkeys(row.dataset for row in rows))
    return "\n\n".join(_block([row for row in rows if row.dataset == name]) for name in names)


def format_ablations(rows: Sequence[Row]) -> str:
    """Markdown: what a paper prints for its rows, beside what ours found on one data set.

    Args:
        rows: With `Setup.paper`: `table`, `dataset`, and figures by metric.
    """
    named = next((row.setup.paper["dataset"] for row in rows if row.setup.paper.get("dataset")), "")
    metrics = list(dict.fromkeys(key for row in rows for key in row.setup.paper if key not in ("table", "dataset")))
    lines = []
    for row in rows:
        paper = row.setup.paper
        printed = {f"paper {name}": f"{paper[name]:.1f}" if name in paper else "-" for name in metrics}
        ours = {name: cell for name, cell in _cells(row, sorted(row.ks)).items() if name not in _LEFT_OUT}
        ours |= {name: _rate(row.answers[name]) for name in metrics if name in row.answers}
        if any(other.setup.perspectives for other in rows):
            ours |= _tree_cells(row)
        if any(other.evidence_match is not None for other in rows):
            ours["match"] = _rate(row.evidence_match)
        label = row.setup.recipe.replace("|", "\\|")
        lines.append({"table": paper.get("table", ""), "row": label, **printed, **ours})
    return "\n".join([f"{_heading(rows)}; figures of the paper: {named or 'none'}", "", *_markdown(lines, 2)])


def _block(rows: Sequence[Row]) -> str:
    ks = sorted({k for row in rows for k in row.ks})
    return "\n".join([_heading(rows), "", *_markdown([_cells(row, ks) for row in rows], 3)])


def _markdown(lines: Sequence[Mapping[str, str]], left: int) -> list[str]:
    """A table of cells by column, all lines with the same columns; the first `left` ones are aligned to the left."""
    header = list(lines[0])
    table = [header, *([line[name] for name in header] for line in lines)]
    widths = [max(len(line[column]) for line in table) for column in range(len(header))]
    rule = ["-" * width if i < left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return [
        "| "
        + " | ".join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        + " |"
        for line in (table[0], rule, *table[1:])
    ]


def _heading(rows: Sequence[Row]) -> str:
    first = rows[0]
    questions = _distinct(len(row.results) for row in rows)
    noun = "question" if questions == "1" else "questions"
    heading = f"**{first.dataset}**: {count(first.passages, 'passage')}, {questions} {noun}"
    budgets = _distinct(row.budget for row in rows if row.budget)
    return f"{heading}, budget of {budgets} tokens" if budgets else heading


def _distinct(numbers: Iterable[int]) -> str:
    return " / ".join(f"{number:,}" for number in sorted(set(numbers)))


def _cells(row: Row, ks: Sequence[int]) -> dict[str, str]:
    focus = 5 if 5 in ks else ks[0]
    return {
        "recipe": row.setup.recipe.replace("|", "\\|"),
        "embedder": row.setup.embedder.replace("|", "\\|"),
        "extraction": row.setup.extraction.replace("|", "\\|"),
        "pool": f"{row.setup.pool:,}",
        **{f"R@{k}": _rate(row.recall(k)) for k in ks},
        f"all@{focus}": _rate(row.all_at(focus)),
        f"R@{focus} literal": _rate(row.recall_literal(focus)),
        "MRR": _rate(row.mrr()),
        "R@budget": _rate(row.recall_at_budget()),
        "answer@budget": _rate(row.answer_in_context()),
        **{name: str(value) for name, value in row.answers.items() if name in ("EM", "F1", "calls")},
        "build s": f"{row.setup.build_s:.1f}",
        "p50 ms": f"{row.query_p50_ms():.1f}",
    }


def _tree_cells(row: Row) -> dict[str, str]:
    """Mean modularity of the trees and the mean information that two of them share, both times 100."""
    figures = row.setup.perspectives
    values = {"modularity": figures.get("modularity"), "NMI": figures.get("nmi")}
    return {name: _rate(None if value is None else 100 * value) for name, value in values.items()}


def _rate(value: Any) -> str:
    return "-" if value is None else f"{value:.1f}"
