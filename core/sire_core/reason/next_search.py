"""`NextSearch`: what a reasoning searches for next, which is known before it does: traces open an entry for it then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sire_core.algorithms.text import name_key
from sire_core.reason.steps import SubQuestion

if TYPE_CHECKING:
    from sire_core.reason.steps import ReasoningStep

__all__ = ["NextSearch", "search_key"]


class NextSearch:
    """Follows the steps of a strategy.

    Args:
        question: What is searched for first; empty when the next step is no search.
        searches: Whether sub-questions are searched for.

    Attributes:
        query: What the next step searches for; empty when it is none.
    """

    def __init__(self, question: str, *, searches: bool = True) -> None:
        self.query = question
        self._searches = searches
        self._asked = {search_key(question)}

    def saw(self, step: ReasoningStep) -> None:
        """Note what happened."""
        self.query = ""
        # A question that was asked before ends the reasoning: it is not searched for again.
        if self._searches and isinstance(step, SubQuestion) and search_key(step.text) not in self._asked:
            self.query = step.text
            self._asked.add(search_key(step.text))


def search_key(query: str) -> str:
    """What two wordings of the same search have in common."""
    return name_key(query).rstrip("?.! ")
