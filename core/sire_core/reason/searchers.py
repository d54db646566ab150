"""Collections to search while reasoning: an index, or any retriever as a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.telemetry import TraceSpan
from sire_core.types import Hit, PathStep, Unit, UnitKind

if TYPE_CHECKING:
    from sire_core.filters import FilterLike
    from sire_core.index import Index
    from sire_core.protocols import FloatArray, IntArray, LanguageModel, Ranking, WrapModel
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.search.validity import Day

Retrieve = Callable[[str, int], Awaitable[Sequence["Hit"]]]
"""Maps a query and a number to about as many hits, best first. Scores must be finite."""


class Searcher(Protocol):
    """A snapshot of a collection."""

    @property
    def size(self) -> int:
        """Number of units there are at least; 0 means that there is nothing to search."""

    @property
    def lexical(self) -> bool:
        """True if it ranks by words alone."""

    def with_models(self, wrap: WrapModel | None) -> Searcher:
        """Copy whose rankers and selectors ask every model through a wrapper; with None they ask none."""

    def span(self, query: str, k: int) -> TraceSpan:
        """Begin the span of a search."""

    async def rank(self, query: str, n: int) -> Ranking:
        """Rank for a question; about `n` positions will be read."""

    async def selected(self, query: str, ranking: Ranking, k: int, *, step: bool = False) -> Ranking:
        """The ranking whose first `k` units are the context: the last one, or that of a step, see `Selector`."""

    async def hits(self, ranking: Ranking, k: int) -> list[Hit]:
        """The best `k` of a ranking."""

    async def context(self, ranking: Ranking, k: int) -> list[Hit]:
        """The best `k` of a selected ranking, as they are given back in the end."""

    async def background(self, hits: Sequence[Hit]) -> list[str]:
        """Notes for the reader beside the hits."""


class Searchable(Protocol):
    """Accepted by strategies: an `Index`, or a `RetrieverSource`."""

    @property
    def language_model(self) -> LanguageModel | None:
        """The model that thinks and answers by default."""

    async def asnapshot(self, *, filter: FilterLike = None, as_of: Day = None) -> Searcher:
        """The collection as it is now, or what was known on a day."""


class PassageSource:
    """An index whose final context consists of passages: derived units are replaced by their sources."""

    def __init__(self, index: Index) -> None:
        self._index = index

    @property
    def language_model(self) -> LanguageModel | None:
        """The index's own."""
        return self._index.language_model

    def stats(self) -> dict[str, Any]:
        """See `Index.stats`."""
        return self._index.stats()

    async def asnapshot(self, *, filter: FilterLike = None, as_of: Day = None) -> SearchSnapshot:
        """See `Index.asnapshot`."""
        return replace(await self._index.asnapshot(filter=filter, as_of=as_of), returns="passages")


class RetrieverSource:
    """Any retriever as a collection; its hits are taken as they come, best first."""

    language_model: LanguageModel | None = None

    def __init__(self, retrieve: Retrieve, name: str = "This retriever") -> None:
        self._retrieve = retrieve
        self._name = name

    async def asnapshot(self, *, filter: FilterLike = None, as_of: Day = None) -> Searcher:
        """A collection of what its searches find."""
        if filter is not None or as_of is not None:
            raise ConfigurationError(
                f"{self._name} cannot be filtered from here: set the filter on the retriever itself."
            )
        return _RetrieverSearcher(self._retrieve)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignHit(Hit):
    """A hit of a framework's retriever."""

    original: Any  # What the retriever gave


def foreign_hit(name: str, text: str, title: object, source: object, score: float, original: object) -> ForeignHit:
    """A passage that a framework's retriever found; people and agents are told its source, where it has one."""
    title = title if isinstance(title, str) else ""
    unit = Unit(id=name, kind=UnitKind.CHUNK, text=text, chunk_ids=(name,), title=title)
    doc_id = source if isinstance(source, str) and source else name
    return ForeignHit(unit=unit, score=score, doc_ids=(doc_id,), original=original)


class _RetrieverSearcher:
    """Numbers the hits of all searches in order; equal ids are one unit."""

    size = 1  # unknown before the first search
    lexical = False
    language_model: LanguageModel | None = None

    def __init__(self, retrieve: Retrieve) -> None:
        self._retrieve = retrieve
        self._hits: list[Hit] = []
        self._positions: dict[str, int] = {}

    def with_models(self, wrap: WrapModel | None) -> _RetrieverSearcher:  # noqa: ARG002 - it asks nobody
        return self

    def span(self, query: str, k: int) -> TraceSpan:  # noqa: ARG002 - the retriever's own framework traces it
        return TraceSpan()

    async def rank(self, query: str, n: int) -> _Listed:
        scores: dict[int, float] = {}
        for hit in list(await self._retrieve(query, n))[:n]:
            position = self._positions.setdefault(hit.unit.id, len(self._hits))
            if position == len(self._hits):
                self._hits.append(hit)
            scores.setdefault(position, float(hit.score))
        return _Listed(scores)

    async def selected(
        self,
        query: str,  # noqa: ARG002 - there are no selectors
        ranking: Ranking,
        k: int,  # noqa: ARG002 - as above
        *,
        step: bool = False,  # noqa: ARG002 - as above
    ) -> Ranking:
        return ranking

    async def hits(self, ranking: Ranking, k: int) -> list[Hit]:
        positions, scores = await ranking.top(k)
        return [
            replace(self._hits[position], score=score, path=ranking.path(position))
            for position, score in zip(positions.tolist(), scores.tolist(), strict=True)
        ]

    async def context(self, ranking: Ranking, k: int) -> list[Hit]:
        return await self.hits(ranking, k)

    async def background(self, hits: Sequence[Hit]) -> list[str]:  # noqa: ARG002 - it knows nothing more
        return []


class _Listed:
    """A complete ranking."""

    def __init__(self, scores: Mapping[int, float]) -> None:
        self._scores = scores

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions and their scores."""
        pairs = list(self._scores.items())[:n]
        return (
            np.array([position for position, _ in pairs], dtype=np.int64),
            np.array([score for _, score in pairs], dtype=np.float32),
        )

    def scores_at(self, positions: IntArray) -> FloatArray:
        return np.array([self._scores.get(position, 0.0) for position in positions.tolist()], dtype=np.float32)

    def path(self, position: int) -> tuple[PathStep, ...]:  # noqa: ARG002 - the retriever gives no reasons
        return ()
