"""From `--llm` and its companions to a language model: its price and approval, and the models of `sire eval`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from sire_core.cli import option_groups
from sire_core.cli.option_groups import option
from sire_core.cli.output import note
from sire_core.errors import ConfigurationError
from sire_core.index_options import WORKERS

if TYPE_CHECKING:
    from sire_core.index import Index
    from sire_core.models.openai.client import OpenAIChat
    from sire_core.models.usage import Price
    from sire_core.models.usage_meter import UsageMeter
    from sire_core.protocols import LanguageModel, WrapModel
    from sire_core.reason.model_calls import ReasoningLimits
    from sire_core.types import BuildReport, Document

DEFAULT_KEY = "OPENAI_API_KEY"

_MODEL_TIMEOUT = 60.0  # Seconds without a sign of life after which a call of the model counts as failed


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options of a command that asks a model."""

    group: ClassVar[str] = "Model"

    llm: option_groups.Llm = None
    base_url: option_groups.BaseUrl = None
    api_key_env: option_groups.ApiKeyEnv = DEFAULT_KEY
    native: option_groups.Native = False
    max_calls: option_groups.MaxCalls = None
    max_tokens: option_groups.MaxTokens = None
    workers: option_groups.Workers = WORKERS
    model_timeout: option_groups.ModelTimeout = None
    prices: option_groups.Prices = None

    def price(self) -> Price | None:
        """The model's price in the user's table, which must have it, or in the packaged one."""
        if self.llm is None:
            return None
        from sire_core.models.usage import load_prices, price_of

        price = price_of(self.llm, load_prices(self.prices))
        if price is None and self.prices is not None:
            raise ConfigurationError(f"{self.prices} has no price of {self.llm}.")
        return price

    def model(self, *, is_used: bool = True) -> OpenAIChat | None:
        """The model; None without `--llm`. The limits hold for all that it is asked."""
        if self.llm is None:
            refuse_without_model(
                {
                    "--base-url": self.base_url,
                    "--api-key-env": None if self.api_key_env == DEFAULT_KEY else self.api_key_env,
                    "--native": self.native or None,
                    "--max-calls": self.max_calls,
                    "--max-tokens": self.max_tokens,
                    "--model-timeout": self.model_timeout,
                    "--prices": self.prices,
                }
            )
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
            api_key=_key(url, self.api_key_env) if is_used else None,
            limits=UsageLimits(self.max_calls, self.max_tokens),
            concurrency=self.workers,
            timeout=_MODEL_TIMEOUT if self.model_timeout is None else self.model_timeout,
        )


@dataclass(frozen=True, slots=True)
class SpendingOptions(ModelOptions):
    """Options of a command that changes an index: what it may ask of a model, and whether it has to be asked first."""

    group: ClassVar[str] = "Model"

    yes: option_groups.Yes = False

    def approval(self) -> Callable[[Index, Sequence[Document]], bool] | None:
        """Asks whether a build of these documents may be paid, see `approve_cost`; None where nothing is paid."""
        if self.llm is None:
            return None
        return partial(approve_cost, price=self.price(), yes=self.yes)


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Options of a command that answers: which model does."""

    group: ClassVar[str] = "Model"

    llm: option_groups.Answerer = None
    base_url: option_groups.BaseUrl = None
    api_key_env: option_groups.ApiKeyEnv = DEFAULT_KEY
    model_timeout: option_groups.ModelTimeout = None

    def model(self) -> OpenAIChat | None:
        """See `ModelOptions.model`."""
        return ModelOptions(self.llm, self.base_url, self.api_key_env, model_timeout=self.model_timeout).model()


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """Options of a command that answers: how far it may go for one question."""

    group: ClassVar[str] = "Limits for one question"

    max_steps: Annotated[int | None, option("--max-steps N", "Maximum rounds of reasoning and searching.", min=0)] = (
        None
    )
    max_calls: Annotated[
        int | None,
        option("--max-calls N", "Maximum requests to the model; one is reserved for the answer.", min=0),
    ] = None
    max_tokens: Annotated[int | None, option("--max-tokens N", "Maximum tokens of prompts and answers.", min=0)] = None
    timeout: Annotated[float | None, option("--timeout SECONDS", "Maximum time for the whole question.")] = None

    def of_reasoning(self) -> ReasoningLimits:
        """The limits of a strategy."""
        from sire_core.reason.model_calls import ReasoningLimits

        return ReasoningLimits(self.max_steps, self.max_calls, self.max_tokens, self.timeout)

    def need_model(self, model: LanguageModel | None) -> None:
        """Refuse limits of what will not be asked."""
        limits = {"--max-steps": self.max_steps, "--max-calls": self.max_calls, "--max-tokens": self.max_tokens}
        if model is None:
            refuse_without_model(limits)


def refuse_without_model(values: Mapping[str, object]) -> None:
    """Refuse options that say something about a model where there is none; None was not given."""
    useless = [name for name, value in values.items() if value is not None]
    if useless:
        embedder = " OPENAI_BASE_URL is the address for --embedder openai:MODEL." if "--base-url" in useless else ""
        raise ConfigurationError(f"{', '.join(useless)} needs --llm MODEL: no model is asked without it.{embedder}")


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


def approve_cost(index: Index, documents: Sequence[Document], price: Price | None, *, yes: bool) -> bool:
    """Show what a build or change would cost and ask whether to go on, unless it costs nothing."""
    estimate = index.estimate(documents, price)
    if estimate.total.calls[1] == 0:
        note("No model calls are needed.")
        return False
    note(f"Expected model calls:\n{estimate.describe()}")
    ask_to_go_on(yes=yes, refused="Stopped. Nothing was changed, and no model was called.")
    return True


def ask_to_go_on(*, yes: bool, refused: str = "Stopped. Nothing was changed.") -> None:
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
        note(refused)
        raise typer.Exit(code)


def say_usage(report: BuildReport) -> None:
    """Say on stderr what the models were asked, stage by stage."""
    from sire_core.models.usage import UsageReport

    for stage, used in report.usage.items():
        note(UsageReport({stage: used}).describe())


@dataclass(frozen=True, slots=True)
class EvalModels:
    """The models of an evaluation."""

    builder: LanguageModel | None  # Extracts and summarizes; the index keeps what it answers. None without a model.
    # The same model for everything else (groups of sentences, topics, searches, answers, analyses); what it answers is
    # kept in a file
    asked: LanguageModel | None
    judge: LanguageModel | None  # Compares answers; kept there, and counted with the others
    # Makes of a model that a setting names one that is kept there, and counted with the others; None without `--llm`,
    # whose limits hold for all
    named: WrapModel | None
    folder: Path | None  # Where indexes are built; None takes a temporary folder


@contextmanager
def eval_models(
    calls: ModelOptions,
    judge: str | None,
    *,
    to: Path | None,
    answers: Path | None,
    builds: bool,
    reader_only: bool,
) -> Iterator[EvalModels]:
    """The models, and the places where what they answer is kept: those that are named, else temporary ones."""
    from sire_core.models.caching import CachedModel
    from sire_core.models.usage_meter import with_meter
    from sire_core.storage.call_cache import CallStore

    model = calls.model()
    if model is None:
        if answers is not None:
            raise ConfigurationError("--answers FILE keeps what a model answers; it needs --llm MODEL.")
        yield EvalModels(None, None, None, None, to)
        return
    judging = None
    if judge is not None:
        unbounded = replace(calls, llm=judge, max_calls=None, max_tokens=None).model()
        assert unbounded is not None  # it has a name
        judging = unbounded.metered(model.meter, "judge")
    with (
        _paths(to, answers, model.meter, builds=builds) as (folder, file),
        closing(CallStore(file)) as answer_file,
    ):
        wrapped: dict[LanguageModel, LanguageModel] = {}

        def cached(named: LanguageModel) -> LanguageModel:
            if named not in wrapped:  # one object per model, so that equal prompts in flight are one call
                wrapped[named] = CachedModel(with_meter(named, model.meter, "search"), answer_file, "search")
            return wrapped[named]

        yield EvalModels(
            None if reader_only else model,
            CachedModel(model, answer_file, "answers"),
            None if judging is None else CachedModel(judging, answer_file, "judge"),
            cached,
            folder,
        )


@contextmanager
def _paths(
    to: Path | None, answers: Path | None, meter: UsageMeter, *, builds: bool
) -> Iterator[tuple[Path | None, Path]]:
    """Folder of the indexes, and file of the answers; temporary ones are kept where something was paid for.

    The answers are next to the folder, not inside it: an index is built in an empty folder only.
    """
    if to is not None:
        file = answers or Path(f"{to}.answers.sqlite")
        file.parent.mkdir(parents=True, exist_ok=True)
        yield to, file
        return
    temporary = Path(tempfile.mkdtemp(prefix="sire-eval-"))
    index = temporary / "index"
    file = Path(f"{index}.answers.sqlite")
    words = ["--to", str(index)] if builds else ["--answers", str(file)]
    elsewhere = answers is not None and not builds  # nothing is in the temporary folder
    try:
        yield index if builds else None, answers or file
    except BaseException:
        paid = meter.report().total.output_tokens
        if paid and elsewhere:
            note(f"What the model has answered is kept in {answers}. To go on, run the same command again.", "yellow")
        elif paid:
            note(
                f"What the model has answered is kept. The same command goes on from there with: {shlex.join(words)}",
                "yellow",
            )
        if elsewhere or not paid:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    shutil.rmtree(temporary, ignore_errors=True)
