"""What one passage adds to the graph between entities: pairs, statements, descriptions (SMART, section 3)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from sire_core.algorithms.text import name_key
from sire_core.recipes.smart.traits import PART, WORD, entity_traits, part_traits, predicate_family, word_traits
from sire_core.types import hash64

if TYPE_CHECKING:
    from sire_core.types import Edge, ExtractionRecord, Fact

__all__ = ["EntityMention", "LocalStatement", "PassageStatements", "PassageTexts", "read_passage"]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # `json.dumps` would make one every time
_MOST_PAIRS = 8
"""Entities of one statement that are joined pairwise when it names no relation; a list of thirty names says little of
any two of them."""


@dataclass(frozen=True, slots=True, order=True)
class EntityMention:
    """An entity that a passage spells out.

    Attributes:
        name: The name that stands for it in this passage.
        first: The first name that the passage has for it.
        entity: Its id in the knowledge graph.
        title: Whether it is what the passage is titled by.
    """

    name: str
    first: str
    entity: str
    title: bool = False

    @classmethod
    def of(cls, edge: Edge) -> EntityMention:
        """From a mention that gives a name."""
        names, title = edge.metadata["names"], bool(edge.metadata.get("title"))
        return cls(names[-1 if title else 0], names[0], edge.target, title)


@dataclass(frozen=True, slots=True)
class LocalStatement:
    """A sentence of a passage and the entities it names.

    Attributes:
        text: The sentence, with the passage's title in front where it does not name it.
        places: Which of the passage's entities it names, by their numbers there.
        weight: Sum of the strengths of its relations, at least 1.
    """

    text: str
    places: tuple[int, ...]
    weight: float


@dataclass(slots=True)
class PassageStatements:
    """What a passage says of its entities, which are known by their numbers in the passage.

    Attributes:
        pairs: Two entities, a weight, and a hash of the predicate's family, 0 where no relation joins them.
        statements: In the order of the text.
        about: Descriptions.
        traits: An entity, a kind and a hash (`sire_core.recipes.smart.traits`).
    """

    pairs: list[tuple[int, int, float, int]] = field(default_factory=list)
    statements: list[LocalStatement] = field(default_factory=list)
    about: dict[int, str] = field(default_factory=dict)
    traits: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PassageTexts:
    """The words of a passage that reports may quote.

    Attributes:
        names: By entity number the first name and the one that stands for it.
        statements: Texts of the statements.
        about: Descriptions by entity number.
    """

    names: tuple[tuple[str, str], ...]
    statements: tuple[str, ...]
    about: Mapping[int, str]

    @classmethod
    def of(cls, mentions: Sequence[EntityMention], said: PassageStatements) -> PassageTexts:
        """What a passage's statements and names leave to read."""
        names = tuple((naming.first, naming.name) for naming in mentions)
        return cls(names, tuple(statement.text for statement in said.statements), said.about)

    def to_note(self) -> bytes:
        """Bytes for the store."""
        rows = [self.names, self.statements, list(self.about.items())]
        return _encode(rows).encode("utf-8", "surrogatepass")

    @classmethod
    def from_note(cls, note: bytes) -> PassageTexts:
        """What `to_note` wrote."""
        names, statements, about = json.loads(note.decode("utf-8", "surrogatepass"))
        return cls(tuple((first, name) for first, name in names), tuple(statements), dict(map(tuple, about)))


def read_passage(record: ExtractionRecord | None, mentions: Sequence[EntityMention], title: str) -> PassageStatements:
    """Pairs, statements and descriptions of a passage.

    Two entities are joined by the strengths of the relations between them; where a statement gives no relation, by
    standing in it together; and an entity that no statement joins with another, with what the passage is about.

    Args:
        record: Of the passage, where there is one.
        mentions: The entities it spells out; their places are the numbers.
        title: Of the passage; may be empty.
    """
    said = PassageStatements()
    joined: set[int] = set()
    if record is not None and mentions:
        local = _local_numbers(record, mentions)
        for entity in record.entities:
            if entity.id in local:
                said.traits += [(local[entity.id], *trait) for trait in entity_traits(entity)]
                if entity.description:
                    said.about.setdefault(local[entity.id], entity.description)
        for fact in record.facts:
            joined |= _state(said, fact, local, title)
    titled = next((place for place, naming in enumerate(mentions) if naming.title), None)
    if titled is not None:
        said.pairs += [
            (titled, place, 1.0, 0) for place in range(len(mentions)) if place != titled and place not in joined
        ]
    return said


def _local_numbers(record: ExtractionRecord, mentions: Sequence[EntityMention]) -> dict[str, int]:
    """Number of every entity of a record that the passage spells out, by its id in the record."""
    known = {name_key(mentions[place].name): place for place in reversed(range(len(mentions)))}
    found: dict[str, int] = {}
    for entity in record.entities:
        keys = (name_key(name) for name in (entity.name, *entity.aliases))
        place = next((known[key] for key in keys if key in known), None)
        if place is not None:
            found[entity.id] = place
    return found


def _state(said: PassageStatements, fact: Fact, local: Mapping[str, int], title: str) -> set[int]:
    """Add a statement and its pairs; returns the entities it joins."""
    places = list(dict.fromkeys(local[name] for name in fact.entities if name in local))
    related = list(_relations(fact, local))
    joined = {end for a, b, *_ in related for end in (a, b)}
    said.pairs += related
    said.traits += _parts(fact, local)
    places += [end for end in dict.fromkeys(end for a, b, *_ in related for end in (a, b)) if end not in places]
    if not joined and len(places) > 1:
        said.pairs += [(a, b, 1.0, 0) for a, b in combinations(places[:_MOST_PAIRS], 2)]
        joined.update(places[:_MOST_PAIRS])
        said.traits += [(place, WORD, word) for word in word_traits(fact.text) for place in places[:_MOST_PAIRS]]
    if len(places) > 1:
        text = fact.text if not title or title.casefold() in fact.text.casefold() else f"{title}: {fact.text}"
        weight = max(sum(weight for _, _, weight, _ in related), 1.0)
        said.statements.append(LocalStatement(text, tuple(places), weight))
    return joined


def _relations(fact: Fact, local: Mapping[str, int]) -> Iterator[tuple[int, int, float, int]]:
    for triple in fact.triples:
        head, tail = local.get(triple.head), local.get(triple.tail)
        if head is not None and tail is not None and head != tail:
            family = hash64(predicate_family(triple.predicate))
            yield head, tail, triple.strength if triple.strength > 0 else 1.0, family


def _parts(fact: Fact, local: Mapping[str, int]) -> Iterator[tuple[int, int, int]]:
    """The parts that entities have in relations, also in those to something that is no entity."""
    for triple in fact.triples:
        for end, trait in zip((triple.head, triple.tail), part_traits(triple), strict=True):
            if end in local:
                yield local[end], PART, trait
