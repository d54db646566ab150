"""Passages: those that a ranking leads to, and the titles and sentences of their texts."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from sire_core.documents.markdown_sections import title_line
from sire_core.text.languages import opens_with_function_word
from sire_core.text.lexicon import FUNCTION_WORDS
from sire_core.text.words import split_sentences, without_link_targets

if TYPE_CHECKING:
    from sire_core.protocols import Ranking
    from sire_core.search.view import PoolView
    from sire_core.types import Hit, PathStep

_LONGEST_SENTENCE = 400
_SHORTEST_SENTENCE = 25
# Ends the name at the start of a text: the verb or bracket that begins its definition.
_DEFINED = re.compile(r"(?<!\s)\s*(?:\(|,|\b(?:is|was|are|were|refers?|also|or|born|has|had)\b)")
_NO_NAME = FUNCTION_WORDS | frozenset(("according", "please", "note", "use", "using", "see", "click", "select"))
_OPENING = 160
_OPENING_WORDS = 9


def titled_sentences(title: str, text: str) -> tuple[str, list[str]]:
    """Split a passage into its title, given or on its first line, and sentences; sentence numbers count these."""
    text = without_link_targets(text)
    title, rest = (title, text) if title else title_line(text)
    return title, passage_sentences(rest)


def passage_sentences(text: str) -> list[str]:
    """Split a text into sentences of 25 to about 400 letters: short ones are joined, long ones cut at line ends."""
    sentences: list[str] = []
    for sentence in split_sentences(text):
        for piece in [sentence] if len(sentence) <= _LONGEST_SENTENCE else _cut(sentence):
            if sentences and min(len(piece), len(sentences[-1])) < _SHORTEST_SENTENCE:
                sentences[-1] = f"{sentences[-1]}\n{piece}"
            else:
                sentences.append(piece)
    return sentences


def _cut(sentence: str) -> list[str]:
    pieces: list[str] = []
    for line in filter(None, map(str.strip, sentence.split("\n"))):
        if pieces and len(pieces[-1]) + len(line) < _LONGEST_SENTENCE:
            pieces[-1] = f"{pieces[-1]}\n{line}"
        else:
            pieces.append(line)
    return pieces


def opening_name(text: str) -> str:
    """The name that a text opens with when its first sentence says what it is (`Aylwin is a 1920 film`); else empty."""
    start = text.lstrip(" \t\r\n\"'\u201c#*-")[:_OPENING]
    match = _DEFINED.search(start)
    name = start[: match.start()].strip(" \"'\u201d") if match else ""
    words = name.split()
    if not words or len(words) > _OPENING_WORDS or "\n" in name or re.search(r"\w{4}\. ", name):
        return ""
    if words[0].lower() in ("the", "a", "an"):
        words = words[1:]
    if not words or words[0].lower() in _NO_NAME or opens_with_function_word(words[0], text):
        return ""
    proper = sum(word[0].isupper() or word[0].isdigit() for word in words)
    first = words[0][0].isupper() or words[0][0].isdigit()
    return " ".join(words) if first and proper >= max(1, (len(words) + 1) // 2) else ""


async def passage_hits(ranking: Ranking, k: int, view: PoolView) -> list[Hit]:
    """The first `k` distinct passages of a ranking; fewer when it leads to no more."""
    ranking = getattr(ranking, "of_passages", ranking)
    reach = k
    while True:
        positions, scores = await ranking.top(reach)
        brought: dict[int, tuple[int, float]] = {}
        for position, score in zip(positions.tolist(), scores.tolist(), strict=True):
            for passage in view.passages_of(position, ranking):
                brought.setdefault(passage, (position, score))
            if len(brought) >= k:
                break
        if len(brought) >= k or len(positions) < reach:
            break
        reach *= 2
    hits: list[Hit] = []
    paths: dict[int, tuple[PathStep, ...]] = {}  # of units that bring passages, each worked out once
    for passage, (position, score) in islice(brought.items(), k):
        if passage != position and position not in paths:
            paths[position] = view.path_through(position, ranking)
        least = hits[-1].score if hits else score
        hits.append(view.hit(passage, min(score, least), ranking, paths.get(position)))
    return hits
