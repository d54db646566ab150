"""Proposition aggregates: all facts that name one entity, as one text (ALGORITHMS 2.4). Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sire_core.algorithms.text import count_tokens, name_key
from sire_core.errors import ConfigurationError

__all__ = ["Aggregate", "FactLine", "group_facts", "split_aggregate"]

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
    lines = _merge_equal(facts) if dup_facts == "drop" else list(facts)
    groups: dict[str, list[int]] = {}
    names: dict[str, str] = {}
    links: dict[str, int] = {}
    keys_of: list[list[str]] = []
    for i, line in enumerate(lines):
        keys = list(dict.fromkeys(key for key in (name_key(name, entity_key) for name in line.entities) if key))
        keys_of.append(keys)
        links[line.text] = links.get(line.text, 0) + len(keys)
        for name in line.entities:
            names.setdefault(name_key(name, entity_key), name)
        for key in keys:
            groups.setdefault(key, []).append(i)
    if singleton_rule != "paper":
        groups = _drop_singletons(groups, lines, links, keys_of, keep_vanishing=singleton_rule == "safe")
    merged: dict[str, tuple[list[str], list[list[FactLine]]]] = {}
    for key, members in groups.items():
        found = [lines[i] for i in members]
        keys_and_facts = merged.setdefault("\n".join(fact.text for fact in found), ([], []))
        keys_and_facts[0].append(key)
        keys_and_facts[1].append(found)
    return [
        # The same words may come from other passages under another key; all of them are the source.
        Aggregate(tuple(keys), names[keys[0]], tuple(_merge_lines(same) for same in zip(*found, strict=True)))
        for keys, found in merged.values()
    ]


def split_aggregate(
    aggregate: Aggregate,
    max_tokens: int | None,
    states: Callable[[Sequence[str], str], bool] = lambda _chunks, _name: True,
) -> list[tuple[str, tuple[str, ...]]]:
    """Cut an aggregate into texts of at most `max_tokens`, never inside a fact.

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
    parts: list[list[FactLine]] = []
    spent = room + 1
    for fact in aggregate.facts:
        length = count_tokens(fact.text)
        if spent + length > room:
            parts.append([])
            spent = 0
        parts[-1].append(fact)
        spent += length
    return [_part(aggregate.name, part, states) for part in parts]


def _part(
    name: str, facts: Sequence[FactLine], states: Callable[[Sequence[str], str], bool]
) -> tuple[str, tuple[str, ...]]:
    chunk_ids = tuple(dict.fromkeys(chunk for fact in facts for chunk in fact.chunk_ids))
    heading = [name] if states(chunk_ids, name) else []
    return "\n".join([*heading, *(fact.text for fact in facts)]), chunk_ids


def _merge_equal(facts: Iterable[FactLine]) -> list[FactLine]:
    same: dict[str, list[FactLine]] = {}
    for fact in facts:
        same.setdefault(fact.text, []).append(fact)
    return [_merge_lines(lines) for lines in same.values()]


def _merge_lines(lines: Sequence[FactLine]) -> FactLine:
    """Facts of one text as one, with the entities and chunks of all."""
    if len(lines) == 1:
        return lines[0]
    return FactLine(
        lines[0].text,
        tuple(dict.fromkeys(name for line in lines for name in line.entities)),
        tuple(dict.fromkeys(chunk for line in lines for chunk in line.chunk_ids)),
    )


def _drop_singletons(
    groups: dict[str, list[int]],
    lines: Sequence[FactLine],
    links: dict[str, int],
    keys_of: Sequence[Sequence[str]],
    *,
    keep_vanishing: bool,
) -> dict[str, list[int]]:
    dropped = {key for key, members in groups.items() if len(members) == 1 and links[lines[members[0]].text] > 1}
    if keep_vanishing:
        for keys in keys_of:
            if keys and all(key in dropped for key in keys):
                dropped.discard(keys[0])
    return {key: members for key, members in groups.items() if key not in dropped}
