"""`AnswerText`: the answer's text inside of a reading that is still being written."""

from __future__ import annotations

import json
import re

from sire_core.algorithms.text import normalize_answer
from sire_core.reason.citations import tidy_citations, without_citations
from sire_core.reason.sentences import without_thinking

__all__ = ["AnswerText"]

_BEGIN = re.compile(r'(?<!\\)"answer"\s*:\s*"')
_STRING = re.compile(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*')
"""What is whole of a JSON string: up to its end, or to an escape that is cut off."""
_UNSURE = re.compile(r"\s*(?:\[[\d\s,;]*)?\Z")
"""White space that may turn out to be the end, and citations that are not closed."""


class AnswerText:
    """Finds the value of `answer` in the pieces of a JSON text, and tidies it as `cite` does.

    What is given out is the beginning of what `cite` makes of the whole, unless the JSON turns out to be no reading.

    Args:
        hits: How many passages there are to cite.

    Attributes:
        text: What was given out so far.
        citations: Numbers of the hits that it cites.
    """

    def __init__(self, hits: int) -> None:
        self.text = ""
        self.citations: tuple[int, ...] = ()
        self._hits = hits
        self._came = ""

    def add(self, piece: str) -> str:
        """What a piece adds to the text."""
        self._came += piece
        text, citations = tidy_citations(self._sure(), self._hits)
        if len(text) <= len(self.text) or not normalize_answer(without_citations(text)):
            return ""
        new, self.text, self.citations = text[len(self.text) :], text, citations
        return new

    def _sure(self) -> str:
        """What no further piece can change of the answer."""
        came = without_thinking(self._came)
        begin = _BEGIN.search(came)
        if begin is None:
            return ""
        string = _STRING.match(came, begin.end())
        assert string is not None  # it matches the empty text, too
        try:
            value: str = json.loads(f'"{string.group()}"', strict=False)
        except ValueError:  # an escape that does not exist
            return ""
        if "\ud800" <= value[-1:] <= "\udbff":  # the first half of a character
            value = value[:-1]
        return _UNSURE.sub("", value.lstrip(), count=1)
