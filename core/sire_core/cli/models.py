"""From `--llm` and its companions to a language model, and the question whether it may be paid."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.output import note
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.index import Index
    from sire_core.models.openai.client import OpenAIChat
    from sire_core.models.prices import Price
    from sire_core.protocols import LanguageModel
    from sire_core.reason.limits import ReasoningLimits
    from sire_core.types import BuildReport, Document

__all__ = [
    "DEFAULT_KEY",
    "AnswerOptions",
    "LimitOptions",
    "SpendingOptions",
    "approve_cost",
    "ask_to_go_on",
    "find_price",
    "say_usage",
]

DEFAULT_KEY = "OPENAI_API_KEY"

_MODEL_TIMEOUT = 60.0
"""Seconds without a sign of life after which a call of the model counts as failed."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options of a command that asks a model."""

    llm: arguments.Llm = None
    base_url: arguments.BaseUrl = None
    api_key_env: arguments.ApiKeyEnv = DEFAULT_KEY
    native: arguments.Native = False
    max_calls: arguments.MaxCalls = None
    max_tokens: arguments.MaxTokens = None
    workers: arguments.Workers = 8
    model_timeout: arguments.ModelTimeout = None

    def model(self, *, asks: bool = True) -> OpenAIChat | None:
        """The model; None without `--llm`. The limits hold for all that it is asked."""
        if self.llm is None:
            given = {
                "--base-url": self.base_url,
                "--api-key-env": None if self.api_key_env == DEFAULT_KEY else self.api_key_env,
                "--native": self.native or None,
                "--max-calls": self.max_calls,
                "--max-tokens": self.max_tokens,
                "--model-timeout": self.model_timeout,
            }
            _refuse(given)
            return None
        url = self.base_url
        if url is not None and not url.startswith(("http://", "https://")):
            raise ConfigurationError(
                "--base-url is an address with http:// or https://, as in http://localhost:11434/v1."
            )
        from sire_core.models.openai.client import OpenAIChat
        from sire_core.models.usage import UsageLimits

        return OpenAIChat(
            self.llm,
            base_url=url,
            api_key=_key(url, self.api_key_env) if asks else None,
            limits=UsageLimits(self.max_calls, self.max_tokens),
            concurrency=self.workers,
            timeout=_MODEL_TIMEOUT if self.model_timeout is None else self.model_timeout,
        )


@dataclass(frozen=True, slots=True)
class SpendingOptions(ModelOptions):
    """Options of a command that changes an index: what it may ask of a model, and whether it has to be asked first."""

    prices: arguments.Prices = None
    yes: arguments.Yes = False

    def approval(self) -> Callable[[Index, Sequence[Document]], bool] | None:
        """Asks whether a build of these documents may be paid, see `approve_cost`; None where nothing is paid."""
        if self.llm is None:
            _refuse({"--prices": self.prices})
            return None
        return partial(approve_cost, price=find_price(self.llm, self.prices), yes=self.yes)


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Options of a command that answers: which model does."""

    llm: arguments.Answerer = None
    base_url: arguments.BaseUrl = None
    api_key_env: arguments.ApiKeyEnv = DEFAULT_KEY
    model_timeout: arguments.ModelTimeout = None

    def model(self) -> OpenAIChat | None:
        """See `ModelOptions.model`."""
        return ModelOptions(self.llm, self.base_url, self.api_key_env, model_timeout=self.model_timeout).model()


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
        """The limits of a strategy."""
        from sire_core.reason.limits import ReasoningLimits

        return ReasoningLimits(self.max_steps, self.max_calls, self.max_tokens, self.timeout)

    def need_model(self, model: LanguageModel | None) -> None:
        """Refuse limits of what will not be asked."""
        given = {"--max-calls": self.max_calls, "--max-tokens": self.max_tokens}
        if model is None:
            _refuse(given)


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


def find_price(llm: str, prices: Path | None) -> Price | None:
    """The model's price from a table of the user's; None without one, which means the packaged table."""
    if prices is None:
        return None
    from sire_core.models.prices import load_prices, price_of

    price = price_of(llm, load_prices(prices))
    if price is None:
        raise ConfigurationError(f"{prices} has no price of {llm}.")
    return price


def approve_cost(index: Index, documents: Sequence[Document], price: Price | None, *, yes: bool) -> bool:
    """Show what a build or change would cost and ask whether to go on, unless it costs nothing.

    Returns whether the user agreed; False where nothing is paid.
    """
    estimate = index.estimate(documents, price)
    if estimate.total.calls[1] == 0:
        note("No model calls are needed.")
        return False
    note(f"Expected model calls:\n{estimate.describe()}")
    ask_to_go_on(yes=yes)
    return True


def ask_to_go_on(*, yes: bool) -> None:
    """Ask whether to go on."""
    if yes:
        return
    if not sys.stdin.isatty():
        note("error: Cannot ask for confirmation: stdin is not a terminal. Add --yes to continue.", "red")
        raise typer.Exit(2)
    try:
        agreed, code = typer.confirm("Continue?", err=True), 1
    except typer.Abort:  # Ctrl-C
        agreed, code = False, 130
        note("")
    if not agreed:
        note("Nothing was changed, and no model was called.")
        raise typer.Exit(code)


def say_usage(report: BuildReport, prefix: str = "") -> None:
    """Say on stderr what the models were asked, stage by stage."""
    from sire_core.models.usage import UsageReport

    for stage, used in report.usage.items():
        note(prefix + UsageReport({stage: used}).describe())
