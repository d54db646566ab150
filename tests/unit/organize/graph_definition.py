"""What a knowledge graph is, from all records at once and without an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sire_core.algorithms.text import cached_key
from sire_core.knowledge.knowledge_graph import PassageNames
from sire_core.knowledge.names import merge_aliases

if TYPE_CHECKING:
    from sire_core.types import Chunk, ExtractionRecord

__all__ = ["Mention", "Mentions", "StatedTriple", "entity_names", "find_mentions", "merge_names", "resolved"]


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
    merges: Mapping[str, str]


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
    said = [PassageNames.of(chunk, record) for chunk, record in passages]
    titles = {names.title_key for names in said}
    types: dict[str, str] = {}
    for names in said:
        for entity in names.entities:
            types.setdefault(entity.key, entity.type)
    known = types.keys() | titles
    claims = [(e.key, *(alias for alias in e.aliases if alias in known)) for names in said for e in names.entities]
    merges = merge_names(claims if disambiguate else (), types, synonyms if disambiguate else (), max_names)
    entities: dict[str, dict[str, Mention]] = {}
    triples: list[StatedTriple] = []
    for names in said:
        mentions, stated = resolved(names, merges, titles.__contains__, skip_types)
        for key, mention in mentions.items():
            entities.setdefault(key, {})[names.chunk_id] = mention
        triples += stated
    return Mentions(entities, triples, merges)


def merge_names(
    claims: Iterable[tuple[str, ...]],
    types: Mapping[str, str],
    synonyms: Sequence[tuple[str, str]],
    max_names: int,
) -> dict[str, str]:
    """Merge what passages call one entity.

    Args:
        claims: Key of an entity and those keys of its aliases that are entities somewhere, in corpus order.
        types: First type of each key of a claim, where there is one.
        synonyms: See `find_mentions`.
        max_names: See `merge_aliases`.
    """
    groups = [claim for claim in claims if len(claim) > 1] + list(synonyms)
    return merge_aliases(groups, {key: kind for key, kind in types.items() if kind not in _VAGUE}, max_names)


_VAGUE = ("", "Name", "Other")


def entity_names(passages: Iterable[PassageNames]) -> dict[str, str]:
    """The first name of every entity key, in corpus order; titles included."""
    names: dict[str, str] = {}
    for said in passages:
        if said.title_key:
            names.setdefault(said.title_key, said.title_names[-1])
        for entity in said.entities:
            if entity.key:
                names.setdefault(entity.key, entity.name)
    return names


def resolved(
    said: PassageNames, canonical: Mapping[str, str], is_titled: Callable[[str], bool], skip_types: Sequence[str]
) -> tuple[dict[str, Mention], list[StatedTriple]]:
    """What a passage names and states, once it is known which names are one entity.

    Args:
        said: The passage.
        canonical: Key of the entity by key of a merged name; a name that is not there is its own.
        is_titled: Whether some passage is titled by a key.
        skip_types: See `find_mentions`.

    Returns:
        Mentions by entity key, in order of appearance; and the triples.
    """
    mentions: dict[str, Mention] = {}
    if said.title_key:
        mention = mentions.setdefault(canonical.get(said.title_key, said.title_key), Mention())
        mention.is_title = True
        mention.names.update(dict.fromkeys(said.title_names))
    keys: dict[str, str] = {}
    for entity in said.entities:
        if not entity.key or (entity.type in skip_types and not is_titled(entity.key)):
            continue
        keys[entity.id] = canonical.get(entity.key, entity.key)
        mentions.setdefault(keys[entity.id], Mention()).names.update(dict.fromkeys(entity.names))
    return mentions, list(_triples(said, keys, skip_types))


def _triples(said: PassageNames, keys: Mapping[str, str], skip_types: Sequence[str]) -> Iterator[StatedTriple]:
    values = {entity.id: entity.name for entity in said.entities}
    entities = {entity.id: entity for entity in said.entities}
    for head, predicate, tail, fact in said.statements:
        ends = []
        names = []
        for end in (head, tail):
            if end in keys:
                ends.append(keys[end])
                entity = entities[end]
                title = said.title_names if entity.key == said.title_key else ()
                names += [entity.name] if entity.type in skip_types else [*title, *entity.names][:1]
            else:  # a literal, or a value such as a date that is no node
                ends.append(cached_key(values.get(end, end)))
                names.append(values.get(end, end))
        # A name that only another passage spells out must not show: the fact itself speaks instead.
        text = f"{names[0]} {predicate} {names[1]}" if len(names) == 2 else fact
        yield StatedTriple(said.chunk_id, ends[0], predicate, ends[1], text)
