"""Texts as words, for finding names at word boundaries."""

from __future__ import annotations

from sire_core.algorithms.text import tokenize

__all__ = ["PaddedWords"]


class PaddedWords(dict[str, str]):
    """Texts as lower-case words with a space on either side of each; each text is cut once."""

    def __missing__(self, text: str) -> str:
        self[text] = padded = f" {' '.join(tokenize(text))} "
        return padded
