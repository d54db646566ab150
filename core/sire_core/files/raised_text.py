"""Raised and lowered letters and ruby in plain text: `10^6`, `Calder^1`, `3/4`, `4th`, `H2O`, `漢字(かんじ)`.

A converter puts marks around them while it collects a paragraph, and `write_scripts` writes the whole paragraph.
"""

from __future__ import annotations

import re

RAISED, LOWERED, END = "\ufdd0", "\ufdd1", "\ufdd2"
"""Marks around raised and lowered letters; they stand for no character in any text."""
RUBY_BASE, RUBY_READING, RUBY_END = "\ufdd3", "\ufdd4", "\ufdd5"
_RUBY_MARKS = re.compile(f"[{RUBY_BASE}{RUBY_READING}{RUBY_END}]")
_RUBIES = re.compile(f"(?:{RUBY_BASE}[^{RUBY_BASE}{RUBY_END}]*{RUBY_END})+")

_SCRIPT = re.compile(f"([{RAISED}{LOWERED}])([^{RAISED}{LOWERED}{END}]*){END}")
_RAISED_MARKS = re.compile(f"[{RAISED}{LOWERED}{END}]")
_PIECES = re.compile(rf"{RAISED}[^{RAISED}{LOWERED}{END}]*{END}(?:\s*{RAISED}[^{RAISED}{LOWERED}{END}]*{END})+")
_FRACTION = re.compile(
    rf"(\d?)\s?{RAISED}\s*(\d+)\s*{END}\s?[/\u2044\u2215]\s?(?:{LOWERED}\s*(\d+)\s*{END}|(\d+))"
    rf"|(\d?){RAISED}(\d+){END}{LOWERED}(\d+){END}(?![^\W\d_])"
)
_ORDINALS = frozenset("st nd rd th er re ere ère e ème eme me nde de ste te o a os as do da no na".split())
"""Ends of numbers, such as `4th` and `1er`."""
_ABBREVIATIONS = frozenset("r rs e es me mes lle lles gr o os a as te cie s st".split())
"""Ends of abbreviations whose other part is one letter, such as `Mme` and `No`."""
_ONE_CAPITAL = re.compile(r"(?:^|\W)[A-Z]$|(?:^|\W)(?:St|Ste|Cie)$")
_SIMPLE = re.compile(r"[+\-\u2212\u2013\u2032]?[\w.,\u2032]+[+\-\u2212]?|\W")
_CLOSING = ")]}\"'\u2019\u201d.,;:!?%\u00b0\u2032"
_NESTING = 4


def raised(words: str) -> str:
    """Mark raised words."""
    return f"{RAISED}{words}{END}"


def lowered(words: str) -> str:
    """Mark lowered words."""
    return f"{LOWERED}{words}{END}"


def ruby(base: str, reading: str) -> str:
    """Mark letters and how they are read."""
    return f"{RUBY_BASE}{base}{RUBY_READING}{reading}{RUBY_END}" if reading.strip() else base


def write_scripts(text: str) -> str:
    """Write marked letters so that numbers, names and words stay what they are."""
    if RUBY_BASE in text:
        text = _RUBY_MARKS.sub("", _RUBIES.sub(_word_with_reading, text))
    if END not in text and RAISED not in text and LOWERED not in text:
        return text
    text = _PIECES.sub(lambda pieces: raised(_RAISED_MARKS.sub("", pieces[0])), text)
    text = _FRACTION.sub(_fraction, text)
    for _ in range(_NESTING):
        changed = _SCRIPT.sub(_written, text)
        if changed == text:
            break
        text = changed
    return _RAISED_MARKS.sub("", text)


def _word_with_reading(rubies: re.Match[str]) -> str:
    """The letters of a word together, and behind them how it is read."""
    pairs = [pair.partition(RUBY_READING) for pair in rubies[0].replace(RUBY_BASE, "").split(RUBY_END)]
    return f"{''.join(base for base, *_ in pairs)}({''.join(reading.strip() for *_, reading in pairs)})"


def _fraction(match: re.Match[str]) -> str:
    whole, above, below = match[1] or match[5] or "", match[2] or match[6], match[3] or match[4] or match[7]
    return f"{whole} {above}/{below}" if whole else f"{match[0][:1].strip(RAISED + END + above)}{above}/{below}"


def _written(match: re.Match[str]) -> str:
    words = match[2]
    inner = words.strip()
    if match[1] == LOWERED or not inner:
        return words
    before = _RAISED_MARKS.sub("", match.string[max(0, match.start() - 6) : match.start()])
    if _is_apart(before, inner) or _ends_word(before, inner.lower().rstrip(".")):
        return words
    tail = words[len(words.rstrip()) :]
    if before[-1] in ".!?" and inner.isdigit():
        return f" [{inner}]{tail}"  # a note behind a sentence, which must stay the end of one
    return f"^{inner}{tail}" if _SIMPLE.fullmatch(inner) else f"^({inner}){tail}"


def _is_apart(before: str, inner: str) -> bool:
    """True if raised letters stand alone, or are a sign or something in brackets, which do not stick to a word."""
    sticks = before[-1:].isalnum() or (bool(before) and before[-1] in _CLOSING)
    return not sticks or not (inner[0].isalnum() or inner[-1].isalnum())


def _ends_word(before: str, inner: str) -> bool:
    """True if raised letters are the end of a number or an abbreviation."""
    return (before[-1].isdigit() and inner in _ORDINALS) or (
        inner in _ABBREVIATIONS and _ONE_CAPITAL.search(before) is not None
    )
