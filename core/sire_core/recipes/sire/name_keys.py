"""`NameKeys`: the names that passages give to entities, as keys of their words and of how they begin."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.packed_words import word_keys
from sire_core.knowledge.ragged import Ragged
from sire_core.protocols import CarriedFiles
from sire_core.recipes.sire.evidence_texts import longer_keys, name_words
from sire_core.storage.array_file import compress_arrays, decompress_arrays

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints
    from sire_core.knowledge.edge_columns import NameLists
    from sire_core.protocols import View

    Keys = NDArray[np.uint64]

__all__ = ["NameKeys", "beginnings"]

_FILE = "names.npz"
_AT_ONCE = 5000
"""Lists whose names are words in memory at once."""
_COLUMNS = {"keys": np.uint64, "lengths": np.int32, "whole": np.bool_}


@dataclass(frozen=True, slots=True)
class NameKeys:
    """Names of lists. About 40 bytes per list.

    Attributes:
        hashes: Of the lists, ascending, `[lists]`.
        beginnings: Of every list the beginnings of its names, word by word: the key of each (see `phrase_keys`), of how
            many words it is, and whether it is the whole name.
        parsed: How many lists were parsed since this was loaded or first made.
    """

    hashes: Keys = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    beginnings: Ragged = field(default_factory=lambda: Ragged.of((), _COLUMNS))
    parsed: int = 0

    @classmethod
    def of(cls, view: View, lists: NameLists) -> NameKeys:
        """Of the lists of a pool; names are parsed only of those that the snapshot before did not have."""
        files = CarriedFiles("name-keys-1", _save, _load, lambda keys: (len(keys.hashes), keys.parsed))
        return view.cached_incremental("name keys", lambda before: (before or cls()).following(lists), files)

    def following(self, lists: NameLists) -> NameKeys:
        """These lists and no others, parsed as far as they are not here already."""
        needed, first = np.unique(lists.hashes, return_index=True)
        places = np.searchsorted(self.hashes, needed)
        new = np.append(self.hashes, np.uint64(0))[places] != needed
        new |= places == len(self.hashes)
        unknown = np.array_split(first[new], 1 + int(new.sum()) // _AT_ONCE)
        parsed = Ragged.joined([_parsed(lists.names_of(part)) for part in unknown])
        places[new] = len(self.hashes) + np.arange(len(parsed.counts))
        return NameKeys(needed, self.beginnings.chosen(parsed, places), self.parsed + len(parsed.counts))


def beginnings(words: Keys, lengths: Ints) -> tuple[Keys, Ints]:
    """The key of every name's first word, of its first two words and so on, and of how many words each is.

    Args:
        words: Hashes of the words of the names, one name after the other.
        lengths: How many words each name has.
    """
    starts = np.cumsum(lengths) - lengths
    keys = np.zeros(len(words), dtype=np.uint64)
    spelled = np.zeros(len(lengths), dtype=np.uint64)
    for place in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > place)
        at = starts[longer] + place
        spelled[longer] = longer_keys(spelled[longer], words[at])
        keys[at] = spelled[longer]
    return keys, np.arange(len(words)) - np.repeat(starts, lengths) + 1


def _save(keys: NameKeys, directory: Path) -> None:
    compress_arrays(directory / _FILE, {"hashes": keys.hashes, **keys.beginnings.arrays("beginnings")})


def _load(directory: Path) -> NameKeys:
    arrays = decompress_arrays(directory / _FILE)
    return NameKeys(arrays["hashes"], Ragged.from_arrays("beginnings", arrays))


def _parsed(lists: Sequence[Sequence[str]]) -> Ragged:
    names = {name: name_words(name) for name in dict.fromkeys(chain.from_iterable(lists))}
    spelled = [names[name] for found in lists for name in found]
    lengths = np.array([len(words) for words in spelled], dtype=np.int64)
    number = {word: place for place, word in enumerate(dict.fromkeys(chain.from_iterable(names.values())))}
    words = np.array([number[word] for word in chain.from_iterable(spelled)], dtype=np.int64)
    keys, places = beginnings(word_keys(list(number))[words], lengths)
    sums = np.concatenate([[0], np.cumsum(lengths)])
    ends = np.cumsum([0, *map(len, lists)])
    return Ragged(
        np.diff(sums[ends]).astype(np.int64),
        {"keys": keys, "lengths": places.astype(np.int32), "whole": places == np.repeat(lengths, lengths)},
    )
