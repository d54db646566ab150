"""The part of a text that shows a person why it answers a question."""

from __future__ import annotations

import re
from collections import Counter

from sire_core.algorithms.links import without_link_targets
from sire_core.algorithms.text import split_sentences
from sire_core.algorithms.words import find_words

_MARKS = re.compile(r"^[ \t]*(?:#{1,6}|[-*+>]|\|)[ \t]+|[`*|]+|^[ \t]*(?:```\w*|[-=:| ]+)$", re.MULTILINE)
_STEM = 6
_SHORTEST = 4


def snippet(text: str, question: str, length: int = 240) -> str:
    """The sentences of a text around the one that shares most with a question, on one line, without marks of Markdown.

    Args:
        text: The text.
        question: What was asked; with nothing in common, the text's beginning is taken.
        length: Characters that it may have; `...` stands where something is left out.
    """
    lines = [part for part in without_link_targets(text).split("\n\n") if part.strip()]
    sentences = [" ".join(_MARKS.sub(" ", s).split()) for part in lines for s in split_sentences(part)]
    sentences = [sentence for sentence in sentences if any(map(str.isalnum, sentence))]
    if not sentences:
        return ""
    asked, stems = _stems(question), [_stems(sentence) for sentence in sentences]
    counts = Counter(stem for found in stems for stem in found)  # what every sentence has tells none apart
    shared = [sum(len(stem) / counts[stem] for stem in asked & found) for found in stems]
    first = last = max(range(len(sentences)), key=shared.__getitem__)
    room = length - len(sentences[first])
    while last + 1 < len(sentences) and len(sentences[last + 1]) < room:
        last += 1
        room -= len(sentences[last]) + 1
    while first and len(sentences[first - 1]) < room:
        first -= 1
        room -= len(sentences[first]) + 1
    shown = " ".join(sentences[first : last + 1])
    cut = len(shown) > length
    if cut:
        shown = _around(shown, asked, length)
    before = "... " if first and not shown.startswith("...") else ""
    return f"{before}{shown}{' ...' if (cut or last + 1 < len(sentences)) and not shown.endswith('...') else ''}"


def _stems(text: str) -> set[str]:
    """Beginnings of the longer words of a text, and its names and numbers."""
    return {word.lower()[:_STEM] for word in find_words(text) if len(word) >= _SHORTEST or not word.islower()}


def _around(sentence: str, stems: set[str], length: int) -> str:
    """Words of a long sentence, beginning a little before the first that is asked for."""
    words = sentence.split()
    hit = next((n for n, word in enumerate(words) if stems & _stems(word)), 0)
    start = max(0, hit - 6)
    shown = " ".join(words[start:])
    shown = shown if len(shown) <= length else f"{shown[:length].rsplit(' ', 1)[0]} ..."
    return f"... {shown}" if start else shown
