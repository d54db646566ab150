"""`Evidence`: what the searches of one reasoning have found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sire_core.algorithms.text import name_key
from sire_core.errors import LimitExceededError, ModelError
from sire_core.reason.calls import StoppedError
from sire_core.reason.merging import Merge, MergedRanking, Search, shared_out
from sire_core.reason.steps import Retrieved

if TYPE_CHECKING:
    from sire_core.reason.calls import ModelCalls
    from sire_core.search.pinned import PinnedSearch
    from sire_core.types import Hit, Unit

__all__ = ["Admit", "Evidence"]

Admit = Callable[[Sequence["Unit"], Sequence["Unit"]], Sequence[int]]
"""From the units collected so far and those just found to the places of the latter that are added."""


class Evidence:
    """Ranks at every search, and selects once, at the end, over all that was found.

    Args:
        pinned: The snapshot that all searches see.
        calls: The clock, and the meter of rankers and selectors that ask a model.
        merge: How the searches are merged.
    """

    def __init__(self, pinned: PinnedSearch, calls: ModelCalls, merge: Merge = "relative") -> None:
        model = pinned.view.language_model
        self._pinned = pinned if model is None else pinned.with_language_model(calls.metered(model))
        self._calls = calls
        self._searches: list[Search] = []
        self._collected: dict[int, Unit] = {}
        self._asked: set[str] = set()
        self._merge = merge

    @property
    def searches(self) -> int:
        """How many searches were made."""
        return len(self._searches)

    @property
    def found(self) -> int:
        """How many different units were found."""
        return len(self._collected)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to find: nothing is indexed, or nothing passes the filter."""
        return not self._collected

    @property
    def lexical(self) -> bool:
        """Whether the recipe ranks by words alone."""
        from sire_core.search.lexical import Lexical

        return isinstance(self._pinned.recipe.ranker, Lexical)

    def asked(self, query: str) -> bool:
        """Whether this was searched for before."""
        return _key(query) in self._asked

    async def retrieve(self, number: int, query: str, k: int, *, admit: Admit | None = None) -> Retrieved:
        """Search for the best `k` units.

        Args:
            number: Round.
            query: What to search for.
            k: How many.
            admit: Decides what is added to the collection; None adds all.

        Raises:
            StoppedError: Time is up, a limit is reached, or a ranker's model failed after something was found.
        """
        self._asked.add(_key(query))
        if not self._pinned.view.size:
            return Retrieved(number, query, (), 0)
        try:
            ranking = await self._calls.timed(self._pinned.rank(query, k))
            positions, scores = await self._calls.timed(ranking.top(k))
        except LimitExceededError as error:
            raise self._calls.limit_reached(error) from error
        except ModelError as error:
            if self.empty:
                raise
            raise StoppedError("model_failed", str(error)) from error
        hits = self._pinned.view.hits(positions, scores, ranking)
        places: Sequence[int] = range(len(hits))
        if admit is not None:
            places = admit(list(self._collected.values()), [hit.unit for hit in hits])
        numbers = positions.tolist()
        found = [numbers[place] for place in places]
        new = sum(position not in self._collected for position in found)
        self._searches.append(Search(query, ranking, tuple(found), tuple(hits[place].score for place in places)))
        for place in places:
            self._collected.setdefault(numbers[place], hits[place].unit)
        return Retrieved(number, query, tuple(hits), new)

    async def best(self, n: int) -> list[Unit]:
        """The best `n` units so far."""
        positions, _ = await self._merged().top(min(n, self.found))
        return [self._collected[position] for position in positions.tolist()]

    async def context(self, question: str, k: int) -> tuple[Hit, ...]:
        """What the recipe's selectors make of everything that was found: at most `k` hits.

        Raises:
            StoppedError: Time is up, a limit is reached, or a selector's model failed.
        """
        if self.empty:
            return ()
        try:
            return tuple(await self._calls.timed(self._pinned.select(question, self._merged(k), k)))
        except LimitExceededError as error:
            raise self._calls.limit_reached(error) from error
        except ModelError as error:
            raise StoppedError("model_failed", str(error)) from error

    async def background(self, hits: Sequence[Hit]) -> list[str]:
        """What the recipe has to say beside the hits; nothing when a limit leaves no room for it.

        Raises:
            StoppedError: Time is up.
        """
        source = self._pinned.recipe.background
        if source is None or not self._calls.spare:
            return []
        try:
            return list(await self._calls.timed(source.lines(hits, self._pinned.view)))
        except LimitExceededError:
            return []

    async def plain_context(self, question: str, k: int) -> tuple[Hit, ...]:
        """As `context`, but no selector asks a model and the clock does not count."""
        if self.empty:
            return ()
        return tuple(await self._pinned.with_language_model(None).select(question, self._merged(k), k))

    def _merged(self, k: int | None = None) -> MergedRanking:
        searches = self._searches
        if k is not None and self._merge == "append":
            # In the order of finding the last rounds, which hold the answer, would be the first to go.
            searches = shared_out(searches, k)
        return MergedRanking(searches, self._merge)


def _key(query: str) -> str:
    return name_key(query).rstrip("?.! ")
