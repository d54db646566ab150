"""From `--llm` and its companions to a language model, and the question whether it may be paid."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.spending import approve_cost, find_price
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.index import Index
    from sire_core.models.openai.client import OpenAIChat
    from sire_core.protocols import LanguageModel
    from sire_core.reason.limits import ReasoningLimits
    from sire_core.types import Document

__all__ = ["DEFAULT_KEY", "AnswerOptions", "LimitOptions", "SpendingOptions", "language_model"]

DEFAULT_KEY = "OPENAI_API_KEY"

_MODEL_TIMEOUT = 60.0
"""Seconds without a sign of life after which a call of the model counts as failed."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options of a command that asks a model.

    `model_timeout` is seconds without a sign of life after which a call counts as failed; None takes the client's.
    """

    llm: arguments.Llm = None
    base_url: arguments.BaseUrl = None
    api_key_env: arguments.ApiKeyEnv = DEFAULT_KEY
    native: arguments.Native = False
    max_calls: arguments.MaxCalls = None
    max_tokens: arguments.MaxTokens = None
    workers: arguments.Workers = 8
    model_timeout: arguments.ModelTimeout = None

    def model(self) -> OpenAIChat | None:
        """The model; None without `--llm`. Raises what `language_model` does."""
        return language_model(
            self.llm,
            self.base_url,
            self.api_key_env,
            native=self.native,
            max_calls=self.max_calls,
            max_tokens=self.max_tokens,
            workers=self.workers,
            model_timeout=self.model_timeout,
        )


@dataclass(frozen=True, slots=True)
class SpendingOptions(ModelOptions):
    """Options of a command that changes an index: what it may ask of a model, and whether it has to be asked first."""

    prices: arguments.Prices = None
    yes: arguments.Yes = False

    def approval(self) -> Callable[[Index, Sequence[Document]], bool] | None:
        """Asks whether a build of these documents may be paid, see `approve_cost`; None where nothing is paid.

        Raises:
            ConfigurationError: The price table cannot be read, or does not have the model; or there is no model.
        """
        if self.llm is None:
            _refuse({"--prices": self.prices})
            return None
        return partial(approve_cost, price=find_price(self.llm, self.prices), yes=self.yes)


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Options of a command that answers: which model does. `model_timeout` as in `SpendingOptions`."""

    llm: arguments.Answerer = None
    base_url: arguments.BaseUrl = None
    api_key_env: arguments.ApiKeyEnv = DEFAULT_KEY
    model_timeout: arguments.ModelTimeout = None

    def model(self) -> OpenAIChat | None:
        """The model; None without `--llm`. Raises what `language_model` does."""
        return language_model(self.llm, self.base_url, self.api_key_env, model_timeout=self.model_timeout)


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """Options of a command that answers: how far it may go for one question."""

    max_steps: Annotated[
        int | None, typer.Option("--max-steps", metavar="N", min=0, help="Maximum rounds of reasoning and searching.")
    ] = None
    max_calls: Annotated[
        int | None,
        typer.Option(
            "--max-calls", metavar="N", min=0, help="Maximum requests to the model; one is reserved for the answer."
        ),
    ] = None
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", metavar="N", min=0, help="Maximum tokens of prompts and answers.")
    ] = None
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="Maximum time for the whole question.")
    ] = None

    def of_reasoning(self) -> ReasoningLimits:
        """As strategies take them.

        Raises:
            ConfigurationError: A limit makes no sense.
        """
        from sire_core.reason.limits import ReasoningLimits

        return ReasoningLimits(self.max_steps, self.max_calls, self.max_tokens, self.timeout)

    def need_model(self, model: LanguageModel | None) -> None:
        """Refuse limits of what will not be asked.

        Raises:
            ConfigurationError: There is no model, and a limit of requests or tokens.
        """
        given = {"--max-calls": self.max_calls, "--max-tokens": self.max_tokens}
        if model is None:
            _refuse(given)


def language_model(
    llm: str | None,
    base_url: str | None = None,
    api_key_env: str = DEFAULT_KEY,
    *,
    native: bool = False,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    workers: int = 8,
    asks: bool = True,
    model_timeout: float | None = None,
) -> OpenAIChat | None:
    """The model that options name; None without `--llm`. The limits hold for all that it is asked.

    Args:
        llm: The model's name.
        base_url: Address of an OpenAI-compatible server.
        api_key_env: Name of the environment variable that holds the key.
        native: Whether `--native` was given.
        max_calls: Most requests.
        max_tokens: Most tokens of prompts and answers.
        workers: Calls in flight at once.
        asks: Whether the model will be asked anything; only then it needs a key.
        model_timeout: Seconds without a sign of life after which a call counts as failed; None takes the client's.

    Raises:
        ConfigurationError: There is no key, or an option makes no sense without a model.
    """
    if llm is None:
        given = {
            "--base-url": base_url,
            "--api-key-env": None if api_key_env == DEFAULT_KEY else api_key_env,
            "--native": native or None,
            "--max-calls": max_calls,
            "--max-tokens": max_tokens,
            "--model-timeout": model_timeout,
        }
        _refuse(given)
        return None
    if base_url is not None and not base_url.startswith(("http://", "https://")):
        raise ConfigurationError("--base-url is an address with http:// or https://, as in http://localhost:11434/v1.")
    from sire_core.models.openai.client import OpenAIChat
    from sire_core.models.usage import UsageLimits

    return OpenAIChat(
        llm,
        base_url=base_url,
        api_key=_key(base_url, api_key_env) if asks else None,
        limits=UsageLimits(max_calls, max_tokens),
        concurrency=workers,
        timeout=_MODEL_TIMEOUT if model_timeout is None else model_timeout,
    )


def _refuse(given: Mapping[str, object]) -> None:
    """Refuse options that say something about a model where there is none; None was not given."""
    useless = [name for name, value in given.items() if value is not None]
    if useless:
        raise ConfigurationError(f"{', '.join(useless)} needs --llm MODEL: no model is asked without it.")


def _key(base_url: str | None, name: str) -> str | None:
    """The key; None lets the client find it, or do without. No message repeats what was given: it may be the key."""
    if os.environ.get(name):
        return os.environ[name]
    if name != DEFAULT_KEY:
        raise ConfigurationError(
            "--api-key-env takes the name of an environment variable that holds the key, and the one it names is not "
            "set. (The key itself does not belong on a command line.)"
        )
    if base_url is None and not os.environ.get("OPENAI_BASE_URL"):
        raise ConfigurationError(
            f"The environment variable {DEFAULT_KEY} is not set. Set it, name another one with --api-key-env, or give "
            "the address of a server of your own with --base-url."
        )
    return None
