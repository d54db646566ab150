"""`AnswerText`: the answer's text inside of a reading that is still being written."""

from __future__ import annotations

import json
import re

from sire_core.algorithms.text import normalize_answer
from sire_core.models.plain_answers import without_thinking
from sire_core.reason.citations import tidy_citations, without_citations

__all__ = ["AnswerText"]

_BEGIN = re.compile(r'(?<!\\)"answer"\s*:\s*"')
_STRING = re.compile(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*')
"""What is whole of a JSON string: up to its end, or to an escape that is cut off."""
_ESCAPE = len("\\ud83d")
_INSIDE = frozenset("0123456789,; \t\r\n")
"""What stands between the brackets of a citation."""


class AnswerText:
    """Finds the value of `answer` in the pieces of a JSON text, and tidies it as `cite` does.

    What is given out is the beginning of what `cite` makes of the whole, unless the JSON turns out to be no reading.

    Args:
        hits: How many passages there are to cite.

    Attributes:
        text: What was given out so far.
    """

    def __init__(self, hits: int) -> None:
        self.text = ""
        self._hits = hits
        self._raw = ""  # JSON that was not read yet
        self._begun = self._ended = False
        self._unsure = ""  # read, and may still change its meaning
        self._held = ""  # sure, but nothing that could be an answer
        self._citations: dict[int, None] = {}

    @property
    def citations(self) -> tuple[int, ...]:
        """Numbers of the hits that the text cites."""
        return tuple(self._citations) if self.text else ()

    def add(self, piece: str) -> str:
        """What a piece adds to the text."""
        if self._ended:
            return ""
        self._raw += piece
        if not self._begun and not self._begin():
            return ""
        text = self._unsure + self._read()
        sure = text.rstrip() if self._ended else _settled(text)
        self._unsure = text[len(sure) :]
        tidy, numbers = tidy_citations(sure, self._hits)
        self._citations.update(dict.fromkeys(numbers))
        if not self.text:
            tidy = (self._held + tidy).lstrip()
            self._held = tidy
            # The last word may still become one that is no answer alone: "th" is something, "the" is not.
            settled = tidy if self._ended or self._unsure else _without_last_word(tidy)
            if not normalize_answer(without_citations(settled)):
                return ""
        self.text += tidy
        return tidy

    def _begin(self) -> bool:
        """Look for the beginning of the value."""
        if '"answer"' in self._raw:
            said = without_thinking(self._raw)
            if begin := _BEGIN.search(said):
                space = self._raw[len(self._raw.rstrip()) :]  # which went with the thinking
                self._begun, self._raw = True, said[begin.end() :] + space
        return self._begun

    def _read(self) -> str:
        """What is whole of the JSON string behind what was read before."""
        string = _STRING.match(self._raw)
        assert string is not None  # it matches the empty text, too
        rest = self._raw[string.end() :]
        self._ended = rest.startswith('"')
        try:
            value: str = json.loads(f'"{string.group()}"', strict=False)
        except ValueError:  # an escape that does not exist
            self._ended = True
            return ""
        if not self._ended and "\ud800" <= value[-1:] <= "\udbff":  # the first half of a character
            value, rest = value[:-1], string.group()[-_ESCAPE:] + rest
        self._raw = rest
        return value


def _settled(text: str) -> str:
    """A text without white space that may turn out to be its end, and without a citation that is not closed."""
    sure = text.rstrip()
    opened = sure.rfind("[")
    if opened >= 0 and _INSIDE.issuperset(sure[opened + 1 :]):
        return sure[:opened].rstrip()
    return sure


def _without_last_word(text: str) -> str:
    words = text.split()
    return text[: -len(words[-1])] if words and text.endswith(words[-1]) else text
