"""The seams of the house, as `typing.Protocol`s. Nobody has to inherit from anything here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from sire_core.filters import Filter
    from sire_core.types import Chunk, Edge, ExtractionRecord, Failure, Hit, Step, Unit

    FloatArray = NDArray[np.float32]
    IntArray = NDArray[np.int64]
    BoolArray = NDArray[np.bool_]

__all__ = [
    "BuildView",
    "Change",
    "ChunkInContext",
    "Completion",
    "Delta",
    "Embedder",
    "Extractor",
    "Fittable",
    "LanguageModel",
    "Organizer",
    "Progress",
    "Prompt",
    "RankedSource",
    "Ranker",
    "Ranking",
    "Selector",
    "Summarizer",
    "View",
]

Progress = Callable[[str, int, int], None]
"""Called as `progress(stage, done, total)` while an index is built. Must return quickly."""


# --------------------------------------------------------------------------------------------------------------------
# Models


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked.

    Attributes:
        instructions: Our words.
        data: Untrusted text (passages, questions). The client fences and escapes it, so that it can neither steer the
            instructions nor close a delimiter.
        images: Bytes of images for vision models.
    """

    instructions: str
    data: str = ""
    images: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer. `parsed` is set when a schema was asked for; `finish` is `stop`, `length` or `refusal`."""

    text: str
    parsed: Any = None
    input_tokens: int = 0
    output_tokens: int = 0
    finish: str = "stop"


@runtime_checkable
class LanguageModel(Protocol):
    """A chat model."""

    @property
    def fingerprint(self) -> str:
        """Names the model and every setting that changes its answers."""

    async def complete(
        self,
        prompt: Prompt,
        *,
        schema: type[Any] | None = None,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float = 0.0,
    ) -> Completion:
        """Answer a prompt.

        Args:
            prompt: Instructions and data.
            schema: A pydantic model class; the answer is validated against it and returned as `parsed`.
            stop: Texts that end the answer.
            max_tokens: Upper bound of the answer.
            temperature: 0 for repeatable answers.

        Raises:
            RefusalError: The model declined.
            ModelError: The call failed, or the answer did not fit the schema after one repair.
            LimitExceededError: A usage limit would be passed.
        """


@runtime_checkable
class Embedder(Protocol):
    """Turns text into vectors."""

    @property
    def fingerprint(self) -> str:
        """Names the model; two embedders with the same fingerprint give the same vectors."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    async def embed(self, texts: Sequence[str], kind: str = "document") -> FloatArray:
        """Embed texts.

        Args:
            texts: Any number of texts.
            kind: `document` or `query`; some models treat them differently.

        Returns:
            float32 `[len(texts), dimension]`; the index normalises the rows.
        """


@runtime_checkable
class Fittable(Protocol):
    """An embedder or extractor that learns from the first batch and is then frozen.

    The index fits it once, stores `state()` before anything is made with it, and restores it with `from_state`.
    """

    @property
    def fitted(self) -> bool:
        """Whether `fit` or `from_state` has run."""

    def fit(self, texts: Sequence[str]) -> Fittable:
        """Return a fitted copy. Deterministic in `texts`."""

    def state(self) -> Mapping[str, NDArray[Any]]:
        """Arrays (no objects) that restore the fitted copy."""

    def from_state(self, state: Mapping[str, NDArray[Any]]) -> Fittable:
        """Return a copy restored from `state()`."""


# --------------------------------------------------------------------------------------------------------------------
# Extraction and summaries


@dataclass(frozen=True, slots=True)
class ChunkInContext:
    """A chunk and the text before it in the same document (empty at the start)."""

    chunk: Chunk
    previous: str = ""


class Extractor(Protocol):
    """Makes one `ExtractionRecord` per chunk."""

    @property
    def fingerprint(self) -> str:
        """Names model and prompt version; records are stored under (chunk hash, fingerprint)."""

    @property
    def links_titles(self) -> bool:
        """Whether titles of other documents that a fact names become entities when records are read."""

    def extract(self, chunks: Sequence[ChunkInContext]) -> AsyncIterator[Sequence[ExtractionRecord]]:
        """Yield records in batches as they are ready, failed ones included; every chunk gets exactly one.

        Each batch is stored before the next one is asked for.
        """


class Summarizer(Protocol):
    """Writes the text of a summary unit."""

    @property
    def fingerprint(self) -> str:
        """Names the method, its settings and its model."""

    async def summarize(self, clusters: Sequence[Sequence[Unit]]) -> Sequence[tuple[str, tuple[str, ...]]]:
        """Summarise each cluster of units.

        Returns:
            Per cluster the text (empty when there is nothing to say) and the ids of the members, most telling first.
        """


# --------------------------------------------------------------------------------------------------------------------
# Building


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to the corpus, as chunks. A first build adds everything to nothing."""

    added: tuple[Chunk, ...] = ()
    removed: tuple[Chunk, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


@dataclass(frozen=True, slots=True)
class Delta:
    """What an organizer does to its own part of the pool. Dropping comes first, then putting."""

    put_units: tuple[Unit, ...] = ()
    drop_units: tuple[str, ...] = ()
    put_edges: tuple[Edge, ...] = ()
    drop_edges: tuple[Edge, ...] = ()
    state: Mapping[str, Any] | None = None
    failures: tuple[Failure, ...] = ()


class BuildView(Protocol):
    """What an organizer may read while it works: the corpus after the change, and its own past."""

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

    def records(self) -> Mapping[str, ExtractionRecord]:
        """Extraction records by chunk id; failed ones are left out."""

    def units(self) -> Sequence[Unit]:
        """Units that this organizer put before."""

    def edges(self) -> Sequence[Edge]:
        """Edges that this organizer put before."""

    def state(self) -> Mapping[str, Any]:
        """State that this organizer stored before; empty at first."""

    def required(self, organizer: str) -> tuple[Sequence[Unit], Sequence[Edge], Delta]:
        """Units and edges of a required organizer after the change, and its delta."""

    async def vectors(self, units: Sequence[Unit]) -> FloatArray:
        """Unit-length vectors of the units' index texts, `[len(units), dimension]`; stored ones are reused."""

    def rng(self, *names: str) -> np.random.Generator:
        """A generator that depends on the index seed and `names` only."""

    def summarizer(self, max_tokens: int) -> Summarizer:
        """The model-based summariser where there is a model, else the extractive one."""

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
        """Whether it reads extraction records."""

    @property
    def needs_summaries(self) -> bool:
        """Whether it writes summaries."""

    def settings(self) -> Mapping[str, Any]:
        """Every setting that changes what is built; part of the build fingerprint."""

    def describe(self) -> str:
        """One sentence for users: what is built, and what it costs."""

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring the organizer's part of the pool up to date with the change."""


# --------------------------------------------------------------------------------------------------------------------
# Searching


class View(Protocol):
    """A read-only snapshot of one recipe's pool, for rankers and selectors. Positions are row numbers."""

    @property
    def generation(self) -> int:
        """Generation of the index this snapshot shows."""

    @property
    def size(self) -> int:
        """Number of units."""

    @property
    def matrix(self) -> FloatArray:
        """Unit-length vectors, `[size, dimension]`, memory-mapped."""

    @property
    def kinds(self) -> NDArray[np.uint8]:
        """Codes into `kind_names`, `[size]`."""

    @property
    def kind_names(self) -> Sequence[str]:
        """`UnitKind` values by code."""

    @property
    def ids(self) -> NDArray[np.bytes_]:
        """Unit ids, ASCII, `[size]`."""

    @property
    def chunk_pointers(self) -> tuple[IntArray, IntArray]:
        """CSR of provenance: unit i stands on chunk numbers `indices[indptr[i]:indptr[i + 1]]`."""

    @property
    def language_model(self) -> LanguageModel | None:
        """The user's model, or None."""

    @property
    def directory(self) -> Path | None:
        """Where derived structures of this snapshot may be kept for the next process; None in memory."""

    async def embed_query(self, query: str) -> FloatArray:
        """Unit-length vector of a question, `[dimension]`."""

    def allowed(self, where: Filter | None) -> BoolArray | None:
        """Units that pass a filter (all their chunks pass), `[size]`; None when everything passes."""

    def units(self, positions: Sequence[int] | IntArray) -> list[Unit]:
        """Read units."""

    def hits(self, positions: IntArray, scores: NDArray[np.float32], ranking: Ranking) -> list[Hit]:
        """Read units as hits, with their documents and the reasons that the ranking gives.

        A derived unit cites its passages in the order in which the ranking itself prefers them.
        """

    def edges(self) -> Sequence[Edge]:
        """All edges of the pool."""

    def derived(self, name: str, make: Callable[[], Any]) -> Any:
        """A structure derived from this snapshot (an inverted index, a CSR graph), made once and shared by queries."""


class Ranking(Protocol):
    """An ordered, lazily extended list of unit positions."""

    async def top(self, n: int) -> tuple[IntArray, NDArray[np.float32]]:
        """The best `n` positions and scores, or fewer when the pool is exhausted. Best first, ties by position."""

    def scores_at(self, positions: IntArray) -> NDArray[np.float32]:
        """Scores of given positions, whether they are near the top or not; orders the citations of a derived unit."""

    def path(self, position: int) -> tuple[Step, ...]:
        """Why a position is where it is."""


class Ranker(Protocol):
    """Orders the pool for a question. Holds settings only, never the state of a query."""

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:
        """Rank the units that pass the filter.

        Args:
            query: The question.
            n: How many will probably be read.
            view: The pool.
            where: Filter on chunk metadata.
        """


class Selector(Protocol):
    """Turns a ranking into the context of an answer."""

    async def select(self, query: str, ranking: Ranking, k: int, view: View) -> Ranking:
        """Return a ranking whose first `k` are the context; topped up from `ranking` when it runs short."""


class RankedSource(Protocol):
    """The user's own vector store as a source of rankings."""

    def rank(self, query: str, n: int, where: Filter | None = None) -> Awaitable[Sequence[tuple[str, float]]]:
        """The best `n` (unit id, score) pairs."""
