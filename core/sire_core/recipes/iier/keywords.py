"""Keywords of a question, and the passages that contain them (IIER, section 3.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sire_core.algorithms.lexicon import FUNCTION_WORDS, OPENERS
from sire_core.algorithms.text import name_key, phrase_words
from sire_core.algorithms.words import signs
from sire_core.extraction.spans import find_spans, tidy
from sire_core.protocols import Prompt
from sire_core.recipes.iier import WORDS_NOTE
from sire_core.recipes.iier.table import PassagePhrases

if TYPE_CHECKING:
    from sire_core.protocols import BoolArray, IntArray, LanguageModel, View
    from sire_core.recipes.iier.graph import ChainGraph

_NO_NODES = np.zeros(0, dtype=np.int64)


class PassageKeywords:
    """Inverted indexes over the titles and texts of the units at `positions`, `[n]`."""

    def __init__(self, view: View, positions: IntArray) -> None:
        self._view = view
        self._positions = positions
        # Without the view, which keeps what it derives: the files of a snapshot are closed with its last reference.
        phrases: PassagePhrases = view.derived("passage keywords", lambda: _stored_phrases(view, positions))
        self._words, self._titles = phrases.words, phrases.titles

    def titled(self, phrase: str) -> IntArray:
        """Nodes with this title, with or without its bracketed part."""
        return self._titles.holders(phrase_words(phrase))

    def with_phrase(self, phrase: str) -> IntArray:
        """Nodes that contain a phrase as whole words, in any case, ascending."""
        words = phrase_words(phrase)
        postings = sorted((self._words.holders(word) for word in set(words.split())), key=len)
        if not postings:
            return _NO_NODES
        nodes = postings[0]
        for others in postings[1:]:
            nodes = nodes[np.isin(nodes, others, assume_unique=True)]
        if " " not in words or not len(nodes):
            return nodes
        texts = self._view.units(self._positions[nodes])
        contains = [f" {words} " in f" {phrase_words(unit.index_text)} " for unit in texts]
        return np.asarray(nodes[np.array(contains, dtype=bool)])


def _stored_phrases(view: View, positions: IntArray) -> PassagePhrases:
    """Words and titles of a pool's passages, as stored or made now."""
    stored = PassagePhrases.from_note(view.note(WORDS_NOTE))
    if stored is None or not np.array_equal(stored.passages, view.ids[positions]):
        stored = PassagePhrases.of(view.units(positions))
    return stored


_INSTRUCTIONS = (
    "The data is a question. List all the topics and keywords it covers, as they stand in the question: names, works, "
    "places, things. Do not answer the question."
)
_MAX_WORDS = 10
"""Maximum words of a phrase."""
MAX_KEYWORDS = 64
"""Maximum keywords of a question: the bits of a coverage set."""


async def ask_keywords(query: str, model: LanguageModel) -> list[str]:
    """Ask a model for the keywords of a question; one call (appendix A.1)."""
    from pydantic import BaseModel, Field

    class QuestionKeywords(BaseModel):
        """The answer of the model."""

        shape: ClassVar[str] = '{"keywords":[""]}'

        keywords: list[str] = Field(default_factory=list)

    answer = await model.complete(Prompt(_INSTRUCTIONS, query), schema=QuestionKeywords, max_tokens=300)
    return [" ".join(keyword.split()) for keyword in answer.parsed.keywords if keyword.strip()]


@dataclass(frozen=True, slots=True)
class KeywordFinder:
    """Finds the allowed passages that contain a keyword.

    Attributes:
        graph: Keywords of the passages.
        words: Their titles and texts.
        allowed: Allowed nodes, `[n]`; None for all.
        strict: Whether only keywords of passages count, as published. Otherwise titles count, too, and texts for
            keywords that no passage has.
    """

    graph: ChainGraph
    words: PassageKeywords
    allowed: BoolArray | None = None
    strict: bool = False

    @classmethod
    def of(cls, view: View, graph: ChainGraph, allowed: BoolArray | None, *, strict: bool) -> KeywordFinder:
        """Return the finder of a pool."""
        return cls(graph, PassageKeywords(view, graph.positions), allowed, strict)

    def holders(self, keyword: str) -> IntArray:
        """Nodes that contain a keyword, ascending."""
        nodes = self._nodes_of_phrase(keyword)
        if len(nodes) or self.strict:
            return nodes
        return self._open(self.words.with_phrase(keyword))

    def keywords(self, query: str) -> list[str]:
        """Find keywords without a model: the longest phrases that are keywords or titles of passages, and other names.

        A single word counts if it has a capital letter; in a question without capitals every content word counts.
        """
        spans = [match.span() for match in _words().finditer(query)]
        lowered = not any(query[start].isupper() for start, _ in spans[1:])
        covered = bytearray(len(query))  # 1 for characters of phrases found so far
        keywords: dict[int, str] = {}
        for start, end in _phrases(spans):
            if covered.find(1, start, end) >= 0:
                continue
            if _is_keyword(query[start:end], lowered=lowered) and len(self._nodes_of_phrase(query[start:end])):
                covered[start:end] = b"\1" * (end - start)
                keywords[start] = query[start:end]
        for name in dict.fromkeys(span.name for span in find_spans(tidy(query))):
            start = query.find(name)
            if start >= 0 and covered.find(1, start, start + len(name)) < 0:
                keywords.setdefault(start, name)
        return list(dict.fromkeys(keywords[start] for start in sorted(keywords)))[:MAX_KEYWORDS]

    def _nodes_of_phrase(self, phrase: str) -> IntArray:
        number = self.graph.keyword_of.get(name_key(phrase))
        nodes = _NO_NODES if number is None else self.graph.nodes_with(number)
        titled = _NO_NODES if self.strict else self.words.titled(phrase)
        if len(titled):
            nodes = np.union1d(nodes, titled) if len(nodes) else titled
        return self._open(nodes)

    def _open(self, nodes: IntArray) -> IntArray:
        return nodes if self.allowed is None else nodes[self.allowed[nodes]]


@cache
def _words() -> re.Pattern[str]:
    return re.compile(rf"\w[\w{signs()}'\u2019.&-]*")


def _phrases(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Start and end of all word sequences, the longest first, then from left to right."""
    for length in range(min(_MAX_WORDS, len(spans)), 0, -1):
        for first in range(len(spans) - length + 1):
            yield spans[first][0], spans[first + length - 1][1]


def _is_keyword(phrase: str, *, lowered: bool) -> bool:
    """Whether a phrase of the index can be a keyword of a question."""
    words = phrase.split()
    common = [word.lower() in FUNCTION_WORDS or word.lower() in OPENERS for word in words]
    if all(common):
        return False
    return len(words) > 1 or lowered or not phrase.islower()
