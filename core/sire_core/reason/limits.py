"""`ReasoningLimits`: how much one question may cost."""

from __future__ import annotations

from dataclasses import dataclass

from sire_core.errors import ConfigurationError

__all__ = ["ReasoningLimits"]


@dataclass(frozen=True, slots=True)
class ReasoningLimits:
    """Upper bounds of one reasoning. None means no bound, and for `max_steps` the strategy's own.

    A bound ends the reasoning with its stop reason; what was found so far is kept. One call of `max_calls`, and about
    as many tokens of `max_tokens` as the next call needs, are kept back for the answer, so that it can still be given.

    Attributes:
        max_steps: Rounds of thinking and searching after the first search.
        max_calls: Requests to language models.
        max_tokens: Tokens of prompts and answers.
        timeout: Seconds for everything, the answer included.

    Raises:
        ConfigurationError: A bound is negative, or the timeout is not above 0.
    """

    max_steps: int | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_steps", "max_calls", "max_tokens"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ConfigurationError(
                    f"{name} must be a whole number of at least 0, not {value!r}; leave it out for no limit."
                )
        if self.timeout is not None and not self.timeout > 0:
            raise ConfigurationError(f"timeout must be more than 0 seconds, not {self.timeout!r}.")
