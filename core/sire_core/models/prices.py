"""Prices of models, and ranges of what a stage may cost."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from sire_core.algorithms.pluralize import count
from sire_core.errors import ConfigurationError, IndexMissingError, SireError

if TYPE_CHECKING:
    from sire_core.index import Index

_logger = logging.getLogger(__name__)

_EDITION = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{4}|\d{8}|latest)\Z")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class CostRange:
    """What a stage takes: the ends of the range to expect; the median is their geometric mean."""

    calls: tuple[int, int] = (0, 0)  # Model calls, without repairs and repeated requests
    input_tokens: tuple[int, int] = (0, 0)  # Tokens of the prompts
    output_tokens: tuple[int, int] = (0, 0)  # Tokens of the answers
    price: tuple[float, float] | None = None  # US dollars; None when no price is known

    def __add__(self, other: CostRange) -> CostRange:
        price = None
        if self.price is not None and other.price is not None:
            price = (self.price[0] + other.price[0], self.price[1] + other.price[1])
        return CostRange(
            _sum(self.calls, other.calls),
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            price,
        )

    def priced(self, price: Price | None) -> CostRange:
        """The same range with its price."""
        if price is None:
            return CostRange(self.calls, self.input_tokens, self.output_tokens)
        low, high = (
            (self.input_tokens[side] * price.input + self.output_tokens[side] * price.output) / 1e6 for side in (0, 1)
        )
        return CostRange(self.calls, self.input_tokens, self.output_tokens, (low, high))

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
            text = resources.files("sire_core.models").joinpath("prices.json").read_text(encoding="utf-8")
        else:
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


def _sum(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    return left[0] + right[0], left[1] + right[1]


_warned: WeakSet[Index] = WeakSet()


def warn_of_first_cost(index: Index, documents: int) -> None:
    """Warn once of a first build that calls a language model, whose price nobody has been shown."""
    model = index.language_model
    if model is None or not documents or index in _warned:
        return
    _warned.add(index)
    try:
        index.stats()
    except IndexMissingError:
        _logger.warning(
            "Indexing %d documents calls %s, once or more per passage. To see calls and price first: "
            "Index.estimate(documents). To bound them: limits={'max_calls': ...}.",
            documents,
            model.fingerprint,
        )
    except SireError:  # it is built
        return
