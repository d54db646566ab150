"""Ways to write titles, as they are looked for in texts and in stored records."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from sire_core.algorithms.words import visible_text
from sire_core.extraction.titles import WORD

__all__ = ["Wording", "by_piece", "folded"]


class Wording:
    """A way to write a title, as it is looked for in records.

    Args:
        text: The wording.

    Attributes:
        pieces: Its words, the longest first, folded; a text that says it holds them all.
    """

    def __init__(self, text: str) -> None:
        words, written = WORD.findall(_folded(text)), WORD.findall(text)
        # `&` and `and` are one word to the linker, so neither has to be there.
        said = {word for word in words if word not in ("&", "and")}
        by_length = sorted(said, key=lambda word: (-len(word), word)) or [""]
        self.pieces = [word.encode("utf-8", "surrogatepass") for word in by_length]
        single = len(words) == len(written) == 1  # only as it is written, or as a whole name
        self._written = re.compile(_row(written)) if single else None
        self._pattern = re.compile(rf'"\W*{_row(words)}\W*"' if single else _row(words))

    def occurs(self, text: str) -> bool:
        """Whether a record says it."""
        return bool((self._written and self._written.search(visible_text(text))) or self._pattern.search(_folded(text)))


def folded(text: str) -> bytes:
    """A text as words of wordings are looked for in it."""
    return _folded(text).encode("utf-8", "surrogatepass")


def by_piece(wordings: Sequence[str]) -> dict[bytes, list[Wording]]:
    """Wordings by a piece that they share, so that all records are gone through once for each."""
    groups: dict[bytes, list[Wording]] = {}
    parsed = [(found.pieces, text, found) for text in wordings for found in (Wording(text),)]
    for pieces, _, wording in sorted(parsed, key=lambda item: (len(item[0]), *item[:2])):
        shared = next((piece for piece in pieces if piece in groups), pieces[0])
        groups.setdefault(shared, []).append(wording)
    return groups


def _row(words: Sequence[str]) -> str:
    """Pattern of words in a row; around `&` there need not be a space."""
    row = ""
    for place, word in enumerate(words):
        joined = place and "&" not in (word, words[place - 1])
        row += r"\W+" if joined else r"\W*" if place else ""
        row += r"(?:&|\band\b)" if word in ("&", "and") else rf"\b{re.escape(word)}\b"
    return row


def _folded(text: str) -> str:
    """A text as `name_key` compares it, whose words are also those of its lower case."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", visible_text(text)).casefold()
