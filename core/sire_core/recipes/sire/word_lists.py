"""`WordLists`: the stems of passages, sentences, headings and titles, updated from those of the generation before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sire_core.arrays.grouping import id_codes, mixed, positions_in, ranges, run_starts
from sire_core.arrays.lists import Lists
from sire_core.text.languages import ENGLISH

if TYPE_CHECKING:
    from sire_core.protocols import BoolArray, DoubleArray, FloatArray, HashArray, IdArray, Int32Array, IntArray
    from sire_core.recipes.sire.passage_arrays import PassageWords, Vocabulary
    from sire_core.recipes.sire.sentence_names import SpelledText

_K1, _B = 1.5, 0.75


@dataclass(frozen=True, slots=True)
class WordLists:
    """Stems, each numbered, and what has them; words in boilerplate are left out of passages and sentences."""

    words: HashArray  # sorted hashes of the stems; the number of a stem is its position
    english: BoolArray  # which stems are of English words
    idf: FloatArray  # inverse document frequency of the stems
    passages: Lists  # passages that have a stem
    counts: Int32Array  # how often a passage has it, aligned with `passages.values`
    lengths: IntArray  # words of every passage
    norms: DoubleArray  # what BM25 adds to a count in every passage, by its length
    sentences: Lists  # sentences of a passage; passage by passage, so that list and value ascend together
    sentence_words: Lists  # stems of a sentence, in their order
    sentence_postings: Lists  # sentences that have a stem
    headings: Lists  # headings of a passage
    heading_words: Lists  # stems of a heading
    title_words: Lists  # stems of what the passage is about
    codes: HashArray  # of the ids of the passages
    hidden: HashArray  # a hash of the fragments of every passage that are boilerplate
    languages: IdArray  # codes of the languages of the passages, those of most first

    @classmethod
    def of_passages(
        cls, passages: PassageWords, text: SpelledText, recurring: BoolArray, before: WordLists | None
    ) -> WordLists:
        """Lists of passages some of whose fragments recur; only passages that differ from before are gone through."""
        codes, hidden, size = id_codes(passages.ids), _hidden(passages, recurring), len(passages.ids)
        frequent = Counter(passages.languages.tolist()).most_common()
        languages = np.array([code for code, _ in frequent] or [ENGLISH], "S3")
        if before is None or before.languages[:1] != languages[:1]:  # words of no language are in that of most
            before = _nothing()
        rows = positions_in(before.codes, codes)
        rows[np.append(before.hidden, np.uint64(0))[rows] != hidden] = -1
        if (np.diff(rows[rows >= 0]) < 0).any():  # they are in another order
            before, rows = _nothing(), np.full(size, -1)
        words, english = _stems_of(passages.vocabulary)
        change = _Change(rows, positions_in(words, before.words))
        new = _NewWords.of(np.flatnonzero(rows < 0), passages, text, recurring, words)
        counted = before.counts, new.counts
        postings, [counts] = before.passages.updated(change.stems, change.passages(before), new.passages, counted)
        holders = postings.sizes()
        lengths = np.where(rows < 0, np.bincount(new.owners, minlength=size), np.append(before.lengths, 0)[rows])
        sentences = Lists.of_lengths(passages.parts["sentences"].counts, np.arange(len(text.sentence_passages)))
        headings = Lists.of_lengths(passages.parts["headings"].counts, np.arange(len(passages.headings)))
        sentence_rows, heading_rows = (
            change.rows_of(*both) for both in ((before.sentences, sentences), (before.headings, headings))
        )
        return cls(
            words=words,
            english=english,
            idf=_idf(size, holders).astype(np.float32),
            passages=postings,
            counts=counts.astype(np.int32),
            lengths=lengths,
            norms=_K1 * (1 - _B + _B * (lengths / max(1.0, int(lengths.sum()) / max(1, size)))),
            sentences=sentences,
            sentence_words=change.lists(before.sentence_words, sentence_rows, new.sentence_words),
            sentence_postings=before.sentence_postings.updated(
                change.stems, _inverse(sentence_rows, len(before.sentence_words)), new.sentence_postings
            )[0],
            headings=headings,
            heading_words=change.lists(before.heading_words, heading_rows, new.heading_words),
            title_words=change.lists(before.title_words, rows, new.title_words),
            codes=codes,
            hidden=hidden,
            languages=languages,
        )

    def impacts(self, stem: int) -> FloatArray:
        """BM25 (Lucene's form) of a stem in each of its passages."""
        start, end = self.passages.starts[stem : stem + 2].tolist()
        counts = self.counts[start:end].astype(np.float64)
        impacts = _idf(len(self.norms), np.array([end - start])) * counts
        return np.asarray(impacts / (self.norms[self.passages.values[start:end]] + counts), dtype=np.float32)


def _nothing() -> WordLists:
    lists, array = Lists.of_lengths((), ()), np.zeros(0, dtype=np.int64)
    return WordLists(**{entry.name: lists if entry.type == "Lists" else array for entry in fields(WordLists)})  # type: ignore[arg-type] # as its fields say


def _idf(size: int, holders: IntArray) -> DoubleArray:
    return np.asarray(np.log1p((size - holders + 0.5) / (holders + 0.5)))


def _stems_of(vocabulary: Vocabulary) -> tuple[HashArray, BoolArray]:
    """Distinct stems of words, ascending, and which of them are of English words."""
    rows = np.flatnonzero(vocabulary.stems)
    rows = rows[np.argsort(vocabulary.stems[rows])]
    stems, is_english = vocabulary.stems[rows], vocabulary.languages[rows] == ENGLISH
    first = run_starts(stems)
    english = np.zeros(int(first.sum()), dtype=bool)
    english[(np.cumsum(first) - 1)[is_english]] = True
    return stems[first], english


def _hidden(passages: PassageWords, recurring: BoolArray) -> HashArray:
    """A hash of the fragments of every passage that recur; 0 without any."""
    fragments = passages.parts["fragments"]
    rows = np.flatnonzero(recurring)
    owners, hashes = fragments.groups()[rows], np.zeros(len(fragments.counts), dtype=np.uint64)
    np.add.at(hashes, owners, mixed((rows - fragments.starts()[owners]).astype(np.uint64) + np.uint64(1)))
    return hashes


class _Change(NamedTuple):
    """Where rows of passages were in the lists before, and where their stems are now."""

    rows_before: IntArray  # row before of every passage, ascending; -1 for those that are gone through
    stems: IntArray  # number now of every stem before, ascending; -1 for those that are gone

    def passages(self, before: WordLists) -> IntArray:
        """Row now of every passage before; -1 for those that are gone, or gone through."""
        return _inverse(self.rows_before, len(before.codes))

    def rows_of(self, before: Lists, now: Lists) -> IntArray:
        """Row before of every value of lists by passage, which count their values; -1 for those of new passages."""
        taken = np.flatnonzero(self.rows_before >= 0)
        rows, sizes = np.full(len(now.values), -1, dtype=np.int64), now.lengths(taken)
        rows[ranges(now.starts[taken], sizes)] = ranges(before.starts[self.rows_before[taken]], sizes)
        return rows

    def lists(self, before: Lists, rows_before: IntArray, new: Lists) -> Lists:
        """Lists of stems: of rows that were there, and of new ones in their order."""
        rows, fresh = rows_before.copy(), rows_before < 0
        rows[fresh] = len(before) + np.arange(len(new))
        return Lists(before.starts, self.stems[before.values].astype(np.int32)).followed_by(new).chosen(rows)


def _inverse(rows: IntArray, size: int) -> IntArray:
    """Position of each of `size` rows among some; -1 for those that are not there."""
    positions = np.full(size, -1, dtype=np.int64)
    positions[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    return positions


class _NewWords(NamedTuple):
    """Lists of some passages, as those of `WordLists`; of sentences, headings and titles only theirs."""

    owners: Int32Array  # passage of every word that is searched
    passages: Lists
    counts: Int32Array
    sentence_words: Lists
    sentence_postings: Lists
    heading_words: Lists
    title_words: Lists

    @classmethod
    def of(
        cls, rows: IntArray, passages: PassageWords, text: SpelledText, recurring: BoolArray, words: HashArray
    ) -> _NewWords:
        fragments, all_sentences = passages.parts["fragments"], passages.parts["sentences"]
        all_words: IntArray | slice = slice(None)  # not copied, unlike places
        is_first = len(rows) == len(passages.ids)
        places = all_words if is_first else ranges(passages.words.starts[rows], passages.words.lengths(rows))
        by_passage = passages.parts["headings"]
        names = passages.name_words.chosen(rows)
        headings = passages.headings.chosen(ranges(by_passage.starts()[rows], by_passage.counts[rows]))
        number = _numbers_of(passages.vocabulary, (text.words[places], names.values, headings.values), words)
        stems = number[text.words[places]]
        inside = (stems >= 0) & ~recurring.repeat(fragments["lengths"])[places]
        owners = text.passages[places][inside]
        postings, counts = Lists.counted(stems[inside], owners, len(words))
        inside &= text.sentences[places] >= 0
        stems, sentences = stems[inside], text.sentences[places][inside]
        own_sentences = ranges(all_sentences.starts()[rows], all_sentences.counts[rows])
        return cls(
            owners,
            postings,
            counts,
            Lists.of_runs(sentences, stems, len(text.sentence_passages)).chosen(own_sentences),
            Lists.of_pairs(stems, sentences, len(words)),
            _distinct_stems(headings, number),
            _distinct_stems(names, number),
        )


def _numbers_of(vocabulary: Vocabulary, used: Sequence[Int32Array], words: HashArray) -> Int32Array:
    """Number of the stem of each word of a vocabulary that is used; -1 for function words and all others."""
    is_used = np.zeros(len(vocabulary), dtype=bool)
    for values in used:
        is_used[values] = True
    rows = np.flatnonzero(is_used & (vocabulary.stems != 0))
    number = np.full(len(vocabulary), -1, dtype=np.int32)
    number[rows] = np.searchsorted(words, vocabulary.stems[rows])
    return number


def _distinct_stems(lists: Lists, number: Int32Array) -> Lists:
    stems = number[lists.values]
    return Lists.of_pairs(lists.owners()[stems >= 0], stems[stems >= 0], len(lists))
