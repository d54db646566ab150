"""`PinnedSearch`: one snapshot of an index, searched in the recipe's way as often as one likes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sire_core.errors import QueryError

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import LanguageModel, Ranking
    from sire_core.recipes.base import Recipe
    from sire_core.search.view import PoolView
    from sire_core.types import Hit

__all__ = ["PinnedSearch", "check_query"]


def check_query(query: Any, k: Any) -> None:
    """Refuse what cannot be searched for.

    Raises:
        QueryError: Empty question or k below one.
    """
    if not isinstance(query, str):
        raise QueryError(f"The question is a {type(query).__name__}, not a text.")
    if not query.strip():
        raise QueryError("The question is empty. Ask something.")
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise QueryError(f"k must be a whole number of at least 1, not {k!r}.")


@dataclass(frozen=True, slots=True)
class PinnedSearch:
    """Ranking and selection over one snapshot; what is written to the index meanwhile does not show.

    Attributes:
        view: The pool.
        recipe: Its ranker and selectors are used.
        where: Filter of every search.
    """

    view: PoolView
    recipe: Recipe
    where: Filter | None = None

    async def rank(self, query: str, n: int) -> Ranking:
        """Rank the pool; about `n` positions will be read."""
        return await self.recipe.ranker.rank(query, n, self.view, self.where)

    async def select(self, query: str, ranking: Ranking, k: int) -> list[Hit]:
        """The context of `k` units that the recipe's selectors make of a ranking."""
        for selector in self.recipe.selectors:
            ranking = await selector.select(query, ranking, k, self.view)
        return await self.hits(ranking, k)

    async def hits(self, ranking: Ranking, k: int) -> list[Hit]:
        """The best `k` of a ranking, unselected."""
        positions, scores = await ranking.top(k)
        return self.view.hits(positions, scores, ranking)

    async def search(self, query: str, k: int) -> list[Hit]:
        """Rank and select.

        Raises:
            QueryError: Empty question or k below one.
        """
        check_query(query, k)
        if not self.view.size:
            return []
        return await self.select(query, await self.rank(query, k), k)

    def with_language_model(self, language_model: LanguageModel | None) -> PinnedSearch:
        """The same search, whose rankers and selectors ask another model, or none."""
        return replace(self, view=self.view.with_language_model(language_model))
