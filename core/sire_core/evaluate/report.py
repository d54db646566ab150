"""Rows as Markdown tables, beside published figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sire_core.errors import ConfigurationError
from sire_core.evaluate.answer_eval import CLOSED_BOOK
from sire_core.evaluate.rows import EvalRow, corpus_size
from sire_core.models.embedders import model_name
from sire_core.recipes.published import data_set_name
from sire_core.text.pluralize import count, some

# Columns that tables of ablations leave out, so that lines fit a screen
_HIDDEN_COLUMNS = ("recipe", "embedder", "extraction", "R@5 prov", "R@5 literal", "MRR", "nDCG@10")

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
    """Markdown: what the modes `--missing-edges` and `--judge` found; empty where they found nothing."""
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
        ours = {name: cell for name, cell in _cells(row, sorted(row.ks)).items() if name not in _HIDDEN_COLUMNS}
        ours |= {name: _rate(row.answers[name]) for name in metrics if name in row.answers}
        literal = [k for k in row.ks if f"R@{k} literal" in metrics]
        ours |= {f"R@{k} literal": "-" if _unsearched(row) else _rate(row.mean(f"R@{k} literal")) for k in literal}
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
        searched = [] if _unsearched(row) else ["MRR", *(f"R@{k}{end}" for k in row.ks for end in ("", " literal"))]
        values = {name: row.mean(name) for name in searched}
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
        more += ["", "one: questions that a single document answers; several: questions that need more than one."]
    more += [line for row in rows if row.setup.note for line in ("", f"{row.label}: {row.setup.note}.")]
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
    lines += filter(None, [unmet_note(max(rows, key=lambda row: row.unmet))])
    return ["", *lines] if lines else []


def unmet_note(row: EvalRow) -> str:
    """Which needs no passage of the index meets; empty if there are none."""
    if not row.unmet:
        return ""
    which = [
        f"{result.id} (need {number}, {document})"
        for result in row.results
        for number, (passages, document) in enumerate(zip(result.needs, result.gold, strict=False), 1)
        if not passages
    ]
    return (
        f"{row.unmet:,} of {count(sum(len(result.needs) for result in row.results), 'need')} are met by no passage of "
        f"the index and count as missed: {some(which)}. Check the document's id and the quote (`sire documents INDEX "
        "ID` shows its text)."
    )


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
    measures = [f"all@{focus}", f"nDCG@{deep}", "MRR", f"R@{focus} prov", f"R@{focus} literal"]
    cells = {
        **{f"R@{k}": _rate(row.recall_passages(k)) for k in ks},
        **({f"R@{focus} {name}": _rate(value) for name, value in groups.items()} if len(groups) > 1 else {}),
        "vs hybrid": _difference(row),
        **{name: _rate(row.mean(name)) for name in measures},
        **{f"{budget:,} tokens": _rate(row.mean(f"tokens@{budget}")) for budget in row.budgets},
        **{f"context {budget:,}": _rate(row.mean(f"context@{budget}")) for budget in row.budgets},
        **{name: _rate(row.mean(name)) for name in ("R@budget", "answer@budget")},
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
    """True if it is a paper's row without retrieval: what its recipe finds is not what the row is about."""
    return bool(row.setup.paper) and row.answers.get("via") == CLOSED_BOOK


def _label(row: EvalRow) -> str:
    """The label; of repeated builds how many there were."""
    return _cell(row.label + (f" ({row.repeats['builds']} builds)" if row.repeats else ""))


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
