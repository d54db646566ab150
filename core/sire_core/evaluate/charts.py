"""`chart`: the rows of one data set as an SVG picture of four panels, made without a library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from sire_core.errors import ConfigurationError
from sire_core.evaluate.bootstrap import Interval, mean_interval
from sire_core.evaluate.rows import EvalRow, corpus_size

_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a6761d", "#56b4e9", "#e69f00", "#555555")
"""Okabe and Ito's, which people who see colours differently can tell apart."""
_WIDTH, _HEIGHT = 330, 210
_LEFT, _TOP, _GAP_X, _GAP_Y = 56, 66, 84, 84
_MOST = 12


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
            x = panel.x(value)
            parts.append(_line((x, panel.y(mark.low)), (x, panel.y(mark.high)), _color(number), 1.5))
            note = f"{_name(row)}: {mark.difference:.1f} [{mark.low:.1f}, {mark.high:.1f}], {value:.3g} {label[:2]}"
            parts.append(_mark(number, x, panel.y(mark.difference), note))
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
            x = panel.x(at + shift)
            parts.append(_line((x, panel.y(point.low)), (x, panel.y(point.high)), _color(number)))
            parts.append(
                _mark(number, x, panel.y(point.difference), f"{_name(row)}: R@{ks[at]} {point.difference:.1f}")
            )
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
