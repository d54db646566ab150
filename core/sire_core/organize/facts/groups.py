"""Which facts go into which aggregate, on arrays of hashes: the rules of ALGORITHMS 2.4. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import chained_hashes, ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Groups", "Lines", "group_lines"]


@dataclass(frozen=True, slots=True)
class Lines:
    """Facts in corpus order, as hashes.

    Attributes:
        texts: Of the text, uint64 `[n]`.
        signatures: Of everything that an aggregate takes from a fact: text, names, passages; uint64 `[n]`.
        pointers: Fact i names the entities `keys[pointers[i]:pointers[i + 1]]`, int64 `[n + 1]`.
        keys: Of the entities' keys, each once per fact, in the fact's order; uint64.
    """

    texts: NDArray[np.uint64]
    signatures: NDArray[np.uint64]
    pointers: NDArray[np.int64]
    keys: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.texts)

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, Sequence[int]]]) -> Lines:
        """From (text, signature, keys) per fact."""
        return cls(
            texts=np.array([text for text, _, _ in rows], dtype=np.uint64),
            signatures=np.array([signature for _, signature, _ in rows], dtype=np.uint64),
            pointers=np.cumsum([0, *(len(keys) for _, _, keys in rows)], dtype=np.int64),
            keys=np.array([key for _, _, keys in rows for key in keys], dtype=np.uint64),
        )

    def take(self, rows: NDArray[np.int64]) -> Lines:
        """Some facts, in another order."""
        lengths = np.diff(self.pointers)[rows]
        return Lines(
            self.texts[rows],
            self.signatures[rows],
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            self.keys[ranges(self.pointers[:-1][rows], lengths)],
        )

    def followed_by(self, other: Lines) -> Lines:
        """These facts, then others."""
        return Lines(
            np.concatenate([self.texts, other.texts]),
            np.concatenate([self.signatures, other.signatures]),
            np.concatenate([self.pointers, other.pointers[1:] + self.pointers[-1]]),
            np.concatenate([self.keys, other.keys]),
        )

    def as_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class Groups:
    """Aggregates by first appearance, and the merged facts that they are made of.

    Attributes:
        signatures: Of everything that an aggregate says and shows, uint64 `[groups]`.
        pointers: Aggregate i has the keys `keys[pointers[i]:pointers[i + 1]]`, first seen first, int64 `[groups + 1]`.
        keys: Hashes of keys, uint64.
        spans: Where the facts of each key stand in `links`, int64 `[keys, 2]`.
        links: Merged facts by key, in corpus order.
        facts: Signatures of the merged facts with all that their lines say, uint64 `[merged]`.
        order: Lines by merged fact, int64 `[n]`.
        starts: Lines of merged fact i are `order[starts[i]:starts[i + 1]]`, int64 `[merged + 1]`.
    """

    signatures: NDArray[np.uint64]
    pointers: NDArray[np.int64]
    keys: NDArray[np.uint64]
    spans: NDArray[np.int64]
    links: NDArray[np.int64]
    facts: NDArray[np.uint64]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.signatures)

    @property
    def heads(self) -> NDArray[np.uint64]:
        """Hash of each aggregate's first key."""
        return self.keys[self.pointers[:-1]]

    def keys_of(self, group: int) -> list[int]:
        """Hashes of an aggregate's keys, first seen first."""
        return [int(key) for key in self.keys[self.pointers[group] : self.pointers[group + 1]]]

    def members_of(self, group: int) -> list[NDArray[np.int64]]:
        """Per key of an aggregate, the merged facts in corpus order."""
        spans = self.spans[self.pointers[group] : self.pointers[group + 1]].tolist()
        return [self.links[start:end] for start, end in spans]

    def lines_of(self, fact: int) -> list[int]:
        """Lines that say a merged fact, in corpus order."""
        return [int(line) for line in self.order[self.starts[fact] : self.starts[fact + 1]]]


def group_lines(lines: Lines, singleton_rule: str, *, merge_equal: bool) -> Groups:
    """Group facts by entity, drop groups that say nothing of their own, join groups of equal text.

    Args:
        lines: In corpus order.
        singleton_rule: See `sire_core.organize.facts.aggregates.group_facts`.
        merge_equal: Whether facts of equal text are one.
    """
    text_of, of_text = _by_first(lines.texts)
    merged = of_text if merge_equal else np.arange(len(lines), dtype=np.int64)
    count = int(merged.max()) + 1 if len(merged) else 0
    order = np.argsort(merged, kind="stable")
    repeats = np.bincount(merged, minlength=count)
    signatures = chained_hashes(lines.signatures[order], repeats)
    texts = lines.texts[text_of] if merge_equal else lines.texts

    facts, keys, hashes = _links(lines, merged)
    links = np.bincount(facts, minlength=count)
    if not merge_equal:
        links = np.bincount(of_text, weights=links).astype(np.int64)[of_text]
    kept = _kept(facts, keys, len(hashes), links, singleton_rule)

    chosen = np.flatnonzero(kept[keys])
    by_key = chosen[np.lexsort((facts[chosen], keys[chosen]))]
    sizes = np.bincount(keys[by_key], minlength=len(hashes))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    said = chained_hashes(texts[facts[by_key]], sizes)
    shown = chained_hashes(signatures[facts[by_key]], sizes)
    first_seen = dict.fromkeys(keys[chosen].tolist())
    joined: dict[int, list[int]] = {}
    for key in first_seen:
        joined.setdefault(int(said[key]), []).append(key)
    flat = np.array([key for group in joined.values() for key in group], dtype=np.int64)
    sizes_of = np.array([len(group) for group in joined.values()], dtype=np.int64)
    return Groups(
        signatures=chained_hashes(shown[flat] ^ hashes[flat], sizes_of),
        pointers=np.concatenate([[0], np.cumsum(sizes_of)]).astype(np.int64),
        keys=hashes[flat],
        spans=np.stack([starts[flat], starts[flat + 1]], axis=1),
        links=facts[by_key],
        facts=signatures,
        order=order,
        starts=np.concatenate([[0], np.cumsum(repeats)]),
    )


def _by_first(values: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First position of each distinct value, ascending; and for every value, which of these is its own."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(first), dtype=np.int64)
    number[order] = np.arange(len(first))
    return first[order].astype(np.int64), number[inverse.ravel()]


def _links(lines: Lines, merged: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    """Distinct (merged fact, key number) pairs by fact, keys in the facts' order; and the keys' hashes."""
    facts = merged[np.repeat(np.arange(len(lines)), np.diff(lines.pointers))]
    hashes, keys = np.unique(lines.keys, return_inverse=True)
    keys = keys.ravel().astype(np.int64)
    _, first = np.unique(facts * max(1, len(hashes)) + keys, return_index=True)
    chosen = first[np.lexsort((first, facts[first]))]
    return facts[chosen], keys[chosen], hashes


def _kept(
    facts: NDArray[np.int64], keys: NDArray[np.int64], count: int, links: NDArray[np.int64], rule: str
) -> NDArray[np.bool_]:
    """Which keys have an aggregate."""
    if rule == "paper" or not len(facts):
        return np.ones(count, dtype=bool)
    only = np.zeros(count, dtype=np.int64)
    only[keys] = facts
    dropped = (np.bincount(keys, minlength=count) == 1) & (links[only] > 1)
    if rule == "safe":
        stays = np.bincount(facts, weights=~dropped[keys], minlength=len(links)) > 0
        heads = np.flatnonzero(np.diff(facts, prepend=-1))  # the first key of each fact
        dropped[keys[heads[~stays[facts[heads]]]]] = False
    kept: NDArray[np.bool_] = ~dropped
    return kept
