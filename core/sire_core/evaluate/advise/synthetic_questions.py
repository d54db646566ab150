"""Questions that need two passages, made from a corpus without a model: how people would ask, in telegram style."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.extraction.lexicon import FUNCTION_WORDS
from sire_core.search.passage_text import passage_sentences

if TYPE_CHECKING:
    from sire_core.evaluate.advise.corpus_stats import CorpusStats
    from sire_core.protocols import FloatArray

__all__ = ["SyntheticQuestion", "synthetic_questions"]

_WORD = re.compile(r"[^\W_]+(?:[-_.'][^\W_]+)*")
_ADDRESS = re.compile(r"\w+://\S+|www\.\S+")
_NEAR = 4
"""Words beside a name that say how it is connected."""
_TELLING = 0.05
"""Share of the passages above which a word says nothing of one. People rarely ask in the rarest words of a passage."""
_LINKED = 3.0
"""How much more questions ask over names than passages name each other: people ask about what is connected."""
_COMPARED = 0.25
"""Share of the questions between two subjects, where there are subjects."""


@dataclass(frozen=True, slots=True)
class SyntheticQuestion:
    """A question and the passages that it needs.

    Attributes:
        question: The question.
        passages: Ids of the two passages.
        kind: `bridge`, over a name that the question leaves out; `comparison` of two subjects; `topic`, two passages
            on one matter, or two sections of one document.
    """

    question: str
    passages: tuple[str, str]
    kind: str


def synthetic_questions(look: CorpusStats, vectors: FloatArray, n: int, seed: int = 0) -> list[SyntheticQuestion]:
    """Make questions in the proportions in which the corpus lends itself to them.

    Args:
        look: The corpus.
        vectors: Unit-length vectors of its passages, `[passages, dimension]`.
        n: How many; fewer where the corpus holds fewer connections.
        seed: Of every choice.
    """
    rng = np.random.default_rng(seed)
    maker = _Maker(look, vectors, rng)
    bridges = round(n * min(1.0, _LINKED * look.linked))
    compared = round(n * _COMPARED * look.subjects)
    found = [
        *_first(maker.bridge, rng.permutation(len(look.links)), bridges - round(bridges * _COMPARED)),
        *_first(maker.comparison, rng.permutation(look.passages), compared),
    ]
    found += _first(maker.topic, rng.permutation(look.passages), n - len(found))
    return found


def _first(make: Callable[[int], SyntheticQuestion | None], order: Iterable[int], n: int) -> list[SyntheticQuestion]:
    found: list[SyntheticQuestion] = []
    for place in order:
        if len(found) >= n:
            break
        question = make(int(place))
        if question is not None:
            found.append(question)
    return found


class _Maker:
    def __init__(self, look: CorpusStats, vectors: FloatArray, rng: np.random.Generator) -> None:
        self._look = look
        self._vectors = vectors
        self._rng = rng
        self._words = [_content(unit.text) for unit in look.units]
        self._frequency = Counter(word for words in self._words for word in set(words))

    def bridge(self, place: int) -> SyntheticQuestion | None:
        """From a named passage to one that the question does not name, over a sentence of the first."""
        link = self._look.links[place]
        own, name = self._look.about[link.passage], link.name
        sentence = next((s for s in passage_sentences(self._look.units[link.passage].text) if name in s), "")
        before, _, after = sentence.partition(name)
        left = _without(before, own, name)
        near = [*left[-_NEAR:], *_without(after, own, name)[: max(0, _NEAR - len(left))]]
        asked = self._asked(link.subject, own, name)
        if not near or not asked:
            return None
        start = own or " ".join(self._particular(link.passage, 2))
        return self._made(f"{' '.join(asked)}: {start} {' '.join(near)}?", link.passage, link.subject, "bridge")

    def comparison(self, place: int) -> SyntheticQuestion | None:
        """Two subjects that are alike, and a word that both passages have."""
        other = self._alike(place)
        names = self._look.about[place], self._look.about[other]
        if other == place or not all(names) or names[0] == names[1]:
            return None
        taken = _content(" ".join(names))
        shared = [word for word in self._words[place] if word in set(self._words[other]) and word not in taken]
        common = max(shared, key=lambda word: self._frequency[word], default="")
        if not common:
            return None
        return self._made(f"Which {common}, {names[0]} or {names[1]}?", place, other, "comparison")

    def topic(self, place: int) -> SyntheticQuestion | None:
        """Two passages on one matter: particular words of both."""
        other = self._alike(place)
        if other == place:
            return None
        shared = set(self._words[place]) & set(self._words[other])
        both = self._particular(place, 2, lambda word: word in shared)
        apart = [self._particular(p, 1, lambda word: word not in shared) for p in (place, other)]
        if not both or not all(apart):
            return None
        return self._made(f"{' '.join([*both, *apart[0], *apart[1]])}?", place, other, "topic")

    def _alike(self, place: int) -> int:
        """Another section of the document, where there is one, else one of the nearest passages."""
        near = self._vectors @ self._vectors[place]
        sources = self._look.sources
        same = [p for p in np.flatnonzero(sources == sources[place]).tolist() if p != place]
        candidates = same or [p for p in np.argsort(-near, kind="stable")[:5].tolist() if p != place]
        return int(candidates[int(self._rng.integers(len(candidates)))]) if candidates else place

    def _asked(self, place: int, *names: str) -> list[str]:
        """The subject of a question: everyday words of a sentence of the passage, such as `born` or `mother`."""
        sentences = passage_sentences(self._look.units[place].text)
        if not sentences:
            return []
        sentence = sentences[int(self._rng.integers(len(sentences)))]
        plain = [word for word in _without(sentence, *names) if word.islower() and word.isalpha()]
        plain.sort(key=lambda word: -self._frequency[word])
        return plain[:2]

    def _particular(self, place: int, n: int, wanted: Callable[[str], bool] = bool) -> list[str]:
        """Some words that say something of a passage, and that other passages have too."""
        most = max(3, int(_TELLING * len(self._words)))
        words = [w for w in dict.fromkeys(self._words[place]) if 2 <= self._frequency[w] <= most and wanted(w)]
        return [words[i] for i in sorted(self._rng.permutation(len(words))[:n].tolist())]

    def _made(self, question: str, one: int, other: int, kind: str) -> SyntheticQuestion:
        return SyntheticQuestion(question, (self._look.units[one].id, self._look.units[other].id), kind)


def _words(text: str) -> list[str]:
    """Words of a text without parts of addresses."""
    words: list[str] = _WORD.findall(_ADDRESS.sub(" ", text))
    return words


def _content(text: str) -> list[str]:
    return [word for word in map(str.lower, _words(text)) if word not in FUNCTION_WORDS and len(word) > 2]


def _without(text: str, *names: str) -> list[str]:
    """Content words of a text as they stand there, without those of some names."""
    taken = {word.lower() for name in names for word in _WORD.findall(name)}
    return [w for w in _words(text) if w.lower() not in FUNCTION_WORDS and w.lower() not in taken and len(w) > 2]
