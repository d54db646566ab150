"""What the words of a name say: whether they name anything, which stand for it alone, what abbreviates them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sire_core.extraction.headings import CAPTIONS, acts, is_everyday, is_numbered
from sire_core.extraction.lexicon import FUNCTION_WORDS, HONORIFICS, NAME_TAILS, VAGUE_NOUNS, VAGUE_WORDS

__all__ = ["PRESSED", "instructs", "is_acronym", "is_numeral", "name_parts", "says_nothing", "without_honorifics"]

_TITLE_MODIFIERS = frozenset(("grand", "crown", "high", "prime", "vice", "deputy", "chief"))
_CELLS = frozenset(
    "get post put delete patch head x n/a tbd todo faq faqs id ids yes no true false null ok none na".split()
)
PRESSED = frozenset(
    "click select use see choose enter ensure specify press tap go run launch confirm expand "
    "provision configure create deploy enable add manage update delete install".split()
)
_MADE_UP = re.compile(
    r"(?=[0-9A-Fa-f-]{16})[0-9A-Fa-f-]*\d|(?=\w{12})(?:[A-Z]*\d){3}|\d[\w-]*$|\W|(?:GET|POST|PUT|DELETE|PATCH)/"
)
_COMPOUND = re.compile(
    r"[\w.]+-(?:branded|provided|based|enabled|managed|only|specific|compatible|style|like|related|defined|supported|encoded?)$"
)
_LIST = 4  # longer rows of capitalised everyday words are headings and rows of tables


def instructs(words: Sequence[str]) -> bool:
    """Whether capitalised words begin with what is done to a button, or say nothing."""
    return words[0].lower() in PRESSED or says_nothing(words)


def says_nothing(words: Sequence[str]) -> bool:
    """Whether capitalised words are headings, labels and instructions rather than a name.

    One everyday word (`Action`), a cell of a table (`N/A`, `X X`), what is numbered (`Step 3`), an instruction
    (`Get Started`), capitals of a query language (`INNER JOIN`) and labels such as `Account Usage Information`.
    """
    lower = [word.lower().strip(".,:'\u2019") for word in words]
    if len(words) == 1:
        return (
            is_everyday(lower[0]) or lower[0] in _CELLS or bool(_COMPOUND.match(words[0]) or _MADE_UP.match(words[0]))
        )
    if (
        lower[0] in _CELLS
        or lower[0] in CAPTIONS
        or _MADE_UP.match(words[0])
        or "n/a" in lower
        or len(set(lower)) == 1
        or is_numbered(" ".join(words))
    ):
        return True
    everyday = [is_everyday(word) or word.isdigit() for word in lower]
    if not all(everyday):
        return len(words) > _LIST and sum(everyday) * 2 > len(words) and all(map(_capital, words))
    return (
        acts(lower[0])
        or lower[0] in VAGUE_WORDS
        or (len(words) == 2 and lower[0] in VAGUE_NOUNS and lower[1].isdigit())
        or lower[-1] in VAGUE_NOUNS
        or all(word.isupper() for word in words)
        or (len(words) > _LIST and all(map(_capital, words)))
    )


def _capital(word: str) -> bool:
    return not word[:1].islower()


def name_parts(name: str) -> tuple[str, ...]:
    """Words that stand for a person alone: first and last name; for `Adolph II of the Marck` only `Adolph`."""
    words = without_honorifics(name).split()
    for index, word in enumerate(words):
        if word in ("of", "the") or (index and is_numeral(word)):
            return (words[0],) if index and len(words[0]) > 2 else ()
    words = [word for word in words if word.rstrip(".") not in ("Jr", "Sr") and not word.startswith('"')]
    if len(words) < 2 or words[-1].lower() in NAME_TAILS or words[0].lower() in ("new", "san", "los", "saint", "st."):
        return ()
    return tuple(word for word in (words[0], words[-1]) if len(word.strip(".")) > 2)


def is_numeral(word: str) -> bool:
    """Whether a word is a Roman numeral."""
    return len(word) < 6 and not word.strip("IVX")


def without_honorifics(name: str) -> str:
    """`Emperor Lothair I` becomes `Lothair I`; a single word keeps its rank (`King Michael`)."""
    words = name.split()
    while len(words) > 2 and words[0].lower().rstrip(".") in HONORIFICS and words[1][0].isupper():
        if words[0].lower() in _TITLE_MODIFIERS and words[1].lower() not in HONORIFICS:
            break
        del words[0]
    return " ".join(words)


def is_acronym(short: str, name: str) -> bool:
    """Whether letters abbreviate a name."""
    words = name.replace("-", " ").split()
    capitals = "".join(word[0] for word in words if word[0].isupper())
    initials = "".join(word[0] for word in words if word.lower() not in FUNCTION_WORDS).upper()
    letters = short.replace(".", "")
    return 1 < len(short) <= 8 and letters.upper() == letters and (capitals.startswith(short[0]) or initials == letters)
