"""`Evidence`: what the searches of one reasoning have found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np

from sire_core.errors import LimitExceededError, ModelError
from sire_core.protocols import FloatArray, IntArray, Ranking
from sire_core.reason.model_calls import ModelCalls, StoppedError
from sire_core.reason.searchers import Searcher
from sire_core.reason.steps import Retrieved, search_key
from sire_core.search.snapshot import found
from sire_core.telemetry import TraceSpan
from sire_core.types import Hit, PathStep, Unit

Merge = Literal["relative", "max_score", "append"]
"""Settings of merging searches into one ranking.

`max_score`: by the best score that any search gave a unit. `relative`: so too, after the scores of each search were
divided by its best one, because scores of different queries have no common scale: BM25 grows with the words of a query,
and a long question has lower cosines than a short one. `append`: in the order in which units were found.
"""

T = TypeVar("T")
Admit = Callable[[Sequence["Unit"], Sequence["Unit"]], Sequence[int]]
"""From the units collected so far and those just found to the places of the latter that are added."""


@dataclass(frozen=True, slots=True)
class Search:
    """One search of a reasoning."""

    query: str  # What was searched for
    ranking: Ranking  # Of the whole pool, as the recipe's selectors left it
    found: tuple[int, ...]  # Positions that count as found, best first
    scores: tuple[float, ...]


class MergedRanking:
    """Merges several searches: each unit has the best score that any of them gave it (see `Merge`).

    Whatever no search counts as found comes behind, in the order of its best score too, so that a selector that runs
    short can read on. A single search keeps its scores.
    """

    def __init__(self, searches: Sequence[Search], merge: Merge = "max_score") -> None:
        self._searches = tuple(searches)
        relative = merge == "relative" and len(self._searches) > 1
        self._scales = [_scale(search) if relative else 1.0 for search in self._searches]
        self._best: dict[int, float] = {}
        self._owner: dict[int, int] = {}
        for number, search in enumerate(self._searches):
            for position, score in zip(search.found, search.scores, strict=True):
                self._note(self._best, number, position, score)
        self._found = list(self._best)
        if merge != "append":  # of equal scores the one that was found first: the order that a reranker gave them stays
            self._found.sort(key=lambda position: -self._best[position])

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions and their scores."""
        order, scores = self._found[:n], self._best
        if n > len(order):
            rest = await self._rest(n)
            by_score = sorted(rest, key=lambda position: (-rest[position], position))
            order = order + by_score[: n - len(order)]
            scores = {**rest, **scores}
        return np.array(order, dtype=np.int64), np.array([scores[position] for position in order], dtype=np.float32)

    async def _rest(self, n: int) -> dict[int, float]:
        """The best of what was not found. The best `n` of all are among the best `n` of each search."""
        rest: dict[int, float] = {}
        for number, search in enumerate(self._searches):
            positions, scores = await search.ranking.top(n)
            for position, score in zip(positions.tolist(), scores.tolist(), strict=True):
                if position not in self._best:
                    self._note(rest, number, position, score)
        return rest

    def _note(self, best: dict[int, float], number: int, position: int, score: float) -> None:
        scaled = score * self._scales[number]
        if position not in best or scaled > best[position]:
            best[position] = scaled
            self._owner[position] = number

    def scores_at(self, positions: IntArray) -> FloatArray:
        """The best score that any search gives each of the positions."""
        pairs = zip(self._searches, self._scales, strict=True)
        scaled = [search.ranking.scores_at(positions) * scale for search, scale in pairs]
        return np.asarray(np.max(scaled, axis=0), dtype=np.float32)

    def path(self, position: int) -> tuple[PathStep, ...]:
        """The search that scored a position best, if there were several, and its reasons."""
        if len(self._searches) == 1:
            return self._searches[0].ranking.path(position)
        number = self._owner.get(position, 0)
        search = self._searches[number]
        note = "search for the question" if number == 0 else f"search {number}: {search.query}"
        return (PathStep("reasoning", (), note), *search.ranking.path(position))


def shared_out(searches: Sequence[Search], k: int) -> list[Search]:
    """Cut searches to `k` units in all: the best of each in turn, so that the last search has its share."""
    seen: set[int] = set()
    fresh: list[list[int]] = []
    for search in searches:
        fresh.append([position for position in search.found if position not in seen])
        seen.update(search.found)
    in_turn = [part[rank] for rank in range(max(map(len, fresh), default=0)) for part in fresh if rank < len(part)]
    selected = set(in_turn[:k])
    return [_restricted(search, selected) for search in searches]


def _restricted(search: Search, selected: set[int]) -> Search:
    pairs = [pair for pair in zip(search.found, search.scores, strict=True) if pair[0] in selected]
    return replace(search, found=tuple(p for p, _ in pairs), scores=tuple(s for _, s in pairs))


def _scale(search: Search) -> float:
    best = max(search.scores, default=0.0)
    return 1.0 / best if best > 0 else 1.0


class Evidence:
    """Searches in the recipe's way, selectors included, and selects once more, at the end, over all that was found.

    A selector that asks a model (a reranker, say) judges each search by what that search was for. Over the merged
    searches only those selectors count that need no model, such as quotas.
    """

    def __init__(self, searcher: Searcher, calls: ModelCalls, merge: Merge = "relative") -> None:
        self._searcher = searcher.with_models(calls.metered)
        self._without_model = searcher.with_models(None)
        self._calls = calls
        self._searches: list[Search] = []
        self._wanted = 0  # by the last search
        self._by_steps = False  # the last search
        self._collected: dict[int, Unit] = {}
        self._last: list[Unit] = []
        self._shown: set[str] = set()
        self._asked: set[str] = set()
        self._merge = merge

    @property
    def searches(self) -> int:
        """Number of searches made."""
        return len(self._searches)

    @property
    def found(self) -> int:
        """Number of different units found."""
        return len(self._collected)

    @property
    def empty(self) -> bool:
        """True if there is nothing to find: nothing is indexed, or nothing passes the filter."""
        return not self._collected

    @property
    def lexical(self) -> bool:
        """True if searches go by words alone."""
        return self._searcher.lexical

    @property
    def last(self) -> Sequence[Unit]:
        """Hits of the last search, in the order of the recipe."""
        return self._last

    def asked(self, query: str) -> bool:
        """True if this was searched for before."""
        return search_key(query) in self._asked

    async def retrieve(
        self, number: int, query: str, k: int, *, admit: Admit | None = None, step: bool = False
    ) -> Retrieved:
        """Search for the best `k` units; of a step what selectors keep for the answer is left to `context`."""
        self._by_steps = step
        self._asked.add(search_key(query))
        if not self._searcher.size:
            return Retrieved(number, query, (), 0)
        with self._calls.span.current():
            span = self._searcher.span(query, k)
        with span:
            ranking = await self._rank(query, k, span)
            stopped: StoppedError | None = None
            try:
                # A selector must not spend the call that is kept for the answer.
                searcher = self._without_model if self._calls.kept_call_only else self._searcher
                selected = await self._timed(searcher.selected(query, ranking, k, step=step), span)
            except StoppedError as error:  # what was found stays found
                stopped, selected = error, await self._without_model.selected(query, ranking, k, step=step)
            retrieved = await self._add(number, query, k, selected, admit)
            span.set(found(retrieved.hits))
        if stopped:
            raise stopped
        return retrieved

    async def _rank(self, query: str, k: int, span: TraceSpan) -> Ranking:
        # A ranker must not spend the call that is kept for the answer, either; all of them rank without a model, too.
        if self._calls.kept_call_only:
            return await self._ranked(self._without_model, query, k, span)
        try:
            return await self._ranked(self._searcher, query, k, span)
        except LimitExceededError:
            return await self._ranked(self._without_model, query, k, span)
        except ModelError as error:
            if self.empty:
                raise
            raise StoppedError("model_failed", str(error)) from error

    async def _ranked(self, searcher: Searcher, query: str, k: int, span: TraceSpan) -> Ranking:
        ranking = await self._calls.timed(searcher.rank(query, k), span)
        await self._calls.timed(ranking.top(k), span)
        return ranking

    async def _add(self, number: int, query: str, k: int, ranking: Ranking, admit: Admit | None) -> Retrieved:
        """Add the best of a search to the collection."""
        positions, _ = await ranking.top(k)
        hits = await self._searcher.hits(ranking, k)
        indexes: Sequence[int] = range(len(hits))
        if admit is not None:
            indexes = admit(list(self._collected.values()), [hit.unit for hit in hits])
        numbers = positions.tolist()
        added = [numbers[index] for index in indexes]
        self._wanted = k
        self._last = [hit.unit for hit in hits]
        self._searches.append(Search(query, ranking, tuple(added), tuple(hits[index].score for index in indexes)))
        for index in indexes:
            self._collected.setdefault(numbers[index], hits[index].unit)
        context = await self._searcher.context(ranking, k)
        before = len(self._shown)
        self._shown.update(hit.unit.id for hit in context)
        return Retrieved(number, query, tuple(context), len(self._shown) - before)

    async def best(self, n: int) -> list[Unit]:
        """The best `n` units so far."""
        positions, _ = await self._merged().top(min(n, self.found))
        return [self._collected[position] for position in positions.tolist()]

    async def context(self, question: str, k: int) -> tuple[Hit, ...]:
        """At most `k` hits, chosen by the recipe's selectors from all searches."""
        return await self._timed(self.plain_context(question, k))

    async def plain_context(self, question: str, k: int) -> tuple[Hit, ...]:
        """As `context`, but the clock does not count."""
        if self.empty:
            return ()
        first, *more = self._searches
        if not (more or self._by_steps) and self._wanted == k and len(first.found) == self.found:
            return tuple(await self._searcher.context(first.ranking, k))  # selected as it is wanted
        searcher = self._without_model
        return tuple(await searcher.context(await searcher.selected(question, self._merged(k), k), k))

    async def background(self, hits: Sequence[Hit]) -> list[str]:
        """Notes of the recipe for the reader beside the hits; none where a limit leaves no room."""
        if self._calls.calls_left <= 1:
            return []
        try:
            return await self._calls.timed(self._searcher.background(hits))
        except LimitExceededError:
            return []

    async def _timed(self, work: Awaitable[T], span: TraceSpan | None = None) -> T:
        """Wait for selectors."""
        try:
            return await self._calls.timed(work, span)
        except LimitExceededError as error:
            raise self._calls.limit_reached(error) from error
        except ModelError as error:
            raise StoppedError("model_failed", str(error)) from error

    def _merged(self, k: int | None = None) -> MergedRanking:
        searches = self._searches
        if k is not None and self._merge == "append":
            # In the order of finding the last rounds, which hold the answer, would be the first to go.
            searches = shared_out(searches, k)
        return MergedRanking(searches, self._merge)
