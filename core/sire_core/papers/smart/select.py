"""`ReportSelector`: reports above the entities of the hits join the context (SMART, eq. 12)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.extend import (
    BESIDE,
    MENTIONS,
    RELATES,
    EdgeColumns,
    IdPositions,
    Lists,
    PathStep,
    QueryError,
    UnitKind,
    WrappedRanking,
    by_appearance,
    check_settings,
    count_tokens,
    id_codes,
    positions_in,
    setting,
    stable_order,
)
from sire_core.papers.smart import REPORTS
from sire_core.papers.smart.report_nodes import ReportTable, tree_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.extend import FloatArray, Hit, IntArray, Ranking, View


_BLOCKS = ((3, 1), (1, 1), (12, 6))  # Hits and the reports behind them; each later block is three times the one before
_OVERLAP = 0.2


@dataclass(frozen=True, slots=True)
class ReportSelector:
    """Puts reports behind the hits whose entities they are about; works with any ranker.

    Passages keep the ranker's order: three hits and a report, one hit and a report, then blocks of 12, 36, 108 ... hits
    with half as many reports behind each: at most k // 3 of the first k, for every k. A search for passages returns the
    ranker's passages without reports; their paths name the reports that stand behind them, and `ReportLines` shows
    these to the reader.

    Reports are taken from the ancestors of all entities that the hits so far name, in all trees, by cosine with the
    question + 0.2 * share of these entities under the report; at most ceil(reports / trees) of each tree, and none with
    the text of a better one. A block whose hits name no entity is followed by the next hits. Reports that were not
    taken come after everything else.

    Attributes:
        cap: Maximum number of reports in a context: `third`, a third of the hits; a number; or None, as published: the
            first k hits and then all reports on their entities.
        overlap: Weight of the share of the hits' entities that a report covers.
        cap_tokens: Maximum tokens of all reports in a context; None for no limit. A report that does not fit is
            skipped.
        bring: Whether a search for passages ranks the source passages of reports before other passages.
        perspective: Use only reports of this perspective: its number from 1, or the name of its view in `stats`. It can
            differ in every search.

    Raises:
        ConfigurationError: A value is not allowed.
    """

    cap: int | str | None = setting("third", choices=("third",), low=0)
    overlap: float = setting(_OVERLAP, low=0.0)
    cap_tokens: int | None = setting(None, low=1)
    bring: bool = False
    perspective: int | str = setting("", wording=True, low=1)

    def __post_init__(self) -> None:
        check_settings(self)

    async def select(self, query: str, ranking: Ranking, k: int, view: View) -> Ranking:
        """Return a ranking whose first `k` are the context; with `cap=None` it is longer."""
        trees = await asyncio.to_thread(ReportTrees.of, view)
        if not trees.trees:
            return ranking
        used_trees = frozenset(trees.trees.values())
        if self.perspective:
            used_trees = await asyncio.to_thread(_trees_of_perspective, str(self.perspective), trees, view)
        selected = _SelectedRanking(self, ranking, k, view, trees, used_trees, await view.embed_query(query))
        await selected.top(k)
        return selected


def _trees_of_perspective(perspective: str, trees: ReportTrees, view: View) -> frozenset[str]:
    first = {tree: at for at, tree in reversed(list(trees.trees.items()))}
    units = dict(zip(first, view.units(list(first.values())), strict=True))
    views = {tree: str(unit.metadata.get("view", "")) for tree, unit in units.items()}
    matching = frozenset(tree for tree in views if perspective in {views[tree], tree, tree.rpartition(" ")[2]})
    if not matching:
        choices = ", ".join(f"{tree.rpartition(' ')[2]} ({views[tree]})" for tree in sorted(views))
        raise QueryError(f"There is no perspective {perspective!r}. This index has {choices}.")
    return matching


class _SelectedRanking(WrappedRanking):
    """Hits and reports as far as they were read; the order only grows."""

    def __init__(
        self,
        settings: ReportSelector,
        ranking: Ranking,
        k: int,
        view: View,
        trees: ReportTrees,
        used_trees: frozenset[str],
        question: FloatArray,
    ) -> None:
        self._settings = settings
        super().__init__(ranking)
        self._k = k
        self._view = view
        self._trees = trees
        self._used_trees = used_trees
        self._question = question
        self._is_report = view.kinds == list(view.kind_names).index(UnitKind.REPORT.value)
        self._order: list[int] = []
        self._scores: list[float] = []
        self._passages: list[tuple[int, float]] = []
        self._read_limit = 2 * max(k, 4)
        self._hits = 0
        self._block, *self._later_blocks = _BLOCKS
        self._hits_left = self._block[0]
        self._leftover: set[int] = set()
        self._reports_after: dict[int, list[int]] = {}
        self._ended = False
        self._tokens_left = settings.cap_tokens
        self._entities: dict[int, None] = {}  # that the hits so far name
        self._per_tree: Counter[str] = Counter()
        self._texts: set[str] = set()
        self._notes: dict[int, PathStep] = {}  # by chosen report

    @property
    def of_passages(self) -> Ranking:
        return self if self._settings.bring else _WithoutReports(self)

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """Return the best `n` positions, and all reports with `cap=None`; a report has its hit's score."""
        while len(self._order) < self._context_size(n) and not self._ended:
            await self._grow()
        end = self._context_size(n)
        return np.asarray(self._order[:end], dtype=np.int64), np.asarray(self._scores[:end], dtype=np.float32)

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Explain why the ranker chose a hit, or which entities a report was chosen for."""
        if position in self._notes:
            return (self._notes[position],)
        steps = self._ranking.path(position)
        if position in self._leftover:
            return (*steps, PathStep("top_up", (), "a report that no hit led to, behind everything else"))
        return steps

    async def hits(self, n: int) -> list[tuple[int, float]]:
        """Return the best `n` units that are no reports."""
        while self._hits < n and not self._ended:
            await self._grow()
        return self._passages[: min(n, self._hits)]

    def beside(self, hit: int) -> tuple[PathStep, ...]:
        """Return one step per report behind a hit."""
        reports = self._reports_after.get(hit, [])
        ids = [unit.id for unit in self._view.units(reports)]
        return tuple(PathStep(BESIDE, (report,), self._notes[at].note) for report, at in zip(ids, reports, strict=True))

    def _context_size(self, n: int) -> int:
        return n + len(self._notes) if self._settings.cap is None else n

    async def _grow(self) -> None:
        """Add the next hit, and the reports that follow it."""
        hit = await self._next_hit()
        if hit is None:
            await self._end()
            return
        self._order.append(hit[0])
        self._scores.append(hit[1])
        self._entities.update(dict.fromkeys(self._trees.named(hit[0])))
        self._hits += 1
        self._hits_left -= 1
        if self._settings.cap is None:
            if self._hits == self._k:
                self._append(len(self._is_report), None)
        elif not self._hits_left:
            max_reports = self._block[1]
            if isinstance(self._settings.cap, int):
                max_reports = min(max_reports, self._settings.cap - len(self._notes))
            self._append(max_reports, ceil((len(self._notes) + max_reports) / len(self._used_trees)))
            self._block = self._later_blocks.pop(0) if self._later_blocks else (3 * self._block[0], 3 * self._block[1])
            self._hits_left = self._block[0]

    async def _next_hit(self) -> tuple[int, float] | None:
        """Return the ranking's next unit that is no report."""
        while self._hits >= len(self._passages):
            positions, scores = await self._ranking.top(self._read_limit)
            keep = ~self._is_report[positions]
            self._passages = list(zip(positions[keep].tolist(), scores[keep].tolist(), strict=True))
            if len(positions) < self._read_limit:
                break
            self._read_limit *= 2
        return self._passages[self._hits] if self._hits < len(self._passages) else None

    def _append(self, max_reports: int, per_tree: int | None) -> None:
        chosen = self._choose(max_reports, per_tree)
        self._reports_after[self._order[-1]] = chosen
        self._order += chosen
        self._scores += [self._scores[-1]] * len(chosen)

    def _choose(self, max_reports: int, per_tree: int | None) -> list[int]:
        """Return the best reports that were not chosen before."""
        counts = self._trees.counts(self._entities)
        usable = (at for at in counts if at not in self._notes and self._trees.trees[at] in self._used_trees)
        candidates = np.fromiter(usable, dtype=np.int64)
        if max_reports < 1 or not len(candidates):
            return []
        # What a filter hides has no score in the ranking, and so stays hidden here.
        candidates = candidates[self._ranking.scores_at(candidates) > -np.inf]
        cosines = self._view.matrix[candidates] @ self._question
        shares = np.array([counts[at] for at in candidates.tolist()]) / len(self._entities)
        chosen: list[int] = []
        for at in np.argsort(-(cosines + self._settings.overlap * shares), kind="stable").tolist():
            report = int(candidates[at])
            if len(chosen) == max_reports:
                break
            tree = self._trees.trees[report]
            text = self._view.units([report])[0].text
            if text in self._texts or (per_tree is not None and self._per_tree[tree] >= per_tree):
                continue
            if self._tokens_left is not None:
                size = count_tokens(text)
                if size > self._tokens_left:
                    continue
                self._tokens_left -= size
            self._texts.add(text)
            self._per_tree[tree] += 1
            chosen.append(report)
            share = f"above {counts[report]} of the {len(self._entities)} entities that the hits before it name"
            note = f"{tree}: {share}, cosine {cosines[at]:.3f} with the question"
            self._notes[report] = PathStep("perspective", self._below(report), note)
        return chosen

    def _below(self, report: int) -> tuple[str, ...]:
        """Return the entities of the hits below the report, without units that a filter hides."""
        covered = [entity for entity in self._entities if report in self._trees.above(entity)]
        indexes = self._trees.places[covered]
        units = np.flatnonzero(indexes >= 0)
        hidden = units[self._ranking.scores_at(indexes[units]) == -np.inf].tolist() if len(units) else []
        return tuple(self._trees.ids[entity].decode() for at, entity in enumerate(covered) if at not in hidden)

    async def _end(self) -> None:
        """Add the reports that were not taken, in the ranking's order."""
        self._ended = True
        if self._settings.cap is None and self._order and self._hits < self._k:
            self._append(len(self._is_report), None)
        positions, scores = await self._ranking.top(len(self._is_report))
        for position, score in zip(positions.tolist(), scores.tolist(), strict=True):
            if self._is_report[position] and position not in self._notes:
                self._leftover.add(position)
                self._order.append(position)
                self._scores.append(score)


class _WithoutReports:
    """The ranking without reports, for a search of passages; paths of hits name the reports behind them."""

    def __init__(self, selected: _SelectedRanking) -> None:
        self._selected = selected
        self.scores_at = selected.scores_at

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """Return the best `n` units that are no reports."""
        hits = await self._selected.hits(n)
        positions, scores = zip(*hits, strict=True) if hits else ((), ())
        return np.asarray(positions, dtype=np.int64), np.asarray(scores, dtype=np.float32)

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Explain why the ranker chose a hit, and name the reports behind it."""
        return (*self._selected.path(position), *self._selected.beside(position))


@dataclass(frozen=True, slots=True)
class ReportLines:
    """Lines of a context: the reports behind the hits of a search for passages."""

    async def lines(self, hits: Sequence[Hit], view: View) -> list[str]:
        """Return the texts of the reports, in the order of the hits."""
        wanted = dict.fromkeys(step.ids[0] for hit in hits for step in hit.path if step.step == BESIDE)
        positions = view.places()
        return [unit.text for unit in view.units([positions[name] for name in wanted if name in positions])]


@dataclass(frozen=True, slots=True)
class ReportTrees:
    """Reports by position, and which are above which. Entities are known by their numbers."""

    trees: Mapping[int, str]  # name of the tree of every report, by its position, ascending
    ids: NDArray[Any]  # ids of the entities
    places: IntArray  # position of every entity that is a unit of its own, else -1
    _named: Lists
    _above: Lists
    _parents: Mapping[int, Sequence[int]]
    _known: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, view: View) -> ReportTrees:
        """Return the trees of a pool, read once per snapshot."""
        return view.derived("report trees", lambda: _trees_from_notes(view))

    @classmethod
    def build(
        cls,
        view: View,
        ids: NDArray[Any],
        trees: Mapping[int, str],
        named_entities: IntArray,
        mentions: IntArray,
        children: IntArray,
    ) -> ReportTrees:
        """Index pairs `[n, 2]` of a unit or its lowest report and an entity (number in `ids`), and of reports."""
        has_entities = (view.kinds == list(view.kind_names).index(UnitKind.ENTITY.value)).any()
        positions = positions_in(view.ids, ids) if has_entities else np.full(len(ids), -1, dtype=np.int64)
        units = np.flatnonzero(positions >= 0)
        named_entities = np.concatenate([named_entities, np.stack([positions[units], units], axis=1)])
        parents: dict[int, list[int]] = {}
        for parent, child in sorted(children.tolist()):
            parents.setdefault(child, []).append(parent)
        mentions = mentions[stable_order(mentions[:, 0])]
        above = _lists_by_first(mentions[:, ::-1], len(ids))
        return cls(trees, ids, positions, _lists_by_first(named_entities, view.size), above, parents)

    def named(self, position: int) -> list[int]:
        """Return the entities that a passage, a relation or an entity names, by their ids."""
        return sorted(self._named.of(position).tolist(), key=lambda entity: bytes(self.ids[entity]))

    def above(self, entity: int) -> tuple[int, ...]:
        """Return all reports above an entity, each once, lower ones first."""
        if entity in self._known:
            return self._known[entity]
        reports_above = dict.fromkeys(self._above.of(entity).tolist())
        queue = list(reports_above)
        for report in queue:  # grows while it is read
            for parent in self._parents.get(report, ()):
                if parent not in reports_above:
                    reports_above[parent] = None
                    queue.append(parent)
        self._known[entity] = tuple(reports_above)
        return self._known[entity]

    def counts(self, entities: Iterable[int]) -> dict[int, int]:
        """Count, for every report above any of the entities, how many of them it is above; ascending."""
        return dict(sorted(Counter(report for entity in entities for report in self.above(entity)).items()))


def _trees_from_notes(view: View) -> ReportTrees:
    """Read the notes of the organizer and of the knowledge graph."""
    table = ReportTable.from_note(view.note(REPORTS))
    named = [EdgeColumns.of_blocks(view.notes(f"{kind}/")) for kind in (MENTIONS, RELATES)]
    ids = np.concatenate([table.entities, *(columns.targets for columns in named)])
    numbers, first = by_appearance(id_codes(ids))  # the table's entities come first: they keep their numbers
    id_positions = IdPositions.of(view)
    units, positions = (
        id_positions.find(np.concatenate([columns.sources for columns in named])),
        id_positions.find(table.reports),
    )
    order = np.argsort(positions)
    names = [tree_name(tree) for tree in range(int(table.trees.max(initial=0)) + 1)]
    return ReportTrees.build(
        view,
        ids=ids[first],
        trees={
            at: names[tree] for at, tree in zip(positions[order].tolist(), table.trees[order].tolist(), strict=True)
        },
        named_entities=np.stack([units, numbers[len(table.entities) :]], axis=1)[units >= 0],
        mentions=np.stack([positions[table.mentions[:, 0]], table.mentions[:, 1]], axis=1),
        children=positions[table.children],
    )


def _lists_by_first(pairs: IntArray, size: int) -> Lists:
    """Return second numbers by first ones."""
    first, second = pairs[stable_order(pairs[:, 0])].T
    return Lists.of_runs(first, second, size)
