"""Names of a pool: what is spelled where, and which sentence names which entity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arrays.grouping import (
    distinct,
    id_codes,
    numbered,
    places_in,
    positions_in,
    ranges,
    run_starts,
    stable_argsort,
)
from sire_core.arrays.lists import Lists, Ragged, arrays_of, record_of, word_keys
from sire_core.extraction.foreign_names import CAPITALISED_NOUNS
from sire_core.protocols import BoolArray, CarriedArrays, HashArray, IdArray, Int32Array, IntArray, View
from sire_core.recipes.sire.passage_arrays import (
    LONGEST_NAME,
    PassageWords,
    Vocabulary,
    longer_keys,
    name_words,
    untagged,
)
from sire_core.text.languages import ENGLISH
from sire_core.types import digest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.knowledge.edge_columns import NameLists
    from sire_core.knowledge.entity_graph import EntityGraph

_PARSED_LISTS = 5000  # Lists whose names are words in memory at once
_NAME_COLUMNS = {"keys": np.uint64, "lengths": np.int32, "whole": np.bool_}


@dataclass(frozen=True, slots=True)
class NameKeys:
    """Names of lists. About 40 bytes per list."""

    hashes: HashArray = field(
        default_factory=lambda: np.zeros(0, dtype=np.uint64)
    )  # of the lists, ascending, `[lists]`
    beginnings: Ragged = field(default_factory=lambda: Ragged.of((), _NAME_COLUMNS))
    parsed: int = 0  # how many lists were parsed since this was loaded or first made

    @classmethod
    def of(cls, view: View, lists: NameLists) -> NameKeys:
        """Name keys of the lists of a pool; parses only lists new since the last snapshot."""
        saved = CarriedArrays("name-keys-2", arrays_of, _of_arrays, lambda keys: (len(keys.hashes), keys.parsed))
        keys: NameKeys = view.cached_incremental("name keys", lambda before: (before or cls()).following(lists), saved)
        return keys

    def following(self, lists: NameLists) -> NameKeys:
        """These lists and no others, parsed as far as they are not here already."""
        needed, first, _ = numbered(lists.hashes)
        positions = positions_in(self.hashes, needed)
        new = positions < 0
        unknown = np.array_split(first[new], 1 + int(new.sum()) // _PARSED_LISTS)
        parsed = Ragged.joined([_parsed(lists.names_of(part)) for part in unknown])
        positions[new] = len(self.hashes) + np.arange(len(parsed.counts))
        return NameKeys(needed, self.beginnings.chosen(parsed, positions), self.parsed + len(parsed.counts))


def beginnings(words: HashArray, lengths: IntArray) -> tuple[HashArray, IntArray]:
    """The key of every name's first word, of its first two words and so on, and of how many words each is."""
    starts = np.cumsum(lengths) - lengths
    keys = np.zeros(len(words), dtype=np.uint64)
    spelled = np.zeros(len(lengths), dtype=np.uint64)
    for position in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > position)
        at = starts[longer] + position
        spelled[longer] = longer_keys(spelled[longer], words[at])
        keys[at] = spelled[longer]
    return keys, np.arange(len(words)) - np.repeat(starts, lengths) + 1


def _of_arrays(arrays: Mapping[str, NDArray[Any]]) -> NameKeys:
    return record_of(NameKeys, arrays, parsed=0)


def _parsed(lists: Sequence[Sequence[str]]) -> Ragged:
    names = {name: name_words(name) for name in dict.fromkeys(chain.from_iterable(lists))}
    spelled = [names[name] for list_of_names in lists for name in list_of_names]
    lengths = np.array([len(words) for words in spelled], dtype=np.int64)
    number = {word: position for position, word in enumerate(dict.fromkeys(chain.from_iterable(names.values())))}
    words = np.array([number[word] for word in chain.from_iterable(spelled)], dtype=np.int64)
    keys, positions = beginnings(word_keys(list(number))[words], lengths)
    sums = np.concatenate([[0], np.cumsum(lengths)])
    ends = np.cumsum([0, *map(len, lists)])
    return Ragged(
        np.diff(sums[ends]).astype(np.int64),
        {"keys": keys, "lengths": positions.astype(np.int32), "whole": positions == np.repeat(lengths, lengths)},
    )


_MIN_TABLE, _MAX_TABLE, _BITS_PER_NAME = 1 << 12, 1 << 22, 16
"""Sizes of the smallest and the largest table of `Spelling`, and entries for each name."""
_PASSAGES_AT_ONCE = 2000  # Passages in which names are looked for at once
_OF_WORDS = ("words", "capital", "passages", "sentences")


@dataclass(frozen=True, slots=True)
class SpelledText:
    """All words of a pool in their order, `[words]` each."""

    words: Int32Array  # its number in the vocabulary
    capital: BoolArray  # whether it looks like part of a name
    passages: Int32Array  # its passage
    sentences: Int32Array  # its sentence, numbered through all passages; -1 in titles
    sentence_passages: Int32Array  # passage of every sentence
    sentence_sizes: IntArray  # words of every sentence
    vocabulary: Vocabulary  # words by number

    @classmethod
    def of(cls, passages: PassageWords) -> SpelledText:
        """Spell out the words of passages."""
        words, sentences = passages.parts["words"], passages.parts["sentences"]
        first = sentences.starts().astype(np.int32) - np.int32(1)
        numbers = (words["marks"] >> 1) + first.repeat(words.counts)
        numbers[words["marks"] < 2] = -1
        runs = np.flatnonzero(run_starts(numbers))  # a title, whose number is -1, or a sentence each
        sizes = np.zeros(int(sentences.counts.sum()) + 1, dtype=np.int64)
        sizes[numbers[runs]] = np.diff(runs, append=len(numbers))
        return cls(
            words=words["numbers"],
            capital=(words["marks"] & 1).astype(bool),
            passages=np.arange(len(words.counts), dtype=np.int32).repeat(words.counts),
            sentences=numbers,
            sentence_passages=sentences.groups().astype(np.int32),
            sentence_sizes=sizes[:-1],
            vocabulary=passages.vocabulary,
        )

    def __len__(self) -> int:
        """Number of words."""
        return len(self.words)

    def sizes(self, marked: BoolArray) -> IntArray:
        """Return the number of marked words of every sentence."""
        # Titles, whose number is -1, come first.
        return np.bincount(self.sentences[marked] + 1, minlength=len(self.sentence_passages) + 1)[1:]

    def of_passages(self, wanted: BoolArray) -> SpelledText:
        """The words of some passages; passages and sentences keep their numbers."""
        if wanted.all():
            return self
        rows = np.flatnonzero(wanted).astype(self.passages.dtype)
        first, last = (np.searchsorted(self.passages, rows, side=side) for side in ("left", "right"))
        words = ranges(first, last - first)
        return replace(self, **{name: getattr(self, name)[words] for name in _OF_WORDS})

    def parts(self) -> Iterator[SpelledText]:
        """The words of some passages after the other."""
        starts = np.flatnonzero(run_starts(self.passages))[::_PASSAGES_AT_ONCE]
        for start, end in pairwise([*starts.tolist(), len(self)]):
            arrays = {name: getattr(self, name)[start:end] for name in _OF_WORDS}
            yield replace(self, **arrays)


@dataclass(frozen=True, slots=True)
class _SortedNames:
    """Names of so many words."""

    keys: HashArray  # different ones, ascending
    starts: IntArray  # first place of each among the entities
    counts: IntArray  # how many entities each has; 0 behind the last
    owners: IntArray  # entities

    @classmethod
    def of(cls, keys: HashArray, owners: IntArray) -> _SortedNames:
        starts = np.flatnonzero(run_starts(keys))
        counts = np.diff(np.append(starts, len(keys)))
        return cls(np.append(keys[starts], np.uint64(0)), np.append(starts, 0), np.append(counts, 0), owners)

    def places(self, spelled: HashArray) -> tuple[IntArray, IntArray]:
        """First place among the entities, and how many there are, of each of some keys."""
        rows = np.searchsorted(self.keys[:-1], spelled)
        return self.starts[rows], np.where(self.keys[rows] == spelled, self.counts[rows], 0)


@dataclass(frozen=True, slots=True)
class Spelling:
    """Finds names in text; a table of bits rules out the words that begin no name."""

    names: Sequence[_SortedNames]  # names of one word, of two and so on
    bits: NDArray[np.uint16]  # by low bits of a key: lengths of names with them, and above of what begins longer ones
    words: HashArray  # keys of the words of the vocabulary as phrases of one word
    word_bits: NDArray[np.uint16]  # bits of these
    word_names: tuple[IntArray, IntArray]  # number and length of the list of entities of each word that is a name

    @classmethod
    def of(
        cls,
        keys: HashArray,
        owners: IntArray,
        lengths: IntArray,
        begun: tuple[HashArray, IntArray],
        vocabulary: Vocabulary,
    ) -> Spelling:
        """Build it from the names of `EvidenceNames`, for texts of a vocabulary."""
        names = []
        beginnings, words_begun = begun
        size = 1 << (_BITS_PER_NAME * (len(keys) + len(beginnings))).bit_length()
        bits = np.zeros(min(max(size, _MIN_TABLE), _MAX_TABLE), dtype=np.uint16)
        for length in range(1, LONGEST_NAME + 1):
            mine = lengths == length
            names.append(_SortedNames.of(keys[mine], owners[mine]))
            bits[_low(keys[mine], bits)] |= np.uint16(1 << (length - 1))
            bits[_low(beginnings[words_begun == length], bits)] |= np.uint16(1 << (LONGEST_NAME + length - 1))
        words = longer_keys(np.zeros(len(vocabulary), dtype=np.uint64), vocabulary.keys)
        return cls(names, bits, words, bits[_low(words, bits)], names[0].places(words))

    def places(self, texts: SpelledText) -> Iterator[tuple[IntArray, IntArray]]:
        """Where sentences spell names of one word, of two and so on: the first word and the entity."""
        begins, keys = self.word_bits != 0, texts.vocabulary.keys
        starts = np.flatnonzero(begins[texts.words] & (texts.sentences >= 0))
        spelled = self.words[texts.words[starts]]
        for length, names in enumerate(self.names, start=1):
            # There are far fewer different words than words.
            words = texts.words[starts] if length == 1 else None
            bits = self.bits[_low(spelled, self.bits)] if words is None else self.word_bits[words]
            named = np.flatnonzero(bits & np.uint16(1 << (length - 1)))
            if words is None:
                first, counts = names.places(spelled[named])
            else:
                first, counts = (column[words[named]] for column in self.word_names)
            yield np.repeat(starts[named], counts), names.owners[ranges(first, counts)]
            last = np.minimum(starts + length, len(texts) - 1)
            longer = (bits & np.uint16(1 << (LONGEST_NAME + length - 1))) != 0
            longer &= (texts.sentences[last] == texts.sentences[starts]) & (last == starts + length)
            starts, spelled = starts[longer], longer_keys(spelled[longer], keys[texts.words[last[longer]]])


def _low(keys: HashArray, table: NDArray[np.uint16]) -> IntArray:
    return np.asarray(keys & np.uint64(len(table) - 1), dtype=np.int64)


def stands_alone(texts: SpelledText, starts: IntArray) -> BoolArray:
    """True if capitalised words stand beside no other, as in `Paris Hilton`, and are neither short nor numbers."""
    last = len(texts) - 1
    after, before = np.minimum(starts + 1, last), np.maximum(starts - 1, 0)
    words = texts.vocabulary
    joined = _named_beside(texts, after, starts) & (after > starts)
    led = _named_beside(texts, before, starts) & (before < starts)
    telling = words.stems[texts.words[before]] != 0
    alone = ~joined & ~(led & telling) & words.plain[texts.words[starts]]
    return np.asarray(alone, dtype=bool)


def _named_beside(texts: SpelledText, beside: IntArray, starts: IntArray) -> BoolArray:
    """True if a word of the same sentence is capitalised."""
    capital = texts.capital[beside] & ~texts.vocabulary.caseless[texts.words[beside]]
    return np.asarray(capital & (texts.sentences[beside] == texts.sentences[starts]), dtype=bool)


@dataclass(frozen=True, slots=True)
class EvidenceNames:
    """Names of a pool and the entities they stand for; entities that only texts open with stand behind the graph's."""

    keys: HashArray  # of names of up to `LONGEST_NAME` words, ascending
    owners: IntArray  # entity of each name
    lengths: IntArray  # words of each name
    begun: tuple[HashArray, IntArray]  # keys of what names begin with, and of how many words each is
    rows: HashArray  # keys of the beginnings of names, word by word; the last of each is the name
    ends: IntArray  # row of each name
    own: IntArray  # entity that each passage is about, -1 for none
    labels: Sequence[str]  # names of the entities that only texts open with
    ids: IdArray  # of the entities

    @classmethod
    def of(cls, passages: PassageWords, graph: EntityGraph, name_keys: NameKeys) -> EvidenceNames:
        """Collect the names that passages spell out, and those that titles and first sentences give."""
        width = max(1, len(name_keys.hashes))
        lists = places_in(name_keys.hashes, graph.names.lists.hashes)[graph.names.numbers]
        pairs = distinct(graph.entities.astype(np.int64) * width + lists)
        rows = name_keys.beginnings.take(pairs % width)
        whole = np.flatnonzero(rows["whole"])
        begins = np.flatnonzero(~rows["whole"])
        keys, lengths, owners = rows["keys"][whole], rows["lengths"][whole], (pairs // width).repeat(rows.counts)[whole]
        opened = _opened(passages, graph, keys, owners)
        ends = np.concatenate([whole, len(rows["keys"]) + opened.ends])
        columns = (keys, opened.keys), (lengths, opened.lengths), (owners, opened.owners)
        keys, lengths, owners = map(np.concatenate, columns)
        order = stable_argsort(keys)  # owners ascend
        order = order[lengths[order] <= LONGEST_NAME]
        keys, lengths, owners, ends = keys[order], lengths[order], owners[order], ends[order]
        first = run_starts(keys, owners)
        return cls(
            keys=keys[first],
            owners=owners[first],
            lengths=lengths[first],
            begun=(
                np.concatenate([rows["keys"][begins], opened.begun[0]]),
                np.concatenate([rows["lengths"][begins], opened.begun[1]]),
            ),
            rows=np.concatenate([rows["keys"], opened.rows]),
            ends=ends[first],
            own=opened.own,
            labels=opened.labels,
            ids=np.concatenate([graph.ids, opened.ids]),
        )

    def chosen(self, names: IntArray) -> EvidenceNames:
        """Some of the names, which are looked for as all are."""
        lengths, ends = self.lengths[names], self.ends[names]
        begun = self.rows[ranges(ends - lengths + 1, lengths - 1)]
        positions = ranges(np.ones(len(names), dtype=np.int64), lengths - 1)
        return replace(
            self,
            keys=self.keys[names],
            owners=self.owners[names],
            lengths=lengths,
            begun=(begun, positions),
            ends=ends,
        )

    def spelling(self, texts: SpelledText) -> Spelling | EvidenceNames:
        """Finder of the names in texts; few texts are not worth a table of all names."""
        if len(texts) * LONGEST_NAME < len(self.keys):
            return self
        return Spelling.of(self.keys, self.owners, self.lengths, self.begun, texts.vocabulary)

    def places(self, texts: SpelledText) -> Iterator[tuple[IntArray, IntArray]]:
        """As `Spelling.places`, by looking up all phrases of the texts."""
        starts = np.flatnonzero(texts.sentences >= 0)
        spelled = np.zeros(len(starts), dtype=np.uint64)
        for length in range(1, LONGEST_NAME + 1):
            last = starts + length - 1
            same = last < len(texts)
            same[same] = texts.sentences[last[same]] == texts.sentences[starts[same]]
            starts, last = starts[same], last[same]
            spelled = longer_keys(spelled[same], texts.vocabulary.keys[texts.words[last]])
            first = np.searchsorted(self.keys, spelled)
            named = np.flatnonzero(np.append(self.keys, np.uint64(0))[first] == spelled)
            counts = np.searchsorted(self.keys, spelled[named], side="right") - first[named]
            yield starts[named].repeat(counts), self.owners[ranges(first[named], counts)]

    def entities(self, texts: SpelledText, graph: tuple[IntArray, IntArray], mentions: Lists) -> Lists:
        """Entities of every passage."""
        owners = texts.sentence_passages[mentions.owners()]
        mine = np.flatnonzero(self.own >= 0)
        return Lists.of_pairs(
            np.concatenate([owners, mine, graph[0]]),
            np.concatenate([mentions.values.astype(np.int64), self.own[mine], graph[1]]),
            len(self.own),
        )


def _opened(passages: PassageWords, graph: EntityGraph, keys: HashArray, owners: IntArray) -> EvidenceNames:
    """Subjects of passages without a title in the graph: its entities where it has the name, else new ones."""
    subjects = np.full(len(passages.names), -1, dtype=np.int64)
    subjects[graph.passages[graph.titles]] = graph.entities[graph.titles]
    rows = np.flatnonzero((subjects < 0) & (passages.name_words.sizes() > 0))
    words = passages.name_words.chosen(rows)
    lengths = words.sizes()
    begun = beginnings(passages.vocabulary.keys[words.values], lengths)
    named, first, inverse = numbered(begun[0][words.starts[1:] - 1])
    order = stable_argsort(keys)  # owners ascend
    positions = np.searchsorted(keys[order], named)
    entities = np.append(owners[order], -1)[positions]
    new = np.flatnonzero((np.append(keys[order], np.uint64(0))[positions] != named) | (entities < 0))
    new = new[np.argsort(first[new])]
    entities[new] = len(graph.ids) + np.arange(len(new))
    subjects[rows] = entities[inverse]
    at = first[new]
    own_words = passages.vocabulary.words
    spelled = [" ".join(untagged(own_words[word]) for word in words.of(row).tolist()) for row in at.tolist()]
    return EvidenceNames(
        keys=named[new],
        owners=entities[new],
        lengths=lengths[at],
        begun=begun,
        rows=begun[0],
        ends=words.starts[1:][at] - 1,
        own=subjects,
        labels=[" ".join(passages.names[row].split()) for row in rows[at].tolist()],
        ids=np.array([digest("opening", name) for name in spelled], dtype="S24"),
    )


_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@dataclass(frozen=True, slots=True)
class SentenceNames:
    """Entities that sentences name, and all that this rests on beside the words of the passages.

    What sentences of a passage name follows from its words, from the entities that the graph has for it, and from the
    names spelled there: their entities, and which of them some passage is about. Where none of that differs from the
    snapshot before, it is carried over.
    """

    passages: HashArray  # codes of the passages, `[passages]`
    recorded: HashArray  # of every passage a hash of the entities that the graph has for it, and of its language
    sentences: IntArray  # how many sentences every passage has, `[passages]`
    codes: HashArray  # of the entities, by number
    keys: HashArray  # of the names, ascending, once for each entity that has it
    owners: IntArray  # entity of each name
    meanings: HashArray  # of each name a hash of its entity and of whether a passage is about that
    mentions: Lists  # entities that every sentence names
    scanned: int = 0  # how many passages were scanned since this was loaded or first made

    @classmethod
    def of(
        cls, view: View, passages: PassageWords, graph: EntityGraph, names: EvidenceNames, texts: SpelledText
    ) -> SentenceNames:
        """Sentence mentions of a pool; scans only passages new since the last snapshot."""
        pairs = graph.passages, graph.entities
        saved = CarriedArrays(
            "sentence-names-1",  # another number whenever another version would find other names in the same words
            arrays_of,
            lambda arrays: record_of(cls, arrays, scanned=0),
            lambda names: (len(names.passages), names.scanned),
        )
        sentence_names: SentenceNames = view.cached_incremental(
            "sentence names", lambda before: cls.following(before, passages, pairs, names, texts), saved
        )
        return sentence_names

    @classmethod
    def following(
        cls,
        before: SentenceNames | None,
        passages: PassageWords,
        recorded_pairs: tuple[IntArray, IntArray],
        names: EvidenceNames,
        texts: SpelledText,
        spoken: HashArray | None = None,
    ) -> SentenceNames:
        """Mentions of a pool; passages whose code in `spoken` differs from before are scanned again.

        `recorded_pairs` are passages, ascending, and the entities that the graph has for them.
        """
        about = np.zeros(len(names.ids), dtype=bool)
        about[names.own[names.own >= 0]] = True
        codes = id_codes(names.ids)
        ends = np.searchsorted(recorded_pairs[0], np.arange(len(passages.ids) + 1))
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(_mixed(codes[recorded_pairs[1]]))])
        result = cls(
            passages=id_codes(passages.ids),
            recorded=sums[ends[1:]] - sums[ends[:-1]] + (np.uint64(0) if spoken is None else spoken),
            sentences=passages.parts["sentences"].counts,
            codes=codes,
            keys=names.keys,
            owners=names.owners,
            meanings=_mixed(codes[names.owners] ^ about[names.owners].astype(np.uint64)),
            mentions=Lists.of_lengths((), ()),
        )
        rows_before = np.full(len(passages.ids), -1) if before is None else result._carried(before, names, texts)
        pairs = [_spelled(texts.of_passages(rows_before < 0), recorded_pairs, names, about)]
        if before is not None:
            pairs.append(result._taken(before, rows_before))
        sentences, entities = (np.concatenate(column) for column in zip(*pairs, strict=True))
        mentions = Lists.of_pairs(sentences, entities, int(passages.parts["sentences"].counts.sum()))
        scanned = int((rows_before < 0).sum()) + (0 if before is None else before.scanned)
        return replace(result, mentions=mentions, scanned=scanned)

    def _carried(self, before: SentenceNames, names: EvidenceNames, texts: SpelledText) -> IntArray:
        """The number that every passage had before; -1 for those in which names have to be looked for again."""
        rows_before = positions_in(before.passages, self.passages)
        rows_before[(rows_before >= 0) & (self.recorded != np.append(before.recorded, np.uint64(0))[rows_before])] = -1
        new, old = _differing(self, before), _differing(before, self)
        # A name that means something else, or nothing, matters where it was a mention of what it meant.
        lost = np.zeros(len(before.codes), dtype=bool)
        lost[before.owners[old]] = True
        owners = np.arange(len(before.passages)).repeat(before.sentences)
        owners = owners[before.mentions.owners()]
        again = np.zeros(len(before.passages) + 1, dtype=bool)
        again[owners[lost[before.mentions.values]]] = True
        rows_before[again[rows_before]] = -1
        spelling = names.chosen(np.flatnonzero(new)).spelling(texts)
        for part in texts.parts():
            for starts, _ in spelling.places(part):
                rows_before[part.passages[starts]] = -1
        return rows_before

    def _taken(self, before: SentenceNames, rows_before: IntArray) -> tuple[IntArray, IntArray]:
        """Sentences and entities of the passages that are known."""
        carried = np.flatnonzero(rows_before >= 0)
        counts = self.sentences[carried]
        first, first_before = (np.cumsum(counts_of) - counts_of for counts_of in (self.sentences, before.sentences))
        lists = before.mentions.chosen(ranges(first_before[rows_before[carried]], counts))
        sentences = ranges(first[carried], counts).repeat(lists.sizes())
        return sentences, positions_in(self.codes, before.codes)[lists.values]


def _mixed(values: HashArray) -> HashArray:
    """Hashes whose sums differ where the values do."""
    mixed = (values ^ (values >> _HALF)) * _MIX
    return np.asarray((mixed ^ (mixed >> _HALF)) * _MIX)


def _differing(one: SentenceNames, other: SentenceNames) -> BoolArray:
    """Which names of one snapshot mean something else in another, or nothing."""
    starts, theirs = np.flatnonzero(run_starts(one.keys)), np.flatnonzero(run_starts(other.keys))
    if not len(theirs) or not len(starts):
        return np.ones(len(one.keys), dtype=bool)
    keys, other_keys = one.keys[starts], other.keys[theirs]
    meanings, known_meant = np.add.reduceat(one.meanings, starts), np.add.reduceat(other.meanings, theirs)
    positions = np.minimum(np.searchsorted(other_keys, keys), len(other_keys) - 1)
    same = (other_keys[positions] == keys) & (known_meant[positions] == meanings)
    return np.repeat(~same, np.diff(np.append(starts, len(one.keys))))


def _spelled(
    texts: SpelledText, recorded_pairs: tuple[IntArray, IntArray], names: EvidenceNames, about: BoolArray
) -> tuple[IntArray, IntArray]:
    """Sentences and entities: those that the passage's record has, and what other passages are about.

    `recorded_pairs` are the passages and the entities of their records.
    """
    width = max(1, len(names.ids))
    recorded = np.append(distinct(recorded_pairs[0] * width + recorded_pairs[1]), -1)
    spelling = names.spelling(texts)
    pairs: list[tuple[Int32Array, IntArray]] = [(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64))]
    for part in texts.parts():
        covered = np.zeros(len(part), dtype=bool)
        for length, (starts, entities) in reversed(list(enumerate(spelling.places(part), start=1))):
            apart = np.flatnonzero(about[entities])
            inside = starts[apart, None] + np.arange(length)
            apart = apart[part.capital[inside].any(axis=1) & ~covered[inside].any(axis=1)]
            if length == 1:
                apart = apart[stands_alone(part, starts[apart])]
            codes = part.passages[starts].astype(np.int64) * width + entities
            keep = recorded[np.searchsorted(recorded[:-1], codes)] == codes
            keep[apart] = True
            covered[starts[apart, None] + np.arange(length)] = True
            pairs.append((part.sentences[starts[keep]], entities[keep]))
    sentences, entities = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return sentences.astype(np.int64), entities


@dataclass(frozen=True, slots=True)
class InflectedNames:
    """Names of passages in other languages than English, by the stems of their words (`Moskwa`, `Moskwy`)."""

    keys: HashArray  # of the stems of names as phrases, ascending
    owners: IntArray  # entity of each name
    mentions: Lists  # entities that every sentence names, in any form

    @classmethod
    def of(
        cls, view: View, passages: PassageWords, names: EvidenceNames, texts: SpelledText, mentions: Lists
    ) -> InflectedNames:
        """Look for names of passages in other forms; `mentions` has them in the form of the name."""
        vocabulary, languages = passages.vocabulary, passages.languages
        is_foreign = languages != ENGLISH
        has_name = (names.own >= 0) & (passages.name_words.sizes() > 0)
        # A single German noun with a capital letter is no name in another form.
        is_noun = np.isin(languages, CAPITALISED_NOUNS) & (passages.name_words.sizes() == 1)
        rows = np.flatnonzero(has_name & is_foreign & ~is_noun)
        if not len(rows):
            return cls(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64), mentions)
        stems = np.where(vocabulary.stems != 0, vocabulary.stems, vocabulary.keys)
        words = passages.name_words.chosen(rows)
        lengths = words.sizes()
        begun = beginnings(stems[words.values], lengths)
        subjects = np.full(len(names.own), -1, dtype=np.int64)
        subjects[rows] = names.own[rows]
        keys, owners, ends = begun[0][words.starts[1:] - 1], subjects[rows], words.starts[1:] - 1
        order = np.lexsort((owners, keys))
        order = order[lengths[order] <= LONGEST_NAME]
        order = order[run_starts(keys[order], owners[order])]
        keys, owners = keys[order], owners[order]
        inflected = replace(
            names,
            keys=keys,
            owners=owners,
            lengths=lengths[order],
            begun=begun,
            rows=begun[0],
            ends=ends[order],
            own=subjects,
        )
        stemmed = replace(texts, vocabulary=replace(vocabulary, keys=stems)).of_passages(is_foreign)
        nothing = np.zeros(0, dtype=np.int64)  # in another form a name needs its capital letter
        others = view.cached_incremental(
            "inflected names",
            lambda before: SentenceNames.following(
                before, passages, (nothing, nothing), inflected, stemmed, word_keys(languages.tolist())
            ),
        ).mentions
        if not len(others.values):
            return cls(keys, owners, mentions)
        sentences = np.concatenate([mentions.owners(), others.owners()])
        return cls(
            keys, owners, Lists.of_pairs(sentences, np.concatenate([mentions.values, others.values]), len(mentions))
        )
