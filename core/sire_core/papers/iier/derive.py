"""`InteractionGraph`: passages linked by structure, meaning and keywords (IIER, section 3.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sire_core.extend import (
    Delta,
    OrganizerBase,
    approximate_neighbors,
    base_title,
    check_settings,
    media_of,
    name_key,
    nearest_neighbors,
    refuse_unused,
    setting,
)
from sire_core.papers.iier import GRAPH_NOTE, WORDS_NOTE
from sire_core.papers.iier.table import InteractionTable, KeywordTable, PassageLinks, PassagePhrases

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.extend import BuildView, Change, DoubleArray, FloatArray, IntArray, Unit


_KEYWORD_ROWS_PER_BLOCK = 4096  # Rows of the keyword co-occurrence matrix in memory at once
_RECORDS = 4096  # Passages whose extraction records are in memory at once


def structural_pairs(documents: Sequence[str], nodes: Sequence[int]) -> IntArray:
    """Distinct pairs `[m, 2]` of neighbours in one document, the smaller node first, ascending (oracle I4)."""
    pairs = {
        (min(nodes[i], nodes[i + 1]), max(nodes[i], nodes[i + 1]))
        for i in range(len(nodes) - 1)
        if documents[i] == documents[i + 1] and nodes[i] != nodes[i + 1]
    }
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def semantic_pairs(
    indices: IntArray, similarities: DoubleArray, links: str = "union"
) -> tuple[IntArray, DoubleArray, IntArray]:
    """Ascending pairs `[m, 2]`, cosines, and who lists the other (1 smaller, 2 larger node, 3 both) (oracle I3)."""
    size, width = indices.shape
    keep = similarities > 0
    rows = np.broadcast_to(np.arange(size)[:, None], (size, width))[keep]
    columns = indices[keep]
    codes = np.minimum(rows, columns) * max(size, 1) + np.maximum(rows, columns)
    pairs, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    listed = np.bincount(inverse, weights=np.where(rows < columns, 1, 2), minlength=len(pairs)).astype(np.int64)
    wanted = listed == 3 if links == "mutual" else listed > 0
    both = np.stack(np.divmod(pairs[wanted], max(size, 1)), axis=1)
    return both.astype(np.int64), similarities[keep][first[wanted]], listed[wanted]


def keyword_pairs(
    indptr: IntArray, numbers: NDArray[np.signedinteger[Any]], min_shared: int = 3, max_nodes: int | None = 200
) -> tuple[IntArray, IntArray]:
    """Pairs `[m, 2]` that share keywords of at most `max_nodes` nodes, and how many, ascending (oracle I1)."""
    from scipy.sparse import csr_array

    count = len(indptr) - 1
    nodes = np.repeat(np.arange(count), np.diff(indptr))
    frequency = np.bincount(numbers)
    keep = frequency[numbers] <= (max_nodes or count)
    ones = np.ones(int(keep.sum()), dtype=np.int32)
    has = csr_array((ones, (nodes[keep], numbers[keep])), shape=(count, len(frequency)))
    inverted = has.T.tocsr()
    parts, counts = [np.zeros((0, 2), dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for start in range(0, count, _KEYWORD_ROWS_PER_BLOCK):
        shared = (has[start : start + _KEYWORD_ROWS_PER_BLOCK] @ inverted).tocoo()
        left, right = shared.coords[0].astype(np.int64) + start, shared.coords[1].astype(np.int64)
        wanted = (left < right) & (shared.data >= min_shared)
        parts.append(np.stack([left[wanted], right[wanted]], axis=1))
        counts.append(shared.data[wanted].astype(np.int64))
    pairs, shares = np.concatenate(parts), np.concatenate(counts)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return pairs[order], shares[order]


@dataclass(frozen=True, slots=True)
class InteractionGraph(OrganizerBase):
    """A graph over passages: neighbours in a document, nearest neighbours by vector, and passages that share keywords.

    Adds no units and no vectors. Two notes store the graph and the words of the passages as arrays for queries. Every
    change makes them again from the stored records and vectors, without a call of a model.

    Attributes:
        n_sim: Number of most similar passages to which every passage is linked.
        links: Whether similarity links need one direction (`union`) or both (`mutual`); the paper does not say.
        exact_below: In corpora with at least this many passages, similar passages are found approximately.
        kw_min: Number of shared keywords for a link; the paper has "more than two" (section 4.3).
        kw_df_cap: Keywords in more passages than this create no links.
        title_keywords: Whether a passage's title, without its bracketed part, is one of its keywords, as in the paper's
            example.
        use_struc: Whether there are structural edges.
        use_sim: Whether there are semantic edges.
        use_kw: Whether there are keyword edges.
    """

    name: ClassVar[str] = "interaction_graph"

    n_sim: int = setting(5, low=0, high=10_000)
    links: str = setting("union", choices=("union", "mutual"))
    exact_below: int = setting(50_000, low=1)
    kw_min: int = setting(1, low=1)
    kw_df_cap: int = setting(50, low=1)
    title_keywords: bool = True
    use_struc: bool = True
    use_sim: bool = True
    use_kw: bool = True

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.use_sim:
            refuse_unused(self, "use_sim=False", ("n_sim", "links", "exact_below"))
        if not self.use_kw:
            refuse_unused(self, "use_kw=False", ("kw_min", "kw_df_cap", "title_keywords"))

    def settings(self) -> Mapping[str, Any]:
        """Settings that change what is built, and the version of the stored form."""
        return {**asdict(self), "raw_kw": False, "version": "v2"}  # an earlier setting: fingerprints stay as they were

    def describe(self) -> str:
        """Describe what is built and what it costs."""
        return (
            "A graph of passages by document order, similarity and shared keywords, without further vectors. Model "
            "calls: one extraction per passage with a language model, none without."
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:  # noqa: ARG002 - also for changed metadata
        """Make the graph from the stored records and vectors."""
        vectors = await view.vectors(view.chunk_units)
        return await asyncio.to_thread(self._delta, view, vectors)

    def _delta(self, view: BuildView, vectors: FloatArray) -> Delta:
        units = view.chunk_units
        keywords = KeywordTable.of(self._phrases(view))
        links = self._links(view, keywords, vectors)
        table = InteractionTable(np.array([unit.id for unit in units], dtype="S24"), links, keywords)
        return Delta(
            state={"figures": {"interactions": links.counts(), "media": _media(units)}},
            notes={GRAPH_NOTE: table.to_note(), WORDS_NOTE: PassagePhrases.of(units).to_note()},
        )

    def _phrases(self, view: BuildView) -> Iterator[dict[str, str]]:
        """Yield the keywords of every passage as phrases by key, the title last so that it replaces no keyword."""
        units = view.chunk_units
        for start in range(0, len(units), _RECORDS):
            part = units[start : start + _RECORDS]
            records = view.records({unit.chunk_ids[0] for unit in part})
            for unit in part:
                record = records.get(unit.chunk_ids[0])
                title = (base_title(unit.title),) if self.title_keywords else ()
                phrases: dict[str, str] = {}
                for phrase in (*(record.keywords if record else ()), *title):
                    if key := name_key(phrase):
                        phrases.setdefault(key, phrase)
                yield phrases

    def _links(self, view: BuildView, keywords: KeywordTable, vectors: FloatArray) -> PassageLinks:
        size = len(view.chunk_units)
        kinds: dict[str, Any] = {}
        if self.use_struc:
            node = {chunk: i for i, unit in enumerate(view.chunk_units) for chunk in unit.chunk_ids}
            chunks = [chunk for chunk in view.chunks if chunk.id in node]
            kinds["structural"] = structural_pairs([c.doc_id for c in chunks], [node[c.id] for c in chunks])
        if self.use_sim and self.n_sim and size:
            find = nearest_neighbors if size < self.exact_below else approximate_neighbors
            kinds["semantic"] = semantic_pairs(*find(vectors, self.n_sim), links=self.links)
        if self.use_kw:
            lists = keywords.numbers
            kinds["shared"] = keyword_pairs(lists.starts, lists.values, self.kw_min, self.kw_df_cap)
        return PassageLinks.of(size, **kinds)


def _media(units: Sequence[Unit]) -> dict[str, int]:
    """Count passages by medium, and images without a description by a model."""
    counts: dict[str, int] = {}
    for unit in units:
        medium = media_of(unit.id, unit.metadata) or {"kind": "text"}
        kinds = [str(medium["kind"])]
        if medium["kind"] == "image" and medium["described_by"] != "model":
            kinds.append("images not described by a model")
        for kind in kinds:
            counts[kind] = counts.get(kind, 0) + 1
    return counts
