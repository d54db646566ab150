"""`ReasoningLimits`: limits per question."""

from __future__ import annotations

from dataclasses import dataclass

from sire_core.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ReasoningLimits:
    """Limits per question. None means no limit, and for `max_steps` the strategy's default.

    When a limit is reached, the reasoning ends with a stop reason and keeps what was found. One call of `max_calls`,
    and about as many tokens of `max_tokens` as the next call needs, are reserved for the answer.

    Attributes:
        max_steps: Maximum rounds of reasoning and searching after the first search.
        max_calls: Maximum requests to language models.
        max_tokens: Maximum tokens of prompts and answers.
        timeout: Maximum seconds, including the answer.

    Raises:
        ConfigurationError: A limit is negative, or the timeout is not above 0.
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
