"""Which names of a corpus mean one entity (MS-RAG, section 3.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from sire_core.text.words import tokenize
from sire_core.types import Unit, UnitKind, digest

if TYPE_CHECKING:
    from typing_extensions import Self

    from sire_core.changes.step import Context
    from sire_core.changes.step_rows import Entry
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
    longest = {name: min(names, key=lambda n: (-len(n), n)) for names in merged.members.values() for name in names}
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


_PAIRS_PER_BLOCK = 65_536
"""Pairs whose cosines are computed in one step."""


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


CLAIMS = "\x1f"
"""Key of the rows with aliases of entities; no name has this key."""

_Place = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class NameUse:
    """Uses of a name in passages."""

    first: tuple[_Place, str] | None = None  # place and type of the first record with an entity of this name
    titles: bool = False  # whether it titles a passage

    @classmethod
    def of(cls, rows: Sequence[Entry]) -> Self:
        """Build it from the rows of the name."""
        entity_rows = (((row.place, row.number, row.item), row.body[1]) for row in rows if not row.body[2])
        return cls(min(entity_rows, default=None, key=lambda first_use: first_use[0]), any(row.body[2] for row in rows))

    def joined(self, other: NameUse) -> Self:
        """Merge the uses in two sets of passages."""
        firsts = [use.first for use in (self, other) if use.first is not None]
        return type(self)(min(firsts, default=None, key=lambda use: use[0]), self.titles or other.titles)


@dataclass(frozen=True, slots=True)
class NameClaims:
    """Aliases that passages give to entities, and the uses of the names in them, cached between changes."""

    claims: Mapping[_Place, Sequence[str]] = field(default_factory=dict)  # entity, and its aliases
    aliases: Mapping[str, bool] = field(default_factory=dict)  # whether it has rows itself
    groups: Sequence[tuple[str, ...]] = ()  # names of one entity, in corpus order, without those that have no rows
    uses: Mapping[str, NameUse] = field(default_factory=dict)  # of all names in groups

    @classmethod
    def of(cls, table: Table, before: NameClaims | None) -> Self:
        """Update them after a change of the table; without `before` read all of its rows."""
        if before is None or table.is_new:
            rows = table.entries([CLAIMS]).get(CLAIMS, ())
            claims: Mapping[_Place, Sequence[str]] = _by_position(rows)
            before = cls()
        else:
            claims = before._claims_after(table)
        touched = {*table.came, *table.went}
        used_aliases = dict.fromkeys(alias for _, *aliases in claims.values() for alias in aliases)
        affected = {alias for alias in used_aliases if alias not in before.aliases or alias in touched}
        sizes = table.sizes(affected)
        has_rows = {alias: alias in sizes if alias in affected else before.aliases[alias] for alias in used_aliases}
        named = ((key, *filter(has_rows.__getitem__, aliases)) for key, *aliases in claims.values())
        groups = [group for group in named if len(group) > 1]
        return cls(claims, has_rows, groups, before._uses_after(table, dict.fromkeys(chain.from_iterable(groups))))

    def _claims_after(self, table: Table) -> Mapping[_Place, Sequence[str]]:
        added, removed = table.came.get(CLAIMS, ()), table.went.get(CLAIMS, ())
        if not added and not removed:
            return self.claims
        # Of a passage whose claims differ all have come and gone.
        changed = {row.item for row in (*added, *removed)}
        unchanged = {position: claim for position, claim in self.claims.items() if position[2] not in changed}
        return dict(sorted({**unchanged, **_by_position(added)}.items()))

    def _uses_after(self, table: Table, names: Collection[str]) -> Mapping[str, NameUse]:
        affected = [name for name in names if name not in self.uses or name in table.went]
        rows = table.entries(affected)
        uses = {name: NameUse.of(rows.get(name, ())) for name in affected}
        for name in names:
            if name not in uses:
                use = self.uses[name]
                uses[name] = use.joined(NameUse.of(table.came[name])) if name in table.came else use
        return uses


def _by_position(rows: Sequence[Entry]) -> dict[_Place, Sequence[str]]:
    return {(row.place, row.number, row.item): row.body for row in rows}


_VAGUE = ("", "Name", "Other")
"""Types that carry no information."""

VALUE = "v:"
"""Prefix of the key of an end of a statement: an entity of a skipped type, used if it is the title of a passage."""


@dataclass(frozen=True, slots=True)
class NameMerging:
    """Merges names that passages use as aliases, and names with similar vectors."""

    max_names: int | None  # maximum names of an entity; None merges whatever passages say
    similar_names: float | None  # minimum cosine of names that share a word; None merges by aliases only

    async def resolve(self, table: Table, context: Context) -> dict[str, str]:
        """Return the key of the entity by the key of a name, if they differ; see `Step.resolve`."""
        claims = NameClaims.of(table, table.known())
        synonyms = await self._synonyms(table, context)
        # Not cached after a first build, which may be the only one.
        table.keep(None if table.is_new else claims)
        uses = dict(claims.uses)
        more = {name for pair in synonyms for name in pair if name not in uses}
        rows = table.entries(more)
        uses.update((name, NameUse.of(rows.get(name, ()))) for name in more)
        types = {name: use.first[1] for name, use in uses.items() if use.first and use.first[1] not in _VAGUE}
        merges = merge_aliases([*claims.groups, *synonyms], types, self.max_names)
        merged = {name: key for name, key in merges.items() if name != key}
        titled = [name for name in merged if name in uses and uses[name].titles]
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
