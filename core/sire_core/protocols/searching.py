"""Protocols of searches: views of a pool, rankers, selectors, vector stores."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sire_core.filters import Filter
    from sire_core.protocols.building import Runner
    from sire_core.protocols.models import BoolArray, DoubleArray, FloatArray, IdArray, IntArray, LanguageModel
    from sire_core.types import Edge, Hit, PathStep, Unit

T = TypeVar("T")


class Similarities(Protocol):
    """Cosines of a question with the units of a pool; for a large pool computed as far as they are read."""

    def __len__(self) -> int:
        """Number of units there are."""

    def all(self) -> FloatArray:
        """Cosines of all units, `[size]`."""

    def at(self, positions: IntArray, rows: FloatArray | None = None) -> FloatArray:
        """Cosines of the units at `positions`.

        Args:
            positions: The units.
            rows: Their vectors in the pool, where the caller has read them, `[len(positions), dimension]`.
        """

    def best(self, n: int) -> tuple[IntArray, FloatArray]:
        """The `n` most similar units, best first, ties by position, and their similarities."""


@dataclass(frozen=True, slots=True)
class CarriedArrays(Generic[T]):
    """Storage of a structure that later generations, also in other processes, update.

    Attributes:
        folder: Name of the folder; another one for every layout and for other rules by which rows are made.
        arrays: Gives its arrays by name.
        of: Makes it of them.
        size: Number of rows, and of those made since it was read or first made.
    """

    folder: str
    arrays: Callable[[T], Mapping[str, NDArray[Any]]]
    of: Callable[[Mapping[str, NDArray[Any]]], T]
    size: Callable[[T], tuple[int, int]]


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
    def ids(self) -> IdArray:
        """Unit ids, ASCII, `[size]`."""

    @property
    def chunk_pointers(self) -> tuple[IntArray, IntArray]:
        """CSR of provenance: unit i stands on chunk numbers `indices[indptr[i]:indptr[i + 1]]`."""

    @property
    def chunk_documents(self) -> IntArray:
        """Number of each chunk's document, in corpus order, `[chunks]`."""

    @property
    def chunk_metadata(self) -> tuple[IntArray, Sequence[Mapping[str, Any]]]:
        """Number of each chunk's metadata, `[chunks]`, and the different metadata by number."""

    @property
    def language_model(self) -> LanguageModel | None:
        """The user's model, or None."""

    @property
    def asks_models(self) -> bool:
        """True if a language model may be asked; not when no call is left, say."""

    def named_model(self, setting: str, name: str) -> LanguageModel | None:
        """The model that a setting names, counted and bounded as the user's own; None when none may be asked.

        Args:
            setting: The setting's name, for messages.
            name: A model behind an OpenAI-compatible server: `NAME`, or `NAME@http://host/v1` with its address.

        Raises:
            ConfigurationError: Only an index folder names it, or it needs a key, or the package `openai`.
        """

    @property
    def embedder_fingerprint(self) -> str:
        """Fingerprint of the embedder that the vectors are of; empty when nothing was ever embedded."""

    @property
    def paraphrase_score(self) -> float | None:
        """Score of that embedder for paraphrases, 0 to 1; None if it was not measured, as of few passages."""

    async def embed_query(self, query: str) -> FloatArray:
        """Unit-length vector of a question, `[dimension]`."""

    async def embed_queries(self, queries: Sequence[str]) -> FloatArray:
        """Unit-length vectors of questions or parts of one, `[queries, dimension]`, from one call of the embedder."""

    async def embed_tokens(self, texts: Sequence[str], kind: str) -> list[FloatArray]:
        """Unit-length vectors of the tokens of texts, each `[tokens, d]`; an error where the embedder has none."""

    @property
    def scans(self) -> bool:
        """True if `cosines` come from the pool's own vectors, not from a store of the user's."""

    def waiting(self) -> BoolArray:
        """Which units a store of the user's has not got yet, or not as they are, `[size]`."""

    async def cosines(self, query: str, question: FloatArray, where: Filter | None = None) -> FloatArray:
        """Similarity of a question with every unit, `[size]`, as the pool's vector index has it.

        Args:
            query: The question.
            question: Its vector.
            where: Only units that pass it will be looked at; a store of the user's is told.
        """

    async def similarities(self, query: str, question: FloatArray, where: Filter | None = None) -> Similarities:
        """As `cosines`, but those of a large pool are computed as far as they are read. For one question only."""

    def allowed(self, where: Filter | None) -> BoolArray | None:
        """Units that pass a filter (all their chunks pass), `[size]`; None when everything passes."""

    @property
    def runner(self) -> Runner | None:
        """Runs parallel work while a build prepares the ranker; None in searches."""

    def units(self, positions: Sequence[int] | IntArray) -> list[Unit]:
        """Read units."""

    def hits(self, positions: IntArray, scores: FloatArray, ranking: Ranking) -> list[Hit]:
        """Read units as hits, with their documents and the reasons that the ranking gives.

        A derived unit cites its passages in the order in which the ranking itself prefers them.
        """

    def places(self) -> Mapping[str, int]:
        """Positions of units by id."""

    def shown_entity(self, entity_id: str) -> str:
        """Id of an entity as paths have it; where `allow` hides passages, it is made of those that are seen."""

    def edges(self) -> Sequence[Edge]:
        """All edges of the pool."""

    def note(self, key: str) -> bytes | None:
        """A note that an organizer of the pool left for queries, of this generation; None where there is none."""

    def notes(self, prefix: str) -> Sequence[bytes]:
        """All notes of the pool's organizers whose keys begin with a text, by key; see `note`."""

    def derived(self, name: str, make: Callable[[], T]) -> T:
        """Return a structure derived from this snapshot (an index, a graph), made once and shared by queries."""

    def cached_incremental(self, name: str, make: Callable[[T | None], T], saved: CarriedArrays[T] | None = None) -> T:
        """Return a structure that `make` updates from that of the previous snapshot, or makes from None.

        With `saved`, the previous structure may come from another process, and be some changes older.
        """

    def cached_arrays(self, name: str, make: Callable[[], Mapping[str, NDArray[Any]]]) -> Mapping[str, NDArray[Any]]:
        """Return arrays by name, derived from this snapshot and kept in one file, from which they are mapped."""

    def cached_on_disk(
        self, name: str, make: Callable[[], T], save: Callable[[T, Path], None], load: Callable[[Path], T]
    ) -> T:
        """Return a structure derived from this snapshot that `save` writes to a folder and `load` reads back.

        Files that are damaged or belong to another snapshot are replaced.
        """


class Ranking(Protocol):
    """An ordered, lazily extended list of unit positions."""

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions and scores, or fewer when the pool is exhausted. Best first, ties by position."""

    def scores_at(self, positions: IntArray) -> FloatArray:
        """Scores of given positions, whether they are near the top or not; orders the citations of a derived unit."""

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Why a position is where it is."""


@runtime_checkable
class ReadableRanking(Protocol):
    """A ranking that knows how a model should read its first hits again."""

    def reading(self, positions: IntArray) -> tuple[DoubleArray, list[str]]:
        """Weight of a model's judgement at each position, usually 1; and the sentence that leads to each.

        Where nothing leads, the sentence is empty.
        """


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


@runtime_checkable
class PreparedRanker(Protocol):
    """A ranker that keeps structures of its own; a build makes them, so that the first search need not."""

    def prepare(self, view: View) -> None:
        """Make what searches of this pool need, through `View.cached_on_disk`."""


class Selector(Protocol):
    """Turns a ranking into the context of an answer.

    A selector may have a method `for_step` without arguments: what it returns selects for the steps of IRCoT, and the
    selector itself for the answer, from what all steps found.
    """

    async def select(self, query: str, ranking: Ranking, k: int, view: View) -> Ranking:
        """Return a ranking whose first `k` are the context; topped up from `ranking` when it runs short."""


class ContextProvider(Protocol):
    """Lines that an answer's prompt shows beside the hits; never ranked, never cited."""

    async def lines(self, hits: Sequence[Hit], view: View) -> list[str]:
        """Lines about what stands behind the hits."""


class VectorIndex(Protocol):
    """The user's own vector store as what finds the nearest vectors of a pool."""

    @property
    def description(self) -> str:
        """Short description for `Index.stats`."""

    def top(self, query: str, vector: FloatArray, n: int, where: Filter | None = None) -> Awaitable[Sequence[str]]:
        """Ids of the `n` units nearest to a question, nearest first; fewer when it holds no more.

        Args:
            query: The question.
            vector: Its vector, `[dimension]`.
            n: How many.
            where: What has to hold, where the store can be told; the caller checks it in any case.
        """


class RankedSource(Protocol):
    """The user's own vector store as a source of rankings."""

    def rank(self, query: str, n: int, where: Filter | None = None) -> Awaitable[Sequence[tuple[str, float]]]:
        """The best `n` (unit id, score) pairs."""
