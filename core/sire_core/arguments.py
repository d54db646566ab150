"""Keyword arguments with several spellings, and errors that name the called function."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar, cast

from sire_core.errors import ConfigurationError

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

_COMPARED = 20_000  # Names that a mistyped one is compared with, which takes far less than a second


def kind_of(argument: object) -> str:
    """Return the class of an argument for error messages, or that it is a class itself."""
    if isinstance(argument, type):
        return f"{argument.__name__} is a class (pass an object: {argument.__name__}(...)) and"
    return type(argument).__name__


def similar_names(name: str, names: Iterable[str], limit: int = 3) -> list[str]:
    """Return known names that hold an unknown one, as a path holds the name of a file; else those most like it."""
    compared = list(islice(names, _COMPARED))
    holding = [other for other in compared if len(name) > 2 and name.lower() in other.lower()]
    return holding[:limit] or difflib.get_close_matches(name, compared, n=limit)


def did_you_mean(name: object, names: Iterable[str], otherwise: str = "") -> str:
    """Return a question about the known name that is most like an unknown one; `otherwise` if none is."""
    nearest = difflib.get_close_matches(str(name).lower(), list(names), n=1, cutoff=0.6)
    return f"did you mean {nearest[0]!r}?" if nearest else otherwise


def sentence_end(name: object, names: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: a question about the nearest one, or a full stop."""
    hint = did_you_mean(name, names)
    return f"; {hint}" if hint else "."


def check_choice(argument: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a value that is not one of the names that an argument takes."""
    if value not in choices:
        raise ConfigurationError(
            f"{argument} is one of {', '.join(choices)}, not {value!r}{sentence_end(value, choices)}"
        )


def unknown_name(kind: str, name: str, names: Collection[str]) -> ConfigurationError:
    """The error about a recipe, strategy and the like that has no such name."""
    hint = did_you_mean(name, names)
    choose = f"{hint} Choose" if hint else "choose"
    return ConfigurationError(f"There is no {kind} {name!r}; {choose} one of {', '.join(names)}.")


def parameters(function: Callable[..., Any], *, without: Collection[str] = ()) -> tuple[str, ...]:
    """Return the names that a function takes as keywords; without `self` and catch-all parameters."""
    declared = inspect.signature(function).parameters.values()
    named_ones = (p.name for p in declared if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
    return tuple(name for name in named_ones if name != "self" and name not in without)


def lists_options(options: type) -> Callable[[Function], Function]:
    """Show the keys of a `TypedDict` as keywords in `inspect.signature`, `help` and the completion of notebooks.

    Decorates a function with `**options: Unpack[OptionsTypedDict]`, which type checkers and editors read themselves.

    Args:
        options: The `TypedDict`.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        declared = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        keywords = [
            inspect.Parameter(
                key,
                inspect.Parameter.KEYWORD_ONLY,
                default=...,
                annotation=getattr(annotation, "__forward_arg__", annotation),
            )
            for key, annotation in options.__annotations__.items()
        ]
        vars(function)["__signature__"] = signature.replace(parameters=[*declared, *keywords])
        return function

    return decorate


_SAME_ARGUMENT = (
    ("embedding", "embed_model", "embedder", "embeddings"),
    ("llm", "language_model", "extraction_llm", "model"),
    ("path", "persist_dir", "persist_directory", "folder"),
    ("vector_store", "vectorstore"),
    ("k", "top_k", "similarity_top_k"),
    ("filter", "filters"),
)
"""Words of LangChain, LlamaIndex and ours for one argument."""


def other_words(*names: str) -> dict[str, str]:
    """Other words for arguments with these names, by word: an adapter takes those of the other one, too."""
    groups = [(name, words) for name in names for words in _SAME_ARGUMENT if name in words]
    return {word: name for name, words in groups for word in words if word != name}


def named(
    called: str, arguments: Mapping[str, Any], names: Collection[str], spellings: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return arguments under their proper names."""
    other = dict(spellings or {})
    values: dict[str, Any] = {}
    for word, value in arguments.items():
        name = other.get(word, word)
        if name not in names:
            words = [*names, *(spelling for spelling, proper in other.items() if proper in names)]
            advice = did_you_mean(word, words, f"known are {_listed(names, other)}.")
            raise TypeError(f"{called}() has no argument {word!r}; {advice}")
        if name in values:
            raise TypeError(f"{called}() got {name!r} twice: {word!r} is another word for it.")
        values[name] = value
    return values


def explains_keywords(spellings: Mapping[str, str] | None = None) -> Callable[[Function], Function]:
    """Decorate an `__init__` that takes other spellings, and whose errors name the class that was called, not a base.

    Args:
        spellings: Proper names by other words.
    """

    def decorate(method: Function) -> Function:
        signature, names = inspect.signature(method), parameters(method)

        @functools.wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            called = type(self).__name__
            kwargs = named(called, kwargs, names, spellings)
            try:
                signature.bind(self, *args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{called}(): {error}") from None
            return method(self, *args, **kwargs)

        return cast("Function", call)

    return decorate


def _listed(names: Collection[str], other: Mapping[str, str]) -> str:
    """List names with their other spellings: `filter, k (or top_k)`."""
    spelled = {name: " or ".join(word for word, proper in other.items() if proper == name) for name in names}
    return ", ".join(f"{name} (or {spelled[name]})" if spelled[name] else name for name in sorted(names))


def limits_of(limits: T | Mapping[str, Any] | None, form: type[T]) -> T:
    """Limits of a class from an object of it or a mapping; None means no limits."""
    if isinstance(limits, form):
        return limits
    names = parameters(form)
    if limits is None or (isinstance(limits, Mapping) and set(limits) <= {*names}):
        return form(**limits or {})
    described = f"A mapping of {', '.join(map(str, limits))}" if isinstance(limits, Mapping) else kind_of(limits)
    raise ConfigurationError(
        f"{described} is no {form.__name__}; limits is {form.__module__}.{form.__name__}("
        f"{', '.join(f'{name}=...' for name in names)}) or a mapping of these."
    )
