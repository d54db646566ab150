"""Which names of a corpus mean one entity (MS-RAG, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from sire_core.text.words import tokenize
from sire_core.types import Unit, UnitKind, digest

if TYPE_CHECKING:
    from sire_core.changes.step import Context
    from sire_core.changes.step_table import Table
    from sire_core.protocols import DoubleArray, FloatArray, IntArray


def merge_aliases(
    groups: Iterable[Sequence[str]], types: Mapping[str, str] | None = None, max_names: int | None = 8
) -> dict[str, str]:
    """Merge names that a passage says are one entity; without `max_names` all of them, whatever the types and words."""
    listed = [tuple(dict.fromkeys(name for name in group if name)) for group in groups]
    merged = _Groups(listed, types or {}, max_names)
    for group in listed:
        for alias in group[1:]:
            merged.merge(group[0], alias)
    groups_by_name = ((min(names, key=lambda n: (-len(n), n)), names) for names in merged.members.values())
    longest = {name: first for first, names in groups_by_name for name in names}
    return {name: longest[name] for name in merged.parents}


class _Groups:
    """Union-find over names that rejects some unions."""

    def __init__(self, groups: Sequence[Sequence[str]], types: Mapping[str, str], max_names: int | None) -> None:
        self.parents = {name: name for group in groups for name in group}
        self.members = {name: [name] for name in self.parents}
        self._types = {name: types.get(name, "") for name in self.parents}
        self._ambiguous = _ambiguous(groups)
        self._max_names = max_names

    def merge(self, name: str, alias: str) -> None:
        """Join two names unless a rule forbids it."""
        one, other = self._find(name), self._find(alias)
        if one == other or self._is_doubtful(name, alias, one, other):
            return
        self.parents[other] = one
        self.members[one] += self.members.pop(other)
        self._types[one] = self._types[one] or self._types[other]

    def _is_doubtful(self, name: str, alias: str, one: str, other: str) -> bool:
        """True if a rule forbids a merge: several entities claim the alias, types contradict, too many names."""
        types = self._types[one], self._types[other]
        return self._max_names is not None and (
            alias in self._ambiguous
            or (all(types) and types[0] != types[1])
            or alias in name.split()  # one word of the name may be another's
            or len(self.members[one]) + len(self.members[other]) > self._max_names
        )

    def _find(self, name: str) -> str:
        while self.parents[name] != name:
            self.parents[name] = self.parents[self.parents[name]]
            name = self.parents[name]
        return name


def _ambiguous(groups: Iterable[Sequence[str]]) -> set[str]:
    """Aliases with fewer words than two or more names that claim them."""
    claims: dict[str, set[str]] = {}
    for group in groups:
        for alias in group[1:]:
            if len(alias.split()) < len(group[0].split()):
                claims.setdefault(alias, set()).add(group[0])
    return {alias for alias, names in claims.items() if len(names) > 1}


_PAIRS_PER_BLOCK = 65_536  # Pairs whose cosines are computed in one step


SimilarPairs = tuple["IntArray", "IntArray", "DoubleArray"]
"""Numbers of the first and second name, ascending, and their cosines."""

_MAX_NEIGHBORS = 101  # as many as the released code takes, which counts from 0
_MIN_CHARACTERS = 3


def all_similar_names(names: Sequence[str], vectors: FloatArray, threshold: float) -> SimilarPairs:
    """For every name those with similar vectors, as HippoRAG joins them: no shared word is needed.

    Every name is compared with every other, in time proportional to the square of their number. A name with fewer
    than three letters and digits looks for no others, and any name only for the 101 nearest, so that one of two names
    may find the other and not be found.

    Args:
        names: Names.
        vectors: Their unit-length vectors, `[len(names), d]`.
        threshold: Least cosine.

    Returns:
        Number of a name, ascending, number of one that it finds, and cosines, all `[found]`.
    """
    import numpy as np

    searching = [row for row, name in enumerate(names) if sum(map(str.isalnum, name)) >= _MIN_CHARACTERS]
    step = max(1, _PAIRS_PER_BLOCK * 64 // max(len(names), 1))
    pairs: list[tuple[int, int, float]] = []
    for start in range(0, len(searching), step):
        rows = np.asarray(searching[start : start + step])
        cosines = vectors[rows] @ vectors.T
        cosines[np.arange(len(rows)), rows] = -1.0
        for row, near in zip(rows.tolist(), cosines, strict=True):
            others = np.flatnonzero(near >= threshold)
            nearest = others[np.argsort(-near[others], kind="stable")[:_MAX_NEIGHBORS]]
            pairs += [(row, other, float(near[other])) for other in nearest.tolist()]
    first, second, likeness = zip(*pairs, strict=True) if pairs else ((), (), ())
    return np.array(first, dtype=np.int64), np.array(second, dtype=np.int64), np.array(likeness, dtype=np.float64)


def similar_names(
    names: Sequence[str], vectors: FloatArray, threshold: float, max_names_per_word: int = 100
) -> SimilarPairs:
    """Pairs of names that share a word and whose vectors are similar.

    The shared word keeps apart names that an embedding confuses (`1912`, `1913`), and makes the search cheap: only
    names under the same word are compared, in time proportional to those pairs.

    Args:
        names: Names.
        vectors: Their unit-length vectors, `[len(names), d]`.
        threshold: Least cosine.
        max_names_per_word: A word in more names than this links none of them.

    Returns:
        Numbers of the first and second name, ascending, and cosines, all `[pairs]`.
    """
    import numpy as np

    by_word: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        for word in dict.fromkeys(tokenize(name)):
            by_word.setdefault(word, []).append(number)
    size = len(names)
    codes = [
        np.asarray(bucket)[rows] * size + np.asarray(bucket)[columns]
        for bucket in by_word.values()
        if 1 < len(bucket) <= max_names_per_word
        for rows, columns in [np.triu_indices(len(bucket), 1)]
    ]
    pairs = np.unique(np.concatenate(codes)) if codes else np.empty(0, dtype=np.int64)
    first, second = np.divmod(pairs, max(size, 1))
    cosines = np.empty(len(pairs), dtype=np.float64)
    for start in range(0, len(pairs), _PAIRS_PER_BLOCK):
        block = slice(start, start + _PAIRS_PER_BLOCK)
        cosines[block] = np.einsum("id,id->i", vectors[first[block]], vectors[second[block]])
    is_similar = cosines >= threshold
    return first[is_similar], second[is_similar], cosines[is_similar]


CLAIMS = "\x1f"  # Key of the rows with aliases of entities; no name has this key

_VAGUE = ("", "Name", "Other")  # Types that carry no information

VALUE = "v:"
"""Prefix of the key of an end of a statement: an entity of a skipped type, used if it is the title of a passage."""


@dataclass(frozen=True, slots=True)
class NameMerging:
    """Merges names that passages use as aliases, and names with similar vectors."""

    max_names: int | None  # maximum names of an entity; None merges whatever passages say
    similar_names: float | None  # minimum cosine of names that share a word; None merges by aliases only

    async def resolve(self, table: Table, context: Context) -> dict[str, str]:
        """Return the key of the entity by the key of a name, if they differ; see `Step.resolve`."""
        claimed = table.entries([CLAIMS])
        claims = [row.body for row in claimed.get(CLAIMS, ())]
        all_aliases = dict.fromkeys(alias for _, *aliases in claims for alias in aliases)
        rows = table.entries(all_aliases)
        named = ((key, *(alias for alias in aliases if alias in rows)) for key, *aliases in claims)
        groups = [*(group for group in named if len(group) > 1), *await self._synonyms(table, context)]
        rows |= table.entries([name for name in dict.fromkeys(chain.from_iterable(groups)) if name not in rows])
        if not table.is_new:  # A first build may be the only one
            table.remembered = {**dict.fromkeys(all_aliases, ()), **claimed, **rows}
        first = {name: next((row.body[1] for row in uses if not row.body[2]), "") for name, uses in rows.items()}
        types = {name: kind for name, kind in first.items() if kind not in _VAGUE}
        merged = {name: key for name, key in merge_aliases(groups, types, self.max_names).items() if name != key}
        titled = [name for name in merged if any(row.body[2] for row in rows.get(name, ()))]
        return merged | {f"{VALUE}{name}": merged[name] for name in titled}

    async def _synonyms(self, table: Table, context: Context) -> list[tuple[str, str]]:
        """Pairs of keys of names with similar vectors, the longer name first."""
        if self.similar_names is None:
            return []

        names: dict[str, str] = {}
        for entry in sorted(table.all_entries(), key=lambda entry: entry[:3]):
            if entry.key != CLAIMS:
                names.setdefault(entry.key, entry.body[0][-1] if entry.body[0] else entry.key)
        keys = list(names)
        units = [Unit(digest("name", name), UnitKind.ENTITY, name, ()) for name in names.values()]
        first, second, _ = similar_names(keys, await context.view.vectors(units), self.similar_names)
        pairs = [(keys[i], keys[j]) for i, j in zip(first.tolist(), second.tolist(), strict=True)]
        return [(max(pair, key=len), min(pair, key=len)) for pair in pairs if pair[0] != pair[1]]
