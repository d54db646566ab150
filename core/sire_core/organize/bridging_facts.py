"""`BridgingFacts`: what follows from two documents that share an entity, as units (ALGORITHMS 4.3, 4.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sire_core.algorithms.text import name_key
from sire_core.errors import ConfigurationError
from sire_core.protocols import Delta
from sire_core.types import Failure, Unit, UnitKind, unit_id

if TYPE_CHECKING:
    from sire_core.organize.bridge_entities import Evidence
    from sire_core.organize.joined_facts import BridgeFact
    from sire_core.protocols import BuildView, Change

__all__ = ["BridgingFacts"]


class _Writer(Protocol):
    async def write(self, evidence: Sequence[Evidence]) -> Sequence[tuple[BridgeFact, ...] | Failure]: ...


@dataclass(frozen=True, slots=True)
class BridgingFacts:
    """Stage 2 of IndexRAG. It reads extraction records only, so that it can stand beside any pool.

    An entity's facts are written again when what is known of it changes, and only then; the digest of the evidence
    decides. Facts of the same words under several entities are one unit that stands on the passages of all.

    Attributes:
        tau: An entity in more documents joins nothing.
        max_docs: Documents that are read per entity.
        max_facts: Facts that are read per document.
        cap_order: Which documents are read when there are more: `facts`, those with the most facts about the entity,
            or `first`. The paper does not say.
        max_pairs: Without a model, most bridging facts per entity.
        entity_key: See `name_key`.
        skip_types: Entity types that join nothing. Dates and quantities share documents that have nothing else in
            common; the paper does not say what it does with them.

    Raises:
        ConfigurationError: A bound is too small, or `cap_order` is unknown.
    """

    tau: int = 10
    max_docs: int = 5
    max_facts: int = 8
    cap_order: str = "facts"
    max_pairs: int = 3
    entity_key: str = "norm"
    skip_types: tuple[str, ...] = ("Date", "Quantity")

    def __post_init__(self) -> None:
        if self.tau < 2 or self.max_docs < 2 or self.max_facts < 1 or self.max_pairs < 1:
            raise ConfigurationError(
                "tau and max_docs must be at least 2, max_facts and max_pairs at least 1: a bridge needs two documents."
            )
        if self.cap_order not in ("facts", "first"):
            raise ConfigurationError(f"cap_order is 'facts' or 'first', not {self.cap_order!r}.")

    @property
    def name(self) -> str:
        """Short name."""
        return "bridging_facts"

    @property
    def requires(self) -> tuple[str, ...]:
        """Reads no other organizer."""
        return ()

    @property
    def needs_records(self) -> bool:
        """Reads facts and entities."""
        return True

    @property
    def needs_summaries(self) -> bool:
        """Has its texts written by the model, where there is one."""
        return True

    def settings(self) -> Mapping[str, Any]:
        """Settings that change what is built."""
        return {
            "tau": self.tau,
            "max_docs": self.max_docs,
            "max_facts": self.max_facts,
            "cap_order": self.cap_order,
            "max_pairs": self.max_pairs,
            "entity_key": self.entity_key,
            "skip_types": list(self.skip_types),
            "version": "v1",
        }

    def describe(self) -> str:
        """What is built, and what it costs."""
        return (
            f"Facts that join documents through entities which 2 to {self.tau} of them name; with a language model one "
            "call per such entity, about 600-900 per 1,000 passages, without one no calls."
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Gather the evidence anew after any change, and write the facts of the entities whose evidence changed."""
        if not change:
            return Delta()
        import asyncio

        from sire_core.organize.bridge_entities import affected_entities

        frequencies, evidence = await asyncio.to_thread(self._gather, view)
        before = view.state()
        known: Mapping[str, Any] = before.get("bridges", {})
        digests = {key: found.digest for key, found in evidence.items()}
        changed = {key for key in {**known, **digests} if known.get(key, {}).get("digest") != digests.get(key)}
        written_anew = affected_entities(before.get("frequencies", {}), frequencies, changed, self.tau).written
        todo = [found for key, found in evidence.items() if key in written_anew]
        view.progress("bridging facts", 0, len(todo))
        answers = await self._writer(view).write(todo)
        view.progress("bridging facts", len(todo), len(todo))
        written = {found.key: answer for found, answer in zip(todo, answers, strict=True)}
        bridges: dict[str, Any] = {}
        for key in evidence:
            answer = written.get(key)
            if answer is None:
                bridges[key] = known[key]
            elif not isinstance(answer, Failure):  # a failed entity is asked about again by the next change
                bridges[key] = {"digest": digests[key], "facts": [[fact.text, list(fact.chunk_ids)] for fact in answer]}
        return self._delta(
            bridges,
            {key: count for key, count in frequencies.items() if count > 1},
            tuple(answer for answer in answers if isinstance(answer, Failure)),
            view,
        )

    def _gather(self, view: BuildView) -> tuple[dict[str, int], dict[str, Evidence]]:
        from sire_core.organize.bridge_entities import gather_evidence
        from sire_core.organize.source_documents import source_documents

        documents = source_documents(view.chunks, view.chunk_units, view.records(), self.skip_types, self.entity_key)
        return gather_evidence(documents, self.tau, self.max_docs, self.max_facts, self.cap_order, self.entity_key)

    def _writer(self, view: BuildView) -> _Writer:
        if view.language_model is None:
            from sire_core.organize.joined_facts import JoinedFacts

            return JoinedFacts(self.max_pairs)
        from sire_core.organize.model_bridges import ModelBridges

        return ModelBridges(view.language_model)

    def _delta(
        self,
        bridges: Mapping[str, Any],
        frequencies: Mapping[str, int],
        failures: tuple[Failure, ...],
        view: BuildView,
    ) -> Delta:
        old = {unit.id: unit for unit in view.units()}
        new = {unit.id: unit for unit in _units(bridges, view)}
        return Delta(
            put_units=tuple(unit for unit in new.values() if old.get(unit.id) != unit),
            drop_units=tuple(unit for unit in old if unit not in new),
            state={"bridges": dict(bridges), "frequencies": dict(frequencies)},
            failures=failures,
        )


def _units(bridges: Mapping[str, Any], view: BuildView) -> list[Unit]:
    merged: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for key, entry in bridges.items():
        for text, chunk_ids in entry["facts"]:
            chunks, keys = merged.setdefault(text, ({}, {}))
            chunks.update(dict.fromkeys(chunk_ids))
            keys[key] = None
    said = {chunk.id: name_key(chunk.index_text) for chunk in view.chunks} if merged else {}
    return [
        Unit(
            id=unit_id(UnitKind.BRIDGE.value, view.fingerprint, chunks, text),
            kind=UnitKind.BRIDGE,
            text=text,
            chunk_ids=tuple(chunks),
            # A record may know an entity by a name that only another, perhaps hidden, document spells out.
            entity_keys=tuple(key for key in keys if any(name_key(key) in said[chunk] for chunk in chunks)),
        )
        for text, (chunks, keys) in merged.items()
    ]
