"""Rows as JSON for scripts, as a Markdown table for people, and as charts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from sire_core.algorithms.pluralize import count, some
from sire_core.errors import ConfigurationError
from sire_core.evaluate.answer_eval import CLOSED_BOOK
from sire_core.evaluate.bootstrap import Interval, mean_interval
from sire_core.evaluate.rows import EvalRow, corpus_size
from sire_core.models.embedders import model_name
from sire_core.recipes.published import data_set_name

# Columns that tables of ablations leave out, so that lines fit a screen
_LEFT_OUT = ("recipe", "embedder", "extraction", "R@5 prov", "R@5 literal", "MRR", "nDCG@10")

_COMPARED = (
    "R@2",
    "R@5",
    "R@10",
    "R@10 literal",
    "EM",
    "F1",
    "Acc",
    "contain-Acc",
    "MRR",
    "coverage",
    "Acc@.25",
    "Acc@.5",
    "Acc@.25 precision",
    "Acc@.5 precision",
    "perspectives",
)

_MODES = {
    "errors": "Where misses come from, in percent of the errors",
    "missing": "Relations that passages state and the graph lacks, and that it has wrong, in percent, by a model",
    "judge": "Answers that a model finds better than those of the first row, in percent",
}
_ANSWERS = (
    "EM",
    "F1",
    "Acc",
    "accuracy",
    "STR-EM",
    "ROUGE-L",
    "D-F1",
    "DR",
    "perspectives",
    "findings",
    "calls",
    "TPQ",
    "TPER",
)
_RULES = {
    "hotpot": "F1: as in the official scripts of HotpotQA and 2WikiMultiHopQA; a wrong yes or no counts 0.",
    "words": "F1: words in common with the accepted answer.",
}
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a6761d", "#56b4e9", "#e69f00", "#555555")
"""Okabe and Ito's, which people who see colours differently can tell apart."""
_WIDTH, _HEIGHT = 330, 210
_LEFT, _TOP, _GAP_X, _GAP_Y = 56, 66, 84, 84
_MOST = 12


def format_table(rows: Sequence[EvalRow], width: int | None = None) -> str:
    """Markdown: one table per data set in order of first appearance, one line per row in the given order."""
    names = list(dict.fromkeys(row.dataset for row in rows))
    return "\n\n".join(_block([row for row in rows if row.dataset == name], width) for name in names)


def format_kinds(rows: Sequence[EvalRow]) -> str:
    """Return what each kind of unit contributes to each row."""
    heading = "What each kind of unit contributes: mean number among the first hits, points of recall found first"
    lines = [
        {
            "recipe": _label(row),
            "kind": kind,
            **{f"hits@{k}": f"{value[f'hits_{k}']:.2f}" for k in (5, 20)},
            **{f"R@{k}": _rate(value[f"gold_{k}"]) for k in (5, 20)},
        }
        for row in rows
        for kind, value in row.by_kind().items()
    ]
    return "\n".join([heading, "", *markdown_table(lines, 2)])


def format_groups(rows: Sequence[EvalRow]) -> str:
    """Markdown: R@5 of the passages, and the answers' EM where there are any, by number of hops and by type."""
    lines = []
    for row in rows:
        hops = {f"{name} hops": _rate(value) for name, value in row.by_hops().items() if name != "0"}
        types = {name or "no type": _rate(value) for name, value in row.by_type().items()}
        answers = {f"EM {name or 'no type'}": _rate(value) for name, value in row.answers.get("EM by type", {}).items()}
        lines.append({"recipe": _label(row), **hops, **types, **answers})
    return "\n".join(["R@5 by hops and by type of question", "", *markdown_table(lines, 1)]) if lines else ""


def format_analysis(rows: Sequence[EvalRow]) -> str:
    """Markdown: what the modes `--errors`, `--missing-edges` and `--judge` found; empty where they found nothing."""
    blocks = []
    for name, title in _MODES.items():
        lines = [
            {"recipe": _label(row), **{key: str(value) for key, value in row.analysis[name].items()}}
            for row in rows
            if name in row.analysis
        ]
        blocks += ["\n".join([title, "", *markdown_table(lines, 1)])] if lines else []
    return "\n\n".join(blocks)


def format_ablations(rows: Sequence[EvalRow]) -> str:
    """Markdown: what a paper prints for its rows, beside what ours found on one data set."""
    dataset = next((row.setup.paper["dataset"] for row in rows if row.setup.paper.get("dataset")), "")
    metrics = list(dict.fromkeys(key for row in rows for key in row.setup.paper if key not in ("table", "dataset")))
    lines = []
    for row in rows:
        paper = row.setup.paper
        printed = {f"paper {name}": f"{paper[name]:.1f}" if name in paper else "-" for name in metrics}
        ours = {name: cell for name, cell in _cells(row, sorted(row.ks)).items() if name not in _LEFT_OUT}
        ours |= {name: _rate(row.answers[name]) for name in metrics if name in row.answers}
        literal = [k for k in row.ks if f"R@{k} literal" in metrics]
        ours |= {f"R@{k} literal": "-" if _unsearched(row) else _rate(row.recall_literal(k)) for k in literal}
        if any(other.setup.perspectives for other in rows):
            ours |= _tree_cells(row)
        if any(other.evidence_match is not None for other in rows):
            ours["match"] = _rate(row.evidence_match)
        ours["MB"] = f"{sum(row.setup.storage.values()) / 1e6:.1f}"
        if any(other.setup.calls for other in rows):
            indexing = sum(number for stage, number in row.setup.calls.items() if stage != "search")
            ours |= {"index calls": f"{indexing:,}", "search calls": str(row.setup.calls.get("search", 0))}
        same = [f"no effect: as {_cell(row.same_as)}"] if row.same_as else []
        note_lines = [_cell(row.setup.note)] if row.setup.note else []
        notes = {"note": "; ".join([*note_lines, *same])} if note_lines or same else {}
        lines.append({"table": paper.get("table", ""), "row": _cell(row.setup.recipe), **printed, **ours, **notes})
    return "\n".join(
        [f"{_heading(rows)}; figures of the paper: {dataset or 'none'}", "", *markdown_table(lines, 2), *_foot(rows)]
    )


def check_comparison(dataset: str) -> None:
    """Refuse a comparison with papers that measured something else, before it is made."""
    if not published_rows(dataset):
        raise ConfigurationError(
            f"No published figures for {dataset}; they are known for folders that begin with musique, 2wiki, hotpot or "
            "multihop."
        )


def format_comparison(rows: Sequence[EvalRow]) -> str:
    """Markdown: our rows and what papers print for a data set, with what both were measured with."""
    name = rows[0].dataset if rows else "nothing"
    check_comparison(name)
    published = published_rows(name)
    metrics = [name for name in _COMPARED if any(name in figures for _, figures in published)]
    lines = []
    for row in rows:
        values = {f"R@{k}": row.recall_passages(k) for k in row.ks} | {"MRR": row.mrr()}
        values |= {f"R@{k} literal": row.recall_literal(k) for k in row.ks}
        values = {} if _unsearched(row) else values
        values |= {name: row.answers.get(name) for name in metrics if name in row.answers}
        pool = f"{len(row.results):,} questions, {corpus_size(row.documents, row.passages)}"
        used = {"pool": pool, "model": row.setup.extraction, "embedder": model_name(row.setup.embedder)}
        reader = row.answers.get("via", "-") if row.answers else "-"
        lines.append({"method": _label(row), "source": "ours", **_figures(metrics, values), **used, "reader": reader})
    for paper, figures in published:
        used = {key: paper[key] for key in ("pool", "model", "embedder", "reader")}
        cost = {"cost": paper["note"]} if "note" in paper else {}
        names = {"method": paper["method"], "source": paper["source"]}
        lines.append({**names, **_figures(metrics, figures), **used, **cost})
    plain = [{name: _cell(cell) for name, cell in line.items()} for line in lines]
    heading = f"{_heading(rows)}; published figures are of other pools, embedders and models, as stated"
    return "\n".join([heading, "", *markdown_table(plain, 2)])


def _figures(metrics: Sequence[str], values: Mapping[str, float | None]) -> dict[str, str]:
    return {name: _rate(values.get(name)) for name in metrics}


def _block(rows: Sequence[EvalRow], width: int | None) -> str:
    ks = sorted({k for row in rows for k in row.ks})
    lines = [_cells(row, ks) for row in rows]
    shown = _fitting(lines, 5 if 5 in ks else ks[0], width)
    left = len({"recipe", "embedder", "extraction"} & shown.keys())
    table = markdown_table([{name: line[name] for name in shown if name in line} for line in lines], left)
    hidden = [name for line in lines for name in line if name not in shown]
    more = ["", f"Not shown: {', '.join(dict.fromkeys(hidden))}."] if hidden else []
    if any(name.endswith(" several") for name in shown):
        more += ["", "one, several: questions that one document answers by itself, and the others."]
    return "\n".join([_heading(rows), "", *table, *more, *_foot(rows)])


def _fitting(lines: Sequence[Mapping[str, str]], focus: int, width: int | None) -> dict[str, None]:
    """Columns that fit a width in their order, those that matter most chosen first; the first one always."""
    header = dict.fromkeys(name for line in lines for name in line)
    if width is None:
        return header
    groups = f"R@{focus} one", f"R@{focus} several"
    first = ["recipe", f"R@{focus}", "vs hybrid", *_ANSWERS, *groups, "R@10", "p50 ms", "R@2", f"all@{focus}", "MRR"]
    room = width - 1
    chosen: set[str] = set()
    for name in sorted(header, key=lambda name: first.index(name) if name in first else len(first)):
        room -= max(len(name), *(len(line.get(name, "-")) for line in lines)) + 3
        if chosen and room < 0:
            break
        chosen.add(name)
    return {name: None for name in header if name in chosen}


def _foot(rows: Sequence[EvalRow]) -> list[str]:
    """Notes below a table: the rule of F1, and the number of needs that no passage meets."""
    rules = {row.answers["F1 rule"] for row in rows if "F1 rule" in row.answers}
    lines = [_RULES[name] for name in sorted(rules)]
    if unmet := max(row.unmet for row in rows):
        needs = sum(len(result.needs) for result in rows[0].results)
        which = [
            f"{result.id} (need {number}, {document})"
            for result in rows[0].results
            for number, (passages, document) in enumerate(zip(result.needs, result.gold, strict=False), 1)
            if not passages
        ]
        lines.append(
            f"{unmet:,} of {count(needs, 'need')} are met by no passage of the index and count as missed: "
            f"{some(which)}. Check the document's id and the quote (`sire documents INDEX ID` shows its text)."
        )
    return ["", *lines] if lines else []


def markdown_table(lines: Sequence[Mapping[str, str]], left: int) -> list[str]:
    """A table of cells by column, "-" where a line has none; the first `left` columns are aligned to the left."""
    header = list(dict.fromkeys(name for line in lines for name in line))
    table = [header, *([line.get(name, "-") for name in header] for line in lines)]
    widths = [max(len(line[column]) for line in table) for column in range(len(header))]
    rule = ["-" * width if i < left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return [
        "| "
        + " | ".join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        + " |"
        for line in (table[0], rule, *table[1:])
    ]


def _heading(rows: Sequence[EvalRow]) -> str:
    first = rows[0]
    questions = _distinct(len(row.results) for row in rows)
    noun = "question" if questions == "1" else "questions"
    heading = f"**{first.dataset}**: {corpus_size(first.documents, first.passages)}, {questions} {noun}"
    budgets = _distinct(row.budget for row in rows if row.budget)
    return f"{heading}, budget of {budgets} tokens" if budgets else heading


def _distinct(numbers: Iterable[int]) -> str:
    return " / ".join(f"{number:,}" for number in sorted(set(numbers)))


def _cells(row: EvalRow, ks: Sequence[int]) -> dict[str, str]:
    focus = 5 if 5 in ks else ks[0]
    deep = 10 if 10 in ks else ks[-1]
    groups = row.by_documents(focus)
    cells = {
        **{f"R@{k}": _rate(row.recall_passages(k)) for k in ks},
        **({f"R@{focus} {name}": _rate(value) for name, value in groups.items()} if len(groups) > 1 else {}),
        "vs hybrid": _difference(row),
        f"all@{focus}": _rate(row.all_at(focus)),
        f"nDCG@{deep}": _rate(row.ndcg(deep)),
        "MRR": _rate(row.mrr()),
        f"R@{focus} prov": _rate(row.recall(focus)),
        f"R@{focus} literal": _rate(row.recall_literal(focus)),
        "R@budget": _rate(row.recall_at_budget()),
        "answer@budget": _rate(row.answer_in_context()),
    }
    return {
        "recipe": _label(row),
        "embedder": _cell(model_name(row.setup.embedder)),
        "extraction": _cell(row.setup.extraction),
        "pool": f"{row.setup.pool:,}",
        **(dict.fromkeys(cells, "-") if _unsearched(row) else cells),
        **{name: str(value) for name, value in row.answers.items() if name in _ANSWERS},
        **_of_context(row),
        "build s": f"{row.setup.build_s:.1f}",
        "p50 ms": f"{row.query_p50_ms():.1f}",
    }


def _unsearched(row: EvalRow) -> bool:
    """Whether it is a paper's row without retrieval: what its recipe finds is not what the row is about."""
    return bool(row.setup.paper) and row.answers.get("via") == CLOSED_BOOK


def _label(row: EvalRow) -> str:
    """The recipe and the settings that were asked for; of repeated builds how many there were."""
    return _cell(_name(row) + (f" ({row.repeats['builds']} builds)" if row.repeats else ""))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _difference(row: EvalRow) -> str:
    """The difference to the baseline with its interval, and the spread of R@5 over repeated builds."""
    spread = row.repeats.get("recall_passages", {}).get("5") if row.repeats else None
    text = f" sd {spread['sd']:.1f}" if spread else ""
    if row.interval is None:
        return f"-{text}"
    low, high = row.interval["low"], row.interval["high"]
    star = "*" if row.interval["significant"] else ""
    return f"{row.interval['difference']:+.1f} [{low:.1f}, {high:.1f}]{star}{text}"


def _of_context(row: EvalRow) -> dict[str, str]:
    """Recall of what the answers were read from, where several searches made it."""
    if row.answers.get("via") in (None, "single"):
        return {}
    return {f"{row.answers['via']} R@{k}": _rate(value) for k, value in row.answers.get("recall", {}).items()}


def _tree_cells(row: EvalRow) -> dict[str, str]:
    """Mean modularity of the trees and the mean information that two of them share, both times 100."""
    figures = row.setup.perspectives
    values = {"modularity": figures.get("modularity"), "NMI": figures.get("nmi")}
    return {name: _rate(None if value is None else 100 * value) for name, value in values.items()}


def _rate(value: Any) -> str:
    return "-" if value is None else f"{value:.1f}"


@cache
def _published() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
    return rows


def published_rows(dataset: str) -> list[tuple[dict[str, Any], Mapping[str, float]]]:
    """Methods with figures (0..100) for a data set, known by the start of its name, in the order of their sources.

    The figures come from other question samples, pools, embedders, extracting models and readers, all of which are
    stated. Only a difference within one source is a finding; between sources it is an orientation.
    """
    name = data_set_name(dataset)
    return [(row, row["figures"][name]) for row in _published() if name in row["figures"]]


@dataclass(frozen=True, slots=True)
class _Panel:
    """A frame with scales from values to places."""

    left: float
    top: float
    title: str
    x_range: tuple[float, float]
    y_range: tuple[float, float] = (0.0, 100.0)
    logarithmic: bool = False

    def x(self, value: float) -> float:
        scale: Callable[[float], float] = log10 if self.logarithmic else float
        low, high = map(scale, self.x_range)
        return self.left + _WIDTH * (scale(value) - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return self.top + _HEIGHT * (1.0 - (min(max(value, low), high) - low) / (high - low))

    def point(self, number: int, x: float, value: Interval, note: str, width: float = 1.0) -> list[str]:
        """A mark with its interval."""
        line = _line((x, self.y(value.low)), (x, self.y(value.high)), _color(number), width)
        return [line, _mark(number, x, self.y(value.difference), note)]

    def frame(self, x_label: str, ticks: Iterable[tuple[float, str]], y_label: str) -> list[str]:
        """Border, title, lines and numbers of both axes."""
        low, high = self.y_range
        step = 10 if high - low <= 60 else 20
        parts = [_text(self.left, self.top - 10, self.title, bold=True)]
        for value in range(int(low), int(high) + 1, step):
            y = self.y(value)
            parts.append(_line((self.left, y), (self.left + _WIDTH, y), "#e3e3e3"))
            parts.append(_text(self.left - 6, y + 4, str(value), anchor="end"))
        for at, label in ticks:
            parts.append(_text(self.x(at), self.top + _HEIGHT + 16, label, anchor="middle"))
        parts.append(_text(self.left + _WIDTH / 2, self.top + _HEIGHT + 33, x_label, anchor="middle"))
        parts.append(_text(self.left - 34, self.top - 10, y_label, anchor="middle"))
        bottom = self.top + _HEIGHT
        parts.append(_line((self.left, bottom), (self.left + _WIDTH, bottom), "#444"))
        return parts


def check_chart(rows: int, *, with_gold: bool) -> None:
    """Refuse what no chart can show, before it is measured."""
    if not with_gold:
        raise ConfigurationError("A chart needs the rows of one data set whose questions have gold passages.")
    if rows > _MOST:
        raise ConfigurationError(f"A chart of {rows} rows is unreadable; name up to {_MOST - 3} recipes with -r.")


def chart(rows: Sequence[EvalRow]) -> str:
    """Quality against the cost of the index and against the time of a query, recall curves, and recall by hops."""
    one = bool(rows) and len({row.dataset for row in rows}) == 1
    check_chart(len(rows), with_gold=one and all(row.with_gold for row in rows))
    first = rows[0]
    heading = f"{first.dataset}: {corpus_size(first.documents, first.passages)}, {len(first.with_gold)} questions"
    width = 2 * _WIDTH + _LEFT + _GAP_X + 20
    height = 2 * _HEIGHT + _TOP + _GAP_Y + 60 + 18 * ceil(len(rows) / 6)
    frame = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="11" role="img"><title>{escape(heading)}</title>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>'
    )
    parts = [
        frame,
        _text(_LEFT - 34, 24, heading, bold=True, size=14),
    ]
    right, below = _LEFT + _WIDTH + _GAP_X, _TOP + _HEIGHT + _GAP_Y
    marks = [mean_interval([result.recall_passages(5) for result in row.with_gold]) for row in rows]
    flat = next((row.setup.build_s for row in rows if row.setup.recipe == "dense"), 0.0)
    parts += _scatter((_LEFT, _TOP), "R@5 and seconds to build the index", "s, log", rows, marks, _cost_of(flat))
    parts += _scatter((right, _TOP), "R@5 and time of a query", "ms, median, log", rows, marks, EvalRow.query_p50_ms)
    parts += _curves((_LEFT, below), rows)
    parts += _bars((right, below), rows)
    parts += _legend(below + _HEIGHT + 56, rows)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _cost_of(flat: float) -> Callable[[EvalRow], float]:
    def cost(row: EvalRow) -> float:
        return row.setup.build_s + (0.0 if row.setup.recipe in ("bm25", "dense", "hybrid", "flat") else flat)

    return cost


def _scatter(
    origin: tuple[float, float],
    title: str,
    label: str,
    rows: Sequence[EvalRow],
    marks: Sequence[Interval],
    cost: Callable[[EvalRow], float],
) -> list[str]:
    """A point with its interval for every row that cost something."""
    costs = [cost(row) for row in rows]
    known = [value for value in costs if value > 0]
    if not known:
        return [_text(*origin, f"{title}: nothing was built", bold=True)]
    low, high = 10 ** floor(log10(min(known) * 0.9)), 10 ** ceil(log10(max(known) * 1.1))
    panel = _Panel(*origin, title, (low, high), _span(marks), logarithmic=True)
    powers = range(round(log10(low)), round(log10(high)) + 1)
    parts = panel.frame(label, [(10.0**power, f"{10.0**power:g}") for power in powers], "R@5")
    for number, (row, mark, value) in enumerate(zip(rows, marks, costs, strict=True)):
        if value > 0:
            note = f"{_name(row)}: {mark.difference:.1f} [{mark.low:.1f}, {mark.high:.1f}], {value:.3g} {label[:2]}"
            parts += panel.point(number, panel.x(value), mark, note, 1.5)
    return parts


def _curves(origin: tuple[float, float], rows: Sequence[EvalRow]) -> list[str]:
    """R@k over k, and its interval at every cut-off."""
    ks = rows[0].ks
    points = [
        [mean_interval([result.recall_passages(k) for result in row.with_gold], samples=2000) for k in ks]
        for row in rows
    ]
    panel = _Panel(
        *origin, "Recall by number of passages", (-0.3, len(ks) - 0.7), _span([p for line in points for p in line])
    )
    parts = panel.frame("k", [(at, str(k)) for at, k in enumerate(ks)], "R@k")
    for number, (row, line) in enumerate(zip(rows, points, strict=True)):
        shift = 0.03 * (number - (len(rows) - 1) / 2)  # intervals side by side, not on top of each other
        path = " ".join(f"{panel.x(at + shift):.1f},{panel.y(point.difference):.1f}" for at, point in enumerate(line))
        dash = ' stroke-dasharray="5 3"' if number >= len(_COLORS) else ""
        parts.append(f'<polyline points="{path}" fill="none" stroke="{_color(number)}" stroke-width="1.5"{dash}/>')
        for at, point in enumerate(line):
            note = f"{_name(row)}: R@{ks[at]} {point.difference:.1f}"
            parts += panel.point(number, panel.x(at + shift), point, note)
    return parts


def _bars(origin: tuple[float, float], rows: Sequence[EvalRow]) -> list[str]:
    """R@5 by number of hops, and the recall of what fits a budget of tokens."""
    groups = [{f"{hops} hops": value for hops, value in row.by_hops().items() if hops != "0"} for row in rows]
    for row, group in zip(rows, groups, strict=True):
        recall = row.recall_at_budget()
        if recall is not None:
            group[f"R@{row.budget} tokens"] = recall
    names = list(dict.fromkeys(name for group in groups for name in group))
    if not names:
        return []
    panel = _Panel(*origin, "R@5 by hops, and recall of a context", (0.0, float(len(names))))
    parts = panel.frame("", [(at + 0.5, name) for at, name in enumerate(names)], "%")
    wide = 0.86 / len(rows)
    for number, (row, group) in enumerate(zip(rows, groups, strict=True)):
        for at, name in enumerate(names):
            if name in group:
                x, y = panel.x(at + 0.07 + wide * number), panel.y(group[name])
                parts.append(
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="{_WIDTH * wide / len(names) - 1:.1f}" '
                    f'height="{panel.y(0.0) - y:.1f}" fill="{_color(number)}">'
                    f"<title>{escape(f'{_name(row)}, {name}: {group[name]:.1f}')}</title></rect>"
                )
    return parts


def _legend(top: float, rows: Sequence[EvalRow]) -> list[str]:
    parts = []
    for number, row in enumerate(rows):
        x, y = _LEFT + 125 * (number % 6), top + 18 * (number // 6)
        parts += [_mark(number, x, y - 4, _name(row)), _text(x + 10, y, _name(row)[:20])]
    return parts


def _span(marks: Iterable[Interval]) -> tuple[float, float]:
    """Round bounds of the axis around all intervals."""
    known = list(marks)
    low = 10.0 * floor(min(mark.low for mark in known) / 10)
    return min(low, 90.0), max(10.0 * ceil(max(mark.high for mark in known) / 10), low + 10.0)


def _name(row: EvalRow) -> str:
    return row.setup.recipe + "".join(f" {key}={value}" for key, value in row.setup.settings.items())


def _color(number: int) -> str:
    return _COLORS[number % len(_COLORS)]


def _mark(number: int, x: float, y: float, note: str) -> str:
    """A point; rows that share a colour differ in shape."""
    title = f"<title>{escape(note)}</title>"
    if number < len(_COLORS):
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_color(number)}">{title}</circle>'
    return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{_color(number)}">{title}</rect>'


def _line(start: tuple[float, float], end: tuple[float, float], color: str, width: float = 1.0) -> str:
    return (
        f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" stroke="{color}" '
        f'stroke-width="{width}"/>'
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start", bold: bool = False, size: int = 0) -> str:
    style = (' font-weight="bold"' if bold else "") + (f' font-size="{size}"' if size else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#222"{style}>{escape(text)}</text>'
