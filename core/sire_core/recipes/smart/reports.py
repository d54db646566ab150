"""Reports on communities: extracted sentences or a model's text, written from the leaves up (SMART, eq. 11)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import BaseModel

from sire_core.algorithms.grouping import ranges
from sire_core.algorithms.pluralize import count
from sire_core.algorithms.text import count_tokens, truncate_tokens
from sire_core.algorithms.worker_pool import map_all
from sire_core.errors import ModelError
from sire_core.models.base import concurrency_of, with_sources
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import BlockEdges, Delta, Prompt
from sire_core.recipes.smart import REPORTS
from sire_core.recipes.smart.report_nodes import ReportTable, TreeReports, table_of, tree_name
from sire_core.types import Failure, Unit, UnitKind, digest, unit_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import BuildView, LanguageModel
    from sire_core.recipes.smart.derive import Perspectives
    from sire_core.recipes.smart.network import EntityNetwork, NetworkStatement, Statements
    from sire_core.recipes.smart.perspectives import Perspective
    from sire_core.recipes.smart.report_nodes import ReportNode
    from sire_core.recipes.smart.views import EvidenceView


_MAX_TITLE_NAMES = 3
_SEEN_PASSAGE = 0.5
_SEEN_ENTITY = 0.2
_SCALE = 1e9  # gains are compared to so many parts of one: ties must not hang on rounding


@dataclass(frozen=True, slots=True)
class Report:
    """The report on a community of entities."""

    title: str  # its central entities
    text: str  # what the reader sees
    passages: tuple[int, ...]  # numbers of the passages it rests on, most important first
    statements: tuple[int, ...]  # numbers of the statements it was made of, for the reports above it
    evidence: str = ""  # digest of what the model was shown; empty without one


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
    """Return the first name of each weighted vertex that statements name."""
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
    columns = statements.tokens[rows], statements.words[rows], statements.passages[rows]
    lengths, words, passages = (column.tolist() for column in columns)
    covered: set[int] = set()
    quoted: set[int] = set()
    used_words: set[int] = set()

    def members(at: int) -> list[int]:
        return [vertex for vertex in statements.named(int(rows[at])) if vertex in weights]

    def gain_of(at: int) -> float:
        gain = sum((_SEEN_ENTITY if vertex in covered else 1.0) * weights[vertex] for vertex in members(at))
        return round(gain * (_SEEN_PASSAGE if passages[at] in quoted else 1.0) * _SCALE) / _SCALE

    sizes = statements.ends[rows + 1] - statements.ends[rows]
    sums = _sums(weights, statements.vertices[ranges(statements.ends[rows], sizes)], sizes)
    gains = -np.rint(sums * _SCALE) / _SCALE
    order = np.argsort(gains, kind="stable")
    pending = list(zip(gains[order].tolist(), order.tolist(), strict=True))
    chosen: list[int] = []
    budget = max_tokens
    # What is chosen makes others worth less, never more: the first with an up-to-date gain is the best.
    while pending:
        known, best = heappop(pending)
        if words[best] in used_words or (chosen and lengths[best] > budget):
            continue
        if (gain := -gain_of(best)) != known:
            heappush(pending, (gain, best))
            continue
        covered.update(members(best))
        quoted.add(passages[best])
        used_words.add(words[best])
        chosen.append(int(rows[best]))
        budget -= lengths[best]
    return chosen


def _sums(weights: Mapping[int, float], vertices: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the summed weights of each run of vertices."""
    known = np.fromiter(weights, dtype=np.int64, count=len(weights))
    dense = np.zeros(1 + max(int(known.max(initial=-1)), int(vertices.max(initial=-1))))
    dense[known] = np.fromiter(weights.values(), dtype=np.float64, count=len(weights))
    runs = np.repeat(np.arange(len(sizes)), sizes)
    return np.bincount(runs, weights=dense[vertices], minlength=len(sizes)).astype(np.float64)


_INSTRUCTIONS = """\
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
    """What the model is shown of a community."""

    data: str  # the prompt's data, JSON
    passages: tuple[int, ...]  # numbers of the passages whose words are in it
    chunk_ids: tuple[str, ...]  # their chunks
    statements: tuple[int, ...]  # numbers of the statements in it

    @property
    def digest(self) -> str:
        """Changes with the data and with the passages it comes from."""
        return digest(self.data, *self.chunk_ids)


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
    prompt = Prompt(_INSTRUCTIONS.format(words=words, findings=_MAX_FINDINGS), evidence.data)
    answer_tokens = round(max_tokens * _ANSWER_SLACK) + _JSON_TOKENS
    try:
        answer = (await model.complete(prompt, schema=ReportAnswer, max_tokens=answer_tokens)).parsed
    except ModelError as error:
        subject = f"report on {count(len(evidence.passages), 'passage')}, first {evidence.chunk_ids[0]}"
        return Failure(subject, f"{type(error).__name__}: {error}"[:500])
    text = _report_text(answer, max_tokens)
    return Report(_line(answer.title), text, evidence.passages, evidence.statements, evidence.digest)


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


_MIN_MODEL_ENTITIES = 3
"""Clusters of fewer entities get a text by template instead of a call."""
_OpenNodes = list[tuple[TreeReports, int, "ReportNode"]]


class ReportWriter:
    """Writes reports from the leaves up; reuses those whose evidence did not change."""

    def __init__(self, network: EntityNetwork, view: BuildView, settings: Perspectives) -> None:
        self._network = network
        self._view = view
        self._settings = settings
        note = view.notes([REPORTS]).get(REPORTS)
        self._before = ReportTable.of_units(view.units()) if note is None else ReportTable.from_note(note)
        if forgotten := view.forgotten():
            stale = [unit.id for unit in view.units() if not forgotten.isdisjoint(unit.chunk_ids)]
            self._before = self._before.without(stale)
        self._evidence = self._before.by_evidence()
        self._numbers = {passage: number for number, chunk_ids in enumerate(network.passages) for passage in chunk_ids}
        self._fresh: dict[str, Unit] = {}
        self._views: Sequence[str] = ()
        self._failures: list[Failure] = []

    async def write(self, perspectives: Sequence[Perspective], views: Sequence[EvidenceView]) -> ReportTable:
        """Write the reports on all communities of all trees."""

        def make_tree(number: int) -> TreeReports:
            return TreeReports(perspectives[number].tree, number, self._network, self._before, views[number])

        def open_level(level: int) -> _OpenNodes:
            return [node for tree in forest for node in tree.open_level(level)]

        self._views = [one.view for one in perspectives]
        forest = [await asyncio.to_thread(make_tree, number) for number in range(len(perspectives))]
        highest = max((int(tree.nodes.levels.max(initial=0)) for tree in forest), default=0)
        for level in range(1, highest + 1):
            open_nodes = await asyncio.to_thread(open_level, level)
            if self._view.language_model is None:
                await asyncio.to_thread(self._write_extracts, open_nodes)
            else:
                await self._write_by_model(open_nodes, level)
            self._make_units(open_nodes)
        return await asyncio.to_thread(table_of, forest, self._network, self._before, self._fresh)

    def delta(self, table: ReportTable, state: Mapping[str, Any], notes: Mapping[str, bytes | None]) -> Delta:
        """Return what differs from the stored reports, with the state and notes to store."""
        old = set(self._before.reports.astype(str).tolist())
        stored = {unit.id: unit for unit in self._view.units([unit_id for unit_id in self._fresh if unit_id in old])}
        current = set(table.reports.astype(str).tolist())
        return Delta(
            put_units=tuple(unit for unit in self._fresh.values() if stored.get(unit.id) != unit),
            drop_units=tuple(sorted(old - current)),
            in_blocks=BlockEdges(put=table, drop=self._before),
            state=state,
            notes={**notes, REPORTS: table.to_note()},
            failures=tuple(self._failures),
        )

    def _write_extracts(self, nodes: _OpenNodes) -> None:
        """Write extractive reports."""
        for tree, number, node in nodes:
            passed_on = (statement for child in node.children for statement in tree.passed_on(child))
            candidates = tuple(dict.fromkeys((*node.statements, *passed_on)))
            report = extract_report(
                node, candidates, self._network, self._settings.extract_tokens, self._settings.min_passages
            )
            if report is None:
                tree.unreported[number] = candidates
            else:
                tree.reports[number] = report

    async def _write_by_model(self, open_nodes: _OpenNodes, level: int) -> None:
        """Write the reports of one level: extracted, reused, or by the model."""
        model = self._view.language_model
        assert model is not None
        to_write = await asyncio.to_thread(self._to_write, open_nodes)
        answers = await map_all(
            partial(ask_report, model, self._settings.report_tokens),
            [evidence for *_, evidence in to_write],
            concurrency_of(model),
            partial(self._view.progress, f"reports of level {level}"),
        )
        for (tree, number, evidence), answer in zip(to_write, answers, strict=True):
            if isinstance(answer, Failure):
                self._failures.append(answer)
                tree.failed(number)
                tree.unreported[number] = evidence.statements
            else:
                tree.reports[number] = answer

    def _to_write(self, open_nodes: _OpenNodes) -> list[tuple[TreeReports, int, ReportEvidence]]:
        """Return what to show the model of the nodes that need a call."""
        unchanged = self._unchanged_reports(open_nodes)
        nodes_with_evidence: list[tuple[TreeReports, int, ReportEvidence]] = []
        for tree, number, node in open_nodes:
            if len(node.weights) < _MIN_MODEL_ENTITIES:
                self._write_extracts([(tree, number, node)])
                continue
            parts = {child: tree.reports.get(child) or unchanged.get((node.tree, child)) for child in node.children}
            reports = [part for part in parts.values() if part is not None]
            # No report below states what a part without a report passes on.
            unreported = [s for child, part in parts.items() if part is None for s in tree.passed_on(child)]
            whole = replace(node, statements=tuple(dict.fromkeys((*node.statements, *unreported))))
            evidence = gather_evidence(
                whole, reports, self._network, self._settings.context_tokens, self._settings.min_passages
            )
            if evidence is None:
                tree.unreported[number] = whole.statements
            else:
                nodes_with_evidence.append((tree, number, evidence))
        return self._reuse_stored(nodes_with_evidence)

    def _reuse_stored(
        self, nodes_with_evidence: Sequence[tuple[TreeReports, int, ReportEvidence]]
    ) -> list[tuple[TreeReports, int, ReportEvidence]]:
        """Take over stored reports with equal evidence; return the other nodes."""
        digests = [evidence.digest for *_, evidence in nodes_with_evidence]
        units = self._view.units(list(dict.fromkeys(self._evidence[key] for key in digests if key in self._evidence)))
        old = {unit.id: unit for unit in units}
        missing = []
        for (tree, number, evidence), key in zip(nodes_with_evidence, digests, strict=True):
            if key in self._evidence:
                unit = old[self._evidence[key]]
                tree.reports[number] = Report(unit.title, unit.text, evidence.passages, evidence.statements, key)
            else:
                missing.append((tree, number, evidence))
        return missing

    def _unchanged_reports(self, open_nodes: _OpenNodes) -> dict[tuple[int, int], Report]:
        """Load the reports of unchanged nodes right below some nodes, by tree and node."""
        below = [(tree, child) for tree, _, node in open_nodes for child in node.children if tree.known[child] >= 0]
        ids = {(tree, child): tree.units[child].decode() for tree, child in below if tree.units[child]}
        units = {unit.id: unit for unit in self._view.units(list(dict.fromkeys(ids.values())))} if ids else {}
        reports = {}
        for (tree, child), unit in ((key, units[name]) for key, name in ids.items()):
            passages = tuple(dict.fromkeys(self._numbers[chunk] for chunk in unit.chunk_ids))
            evidence = str(unit.metadata.get("evidence", ""))
            report = Report(unit.title, unit.text, passages, tree.passed_on(child), evidence)
            reports[tree.nodes.tree, child] = report
        return reports

    def _make_units(self, open_nodes: _OpenNodes) -> None:
        """Make units of the reports of one level."""
        units: dict[TreeReports, dict[int, Unit | None]] = {tree: {} for tree, *_ in open_nodes}
        for tree, number, node in open_nodes:
            report = tree.reports.get(number)
            unit = self._unit(node, report) if report is not None and report.text.strip() else None
            units[tree][number] = unit
            if unit is not None:
                self._fresh[unit.id] = unit
        for tree, written in units.items():
            tree.store_units(written)

    def _unit(self, node: ReportNode, report: Report) -> Unit:
        chunk_ids = dict.fromkeys(chunk for passage in report.passages for chunk in self._network.passages[passage])
        return Unit(
            # Two trees may say the same of the same passages; each keeps its own unit.
            id=unit_id(
                UnitKind.REPORT.value, f"{self._view.fingerprint}:{node.tree}:{node.level}", chunk_ids, report.text
            ),
            kind=UnitKind.REPORT,
            text=report.text,
            chunk_ids=tuple(chunk_ids),
            level=node.level,
            tree=tree_name(node.tree),
            title=report.title,
            metadata={
                "entities": len(node.weights),
                "view": self._views[node.tree],
                **({"evidence": report.evidence} if report.evidence else {}),
            },
        )
