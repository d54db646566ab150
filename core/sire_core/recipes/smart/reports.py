"""`ReportSelector`: reports above the entities of the hits join the context (SMART, eq. 12)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.text import count_tokens
from sire_core.errors import QueryError
from sire_core.knowledge.element_context import BESIDE, WithoutReports
from sire_core.recipes.smart.report_trees import ReportTrees
from sire_core.settings import check_settings, setting
from sire_core.types import PathStep, UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray, IntArray, Ranking, View

__all__ = ["ReportSelector"]

_BLOCKS = ((3, 1), (1, 1), (12, 6))
"""Hits and the reports behind them; each later block is three times the one before."""
_OVERLAP = 0.2


@dataclass(frozen=True, slots=True)
class ReportSelector:
    """Puts reports behind the hits whose entities they are about; works over any ranker.

    Reports are never hits of their own: the ranking's passages come in its order, three hits and a report, one hit and
    a report, then blocks of 12, 36, 108 ... hits with half as many reports behind each: at most k // 3 of the first k,
    whatever k is. A search for passages gives those of the ranker, as if there were no reports: none pushes a passage
    out. Their paths name the reports that stand behind them, and `ReportLines` shows these to the reader.

    They are taken from the ancestors of all entities that the hits so far name, in all trees, by cosine
    with the question + 0.2 * share of these entities under the report, at most ceil(reports / trees) of each tree, none
    that says what a better one says. A block whose hits name no entity is followed by the next hits. Reports that were
    not taken come behind everything else.

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
        """Return a ranking whose first `k` are the context; with `cap=None` it is longer.

        Raises:
            QueryError: There is no such perspective.
        """
        import asyncio

        trees = await asyncio.to_thread(ReportTrees.of, view)
        if not trees.trees:
            return ranking
        kept = frozenset(trees.trees.values())
        if self.perspective:
            kept = await asyncio.to_thread(_named, str(self.perspective), trees, view)
        reports = _Reports(await view.embed_query(query), ranking, view, trees, self, kept)
        selected = _Selected(self, ranking, k, view, reports, len(kept))
        await selected.top(k)
        return selected


def _named(wanted: str, trees: ReportTrees, view: View) -> frozenset[str]:
    """Trees that a search means."""
    first = {tree: at for at, tree in reversed(list(trees.trees.items()))}
    units = dict(zip(first, view.units(list(first.values())), strict=True))
    views = {tree: str(unit.metadata.get("view", "")) for tree, unit in units.items()}
    found = frozenset(tree for tree in views if wanted in {views[tree], tree, tree.rpartition(" ")[2]})
    if not found:
        known = ", ".join(f"{tree.rpartition(' ')[2]} ({views[tree]})" for tree in sorted(views))
        raise QueryError(f"There is no perspective {wanted!r}. This index has {known}.")
    return found


class _Reports:
    """Chooses among the reports above the hits seen so far."""

    def __init__(
        self,
        question: FloatArray,
        ranking: Ranking,
        view: View,
        trees: ReportTrees,
        settings: ReportSelector,
        kept: frozenset[str],
    ) -> None:
        self._question = question
        self._ranking = ranking
        self._view = view
        self._trees = trees
        self._overlap = settings.overlap
        self._left = settings.cap_tokens
        self._kept = kept
        self._entities: dict[int, None] = {}
        self._per_tree: Counter[str] = Counter()
        self._texts: set[str] = set()
        self.notes: dict[int, PathStep] = {}

    def see(self, position: int) -> None:
        """A hit: the entities that it names count from now on."""
        self._entities.update(dict.fromkeys(self._trees.named(position)))

    def choose(self, most: int, per_tree: int | None) -> list[int]:
        """The best reports that were not chosen before.

        Args:
            most: How many at most.
            per_tree: How many of a tree at most, those chosen before included; None for no bound.
        """
        counts = self._trees.counts(self._entities)
        kept = (at for at in counts if at not in self.notes and self._trees.trees[at] in self._kept)
        candidates = np.fromiter(kept, dtype=np.int64)
        if most < 1 or not len(candidates):
            return []
        # What a filter hides has no score in the ranking, and so stays hidden here.
        candidates = candidates[self._ranking.scores_at(candidates) > -np.inf]
        cosines = self._view.matrix[candidates] @ self._question
        shares = np.array([counts[at] for at in candidates.tolist()]) / len(self._entities)
        chosen: list[int] = []
        for at in np.argsort(-(cosines + self._overlap * shares), kind="stable").tolist():
            report = int(candidates[at])
            if len(chosen) == most:
                break
            tree = self._trees.trees[report]
            text = self._view.units([report])[0].text
            if text in self._texts or (per_tree is not None and self._per_tree[tree] >= per_tree):
                continue
            if self._left is not None:
                size = count_tokens(text)
                if size > self._left:
                    continue
                self._left -= size
            self._texts.add(text)
            self._per_tree[tree] += 1
            chosen.append(report)
            share = f"above {counts[report]} of the {len(self._entities)} entities that the hits before it name"
            note = f"{tree}: {share}, cosine {cosines[at]:.3f} with the question"
            self.notes[report] = PathStep("perspective", self._below(report), note)
        return chosen

    def _below(self, report: int) -> tuple[str, ...]:
        """The entities of the hits that the report stands above, without units that a filter hides."""
        found = [entity for entity in self._entities if report in self._trees.above(entity)]
        places = self._trees.places[found]
        units = np.flatnonzero(places >= 0)
        hidden = units[self._ranking.scores_at(places[units]) == -np.inf].tolist() if len(units) else []
        return tuple(self._trees.name(entity) for at, entity in enumerate(found) if at not in hidden)


class _Selected:
    """Hits and reports as far as they were read; the order never changes, it only grows."""

    def __init__(
        self, settings: ReportSelector, ranking: Ranking, k: int, view: View, reports: _Reports, trees: int
    ) -> None:
        self._cap = settings.cap
        self._ranking = ranking
        self._view = view
        self._k = k
        self._reports = reports
        self._trees = trees
        self._is_report = view.kinds == list(view.kind_names).index(UnitKind.REPORT.value)
        self._order: list[int] = []
        self._scores: list[float] = []
        self._read: list[tuple[int, float]] = []
        self._reach = 2 * max(k, 4)
        self._hits = 0
        self._given = 0
        self._block, *self._later = _BLOCKS
        self._left = self._block[0]
        self._topped: set[int] = set()
        self._beside: dict[int, list[int]] = {}
        self._ended = False
        if not settings.bring:
            self.of_passages = WithoutReports(self)

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions, with `cap=None` and all reports; a report has the score of the hit before it."""
        while len(self._order) < self._wanted(n) and not self._ended:
            await self._grow()
        end = self._wanted(n)
        return np.asarray(self._order[:end], dtype=np.int64), np.asarray(self._scores[:end], dtype=np.float32)

    def scores_at(self, positions: IntArray) -> FloatArray:
        """The ranker's scores."""
        return self._ranking.scores_at(positions)

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Why the ranker chose a hit, or which entities a report was chosen for."""
        if position in self._reports.notes:
            return (self._reports.notes[position],)
        steps = self._ranking.path(position)
        if position in self._topped:
            return (*steps, PathStep("top_up", (), "a report that no hit led to, behind everything else"))
        return steps

    async def hits(self, n: int) -> list[tuple[int, float]]:
        """The best `n` units that are no reports."""
        while self._hits < n and not self._ended:
            await self._grow()
        return self._read[: min(n, self._hits)]

    def beside(self, hit: int) -> tuple[PathStep, ...]:
        """The reports that stand behind a hit, a step each."""
        found = self._beside.get(hit, [])
        ids = [unit.id for unit in self._view.units(found)]
        return tuple(
            PathStep(BESIDE, (report,), self._reports.notes[at].note) for report, at in zip(ids, found, strict=True)
        )

    def _wanted(self, n: int) -> int:
        return n + self._given if self._cap is None else n

    async def _grow(self) -> None:
        """Add the next hit, and the reports that stand behind it."""
        hit = await self._next_hit()
        if hit is None:
            await self._end()
            return
        self._order.append(hit[0])
        self._scores.append(hit[1])
        self._reports.see(hit[0])
        self._hits += 1
        self._left -= 1
        if self._cap is None:
            if self._hits == self._k:
                self._append(len(self._is_report), None)
        elif not self._left:
            most = self._block[1]
            if isinstance(self._cap, int):
                most = min(most, self._cap - self._given)
            self._append(most, ceil((self._given + most) / self._trees))
            self._block = self._later.pop(0) if self._later else (3 * self._block[0], 3 * self._block[1])
            self._left = self._block[0]

    async def _next_hit(self) -> tuple[int, float] | None:
        """The ranking's next unit that is no report."""
        while self._hits >= len(self._read):
            positions, scores = await self._ranking.top(self._reach)
            keep = ~self._is_report[positions]
            self._read = list(zip(positions[keep].tolist(), scores[keep].tolist(), strict=True))
            if len(positions) < self._reach:
                break
            self._reach *= 2
        return self._read[self._hits] if self._hits < len(self._read) else None

    def _append(self, most: int, per_tree: int | None) -> None:
        chosen = self._reports.choose(most, per_tree)
        self._beside[self._order[-1]] = chosen
        self._given += len(chosen)
        self._order += chosen
        self._scores += [self._scores[-1]] * len(chosen)

    async def _end(self) -> None:
        """No more hits: the reports that were not taken, in the ranking's order."""
        self._ended = True
        if self._cap is None and self._order and self._hits < self._k:
            self._append(len(self._is_report), None)
        positions, scores = await self._ranking.top(len(self._is_report))
        for position, score in zip(positions.tolist(), scores.tolist(), strict=True):
            if self._is_report[position] and position not in self._reports.notes:
                self._topped.add(position)
                self._order.append(position)
                self._scores.append(score)
