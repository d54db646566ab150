"""Five keyphrases per passage by TF-IDF over names and noun-phrase-like runs of words (IIER section 3.1, no model)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sire_core.extraction.lexicon import FUNCTION_WORDS, MONTHS, OPENERS
from sire_core.extraction.statistics import WordStatistics

__all__ = ["keyphrases"]

_RUN = re.compile(r"(?<![\w'\u2019-])[a-z][a-z-]+(?: [a-z][a-z-]+)*(?![\w'\u2019])")
_WORD = re.compile(r"\w+")
_MAX_RUN = 3
_NAME_WEIGHT = 1.5  # names are what passages share; found by reading, not tuned
_STOP = FUNCTION_WORDS | OPENERS | frozenset(MONTHS)


def keyphrases(
    sentences: Sequence[str], names: Iterable[str], title: str, statistics: WordStatistics, limit: int = 5
) -> tuple[str, ...]:
    """The passage's most telling phrases, verbatim, best first; never the title.

    A phrase's score is its frequency times the mean inverse document frequency of its words, names weighted up,
    longer phrases slightly.

    Args:
        sentences: Tidied sentences.
        names: Names as they stand in the passage, with repetition.
        title: Title without its bracketed part.
        statistics: Word counts of the corpus.
        limit: How many.
    """
    title_words = " ".join(_WORD.findall(title.lower()))
    found: dict[str, list[float]] = {}  # words -> [count, weight, order]; `text` keeps the first form
    text: dict[str, str] = {}
    for weight, phrases in ((_NAME_WEIGHT, names), (1.0, _runs(sentences))):
        for phrase in phrases:
            words = " ".join(_WORD.findall(phrase.lower()))
            if not words or words == title_words:
                continue
            if words in found:
                found[words][0] += 1
            else:
                found[words] = [1.0, weight]
                text[words] = phrase
    scored = []
    for order, (words, (count, weight)) in enumerate(found.items()):
        parts = words.split()
        mean = sum(statistics.idf(part) for part in parts) / len(parts)
        scored.append((-weight * mean * count**0.5 * len(parts) ** 0.4, order, words))
    scored.sort()
    return tuple(text[words] for _, _, words in scored[:limit])


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
