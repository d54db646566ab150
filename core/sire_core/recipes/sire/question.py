"""`QueryFeatures`: a question against the passages: words, names, features, and steps from passage to passage."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arrays.grouping import ranges, run_starts
from sire_core.arrays.lists import Lists, word_keys
from sire_core.arrays.products import all_products, row_products
from sire_core.recipes.sire.passage_arrays import (
    LONGEST_NAME,
    MEANING_SCALE,
    name_words,
    phrase_keys,
    text_meaning,
)
from sire_core.recipes.sire.question_terms import foreign_stems, question_terms
from sire_core.recipes.sire.trust import BEST_BY_WORDS
from sire_core.search.ranking import best_first
from sire_core.text.languages import language
from sire_core.text.lexicon import DEMONYMS, FUNCTION_WORDS, HONORIFICS, MONTHS, OPENERS, WEEKDAYS
from sire_core.text.snippets import identifiers
from sire_core.text.words import find_words, word_pattern

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import BoolArray, DoubleArray, IntArray
    from sire_core.recipes.sire.evidence_index import EvidenceIndex
    from sire_core.recipes.sire.weights import Weights

    Bits = NDArray[np.unsignedinteger[Any]]
    from sire_core.protocols import FloatArray, Similarities

_MOST_WORDS = 64
_LEAST_KNOWN = 0.1
"""Least weight of the known words of a question, as a share of the rarest word."""
_ALL_BITS = 2**64 - 1
_BITS_OF_BYTES = ((np.arange(256)[None, :] >> np.arange(8)[:, None]) & 1).astype(np.float64)
"""Bit i of every byte, `[8, 256]`."""


class QuestionWords:
    """The stems of a question as bits, which of them texts have, and shares weighed by inverse frequency."""

    def __init__(self, question: str, index: EvidenceIndex) -> None:
        self.index = index
        terms, self._lacked = question_terms(question, index)
        self._terms = terms[:_MOST_WORDS]  # term i is bit i
        self._is_exact = bool(identifiers(question)) or any(word[0].isupper() for word in find_words(question)[1:])
        self.stems = np.array([term.stem for term in self._terms], dtype=np.int64)  # the first stem of each
        self.idf = np.array([term.idf for term in self._terms])
        self._rarest = float(np.log1p(2.0 * len(index.chunks) + 1.0))
        self._weight = max(1e-9, float(self.idf.sum()))
        self._alike: DoubleArray | None = None
        self._meant = text_meaning(question, language(index.language_codes[0]))
        shares = np.zeros(-(-len(self.idf) // 8) * 8)
        shares[: len(self.idf)] = self.idf / self._weight
        self._tables = shares.reshape(-1, 8) @ _BITS_OF_BYTES  # shares of the sets of eight words that a byte can hold
        # One bit more than there are stems, where there is room: the last one shifted is not none.
        self._type = np.min_scalar_type(min(1 << len(self.stems), _ALL_BITS)).type
        self._bits = np.zeros(len(index.words), dtype=self._type)
        for bit, term in enumerate(self._terms):
            self._bits[term.stems] |= self._type(1 << bit)
        self.sentences = self._found_in(index.sentence_postings, len(index.sentence_words))
        self.passages = self._found_in(index.passages, len(index.chunks))

    def _found_in(self, postings: Lists, size: int) -> Bits:
        masks = np.zeros(size, dtype=self._type)
        for bit, term in enumerate(self._terms):
            for stem in term.stems.tolist():
                masks[postings.values[postings.starts[stem] : postings.starts[stem + 1]]] |= self._type(1 << bit)
        return masks

    def known(self, allowed: BoolArray | None) -> float:
        """Share of the question whose words any passage has; a word that none has weighs as much as the rarest."""
        index = self.index
        holders = [index.passages.take(term.stems)[1] for term in self._terms]
        had = np.array([len(held) > 0 if allowed is None else allowed[held].any() for held in holders], dtype=bool)
        weight = float(self.idf[had].sum())
        lacking = len(self._lacked) + int(np.count_nonzero(~had))
        return weight / max(1e-9, weight + lacking * self._rarest)

    def words_in(self, passage: int) -> list[str]:
        """Words of the question that a passage has, as the question spells them, in its order."""
        bits = int(self.passages[passage])
        return [term.word for bit, term in enumerate(self._terms) if bits >> bit & 1]

    def in_full(self, passages: IntArray) -> BoolArray:
        """True for passages with every word of a question of several that names something or spells an identifier.

        For none if the index lacks a word: people who ask in words of their own do not meet those of the answer.
        """
        if not self._is_exact or len(self.stems) < _SEVERAL or len(self._lacked):
            return np.zeros(len(passages), dtype=bool)
        return np.asarray(self.passages[passages] == self._type((1 << len(self.stems)) - 1))

    def bm25(self) -> DoubleArray:
        """BM25 of every passage, `[passages]`."""
        index = self.index
        scores = np.zeros(len(index.chunks))
        for term in self._terms:
            for stem, share in zip(term.stems.tolist(), term.shares.tolist(), strict=True):
                start, end = index.passages.starts[stem], index.passages.starts[stem + 1]
                scores[index.passages.values[start:end]] += share * index.impacts(stem)
        return scores

    def share(self, masks: Bits) -> DoubleArray:
        """Share of the question, by inverse document frequency, of sets of its words."""
        shares = np.zeros(len(masks))
        for part, table in enumerate(self._tables):
            shares += table[(masks >> self._type(8 * part)) & self._type(255)]
        return shares

    def alike(self, passages: IntArray) -> DoubleArray:
        """Share of the question in words that passages lack, weighed by the cosine of the nearest word they have."""
        if self._alike is None:
            index = self.index
            keys = np.concatenate([index.words[self.stems], self._lacked])
            scale = max(self._weight, _LEAST_KNOWN * self._rarest)
            weights = np.append(self.idf, np.full(len(self._lacked), self._rarest)) / scale
            self._alike = np.zeros(len(index.chunks))
            for position, (near, cosines) in enumerate(index.stems_alike(keys)):
                if not len(near):
                    continue
                best = np.zeros(len(index.chunks))
                for stem, cosine in zip(near.tolist(), cosines.tolist(), strict=True):  # the nearest comes last
                    best[index.passages.of(stem)] = cosine
                if position < len(self.stems):
                    best[index.passages.of(int(self.stems[position]))] = 0.0
                self._alike += weights[position] * best
        return self._alike[passages]

    def meaning(self, passages: IntArray) -> DoubleArray:
        """Cosine of the question and the sentences of each passage that are nearest to it in meaning."""
        index = self.index
        rows = index.meant.take(passages)[1]
        cosines = row_products(index.meanings[rows].astype(np.float32), self._meant) / MEANING_SCALE
        return largest(cosines.astype(np.float64), index.meant.lengths(passages))

    def best_sentence(self, passages: IntArray, wanted: Bits | None = None) -> DoubleArray:
        """Share of the question in the best sentence of each passage."""
        sentences, counts = self.index.sentences_of(passages)
        masks = self.sentences[sentences]
        if wanted is not None:
            masks &= wanted.repeat(counts)
        return largest(self.share(masks), counts)

    def title_share(self, passages: IntArray) -> DoubleArray:
        """Share of the words of what a passage is about that the question has, by inverse document frequency."""
        index = self.index
        rows, words = index.title_words.take(passages)
        idf = index.idf[words].astype(np.float64)
        all_words = np.bincount(rows, idf, minlength=len(passages))
        shared = np.bincount(rows, idf * (self._bits[words] != 0), minlength=len(passages))
        return np.asarray(shared / np.maximum(1e-9, all_words))

    def path_share(self, passages: IntArray) -> DoubleArray:
        """Share of the question in the path, file name or address of each passage's source."""
        index = self.index
        rows, words = index.path_words.take(index.source[passages])
        shared_idf = index.idf[words].astype(np.float64) * (self._bits[words] != 0)
        return np.asarray(np.bincount(rows, shared_idf, minlength=len(passages)) / self._weight)

    def headed(self, passages: IntArray) -> tuple[DoubleArray, DoubleArray]:
        """Best heading: share of its words that the question has; that times its share of the question."""
        index = self.index
        if not len(index.headings.values):
            return np.zeros(len(passages)), np.zeros(len(passages))
        rows, headings = index.headings.take(passages)
        inside, words = index.heading_words.take(headings)
        idf = index.idf[words].astype(np.float64)
        shared_idf = np.bincount(inside, idf * (self._bits[words] != 0), minlength=len(headings))
        shares = shared_idf / np.maximum(1e-9, np.bincount(inside, idf, minlength=len(headings)))
        counts = np.bincount(rows, minlength=len(passages))
        return largest(shares, counts), largest(shares * shared_idf / self._weight, counts)

    def phrases(self, passages: IntArray) -> DoubleArray:
        """Share of the question in pairs of its words that stand side by side in a sentence of each passage."""
        index = self.index
        sentences, counts = index.sentences_of(passages)
        masks = self.sentences[sentences]
        hopeful = np.flatnonzero(masks & (masks >> self._type(1)))
        inside, words = index.sentence_words.take(sentences[hopeful])
        bits = self._bits[words]
        beside = (
            (bits[:-1] != 0) & (bits[1:] != 0) & (bits[1:] == bits[:-1] << self._type(1)) & (inside[1:] == inside[:-1])
        )
        owners = np.arange(len(passages)).repeat(counts)[hopeful[inside[:-1][beside]]]
        first = words[:-1][beside]
        _, once = np.unique(owners * len(index.words) + first, return_index=True)  # the first word tells the second
        weights = np.minimum(index.idf[first[once]], index.idf[words[1:][beside][once]]) / self._weight
        return np.bincount(owners[once], weights, minlength=len(passages)).astype(np.float64)


def largest(values: DoubleArray, lengths: IntArray) -> DoubleArray:
    """Largest value of each run; 0 for an empty run."""
    maxima = np.zeros(len(lengths))
    filled = lengths.nonzero()[0]
    if len(filled):
        maxima[filled] = np.maximum.reduceat(values, (lengths.cumsum() - lengths)[filled])
    return maxima


_COMMON = FUNCTION_WORDS | OPENERS | DEMONYMS | HONORIFICS | WEEKDAYS | frozenset(MONTHS)
_SHORT, _LOWERED = 0.7, 0.5  # how sure a name of one word is, and one in lower case
_SHORTEST_NAME = 3


def linked_entities(question: str, index: EvidenceIndex) -> dict[int, tuple[float, str]]:
    """Entities that a question names: how sure that is, and the name as the question spells it.

    The longest names win. Function words, months, nationalities and single words in lower case never link; several
    words in lower case only where a passage is about them.
    """
    words = name_words(question)
    spelled, spans = _spellings(question, words), _spans(question)
    lowered = question[1:] == question[1:].lower()
    used = np.zeros(len(words), dtype=bool)
    linked: dict[int, tuple[float, str]] = {}
    phrases = [
        longer
        for keys in (word_keys(words), *foreign_stems(question, index, words))
        for longer in phrase_keys(keys, LONGEST_NAME)[::-1]
    ]
    slices = [slice(start, start + len(words) + 1 - len(keys)) for keys in phrases for start in range(len(keys))]
    for number, entities in index.entities_named(np.concatenate([np.zeros(0, dtype=np.uint64), *phrases])):
        part = slices[number]
        if used[part].any():
            continue
        about = bool((index.owners.lengths(entities) > 0).any())
        sure = _confidence(words[part], spelled[part], first=part.start == 0, lowered=lowered, about=about)
        if sure:
            used[part] = True
            spelling = question[spans[part][0][0] : spans[part][-1][1]] if spans else ""
            linked |= dict.fromkeys(entities.tolist(), (sure, spelling))
    return linked


def _spans(question: str) -> list[tuple[int, int]]:
    """Where the words of a question stand in it; nothing in a script without spaces."""
    matches = re.finditer(rf"&|(?:(?<!\S)[-/$.@]{{1,2}})?{word_pattern().pattern}(?:\(\))?", question)
    parts = [(match.span(), name_words(match.group())) for match in matches]
    return [] if any(len(words) > 1 for _, words in parts) else [span for span, words in parts for _ in words]


def _spellings(question: str, words: list[str]) -> list[bool]:
    """True if the words of a question look like parts of a name."""
    raw = [part for part in question.replace("&", " and ").split() if part]
    marks: list[bool] = []
    for part in raw:
        inner = name_words(part)
        bare = part.lstrip("\"'\u201c\u2018([{<")
        capital = bool(bare) and not bare[0].islower()
        marks += [capital] * len(inner)
    return marks if len(marks) == len(words) else [True] * len(words)


def _confidence(words: list[str], capitals: list[bool], *, first: bool, lowered: bool, about: bool) -> float:
    if all(word in _COMMON or (word.isdigit() and len(word) < _SHORTEST_NAME) for word in words):
        return 0.0
    if len(words) == 1:
        plain = len(words[0]) >= _SHORTEST_NAME and not words[0].isdigit()
        return _SHORT if plain and (lowered or (capitals[0] and not first)) else 0.0
    proper = sum(capitals)
    if proper >= max(1, len(words) // 2):
        return 1.0
    return _LOWERED if proper or about else 0.0


STEP = (
    *("from", "sentence", "new words", "both", "to title", "rarity", "asked", "from title", "alike", "single title"),
    *("few names", "new in sentence", "few holders", "bias"),
)
"""Evidence of a step from a passage over a sentence and a name to another passage: log share of the first among all
candidates, the sentence's share of the question, what the other adds to it and what both cover, whether the other is
about the name, how rare the name is, whether the question names it, whether the question names what the first is about,
cosine of both, 1 / how many passages are about the name, 1 / names of the first, what the other's best sentence adds,
1 / how many others mention it."""


_LEADING_SHARE = 0.5
"""Share of all candidates from which a passage leads by far."""
_MIXED_SHARE = 0.5
"""Share of passages that are parts of documents from which whole ones are mails, sheets and notes beside manuals."""
_MAX_IDENTIFIED = 6
"""Other passages with an identifier up to which a step over it is followed wherever it leads."""
_NAME_OF_A_THING = re.compile(
    r"--?[a-z][\w-]+|[^\W_]+(?:_[^\W_]+)+|[a-z]\w*(?:\.[a-z]\w*)+|[\w.]+\(\)"  # options, settings, functions
    r"|[A-Z][a-z]+(?:[A-Z][a-z]*)+|[A-Z]{1,4}-\d{1,8}"  # products, numbers of assets and invoices
)


@dataclass(frozen=True, slots=True)
class Hops:
    """Steps from first passages over a sentence and a name to other passages, `[steps]` each."""

    sources: IntArray  # passage that the step starts from
    sentences: IntArray  # its sentence with the name
    entities: IntArray  # the name
    targets: IntArray  # passage that the step leads to
    begun: DoubleArray  # score of the source passage
    identified: DoubleArray  # logarithm of the share of that which a step over an identifier takes; -inf for others
    features: DoubleArray  # see `STEP`, `[steps, len(STEP)]`


_NOWHERE = np.zeros(0, dtype=np.int64)
NO_HOPS = Hops(_NOWHERE, _NOWHERE, _NOWHERE, _NOWHERE, np.zeros(0), np.zeros(0), np.zeros((0, len(STEP))))
"""No steps."""


_ALONE = (
    *("vector", "words", "coverage", "sentence", "titled", "names", "rarest name", "title words", "fused"),
    *("heading words", "heading", "phrases", "alike", "meaning"),
)
OWN = (*_ALONE, *(f"unsure {name}" for name in _ALONE))
"""Evidence of a passage by itself: cosine and BM25 (standard scores among the candidates), share of the question that
the passage and its best sentence cover (by inverse document frequency), whether the question names what the passage
is about, rarity of the named entities it mentions (sum, and largest), share of its title's words in the question,
reciprocal ranks by cosine and by BM25; the largest share of a heading's words that the question has, and that times
the share of the question which the heading has; share of the question in words that stand side by side in both; share
of the question in words that it lacks and has others for that mean nearly the same (0 where
no document has several passages); cosine of the question and the sentences nearest to it in meaning (a standard score;
0 there, too). Then all of these once more, times how unsure it is that the question names what a
passage is about: where names say little, similarity decides."""
_CONSTANT, _DEPTH = 61.0, 50  # of reciprocal ranks
_SEVERAL = 2  # Words of a question of which a passage may have all
_LEAST_SHARE, _LEAST_SPREAD = -8.0, 1e-6
_MOST_ABOUT = 40


class QueryFeatures:
    """Features of a question and passages; `pool` of the best by vectors, and as many by words, are candidates.

    `vector_share`, 0 to 1, of what the vectors say counts (see `trust.vector_reliability`); what they lose, words gain.
    """

    def __init__(
        self,
        question: str,
        index: EvidenceIndex,
        cosines: Similarities,
        vectors: FloatArray,
        allowed: BoolArray | None,
        pool: int,
        vector_share: float = 1.0,
    ) -> None:
        self.index = index
        self._vectors = vectors
        self._vector_share = vector_share
        self._allowed = allowed
        spelled = linked_entities(question, index)
        self.linked = {entity: sure for entity, (sure, _) in spelled.items()}
        self.named = {entity: name for entity, (_, name) in spelled.items()}  # as the question spells them
        self._linked = np.array([*sorted(self.linked), np.iinfo(np.int64).max])
        self.texts = QuestionWords(question, index)
        sizes = index.source_sizes
        self.part_share = float(sizes[sizes > 1].sum()) / max(1, len(index.chunks))  # of passages, parts of documents
        self._rarity = np.log1p(len(index.chunks)) or 1.0
        self._cosines = cosines
        self.unit = 1.0  # what 1 in the scores of parts of documents is on the scale of the others; see `alone`
        self._scale: float | None = None
        self._ends: tuple[IntArray, DoubleArray] = np.zeros(0, dtype=np.int64), np.zeros(0)
        self._words = self.texts.bm25()
        self._titled, self._names, self._rarest = self._links()
        by_vectors = cosines.best(pool)[0] if allowed is None else self._best(cosines.all(), None, pool)
        by_words = self._best(self._words, 0.0, pool)
        named = self._best(self._names, 0.0, pool // 4), self._best(self._titled, 0.0, pool)
        self.candidates = np.unique(np.concatenate([by_vectors, by_words, *named]))
        self._fused = np.zeros(len(index.chunks))
        for order, share in ((by_vectors[:_DEPTH], vector_share), (by_words[:_DEPTH], 2.0 - vector_share)):
            self._fused[order] += share * _CONSTANT / (_CONSTANT + np.arange(len(order)))
        sure = self._titled[self.candidates] * self._rarest[self.candidates]
        # 0..1: how unsure it is that the question names what a passage is about
        self.unsure = 1.0 - min(1.0, float(sure.max(initial=0.0)))
        known_share = self.texts.known(allowed)
        self.known = max(known_share, min(1.0, float(self._rarest[self.candidates].max(initial=0.0))))
        self._mean, self._spread = _moments(self._cosine(self.candidates))
        self._mean_words, self._spread_words = _moments(self._words[self.candidates])
        self._moments_of_meaning: tuple[float, float] | None = None  # of the candidates, which `own` sees first
        shared = self.texts.share(self.texts.passages[by_words[:BEST_BY_WORDS]])
        shared_mean = known_share * float(shared.mean()) if len(shared) else 0.0
        self.gates = np.array([np.log1p(len(name_words(question))), shared_mean, self.unsure, 1.0])  # `trust.GATES`

    def _cosine(self, passages: IntArray) -> DoubleArray:
        """Cosines with the question; mostly of passages at the ends of steps, whose vectors were read for these."""
        ends, cosines = self._ends
        positions = np.minimum(np.searchsorted(ends, passages), max(0, len(ends) - 1))
        if len(ends) and np.array_equal(ends[positions], passages):
            return cosines[positions]
        return self._cosines.at(passages).astype(np.float64)

    def _vector(self, passages: IntArray) -> DoubleArray:
        return self._vector_share * (self._cosine(passages) - self._mean) / self._spread

    def _bm25(self, passages: IntArray) -> DoubleArray:
        return np.asarray((self._words[passages] - self._mean_words) / self._spread_words)

    def _meaning(self, passages: IntArray) -> DoubleArray:
        if not self.part_share:
            return np.zeros(len(passages))
        cosines = self.texts.meaning(passages)
        if self._moments_of_meaning is None:
            self._moments_of_meaning = _moments(cosines)
        mean, spread = self._moments_of_meaning
        return (cosines - mean) / spread

    def own(self, passages: IntArray) -> DoubleArray:
        """Evidence of passages by themselves, `[len(passages), len(OWN)]`; see `OWN`."""
        texts = self.texts
        columns = (
            self._vector(passages),
            self._bm25(passages),
            texts.share(texts.passages[passages]),
            texts.best_sentence(passages),
            self._titled[passages],
            self._names[passages],
            self._rarest[passages],
            texts.title_share(passages),
            self._fused[passages],
            *texts.headed(passages),
            texts.phrases(passages),
            texts.alike(passages) if self.part_share else np.zeros(len(passages)),
            self._meaning(passages),
        )
        alone = np.array(columns).T
        return np.concatenate([alone, self.unsure * alone], axis=1)

    def alone(self, passages: IntArray, evidence: DoubleArray, weights: Weights) -> DoubleArray:
        """Scores of passages by their own evidence, `[len(passages)]`.

        Passages that are documents by themselves are scored by `weights.own`. Of passages that a longer document was
        cut into, names and titles say little: `weights.document` scores them, on the scale that the former have among
        the candidates.
        """
        scores = row_products(evidence, weights.own)
        if not self.part_share:
            return scores
        of_document = row_products(evidence, weights.document.own)
        of_document += weights.document.path * self.texts.path_share(passages)
        if self._scale is None:
            (mean, spread), (mean_of_document, spread_of_document) = _moments(scores), _moments(of_document)
            self.unit = spread / spread_of_document
            self._scale = mean - self.unit * mean_of_document
        return np.where(self.is_cut(passages), self._scale + self.unit * of_document, scores)

    def is_cut(self, passages: IntArray) -> BoolArray:
        """True if passages are parts of documents that have several."""
        return np.asarray(self.index.source_sizes[self.index.source[passages]] > 1)

    def hybrid(self, passages: IntArray) -> DoubleArray:
        """Log share of passages, `[len(passages)]`, that falls as 1 / rank in hybrid search; 0 behind its depth."""
        fused = self._fused[passages]
        ranks = np.arange(1, np.count_nonzero(fused) + 1)
        shares = np.full(len(passages), -np.inf)
        shares[best_first(fused.astype(np.float32), len(ranks))] = -np.log(ranks * (1.0 / ranks).sum())
        return shares

    def hops(self, sources: IntArray, scores: DoubleArray, whole: float, max_passages_per_name: int) -> Hops:
        """Steps from some passages to others over the names in their sentences; tables of contents lead nowhere.

        `scores` are those of the passages, `whole` the logarithm of the sum of the exponentials of all.
        """
        index = self.index
        leads = ~index.contents[sources]
        sources, scores = sources[leads], scores[leads]
        rows, sentences, entities, counts = self._named_in(sources)
        names, number = np.unique(entities, return_inverse=True)
        mentioned, titles = index.holders.lengths(names), index.owners.lengths(names)
        of_name, holders = self._followed(
            names, mentioned <= max_passages_per_name, max(max_passages_per_name, _MOST_ABOUT)
        )
        counts_held = np.bincount(of_name, minlength=len(names))
        lengths = counts_held[number]
        held = np.arange(len(entities)).repeat(lengths)
        targets = holders[ranges((counts_held.cumsum() - counts_held)[number], lengths)]
        other = np.flatnonzero((targets != sources[rows[held]]) & ~index.contents[targets])
        held, targets = held[other], targets[other]
        about = index.own[targets] == entities[held]
        from_row = rows[held]
        mask, target_masks = self.texts.passages[sources][from_row], self.texts.passages[targets]
        rarity = (np.log1p(len(index.chunks) / np.maximum(1, mentioned)) / self._rarity)[number]
        features = np.array(
            [
                np.maximum(scores - whole, _LEAST_SHARE)[from_row] / -_LEAST_SHARE,
                self.texts.share(self.texts.sentences[sentences])[held],
                self.texts.share(target_masks & ~mask),
                self.texts.share(target_masks | mask),
                about,
                rarity[held],
                self._is_linked(entities)[held],
                self._is_linked(index.own[sources])[from_row],
                self._alike(sources, from_row, targets) / self._spread / -_LEAST_SHARE,
                about / np.maximum(1, titles)[number][held],
                1.0 / np.maximum(1, counts)[from_row],
                self.texts.best_sentence(targets, ~mask),
                ~about / np.maximum(1, mentioned - titles)[number][held],
                np.ones(len(held)),
            ]
        ).T
        identified = self._identified(sources, np.exp(scores - whole), rows, entities, mentioned[number])[held]
        return Hops(sources[from_row], sentences[held], entities[held], targets, scores[from_row], identified, features)

    def _identified(
        self, sources: IntArray, shares: DoubleArray, rows: IntArray, entities: IntArray, mentioned: IntArray
    ) -> DoubleArray:
        """Logarithm of the share of its passage's score that a step over each name takes; -inf unless it is sure.

        Where a whole document beside manuals, such as a mail, leads by far and has few identifiers, products or numbers
        (`retry_limit`, `--jobs`, PlantSight, A-117) that few others have, these are what it speaks of.
        """
        identified = np.full(len(entities), -np.inf)
        is_leading = (shares > _LEADING_SHARE) & ~self.is_cut(sources) & (self.part_share > _MIXED_SHARE)
        for row in np.flatnonzero(is_leading).tolist():
            rare = np.flatnonzero((rows == row) & (mentioned > 1) & (mentioned <= 1 + _MAX_IDENTIFIED))
            names = [self.index.name_in(int(sources[row]), entity) for entity in entities[rare].tolist()]
            coded = rare[[_NAME_OF_A_THING.fullmatch(name) is not None for name in names]]
            identified[coded] = np.log(shares[row]) - np.log(len(coded) * (mentioned[coded] - 1.0))
        return identified

    def _is_linked(self, entities: IntArray) -> BoolArray:
        """True if the question names some entities."""
        return np.asarray(self._linked[np.searchsorted(self._linked, entities)] == entities, dtype=bool)

    def _alike(self, sources: IntArray, rows: IntArray, targets: IntArray) -> DoubleArray:
        """Cosines of pairs: of the source in a row with a target. A passage is the target of many."""
        ends, end = np.unique(targets, return_inverse=True)
        first, second = (self._vectors[self.index.chunks[passages]] for passages in (sources, ends))
        self._ends = ends, self._cosines.at(ends, second).astype(np.float64)
        return all_products(first, second)[rows, end.ravel()].astype(np.float64)

    def _followed(self, names: IntArray, narrow: BoolArray, max_passages: int) -> tuple[IntArray, IntArray]:
        """Passages that steps over some names lead to, of each name at most so many: row of the name, and passage."""
        lists = (self.index.holders, np.flatnonzero(narrow)), (self.index.owners, np.flatnonzero(~narrow))
        taken = [(rows, *held.take(names[rows])) for held, rows in lists]
        of_name = np.concatenate([rows[which] for rows, which, _ in taken])
        passages = np.concatenate([held_by for *_, held_by in taken])
        order = np.argsort(of_name, kind="stable")
        if self._allowed is not None:
            order = order[self._allowed[passages[order]]]
        of_name, passages = of_name[order], passages[order]
        # A book in a thousand passages has one title: every passage would lead to all others.
        crowded = np.flatnonzero(np.bincount(of_name)[of_name] > max_passages)
        if not len(crowded):
            return of_name, passages
        order = crowded[np.lexsort((-self._cosine(passages[crowded]), of_name[crowded]))]
        group = of_name[order]
        left_out = order[np.arange(len(order)) - np.searchsorted(group, group) >= max_passages]
        return np.delete(of_name, left_out), np.delete(passages, left_out)

    def _named_in(self, sources: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Names of passages: row of the passage, the name's sentence that covers most of the question, the entity.

        What a passage itself is about comes with its first sentence, unless another names it; it leads to other
        passages about the same. Also how many names each passage has.
        """
        index = self.index
        sentences, lengths = index.sentences_of(sources)
        rows = np.arange(len(sources)).repeat(lengths)
        inside, entities = index.mentions.take(sentences)
        rows, sentences = rows[inside], sentences[inside]
        others = index.own[sources[rows]] != entities
        rows, sentences, entities = rows[others], sentences[others], entities[others]
        covered = self.texts.share(self.texts.sentences[sentences])
        order = np.lexsort((sentences, -covered, entities, rows))
        rows, sentences, entities = rows[order], sentences[order], entities[order]
        first = run_starts(rows, entities)
        owners = np.flatnonzero((index.own[sources] >= 0) & (index.sentences.lengths(sources) > 0))
        rows = np.concatenate([rows[first], owners])
        sentences = np.concatenate([sentences[first], self._best_sentences(sources[owners])])
        entities = np.concatenate([entities[first], index.own[sources[owners]]])
        return rows, sentences, entities, np.bincount(rows, minlength=len(sources))

    def _best_sentences(self, passages: IntArray) -> IntArray:
        """The sentence of each passage that covers most of the question."""
        sentences, lengths = self.index.sentences_of(passages)
        covered = self.texts.share(self.texts.sentences[sentences])
        best = np.flatnonzero(covered == largest(covered, lengths).repeat(lengths))
        owners = np.arange(len(passages)).repeat(lengths)[best]
        return np.asarray(sentences[best[np.searchsorted(owners, np.arange(len(passages)))]], dtype=np.int64)

    def _links(self) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
        """By passage: how surely the question names what it is about; sum and largest rarity of named entities."""
        index, size = self.index, len(self.index.chunks)
        titled, names, rarest = (np.zeros(size) for _ in range(3))
        for entity, sure in self.linked.items():
            holders, about = index.holders.of(entity), index.owners.of(entity)
            weight = sure * np.log1p(size / max(1, len(holders))) / self._rarity
            names[holders] += weight
            rarest[holders] = np.maximum(rarest[holders], weight)
            titled[about] = np.maximum(titled[about], sure)
        return titled, names, rarest

    def _best(self, scores: DoubleArray | FloatArray, least: float | None, count: int) -> IntArray:
        """The best allowed passages whose score is above `least`."""
        eligible = np.ones(len(scores), dtype=bool) if least is None else scores > least
        inside = np.flatnonzero(eligible if self._allowed is None else eligible & self._allowed)
        return inside[best_first(scores[inside].astype(np.float32), count)]


def _moments(values: DoubleArray) -> tuple[float, float]:
    """Mean and standard deviation; 0 and 1 of nothing or of equal values, as they are but for rounding."""
    if not len(values):
        return 0.0, 1.0
    spread = float(values.std())
    return float(values.mean()), spread if spread > _LEAST_SPREAD else 1.0
