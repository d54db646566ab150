"""Aggregates: all facts that name one entity, as one text (SiReRAG, section 4.2). Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sire_core.algorithms.parts import part_starts
from sire_core.algorithms.text import count_tokens
from sire_core.types import hash64

__all__ = ["Aggregate", "FactLine", "split_aggregate"]


@dataclass(frozen=True, slots=True)
class FactLine:
    """A fact of an aggregate.

    Attributes:
        text: The fact.
        entities: Names as written, in the order of the record.
        chunk_ids: Chunks that state it.
    """

    text: str
    entities: tuple[str, ...]
    chunk_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Facts about one entity, or about several that have exactly the same facts.

    Attributes:
        keys: Entity keys, first seen first.
        name: The first entity's name as first written.
        facts: In corpus order.
    """

    keys: tuple[str, ...]
    name: str
    facts: tuple[FactLine, ...]

    @property
    def text(self) -> str:
        """The facts, a line each."""
        return "\n".join(fact.text for fact in self.facts)

    @property
    def chunk_ids(self) -> tuple[str, ...]:
        """Chunks of the facts, in order, each once."""
        return tuple(dict.fromkeys(chunk for fact in self.facts for chunk in fact.chunk_ids))


def split_aggregate(
    aggregate: Aggregate,
    max_tokens: int | None,
    states: Callable[[Sequence[str], str], bool] = lambda _chunks, _name: True,
) -> list[tuple[str, tuple[str, ...]]]:
    """Cut an aggregate into texts of at most `max_tokens`, never inside a fact.

    Parts end where the facts themselves say so, between half the limit and the limit: a fact that comes or goes
    changes the part that it is in and seldom another, so that a hub's other parts and their summaries stay.

    Args:
        aggregate: What is cut.
        max_tokens: Length of a part; None leaves it whole.
        states: Whether some chunks state a name.

    Returns:
        (text, chunk ids) per part. The parts of a split aggregate start with the entity's name where their own chunks
        state it, so that each says what it is about; a single fact above the limit is a part of its own.
    """
    if max_tokens is None or count_tokens(aggregate.text) <= max_tokens:
        return [(aggregate.text, aggregate.chunk_ids)]
    room = max(1, max_tokens - count_tokens(aggregate.name))
    facts = aggregate.facts
    starts = part_starts([count_tokens(fact.text) for fact in facts], [hash64(fact.text) for fact in facts], room)
    parts = [facts[start:end] for start, end in zip(starts, [*starts[1:], len(facts)], strict=True)]
    return [_part(aggregate.name, part, states) for part in parts]


def _part(
    name: str, facts: Sequence[FactLine], states: Callable[[Sequence[str], str], bool]
) -> tuple[str, tuple[str, ...]]:
    chunk_ids = tuple(dict.fromkeys(chunk for fact in facts for chunk in fact.chunk_ids))
    heading = [name] if states(chunk_ids, name) else []
    return "\n".join([*heading, *(fact.text for fact in facts)]), chunk_ids
