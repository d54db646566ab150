"""Which passages name which entities, under which names: the ground of the knowledge graph (ALGORITHMS 5.1, 5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sire_core.algorithms.aliases import AliasMerges, merge_aliases
from sire_core.algorithms.text import name_key
from sire_core.extraction.subjects import base_title

if TYPE_CHECKING:
    from sire_core.types import Chunk, ExtractionRecord

__all__ = ["Mentions", "StatedTriple", "entity_names", "find_mentions"]


@dataclass(slots=True)
class Mention:
    """One entity in one passage.

    Attributes:
        names: Names that the passage's title or text spells out, in order; none when it only refers to the entity.
        is_title: Whether the passage's title is the entity.
    """

    names: dict[str, None] = field(default_factory=dict)
    is_title: bool = False


@dataclass(frozen=True, slots=True)
class StatedTriple:
    """A relation as one passage states it; `head` and `tail` are entity keys or keys of literals."""

    chunk_id: str
    head: str
    predicate: str
    tail: str
    text: str


@dataclass(frozen=True, slots=True)
class Mentions:
    """Everything that the records of a corpus name.

    Attributes:
        entities: By entity key, then by id of the passage's first chunk.
        triples: In corpus order.
        merges: Names that were merged, by key.
    """

    entities: Mapping[str, Mapping[str, Mention]]
    triples: Sequence[StatedTriple]
    merges: AliasMerges


def find_mentions(
    passages: Sequence[tuple[Chunk, ExtractionRecord | None]],
    *,
    disambiguate: bool = True,
    synonyms: Sequence[tuple[str, str]] = (),
    max_names: int = 8,
    skip_types: Sequence[str] = (),
) -> Mentions:
    """Collect mentions and triples.

    Args:
        passages: Distinct passages in corpus order with their records.
        disambiguate: Whether aliases that are themselves names of entities are merged with them.
        synonyms: More pairs of keys to merge, under the same guards, after what the passages say themselves.
        max_names: See `merge_aliases`.
        skip_types: Entity types that are left out unless a passage is titled by the entity.
    """
    titles = {name_key(base_title(chunk.title)) for chunk, _ in passages if chunk.title}
    merges = _merges(passages, titles, synonyms, max_names) if disambiguate else merge_aliases(())
    entities: dict[str, dict[str, Mention]] = {}
    triples: list[StatedTriple] = []
    for chunk, record in passages:
        said = name_key(chunk.index_text)
        if chunk.title and (base := name_key(base_title(chunk.title))):
            mention = entities.setdefault(merges.canonical.get(base, base), {}).setdefault(chunk.id, Mention())
            mention.is_title = True
            mention.names.update(dict.fromkeys((chunk.title, base_title(chunk.title))))
        keys: dict[str, str] = {}
        for entity in record.entities if record else ():
            key = name_key(entity.name)
            if not key or (entity.type in skip_types and key not in titles):
                continue
            keys[entity.id] = merges.canonical.get(key, key)
            mention = entities.setdefault(keys[entity.id], {}).setdefault(chunk.id, Mention())
            mention.names.update((name, None) for name in (entity.name, *entity.aliases) if name_key(name) in said)
        triples += _triples(chunk, record, keys, entities) if record else ()
    return Mentions(entities, triples, merges)


def entity_names(passages: Sequence[tuple[Chunk, ExtractionRecord | None]]) -> dict[str, str]:
    """The first name of every entity key, in corpus order; titles included."""
    names: dict[str, str] = {}
    for chunk, record in passages:
        title = base_title(chunk.title)
        for name in (title, *(entity.name for entity in (record.entities if record else ()))):
            if key := name_key(name):
                names.setdefault(key, name)
    return names


def _merges(
    passages: Sequence[tuple[Chunk, ExtractionRecord | None]],
    titles: set[str],
    synonyms: Sequence[tuple[str, str]],
    max_names: int,
) -> AliasMerges:
    """Alias groups of all records, restricted to names that are entities somewhere."""
    types: dict[str, str] = {}
    for _, record in passages:
        for entity in record.entities if record else ():
            types.setdefault(name_key(entity.name), entity.type)
    known = types.keys() | titles
    groups: list[tuple[str, ...]] = []
    for _, record in passages:
        for entity in record.entities if record else ():
            aliases = [key for key in map(name_key, entity.aliases) if key in known]
            if aliases:
                groups.append((name_key(entity.name), *aliases))
    groups += synonyms
    return merge_aliases(groups, {key: kind for key, kind in types.items() if kind not in _VAGUE}, max_names)


_VAGUE = ("", "Name", "Other")


def _triples(
    chunk: Chunk, record: ExtractionRecord, keys: Mapping[str, str], entities: Mapping[str, Mapping[str, Mention]]
) -> Iterator[StatedTriple]:
    values = {entity.id: entity.name for entity in record.entities}
    for fact in record.facts:
        for triple in fact.triples:
            ends = []
            names = []
            for end in (triple.head, triple.tail):
                if end in keys:
                    ends.append(keys[end])
                    names += list(entities[keys[end]][chunk.id].names)[:1]
                else:  # a literal, or a value such as a date that is no node
                    ends.append(name_key(values.get(end, end)))
                    names.append(values.get(end, end))
            # A name that only another passage spells out must not show: the fact itself speaks instead.
            text = f"{names[0]} {triple.predicate} {names[1]}" if len(names) == 2 else fact.text
            yield StatedTriple(chunk.id, ends[0], triple.predicate, ends[1], text)
