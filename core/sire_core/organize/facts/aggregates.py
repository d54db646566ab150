"""Proposition aggregates: all facts that name one entity, as one text (ALGORITHMS 2.4). Pure functions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate

from sire_core.algorithms.text import count_tokens, name_key
from sire_core.errors import ConfigurationError
from sire_core.organize.facts.groups import Groups, Lines, group_lines

__all__ = ["Aggregate", "FactLine", "aggregate_of", "fact_of", "group_facts", "hash64", "split_aggregate"]

_RULES = ("safe", "code", "paper")


@dataclass(frozen=True, slots=True)
class FactLine:
    """A fact as the walk over the corpus meets it.

    Attributes:
        text: The fact.
        entities: Names as written, in the order of the record.
        chunk_ids: Chunks that state it.
    """

    text: str
    entities: tuple[str, ...]
    chunk_ids: tuple[str, ...]

    def hashed(self, entity_key: str = "norm") -> tuple[int, int, tuple[int, ...]]:
        """Hashes of the text, of everything, and of the distinct keys of the entities; see `fact_groups.Lines`."""
        keys = dict.fromkeys(key for key in (name_key(name, entity_key) for name in self.entities) if key)
        whole = hash64("\0".join([self.text, *self.entities, "", *self.chunk_ids]))
        return hash64(self.text), whole, tuple(hash64(key) for key in keys)


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


def hash64(text: str) -> int:
    """A hash that is the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def group_facts(
    facts: Iterable[FactLine], singleton_rule: str = "safe", entity_key: str = "norm", dup_facts: str = "drop"
) -> list[Aggregate]:
    """Group facts by entity and drop aggregates that say nothing of their own.

    Args:
        facts: In corpus order: documents, then chunks, then facts.
        singleton_rule: `paper` keeps every group; `code` drops a group of one fact that is linked to another entity too
            (the released code); `safe` is `code`, except that a fact which would vanish stays once, under its first
            entity.
        entity_key: See `name_key`.
        dup_facts: `drop` merges equal facts of different chunks; `keep` repeats them, as the code does.

    Returns:
        Aggregates of distinct text, by first appearance.

    Raises:
        ConfigurationError: Unknown rule.
    """
    if singleton_rule not in _RULES:
        raise ConfigurationError(f"singleton_rule is one of {', '.join(_RULES)}, not {singleton_rule!r}.")
    if dup_facts not in ("drop", "keep"):
        raise ConfigurationError(f"dup_facts is 'drop' or 'keep', not {dup_facts!r}.")
    lines = list(facts)
    hashed = Lines.of([line.hashed(entity_key) for line in lines])
    groups = group_lines(hashed, singleton_rule, merge_equal=dup_facts == "drop")
    return [aggregate_of(groups, number, lines, entity_key) for number in range(len(groups))]


def aggregate_of(groups: Groups, number: int, lines: Sequence[FactLine | None], entity_key: str = "norm") -> Aggregate:
    """One of the aggregates that `group_lines` found.

    Args:
        groups: All of them.
        number: Which.
        lines: All facts in corpus order; only those of the aggregate are looked at.
        entity_key: See `name_key`.
    """
    found = [[fact_of(groups, int(fact), lines) for fact in facts] for facts in groups.members_of(number)]
    names: list[tuple[str, str]] = []
    for wanted, said in zip(groups.keys_of(number), found, strict=True):
        spelled = ((name_key(name, entity_key), name) for fact in said for name in fact.entities)
        names.append(next((key, name) for key, name in spelled if hash64(key) == wanted))
    # The same words may come from other passages under another key; all of them are the source.
    facts = tuple(_merge_lines(same) for same in zip(*found, strict=True))
    return Aggregate(tuple(key for key, _ in names), names[0][1], facts)


def fact_of(groups: Groups, fact: int, lines: Sequence[FactLine | None]) -> FactLine:
    """A merged fact, with the entities and passages of all its lines."""
    return _merge_lines([line for number in groups.lines_of(fact) if (line := lines[number]) is not None])


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
    starts = _starts([count_tokens(fact.text) for fact in facts], [hash64(fact.text) for fact in facts], room)
    parts = [facts[start:end] for start, end in zip(starts, [*starts[1:], len(facts)], strict=True)]
    return [_part(aggregate.name, part, states) for part in parts]


def _starts(lengths: Sequence[int], hashes: Sequence[int], room: int) -> list[int]:
    """Where parts begin.

    A part ends before the fact of the smallest hash, of those that leave between half the room and all of it to the
    part; what is left stays together as soon as it fits.
    """
    ends = [0, *accumulate(lengths)]
    starts = [0]
    while ends[-1] - ends[starts[-1]] > room:
        start = starts[-1]
        last = max(start + 1, bisect_right(ends, ends[start] + room) - 1)
        first = min(last, max(start + 1, bisect_left(ends, ends[start] + room / 2)))
        if first >= len(lengths):
            break
        starts.append(min(range(first, min(last, len(lengths) - 1) + 1), key=lambda place: (hashes[place], place)))
    return starts


def _part(
    name: str, facts: Sequence[FactLine], states: Callable[[Sequence[str], str], bool]
) -> tuple[str, tuple[str, ...]]:
    chunk_ids = tuple(dict.fromkeys(chunk for fact in facts for chunk in fact.chunk_ids))
    heading = [name] if states(chunk_ids, name) else []
    return "\n".join([*heading, *(fact.text for fact in facts)]), chunk_ids


def _merge_lines(lines: Sequence[FactLine]) -> FactLine:
    """Facts of one text as one, with the entities and chunks of all."""
    if len(lines) == 1:
        return lines[0]
    return FactLine(
        lines[0].text,
        tuple(dict.fromkeys(name for line in lines for name in line.entities)),
        tuple(dict.fromkeys(chunk for line in lines for chunk in line.chunk_ids)),
    )
