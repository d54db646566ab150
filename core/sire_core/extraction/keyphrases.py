"""Five keyphrases per passage by TF-IDF over names and noun-phrase-like runs of words (IIER section 3.1, no model)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from sire_core.algorithms.text import phrase_words
from sire_core.extraction.headings import base_title, rarity
from sire_core.extraction.lexicon import FUNCTION_WORDS, MONTHS, OPENERS
from sire_core.types import Chunk

_RUN = re.compile(r"(?<![\w'\u2019-])[a-z][a-z-]+(?: [a-z][a-z-]+)*(?![\w'\u2019])")
_MOST = 5
_MAX_RUN = 3
_NAME_WEIGHT = 1.5  # names are what passages share; found by reading, not tuned
_LENGTH_EXPONENT = 0.4
# Words that open sentences are mostly participles and adverbs, but these are themes.
_THEMES = frozenset(
    (
        *("film", "films", "song", "songs", "album", "albums", "music", "book", "books", "novel", "novels", "story"),
        *("plot", "population", "children", "women", "men", "students", "works", "season", "series", "episode"),
        *("guitar", "vocals", "history", "death", "people"),
    )
)
_STOP = (FUNCTION_WORDS | OPENERS | frozenset(MONTHS)) - _THEMES


def keyphrases(chunk: Chunk, sentences: Sequence[str], names: Iterable[str]) -> tuple[str, ...]:
    """The passage's most telling phrases, verbatim, best first; never the title.

    A phrase's score is the mean rarity of its words times the square root of how often it occurs;
    names weigh more, longer phrases slightly.
    """
    titles = (phrase_words(chunk.title), phrase_words(base_title(chunk.title)))
    counted: dict[str, list[float]] = {}  # words -> [count, weight]
    forms: dict[str, str] = {}
    for weight, phrases in ((_NAME_WEIGHT, names), (1.0, _runs(sentences))):
        for phrase in phrases:
            # A run in lower case is its words; names may be written in many ways.
            words = phrase if weight == 1.0 and "-" not in phrase else phrase_words(phrase)
            if words in counted:
                counted[words][0] += 1
            elif words and words not in titles:
                counted[words] = [1.0, weight]
                forms[words] = phrase
    scored = []
    for order, (words, (count, weight)) in enumerate(counted.items()):
        parts = words.split()
        mean = sum(map(rarity, parts)) / len(parts)
        scored.append((-weight * mean * count**0.5 * len(parts) ** _LENGTH_EXPONENT, order, words))
    scored.sort()
    text = f" {phrase_words(chunk.text)} "  # tidying may have joined what the passage has apart
    return tuple(islice((forms[words] for _, _, words in scored if f" {words} " in text), _MOST))


def _runs(sentences: Sequence[str]) -> Iterable[str]:
    """Runs of one to three lower-case content words; of a longer run the last three, where the head noun is."""
    for sentence in sentences:
        for match in _RUN.finditer(sentence):
            run: list[str] = []
            for word in (*match.group().split(), ""):
                if word and word not in _STOP and len(word) > 2:
                    run.append(word)
                elif run:
                    if len(run) > 1 or (len(run[0]) > 3 and not run[0].endswith(("ed", "ing", "ly"))):
                        yield " ".join(run[-_MAX_RUN:])
                    run = []
