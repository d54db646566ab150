"""`NameMerging`: which names of a corpus mean one entity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.knowledge.name_claims import CLAIMS, NameClaims, NameUse
from sire_core.types import Unit, UnitKind, digest

if TYPE_CHECKING:
    from sire_core.derive.step import Context
    from sire_core.derive.tables import Table

__all__ = ["VALUE", "NameMerging"]

_VAGUE = ("", "Name", "Other")
"""Types that say nothing about what an entity is."""

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
        claims = NameClaims.of(table, table.known())
        synonyms = await self._synonyms(table, context)
        # Of a build nothing is kept in memory: who only builds would not need it.
        table.keep(None if table.is_new else claims)
        uses = dict(claims.uses)
        more = {name for pair in synonyms for name in pair if name not in uses}
        rows = table.entries(more)
        uses.update((name, NameUse.of(rows.get(name, ()))) for name in more)
        merges = self._merges([*claims.groups(), *synonyms], uses)
        merged = {name: key for name, key in merges.items() if name != key}
        titled = [name for name in merged if name in uses and uses[name].titles]
        return merged | {f"{VALUE}{name}": merged[name] for name in titled}

    def _merges(self, groups: Sequence[tuple[str, ...]], uses: Mapping[str, NameUse]) -> Mapping[str, str]:
        from sire_core.knowledge.aliases import merge_aliases

        types = {name: use.first[1] for name, use in uses.items() if use.first and use.first[1] not in _VAGUE}
        return merge_aliases(groups, types, self.max_names)

    async def _synonyms(self, table: Table, context: Context) -> list[tuple[str, str]]:
        """Keys of names whose vectors are alike, the longer name first."""
        if self.similar_names is None:
            return []
        from sire_core.knowledge.aliases import similar_names

        names: dict[str, str] = {}
        for entry in sorted(table.all_entries(), key=lambda entry: entry[:3]):
            if entry.key != CLAIMS:
                names.setdefault(entry.key, entry.body[0][-1] if entry.body[0] else entry.key)
        keys = list(names)
        units = [Unit(digest("name", name), UnitKind.ENTITY, name, ()) for name in names.values()]
        first, second, _ = similar_names(keys, await context.view.vectors(units), self.similar_names)
        pairs = [(keys[i], keys[j]) for i, j in zip(first.tolist(), second.tolist(), strict=True)]
        return [(max(pair, key=len), min(pair, key=len)) for pair in pairs if pair[0] != pair[1]]
