"""`VectorStoreRanker`: the user's own vector store ranks the pool, and gives scores of what it does not list."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sire_core.arguments import kind_of
from sire_core.arrays.products import row_products
from sire_core.errors import ConfigurationError
from sire_core.metadata_values import flat_metadata
from sire_core.types import PathStep

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import BoolArray, FloatArray, IntArray, RankedSource, Ranking, VectorIndex, View

_BEHIND = 1e3  # Far below any score or negative distance of a store, and still fine enough to tell cosines apart
_MIN_LISTED_UNITS = 200  # So many units are asked of the store at least: seeds of graph recipes are among the first ten
_TIE = 1e-4  # What stores that compute with other numbers make of equal cosines


@dataclass(frozen=True, slots=True)
class FollowedIndex:
    """A vector store, and what it has still to hear of."""

    index: VectorIndex
    behind: Callable[[], Collection[str]]  # Gives the ids of the units that it has not got yet, or not as they are

    def waiting(self, view: View) -> BoolArray:
        """Which units of a pool it cannot list rightly, `[size]`."""
        waits, position_of = np.zeros(view.size, dtype=bool), view.places()
        waits[[position_of[name] for name in self.behind() if name in position_of]] = True
        return waits


async def store_scores(
    followed: FollowedIndex, query: str, question: FloatArray, view: View, where: Filter | None
) -> FloatArray:
    """Score every unit, `[size]`, by similarity with a question; the store says which are nearest, in which order.

    Stores cannot be asked for the scores of given units, which graphs need: those that the store does not list get
    their cosines on our side, below all that it lists. What it lists gets exact cosines, dealt out in its order. Units
    that the store has not got yet get their own. The store is told the filter, and asked for more until enough of what
    it lists passes.
    """
    allowed = view.allowed(where)
    waits = await asyncio.to_thread(followed.waiting, view)  # before the store is asked: it may get them meanwhile
    scores = np.asarray(await asyncio.to_thread(row_products, view.matrix, question), dtype=np.float32)
    askable = ~waits if allowed is None else allowed & ~waits
    listed: IntArray = np.empty(0, dtype=np.int64)
    if not waits.all():
        listed = await _listed(followed.index, query, question, view, where, askable)
    if not len(listed):  # nothing passes the filter, or nothing that the store has yet
        return scores
    exact = scores[listed]
    if np.any(np.diff(exact) > _TIE):  # another measure, or nearly nearest ones only: the order is the store's
        exact = np.sort(exact)[::-1]
    behind = askable.copy()
    behind[listed] = False
    scores[behind] = np.minimum(scores[behind], np.nextafter(exact.min(), np.float32(-np.inf)))
    scores[listed] = exact
    return scores


def no_candidates_message(units: int) -> str:
    """Error of a store that has none of the units."""
    return (
        f"The user's vector store lists none of the {units:,} units of the index. Index(mirrors=[...]) fills it, "
        "Index.push(full=True) fills it again; a store that gives its entries ids of its own cannot be used."
    )


async def _listed(
    index: VectorIndex,
    query: str,
    question: FloatArray,
    view: View,
    where: Filter | None,
    allowed: BoolArray,
) -> IntArray:
    """Positions that the store lists, nearest first, of those that are looked for."""
    wanted = max(1, min(_MIN_LISTED_UNITS, int(np.count_nonzero(allowed))))
    limit, position_of = wanted, view.places()
    while True:
        names = await index.top(query, question, limit, where)
        positions = [position_of[name] for name in dict.fromkeys(names) if name in position_of]
        passing = [position for position in positions if allowed[position]]
        if len(passing) >= wanted or len(names) < limit:
            break
        limit *= 4
    if not positions and where is None and view.size:
        raise ConfigurationError(no_candidates_message(view.size))
    return np.asarray(passing, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class VectorStoreRanker:
    """Ranks units in the order of a `RankedSource`.

    What the source lists and the pool does not hold is left out, and so is what does not pass the filter, whatever the
    source makes of filters: more is asked for until enough units are left or the source has no more. What a store that
    follows the index has not got yet stands where its cosine stands among those of what is listed, with a score between
    theirs.
    """

    source: RankedSource  # Where the order comes from
    # Whether what the store has not got yet is found, too; off where the source itself leaves something out on purpose,
    # to which nobody here could hold
    adds_waiting: bool = True

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:
        """Rank the units that pass the filter."""
        if self.adds_waiting:
            waits = await asyncio.to_thread(view.waiting)  # before the store is asked: it may get them meanwhile
        else:
            waits = np.zeros(view.size, dtype=bool)
        ranking = _StoreRanking(self.source, query, await view.embed_query(query), view, where, waits)
        await ranking.top(n)
        return ranking


class _StoreRanking:
    """A ranking that asks the source for more when more is read."""

    __slots__ = (
        *("_allowed", "_asked", "_exhausted", "_listable", "_listed", "_place", "_positions", "_query", "_question"),
        *("_scores", "_source", "_view", "_waiting", "_where"),
    )

    def __init__(
        self,
        source: RankedSource,
        query: str,
        question: FloatArray,
        view: View,
        where: Filter | None,
        waits: BoolArray,
    ) -> None:
        self._source = source
        self._query = query
        self._question = question
        self._view = view
        self._where = where
        self._allowed: BoolArray | None = view.allowed(where)
        self._place = view.places()
        self._positions: list[int] = []
        self._scores: dict[int, float] = {}
        self._asked = 0
        self._waiting: IntArray = np.flatnonzero(waits if self._allowed is None else waits & self._allowed)
        self._listable = int(np.count_nonzero(~waits if self._allowed is None else self._allowed & ~waits))
        self._listed = 0
        self._exhausted = False
        self._read(())

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions and the source's scores."""
        # What waits does not count: the store's own best come first unless the waiting are nearer.
        while self._listed < min(n, self._listable) and not self._exhausted:
            # A first question that is answered by what is asked for costs one call; filters may need more.
            self._asked = max(n, 4 * self._asked)
            listed = await self._source.rank(self._query, self._asked, self._where)
            self._exhausted = len(listed) < self._asked
            self._read(listed)
        if n and not self._positions and self._exhausted and self._place and self._allowed is None:
            raise ConfigurationError(no_candidates_message(len(self._place)))
        positions = np.asarray(self._positions[:n], dtype=np.int64)
        return positions, self.scores_at(positions)

    def _read(self, pairs: Sequence[tuple[str, float]]) -> None:
        self._positions, self._scores = [], {}
        waiting = set(self._waiting.tolist())
        for name, score in pairs:
            position = self._place.get(name)
            if position is None or position in self._scores:
                continue
            if self._allowed is not None and not self._allowed[position]:
                continue
            if position not in waiting:  # it may be there as it was before
                self._positions.append(position)
                self._scores[position] = float(score)
        self._listed = len(self._positions)
        if waiting:
            self._add_waiting()

    def _add_waiting(self) -> None:
        """Put what the store has not got yet between what it lists: stores have scales of their own, so by cosines."""
        cosines = row_products(self._view.matrix[self._waiting], self._question)
        scores, sorted_by = cosines, np.zeros(0)
        if self._positions:
            exact = np.sort(row_products(self._view.matrix[self._positions], self._question))
            scores_there = [self._scores[position] for position in self._positions]
            sorted_by = np.minimum.accumulate(scores_there)  # the store's order
            beyond = cosines - np.clip(cosines, exact[0], exact[-1])
            scores = np.interp(cosines, exact, sorted_by[::-1]) + beyond
        places = [*self._positions, *self._waiting.tolist()]
        order = np.argsort(-np.concatenate((sorted_by, scores)), kind="stable")
        self._positions = [places[number] for number in order.tolist()]
        self._scores.update(zip(self._waiting.tolist(), scores.tolist(), strict=True))

    def scores_at(self, positions: IntArray) -> FloatArray:
        """The source's scores, our cosines far below for what it has not listed, minus infinity for hidden units."""
        scores = np.array([self._scores.get(position, np.nan) for position in positions.tolist()], dtype=np.float32)
        unlisted = np.isnan(scores)
        scores[unlisted] = row_products(self._view.matrix[positions[unlisted]], self._question) - _BEHIND
        return scores if self._allowed is None else np.where(self._allowed[positions], scores, np.float32(-np.inf))

    def path(self, position: int) -> tuple[PathStep, ...]:
        if position in self._waiting:
            cosine = float(self._view.matrix[position] @ self._question)
            return (PathStep("store", (), f"cosine {cosine:.3f}, not yet in the user's vector store"),)
        score = self._scores.get(position)
        listed = "not listed" if score is None else f"score {score:.3f}"
        return (PathStep("store", (), f"{listed} in the user's vector store"),)


_logger = logging.getLogger(__name__)

T = TypeVar("T")


def check_store(store: object, kind: type, what: str) -> None:
    """Raise unless an object is a vector store of a framework."""
    if not isinstance(store, kind):
        raise ConfigurationError(f"{kind_of(store)} is no {what}.")


class FrameworkSource:
    """A vector store of a framework that is searched; `vector_store` is set by the adapter's class."""

    vector_store: Any

    @property
    def description(self) -> str:
        """Entry of the store in `Index.stats`."""
        return f"{type(self.vector_store).__name__} (yours) + local scores"


class FrameworkMirror:
    """A mirror into a store of a framework; its name is unique among an index's stores and in every process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_flat = False

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    async def _add(self, entries: list[Any], add: Callable[[list[Any]], Awaitable[T]]) -> T:
        """Add entries (pydantic models with `metadata`); from the first refusal on with single values as metadata."""
        if not self._is_flat:
            try:
                return await add(entries)
            except Exception as error:
                flat = list(map(_flat, entries))
                if flat == entries:
                    raise
                added = await add(flat)
                self._is_flat = True
                _logger.warning(
                    "The vector store %r takes single values as metadata only (%s). From now on it gets lists and "
                    "mappings as JSON, and no null.",
                    self._name,
                    str(error)[:200],
                )
                return added
        return await add(list(map(_flat, entries)))


def _flat(entry: Any) -> Any:
    return entry.model_copy(update={"metadata": flat_metadata(entry.metadata)})
