"""Protocols of builds: extractors, organizers, runners, mirrors; and `Recipe`, which combines them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sire_core.protocols.searching import ContextProvider, Ranker, Selector, VectorIndex
from sire_core.types import PickledTexts

if TYPE_CHECKING:
    import numpy as np

    from sire_core.protocols.models import Embedder, FloatArray, LanguageModel
    from sire_core.storage.step_tables import OutputRow, StepTables, StoredRow
    from sire_core.types import Chunk, Edge, ExtractionRecord, Failure, Unit

S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")


class Runner(Protocol):
    """Applies pure functions to parts of work: here, or on other machines."""

    @property
    def part_size(self) -> int | None:
        """Items of a part; None does all in one go, in this process."""

    def map(self, function: Callable[[S, P], R], shared: S, parts: Sequence[P]) -> AsyncGenerator[tuple[int, R], None]:
        """Apply a function of a module to every part.

        Args:
            function: Pure: a part may be worked on twice when a worker is lost.
            shared: Its first argument, sent once.
            parts: Its second arguments, of which a bounded number is under way at once.

        Yields:
            Number of a part and its result, as they are ready. What the function raises is raised.
        """


Progress = Callable[[str, int, int], None]
"""Called as `progress(stage, done, total)` while an index is built. Must return quickly."""


@dataclass(frozen=True, slots=True)
class ChunkInContext(PickledTexts):
    """A chunk and the text before it in the same document (empty at the start)."""

    chunk: Chunk
    previous: str = ""


class Extractor(Protocol):
    """Makes one `ExtractionRecord` per chunk.

    One whose attribute `portable` is True is pickled and works on other machines where the build's `Runner` says so;
    that is for extractors that ask no model that has to be paid.
    """

    @property
    def fingerprint(self) -> str:
        """Names model and prompt version; records are stored under (chunk hash, fingerprint)."""

    @property
    def links_titles(self) -> bool:
        """True if titles of other documents that a fact names become entities when records are read."""

    def extract(self, chunks: Sequence[ChunkInContext]) -> AsyncIterator[Sequence[ExtractionRecord]]:
        """Yield records in batches as they are ready, failed ones included; every chunk gets exactly one.

        Each batch is stored before the next one is asked for.
        """


class Summarizer(Protocol):
    """Writes the text of a summary unit."""

    async def summarize(self, clusters: Sequence[Sequence[Unit]]) -> Sequence[tuple[str, tuple[str, ...]]]:
        """Summarise each cluster of units.

        Returns:
            Per cluster the text (empty when there is nothing to say) and the ids of the members, most telling first.
        """


@dataclass(frozen=True, slots=True)
class Change:
    """Chunks that a change adds and removes. A first build adds all."""

    added: tuple[Chunk, ...] = ()
    removed: tuple[Chunk, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


@dataclass(frozen=True, slots=True)
class TableChange:
    """Change of a step's table: items that lose rows, new rows, and outputs by key.

    Rows of a key stand together. `remembered` is not written: see `StepTables.remembered`.
    """

    drop_items: tuple[str, ...] = ()
    put_rows: Iterable[StoredRow] = ()
    drop_outputs: tuple[str, ...] = ()
    put_outputs: Iterable[OutputRow] = ()
    remembered: Any = None


@dataclass(frozen=True, slots=True)
class Delta:
    """Change of an organizer's part of the pool. Dropping comes first, then putting.

    `state` replaces what was stored; `notes` are many small states by key, of which only those named here are written,
    or deleted where the value is None. `tables` are changes of the tables of steps, by name.
    """

    put_units: tuple[Unit, ...] = ()
    drop_units: tuple[str, ...] = ()
    put_edges: tuple[Edge, ...] = ()
    drop_edges: tuple[Edge, ...] = ()
    state: Mapping[str, Any] | None = None
    notes: Mapping[str, bytes | None] = field(default_factory=dict)
    tables: Mapping[str, TableChange] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()


RecordDecoder = Callable[[Mapping[str, bytes]], Mapping[str, "ExtractionRecord"]]


class BuildView(Protocol):
    """Input of an organizer: the corpus after the change, and what it stored before."""

    @property
    def fingerprint(self) -> str:
        """Build fingerprint of the organizer: goes into the ids of its units."""

    @property
    def chunks(self) -> Sequence[Chunk]:
        """All chunks after the change, ordered by (document sequence, position, id)."""

    @property
    def chunk_units(self) -> Sequence[Unit]:
        """One unit per distinct passage, in the order of `chunks`."""

    @property
    def language_model(self) -> LanguageModel | None:
        """The user's model, or None."""

    @property
    def fingerprints(self) -> tuple[str, str]:
        """Fingerprints of the embedder and of the extractor, what they learned included."""

    @property
    def runner(self) -> Runner:
        """Runner of work that falls into parts."""

    def records(self, chunk_ids: Collection[str] | None = None) -> Mapping[str, ExtractionRecord]:
        """Extraction records by chunk id; failed ones are left out.

        Args:
            chunk_ids: Whose; None reads all.
        """

    def stored_records(self, chunk_ids: Sequence[str]) -> Mapping[str, bytes]:
        """Records of chunks as they are stored, for `record_decoder`."""

    def record_decoder(self, chunk_ids: Sequence[str]) -> RecordDecoder:
        """Function that decodes the stored records of these chunks, or of some of them, in any process."""

    def chunk(self, chunk: str) -> Chunk:
        """A chunk by its id."""

    def place(self, chunk: str) -> tuple[int, int]:
        """Sequence number of a chunk's document, which a document keeps, and the chunk's position in it."""

    def touched(self, change: Change) -> Collection[str]:
        """Ids of chunk units that come, change or go with a change, and of those whose records changed.

        Whoever reads a passage's metadata asks here: a change of metadata alone is no `Change`, which names chunks.
        """

    def tables(self) -> StepTables:
        """Tables of the organizer's steps, as of the last commit."""

    def forgotten(self) -> AbstractSet[str]:
        """Ids of old chunks about which models are asked again: what they wrote from them is written again."""

    def units(self, ids: Collection[str] | None = None) -> Sequence[Unit]:
        """Units that this organizer put before.

        Args:
            ids: Which, of whomever; None reads all of its own.
        """

    def edges(self) -> Sequence[Edge]:
        """Edges that this organizer put before."""

    def state(self) -> Mapping[str, Any]:
        """State that this organizer stored before; empty at first."""

    def notes(self, keys: Collection[str]) -> Mapping[str, bytes]:
        """Notes that this organizer stored before, by key; unknown keys are left out."""

    def required_units(self, organizer: str) -> Sequence[Unit]:
        """Units of a required organizer after the change."""

    def required_notes(self, organizer: str, keys: Collection[str]) -> Mapping[str, bytes]:
        """Notes of a required organizer after the change, by key; unknown keys are left out."""

    async def vectors(self, units: Sequence[Unit | str]) -> FloatArray:
        """Unit-length vectors of the units' index texts, `[len(units), dimension]`; stored ones are reused.

        Args:
            units: Units, or ids of stored ones.
        """

    def rng(self, *names: str) -> np.random.Generator:
        """A generator that depends on the index seed and `names` only."""

    def summarizer(self, max_tokens: int, stage: str = "summaries") -> Summarizer:
        """The model-based summariser where there is a model, else the extractive one; progress calls it `stage`."""

    def progress(self, stage: str, done: int, total: int) -> None:
        """Report progress."""


class Organizer(Protocol):
    """Builds a part of the pool from the corpus."""

    @property
    def name(self) -> str:
        """Short name, unique within a recipe."""

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of organizers whose output it reads."""

    @property
    def needs_records(self) -> bool:
        """True if it reads extraction records."""

    @property
    def needs_summaries(self) -> bool:
        """True if it writes summaries."""

    def settings(self) -> Mapping[str, Any]:
        """Every setting that changes what is built; part of the build fingerprint."""

    def describe(self) -> str:
        """One sentence for users: what is built, and what it costs."""

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring the organizer's part of the pool up to date with the change."""


@dataclass(frozen=True, slots=True)
class MirroredUnit:
    """A unit on its way into a vector store.

    Attributes:
        unit: The unit; its id is the id in the store.
        doc_ids: Documents it stands on.
        metadata: What the metadata of all these documents agree on, so that a filter of the store never lets a unit
            through that also stands on something else.
        vector: Its vector in the index, float32 `[dimension]`.
        replaces: Whether the store may hold something under this id already.
        differs: Metadata keys on which the documents do not agree.
    """

    unit: Unit
    doc_ids: tuple[str, ...]
    metadata: Mapping[str, Any]
    vector: FloatArray
    replaces: bool = True
    differs: tuple[str, ...] = ()


class Mirror(Protocol):
    """A vector store that follows an index. Calls may repeat after a crash: `put` and `drop` must be idempotent.

    These async methods are optional; what they do is left out for a store without them:

    - `holds(unit, vector) -> bool`: whether the store still has a unit that was put, by id; if not, everything is put
      again. For stores that can lose everything, for example because they live in memory only.
    - `flush()`: keep what was put and dropped. Called after the last `put` or `drop` of a push, which counts as done
      when this has returned. For stores such as a file that is written whole.
    - `nearest(unit) -> Sequence[str]`: the unit id of the entry that is nearest to a `MirroredUnit`, any other text for
      an entry of others, which are warned of before the first write. It may raise anything: many stores make their
      collection only when something is first added.
    - `mark() -> str`, `leave_mark(text)`, `clear()` and `purge()`, all four: a line that is kept with the table, empty
      if there is no table or none was left; delete every entry; overwrite or give back what deleted entries left in the
      database's files. A table of another index is then refused, and one that is not what was sent (another database, a
      restored one) is emptied and filled again.
    """

    @property
    def name(self) -> str:
        """Tells the stores of one index apart; the same store has the same name in every process."""

    async def put(self, units: Sequence[MirroredUnit]) -> None:
        """Insert units, replacing what the store has under their ids."""

    async def drop(self, ids: Sequence[str]) -> None:
        """Delete units; those that are not there count as deleted."""


class UnitStore(Mirror, VectorIndex, Protocol):
    """A database that follows an index and finds what is nearest; see `sire_core.stores`."""


DEFAULT_PRESET = "ours"  # The preset of every recipe that leaves all settings at their defaults


def extraction_by_preset(config: Mapping[str, Any]) -> str:
    """Return how a model extracts for a recipe with these settings: with its paper's prompts in a paper's preset."""
    return "joint" if config.get("preset", DEFAULT_PRESET) == DEFAULT_PRESET else "native"


@dataclass(frozen=True, slots=True)
class Recipe:
    """A way to index and search.

    Attributes:
        name: Name in the registry.
        summary: One line that helps to choose a recipe.
        paper: The paper that it implements.
        organizers: What is derived, in an order that respects `requires`.
        ranker: Ranks the units.
        selectors: Choose from the ranking, applied in order.
        context: Adds text to an answer's prompt, in addition to the hits; None adds nothing.
        native: The prompts for `Index(extraction="native")`: a name of `sire_core.extraction.model_extractor.NATIVE`,
            maybe with types of entities (`strengths:Disease, Drug`); those of SiReRAG where its paper has none.
        vectors: The user's vector store for nearest-neighbour search; None uses the built-in scan.
        config: The settings of the recipe; `REGISTRY[name](**config)` creates the same recipe.
        texts: Explanations of these settings.
    """

    name: str
    summary: str
    paper: str
    organizers: tuple[Organizer, ...] = ()
    ranker: Ranker = field(kw_only=True)
    selectors: tuple[Selector, ...] = ()
    context: ContextProvider | None = None
    native: str = "rewrite"
    vectors: VectorIndex | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def extraction(self) -> str:
        """Default way of extraction by a model, see `extraction_by_preset`."""
        return extraction_by_preset(self.config)

    @property
    def needs_records(self) -> bool:
        """True if an extraction pass is needed."""
        return any(organizer.needs_records for organizer in self.organizers)

    def check_embedder(self, embedder: Embedder) -> None:
        """Refuse vectors that a trained ranker cannot read, before they are made or searched.

        Raises:
            EmbedderMismatchError: The ranker was trained on vectors of another embedder.
        """
        check = getattr(self.ranker, "check_embedder", None)
        if check is not None:
            check(embedder)

    def check_installed(self) -> None:
        """Refuse a build whose libraries are missing, before anything is asked of a model or priced.

        Raises:
            ConfigurationError: An organizer cannot work here; with what to install.
        """
        for organizer in self.organizers:
            check = getattr(organizer, "check_installed", None)  # organizers of your own need none
            if check is not None:
                check()

    def describe(self) -> str:
        """Describe in a few lines what will be built and what it costs."""
        lines = [f"{self.name}: {self.summary} ({self.paper})"]
        lines += [f"  builds {organizer.name}: {organizer.describe()}" for organizer in self.organizers]
        if not self.organizers:
            lines.append("  builds nothing beyond the passages and their vectors: no model calls.")
        lines.append(f"  ranks with {type(self.ranker).__name__}")
        lines += [f"  selects with {type(selector).__name__}" for selector in self.selectors]
        return "\n".join(lines)
