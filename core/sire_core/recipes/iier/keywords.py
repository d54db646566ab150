"""Keywords of a question, and the passages that hold them (IIER section 3.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sire_core.algorithms.text import name_key, phrase_words
from sire_core.algorithms.words import signs
from sire_core.extraction.lexicon import FUNCTION_WORDS, OPENERS
from sire_core.extraction.spans import find_spans, tidy
from sire_core.protocols import Prompt
from sire_core.recipes.iier import WORDS_NOTE
from sire_core.recipes.iier.table import PassagePhrases

if TYPE_CHECKING:
    from sire_core.protocols import BoolArray, IntArray, LanguageModel, View
    from sire_core.recipes.iier.graph import ChainGraph

__all__ = ["KeywordFinder", "PassageKeywords", "ask_keywords"]

_NOBODY = np.zeros(0, dtype=np.int64)


class PassageKeywords:
    """Words of the titles and texts of some units; texts themselves are read again when a phrase is looked for.

    Args:
        view: The pool.
        positions: Units that are looked at, `[n]`.
    """

    def __init__(self, view: View, positions: IntArray) -> None:
        self._view = view
        self._positions = positions
        stored = PassagePhrases.from_note(view.note(WORDS_NOTE))
        if stored is None or not np.array_equal(stored.passages, view.ids[positions]):
            stored = PassagePhrases.of(view.units(positions))
        self._words, self._titles = stored.words, stored.titles

    @classmethod
    def of(cls, view: View, positions: IntArray) -> PassageKeywords:
        """Made once per snapshot."""
        words: PassageKeywords = view.derived("passage keywords", lambda: cls(view, positions))
        return words

    def titled(self, phrase: str) -> IntArray:
        """Places in `positions` of the units with this title; its bracketed part may be left out."""
        return self._titles.holders(phrase_words(phrase))

    def with_phrase(self, phrase: str) -> IntArray:
        """Places in `positions` of the units that contain a phrase as whole words, ascending; case does not matter."""
        words = phrase_words(phrase)
        postings = sorted((self._words.holders(word) for word in set(words.split())), key=len)
        if not postings:
            return _NOBODY
        nodes = postings[0]
        for others in postings[1:]:
            nodes = nodes[np.isin(nodes, others, assume_unique=True)]
        if " " not in words or not len(nodes):
            return nodes
        texts = self._view.units(self._positions[nodes])
        holds = [f" {words} " in f" {phrase_words(unit.index_text)} " for unit in texts]
        return np.asarray(nodes[np.array(holds, dtype=bool)])


_INSTRUCTIONS = (
    "The data is a question. List all the topics and keywords it covers, as they stand in the question: names, works, "
    "places, things. Do not answer the question."
)
_LONGEST = 10
"""Words of the longest known phrase that is looked for."""
_NOBODY = np.zeros(0, dtype=np.int64)
MAX_KEYWORDS = 64
"""As many as the bits of a coverage set."""


async def ask_keywords(query: str, model: LanguageModel) -> list[str]:
    """Ask a model for the keywords of a question, as many as it finds; one call (paper, appendix A.1)."""
    from pydantic import BaseModel, Field

    class QuestionKeywords(BaseModel):
        """What the question is about."""

        shape: ClassVar[str] = '{"keywords":[""]}'

        keywords: list[str] = Field(default_factory=list)

    answer = await model.complete(Prompt(_INSTRUCTIONS, query), schema=QuestionKeywords, max_tokens=300)
    found: list[str] = answer.parsed.keywords
    return [" ".join(keyword.split()) for keyword in found if keyword.strip()]


@dataclass(frozen=True, slots=True)
class KeywordFinder:
    """Finds the passages that hold a keyword, among the allowed ones.

    Attributes:
        graph: Keywords of the passages.
        words: Their titles and texts.
        allowed: Nodes that may be found, `[n]`; None for all.
        strict: Whether only keywords count (as published). Otherwise a passage holds its title, too, and a
            keyword that no passage holds is looked for in the texts.
    """

    graph: ChainGraph
    words: PassageKeywords
    allowed: BoolArray | None = None
    strict: bool = False

    @classmethod
    def of(cls, view: View, graph: ChainGraph, allowed: BoolArray | None, *, strict: bool) -> KeywordFinder:
        """The finder of a pool."""
        return cls(graph, PassageKeywords.of(view, graph.positions), allowed, strict)

    def holders(self, keyword: str) -> IntArray:
        """Nodes that hold a keyword, ascending."""
        nodes = self._known(keyword)
        if len(nodes) or self.strict:
            return nodes
        return self._open(self.words.with_phrase(keyword))

    def keywords(self, query: str) -> list[str]:
        """Keywords of a question without a model: the longest known phrases it contains, and other names.

        Known are keywords and titles of allowed passages. A single word counts when it is a name, that is when it has
        a capital letter; in a question without any, every word counts that means something.
        """
        places = [match.span() for match in _words().finditer(query)]
        lowered = not any(query[start].isupper() for start, _ in places[1:])
        taken = bytearray(len(query))  # 1 where a character belongs to a phrase already
        found: dict[int, str] = {}
        for start, end in _phrases(places):
            if taken.find(1, start, end) >= 0:
                continue
            if _telling(query[start:end], lowered=lowered) and len(self._known(query[start:end])):
                taken[start:end] = b"\1" * (end - start)
                found[start] = query[start:end]
        for name in dict.fromkeys(span.name for span in find_spans(tidy(query))):
            start = query.find(name)
            if start >= 0 and taken.find(1, start, start + len(name)) < 0:
                found.setdefault(start, name)
        return list(dict.fromkeys(found[start] for start in sorted(found)))[:MAX_KEYWORDS]

    def _known(self, phrase: str) -> IntArray:
        number = self.graph.keyword_of.get(name_key(phrase))
        nodes = _NOBODY if number is None else self.graph.nodes_with(number)
        titled = _NOBODY if self.strict else self.words.titled(phrase)
        if len(titled):
            nodes = np.union1d(nodes, titled) if len(nodes) else titled
        return self._open(nodes)

    def _open(self, nodes: IntArray) -> IntArray:
        return nodes if self.allowed is None else nodes[self.allowed[nodes]]


@cache
def _words() -> re.Pattern[str]:
    return re.compile(rf"\w[\w{signs()}'\u2019.&-]*")


def _phrases(places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Start and end of every run of words, the longest first, then from left to right."""
    for length in range(min(_LONGEST, len(places)), 0, -1):
        for first in range(len(places) - length + 1):
            yield places[first][0], places[first + length - 1][1]


def _telling(phrase: str, *, lowered: bool) -> bool:
    """Whether a known phrase says what a question is about."""
    words = phrase.split()
    common = [word.lower() in FUNCTION_WORDS or word.lower() in OPENERS for word in words]
    if all(common):
        return False
    return len(words) > 1 or lowered or not phrase.islower()
