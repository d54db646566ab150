"""Keywords that methods of `Index` do not have: an error says where they belong."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, ParamSpec, TypeVar, cast

from sire_core.arguments import named, parameters

P = ParamSpec("P")
T = TypeVar("T")

_SPELLINGS = {
    "top_k": "k",
    "limit": "k",
    "filters": "filter",
    "where": "filter",
    "llm": "language_model",
    "embedding": "embedder",
    "embed_model": "embedder",
}
"""Words of other libraries for arguments of `Index`."""


def explains_settings(function: Callable[P, T]) -> Callable[P, T]:
    """A method of `Index` that says where a keyword belongs that it does not have."""
    known, called = parameters(function), function.__qualname__.removesuffix(".__init__")

    def check(arguments: Mapping[str, Any]) -> None:
        for word in arguments.keys() - set(known):
            _refuse_keyword(called, known, word, arguments[word])

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def acall(*args: P.args, **kwargs: P.kwargs) -> Any:
            check(kwargs)
            return await function(*args, **kwargs)

        return cast("Callable[P, T]", acall)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        check(kwargs)
        return function(*args, **kwargs)

    return call


def _refuse_keyword(called: str, known: Collection[str], word: str, value: object) -> None:
    from sire_core.recipes.registry import factory_of, recipe_names

    owners = [name for name in recipe_names() if (make := factory_of(name)) and word in make().config]
    if owners:
        first = owners[0]
        raise TypeError(
            f"{called}() has no argument {word!r}: it is a setting of recipes ({', '.join(owners)}), with which an "
            f"index is opened: Index(path, recipe={first}({word}={value!r})), with {first} from sire_core.recipes."
        )
    if word == "recipe":
        raise TypeError(f"{called}() has no argument 'recipe': call the method of index.using({value!r}).")
    named(called, {word: value}, known, _SPELLINGS)
    raise TypeError(f"{called}() has no argument {word!r}; use {_SPELLINGS[word]!r}.")
