"""`OrganizerBase`, the defaults of an organizer, and `Derivation`, an organizer made of steps."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from sire_core.changes.step_rows import PassageInput
from sire_core.documents.stored_corpus import differs
from sire_core.protocols import BuildView, Change, Delta
from sire_core.types import Edge, Unit, unit_id

if TYPE_CHECKING:
    from sire_core.changes.step import Step


class OrganizerBase:
    """An organizer that reads extraction records and no other organizer, and writes no summaries."""

    # Short name, unique within a recipe and part of the build fingerprint. Every subclass declares it.
    name: ClassVar[str]

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of organizers that come before it in a recipe."""
        return ()

    @property
    def needs_records(self) -> bool:
        """True if it reads extraction records."""
        return True

    @property
    def needs_summaries(self) -> bool:
        """True if it has texts written, by a model where there is one."""
        return False

    def check_installed(self) -> None:
        """Raise `ConfigurationError` where a library that a build needs is missing, before a model is asked."""


class Derivation(OrganizerBase):
    """An organizer that is a chain of steps. A subclass is a frozen dataclass whose fields are its settings."""

    def settings(self) -> Mapping[str, Any]:
        """All fields as JSON-serialisable values."""
        assert dataclasses.is_dataclass(self)
        values = dataclasses.asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def steps(self, view: BuildView) -> Sequence[Step]:
        """The steps, in the order in which they run."""
        raise NotImplementedError

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring everything up to date with a change of the corpus."""
        from sire_core.changes.engine import run_steps  # works on arrays; naming a recipe needs none

        return (await run_steps(self.steps(view), change, view)).delta


Derive = Callable[[Sequence[PassageInput]], tuple[Iterable["Unit"], Iterable["Edge"]]]


@dataclass(frozen=True, slots=True)
class PlainDerivation(OrganizerBase):
    """Calls a function after every change and stores what differs. Correct, and as slow as the function.

    Attributes:
        name: Short name, unique within a recipe.
        derive: From all passages, in corpus order, to units and edges. A unit without an id gets one; edges name
            passages by the id of their chunk unit. Must be a pure function.
        version: Change it when the function changes, so that stored units are made again.
        needs_records: Whether `PassageInput.record` is read, so that passages are extracted.
    """

    name: str  # type: ignore[misc] # of this object, not of the class
    derive: Derive
    version: str = "1"
    needs_records: bool = True

    def settings(self) -> Mapping[str, Any]:
        """The version of the function."""
        return {"version": self.version, "needs_records": self.needs_records}

    def describe(self) -> str:
        """Name of the derived data."""
        return f"What the function {getattr(self.derive, '__name__', 'derive')!r} makes of the whole corpus."

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Derive everything again and compare."""
        # Also what changes no id of a chunk, as metadata do: the function is given whole passages.
        return await asyncio.to_thread(self._organize, view) if change or view.touched(change) else Delta()

    def _organize(self, view: BuildView) -> Delta:
        chunks = {chunk.id: chunk for chunk in view.chunks}
        records = view.records() if self.needs_records else {}
        passages = [
            PassageInput(unit, tuple(chunks[chunk] for chunk in unit.chunk_ids), records.get(unit.id))
            for unit in view.chunk_units
        ]
        made, joined = self.derive(passages)
        named = (
            unit if unit.id else replace(unit, id=unit_id(unit.kind.value, view.fingerprint, unit.chunk_ids, unit.text))
            for unit in made
        )
        units = {unit.id: unit for unit in named}
        edges = {(edge.kind, edge.source, edge.target): edge for edge in joined}
        stored = {unit.id: unit for unit in view.units()}
        linked = {(edge.kind, edge.source, edge.target): edge for edge in view.edges()}
        return Delta(
            put_units=tuple(unit for unit in units.values() if unit.id not in stored or differs(unit, stored[unit.id])),
            drop_units=tuple(name for name in stored if name not in units),
            put_edges=tuple(edge for ends, edge in edges.items() if linked.get(ends) != edge),
            drop_edges=tuple(edge for ends, edge in linked.items() if ends not in edges),
        )
