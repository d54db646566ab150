"""`NameClaims`: what passages say that entities are also called, carried from one change to the next."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

    from sire_core.derive.rows import Entry
    from sire_core.derive.tables import Table

__all__ = ["CLAIMS", "NameClaims", "NameUse"]

CLAIMS = "\x1f"
"""Key of the rows that say what an entity is also called; no name has it."""

_Place = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class NameUse:
    """How passages use a name.

    Attributes:
        first: Where it first stands for an entity of a record, and the type of that; None where it nowhere does.
        titles: Whether it titles a passage.
    """

    first: tuple[_Place, str] | None = None
    titles: bool = False

    @classmethod
    def of(cls, rows: Sequence[Entry]) -> Self:
        """From its rows."""
        own = (((row.place, row.number, row.item), row.body[1]) for row in rows if not row.body[2])
        return cls(min(own, default=None, key=lambda found: found[0]), any(row.body[2] for row in rows))

    def joined(self, other: NameUse) -> Self:
        """How passages use it that are looked at in two parts."""
        firsts = [found.first for found in (self, other) if found.first is not None]
        return type(self)(min(firsts, default=None, key=lambda found: found[0]), self.titles or other.titles)


@dataclass(frozen=True, slots=True)
class NameClaims:
    """Claims of a table of names, and as much of its other rows as merging names asks for.

    Attributes:
        claims: Key of an entity, then what else it is called; by place.
        aliases: All that the claims call something, and whether it has rows itself.
        uses: Uses of the names that stand in claims together with other names that have rows.
    """

    claims: Mapping[_Place, Sequence[str]] = field(default_factory=dict)
    aliases: Mapping[str, bool] = field(default_factory=dict)
    uses: Mapping[str, NameUse] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table, before: NameClaims | None) -> Self:
        """Those of a table after a change.

        Args:
            table: The table.
            before: Those before it; None reads all rows that are asked for.
        """
        if before is None or table.is_new:
            rows = table.entries([CLAIMS]).get(CLAIMS, ())
            claims: Mapping[_Place, Sequence[str]] = _by_place(rows)
            before = cls()
        else:
            claims = before._claims_after(table)
        touched = {*table.came, *table.went}
        said = dict.fromkeys(alias for _, *aliases in claims.values() for alias in aliases)
        asked = {alias for alias in said if alias not in before.aliases or alias in touched}
        sizes = table.sizes(asked)
        aliases = {alias: alias in sizes if alias in asked else before.aliases[alias] for alias in said}
        found = cls(claims, aliases)
        names = dict.fromkeys(name for group in found.groups() for name in group)
        return cls(claims, aliases, before._uses_after(table, names))

    def groups(self) -> list[tuple[str, ...]]:
        """Names that claims say are one, in corpus order; such as have no rows are left out, and then single ones."""
        known = self.aliases
        groups = ((key, *(alias for alias in aliases if known[alias])) for key, *aliases in self.claims.values())
        return [group for group in groups if len(group) > 1]

    def _claims_after(self, table: Table) -> Mapping[_Place, Sequence[str]]:
        came, went = table.came.get(CLAIMS, ()), table.went.get(CLAIMS, ())
        if not came and not went:
            return self.claims
        # Of a passage whose claims differ all have come and gone.
        changed = {row.item for row in (*came, *went)}
        kept = {place: claim for place, claim in self.claims.items() if place[2] not in changed}
        return dict(sorted({**kept, **_by_place(came)}.items()))

    def _uses_after(self, table: Table, names: Collection[str]) -> Mapping[str, NameUse]:
        asked = [name for name in names if name not in self.uses or name in table.went]
        rows = table.entries(asked)
        uses = {name: NameUse.of(rows.get(name, ())) for name in asked}
        for name in names:
            if name not in uses:
                uses[name] = self.uses[name].joined(NameUse.of(table.came.get(name, ())))
        return uses


def _by_place(rows: Sequence[Entry]) -> dict[_Place, Sequence[str]]:
    return {(row.place, row.number, row.item): row.body for row in rows}
