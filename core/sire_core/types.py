"""The nouns of the package: frozen, slotted dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sire_core.identity import BUILT_IN_KINDS, UnitKind, chunk_id, content_hash, digest, hash64, unit_id

__all__ = [
    "BUILT_IN_KINDS",
    "BuildReport",
    "Chunk",
    "Document",
    "Edge",
    "Entity",
    "ExtractionRecord",
    "Fact",
    "Failure",
    "Hit",
    "Metadata",
    "Passage",
    "PathStep",
    "Triple",
    "Unit",
    "UnitKind",
    "chunk_id",
    "content_hash",
    "digest",
    "hash64",
    "unit_id",
]

Metadata = Mapping[str, Any]
"""JSON-serialisable values by key. Filters look at the scalar ones."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that was cut before it came here; it is not cut again.

    Attributes:
        text: The piece.
        id: The user's own id of it, which results carry; empty where there is none.
        title: Shown in front of the text in place of the document's title; empty takes the document's.
        metadata: What it adds to the document's metadata; its own values win.
    """

    text: str
    id: str = ""
    title: str = ""
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """What the user hands in.

    Attributes:
        id: The user's own id; unique in an index.
        text: The whole text. Ignored when `chunks` is given.
        title: Shown in front of the text to embedders and models; may be empty.
        metadata: JSON-serialisable; filters apply to it.
        chunks: Text already cut into passages, as texts or as `Passage` objects; taken as it is.
    """

    id: str
    text: str = ""
    title: str = ""
    metadata: Metadata = field(default_factory=dict)
    chunks: tuple[str | Passage, ...] = ()

    @property
    def passages(self) -> tuple[Passage, ...]:
        """`chunks`, each as a `Passage`."""
        return tuple(Passage(chunk) if isinstance(chunk, str) else chunk for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a document: the atom of provenance.

    Attributes:
        id: See `chunk_id`.
        doc_id: Document it belongs to.
        position: 0-based place inside the document.
        title: The passage's own title, else the document's.
        text: The passage.
        metadata: The document's metadata and the passage's own.
        source_id: The user's own id of the passage; empty where there is none.
    """

    id: str
    doc_id: str
    position: int
    title: str
    text: str
    metadata: Metadata = field(default_factory=dict)
    source_id: str = ""

    @property
    def hash(self) -> str:
        """`content_hash` of title and text: the key of extraction records."""
        return content_hash(self.title, self.text)

    @property
    def index_text(self) -> str:
        """What is embedded: the title line, then the text."""
        return f"{self.title}\n{self.text}" if self.title else self.text


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
    """Everything one extraction pass says of one chunk; schema `extract/1`.

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
class Unit:
    """Anything retrievable.

    Attributes:
        id: Chunk id for chunks, else `unit_id`.
        kind: What it is.
        text: What the reader sees.
        level: 0 for leaves, 1.. for summaries.
        tree: `sim`, `rel`, `cross` or empty.
        chunk_ids: Source chunks, most telling first; never empty.
        entity_keys: Normalised names of the entities it is about.
        title: Title line (chunks) or display name (aggregates); may be empty.
        metadata: The chunk's own metadata, or what the organizer has to say.
        source_ids: Of a passage, the user's own ids in the order of `chunk_ids`; empty where there are none.
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

    @property
    def source_id(self) -> str:
        """The user's own id of a passage; the unit's where there is none."""
        return next(filter(None, self.source_ids), self.id)

    @property
    def index_text(self) -> str:
        """What is embedded. Only chunks carry their title line."""
        return f"{self.title}\n{self.text}" if self.title and self.kind is UnitKind.CHUNK else self.text


@dataclass(frozen=True, slots=True)
class Edge:
    """A typed, weighted link between two units (or between a unit and a chunk)."""

    kind: str
    source: str
    target: str
    weight: float = 1.0
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PathStep:
    """One reason on the way from the query to a hit."""

    step: str
    ids: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved unit, its score (larger is better) and why it was chosen.

    Attributes:
        doc_ids: Documents of `unit.chunk_ids`, in that order, each once.
        path: Steps from the query to the hit.
        metadata: Of a passage, its metadata; of a derived unit, what the metadata of all its passages agree on.
        differing: Values, by key, that its passages do not agree on; empty for a passage.
    """

    unit: Unit
    score: float
    doc_ids: tuple[str, ...] = ()
    path: tuple[PathStep, ...] = ()
    metadata: Metadata = field(default_factory=dict)
    differing: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that could not be done, and why: a file, a document or a chunk."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build, add, update or delete did.

    Attributes:
        added: Documents that are new.
        updated: Documents whose content changed.
        removed: Documents that are gone.
        unchanged: Documents that stayed as they were.
        units: Units of the recipe's pool by kind, after the build.
        calls: Requests sent to models, repeated ones included.
        cached: Answers taken from the store.
        usage: The same by stage; see `sire_core.models.usage.StageUsage`.
        failures: Chunks or calls that failed; the next build tries them again.
        seconds: Wall time by stage.
        generation: Generation of the index that the report describes.
        dropped: Recipes that the index held before. They were built with another language model or extractor than this
            change was given, and could not follow it; nothing that a model was paid for is among them.
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
