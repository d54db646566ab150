"""The nouns of the package, frozen and slotted dataclasses, and the hashes that their ids are made of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from sire_core.errors import ConfigurationError
from sire_core.text.words import without_link_targets

if TYPE_CHECKING:
    from sire_core.documents.blocks import Block

_UNIT = 24
_DIGITS = 32


def digest(*parts: str, size: int = 12) -> str:
    """Hash strings into a hexadecimal id.

    Parts are length-prefixed, so that no two different lists of parts collide by concatenation.
    """
    text = "".join([f"{len(part)}:{part}" for part in parts])
    if text.isascii():  # as many letters as bytes
        prefixed = text.encode()
    else:
        raw = [part.encode("utf-8", "surrogatepass") for part in parts]
        prefixed = b"".join([b"%d:%b" % (len(part), part) for part in raw])
    return hashlib.blake2b(prefixed, digest_size=size).hexdigest()


def hash64(text: str) -> int:
    """A hash that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def content_hash(title: str, text: str) -> str:
    """Hash of what a passage says; equal for duplicates in different documents."""
    return digest(title, text)


def chunk_id(doc_id: str, position: int, title: str, text: str) -> str:
    """Id of the chunk at `position` (0-based) of a document."""
    return digest("chunk", doc_id, str(position), title, text)


def unit_id(kind: str, fingerprint: str, chunk_ids: Iterable[str], text: str) -> str:
    """Id of a derived unit.

    Args:
        kind: A `UnitKind` value.
        fingerprint: Build fingerprint of the organizer that made the unit.
        chunk_ids: Source chunks in any order.
        text: The unit's text.
    """
    return digest(kind, fingerprint, *sorted(chunk_ids), text)


class UnitKind(str, Enum):
    """Kind of a unit: one of these, or one of your own (`define`)."""

    CHUNK = "chunk"
    SIM_SUMMARY = "sim_summary"
    AGGREGATE = "aggregate"
    REL_SUMMARY = "rel_summary"
    CROSS_SUMMARY = "cross_summary"
    PROPOSITION = "proposition"
    AKU = "aku"
    BRIDGE = "bridge"
    ENTITY = "entity"
    RELATION = "relation"
    REPORT = "report"

    def __str__(self) -> str:
        return self.value

    @classmethod
    def define(cls, name: str) -> UnitKind:
        """A kind of your own, for units of your own organizers; or the one that has this name already.

        An index that holds units of it can be read in any process. Where kinds are given by name (quotas, adapters),
        it is known after this.

        Args:
            name: Lower-case letters, digits and underscores, at most 32.

        Raises:
            ConfigurationError: It is no such name.
        """
        kind = cls._value2member_map_.get(name)
        if kind is None:
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,31}", name):
                raise ConfigurationError(
                    f"{name!r} names no kind: up to 32 lower-case letters, digits and underscores, a letter first."
                )
            kind = str.__new__(cls, name)
            kind._name_, kind._value_ = name.upper(), name
            cls._member_names_.append(kind.name)
            cls._member_map_[kind.name] = cls._value2member_map_[name] = kind
        return cast("UnitKind", kind)

    def __reduce_ex__(self, proto: object) -> tuple[Any, ...]:
        """Pickled by name, so that a process that has not defined it can read it."""
        return UnitKind.define, (self.value,)


BUILT_IN_KINDS: tuple[str, ...] = tuple(kind.value for kind in UnitKind)
"""The names of the kinds that nobody has to define."""


Metadata = Mapping[str, Any]
"""JSON-serialisable values by key. Filters look at the scalar ones."""


class PickledTexts:
    """A dataclass that is pickled with copies of its texts: pickle leaves a second copy, in UTF-8, in every string."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(map(_copied, _values_of(type(self))(self)))  # type: ignore[arg-type] # classes are hashable


@cache
def _values_of(kind: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Getter of the fields of a dataclass."""
    return attrgetter(*(entry.name for entry in fields(kind)))


def _copied(value: Any) -> Any:
    """A copy of a string, or of those of a tuple; ASCII is as it is, since it is in UTF-8 already."""
    if type(value) is str:
        return value if value.isascii() else value[:1] + value[1:]
    return tuple(map(_copied, value)) if type(value) is tuple else value


@dataclass(frozen=True, slots=True)
class Passage(PickledTexts):
    """A piece of a document that was already split; it is not split again.

    Attributes:
        text: The piece.
        id: Your id of the passage, returned with results; empty if there is none.
        title: Used before the text instead of the document's title; empty means the document's title.
        metadata: Added to the document's metadata; on equal keys, its values win.
        blocks: Structure of the text; it is read from the text if there are none.
        repeated: Number of letters at its beginning that repeat the end of the passage before.
    """

    text: str
    id: str = ""
    title: str = ""
    metadata: Metadata = field(default_factory=dict)
    blocks: tuple[Block, ...] = field(default=(), compare=False, repr=False)
    repeated: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Document(PickledTexts):
    """A document to be indexed.

    Attributes:
        id: Your id; unique in an index.
        text: The whole text. Ignored when `chunks` is given.
        title: Used before the text by embedders and models; may be empty.
        metadata: JSON-serialisable; filters apply to it.
        chunks: The text already split into passages, as strings or `Passage` objects.
        blocks: Structure of the text; it is read from the text if there are none.
    """

    id: str
    text: str = ""
    title: str = ""
    metadata: Metadata = field(default_factory=dict)
    chunks: tuple[str | Passage, ...] = ()
    blocks: tuple[Block, ...] = field(default=(), compare=False, repr=False)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The `chunks`, each as a `Passage`."""
        return tuple(Passage(chunk) if isinstance(chunk, str) else chunk for chunk in self.chunks)


class _Text(PickledTexts):
    """The text of a passage or unit, with its structure and language."""

    __slots__ = ()
    text: str
    title: str
    layout: str

    @property
    def blocks(self) -> tuple[Block, ...]:
        from sire_core.documents.block_reading import stored_blocks

        return stored_blocks(self.text, self.layout)

    @property
    def language(self) -> str:
        """Code of its language (ISO 639-1), `und` if nothing tells; that of its document, if it was stored."""
        from sire_core.documents.blocks import language_of
        from sire_core.text.languages import find_language

        return language_of(self.layout) or find_language(self.index_text)

    @property
    def index_text(self) -> str:
        """The text that is searched and embedded, without the addresses of links. Only passages include their title."""
        text = without_link_targets(self.text)
        is_passage = getattr(self, "kind", UnitKind.CHUNK) is UnitKind.CHUNK
        return f"{self.title}\n{text}" if self.title and is_passage else text


@dataclass(frozen=True, slots=True)
class Chunk(_Text):
    """A passage of a document, the smallest source that is tracked.

    Attributes:
        id: See `chunk_id`.
        doc_id: Document it belongs to.
        position: 0-based place inside the document.
        title: The passage's title, or the document's.
        text: The passage.
        metadata: The document's metadata and the passage's own.
        source_id: Your id of the passage; empty if there is none.
        layout: Its blocks and its language as they are stored.
    """

    id: str
    doc_id: str
    position: int
    title: str
    text: str
    metadata: Metadata = field(default_factory=dict)
    source_id: str = ""
    layout: str = field(default="", repr=False)

    @property
    def hash(self) -> str:
        """`content_hash` of title and text: the key of extraction records."""
        return content_hash(self.title, self.text)


@dataclass(frozen=True, slots=True)
class Entity:
    """A named thing of one record. `id` is local to the record."""

    id: str
    name: str
    type: str = ""
    aliases: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Triple:
    """A relation. `head` and `tail` are entity ids of the record or literal strings."""

    head: str
    predicate: str
    tail: str
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Fact:
    """A self-contained statement with the entities (ids of the record) that it names."""

    id: str
    text: str
    entities: tuple[str, ...] = ()
    question: str = ""
    answer: str = ""
    triples: tuple[Triple, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractionRecord:
    """Everything extracted from one passage; schema `extract/1`.

    Attributes:
        hash: `Chunk.hash` of the chunk.
        model: Fingerprint of the extractor's model.
        prompt: Version of the prompt.
        status: `ok`, `empty` (nothing to extract) or `failed`.
        reason: Why it failed.
    """

    hash: str
    model: str
    prompt: str
    status: str = "ok"
    entities: tuple[Entity, ...] = ()
    facts: tuple[Fact, ...] = ()
    keywords: tuple[str, ...] = ()
    topic: str = ""
    abstractiveness: str = "low"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unit(_Text):
    """Anything that a search can find: a passage, or a text derived from passages.

    Attributes:
        id: Chunk id for chunks, else `unit_id`.
        kind: What it is.
        text: The text.
        level: 0 for leaves, 1.. for summaries.
        tree: `sim`, `rel`, `cross` or empty.
        chunk_ids: Ids of the source passages, most relevant first; never empty.
        entity_keys: Normalised names of the entities it is about.
        title: Title line (chunks) or display name (aggregates); may be empty.
        metadata: The passage's metadata, or that of the organizer.
        source_ids: For a passage, your ids in the order of `chunk_ids`; empty if there are none.
        layout: Blocks and language of a passage as they are stored.
    """

    id: str
    kind: UnitKind
    text: str
    chunk_ids: tuple[str, ...]
    level: int = 0
    tree: str = ""
    entity_keys: tuple[str, ...] = ()
    title: str = ""
    metadata: Metadata = field(default_factory=dict)
    source_ids: tuple[str, ...] = ()
    layout: str = field(default="", repr=False)

    @property
    def source_id(self) -> str:
        """Your id of a passage; the unit's id if there is none."""
        return next(filter(None, self.source_ids), self.id)


@dataclass(frozen=True, slots=True)
class Edge:
    """A typed, weighted link between two units (or between a unit and a chunk)."""

    kind: str
    source: str
    target: str
    weight: float = 1.0
    metadata: Metadata = field(default_factory=dict)


BESIDE = "report_beside"  # Step of a passage's path that names a report behind it


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of the path from the query to a hit.

    Attributes:
        step: Kind of the step.
        ids: Entities and units that it passes, in order.
        note: The reason in words.
        sentence: The sentence that leads from the first of the ids to the last, where one does.
        name: The name in the sentence that leads there.
    """

    step: str
    ids: tuple[str, ...] = ()
    note: str = ""
    sentence: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved unit, its score (larger is better) and why it was found.

    Attributes:
        doc_ids: Documents of `unit.chunk_ids`, in that order, each once.
        path: Steps from the query to the hit.
        metadata: The metadata of a passage; for a derived unit, the metadata that all its source passages share.
        differing: Values, by key, of the keys on which its source passages differ; empty for a passage.
    """

    unit: Unit
    score: float
    doc_ids: tuple[str, ...] = ()
    path: tuple[PathStep, ...] = ()
    metadata: Metadata = field(default_factory=dict)
    differing: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def page(self) -> int | None:
        """Page of its PDF that a passage begins on, from 1, or what `page` in your metadata says; None elsewhere."""
        page = self.metadata.get("page")
        return page if isinstance(page, int) and not isinstance(page, bool) else None

    def page_at(self, start: int) -> int | None:
        """Page that the text of a passage from a character on begins on; `page` where its parts have no pages."""
        if self.page is None:
            return None
        pages = [block.page for block in self.unit.blocks if block.start <= start]
        return pages[-1] if pages and pages[0] == self.page else self.page

    def pages(self, start: int = 0, end: int | None = None) -> list[int]:
        """Pages that the text of a passage, or a part of it, stands on, ascending; empty where there are none."""
        first, last = (self.page_at(at) for at in (start, len(self.unit.text) if end is None else end))
        return [] if first is None or last is None else list(range(first, last + 1))

    def snippet(self, question: str, length: int = 240) -> str:
        """The sentences of the text around the one that shares most with a question, on one line, for people.

        Args:
            question: What was asked.
            length: Characters that it may have.
        """
        from sire_core.text.snippets import snippet

        return snippet(self.unit.text, question, length, self.led_by, self.unit.blocks)

    @property
    def led_by(self) -> str:
        """The sentence of another passage that the last link to this one is made by; empty without a link."""
        return next((step.sentence for step in reversed(self.path) if step.sentence), "")


@dataclass(frozen=True, slots=True)
class Failure:
    """A file, document or passage that failed, and why."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class BuildReport:
    """Result of a build, add, update or delete.

    Attributes:
        added: Number of new documents.
        updated: Number of changed documents.
        removed: Number of removed documents.
        unchanged: Number of unchanged documents.
        units: Number of units of the recipe by kind, after the build.
        calls: Requests sent to models, including retries.
        cached: Answers taken from the store.
        usage: Usage by stage; see `sire_core.models.usage.StageUsage`.
        failures: Passages or calls that failed; the next build tries them again.
        seconds: Wall time by stage.
        generation: Generation of the index after the change.
        dropped: Recipes that were removed from the index, because they were built with another language model or
            extractor than this change and could not be updated. Results of models are never removed.
        learned_again: Whether what the embedder had learned was lost with `calls.sqlite` and was learned again.
    """

    added: int = 0
    updated: int = 0
    removed: int = 0
    unchanged: int = 0
    units: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usage: Mapping[str, Any] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    generation: int = 0
    dropped: tuple[str, ...] = ()
    learned_again: bool = False

    def __str__(self) -> str:
        """Return the changes in a sentence."""
        from sire_core.text.pluralize import count

        numbers = {"added": self.added, "updated": self.updated, "removed": self.removed, "unchanged": self.unchanged}
        changes = [f"{number:,} {word}" for word, number in numbers.items() if number]
        parts = [f"Documents: {', '.join(changes)}" if changes else "Nothing changed"]
        if units := sum(self.units.values()):
            parts.append(f"the index has {count(units, 'unit')}")
        if self.calls:
            parts.append(f"{count(self.calls, 'model call')}, {self.input_tokens + self.output_tokens:,} tokens")
        if self.failures:
            parts.append(f"{count(len(self.failures), 'failure')}, first {self.failures[0].where}")
        if self.dropped:
            parts.append(f"recipes dropped: {', '.join(self.dropped)}")
        return f"{'; '.join(parts)}."


def to_uuid(unit: str) -> str:
    """Return the id of a unit as a UUID: its 24 hexadecimal digits, padded with zeros."""
    digits = unit.ljust(_DIGITS, "0")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def from_uuid(name: str) -> str:
    """Return the id of the unit of a UUID; any other text comes back in some form."""
    return name.replace("-", "")[:_UNIT]
