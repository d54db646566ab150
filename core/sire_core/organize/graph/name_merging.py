"""`NameMerging`: which names of a corpus mean one entity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.types import Unit, UnitKind, digest

if TYPE_CHECKING:
    from sire_core.derive.rows import Entry
    from sire_core.derive.step import Context
    from sire_core.derive.tables import Table

__all__ = ["CLAIMS", "VALUE", "NameMerging"]

_VAGUE = ("", "Name", "Other")
"""Types that say nothing about what an entity is."""

CLAIMS = "\x1f"
"""Key of the rows that say what an entity is also called; no name has it."""

VALUE = "v:"
"""In front of the key of an end of a statement: an entity of a skipped type, which counts where a passage is titled by
it."""


@dataclass(frozen=True, slots=True)
class NameMerging:
    """Merges names that passages say are one, and names whose vectors are alike.

    Attributes:
        max_names: Maximum names of an entity; a merge that exceeds it is refused.
        similar_names: Names that share a word and have at least this cosine are alike; None: none are.
    """

    max_names: int
    similar_names: float | None

    async def resolve(self, table: Table, context: Context) -> dict[str, str]:
        """By the key of a name the key of its entity, where they differ; see `Step.resolve`."""
        claims = [entry.body for entry in table.entries([CLAIMS]).get(CLAIMS, ())]
        known = table.sizes({alias for claim in claims for alias in claim[1:]})
        groups = [(claim[0], *(alias for alias in claim[1:] if alias in known)) for claim in claims]
        synonyms = await self._synonyms(table, context)
        names = {name for group in (*groups, *synonyms) if len(group) > 1 for name in group}
        rows = table.entries(names)
        merges = self._merges(groups, rows, synonyms)
        merged = {name: key for name, key in merges.items() if name != key}
        titled = {name for name in merged if any(entry.body[2] for entry in rows.get(name, ()))}
        return merged | {f"{VALUE}{name}": merged[name] for name in titled}

    def _merges(
        self,
        groups: Sequence[tuple[str, ...]],
        rows: Mapping[str, Sequence[Entry]],
        synonyms: Sequence[tuple[str, str]],
    ) -> Mapping[str, str]:
        from sire_core.algorithms.aliases import merge_aliases

        first = {name: next((e.body[1] for e in entries if not e.body[2]), "") for name, entries in rows.items()}
        types = {name: kind for name, kind in first.items() if kind not in _VAGUE}
        return merge_aliases([*(group for group in groups if len(group) > 1), *synonyms], types, self.max_names)

    async def _synonyms(self, table: Table, context: Context) -> list[tuple[str, str]]:
        """Keys of names whose vectors are alike, the longer name first."""
        if self.similar_names is None:
            return []
        from sire_core.algorithms.aliases import similar_names

        names: dict[str, str] = {}
        for entry in sorted(table.all_entries(), key=lambda entry: entry[:3]):
            if entry.key != CLAIMS:
                names.setdefault(entry.key, entry.body[0][-1] if entry.body[0] else entry.key)
        keys = list(names)
        units = [Unit(digest("name", name), UnitKind.ENTITY, name, ()) for name in names.values()]
        first, second, _ = similar_names(keys, await context.view.vectors(units), self.similar_names)
        pairs = [(keys[i], keys[j]) for i, j in zip(first.tolist(), second.tolist(), strict=True)]
        return [(max(pair, key=len), min(pair, key=len)) for pair in pairs if pair[0] != pair[1]]
