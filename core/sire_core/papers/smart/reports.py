"""Reports on communities: extracted sentences or a model's text, written from the leaves up (SMART, eq. 11)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import BaseModel

from sire_core.extend import (
    Delta,
    Failure,
    ModelError,
    Prompt,
    Unit,
    UnitKind,
    ask_all,
    count_tokens,
    estimate_tokens,
    ranges,
    truncate_tokens,
    unit_id,
    with_sources,
)
from sire_core.papers.smart import REPORTS
from sire_core.papers.smart.report_nodes import ReportNode, ReportTable, report_tree, tree_name

if TYPE_CHECKING:
    from sire_core.extend import BuildView, LanguageModel
    from sire_core.papers.smart.entity_network import EntityNetwork, NetworkStatement, Statements
    from sire_core.papers.smart.entity_views import EvidenceView
    from sire_core.papers.smart.perspectives import Perspective


_MAX_TITLE_NAMES = 3
_SEEN_PASSAGE = 0.5
_SEEN_ENTITY = 0.2
_SCALE = 1e9  # gains are compared to so many parts of one: ties must not hang on rounding


class ReportLimits(NamedTuple):
    """The settings of `Perspectives` that reports depend on."""

    levels: int
    min_passages: int
    report_tokens: int
    extract_tokens: int
    context_tokens: int


@dataclass(frozen=True, slots=True)
class Report:
    """The report on a community of entities."""

    title: str  # its central entities
    text: str  # what the reader sees
    passages: tuple[int, ...]  # numbers of the passages it rests on, most important first
    statements: tuple[int, ...]  # numbers of the statements it was made of, for the reports above it


def extract_report(
    node: ReportNode, candidates: Sequence[int], network: EntityNetwork, max_tokens: int, min_passages: int = 2
) -> Report | None:
    """Quote a community: its central entities, then the sentences that say most about it."""
    choose = strongest if min_passages < 2 else _pick_statements
    picked = choose(node.relevance, network.statements, candidates, max_tokens)
    if not picked:
        return None
    passages = tuple(dict.fromkeys(int(network.statements.passages[number]) for number in picked))
    quoted = list(network.read(picked).values())
    title = central_names(node.relevance, quoted)
    ordered = sorted(quoted, key=lambda statement: statement.passage)
    sentences = dict.fromkeys(truncate_tokens(statement.text, max_tokens) for statement in ordered)
    return Report(title, "\n".join((title, *sentences)), passages, tuple(picked))


def _pick_statements(
    weights: Mapping[int, float], statements: Statements, candidates: Sequence[int], max_tokens: int
) -> list[int]:
    """Pick the strongest statements of at least two passages; none if only one passage says anything."""
    picked = strongest(weights, statements, candidates, max_tokens)
    if len(dict.fromkeys(statements.passages[picked].tolist())) != 1:
        return picked
    best = picked[0]
    rows = np.array(candidates, dtype=np.int64)
    others = rows[
        (statements.passages[rows] != statements.passages[best]) & (statements.words[rows] != statements.words[best])
    ]
    fitting = others[statements.tokens[others] + statements.tokens[best] <= max_tokens]
    second = strongest(weights, statements, (fitting if len(fitting) else others).tolist(), 1)
    return [best, *second[:1]] if second else []


def central_names(weights: Mapping[int, float], statements: Iterable[NetworkStatement]) -> str:
    """Join the names of the members with the largest weights, as the given statements' passages spell them."""
    names = _spelled_names(weights, statements)
    central = sorted(names, key=lambda vertex: -weights[vertex])[:_MAX_TITLE_NAMES]  # of equals who is named first
    return ", ".join(dict.fromkeys(names[vertex] for vertex in central))


def _spelled_names(weights: Mapping[int, float], statements: Iterable[NetworkStatement]) -> dict[int, str]:
    names: dict[int, str] = {}
    for statement in statements:
        for vertex, name in statement.names.items():
            if vertex in weights:
                names.setdefault(vertex, name)
    return names


def strongest(
    weights: Mapping[int, float], statements: Statements, candidates: Sequence[int], max_tokens: int
) -> list[int]:
    """Choose the statements that say most about weighted vertices, within a length; in the order of choice."""
    rows = np.array(candidates, dtype=np.int64)
    words, passages, lengths = statements.words[rows], statements.passages[rows], statements.tokens[rows]
    sizes = statements.ends[rows + 1] - statements.ends[rows]
    owners = np.repeat(np.arange(len(rows)), sizes)
    vertices = statements.vertices[ranges(statements.ends[rows], sizes)]
    weighted = np.fromiter(weights, dtype=np.int64, count=len(weights))
    worth = np.zeros(1 + max(int(weighted.max(initial=-1)), int(vertices.max(initial=-1))))
    worth[weighted] = np.fromiter(weights.values(), dtype=np.float64, count=len(weights))
    entity_share, passage_share = np.ones(len(worth)), np.ones(len(rows))
    is_open = np.ones(len(rows), dtype=np.bool_)
    chosen: list[int] = []
    while is_open.any():
        gains = np.bincount(owners, weights=(worth * entity_share)[vertices], minlength=len(rows)) * passage_share
        best = int(np.where(is_open, np.rint(gains * _SCALE), -1.0).argmax())
        chosen.append(int(rows[best]))
        max_tokens -= int(lengths[best])
        entity_share[vertices[owners == best]] = _SEEN_ENTITY
        passage_share[passages == passages[best]] = _SEEN_PASSAGE
        is_open &= (words != words[best]) & (lengths <= max_tokens)
    return chosen


_REPORT_INSTRUCTIONS = """\
The input describes a community of entities: its entities, what passages state of them and, where there are any, \
reports on its parts. Write a report on the community as a whole. `title`: a short name that holds its main entities. \
`summary`: one or two sentences, how its entities are related and what matters most about them. `findings`: up to \
{findings} insights, the most important first, numbered from 1; each a short `summary` and an `explanation` in one to \
three sentences with the names, dates and facts it rests on. At most {words} words in all. State only what follows \
from the input, in its language, and do not speak about the input."""
_WORDS_PER_TOKEN = 0.7
_ANSWER_SLACK = 1.5
_JSON_TOKENS = 120
_MAX_FINDINGS = 5


class _Finding(BaseModel):
    id: int
    summary: str
    explanation: str = ""


class ReportAnswer(BaseModel):
    """The model's answer."""

    shape: ClassVar[str] = '{"title":"","summary":"","findings":[{"id":1,"summary":"","explanation":""}]}'

    title: str
    summary: str
    findings: list[_Finding] = []


@dataclass(frozen=True, slots=True)
class ReportEvidence:
    """Evidence on a community for the model's prompt."""

    data: str  # the prompt's data, JSON
    passages: tuple[int, ...]  # numbers of the passages whose words are in it
    chunk_ids: tuple[str, ...]  # their chunks
    statements: tuple[int, ...]  # numbers of the statements in it


def gather_evidence(
    node: ReportNode, below: Sequence[Report], network: EntityNetwork, context_tokens: int, min_passages: int
) -> ReportEvidence | None:
    """Gather reports on the parts, then what joins the parts, strongest first, within a token budget."""
    budget = _TokenBudget(context_tokens)
    texts = [report.text for report in below]
    if sum(estimate_tokens(text) + 2 for text in texts) > context_tokens // 2:
        texts = ["\n".join(text.split("\n")[:2]) for text in texts]
    fitting = [at for at, text in enumerate(texts) if budget.takes(text)]
    stated = network.statements
    order = sorted(node.statements, key=lambda number: (-_statement_weight(number, node, network), number))
    picked = [number for number in order if budget.holds(int(stated.estimates[number]))]
    sources = [int(stated.passages[number]) for number in picked]
    passages = dict.fromkeys([*(p for at in fitting for p in below[at].passages), *sources])
    if len(passages) < min_passages:
        return None
    statements = list(network.read(picked).values())
    data: dict[str, Any] = {"entities": _entities(node, statements, set(passages), network, budget)}
    data["statements"] = [statement.text for statement in statements]
    if fitting:
        data["reports"] = [texts[at] for at in fitting]
    chunk_ids = tuple(dict.fromkeys(chunk for passage in passages for chunk in network.passages[passage]))
    return ReportEvidence(json.dumps(data, ensure_ascii=False), tuple(passages), chunk_ids, tuple(picked))


def _statement_weight(number: int, node: ReportNode, network: EntityNetwork) -> float:
    stated = network.statements
    return float(stated.weights[number]) * sum(node.relevance.get(vertex, 0.0) for vertex in stated.named(number))


def _entities(
    node: ReportNode,
    stated: Sequence[NetworkStatement],
    passages: set[int],
    network: EntityNetwork,
    budget: _TokenBudget,
) -> list[dict[str, str]]:
    """Return the entities that the shown statements name, by weight, with descriptions from shown passages."""
    names = _spelled_names(node.relevance, stated)
    descriptions = network.descriptions(names)
    entries = []
    for vertex in sorted(names, key=lambda vertex: -node.relevance[vertex]):  # of equals who is named first
        description, passage = descriptions.get(vertex, ("", -1))
        entry = {"name": names[vertex], **({"description": description} if passage in passages else {})}
        if budget.takes(" ".join(entry.values())):
            entries.append(entry)
    return entries


class _TokenBudget:
    """Counts down tokens."""

    def __init__(self, tokens: int) -> None:
        self._left = tokens

    def takes(self, text: str) -> bool:
        return self.holds(estimate_tokens(text))

    def holds(self, tokens: int) -> bool:
        size = tokens + 4  # quotes, comma and key
        if size > self._left:
            return False
        self._left -= size
        return True


async def ask_report(language_model: LanguageModel, max_tokens: int, evidence: ReportEvidence) -> Report | Failure:
    """Let a model write a report on a community."""
    model = with_sources(language_model, evidence.chunk_ids)
    words = max(20, round(max_tokens * _WORDS_PER_TOKEN))
    prompt = Prompt(_REPORT_INSTRUCTIONS.format(words=words, findings=_MAX_FINDINGS), evidence.data)
    answer_tokens = round(max_tokens * _ANSWER_SLACK) + _JSON_TOKENS
    try:
        answer = (await model.complete(prompt, schema=ReportAnswer, max_tokens=answer_tokens)).parsed
    except ModelError as error:
        return Failure(f"report on passages from {evidence.chunk_ids[0]} on", f"{type(error).__name__}: {error}"[:500])
    text = _report_text(answer, max_tokens)
    return Report(_line(answer.title), text, evidence.passages, evidence.statements)


def _report_text(answer: ReportAnswer, max_tokens: int) -> str:
    """Return title, summary, and as many findings as the length allows."""
    lines = [_line(answer.title), _line(answer.summary)]
    budget = max_tokens - sum(map(count_tokens, lines))
    for number, finding in enumerate(answer.findings[:_MAX_FINDINGS], 1):
        line = f"[{number}] {_line(finding.summary)}"
        if finding.explanation.strip():
            line += f": {_line(finding.explanation)}"
        budget -= count_tokens(line)
        if budget < 0:
            break
        lines.append(line)
    return truncate_tokens("\n".join(lines).strip(), max_tokens)


def _line(text: str) -> str:
    return " ".join(text.split())


_MIN_MODEL_ENTITIES = 3  # Clusters of fewer entities get a text by template instead of a call


@dataclass(frozen=True, slots=True)
class ReportWriter:
    """Writes the reports on the nodes of one level after the other, from the leaves up."""

    network: EntityNetwork
    limits: ReportLimits
    views: Sequence[str]  # by tree, the name of the view that it groups
    view: BuildView

    async def write(self, level: int, nodes: Sequence[ReportNode]) -> list[Failure]:
        """Write reports on the nodes of a level; needs the reports below."""
        model, failures = self.view.language_model, []
        evidence = await asyncio.to_thread(lambda: [self._evidence(node) for node in nodes])
        shown = [one for one in evidence if isinstance(one, ReportEvidence)]
        if model is not None:
            say = partial(self.view.progress, f"reports of level {level}")
            ask = partial(ask_report, model, self.limits.report_tokens)
            answers = iter(await ask_all(model, ask, shown, say))
        for node, material in zip(nodes, evidence, strict=True):
            report, node.passed_on = (
                (next(answers), material.statements) if isinstance(material, ReportEvidence) else material
            )
            if isinstance(report, Failure):
                failures.append(report)
            elif report is not None and report.text.strip():
                node.report, node.unit = report, self._unit(node, report)
        return failures

    def _evidence(self, node: ReportNode) -> ReportEvidence | tuple[Report | None, Sequence[int]]:
        """Return what to show the model of a node; without a call the report, and what the node passes on."""
        min_passages = self.limits.min_passages
        if self.view.language_model is None or len(node.weights) < _MIN_MODEL_ENTITIES:
            candidates = _candidates(node, node.children)
            report = extract_report(node, candidates, self.network, self.limits.extract_tokens, min_passages)
            return report, candidates if report is None else report.statements
        # No report below states what a part without a report passes on.
        whole = replace(node, statements=_candidates(node, [child for child in node.children if not child.report]))
        below = [child.report for child in node.children if child.report]
        evidence = gather_evidence(whole, below, self.network, self.limits.context_tokens, min_passages)
        return evidence or (None, whole.statements)

    def _unit(self, node: ReportNode, report: Report) -> Unit:
        chunk_ids = tuple(dict.fromkeys(chunk for at in report.passages for chunk in self.network.passages[at]))
        # Two trees may say the same of the same passages; each keeps its own unit.
        scope = f"{self.view.fingerprint}:{node.tree}:{node.level}"
        return Unit(
            id=unit_id(UnitKind.REPORT.value, scope, chunk_ids, report.text),
            kind=UnitKind.REPORT,
            text=report.text,
            chunk_ids=chunk_ids,
            level=node.level,
            tree=tree_name(node.tree),
            title=report.title,
            metadata={"entities": len(node.weights), "view": self.views[node.tree]},
        )


def _candidates(node: ReportNode, children: Iterable[ReportNode]) -> tuple[int, ...]:
    """Return the statements of a node, and those that some of its children pass on."""
    return tuple(dict.fromkeys((*node.statements, *(statement for child in children for statement in child.passed_on))))


async def write_reports(
    network: EntityNetwork,
    view: BuildView,
    limits: ReportLimits,
    perspectives: Sequence[Perspective],
    views: Sequence[EvidenceView],
) -> Delta:
    """Write the reports on all nodes of all trees; a model's answer to an equal prompt is stored and not paid again."""
    pairs = list(enumerate(zip(perspectives, views, strict=True)))
    trees = await asyncio.to_thread(
        lambda: [report_tree(number, one.tree.filled(), network, evidence) for number, (one, evidence) in pairs]
    )
    nodes = [node for tree in trees for node in tree.nodes]
    writer = ReportWriter(network, limits, [one.view for one in perspectives], view)
    failures: list[Failure] = []
    for level in range(1, limits.levels + 1):
        failures += await writer.write(level, [node for node in nodes if node.level == level])
    stored = {unit.id: unit for unit in view.units()}
    units = {node.unit.id: node.unit for node in nodes if node.unit}
    table = await asyncio.to_thread(ReportTable.of, trees, network.ids)
    return Delta(
        put_units=tuple(unit for unit in units.values() if stored.get(unit.id) != unit),
        drop_units=tuple(sorted(stored.keys() - units.keys())),
        notes={REPORTS: table.to_note()},
        failures=tuple(failures),
    )
