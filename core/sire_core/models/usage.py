"""Usage of models by stage, limits on it, and prices."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

from sire_core.errors import ConfigurationError
from sire_core.text.pluralize import count
from sire_core.text.words import count_tokens

# A byte-pair encoding needs about a token per 4.3 letters of English and more than one per letter elsewhere.
_LETTERS_PER_TOKEN = 4.2


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a model will count, for texts in any script."""
    if not text:
        return 0
    ascii_letters = len(text.encode("ascii", "ignore"))
    by_letters = ascii_letters / _LETTERS_PER_TOKEN + (len(text) - ascii_letters)
    return max(count_tokens(text), math.ceil(by_letters))


_MOST_TOKENS = 10_000_000
_FACTOR, _MARGIN = 8, 20_000


def credible_tokens(claimed: object, estimate: int, *, bounded: bool = True) -> int:
    """A number of tokens that somebody claims, if it can be true; else the estimate."""
    if isinstance(claimed, bool) or not isinstance(claimed, int):
        return estimate
    max_tokens = estimate * _FACTOR + _MARGIN if bounded else _MOST_TOKENS
    return claimed if estimate // _FACTOR <= claimed <= max_tokens and (claimed or not estimate) else estimate


@dataclass(frozen=True, slots=True)
class StageUsage:
    """Usage of one stage (`extract`, `sim_summary` …)."""

    calls: int = 0  # Requests sent to a model, repeated ones included
    cached: int = 0  # Answers taken from the store; they cost nothing
    input_tokens: int = 0  # Tokens of the prompts
    output_tokens: int = 0  # Tokens of the answers
    # Tokens that stored answers took when they were asked for, prompts included; nobody pays them now
    stored_tokens: int = 0

    def __add__(self, other: StageUsage) -> StageUsage:
        return StageUsage(*map(sum, zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Usage by stage, in the order in which the stages began."""

    stages: Mapping[str, StageUsage] = field(default_factory=dict)

    @property
    def total(self) -> StageUsage:
        """The sum over the stages."""
        return sum(self.stages.values(), StageUsage())

    def describe(self) -> str:
        """One readable line."""
        parts = [
            f"{name or 'calls'}: {count(used.calls, 'call')}, {used.input_tokens:,} + {used.output_tokens:,} tokens"
            + (f", {count(used.cached, 'answer')} from the store" if used.cached else "")
            for name, used in self.stages.items()
        ]
        return "; ".join(parts) or "no calls"


@dataclass(frozen=True, slots=True)
class UsageLimits:
    """Limits of one build or one session; None means no limit.

    Attributes:
        max_calls: Maximum requests sent to models, including failed requests and retries.
        max_tokens: Maximum tokens of prompts and answers. Before a call, the tokens of its prompt and its maximum
            answer are reserved; unused ones are released.
    """

    max_calls: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_calls", "max_tokens"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ConfigurationError(
                    f"{name} must be a whole number of at least 0, not {value!r}; leave it out for no limit"
                )


_EDITION = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{4}|\d{8}|latest)\Z")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class CostRange:
    """Expected cost of a stage: the ends of its range; the median is their geometric mean."""

    calls: tuple[int, int] = (0, 0)  # Model calls, without repairs and repeated requests
    input_tokens: tuple[int, int] = (0, 0)  # Tokens of the prompts
    output_tokens: tuple[int, int] = (0, 0)  # Tokens of the answers
    price: tuple[float, float] | None = None  # US dollars; None when no price is known

    def __add__(self, other: CostRange) -> CostRange:
        ours, theirs = astuple(self), astuple(other)
        sums = (
            None if None in pair else tuple(map(sum, zip(*pair, strict=True)))
            for pair in zip(ours, theirs, strict=True)
        )
        return CostRange(*sums)  # type: ignore[arg-type]  # only the price may be None

    def priced(self, price: Price | None) -> CostRange:
        """Return the range with its price."""
        if price is None:
            return replace(self, price=None)
        tokens = zip(self.input_tokens, self.output_tokens, strict=True)
        low, high = ((read * price.input + wrote * price.output) / 1e6 for read, wrote in tokens)
        return replace(self, price=(low, high))

    def median(self) -> dict[str, float | None]:
        """The middle of every range, by name: the factors to both ends are the same."""
        price = None if self.price is None else _middle(*self.price)
        counts = {name: round(_middle(*getattr(self, name))) for name in ("calls", "input_tokens", "output_tokens")}
        return {**counts, "price": price}

    def describe(self) -> str:
        """Calls, tokens and price in one line."""
        parts = (self.calls, "call"), (self.input_tokens, "input token"), (self.output_tokens, "output token")
        return ", ".join([*(_range(pair, noun) for pair, noun in parts), _dollars(self.price)])


def _middle(low: float, high: float) -> float:
    return math.sqrt((low + 1) * (high + 1)) - 1


def _range(pair: tuple[int, int], noun: str) -> str:
    low, high = pair
    if low == high:
        return count(high, noun)
    return f"about {count(_rounded(_middle(low, high)), noun)} ({_rounded(low):,} to {_rounded(high):,})"


def _rounded(number: float) -> int:
    """A number with three digits that count."""
    return int(float(f"{number:.3g}"))


def _dollars(price: tuple[float, float] | None) -> str:
    if price is None:
        return "price unknown"
    low, high = price
    if 0 < high < 0.005:
        return "under $0.01"
    if f"{low:.2f}" == f"{high:.2f}":
        return f"${low:.2f}"
    return f"about ${_middle(low, high):.2f} (${low:.2f} to ${high:.2f})"


def load_prices(path: str | Path | None = None) -> dict[str, Price]:
    """Read a price table: `{"prices": {model: [input, output]}}` in US dollars per million tokens."""
    try:
        if path is None:
            path = Path(__file__).with_name("prices.json")
        text = Path(path).read_text(encoding="utf-8")
        return {name: Price(float(pair[0]), float(pair[1])) for name, pair in json.loads(text)["prices"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ConfigurationError(
            f'{path} is no price table ({error!r}); it should look like {{"prices": {{"my-model": [0.5, 1.5]}}}}, '
            "in US dollars per million input and output tokens"
        ) from error


def price_of(model: str, table: Mapping[str, Price]) -> Price | None:
    """The price of a model: that of its name, or of its name without a date or `latest` at the end."""
    parts = [part.split("/")[-1] for part in model.split(":")]
    names = (name for part in parts for name in (part, _EDITION.sub("", part)) if name in table)
    return next((table[name] for name in names), None)
