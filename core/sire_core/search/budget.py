"""Token budgets over an ordered list of texts (ALGORITHMS 0.7)."""

from __future__ import annotations

from collections.abc import Sequence

from sire_core.errors import ConfigurationError

__all__ = ["fit"]


def fit(tokens: Sequence[int], budget: int, policy: str = "skip") -> list[int]:
    """Choose which units fit a budget, in order.

    Args:
        tokens: Length of each unit, best first.
        budget: Tokens that may be spent.
        policy: `break` stops at the first unit that does not fit (RAPTOR's code); `skip` leaves it out and goes on.

    Returns:
        Indices of the chosen units. When not even one fits, the first one: its text has to be truncated by the caller
        rather than lost.

    Raises:
        ConfigurationError: Unknown policy or a budget below one.
    """
    if policy not in ("break", "skip"):
        raise ConfigurationError(f"The budget policy is 'break' or 'skip', not {policy!r}.")
    if budget < 1:
        raise ConfigurationError(f"A token budget must be at least 1, not {budget}.")
    chosen: list[int] = []
    spent = 0
    for i, length in enumerate(tokens):
        if spent + length <= budget:
            chosen.append(i)
            spent += length
        elif policy == "break":
            break
    return chosen or ([0] if tokens else [])
