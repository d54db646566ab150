"""`Step`: how something derived from the corpus is described."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from sire_core.changes.runners import in_parts
from sire_core.changes.step_rows import Group, Item, Output, Row

if TYPE_CHECKING:
    from sire_core.changes.step_table import Table
    from sire_core.protocols import BuildView

PASSAGES = "passages"  # Source of the steps that read the passages of the corpus


@dataclass(frozen=True, slots=True)
class Context:
    """Data that a step may read beside its own rows."""

    view: BuildView  # The corpus after the change, models, vectors
    tables: Mapping[str, Table]  # Tables of this and all earlier steps, by name of the step


class Step:
    """Rows by key, and one output per key.

    A step maps items (passages, or the outputs of an earlier step) to rows, and reduces all rows of a key to an output.
    Both are pure functions: after a change of the corpus only items that changed are mapped again, and only keys whose
    rows differ are reduced again.

    Attributes:
        name: Unique within its derivation.
        source: `PASSAGES`, or the name of the earlier step whose outputs are the items.
        merged_by: Name of the step whose `resolve` says which keys are one; its own, an earlier one's, or empty.
        portable: Whether the step can be pickled: then its items are mapped wherever the build's `Runner` works.
        independent: Whether `reduce` looks at the rows of its own groups only, and not at its context: then groups are
            reduced there in parts, too.
        without_output: Keys whose rows are for `resolve` only.
    """

    name: str
    source: ClassVar[str] = PASSAGES
    merged_by: ClassVar[str] = ""
    portable: ClassVar[bool] = True
    independent: ClassVar[bool] = False
    without_output: ClassVar[Collection[str]] = ()

    def map(self, item: Item) -> Iterable[Row]:
        """Rows of an item, in its order."""
        raise NotImplementedError

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Outputs of some keys, None where a key has none.

        Args:
            groups: Keys with all their rows, in corpus order.
            context: Earlier steps' tables.
        """
        raise NotImplementedError

    async def reduce_many(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """As `reduce`, where a model is asked; without one, off the event loop."""
        return await asyncio.to_thread(self.reduce, groups, context)

    async def reduce_parts(
        self, groups: Sequence[Group], context: Context
    ) -> AsyncGenerator[Sequence[Output | None], None]:
        """Outputs of all groups, in their order: of an independent step in parts, `reduce_many` is not asked."""
        if not (self.independent and self.portable):
            yield await self.reduce_many(groups[:], context)
            return
        say = partial(context.view.progress, self.name)
        async with aclosing(in_parts(context.view.runner, _reduced, self, groups, say)) as parts:
            async for part in parts:
                yield part

    def size_limit(self) -> int | None:
        """A number of items above which a key is reduced in another way, where it depends on the whole corpus."""
        return None

    async def resolve(self, table: Table, context: Context) -> Mapping[str, str]:
        """Which keys mean the same: the group of every key that does not stand for itself.

        Asked after every change, when the rows are up to date; only for a step that is `merged_by` itself.
        """
        del table, context
        return {}

    def group_of(self, key: str, merged: Mapping[str, str]) -> str:
        """Group of a row's key, by what `resolve` found."""
        return merged.get(key, key)

    def keys_of(self, group: str, members: Mapping[str, Sequence[str]]) -> Sequence[str]:
        """Keys of the rows that may be in a group: the inverse of `group_of`.

        Args:
            group: The group.
            members: Names by the name they were resolved to, for all that have more than their own.
        """
        return members.get(group, (group,))

    def renamed(self, names: Collection[str], table: Table, context: Context) -> Iterable[str]:
        """Keys of rows whose group may differ when names are resolved in another way than before."""
        del table, context
        return names

    def dependents(self, keys: Collection[str], table: Table, context: Context) -> Iterable[str]:
        """Keys whose outputs depend on the rows of others that changed; asked again until nothing is added."""
        del keys, table, context
        return ()


def _reduced(step: Step, groups: Sequence[Group]) -> Sequence[Output | None]:
    """Outputs of some groups of an independent step, wherever this runs: there is nothing else to look at."""
    return step.reduce(groups, Context(cast("BuildView", None), {}))
