"""`BridgingFacts`: what follows from two documents that share an entity, as units (ALGORITHMS 4.3, 4.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sire_core.errors import ConfigurationError
from sire_core.protocols import Delta

if TYPE_CHECKING:
    from sire_core.organize.bridges.entities import Evidence
    from sire_core.organize.bridges.joined_facts import BridgeFact
    from sire_core.protocols import BuildView, Change
    from sire_core.types import Failure

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
        """Look at the entities of which something changed, and write the facts of those whose evidence changed.

        Also after a change without chunks: other metadata can make two passages of one, or one of two.
        """
        import asyncio

        from sire_core.organize.bridges.change import BridgeChange, BridgeRules

        rules = BridgeRules(
            self.tau, self.max_docs, self.max_facts, self.cap_order, self.entity_key, tuple(self.skip_types)
        )
        found = await asyncio.to_thread(BridgeChange, view, {chunk.id for chunk in change.added}, rules)
        view.progress("bridging facts", 0, len(found.todo))
        answers = await self._writer(view).write(found.todo)
        view.progress("bridging facts", len(found.todo), len(found.todo))
        return await asyncio.to_thread(found.delta, answers)

    def _writer(self, view: BuildView) -> _Writer:
        if view.language_model is None:
            from sire_core.organize.bridges.joined_facts import JoinedFacts

            return JoinedFacts(self.max_pairs)
        from sire_core.organize.bridges.model_bridges import ModelBridges

        return ModelBridges(view.language_model)
