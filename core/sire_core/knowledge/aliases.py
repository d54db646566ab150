"""Which names mean the same entity: groups of aliases, and names that sound and mean alike (MS-RAG). Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.text import tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["merge_aliases", "similar_names"]


def merge_aliases(
    groups: Iterable[Sequence[str]], types: Mapping[str, str] | None = None, max_names: int = 8
) -> dict[str, str]:
    """Merge names that a passage says are one entity.

    The first name of a group is the entity, the others are its aliases. The canonical name is the longest, ties in
    lexicographic order.

    Args:
        groups: Alias groups in corpus order. A group of one name only makes the name known.
        types: Types by name where they are known; two names of different types are not merged.
        max_names: A merge that would make a group larger than this is refused.

    Returns:
        The canonical name of every name that occurs; its own for one that was not merged. A short form that several
        longer names claim joins none of them, and neither does a single word of a name (`Henry` for `Henry of
        Flanders`): what it means in one passage says nothing about others.
    """
    listed = [tuple(dict.fromkeys(name for name in group if name)) for group in groups]
    found = _Groups(listed, types or {}, max_names)
    for group in listed:
        for alias in group[1:]:
            found.merge(group[0], alias)
    longest = {name: min(names, key=lambda n: (-len(n), n)) for names in found.members.values() for name in names}
    return {name: longest[name] for name in found.parents}


class _Groups:
    """Union-find over names that refuses some unions."""

    def __init__(self, groups: Sequence[Sequence[str]], types: Mapping[str, str], max_names: int) -> None:
        self.parents = {name: name for group in groups for name in group}
        self.members = {name: [name] for name in self.parents}
        self._types = {name: types.get(name, "") for name in self.parents}
        self._ambiguous = _ambiguous(groups)
        self._max_names = max_names

    def merge(self, name: str, alias: str) -> None:
        """Join two names, unless there is a reason not to."""
        one, other = self._find(name), self._find(alias)
        types = self._types[one], self._types[other]
        if (
            one == other
            or alias in self._ambiguous
            or (all(types) and types[0] != types[1])
            or alias in name.split()  # one word of the name may be another's
            or len(self.members[one]) + len(self.members[other]) > self._max_names
        ):
            return
        self.parents[other] = one
        self.members[one] += self.members.pop(other)
        self._types[one] = types[0] or types[1]

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


_BLOCK = 65_536
"""Pairs whose cosines are computed at once."""


def similar_names(
    names: Sequence[str], vectors: NDArray[np.float32], threshold: float, max_names_per_word: int = 100
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
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
    by_word: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        for word in dict.fromkeys(tokenize(name)):
            by_word.setdefault(word, []).append(number)
    size = len(names)
    codes = [
        np.asarray(found)[rows] * size + np.asarray(found)[columns]
        for found in by_word.values()
        if 1 < len(found) <= max_names_per_word
        for rows, columns in [np.triu_indices(len(found), 1)]
    ]
    pairs = np.unique(np.concatenate(codes)) if codes else np.empty(0, dtype=np.int64)
    first, second = np.divmod(pairs, max(size, 1))
    cosines = np.empty(len(pairs), dtype=np.float64)
    for start in range(0, len(pairs), _BLOCK):
        block = slice(start, start + _BLOCK)
        cosines[block] = np.einsum("id,id->i", vectors[first[block]], vectors[second[block]])
    near = cosines >= threshold
    return first[near], second[near], cosines[near]
