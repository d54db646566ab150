"""The words of a phrase in the form in which phrases are compared."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["phrase_words"]

_WORD = re.compile(r"\w+")


def phrase_words(text: str) -> str:
    """Words in compatibility form, case-folded, joined by single spaces; punctuation and spacing do not matter."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(_WORD.findall(text.casefold()))
