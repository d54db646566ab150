"""`SearchSnapshot`: an index at one generation, for several searches; and hints on filters that nothing passes."""

from __future__ import annotations

import asyncio
import json
import logging
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arguments import sentence_end, similar_names
from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.arrays.products import row_products
from sire_core.errors import QueryError
from sire_core.filters.conditions import DOCUMENT_KEYS, FIELDS, PASSAGE_KEYS, TITLE, conditions
from sire_core.models.sync import run_sync
from sire_core.search.passages import passage_hits
from sire_core.search.rankers.lexical import Lexical
from sire_core.search.ranking import PathsLater, ScoredRanking
from sire_core.search.search_options import check_count, check_returns
from sire_core.search.validity import current_first, latest_versions
from sire_core.telemetry import TraceSpan, records_content, start
from sire_core.types import Hit, PathStep, UnitKind

if TYPE_CHECKING:
    from sire_core.filters import Condition, Filter
    from sire_core.protocols import FloatArray, IntArray, LanguageModel, Ranking, Recipe, WrapModel
    from sire_core.search.context import Context, ContextOptions, Evidence, RankedPassage
    from sire_core.search.view import PoolView

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}
_MAX_LISTED_VALUES = 5  # So many values of a key are listed where the one that was asked for is missing
_MAX_LISTED_KEYS = 20
_MAX_SHOWN_LETTERS = 100

_AS_OF = 3  # How many times as many hits are looked at for those that are not superseded


def filter_hint(
    where: Filter,
    metadata: Iterable[Mapping[str, Any]],
    documents: Collection[str],
    titles: Callable[[], Collection[str]],
) -> str:
    """Keys, values and ids of a filter that nothing has, with the nearest ones."""
    values = _values(metadata)
    hints = []
    for condition in dict.fromkeys(conditions(where)):
        if condition.key in values:
            hints += _of_values(condition, values[condition.key])
        elif condition.key in DOCUMENT_KEYS:
            hints += _not_among(condition, documents, "No document has the id {}.")
        elif condition.key == TITLE:
            hints += _not_among(condition, titles(), "No passage has the title {}.")
        elif condition.key in PASSAGE_KEYS:
            hints.append(f"{condition.key!r} is compared with ids of passages.")
    return " ".join(dict.fromkeys([*hints, unknown_keys(where, values)])).strip()


def unknown_keys(where: Filter, existing: Iterable[str]) -> str:
    """Keys of a filter that no passage has and that are no fields, with the nearest ones, in sentences."""
    keys = sorted(key for key in existing if not key.startswith("sire_"))
    hints = [
        f"No passage has the metadata key {_brief(key)}{sentence_end(key, [*keys, TITLE])}"
        for key in dict.fromkeys(condition.key for condition in conditions(where))
        if key not in keys and key not in FIELDS
    ]
    if hints:
        more = f", and {len(keys) - _MAX_LISTED_KEYS} more" if len(keys) > _MAX_LISTED_KEYS else ""
        held = f"The keys are {', '.join(keys[:_MAX_LISTED_KEYS])}{more}" if keys else "The documents have no metadata"
        fields = [name for name in ("doc_id", "passage_id", TITLE) if name not in keys]
        named = " and ".join(fields).replace(" and ", ", ", len(fields) - 2)
        hints.append(f"{held}; {named} can be filtered on, too." if fields else f"{held}.")
    return " ".join(hints)


def _values(metadata: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Values by key, items of lists among them."""
    values: dict[str, list[Any]] = {}
    for one in metadata:
        for key, value in one.items():
            values.setdefault(key, []).extend(value if isinstance(value, list) else (value,))
    return values


def _of_values(condition: Condition, values: Collection[Any]) -> list[str]:
    """Values of another type than those of the key, or texts that none of them equals."""
    given, held = _types(condition.value), _types(values)
    if condition.operator == "exists" or not given:
        return []
    if given.isdisjoint(held):
        theirs, ours = (" and ".join(sorted(names)) for names in (held, given))
        return [f"Values of the metadata key {condition.key!r} are {theirs}, and the filter compares with {ours}."]
    texts = [value for value in values if isinstance(value, str)]
    hints = _not_among(condition, texts, f"No passage has {{}} under the metadata key {condition.key!r}.")
    if hints and len(different := sorted(set(texts))) <= _MAX_LISTED_VALUES:
        return [*hints, f"Its values are {', '.join(map(_brief, different))}."]
    return [*hints, *_out_of_range(condition, values)]


def _out_of_range(condition: Condition, values: Collection[Any]) -> list[str]:
    """The range of the values of a key where a comparison passes none of them."""
    passes = _COMPARISONS.get(condition.operator)
    is_name = (condition.operator, type(condition.value)) == ("eq", str)
    if passes is None or is_name or not isinstance(condition.value, (Real, str)):
        return []
    comparable = [value for value in values if _types(value) == _types(condition.value)]
    if any(passes(value, condition.value) for value in comparable):
        return []
    lowest, highest = (_brief(end) if isinstance(end, str) else str(end) for end in (min(comparable), max(comparable)))
    return [f"Values of the metadata key {condition.key!r} go from {lowest} to {highest}."]


def _not_among(condition: Condition, existing: Collection[str], words: str) -> list[str]:
    """Which texts that a condition compares with are none of those that are known, and one that is like the first."""
    if condition.operator not in ("eq", "in"):
        return []
    different = dict.fromkeys(existing)
    wanted = condition.value if condition.operator == "in" else (condition.value,)
    missing = [name for name in wanted if isinstance(name, str) and name not in different]
    if not missing or len(missing) < len(wanted):  # where one of them is there, something else keeps passages out
        return []
    hints = [words.format(_brief(name)) for name in missing[:_MAX_LISTED_KEYS]]
    if "*" in missing[0]:
        part = max(missing[0].split("*"), key=len)
        return [
            *hints,
            f"To match a folder or a part of a text write: {condition.key} contains {part}",
        ]
    nearest = similar_names(missing[0], different, 1)
    return [*hints, f"Did you mean {nearest[0]!r}?"] if nearest else hints


def _brief(text: str) -> str:
    """A text in quotes, at most so long as a line: what a stranger asked for goes into answers and logs."""
    return repr(text if len(text) <= _MAX_SHOWN_LETTERS else f"{text[:_MAX_SHOWN_LETTERS]} ...")


def _types(value: object) -> set[str]:
    """Type of a value in a filter, in the plural; of a list that of its items."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return set().union(*map(_types, value))
    if isinstance(value, bool):
        return {"truth values"}
    return {"numbers"} if isinstance(value, Real) else {"texts"} if isinstance(value, str) else {"something else"}


_logger = logging.getLogger(__name__)

MAX_QUESTION = 8_000  # Characters of a question that are searched for: about 1,300 words. Time grows with the length


def check_query(query: Any, k: Any) -> str:
    """Refuse what cannot be searched for; return the question, cut with a warning if it is too long."""
    if not isinstance(query, str):
        raise QueryError(f"The question is a {type(query).__name__}, not a text.")
    if not query.strip():
        raise QueryError("The query is empty.")
    check_count("k", k)
    if len(query) <= MAX_QUESTION:
        return query
    _logger.warning(
        "The question has %s characters; only the first %s are searched for.", f"{len(query):,}", f"{MAX_QUESTION:,}"
    )
    cut = query[:MAX_QUESTION]
    return cut.rsplit(None, 1)[0] if len(cut.split(None, 1)) > 1 else cut


def found(hits: Sequence[Hit]) -> dict[str, Any]:
    """Attributes of a span about the hits of a search."""
    documents = json.dumps([{"id": hit.unit.id, "score": float(hit.score)} for hit in hits])
    return {"sire.hits": len(hits), "gen_ai.retrieval.documents": documents if records_content() else None}


_TOGETHER = 64  # Questions that are embedded and compared at once

_BATCH_CELLS = 2**25  # Cosines of a batch: 128 MB of float32


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """Units by kind, documents and passages."""

    kinds: Mapping[str, int]
    documents: int
    chunks: int


@dataclass(frozen=True, slots=True)
class SearchSnapshot:
    """Searches on one state of an index; later changes are not visible.

    Attributes:
        view: The units.
        recipe: The recipe whose ranker and selectors are used.
        where: Filter for every search.
        returns: What the context for reasoning consists of: "units" or "passages".
        as_of: Ranks versions that a later one supersedes behind all others; `where` leaves out what is later.
    """

    view: PoolView
    recipe: Recipe
    where: Filter | None = None
    returns: str = "units"
    as_of: str = ""

    @property
    def size(self) -> int:
        """Number of units that match the filter."""
        return self.view.size if self.where is None else sum(self.counts().kinds.values())

    def positions(self, kind: str = UnitKind.CHUNK.value) -> IntArray:
        """Positions of the units of a kind that pass the filter, ascending."""
        view = self.view
        numbers = [number for number, name in enumerate(view.kind_names) if name == kind]
        mask, allowed = np.isin(view.kinds, numbers), view.allowed(self.where)
        return np.flatnonzero(mask if allowed is None else mask & allowed).astype(np.int64)

    def counts(self) -> PoolCounts:
        """Share of the pool that passes the filter."""
        view = self.view
        allowed = view.allowed(self.where)
        units = np.ones(view.size, dtype=bool) if allowed is None else allowed
        kinds = np.bincount(view.kinds[units], minlength=len(view.kind_names)).tolist()
        named = {name: count for name, count in zip(view.kind_names, kinds, strict=True) if count}
        return PoolCounts(named, len(self.document_ids()), int(view.passing_chunks(self.where).sum()))

    def document_ids(self) -> list[str]:
        """Ids of the documents with a passage that matches the filter; without a filter, of all."""
        ids = self.view.pool.document_ids()
        if self.where is None:
            return ids
        numbers = np.unique(self.view.pool.chunk_documents[self.view.passing_chunks(self.where)])
        return [ids[number] for number in numbers.tolist()]

    def passage_ids(self) -> list[tuple[str, str]]:
        """Ids of the passages that pass the filter, each behind its document's: the user's, or ours."""
        passing = self.view.passing_chunks(self.where).tolist()
        return [ids for ids, passes in zip(self.view.passage_ids(), passing, strict=True) if passes]

    def titles(self) -> list[str]:
        """The different titles of passages that pass the filter."""
        passing = self.view.passing_chunks(self.where).tolist()
        named = zip(self.view.passage_titles(), passing, strict=True)
        return list(dict.fromkeys(title for title, passes in named if passes and title))

    def metadata(self) -> list[Mapping[str, Any]]:
        """The distinct metadata of passages that match the filter."""
        metadata = self.view.pool.distinct_metadata()
        if self.where is None:
            return metadata
        numbers = np.unique(self.view.pool.chunk_metadata[self.view.passing_chunks(self.where)])
        return [metadata[number] for number in numbers.tolist()]

    def filter_hint(self, where: Filter) -> str:
        """Keys, values and ids of a filter that this snapshot does not have, with similar ones; mostly empty."""
        return filter_hint(where, self.metadata(), self.document_ids(), self.titles)

    @property
    def lexical(self) -> bool:
        """True if the recipe ranks by words alone."""
        return isinstance(self.recipe.ranker, Lexical)

    @property
    def language_model(self) -> LanguageModel | None:
        """The model that rankers and selectors use."""
        return self.view.language_model

    async def rank(self, query: str, n: int) -> Ranking:
        """Rank the pool; about `n` positions will be read."""
        return await self.recipe.ranker.rank(check_query(query, n), n, self.view, self.where)

    async def selected(self, query: str, ranking: Ranking, k: int, *, step: bool = False) -> Ranking:
        """The ranking whose first `k` units are the context that the recipe's selectors make, see `Selector`."""
        for selector in self.recipe.selectors:
            for_step = getattr(selector, "for_step", None) if step else None
            ranking = await (for_step() if for_step else selector).select(query, ranking, k, self.view)
        return ranking

    async def select(self, query: str, ranking: Ranking, k: int, *, returns: str = "units") -> list[Hit]:
        """Apply the recipe's selectors to a ranking: the context of `k` units, or the first `k` passages of it."""
        ranking = await self.selected(query, ranking, self._reach(k))
        return await replace(self, returns=returns).context(ranking, k)

    async def context(self, ranking: Ranking, k: int) -> list[Hit]:
        """The best `k` of a selected ranking, in the form that was asked for; superseded versions behind all others."""
        n = self._reach(k)
        hits = await (passage_hits(ranking, n, self.view) if self.returns == "passages" else self.hits(ranking, n))
        return current_first(hits, latest_versions(self.metadata()))[:k] if self.as_of else hits

    def _reach(self, k: int) -> int:
        """Number of hits that are looked at for `k` that are not superseded."""
        return _AS_OF * k if self.as_of else k

    async def hits(self, ranking: Ranking, k: int) -> list[Hit]:
        """The best `k` of a ranking, unselected."""
        positions, scores = await ranking.top(k)
        return self.view.hits(positions, scores, ranking)

    async def background(self, hits: Sequence[Hit]) -> list[str]:
        """Text that the recipe adds to the hits."""
        self._require_visible(hits)
        source = self.recipe.context
        return [] if source is None else list(await source.lines(hits, self.view))

    async def vectors(self, query: str, hits: Sequence[Hit]) -> tuple[FloatArray, FloatArray]:
        """Unit-length vectors of a question, `[dimension]`, and of hits of this snapshot, `[hits, dimension]`.

        Their dot products are cosine similarities: unlike the scores of recipes, they can be compared between
        questions.

        Raises:
            QueryError: A hit is none of this snapshot's, or the filter hides it.
        """
        self._require_visible(hits)
        return await self.view.embed_query(query), self.view.vectors([hit.unit.id for hit in hits])

    async def scored_by_cosine(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Hits of this snapshot in the same order, scored by their cosine similarity to a question, at least 0."""
        if not hits:
            return []
        question, vectors = await self.vectors(query, hits)
        cosines = np.clip(vectors @ question, 0.0, 1.0).tolist()
        return [replace(hit, score=cosine) for hit, cosine in zip(hits, cosines, strict=True)]

    def _require_visible(self, hits: Sequence[Hit]) -> None:
        positions, allowed = self.view.places(), self.view.allowed(self.where)
        for hit in hits:
            position = positions.get(hit.unit.id)
            if position is None or not (allowed is None or allowed[position]):
                raise QueryError(f"{hit.unit.id!r} is no unit of this snapshot. Pass hits that it returned itself.")

    async def nearest(self, vector: FloatArray, k: int) -> list[Hit]:
        """The `k` passages whose vectors are nearest to a vector, best first, scored by cosine.

        Raises:
            QueryError: The vector has the wrong dimension, or k is below one.
        """
        check_query("vector", k)
        view = self.view
        if not view.size:
            return []
        if vector.shape != (view.matrix.shape[1],):
            raise QueryError(f"The vector has the shape {vector.shape}, those of the index ({view.matrix.shape[1]},).")
        passages = view.kinds == list(view.kind_names).index(UnitKind.CHUNK.value)
        allowed = view.allowed(self.where)
        question = unit_rows(vector[None])[0]
        hidden = ~passages if allowed is None else ~(passages & allowed)
        scores = np.where(hidden, -np.inf, row_products(view.matrix, question)).astype(np.float32)
        return await replace(self, returns="units").context(ScoredRanking(scores, None, lambda _: ()), k)

    def search(self, query: str, k: int = 10, *, returns: str = "passages") -> list[Hit]:
        """Rank and select; see `Index.search`.

        Raises:
            QueryError: Empty question or k below one.
            ConfigurationError: `returns` is neither "passages" nor "units".
        """
        return run_sync(self.asearch(query, k, returns=returns))

    async def asearch(self, query: str, k: int = 10, *, returns: str = "passages") -> list[Hit]:
        """See `search`."""
        return (await self._search(query, k, returns))[0]

    async def _search(
        self, query: str, k: int, returns: str, *, paths_later: bool = False
    ) -> tuple[list[Hit], Ranking | None]:
        """Hits, and the ranking that knows the steps to them if they have none yet."""
        query = check_query(query, k)
        check_returns(returns)
        if not self.view.size:
            return [], None
        with self.span(query, k) as span, span.current():
            ranking = await self.selected(query, await self.rank(query, self._reach(k)), self._reach(k))
            later = paths_later and returns == "passages" and not hasattr(ranking, "of_passages")
            hits = await replace(self, returns=returns).context(PathsLater(ranking) if later else ranking, k)
            span.set(found(hits))
        return hits, ranking if later else None

    async def acontext(
        self, query: str, max_tokens: int, options: ContextOptions | None = None, *, returns: str = "passages"
    ) -> Context:
        """The context for a question; see `Index.context`."""
        from sire_core.search.context import ContextOptions, check_options, select_context

        check_count("max_tokens", max_tokens)
        options = check_options(ContextOptions() if options is None else options)
        is_passage = self.view.kinds == list(self.view.kind_names).index(UnitKind.CHUNK.value)
        hits, ranking = await self._search(query, options.pool, returns, paths_later=bool(is_passage.all()))
        passages = self.with_neighbors(hits)
        context = await asyncio.to_thread(select_context, query, passages, max_tokens, options)
        return context if ranking is None else await asyncio.to_thread(self._with_paths, context, ranking)

    def _with_paths(self, context: Context, ranking: Ranking) -> Context:
        """A context whose quoted passages have the steps that led to them."""

        def explained(one: Evidence) -> Evidence:
            if any(step.step == "beside" for step in one.hit.path):
                return one
            path = (*ranking.path(self.view.places()[one.hit.unit.id]), *one.hit.path)
            return replace(one, hit=replace(one.hit, path=path))

        return replace(context, evidence=tuple(map(explained, context.evidence)))

    def with_neighbors(self, hits: Sequence[Hit]) -> list[RankedPassage]:
        """Hits with their chunk numbers; small passages with those before and after them in their document."""
        from sire_core.search.context import SMALL_PASSAGE_CHARS, RankedPassage

        view, allowed = self.view, self.view.allowed(self.where)
        passages: dict[str, RankedPassage] = {}
        beside: list[tuple[int, int]] = []
        for rank, hit in enumerate(hits):
            position = view.places().get(hit.unit.id, -1)
            if position < 0 or hit.unit.kind is not UnitKind.CHUNK:
                passages.setdefault(hit.unit.id, RankedPassage(hit, rank))
                continue
            chunk, neighbors = view.neighbors(position, allowed)
            passages.setdefault(hit.unit.id, RankedPassage(hit, rank, chunk))
            if len(hit.unit.text) <= SMALL_PASSAGE_CHARS:
                beside += [(rank, neighbor) for neighbor in neighbors]
        for rank, position in beside:
            unit, documents = view.pool.unit(position)
            if unit.id not in passages:
                note = f"stands beside passage {rank + 1} of the search"
                step = PathStep("beside", (hits[rank].unit.id, unit.id), note)
                hit = Hit(unit, hits[rank].score, documents, (step,), unit.metadata)
                passages[unit.id] = RankedPassage(hit, rank, view.neighbors(position, None)[0])
        return list(passages.values())

    async def asearch_many(self, queries: Sequence[str], k: int = 10, *, returns: str = "passages") -> list[list[Hit]]:
        """See `Index.search_many`."""
        if isinstance(queries, str):
            raise QueryError("search_many takes a list of questions, not one text: put it in a list, [question].")
        queries = [check_query(query, k) for query in queries]
        check_returns(returns)
        results: list[list[Hit]] = []
        together = min(_TOGETHER, max(1, _BATCH_CELLS // max(1, self.view.size)))
        for first in range(0, len(queries), together):
            some = queries[first : first + together]
            snapshot = self if self.lexical else replace(self, view=await self.view.asking(some))
            results += [await snapshot.asearch(query, k, returns=returns) for query in some]
        return results

    def span(self, query: str, k: int) -> TraceSpan:
        """Begin the span of a search."""
        attributes = {
            "gen_ai.provider.name": "sire",
            "gen_ai.retrieval.query.text": query if records_content() else None,
            "sire.recipe": self.recipe.name,
            "sire.k": k,
            "sire.filter": None if self.where is None else str(self.where),
        }
        return start("retrieval", self.recipe.name, attributes)

    def with_models(self, wrap: WrapModel | None) -> SearchSnapshot:
        """This search with rankers and selectors that ask every model through a wrapper, or none."""
        return replace(self, view=self.view.with_models(wrap))
