"""`Explorer`: the queries of the pages of `sire explore`, without the pages."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sire_core.errors import ConfigurationError, IndexMissingError
from sire_core.explore.neighbourhood import grown
from sire_core.explore.query_result import QueryResult, query_result
from sire_core.explore.why_not import WhyNot, find_passages, why_not
from sire_core.recipes.registry import REGISTRY, recipe_with
from sire_core.search.search_options import RETURNS
from sire_core.types import Unit, UnitKind

if TYPE_CHECKING:
    from sire_core.index import Index
    from sire_core.protocols import LanguageModel
    from sire_core.search.snapshot import SearchSnapshot

HITS = 5  # Unless a question says otherwise
MOST_HITS = 100
_RANKERS = ("bm25", "dense", "hybrid")  # Of `flat`, which need no build of their own
_KEPT = 6  # Maximum number of open indexes, one for each recipe with its settings


def number_of(text: str) -> int:
    """The value of decimal digits; of more than any number here has, a number that is too large for everything."""
    return int(text) if len(text) <= _MOST_DIGITS else 10**_MOST_DIGITS


_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class ExplorerQuery:
    """A question and the options of its search."""

    question: str
    recipe: str = ""  # Name of a recipe that the folder holds; empty for the default
    k: int = HITS  # Number of hits
    filter: str = ""  # A filter; empty for none
    settings: str = ""  # Settings of the search as `key=value` words
    returns: str = "passages"  # As in `Index.search`


def compared_query(query: ExplorerQuery, recipe: str, settings: str) -> ExplorerQuery | None:
    """Change the recipe, the settings or both of a query; None if it is compared with nothing."""
    if not recipe and not settings.strip():
        return None
    other = replace(query, recipe=recipe or query.recipe, settings=settings)
    return None if other == query else other


def known_or_first(value: str, choices: Sequence[str], what: str) -> tuple[str, str]:
    """A value if it is known, else the first known one with a note; none for an empty value."""
    if not value or value in choices:
        return value or choices[0], ""
    return choices[0], f"There is no {what} {value!r} here; {choices[0]!r} is used. There are: {', '.join(choices)}."


def number_of_hits(text: str) -> tuple[int, str]:
    """The number of hits that an address asks for, and what is to say if it is none."""
    if text.isdecimal() and 1 <= number_of(text) <= MOST_HITS:
        return number_of(text), ""
    return HITS, f"Hits is a whole number from 1 to {MOST_HITS}, not {text or 'empty'}; {HITS} are shown."


def _is_ranker(recipe: str) -> bool:
    return recipe in _RANKERS and recipe not in REGISTRY


def check_words(settings: str) -> None:
    """Refuse settings that are not written as `name=value` words, each once."""
    names = Counter(word.partition("=")[0] if "=" in word[1:] else "" for word in settings.split())
    wrong = [word for word in settings.split() if "=" not in word[1:]]
    twice = [name for name, number in names.items() if number > 1]
    if wrong:
        raise ConfigurationError(
            f"A setting is written name=value, such as rounds=1, with a space before the next one; {wrong[0]!r} is "
            "none. 'Settings of ...' under 'More options' lists them."
        )
    if twice:
        raise ConfigurationError(f"The setting {twice[0]} is given twice; give it once, with the value that counts.")


@dataclass(slots=True)
class Explorer:
    """Searches an index with all its recipes; read only."""

    # Opens the index for a recipe (empty for the default) and settings as `key=value` words
    open: Callable[[str, Sequence[str]], Index]
    model: LanguageModel | None = None  # Model of the reasoning; None for evidence only
    title: str = "index"  # Name of the index
    # Makes questions to begin with
    questions: Callable[[SearchSnapshot], Sequence[str]] = lambda _: ()
    _opened: dict[tuple[str, str], Index] = field(default_factory=dict)
    _searched: set[tuple[str, str]] = field(default_factory=set)
    _was_read: bool = False  # Whether the folder was an index once

    def index(self, recipe: str = "", settings: str = "") -> Index:
        """The index, opened with a recipe and settings."""
        if _is_ranker(recipe) and settings.strip():
            raise ConfigurationError(f"{recipe} takes no settings here.")
        key = ("" if _is_ranker(recipe) else recipe, " ".join(settings.split()))
        check_words(settings)
        if key not in self._opened:
            if len(self._opened) >= _KEPT:
                self._opened.pop(next(iter(self._opened)))  # not closed: a reader may still use it
            self._opened[key] = self.open(key[0], settings.split())
        return self._opened[key]

    def close(self) -> None:
        """Close all open indexes."""
        for index in self._opened.values():
            index.close()
        self._opened.clear()

    def recipes(self) -> list[str]:
        """Names of the recipes in the index, the default first."""
        index = self.index()
        try:
            names: list[str] = index.stats()["recipes"]
        except IndexMissingError as error:
            raise self._gone(index) or error from None
        self._was_read = True
        return names

    def compared(self) -> list[str]:
        """Recipes to compare with: those of the index, and rankings of passages where it has no other units."""
        names, kinds = self.recipes(), self.index().stats()["kinds"]
        return [*names, *filter(_is_ranker, _RANKERS)] if set(kinds) == {UnitKind.CHUNK.value} else names

    def _gone(self, index: Index) -> IndexMissingError | None:
        """The error of an index whose folder was moved or deleted while its pages were open."""
        if not self._was_read or index.path is None or index.path.exists():
            return None
        return IndexMissingError(f"{index.path} is no longer there. Put it back and load this page again.")

    async def snapshot(self, recipe: str = "", filter: str = "", settings: str = "") -> SearchSnapshot:
        """A snapshot of the latest generation, with a filter."""
        # Opening one imports what its embedder needs, which takes long: not on the event loop.
        index = await asyncio.to_thread(self.index, recipe, settings)
        try:
            snapshot = await index.asnapshot(filter=filter or None)
        except IndexMissingError as error:
            raise self._gone(index) or error from None
        if not _is_ranker(recipe):
            return snapshot
        flat = recipe_with("flat", {"ranker": recipe}, {})
        return replace(snapshot, recipe=replace(flat, name=recipe))

    async def ask(self, query: ExplorerQuery) -> QueryResult:
        """Search, and explain the hits."""
        snapshot = await self.snapshot(query.recipe, query.filter, query.settings)
        result = await query_result(snapshot, query.question, query.k, returns=query.returns)
        note = result.note
        if query.filter and not result.hits:
            hint = await self.index(query.recipe, query.settings).afilter_hint(query.filter)
            note = hint or "No passage passes the filter."
        settings = " ".join(query.settings.split())
        is_first = (query.recipe, settings) not in self._searched
        self._searched.add((query.recipe, settings))
        return replace(result, settings=settings, filter=query.filter, note=note, is_first=is_first)

    async def grown(self, query: ExplorerQuery, names: Sequence[str]) -> tuple[QueryResult, SearchSnapshot]:
        """A result whose picture has the neighbours of some of its nodes, too; and what was searched."""
        result = await self.ask(query)
        snapshot = await self.snapshot(query.recipe, query.filter, query.settings)
        picture = await asyncio.to_thread(grown, snapshot, result.picture, names)
        return replace(result, picture=picture), snapshot

    def read(self, here: Mapping[str, str]) -> tuple[ExplorerQuery, ExplorerQuery | None, list[str]]:
        """The query that an address asks for, the one that it is compared with, and what is wrong with them."""
        recipe, *notes = known_or_first(here.get("recipe", ""), self.recipes(), "recipe")
        returns, wrong_kind = known_or_first(here.get("returns", ""), RETURNS, "kind of results")
        compare = here.get("compare", "")
        other, wrong_other = known_or_first(compare, self.compared(), "recipe") if compare else ("", "")
        hits, wrong_hits = number_of_hits(here.get("k", str(HITS)))
        texts = {name: here.get(name, "") for name in ("filter", "settings")}
        query = ExplorerQuery(here.get("q", ""), recipe, hits, returns=returns, **texts)
        notes = [note for note in (*notes, wrong_kind, wrong_other, wrong_hits) if note]
        return query, compared_query(query, other, here.get("compare_settings", "")), notes

    async def find(self, text: str) -> list[Unit]:
        """Find passages by words, for `why_not`."""
        return await find_passages(await self.snapshot(), text)

    async def why_not(self, query: ExplorerQuery, passage: str) -> WhyNot:
        """Why a passage is not among the hits."""
        snapshot = await self.snapshot(query.recipe, query.filter, query.settings)
        return await why_not(snapshot, query.question, passage, query.k)
