"""`PlainDerivation`: derived data from one function over the whole corpus, for those who want to try something."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sire_core.corpus.stored_corpus import differs
from sire_core.derive.rows import PassageInput
from sire_core.protocols import Delta
from sire_core.types import unit_id

if TYPE_CHECKING:
    from sire_core.protocols import BuildView, Change
    from sire_core.types import Edge, Unit

Derive = Callable[[Sequence[PassageInput]], tuple[Iterable["Unit"], Iterable["Edge"]]]


@dataclass(frozen=True, slots=True)
class PlainDerivation:
    """Calls a function after every change and stores what differs. Correct, and as slow as the function.

    Attributes:
        name: Short name, unique within a recipe.
        derive: From all passages, in corpus order, to units and edges. A unit without an id gets one; edges name
            passages by the id of their chunk unit. Must be a pure function.
        version: Change it when the function changes, so that stored units are made again.
        needs_records: Whether `PassageInput.record` is read, so that passages are extracted.
    """

    name: str
    derive: Derive
    version: str = "1"
    needs_records: bool = True

    @property
    def requires(self) -> tuple[str, ...]:
        """Reads no other organizer."""
        return ()

    @property
    def needs_summaries(self) -> bool:
        """Writes its own texts."""
        return False

    def settings(self) -> Mapping[str, Any]:
        """The version of the function."""
        return {"version": self.version, "needs_records": self.needs_records}

    def describe(self) -> str:
        """What is built."""
        return f"What the function {getattr(self.derive, '__name__', 'derive')!r} makes of the whole corpus."

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Derive everything again and compare."""
        import asyncio

        # Also what changes no id of a chunk, as metadata do: the function is given whole passages.
        return await asyncio.to_thread(self._organize, view) if change or view.touched(change) else Delta()

    def _organize(self, view: BuildView) -> Delta:
        chunks = {chunk.id: chunk for chunk in view.chunks}
        records = view.records() if self.needs_records else {}
        passages = [
            PassageInput(unit, tuple(chunks[found] for found in unit.chunk_ids), records.get(unit.id))
            for unit in view.chunk_units
        ]
        made, joined = self.derive(passages)
        units = {unit.id: unit for unit in (_with_id(unit, view.fingerprint) for unit in made)}
        edges = {(edge.kind, edge.source, edge.target): edge for edge in joined}
        known = {unit.id: unit for unit in view.units()}
        linked = {(edge.kind, edge.source, edge.target): edge for edge in view.edges()}
        return Delta(
            put_units=tuple(unit for unit in units.values() if unit.id not in known or differs(unit, known[unit.id])),
            drop_units=tuple(found for found in known if found not in units),
            put_edges=tuple(edge for ends, edge in edges.items() if linked.get(ends) != edge),
            drop_edges=tuple(edge for ends, edge in linked.items() if ends not in edges),
        )


def _with_id(unit: Unit, fingerprint: str) -> Unit:
    return unit if unit.id else replace(unit, id=unit_id(unit.kind.value, fingerprint, unit.chunk_ids, unit.text))
