"""`Lexical`: BM25 over any pool, through `bm25s`; `TfIdf`: the baseline of IIER's table 1, through scikit-learn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.search.ranking import ScoredRanking
from sire_core.settings import check_settings, setting
from sire_core.text.asking import asking_rules
from sire_core.text.languages import (
    ENGLISH,
    UNDETERMINED,
    Language,
    language,
    language_code,
    question_language,
    ranked_languages,
)
from sire_core.text.words import indexed_words, spaced_text, word_pattern
from sire_core.types import PathStep, Unit

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, IntArray, Ranking, View

_OWN = "auto"


@dataclass(frozen=True, slots=True)
class Lexical:
    """Ranks every unit by BM25 between its text and the question.

    Attributes:
        k1: Saturation of term frequency.
        b: Length normalisation.
        language: Language of all texts, by code or English name; "auto" reads each passage in its own. Scripts without
            spaces are read as pairs of characters, whatever the language.
        leave_out: Kinds that are not indexed and count for nothing: their words make no word of the others frequent.
    """

    k1: float = setting(1.5, low=0.0)
    b: float = setting(0.75, low=0.0, high=1.0)
    language: str = "auto"
    leave_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_settings(self)
        if self.language != _OWN:
            language_code(self.language)

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter. Units that share no word with the question come last, by position."""
        scores = await asyncio.to_thread(self.scores, query, view)

        def explain(position: int) -> tuple[PathStep, ...]:
            kind = view.kind_names[view.kinds[position]]
            return (PathStep(f"words:{kind}", (view.ids[position].decode(),), f"BM25 {scores[position]:.2f}"),)

        return ScoredRanking(scores, view.allowed(where), explain)

    def scores(self, query: str, view: View) -> FloatArray:
        """BM25 score of every unit, `[size]`."""
        if not view.size:
            return np.zeros(0, dtype=np.float32)
        name = "-".join(("bm25-5", self.language, f"{self.k1:g}", f"{self.b:g}", *self.leave_out))
        retriever = view.cached_on_disk(name, lambda: self._index(view), _save, _load)
        indexed = self._indexed(view)
        spoken = language(question_language(query, self._languages(view)))
        scores = np.zeros(view.size, dtype=np.float32)
        vocabulary = retriever.vocab_dict
        (terms,) = _tokens([asking_rules(spoken).searched_text(query)], spoken)
        tokens = [token for token in terms if token in vocabulary]
        if tokens:
            scores[indexed] = retriever.get_scores(tokens)
        return scores

    def _indexed(self, view: View) -> IntArray:
        """Positions of the units that are indexed; one at least, since an index needs something."""
        codes = [code for code, kind in enumerate(view.kind_names) if kind in self.leave_out]
        kept = np.flatnonzero(~np.isin(view.kinds, codes))
        return np.asarray(kept if len(kept) else [0], dtype=np.int64)

    def _index(self, view: View) -> Any:
        import bm25s

        units = view.units(self._indexed(view))
        codes = self._languages_of(units)
        tokens: list[list[str]] = [[] for _ in units]
        for code in dict.fromkeys(codes):
            rows = [row for row, other in enumerate(codes) if other == code]
            read = _tokens([units[row].index_text for row in rows], language(code))
            for row, words in zip(rows, read, strict=True):
                tokens[row] = words
        retriever = bm25s.BM25(k1=self.k1, b=self.b)
        # A pool without a single word still needs a vocabulary.
        retriever.index([words or [""] for words in tokens], show_progress=False)
        return retriever

    def _languages_of(self, units: Iterable[Unit]) -> list[str]:
        if self.language != _OWN:
            return [language_code(self.language) for _ in units]
        codes = [unit.language for unit in units]
        main = ranked_languages(codes)[0]
        return [main if code == UNDETERMINED else code for code in codes]

    def _languages(self, view: View) -> Sequence[str]:
        """Languages of the units that are indexed, that of most first."""
        if self.language != _OWN:
            return [language_code(self.language)]
        return view.derived("languages", lambda: ranked_languages(self._languages_of(view.units(self._indexed(view)))))


def _load(directory: Path) -> Any:
    import bm25s

    return bm25s.BM25.load(str(directory), mmap=True)


def _save(retriever: Any, directory: Path) -> None:
    retriever.save(str(directory), show_progress=False)


def _tokens(texts: Sequence[str], spoken: Language) -> list[list[str]]:
    """Stems of the words of some texts, without function words."""
    if spoken.code != ENGLISH:
        words_by_text = ([word for word in spoken.words(text) if word not in spoken.function_words] for text in texts)
        return list(map(spoken.stems, words_by_text))
    import bm25s
    import Stemmer

    tokens: list[list[str]] = bm25s.tokenize(
        [spaced_text(text) for text in texts],
        token_pattern=indexed_words().pattern,
        stopwords="english",
        stemmer=Stemmer.Stemmer("english"),
        return_ids=False,
        show_progress=False,
    )
    return tokens


@dataclass(frozen=True, slots=True)
class TfIdf:
    """Ranks every unit by the cosine of TF-IDF vectors of its text and the question. Words are kept as written."""

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter. Units that share no word with the question come last, by position."""
        if not view.size:
            return ScoredRanking(np.zeros(0, dtype=np.float32), None, lambda _: ())
        words, rows = await asyncio.to_thread(view.derived, "tf-idf", lambda: _tf_idf(view))
        scores = np.asarray((rows @ words.transform([query]).T).todense(), dtype=np.float32)[:, 0]

        def explain(position: int) -> tuple[PathStep, ...]:
            kind = view.kind_names[view.kinds[position]]
            return (PathStep(f"words:{kind}", (view.ids[position].decode(),), f"TF-IDF {scores[position]:.3f}"),)

        return ScoredRanking(scores, view.allowed(where), explain)


def _tf_idf(view: View) -> tuple[Any, Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(preprocessor=_lowered, token_pattern=word_pattern().pattern)
    texts = [unit.index_text for unit in view.units(np.arange(view.size))]
    # A pool without a single word still needs a vocabulary.
    return words, words.fit_transform([*texts, "x"])[:-1]


def _lowered(text: str) -> str:
    return spaced_text(text).lower()
