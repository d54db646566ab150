"""Passages as arrays of words, sentences, headings and fragments, over one vocabulary."""

from __future__ import annotations

import json
import re
import unicodedata
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sire_core.arrays.grouping import id_codes, positions_in
from sire_core.arrays.lists import Lists, Ragged, weighted_sums, word_keys
from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.changes.processes import ProcessRunner
from sire_core.changes.runners import results_of
from sire_core.documents.blocks import CODE, HEADING, PARAGRAPH, Block, block_text
from sire_core.documents.heading_paths import is_path, title_path
from sire_core.documents.markdown_sections import plain_heading, title_line
from sire_core.extraction.headings import base_title
from sire_core.models.word_vectors import word_vectors
from sire_core.protocols import CarriedArrays
from sire_core.search.passages import opening_name, titled_sentences
from sire_core.text.languages import ENGLISH, UNDETERMINED, Language, language, plain_key, ranked_languages
from sire_core.text.words import find_words, spelled_words, with_parts, without_link_targets
from sire_core.types import Unit, hash64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import BoolArray, FloatArray, HashArray, IdArray, Int32Array, IntArray, Runner, View


LONGEST_NAME = 8  # Words of the longest name that is looked for in text
_PHRASE_MIX = np.uint64(0x9E3779B97F4A7C15)
_NO_HEADING = frozenset("#*|-+[(!{}<>\"'`$/\\=~")
_HEADING_END = frozenset(".:,;)|]}>!")
_VALUE = re.compile(
    r"(?:[^\W\d_]+ )?[^\W\d_]+:\s+(?:[^\w\s].*|\d.*|\S+\Z)|(?:default|type)s?(?: \w+)?:\s", re.IGNORECASE
)
"""Lines like `Default: False` that say something of what the heading above them names."""
MIN_HEADING_CHARS, MAX_HEADING_CHARS = 4, 90
MAX_HEADING_WORDS = 12
MEANT_SENTENCES, MEANING_WIDTH, MEANING_SCALE = 3, 64, 127
"""Sentences whose meaning is one vector; leading numbers of the vectors of words that count for it; its length."""


def passage_headings(unit: Unit) -> list[str]:
    """Headings of a passage: those of its section's path and of its text, and lines that stand alone like one."""
    text, blocks = unit.text, unit.blocks
    headings = [*title_path(unit.title)] if is_path(unit.title) else []
    for block, above, below in zip(blocks, [None, *blocks], [*blocks[1:], None], strict=False):
        is_first = above is None and not unit.title and bool(title_line(text)[0])
        if block.kind != HEADING and (block.kind != PARAGRAPH or block.level):
            continue
        first_line, _, more = block_text(text, block).partition("\n")
        line = without_link_targets(first_line).strip()
        if not MIN_HEADING_CHARS <= len(line) <= MAX_HEADING_CHARS or (above is below is None and not more):
            continue
        is_alone = not more and _is_apart(text, above, block) and _is_apart(text, block, below)
        is_heading = block.kind == HEADING or ((is_alone or is_first) and _could_be_heading(line))
        if is_heading and (plain := plain_heading(line)):
            headings.append(plain)
    return list(dict.fromkeys(headings))


def _is_apart(text: str, above: Block | None, below: Block | None) -> bool:
    """True if a blank line or nothing is between two blocks."""
    return above is None or below is None or text.count("\n", above.end, below.start) > 1


def _could_be_heading(line: str) -> bool:
    numbered = line[0].isdigit() and line.split(None, 1)[0].endswith((".", ")"))
    end = line.rstrip("\"'\u201d\u2019")
    apart = line[0] not in _NO_HEADING and end[-1:] not in _HEADING_END and not end.endswith("--")
    return apart and not numbered and len(line.split()) <= MAX_HEADING_WORDS and not _VALUE.match(line)


def name_words(name: str) -> list[str]:
    """Words of a name or a question, as names are compared: lower case, `&` as `and`."""
    return list(map(plain_key, spelled_words(name.replace("&", " and "))))


def longer_keys(keys: HashArray, words: HashArray) -> HashArray:
    """Keys of phrases with one more word each, `[len(words)]`."""
    longer = (keys[: len(words)] ^ words) * _PHRASE_MIX  # wraps around at 64 bits, as wanted
    return np.asarray(longer ^ (longer >> np.uint64(29)), dtype=np.uint64)


def phrase_keys(keys: HashArray, longest: int) -> list[HashArray]:
    """Keys of consecutive words: first of every word, then of every two, and so on, `[len(keys) - number + 1]` each."""
    by_length = [np.zeros(len(keys), dtype=np.uint64)]
    for offset in range(min(longest, len(keys))):
        by_length.append(longer_keys(by_length[-1], keys[offset:]))
    return by_length[1:]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Distinct words of languages by number."""

    words: Sequence[str] = field(default=(), repr=False)  # see `tagged_words`
    codes: HashArray = field(default_factory=lambda: np.zeros(0, dtype=np.uint64), repr=False)  # `word_keys` of these
    keys: HashArray = field(
        default_factory=lambda: np.zeros(0, dtype=np.uint64), repr=False
    )  # of the words as of names
    stems: HashArray = field(default_factory=lambda: np.zeros(0, dtype=np.uint64), repr=False)  # 0 for function words
    plain: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool), repr=False)  # may be a name alone
    caseless: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool), repr=False)  # as in Arabic
    languages: NDArray[np.str_] = field(default_factory=lambda: np.zeros(0, dtype="U3"), repr=False)  # codes

    def __len__(self) -> int:
        """Number of words."""
        return len(self.words)

    def of_language(self, code: str) -> list[str]:
        """The words of a language."""
        return [self.words[number] for number in np.flatnonzero(self.languages == code).tolist()]

    def settled(self, code: str, before: Vocabulary) -> Vocabulary:
        """These words; those of no language are in the given one, the first of them perhaps `before` already."""
        rows = np.flatnonzero(self.languages == UNDETERMINED)
        if not len(rows):
            return self
        first = rows[: np.searchsorted(rows, len(before))]
        same = np.array_equal(before.codes, self.codes[: len(before)]) and (before.languages[first] == code).all()
        carried = before.chosen(first if same else first[:0])
        settled = carried.followed_by([_settled(self.words[row], code) for row in rows[len(carried) :].tolist()])
        words, stems, plain, languages = list(self.words), self.stems.copy(), self.plain.copy(), self.languages.copy()
        for row, word in zip(rows.tolist(), settled.words, strict=True):
            words[row] = word
        stems[rows], plain[rows], languages[rows] = settled.stems, settled.plain, code
        return replace(self, words=words, stems=stems, plain=plain, languages=languages)

    def followed_by(self, words: Sequence[str]) -> Vocabulary:
        """These words and others behind them; the others are looked at, these are not again."""
        columns: dict[str, list[NDArray[Any]]] = {name: [getattr(self, name)] for name in _OF_WORDS}
        for start in range(0, len(words), _WORDS_AT_ONCE):  # the keys of many at once take 40 bytes a letter
            part = words[start : start + _WORDS_AT_ONCE]
            languages = _languages_of_tagged(part)
            spelled, stems = _stems_of_tagged(part, languages)
            plain = np.array([len(word) > 2 and not word.isdigit() for word in spelled], dtype=bool) & (stems != 0)
            caseless = [not word.isascii() and unicodedata.category(word[0]) == "Lo" for word in spelled]
            keys = word_keys(part), word_keys(list(map(plain_key, spelled)))
            new = (*keys, stems, plain, np.array(caseless, dtype=bool), languages)
            for name, column in zip(_OF_WORDS, new, strict=True):
                columns[name].append(column)
        return Vocabulary([*self.words, *words], **{name: np.concatenate(parts) for name, parts in columns.items()})

    def numbers(self, others: Vocabulary) -> IntArray:
        """Number of each of some words; -1 for those that are not here."""
        numbers_here = positions_in(self.codes, others.codes)
        for position in np.flatnonzero(numbers_here >= 0).tolist():
            if self.words[int(numbers_here[position])] != others.words[position]:  # two words of one key
                numbers_here[position] = -1
        return numbers_here

    def chosen(self, numbers: IntArray) -> Vocabulary:
        """Some of the words, in this order."""
        words = [self.words[number] for number in numbers.tolist()]
        return Vocabulary(words, *(getattr(self, name)[numbers] for name in _OF_WORDS))


_LANGUAGE_MARK = "\0"  # Stands between a word and the code of its language, if that is not English


def tagged_words(words: Sequence[str], spoken: Language) -> Sequence[str]:
    """Words of `Language.words`, each with its language."""
    return words if spoken.code == ENGLISH else [f"{word}{_LANGUAGE_MARK}{spoken.code}" for word in words]


def _settled(word: str, code: str) -> str:
    """A word in a language, if it was of none."""
    spelled, tag, stated = word.partition(_LANGUAGE_MARK)
    return word if stated != UNDETERMINED else spelled if code == ENGLISH else f"{spelled}{tag}{code}"


def _languages_of_tagged(words: Sequence[str]) -> NDArray[np.str_]:
    if _LANGUAGE_MARK not in "".join(words):  # all are English
        return np.full(len(words), ENGLISH, dtype="U3")
    return np.array([word.partition(_LANGUAGE_MARK)[2] or ENGLISH for word in words], dtype="U3")


def _stems_of_tagged(words: Sequence[str], languages: NDArray[np.str_]) -> tuple[list[str], HashArray]:
    """Words without their language, and the keys of their stems."""
    spelled = list(map(untagged, words))
    stems = np.zeros(len(words), dtype=np.uint64)
    for code in np.unique(languages).tolist():
        rows = np.flatnonzero(languages == code)
        stems[rows] = stem_keys([spelled[row] for row in rows.tolist()], language(code))
    return spelled, stems


def untagged(word: str) -> str:
    """A word without its language."""
    return word.partition(_LANGUAGE_MARK)[0]


def stem_keys(words: Sequence[str], spoken: Language) -> HashArray:
    """Key of every word's stem; 0 for function words, which say nothing."""
    keys = word_keys(spoken.stems(words))
    keys[[word in spoken.function_words for word in words]] = 0
    return keys


@dataclass(frozen=True, slots=True)
class PassageWords:
    """Words of passages, sentence by sentence. About 0.6 kB per passage of 100 words."""

    ids: IdArray  # `[passages]`; of title and text: metadata are not read here
    parts: Mapping[str, Ragged]  # see `_PART_NAMES`
    names: Sequence[str]  # title without brackets, or what the text opens with; may be empty
    vocabulary: Vocabulary  # words by number
    looked_at: int = 0  # how many passages were read since this was loaded or first made

    @property
    def words(self) -> Lists:
        """Numbers of the words of every passage, those of its title first."""
        return self._numbers("words")

    @property
    def languages(self) -> NDArray[np.str_]:
        """Code of the language of every passage, that of its first word; English without any."""
        words = self.words
        rows = np.flatnonzero(words.sizes())
        languages = np.full(len(words), ENGLISH, dtype="U3")
        languages[rows] = self.vocabulary.languages[words.values[words.starts[rows]]]
        return languages

    @property
    def name_words(self) -> Lists:
        """Numbers of the words of what every passage is about."""
        return self._numbers("name_words")

    @property
    def headings(self) -> Lists:
        """Numbers of the words of every heading, passage by passage."""
        return Lists.of_lengths(self.parts["headings"]["lengths"], self.parts["heading_words"]["numbers"])

    def _numbers(self, part: str) -> Lists:
        return Lists.of_lengths(self.parts[part].counts, self.parts[part]["numbers"])

    @classmethod
    def of(cls, view: View, positions: IntArray) -> PassageWords:
        """Words of some passages of a pool; the texts are read only of those that the snapshot before did not have."""
        saved = CarriedArrays("passage-words-15", _arrays, _of_arrays, lambda words: (len(words.ids), words.looked_at))
        words = view.cached_incremental("passage words", lambda before: cls._read(view, positions, before), saved)
        return view.cached_incremental("settled words", words.settled)

    def settled(self, before: PassageWords | None) -> PassageWords:
        """These passages; those whose language nothing tells are in that of most others."""
        main = ranked_languages(self.languages.tolist())[0]
        return replace(self, vocabulary=self.vocabulary.settled(main, before.vocabulary if before else Vocabulary()))

    @classmethod
    def _read(cls, view: View, positions: IntArray, before: PassageWords | None) -> PassageWords:
        ids = view.ids[positions]
        if before is None or not len(before.ids):
            return cls.read(ids, _Units(view, positions), view.runner)
        rows = positions_in(id_codes(before.ids), id_codes(ids))
        new = rows < 0
        read = cls.read(ids[new], _Units(view, positions[new]), view.runner).spelled_by(before.vocabulary)
        rows[new] = len(before.ids) + np.arange(len(read.ids))
        names = [*before.names, *read.names]
        words = cls(
            ids,
            {name: part.chosen(read.parts[name], rows) for name, part in before.parts.items()},
            [names[row] for row in rows.tolist()],
            read.vocabulary,
            before.looked_at + read.looked_at,
        )
        return words if len(ids) - len(read.ids) == len(before.ids) else words.with_own_words()

    @classmethod
    def read(cls, ids: IdArray, units: Sequence[Unit], runner: Runner | None) -> PassageWords:
        """Read passages, in parts wherever the runner works; words are numbered as they first appear."""
        read = results_of(runner, _spelled, None, units) or [_spelled(None, ())]
        if isinstance(runner, ProcessRunner):
            runner.close()  # what follows is done in this process, and takes memory
        numbers: dict[str, int] = {}
        for part in read:
            number = np.array([numbers.setdefault(word, len(numbers)) for word in part.words], dtype=np.int32)
            for name in _OF_NUMBERS:
                columns = {**part.arrays[name].columns, "numbers": number[part.arrays[name]["numbers"]]}
                part.arrays[name] = Ragged(part.arrays[name].counts, columns)
        return cls(
            ids,
            {name: Ragged.joined([part.arrays.pop(name) for part in read]) for name in _PART_NAMES},
            [name for part in read for name in part.names],
            Vocabulary().followed_by(list(numbers)),
            len(ids),
        )

    def spelled_by(self, vocabulary: Vocabulary) -> PassageWords:
        """These passages, their words numbered as in a vocabulary; behind it stand those that it does not have."""
        number = vocabulary.numbers(self.vocabulary)
        new = np.flatnonzero(number < 0)
        number[new] = len(vocabulary) + np.arange(len(new))
        extended = vocabulary.followed_by([self.vocabulary.words[position] for position in new.tolist()])
        return self._renumbered(number, extended)

    def with_own_words(self) -> PassageWords:
        """These passages, without the words of the vocabulary that none of them has any more."""
        used = np.zeros(len(self.vocabulary), dtype=bool)
        for name in _OF_NUMBERS:
            used[self.parts[name]["numbers"]] = True
        if used.all():
            return self
        return self._renumbered(np.cumsum(used) - 1, self.vocabulary.chosen(np.flatnonzero(used)))

    def _renumbered(self, number: IntArray, vocabulary: Vocabulary) -> PassageWords:
        parts = dict(self.parts)
        for name in _OF_NUMBERS:
            columns = {**parts[name].columns, "numbers": number[parts[name]["numbers"]].astype(np.int32)}
            parts[name] = Ragged(parts[name].counts, columns)
        return replace(self, parts=parts, vocabulary=vocabulary)


class _Spelled(NamedTuple):
    """A part of the passages."""

    arrays: dict[str, Ragged]  # see `_PART_NAMES`
    names: list[str]
    words: list[str]  # by number


def _spelled(_: None, units: Sequence[Unit]) -> _Spelled:
    """Read some passages."""
    numbers = defaultdict[str, int](count().__next__)
    number = numbers.__getitem__
    words, marks = array("i"), array("i")
    lengths, sentences, names = list[int](), list[int](), list[str]()
    headings, spelled_names = list[list[list[int]]](), list[list[list[int]]]()
    fragments, fragment_words, fragment_counts = list[str](), list[int](), list[int]()
    code = list[bool]()
    for unit in units:
        title, pieces = titled_sentences(unit.title, unit.text)
        spoken = language(unit.language)
        names.append(" ".join(_name(title, unit.text).split()))
        spelled_names.append([_numbered(names[-1], spoken, number)])
        headings.append([_numbered(with_parts(heading), spoken, number) for heading in passage_headings(unit)])
        sentences.append(len(pieces))
        before, parts_before = len(words), len(fragments)
        parts = list(_fragments(title, pieces))
        code += _in_code(unit, parts)
        for sentence, part in parts:
            spelled, capitals = _words(with_parts(part), spoken)
            words.extend(map(number, tagged_words(spelled, spoken)))
            marks.extend([2 * sentence + capital for capital in capitals])
            fragments.append(" ".join(spelled))
            fragment_words.append(len(spelled))
        lengths.append(len(words) - before)
        fragment_counts.append(len(fragments) - parts_before)
    arrays = {
        "words": _ragged(lengths, numbers=np.array(words, dtype=np.int32), marks=np.array(marks, dtype=np.int32)),
        "sentences": _ragged(sentences),
        "meanings": _meanings(list(numbers), words, marks, lengths, np.array(sentences, dtype=np.int64)),
        "headings": _ragged(map(len, headings), lengths=_int32(map(len, chain.from_iterable(headings)))),
        "heading_words": _nested_words(headings),
        "name_words": _nested_words(spelled_names),
        "fragments": _ragged(
            fragment_counts,
            hashes=np.array([hash64(fragment) for fragment in fragments], dtype=np.uint64),
            lengths=_int32(fragment_words),
            code=_int32(code),
        ),
    }
    return _Spelled(arrays, names, list(numbers))


def text_meaning(text: str, spoken: Language) -> FloatArray:
    """Meaning of a text, `[MEANING_WIDTH]`, of length 1; zeros in other languages than English."""
    words = tagged_words(_words(with_parts(text), spoken)[0], spoken)
    return np.asarray(unit_rows(_meaning_vectors(words).sum(axis=0, keepdims=True))[0])


def _meaning_vectors(words: Sequence[str]) -> FloatArray:
    """Meanings of tagged words, `[words, MEANING_WIDTH]`; zeros in other languages than English."""
    split = (word.partition(_LANGUAGE_MARK) for word in words)
    return word_vectors([word if code in ("", UNDETERMINED) else "" for word, _, code in split])[:, :MEANING_WIDTH]


def _meanings(
    words: Sequence[str], numbers: Sequence[int], marks: Sequence[int], lengths: Sequence[int], sentences: IntArray
) -> Ragged:
    """Meanings of every `MEANT_SENTENCES` of passages, each with the title, as `codes` `[..., MEANING_WIDTH]`.

    `numbers` are those of the words of all passages, `lengths` of them each; for `marks` see `_PART_NAMES`.
    """
    rows = -(-sentences // MEANT_SENTENCES)
    titles = np.cumsum(rows + 1) - rows - 1  # the title of a passage is its first row
    owners = titles.repeat(lengths) - (-(np.array(marks, dtype=np.int64) // 2) // MEANT_SENTENCES)
    counts = np.bincount(owners, minlength=int(rows.sum()) + len(rows))
    columns = np.array(numbers, dtype=np.int64), np.append(0, np.cumsum(counts))
    vectors = weighted_sums(np.ones(len(numbers), dtype=np.float32), *columns, _meaning_vectors(words))
    titled = (vectors + vectors[titles].repeat(rows + 1, axis=0)) * (counts > 0)[:, None]
    codes = np.rint(MEANING_SCALE * np.delete(unit_rows(titled), titles, axis=0))
    return Ragged(rows, {"codes": codes.astype(np.int8)})


_PART_NAMES = ("words", "sentences", "meanings", "headings", "heading_words", "name_words", "fragments")
"""`words`, those of the title first: number in the vocabulary, and mark: 2 * (number of its sentence in the passage +
1), 0 in the title; 1 more where it begins with a capital letter, a digit or a letter without case. `meanings`: see
`_meanings`. `headings`: how many words each has. `fragments`: hash and number of words of every sentence, or line of
one; a passage's first is its title.
"""
_OF_NUMBERS = ("words", "heading_words", "name_words")  # Parts with numbers of words


def _ragged(counts: Iterable[int], **columns: NDArray[Any]) -> Ragged:
    return Ragged(np.fromiter(counts, dtype=np.int64), columns)


def _int32(values: Iterable[int]) -> Int32Array:
    return np.fromiter(values, dtype=np.int32)


def _nested_words(groups: Sequence[Sequence[Sequence[int]]]) -> Ragged:
    """All words of the lists of each group, one after the other."""
    lists = chain.from_iterable(groups)
    return _ragged((sum(map(len, group)) for group in groups), numbers=_int32(chain.from_iterable(lists)))


def _fragments(title: str, sentences: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Lines of a title (number 0) and of sentences (from 1), with those numbers."""
    return ((sentence, part) for sentence, piece in enumerate((title, *sentences)) for part in piece.split("\n"))


def passage_fragments(unit: Unit) -> list[str]:
    """Sentences of a passage and lines of them, its title first, in the order of `PassageWords.fragments`."""
    return [part for _, part in _fragments(*titled_sentences(unit.title, unit.text))]


def _in_code(unit: Unit, fragments: Sequence[tuple[int, str]]) -> list[bool]:
    """Mark the fragments of a passage that stand in code."""
    blocks = [unit.text[block.start : block.end] for block in unit.blocks if block.kind == CODE]
    if not blocks:
        return [False] * len(fragments)
    text, spans, start = without_link_targets(unit.text), list[tuple[int, int]](), 0
    for block in map(without_link_targets, blocks):
        start = text.find(block, start)
        spans.append((start, start + len(block)))
        start += len(block)
    marks, position = list[bool](), 0
    for sentence, part in fragments:
        position = max(position, text.find(part, position)) if sentence else position
        marks.append(sentence > 0 and any(first <= position < end for first, end in spans))
        position += len(part) if sentence else 0
    return marks


def _name(title: str, text: str) -> str:
    """Subject of a passage: its title without brackets, or the name its text opens with; empty for a section path."""
    if is_path(title):
        return ""
    return base_title(title) if title else opening_name(text)


_OF_WORDS = ("codes", "keys", "stems", "plain", "caseless", "languages")
_WORDS_AT_ONCE = 1 << 14


def _arrays(passages: PassageWords) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {"ids": passages.ids}
    for name, part in passages.parts.items():
        arrays |= {key: _small(values) for key, values in part.arrays(name).items()}
    arrays |= {name: getattr(passages.vocabulary, name) for name in _OF_WORDS}
    for name, texts in (("names", passages.names), ("spelled", passages.vocabulary.words)):
        arrays[name] = np.frombuffer(json.dumps(texts).encode(), dtype=np.uint8)
    return arrays


def _of_arrays(arrays: Mapping[str, NDArray[Any]]) -> PassageWords:
    parts = {name: _part(name, arrays) for name in _PART_NAMES}
    names, words = (json.loads(arrays[name].tobytes()) for name in ("names", "spelled"))
    return PassageWords(arrays["ids"], parts, names, Vocabulary(words, *(arrays[name] for name in _OF_WORDS)))


def _part(name: str, arrays: Mapping[str, NDArray[Any]]) -> Ragged:
    part = Ragged.from_arrays(name, arrays)
    kinds = {"hashes": np.uint64, "codes": np.int8}
    columns = {key: column.astype(kinds.get(key, np.int32)) for key, column in part.columns.items()}
    return Ragged(part.counts.astype(np.int64), columns)


def _small(numbers: NDArray[Any]) -> NDArray[Any]:
    """Numbers of at least 0 in as few bytes as hold the largest; those of vectors as they are."""
    return numbers if numbers.dtype == np.int8 else numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


class _Units(Sequence["Unit"]):
    """Units of a snapshot, read when they are asked for."""

    def __init__(self, view: View, positions: IntArray) -> None:
        self._view, self._positions = view, positions

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, index: Any) -> Any:
        units = self._view.units(np.atleast_1d(self._positions[index]))
        return units if isinstance(index, slice) else units[0]


def _numbered(name: str, spoken: Language, number: Callable[[str], int]) -> list[int]:
    """Numbers of the words of a name or heading."""
    return list(map(number, tagged_words(spoken.words(name.replace("&", " and ")), spoken)))


def _words(text: str, spoken: Language) -> tuple[list[str], list[int]]:
    """Words and whether they look like parts of a name."""
    raw = find_words(text.replace("&", " And ") if "&" in text else text)
    joined = " ".join(raw)
    if text.isascii() or (joined.isascii() and spoken.code != "tr"):
        return joined.lower().split(), [word < "a" for word in raw]  # small letters come last in ASCII
    words: list[str] = []
    capital: list[int] = []
    for word in raw:
        parts = spoken.words(word)
        words += parts
        capital += [not word[0].islower()] * len(parts)
    return words, capital
