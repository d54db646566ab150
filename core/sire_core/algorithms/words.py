"""What a word is, in every script: letters with their combining signs, and what is invisible inside of it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

_BREAKS = "\u00ad\u200b\u2060\ufeff"  # where a line may break, or must not
_INVISIBLE = rf"{_BREAKS}\u034f\u061c\u200c-\u200f\u202a-\u202e\u2061-\u2064\u2066-\u2069\ufe00-\ufe0f"
# Arabic and Hebrew are written with and without: vowels, cantillation, the stroke that widens a word.
_POINTS = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0898-\u089f\u08ca-\u08e1\u08e3-\u08ff"
)
_SOUTH_EAST = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_EAST = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
UNSPACED = _SOUTH_EAST + _EAST
"""Body of a character class: scripts written without spaces between words, Thai to Khmer, kana, Han."""
# All combining signs lie in these blocks; the others hold a million characters.
_BLOCKS = ((0x300, 0x3100), (0xA600, 0xAC00), (0xFB00, 0xFF00), (0x10000, 0x12000), (0x16000, 0x1F000))
_MOST_SIGNS = 8
"""Signs on one letter; more are tokens by themselves, so that no token is of any length."""

_RARE = re.compile("[\U00010000-\U0010ffff]")
_RARE_RANGE = re.compile("[\U00010000-\U0010ffff]-[\U00010000-\U0010ffff]")
_PLAIN_WORD = re.compile(r"\w+")
_BREAK = re.compile(f"[{_BREAKS}]+")
_UNREAD = re.compile(f"[{_INVISIBLE}{_POINTS}]+")
# Persian writes endings behind one: `books` is `book`, this and the ending of plurals.
_GAP = re.compile("(?<=[\u0620-\u06ff])\u200c")
LINK_TARGET = r"\]\([^()\s]{0,2000}(?:\([^()\s]{0,500}\)[^()\s]{0,500}){0,4}(?:[ \t]+\"[^\"\n]{0,300}\")?\)"
"""Pattern of the address of a Markdown link or image, from the closing bracket of its text on."""
_TARGET = re.compile(LINK_TARGET)


@cache
def signs() -> str:
    """Body of a character class: what goes on with the word that it stands in, but begins none."""
    blocks = (map(chr, range(*block)) for block in _BLOCKS)
    found = [sign for block in blocks for sign in block if unicodedata.category(sign)[0] == "M"]
    ranges = [f"{first}-{last}" for first, last in _runs(found)]
    return "".join([*ranges, _INVISIBLE, "\U000e0100-\U000e01ef"])


def _runs(letters: Sequence[str]) -> list[tuple[str, str]]:
    """First and last of letters that follow each other."""
    starts = [i for i, letter in enumerate(letters) if not i or ord(letter) != ord(letters[i - 1]) + 1]
    return [(letters[start], letters[stop - 1]) for start, stop in pairwise([*starts, len(letters)])]


@cache
def word_pattern() -> re.Pattern[str]:
    """The pattern of a word as it is written; making it takes longer than importing the package should."""
    # Most words end before a space: it is not looked up among the signs, whose rarer blocks are compared one by one.
    return re.compile(rf"\w+(?:(?![\0-\xac])[{signs()}]+\w*)*")


@cache
def _special() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Signs and scripts without spaces: in the basic plane, where a letter is looked up in one step, and in all."""
    every = signs() + UNSPACED
    return re.compile(f"[{_RARE_RANGE.sub('', every)}]"), re.compile(f"[{every}]")


def is_plain(text: str, start: int = 0, end: int | None = None) -> bool:
    r"""Whether `\w+` finds the words of a part of a text: it has no signs, and no script without spaces."""
    if text.isascii():
        return True
    end = len(text) if end is None else end
    basic, every = _special()
    if basic.search(text, start, end):
        return False
    return not _RARE.search(text, start, end) or every.search(text, start, end) is None


def visible_text(text: str) -> str:
    """A text without soft hyphens and other places where a line may break."""
    return text if text.isascii() else _BREAK.sub("", text)


def bare_text(text: str) -> str:
    """A text as words are compared: composed, without what is invisible and without points of Arabic and Hebrew."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text)
    return _UNREAD.sub("", _GAP.sub(" ", text) if "\u200c" in text else text)


def find_words(text: str) -> list[str]:
    """The words of a text in order, see `bare_text`; upper and lower case stay."""
    if text.isascii():
        return _PLAIN_WORD.findall(text)
    return word_pattern().findall(bare_text(text))


@cache
def token_pattern(longest: int = 0) -> re.Pattern[str]:
    """The pattern of a token: a word or a single mark; what it skips is space."""
    on = rf"[{signs()}]{{0,{_MOST_SIGNS}}}"
    letter = rf"[^\W{UNSPACED}]"
    word = rf"(?:{letter}{on}){{1,{longest}}}" if longest else rf"{letter}+(?:[{signs()}]+{letter}*)*"
    return re.compile(rf"[{_EAST}]{on}|(?:[{_SOUTH_EAST}]{on}){{1,3}}|{word}|[^\w\s]{on}")


def without_link_targets(text: str) -> str:
    """Return a text with `[words]` for every `[words](address)`: addresses are no words of a passage."""
    return _TARGET.sub("]", text) if "](" in text else text
