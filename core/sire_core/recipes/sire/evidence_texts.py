"""Sentences, headings and names of passages, and keys of phrases."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.links import without_link_targets
from sire_core.corpus.sections import SEPARATOR, plain_heading
from sire_core.models.lexical_features import split_words

if TYPE_CHECKING:
    from numpy.typing import NDArray


__all__ = [
    "LONGEST_NAME",
    "longer_keys",
    "name_words",
    "passage_headings",
    "phrase_keys",
]

LONGEST_NAME = 8
"""Words of the longest name that is looked for in text."""
_UPPER_MARK = 1
_STEP = np.uint64(0x9E3779B97F4A7C15)
_HEADING_MARKS = re.compile(r"#{1,6}[ \t]+")
_NO_HEADING = frozenset("*|-+[(!{}<>\"'`$/\\=~")
_HEADING_END = frozenset(".:,;)|]}>!")
_LONGEST_HEADING = 90
_HEADING_WORDS = 12


def passage_headings(title: str, text: str) -> list[str]:
    """Headings of a passage: those of its section's path, and lines of its text that stand alone like one.

    Splitters and converters leave headings in the text, often without their marks: a short line between blank lines
    (or first in a longer text) that is no sentence, no item of a list and no code.
    """
    found = title.split(SEPARATOR) if SEPARATOR in title else []
    lines = [line.strip() for line in without_link_targets(text).strip().split("\n")]
    for place, line in enumerate(lines):
        marked = _HEADING_MARKS.match(line)
        bare = line[marked.end() :] if marked else line
        if not 3 < len(bare) <= _LONGEST_HEADING or len(lines) == 1:
            continue
        alone = not place or ((not lines[place - 1]) and (place + 1 == len(lines) or not lines[place + 1]))
        if (marked or (alone and _could_be_heading(bare))) and (plain := plain_heading(bare)):
            found.append(plain)
    return list(dict.fromkeys(found))


def _could_be_heading(line: str) -> bool:
    numbered = line[0].isdigit() and line.split(None, 1)[0].endswith((".", ")"))
    apart = line[0] not in _NO_HEADING and line[-1] not in _HEADING_END
    return apart and not numbered and len(line.split()) <= _HEADING_WORDS


def name_words(name: str) -> list[str]:
    """Words of a name or a question, as names are compared: lower case, `&` as `and`."""
    return split_words(name.replace("&", " and "))


def longer_keys(keys: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Keys of phrases with one more word each, `[len(words)]`.

    Args:
        keys: Of phrases, one for each place where they begin; zeros in front of the first word.
        words: Hashes of the words that come next, for the same places; those at the end have none.
    """
    found = (keys[: len(words)] ^ words) * _STEP  # wraps around at 64 bits, as wanted
    return np.asarray(found ^ (found >> np.uint64(29)), dtype=np.uint64)


def phrase_keys(keys: NDArray[np.uint64], longest: int) -> list[NDArray[np.uint64]]:
    """Keys of consecutive words: first of every word, then of every two, and so on, `[len(keys) - number + 1]` each.

    Args:
        keys: Hashes of the words.
        longest: Words of the longest phrases.
    """
    found = [np.zeros(len(keys), dtype=np.uint64)]
    for offset in range(min(longest, len(keys))):
        found.append(longer_keys(found[-1], keys[offset:]))
    return found[1:]
