"""The kinds of search that vector stores of LangChain have: diverse results, and a least similarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, get_args

from langchain_core.vectorstores.utils import maximal_marginal_relevance

from langchain_sire.options import SearchType
from sire_core.arguments import check_choice
from sire_core.errors import ConfigurationError
from sire_core.index import Index
from sire_core.types import Hit

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "similarity": (),
    "mmr": ("fetch_k", "lambda_mult"),
    "similarity_score_threshold": ("score_threshold",),
}
"""Options of `search_kwargs` that each kind of search has."""

SEARCH_TYPE_OPTIONS = tuple(chain.from_iterable(OPTIONS.values()))
FETCH_K, LAMBDA_MULT = 20, 0.5


def check_search_type(search_type: str, options: Mapping[str, Any]) -> None:
    """Refuse an unknown kind of search, options of another kind, and values out of range.

    Raises:
        ConfigurationError: With the values that are allowed.
    """
    check_choice("search_type", search_type, get_args(SearchType))
    if search_type != "similarity" and options.get("max_tokens") is not None:
        raise ConfigurationError(f"max_tokens has no effect with search_type={search_type!r}.")
    for kind, names in OPTIONS.items():
        if misplaced := [name for name in names if name in options and kind != search_type]:
            raise ConfigurationError(f"{misplaced[0]} has no effect without search_type={kind!r}.")
    threshold = options.get("score_threshold")
    if search_type == "similarity_score_threshold" and not _is_share(threshold):
        raise ConfigurationError(
            "search_type='similarity_score_threshold' needs search_kwargs={'score_threshold': X} with a cosine "
            f"similarity X from 0 to 1, not {threshold!r}."
        )
    if not _is_share(options.get("lambda_mult", LAMBDA_MULT)):
        raise ConfigurationError(f"lambda_mult is a number from 0 to 1, not {options['lambda_mult']!r}.")
    fetch_k = options.get("fetch_k", FETCH_K)
    if isinstance(fetch_k, bool) or not isinstance(fetch_k, int) or fetch_k < 1:
        raise ConfigurationError(f"fetch_k must be at least 1, not {fetch_k!r}.")


def _is_share(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


async def scored_by_cosine(index: Index, query: str, hits: Sequence[Hit]) -> list[Hit]:
    """Hits scored by their cosine similarity to a question, at least 0."""
    return await (await index.asnapshot()).scored_by_cosine(query, hits) if hits else []


async def diverse(index: Index, query: str, hits: Sequence[Hit], k: int, lambda_mult: float) -> list[Hit]:
    """The `k` hits that are similar to the question and unlike one another (maximal marginal relevance)."""
    if not hits:
        return []
    question, vectors = await (await index.asnapshot()).vectors(query, hits)
    return [hits[position] for position in maximal_marginal_relevance(question, list(vectors), lambda_mult, k)]
