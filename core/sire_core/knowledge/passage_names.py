"""What one passage contributes to the knowledge graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sire_core.algorithms.text import cached_key, name_key
from sire_core.corpus.sections import title_line
from sire_core.extraction.headings import base_title

if TYPE_CHECKING:
    from sire_core.types import Chunk, ExtractionRecord, Unit

__all__ = ["NamedEntity", "NamedStatement", "PassageNames"]


class NamedEntity(NamedTuple):
    """An entity of a record.

    Attributes:
        id: Local to the record.
        name: As the record has it.
        type: Entity type.
        key: Of the name.
        names: Name and aliases that the passage spells out, in order.
        aliases: Keys of the aliases that have one.
    """

    id: str
    name: str
    type: str
    key: str
    names: tuple[str, ...]
    aliases: tuple[str, ...]


class NamedStatement(NamedTuple):
    """A triple of a record: its ends are ids of entities or literals; `fact` is the text that states it."""

    head: str
    predicate: str
    tail: str
    fact: str


@dataclass(frozen=True, slots=True)
class PassageNames:
    """Names and statements of one passage, before anything is known of other passages.

    Attributes:
        chunk_id: The passage's first chunk.
        title_key: Key of the title, or of a first line that is one, without its bracketed part; empty for none.
        title_names: The title with and without that part.
        entities: Of the record, in order.
        statements: Of the record, in order.
        said: Key of the passage's title and text.
    """

    chunk_id: str
    title_key: str = ""
    title_names: tuple[str, ...] = ()
    entities: tuple[NamedEntity, ...] = ()
    statements: tuple[NamedStatement, ...] = ()
    said: str = ""

    def literals(self) -> dict[str, list[str]]:
        """By key the ends of statements that are no entities of the record, where the passage spells them out."""
        ids = {entity.id for entity in self.entities if entity.key}
        ends = dict.fromkeys(end for stated in self.statements for end in (stated.head, stated.tail) if end not in ids)
        found: dict[str, list[str]] = {}
        for end in ends:
            if key := cached_key(end):
                found.setdefault(key, []).extend([end] if key in self.said else [])
        return found

    @classmethod
    def of(cls, chunk: Chunk | Unit, record: ExtractionRecord | None) -> PassageNames:
        """From a passage and its record, if it has one."""
        title = chunk.title or title_line(chunk.text)[0]
        base = base_title(title)
        key = cached_key(base) if title else ""
        names = tuple(dict.fromkeys((title, base))) if key else ()
        if record is None:
            return cls(chunk.id, key, names)
        said = name_key(chunk.index_text)
        entities = tuple(
            NamedEntity(
                entity.id,
                entity.name,
                entity.type,
                cached_key(entity.name),
                tuple(name for name in dict.fromkeys((entity.name, *entity.aliases)) if cached_key(name) in said),
                tuple(alias for alias in map(cached_key, entity.aliases) if alias),
            )
            for entity in record.entities
        )
        statements = tuple(
            NamedStatement(triple.head, triple.predicate, triple.tail, fact.text)
            for fact in record.facts
            for triple in fact.triples
        )
        return cls(chunk.id, key, names, entities, statements, said)
