"""Passages as arrays of words, sentences, headings and fragments, over one vocabulary."""

from __future__ import annotations

import json
import re
import unicodedata
from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.lexicon import FUNCTION_WORDS
from sire_core.algorithms.links import without_link_targets
from sire_core.algorithms.lists import Lists
from sire_core.algorithms.packed_words import word_keys
from sire_core.algorithms.words import find_words
from sire_core.corpus.sections import SEPARATOR, plain_heading
from sire_core.extraction.headings import base_title
from sire_core.models.lexical_features import split_words
from sire_core.protocols import CarriedFiles
from sire_core.search.passages import opening_name, titled_sentences
from sire_core.storage.array_file import compress_arrays, decompress_arrays
from sire_core.types import hash64

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints
    from sire_core.protocols import View
    from sire_core.types import Unit

    Keys = NDArray[np.uint64]

LONGEST_NAME = 8
"""Words of the longest name that is looked for in text."""
_UPPER_MARK = 1
_STEP = np.uint64(0x9E3779B97F4A7C15)
_HEADING_MARKS = re.compile(r"#{1,6}[ \t]+")
_NO_HEADING = frozenset("*|-+[(!{}<>\"'`$/\\=~")
_HEADING_END = frozenset(".:,;)|]}>!")
_LONGEST_HEADING = 90
_HEADING_WORDS = 12


def passage_headings(title: str, text: str) -> list[str]:
    """Headings of a passage: those of its section's path, and lines of its text that stand alone like one.

    Splitters and converters leave headings in the text, often without their marks: a short line between blank lines
    (or first in a longer text) that is no sentence, no item of a list and no code.
    """
    found = title.split(SEPARATOR) if SEPARATOR in title else []
    lines = [line.strip() for line in without_link_targets(text).strip().split("\n")]
    for place, line in enumerate(lines):
        marked = _HEADING_MARKS.match(line)
        bare = line[marked.end() :] if marked else line
        if not 3 < len(bare) <= _LONGEST_HEADING or len(lines) == 1:
            continue
        alone = not place or ((not lines[place - 1]) and (place + 1 == len(lines) or not lines[place + 1]))
        if (marked or (alone and _could_be_heading(bare))) and (plain := plain_heading(bare)):
            found.append(plain)
    return list(dict.fromkeys(found))


def _could_be_heading(line: str) -> bool:
    numbered = line[0].isdigit() and line.split(None, 1)[0].endswith((".", ")"))
    apart = line[0] not in _NO_HEADING and line[-1] not in _HEADING_END
    return apart and not numbered and len(line.split()) <= _HEADING_WORDS


def name_words(name: str) -> list[str]:
    """Words of a name or a question, as names are compared: lower case, `&` as `and`."""
    return split_words(name.replace("&", " and "))


def longer_keys(keys: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Keys of phrases with one more word each, `[len(words)]`."""
    found = (keys[: len(words)] ^ words) * _STEP  # wraps around at 64 bits, as wanted
    return np.asarray(found ^ (found >> np.uint64(29)), dtype=np.uint64)


def phrase_keys(keys: NDArray[np.uint64], longest: int) -> list[NDArray[np.uint64]]:
    """Keys of consecutive words: first of every word, then of every two, and so on, `[len(keys) - number + 1]` each."""
    found = [np.zeros(len(keys), dtype=np.uint64)]
    for offset in range(min(longest, len(keys))):
        found.append(longer_keys(found[-1], keys[offset:]))
    return found[1:]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Distinct words by number.

    Attributes:
        words: Lower case.
        keys: See `word_keys`.
        stems: See `stem_keys`; 0 for function words.
        plain: Whether a word can be a name alone: three letters at least, no number, no function word.
        caseless: Whether a word begins with a letter that has no case, as in Arabic, Hindi or Korean.
    """

    words: Sequence[str] = field(default=(), repr=False)
    keys: Keys = field(default_factory=lambda: np.zeros(0, dtype=np.uint64), repr=False)
    stems: Keys = field(default_factory=lambda: np.zeros(0, dtype=np.uint64), repr=False)
    plain: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool), repr=False)
    caseless: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool), repr=False)

    def __len__(self) -> int:
        """How many words."""
        return len(self.words)

    def followed_by(self, words: Sequence[str]) -> Vocabulary:
        """These words and others behind them; the others are looked at, these are not again."""
        stems = stem_keys(words)
        plain = np.array([len(word) > 2 and not word.isdigit() for word in words], dtype=bool) & (stems != 0)
        caseless = [not word.isascii() and unicodedata.category(word[0]) == "Lo" for word in words]
        return Vocabulary(
            [*self.words, *words],
            np.concatenate([self.keys, word_keys(words)]),
            np.concatenate([self.stems, stems]),
            np.concatenate([self.plain, plain]),
            np.concatenate([self.caseless, np.array(caseless, dtype=bool)]),
        )

    def numbers(self, others: Vocabulary) -> Ints:
        """Number of each of some words; -1 for those that are not here."""
        found = np.full(len(others), -1)
        if len(self):
            order = np.argsort(self.keys)
            places = order[np.minimum(np.searchsorted(self.keys, others.keys, sorter=order), len(self) - 1)]
            for place in np.flatnonzero(self.keys[places] == others.keys).tolist():
                if self.words[number := int(places[place])] == others.words[place]:
                    found[place] = number
        return found

    def chosen(self, numbers: Ints) -> Vocabulary:
        """Some of the words, in this order."""
        words = [self.words[number] for number in numbers.tolist()]
        return Vocabulary(words, self.keys[numbers], self.stems[numbers], self.plain[numbers], self.caseless[numbers])


def stem_keys(words: Sequence[str]) -> Keys:
    """Key of every word's stem; 0 for function words, which say nothing."""
    import Stemmer

    keys = word_keys(Stemmer.Stemmer("english").stemWords(words))
    keys[[word in FUNCTION_WORDS for word in words]] = 0
    return keys


@dataclass(frozen=True, slots=True)
class PassageWords:
    """Words of passages, sentence by sentence. About 0.6 kB per passage of 100 words.

    Attributes:
        ids: Of the passages, `[passages]`. They are made from title and text, and nothing else is read here: what a
            change of metadata alone would change cannot be carried from one snapshot to the next.
        words: Numbers of the words of every passage in the vocabulary; those of its title first.
        marks: Of every word in `words.values`: 2 * (number of its sentence in the passage + 1), 0 for the title's; 1
            more where it begins with a capital letter, a digit or a letter of a script without case.
        sentences: How many sentences every passage has.
        headings: Words of every heading, passage by passage, see `passage_headings`.
        heading_counts: How many headings every passage has.
        names: What every passage is about: its title without brackets, or what its text opens with; may be empty.
        name_words: Words of those names.
        fragments: Hash of every fragment, passage by passage: a sentence, or the part of one on a line of its own. The
            title is the first of each passage.
        fragment_words: How many words every fragment has.
        fragment_counts: How many fragments every passage has.
        vocabulary: Words by number.
        looked_at: How many passages were read since this was loaded or first made.
    """

    ids: NDArray[np.bytes_]
    words: Lists
    marks: NDArray[np.int32]
    sentences: Ints
    headings: Lists
    heading_counts: Ints
    names: Sequence[str]
    name_words: Lists
    fragments: Keys
    fragment_words: Ints
    fragment_counts: Ints
    vocabulary: Vocabulary
    looked_at: int = 0

    @classmethod
    def of(cls, view: View, positions: Ints) -> PassageWords:
        """Words of some passages of a pool; the texts are read only of those that the snapshot before did not have."""
        files = CarriedFiles("passage-words-2", _save, _load, lambda words: (len(words.ids), words.looked_at))
        return view.cached_incremental("passage words", lambda before: cls._read(view, positions, before), files)

    @classmethod
    def _read(cls, view: View, positions: Ints, before: PassageWords | None) -> PassageWords:
        ids = view.ids[positions]
        if before is None or not len(before.ids):
            return cls.read(ids, _units(view, positions))
        order = np.argsort(before.ids)
        places = order[np.minimum(np.searchsorted(before.ids, ids, sorter=order), len(order) - 1)]
        new = before.ids[places] != ids
        read = cls.read(ids[new], _units(view, positions[new])).spelled_by(before.vocabulary)
        places[new] = len(before.ids) + np.arange(len(read.ids))
        both = before.followed_by(read)
        return both if np.array_equal(places, np.arange(len(both.ids))) else both.chosen(places)

    @classmethod
    def read(cls, ids: NDArray[np.bytes_], units: Iterable[Unit]) -> PassageWords:
        """Read passages."""
        numbers = defaultdict[str, int](count().__next__)
        number = numbers.__getitem__
        words, marks = array("i"), array("i")
        lengths, sentences, heading_counts, names = list[int](), list[int](), list[int](), list[str]()
        headings = list[list[int]]()
        fragments, fragment_words, fragment_counts = list[str](), list[int](), list[int]()
        for unit in units:
            found = passage_headings(unit.title, unit.text)
            headings += [list(map(number, name_words(heading))) for heading in found]
            heading_counts.append(len(found))
            title, pieces = titled_sentences(unit.title, unit.text)
            names.append(" ".join(_name(title, unit.text).split()))
            sentences.append(len(pieces))
            before, parts_before = len(words), len(fragments)
            for place, part in _fragments(title, pieces):
                spelled, capitals = _words(part)
                words.extend(map(number, spelled))
                marks.extend([2 * place + capital for capital in capitals])
                fragments.append(" ".join(spelled))
                fragment_words.append(len(spelled))
            lengths.append(len(words) - before)
            fragment_counts.append(len(fragments) - parts_before)
        named = [list(map(number, name_words(name))) for name in names]
        return cls(
            ids,
            Lists.of_lengths(lengths, np.array(words, dtype=np.int32)),
            np.array(marks, dtype=np.int32),
            np.array(sentences, dtype=np.int64),
            _lists(headings),
            np.array(heading_counts, dtype=np.int64),
            names,
            _lists(named),
            np.array([hash64(fragment) for fragment in fragments], dtype=np.uint64),
            np.array(fragment_words, dtype=np.int64),
            np.array(fragment_counts, dtype=np.int64),
            Vocabulary().followed_by(list(numbers)),
            len(ids),
        )

    def spelled_by(self, vocabulary: Vocabulary) -> PassageWords:
        """These passages, their words numbered as in a vocabulary; behind it stand those that it does not have."""
        number = vocabulary.numbers(self.vocabulary)
        new = np.flatnonzero(number < 0)
        number[new] = len(vocabulary) + np.arange(len(new))
        words, headings, named = (
            Lists(lists.starts, number[lists.values].astype(np.int32))
            for lists in (self.words, self.headings, self.name_words)
        )
        known = vocabulary.followed_by([self.vocabulary.words[place] for place in new.tolist()])
        return replace(self, words=words, headings=headings, name_words=named, vocabulary=known)

    def followed_by(self, others: PassageWords) -> PassageWords:
        """These passages and others behind them, which know the words of these."""
        return PassageWords(
            np.concatenate([self.ids, others.ids]),
            self.words.followed_by(others.words),
            np.concatenate([self.marks, others.marks]),
            np.concatenate([self.sentences, others.sentences]),
            self.headings.followed_by(others.headings),
            np.concatenate([self.heading_counts, others.heading_counts]),
            [*self.names, *others.names],
            self.name_words.followed_by(others.name_words),
            np.concatenate([self.fragments, others.fragments]),
            np.concatenate([self.fragment_words, others.fragment_words]),
            np.concatenate([self.fragment_counts, others.fragment_counts]),
            others.vocabulary,
            self.looked_at + others.looked_at,
        )

    def chosen(self, rows: Ints) -> PassageWords:
        """Some of the passages, in this order, and no other words than theirs."""
        words, named = self.words.chosen(rows), self.name_words.chosen(rows)
        marks = Lists(self.words.starts, self.marks).chosen(rows).values
        of_passage = Lists.of_lengths(self.heading_counts, np.arange(len(self.headings))).chosen(rows)
        headings = self.headings.chosen(of_passage.values.astype(np.int64))
        parts = Lists.of_lengths(self.fragment_counts, np.arange(len(self.fragments))).chosen(rows).values
        said = np.zeros(len(self.vocabulary), dtype=bool)
        for lists in (words, named, headings):
            said[lists.values] = True
        used = np.flatnonzero(said)
        number = np.cumsum(said, dtype=np.int32) - 1
        return PassageWords(
            self.ids[rows],
            Lists(words.starts, number[words.values]),
            marks,
            self.sentences[rows],
            Lists(headings.starts, number[headings.values]),
            self.heading_counts[rows],
            [self.names[row] for row in rows.tolist()],
            Lists(named.starts, number[named.values]),
            self.fragments[parts],
            self.fragment_words[parts],
            self.fragment_counts[rows],
            self.vocabulary.chosen(used),
            self.looked_at,
        )


def _fragments(title: str, sentences: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Lines of a title (number 0) and of sentences (from 1), with those numbers."""
    return ((place, part) for place, piece in enumerate((title, *sentences)) for part in piece.split("\n"))


def passage_fragments(unit: Unit) -> list[str]:
    """Sentences of a passage and lines of them, its title first, in the order of `PassageWords.fragments`."""
    return [part for _, part in _fragments(*titled_sentences(unit.title, unit.text))]


def _name(title: str, text: str) -> str:
    """What a passage is about: its title without brackets, or what its text opens with; nothing for a section path."""
    if SEPARATOR in title:
        return ""
    return base_title(title) if title else opening_name(text)


_FILE = "words.npz"
_LISTS = ("words", "headings", "name_words")
_NUMBERS = ("marks", "sentences", "heading_counts", "fragment_words", "fragment_counts")
_OF_WORDS = ("keys", "stems", "plain", "caseless")


def _save(passages: PassageWords, directory: Path) -> None:
    arrays: dict[str, NDArray[Any]] = {"ids": passages.ids, "fragments": passages.fragments}
    for name in _LISTS:
        lists: Lists = getattr(passages, name)
        arrays |= {f"{name}.lengths": _small(np.diff(lists.starts)), f"{name}.values": _small(lists.values)}
    arrays |= {name: _small(getattr(passages, name)) for name in _NUMBERS}
    arrays |= {name: getattr(passages.vocabulary, name) for name in _OF_WORDS}
    for name, texts in (("names", passages.names), ("spelled", passages.vocabulary.words)):
        arrays[name] = np.frombuffer(json.dumps(texts).encode(), dtype=np.uint8)
    compress_arrays(directory / _FILE, arrays)


def _load(directory: Path) -> PassageWords:
    arrays = decompress_arrays(directory / _FILE)
    lists = {name: Lists.of_lengths(arrays[f"{name}.lengths"], arrays[f"{name}.values"]) for name in _LISTS}
    names, words = (json.loads(arrays[name].tobytes()) for name in ("names", "spelled"))
    return PassageWords(
        ids=arrays["ids"],
        words=lists["words"],
        marks=arrays["marks"].astype(np.int32),
        sentences=arrays["sentences"].astype(np.int64),
        headings=lists["headings"],
        heading_counts=arrays["heading_counts"].astype(np.int64),
        names=names,
        name_words=lists["name_words"],
        fragments=arrays["fragments"],
        fragment_words=arrays["fragment_words"].astype(np.int64),
        fragment_counts=arrays["fragment_counts"].astype(np.int64),
        vocabulary=Vocabulary(words, *(arrays[name] for name in _OF_WORDS)),
    )


def _small(numbers: NDArray[np.signedinteger[Any]]) -> NDArray[np.unsignedinteger[Any]]:
    """Numbers of at least 0 in as few bytes as hold the largest."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _units(view: View, positions: Ints) -> Iterator[Unit]:
    """Units, read one after the other."""
    return (view.units([position])[0] for position in positions.tolist())


def _lists(lists: Sequence[Sequence[int]]) -> Lists:
    return Lists.of_lengths([len(found) for found in lists], [value for found in lists for value in found])


def _words(text: str) -> tuple[list[str], list[int]]:
    """Words and whether they look like parts of a name."""
    raw = find_words(text.replace("&", " And ") if "&" in text else text)
    if text.isascii():
        return " ".join(raw).lower().split(), [word < "a" for word in raw]  # small letters come last in ASCII
    words: list[str] = []
    capital: list[int] = []
    for word in raw:
        parts = split_words(word)
        words += parts
        capital += [not word[0].islower()] * len(parts)
    return words, capital
