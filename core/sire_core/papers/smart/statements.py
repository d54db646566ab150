"""Statements of one passage about its entities: pairs, sentences, descriptions, features (SMART, section 3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

from sire_core.extend import (
    FUNCTION_WORDS,
    cached_key,
    count_tokens,
    estimate_tokens,
    hash64,
    normalize_answer,
    stem,
    tokenize,
)

if TYPE_CHECKING:
    from sire_core.extend import Edge, Entity, ExtractionRecord, Fact


ROLE, TYPE, WORD = 0, 1, 2  # Kinds of features: an end of a kind of relation, an entity type, a word of a description
_NEGATIONS = frozenset(("not", "no", "never", "cannot", "without", "t"))
_MAX_DESCRIPTION_WORDS, _MAX_SENTENCE_WORDS = 40, 8
_LOWERCASE_WORD = re.compile(r"\b[^\W\d_A-Z][^\W\d_]{2,}\b")


@lru_cache(1 << 16)
def predicate_family(predicate: str) -> str:
    """Return the stems of a predicate's content words, with `not` in front where it is negated."""
    words = tokenize(predicate.replace("_", " "))
    stems = [stem(word) for word in words if word not in FUNCTION_WORDS]
    denied = ["not"] if any(word in _NEGATIONS for word in words) else []
    return " ".join((*denied, *(stems or map(stem, words))))


def entity_features(entity: Entity) -> Iterator[tuple[int, int]]:
    """Yield kind and hash of the features that a record gives an entity: its type, words of its description."""
    if entity.type:
        yield TYPE, hash64(cached_key(entity.type))
    for word in _stems(tokenize(entity.description))[:_MAX_DESCRIPTION_WORDS]:
        yield WORD, hash64(word)


def word_features(text: str) -> list[int]:
    """Return hashes of the lower-case words of a sentence, which describe its entities if it has no relation."""
    return [hash64(word) for word in _stems(_LOWERCASE_WORD.findall(text))[:_MAX_SENTENCE_WORDS]]


def _stems(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(stem(word) for word in words if word not in FUNCTION_WORDS))


_MAX_PAIRED = 8
"""Maximum entities of a statement without relations that are joined pairwise: long lists say little of any two."""


@dataclass(frozen=True, slots=True, order=True)
class EntityMention:
    """An entity that a passage spells out."""

    name: str  # the name that reports use for it in this passage
    first: str  # the first name that the passage uses for it
    entity: str  # its id in the knowledge graph
    title: bool = False  # whether the passage's title is one of its names

    @classmethod
    def of(cls, edge: Edge) -> EntityMention:
        """Read a `mentions` edge with names."""
        names, is_title = edge.metadata["names"], bool(edge.metadata.get("title"))
        return cls(names[-1 if is_title else 0], names[0], edge.target, is_title)


@dataclass(frozen=True, slots=True)
class LocalStatement:
    """A sentence of a passage and the entities it names."""

    text: str  # the sentence; the passage's title is put in front unless the sentence has it
    places: tuple[int, ...]  # numbers of these entities in the passage
    weight: float  # sum of the strengths of its relations, at least 1


@dataclass(slots=True)
class PassageStatements:
    """Statements of a passage about its entities, which are numbered within the passage."""

    names: Sequence[str]  # by entity, the name that reports use
    pairs: list[tuple[int, int, float, int]] = field(default_factory=list)  # ends, weight, hash of the predicate or 0
    statements: list[LocalStatement] = field(default_factory=list)  # in the order of the text
    descriptions: dict[int, str] = field(default_factory=dict)  # by entity
    features: list[tuple[int, int, int]] = field(default_factory=list)  # entity, kind (`ROLE`, `TYPE`, `WORD`) and hash


def read_passage(record: ExtractionRecord | None, mentions: Sequence[EntityMention], title: str) -> PassageStatements:
    """Read pairs, statements, descriptions and features of a passage from its extraction record."""
    stated = PassageStatements([mention.name for mention in mentions])
    joined: set[int] = set()
    if record is not None and mentions:
        numbers = _local_numbers(record, mentions)
        for entity in record.entities:
            if entity.id in numbers:
                stated.features += [(numbers[entity.id], *trait) for trait in entity_features(entity)]
                if entity.description:
                    stated.descriptions.setdefault(numbers[entity.id], entity.description)
        for fact in record.facts:
            joined |= _add_fact(stated, fact, numbers, title)
    title_entity = next((number for number, mention in enumerate(mentions) if mention.title), None)
    if title_entity is not None:
        stated.pairs += [
            (title_entity, number, 1.0, 0)
            for number in range(len(mentions))
            if number != title_entity and number not in joined
        ]
    return stated


def _local_numbers(record: ExtractionRecord, mentions: Sequence[EntityMention]) -> dict[str, int]:
    """Number every entity of a record that the passage spells out, by its id in the record."""
    number_of_name = {cached_key(mentions[number].name): number for number in reversed(range(len(mentions)))}
    numbers: dict[str, int] = {}
    for entity in record.entities:
        keys = (cached_key(name) for name in (entity.name, *entity.aliases))
        number = next((number_of_name[key] for key in keys if key in number_of_name), None)
        if number is not None:
            numbers[entity.id] = number
    return numbers


def _add_fact(stated: PassageStatements, fact: Fact, numbers: Mapping[str, int], title: str) -> set[int]:
    """Add a sentence and its pairs; return the entities it joins."""
    numbers_named = list(dict.fromkeys(numbers[name] for name in fact.entities if name in numbers))
    relations = list(_relations(fact, numbers))
    joined = {end for a, b, *_ in relations for end in (a, b)}
    stated.pairs += relations
    stated.features += _roles(fact, numbers)
    numbers_named += [
        end for end in dict.fromkeys(end for a, b, *_ in relations for end in (a, b)) if end not in numbers_named
    ]
    if not joined and len(numbers_named) > 1:
        stated.pairs += [(a, b, 1.0, 0) for a, b in combinations(numbers_named[:_MAX_PAIRED], 2)]
        joined.update(numbers_named[:_MAX_PAIRED])
        stated.features += [
            (index, WORD, word) for word in word_features(fact.text) for index in numbers_named[:_MAX_PAIRED]
        ]
    if len(numbers_named) > 1:
        text = fact.text if not title or title.casefold() in fact.text.casefold() else f"{title}: {fact.text}"
        weight = max(sum(weight for _, _, weight, _ in relations), 1.0)
        stated.statements.append(LocalStatement(text, tuple(numbers_named), weight))
    return joined


def _relations(fact: Fact, numbers: Mapping[str, int]) -> Iterator[tuple[int, int, float, int]]:
    for triple in fact.triples:
        head, tail = numbers.get(triple.head), numbers.get(triple.tail)
        if head is not None and tail is not None and head != tail:
            family = hash64(predicate_family(triple.predicate))
            yield head, tail, triple.strength if triple.strength > 0 else 1.0, family


def _roles(fact: Fact, numbers: Mapping[str, int]) -> Iterator[tuple[int, int, int]]:
    """Yield the roles of entities in relations, including relations to what is no entity."""
    for triple in fact.triples:
        for side, end in (("head", triple.head), ("tail", triple.tail)):
            if end in numbers:
                yield numbers[end], ROLE, hash64(f"{side} {predicate_family(triple.predicate)}")


def passage_rows(
    stated: PassageStatements, mentions: Sequence[EntityMention]
) -> Mapping[str, Sequence[tuple[Any, ...]]]:
    """Return a passage's rows of all parts of a network."""
    statements = [
        (
            hash64(normalize_answer(statement.text)),
            count_tokens(statement.text),
            estimate_tokens(statement.text),
            statement.weight,
            len(statement.places),
        )
        for statement in stated.statements
    ]
    return {
        "named": [(mention.entity.encode(), hash64(cached_key(mention.first))) for mention in mentions],
        "pairs": stated.pairs,
        "statements": statements,
        "members": [(entity,) for statement in stated.statements for entity in statement.places],
        "about": [(entity,) for entity in stated.descriptions],
        "traits": list(dict.fromkeys(stated.features)),
    }
