"""When a failed request is sent again, and after how long."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from sire_core.errors import ConfigurationError

__all__ = ["RetryPolicy", "retry_after"]

_NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with jitter.

    Attributes:
        max_retries: Repetitions after the first try.
        base: Seconds before the first repetition, doubled every time.
        cap: Longest wait of our own.
        max_retry_after: Longest wait that a server may ask for; beyond it the call fails.
        seed: Makes the jitter repeatable.
    """

    max_retries: int = 6
    base: float = 0.5
    cap: float = 30.0
    max_retry_after: float = 300.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.max_retries < 0 or self.base < 0 or self.cap < 0:
            raise ConfigurationError("max_retries, base and cap of a RetryPolicy must be 0 or more")

    def jitter(self) -> random.Random:
        """A source of jitter for one client."""
        return random.Random(self.seed)  # noqa: S311 - spreads requests over time, hides nothing

    def delay(self, attempt: int, asked: float | None, source: random.Random) -> float:
        """Seconds before repetition number `attempt` (0-based).

        Args:
            attempt: How many repetitions came before.
            asked: Seconds that the server asked for, or None.
            source: Where the jitter comes from.
        """
        own = min(self.cap, self.base * 2.0**attempt) * source.uniform(0.5, 1.0)
        if asked is None:
            return own
        # A little later than asked, and not all at the same moment.
        return asked + min(own, 0.1 * asked + 0.05)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that a response asks to wait: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date.

    Args:
        headers: Response headers with case-insensitive or lower-case keys.
        now: Unix time, for tests.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(milliseconds):
        return float(milliseconds) / 1000.0
    value = headers.get("retry-after", "").strip()
    if _NUMBER.fullmatch(value):
        return float(value)
    if not value:
        return None
    try:
        moment = parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, moment - (time.time() if now is None else now))
