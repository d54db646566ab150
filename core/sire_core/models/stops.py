"""Texts that end an answer, for models that do not look at them themselves."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["StopCutter", "cut_at"]


def cut_at(text: str, stop: Sequence[str]) -> str:
    """The text up to the stop text that is complete first: a server that writes on would end there."""
    found = ((text.find(word), len(word)) for word in stop if word)
    ends = [(at + length, at) for at, length in found if at >= 0]
    return text[: min(ends)[1]] if ends else text


class StopCutter:
    """`cut_at` for a text that comes in pieces; what may be the beginning of a stop text waits for the next piece.

    Args:
        stop: Texts that end the answer.
    """

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = [word for word in stop if word]
        self._waiting = ""
        self._ended = False

    def add(self, piece: str) -> str:
        """What is certain of the text so far and was not given yet."""
        if self._ended:
            return ""
        text = self._waiting + piece
        whole = cut_at(text, self._stop)
        self._ended = len(whole) < len(text)
        sure = len(whole) if self._ended else len(text) - self._begun(text)
        self._waiting = whole[sure:]
        return whole[:sure]

    def end(self) -> str:
        """What was still waiting."""
        rest, self._waiting = self._waiting, ""
        return rest

    def _begun(self, text: str) -> int:
        """Letters at the end that a stop text begins with."""
        longest = max(map(len, self._stop), default=1) - 1
        tails = range(min(longest, len(text)), 0, -1)
        return next((n for n in tails if any(word.startswith(text[-n:]) for word in self._stop)), 0)
