"""What a build will cost, before anything is spent (ALGORITHMS 12)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from sire_core.errors import ConfigurationError
from sire_core.extraction.model import ModelExtractor
from sire_core.models.prompt_format import render
from sire_core.models.structured import strict_json_schema
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import ChunkInContext

__all__ = ["CostRange", "Price", "estimate_extraction", "estimate_summaries", "load_prices", "price_of"]

# Shortest answers: an empty record, a one-word summary.
_LEAST_RECORD = 15
_LEAST_SUMMARY = 2
_SUMMARY_SLACK = 1.5
# Prompts of the later steps of native extraction, in prompts of the first: they hold its answer.
_LATER_STEPS = (0.5, 2.0)


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class CostRange:
    """Lowest and highest of what a stage may take.

    Attributes:
        calls: Model calls, without repairs and repeated requests.
        input_tokens: Tokens of the prompts.
        output_tokens: Tokens of the answers.
        price: US dollars; None when no price is known.
    """

    calls: tuple[int, int] = (0, 0)
    input_tokens: tuple[int, int] = (0, 0)
    output_tokens: tuple[int, int] = (0, 0)
    price: tuple[float, float] | None = None

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


def load_prices(path: str | Path | None = None) -> dict[str, Price]:
    """Read a price table: `{"prices": {model: [input, output]}}` in US dollars per million tokens.

    Args:
        path: The user's own table; None for the packaged one.

    Raises:
        ConfigurationError: The file cannot be read as a price table.
    """
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
    """The price of a model: the longest name of the table that the model's name begins with.

    Args:
        model: A model's name or a fingerprint that holds it between colons.
        table: See `load_prices`.
    """
    names = [name for part in model.split(":") for name in table if part.split("/")[-1].startswith(name)]
    return table[max(names, key=len)] if names else None


def estimate_extraction(
    items: Sequence[ChunkInContext],
    extractor: ModelExtractor,
    *,
    known: Collection[str] = (),
    price: Price | None = None,
    count: Callable[[str], int] = estimate_tokens,
) -> CostRange:
    """Calls and prompt tokens of extraction: exact in calls, and in prompt tokens as far as `count` is.

    Prompt tokens range from a server that does not count the JSON schema to one that does. Of native extraction only
    the first step is exact; the later ones hold its answer, and may be half or twice as long.

    Args:
        items: The chunks of the corpus, each with the text before it. Equal passages are asked once.
        extractor: Whose prompts are counted.
        known: Content hashes that have a record already.
        price: Price of the extractor's model.
        count: A tokenizer's count.
    """
    from sire_core.extraction.answers import ExtractionAnswer

    todo = {item.chunk.hash: item for item in items if item.chunk.hash not in known and item.chunk.text.strip()}
    schema = count(json.dumps(strict_json_schema(ExtractionAnswer), separators=(",", ":")))
    fixed: dict[str, int] = {}
    read = wrote = 0
    for item in todo.values():
        rendered = render(extractor.prompt(item))
        read += fixed.setdefault(rendered.system, count(rendered.system)) + count(rendered.user)
        wrote += extractor.answer_room(item)
    calls = len(todo) * extractor.calls_per_chunk
    later = (extractor.calls_per_chunk - 1) * read
    cost = CostRange(
        (calls, calls),
        (read + round(_LATER_STEPS[0] * later), read + round(_LATER_STEPS[1] * later) + schema * calls),
        (_LEAST_RECORD * calls, wrote * extractor.calls_per_chunk),
    )
    return cost.priced(price)


def estimate_summaries(
    clusters: tuple[int, int],
    children_tokens: tuple[int, int],
    *,
    max_tokens: int,
    price: Price | None = None,
) -> CostRange:
    """Cost of writing summaries.

    Args:
        clusters: Fewest and most clusters, all levels together.
        children_tokens: Fewest and most tokens of all their members together.
        max_tokens: Length of a summary.
        price: Price of the model.
    """
    instructions = 120
    low, high = clusters
    return CostRange(
        (low, high),
        (low * 20 + children_tokens[0], high * instructions + children_tokens[1]),
        (low * _LEAST_SUMMARY, round(high * (max_tokens * _SUMMARY_SLACK + 20))),
    ).priced(price)


def _sum(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    return left[0] + right[0], left[1] + right[1]
