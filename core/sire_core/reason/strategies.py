"""Runs a strategy: by name, to its end, from sync code."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.errors import ConfigurationError
from sire_core.models.sync import run_sync
from sire_core.reason.ircot import IRCoTConfig, ircot
from sire_core.reason.runner import HITS, ReasoningOptions, Run, Strategy, run_strategy
from sire_core.reason.self_ask import SelfAskConfig, self_ask
from sire_core.reason.steps import Answer, ReasoningStep, Trace

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.reason.searchers import Searchable


T = TypeVar("T")


def single(
    index: Searchable, question: str, **options: Unpack[ReasoningOptions]
) -> AsyncGenerator[ReasoningStep, None]:
    """Search once and answer in one model call. The hits are those of `Index.search`.

    Args:
        index: An `Index` with any recipe, or a `RetrieverSource` over any other retriever.
        question: The question.
        **options: See `ReasoningOptions`; with `answer=False`, no model is needed.

    Raises:
        QueryError: Empty question or k below one.
        ConfigurationError: There is no language model, or the filter is invalid.
        IndexMissingError: There is no index.
        TypeError: An option is unknown.
    """
    return run_strategy(Strategy("single", _once, settings=(), thinks=False), index, question, options)


async def _once(run: Run) -> AsyncGenerator[ReasoningStep, None]:
    yield await run.evidence.retrieve(0, run.question, run.k or HITS)
    run.stop = "empty_index" if run.evidence.empty else "answered" if run.answers else "done"


STRATEGIES: Mapping[str, Callable[..., AsyncGenerator[ReasoningStep, None]]] = MappingProxyType(
    {"single": single, "ircot": ircot, "self-ask": self_ask}
)
"""Strategies by name, for the command line and the adapters."""


def settings_of(strategy: str, flavor: str | None = None, examples: str = "") -> dict[str, Any]:
    """Arguments of a strategy for one of its flavors, None for its default, and with solved examples."""
    if strategy not in STRATEGIES:
        raise ConfigurationError(f"There is no strategy {strategy!r}; choose one of {', '.join(STRATEGIES)}.")
    if flavor is None and not examples:
        return {}
    if strategy == "ircot":
        return {"config": IRCoTConfig(flavor or IRCoTConfig().flavor, examples=examples)}  # type: ignore[arg-type]  # the config checks it
    if strategy == "self-ask":
        return {"config": SelfAskConfig(flavor or SelfAskConfig().mode, examples=examples)}  # type: ignore[arg-type]  # as above
    raise ConfigurationError("A flavor and examples are for ircot and self-ask only.")


def reason(strategy: str, index: Searchable, question: str, **settings: Any) -> AsyncGenerator[ReasoningStep, None]:
    """Run a strategy by name."""
    settings_of(strategy)
    return STRATEGIES[strategy](index, question, **settings)


async def collect(steps: AsyncIterator[ReasoningStep]) -> Trace:
    """Run a strategy to its end, for example all of `ircot`."""
    steps_: list[ReasoningStep] = []
    try:
        async for step in steps:
            steps_.append(step)  # noqa: PERF401 - the generator has to be closed when the caller is cancelled
    finally:
        if isinstance(steps, AsyncGenerator):
            await steps.aclose()
    if not steps_ or not isinstance(steps_[-1], Answer):
        raise ValueError("these steps do not end with an answer")
    return Trace(tuple(steps_), steps_[-1])


def iterate_sync(steps: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Iterate over an async generator from sync code; leaving the loop early closes the generator."""

    async def following() -> tuple[T, ...]:
        try:
            return (await anext(steps),)
        except StopAsyncIteration:
            return ()

    try:
        while item := run_sync(following()):
            yield item[0]
    finally:
        run_sync(steps.aclose())
