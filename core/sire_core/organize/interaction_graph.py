"""`InteractionGraph`: passages linked by structure, meaning and keywords (IIER section 3.1; ALGORITHMS 3.1, 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.text import name_key
from sire_core.corpus.media import media_of
from sire_core.errors import ConfigurationError
from sire_core.extraction.subjects import base_title
from sire_core.protocols import Delta
from sire_core.types import Edge, digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sire_core.protocols import BuildView, Change
    from sire_core.types import Unit

__all__ = ["INTERACTS", "KEYWORD", "InteractionGraph"]

INTERACTS = "interacts"
"""Kind of the edges between two passages, the earlier one first. Metadata: `structural` (1), `similarity` (cosine),
`near` (1 the source lists the target, 2 the other way round, 3 both), `keywords` (how many are shared); what is 0 is
left out."""
KEYWORD = "keyword"
"""Kind of the edges from a passage to an id of a keyword; metadata `phrase`. They are the inverted index."""


@dataclass(frozen=True, slots=True)
class InteractionGraph:
    """A graph over passages: neighbours in a document, nearest in meaning, and those that share keywords.

    Edges alone are stored, and only what differs after a change: no unit and no vector beyond the passages. The graph
    after any changes is the one that a build of the same corpus makes.

    Attributes:
        n_sim: Nearest passages by cosine that every passage is joined to.
        links: `union` or `mutual` neighbours; the paper does not say.
        exact_below: Corpora of at least so many passages find their nearest passages approximately.
        kw_min: Shared keywords that make an edge: 3 is "more than two" (section 4.3), 2 the reading "at least two".
        kw_df_cap: Keywords of more passages than this join nothing.
        title_keywords: Whether a passage's title, without its bracketed part, is one of its keywords. Extraction leaves
            titles out of the five; other passages name them, and the paper's example lists the page's subject.
        raw_kw: Whether an edge that exists for another reason knows its number of shared keywords below `kw_min`.
        use_struc: Whether there are structural edges.
        use_sim: Whether there are semantic edges.
        use_kw: Whether there are keyword edges.
    """

    n_sim: int = 5
    links: str = "union"
    exact_below: int = 50_000
    kw_min: int = 3
    kw_df_cap: int = 200
    title_keywords: bool = True
    raw_kw: bool = False
    use_struc: bool = True
    use_sim: bool = True
    use_kw: bool = True

    def __post_init__(self) -> None:
        if self.n_sim < 0 or min(self.kw_min, self.kw_df_cap, self.exact_below) < 1:
            raise ConfigurationError("n_sim must be at least 0; kw_min, kw_df_cap and exact_below at least 1.")
        if self.links not in ("union", "mutual"):
            raise ConfigurationError(f"links is 'union' or 'mutual', not {self.links!r}.")

    @property
    def name(self) -> str:
        """Short name."""
        return "interaction_graph"

    @property
    def requires(self) -> tuple[str, ...]:
        """Reads no other organizer."""
        return ()

    @property
    def needs_records(self) -> bool:
        """Reads keywords."""
        return True

    @property
    def needs_summaries(self) -> bool:
        """Writes none."""
        return False

    def settings(self) -> Mapping[str, Any]:
        """Settings that change what is built."""
        return asdict(self)

    def describe(self) -> str:
        """What is built, and what it costs."""
        return (
            "A graph of passages by document order, meaning and shared keywords, no vectors beyond the passages; with "
            "a language model one extraction call per passage, without one no calls."
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring the graph up to date."""
        import asyncio

        if not change:
            return Delta()
        vectors = await view.vectors(view.chunk_units)
        return await asyncio.to_thread(self._delta, view, vectors)

    def _delta(self, view: BuildView, vectors: NDArray[np.float32]) -> Delta:
        units = view.chunk_units
        keywords = _keywords(view, titles=self.title_keywords)
        old = {(edge.kind, edge.source, edge.target): edge for edge in view.edges()}
        weights = self._weights(view, keywords, vectors, list(old.values()) if self.links == "union" else ())
        edges = {(edge.kind, edge.source, edge.target): edge for edge in _edges(units, keywords, weights)}
        return Delta(
            put_edges=tuple(edge for key, edge in edges.items() if old.get(key) != edge),
            drop_edges=tuple(edge for key, edge in old.items() if key not in edges),
            state={
                "figures": {
                    "interactions": {name: sum(name in found for found in weights.values()) for name in _WEIGHTS},
                    "media": _media(units),
                }
            },
        )

    def _weights(
        self,
        view: BuildView,
        keywords: Sequence[Mapping[str, str]],
        vectors: NDArray[np.float32],
        stored: Sequence[Edge],
    ) -> dict[tuple[int, int], dict[str, Any]]:
        """Weights by pair of nodes. Mutual links tell only half of what a list held, so they are found anew."""
        from sire_core.algorithms.interactions import keyword_pairs, semantic_pairs, structural_pairs
        from sire_core.organize.semantic_links import nearest_passages

        weights: dict[tuple[int, int], dict[str, Any]] = {}
        if self.use_struc:
            node = {chunk: i for i, unit in enumerate(view.chunk_units) for chunk in unit.chunk_ids}
            chunks = [chunk for chunk in view.chunks if chunk.id in node]
            for left, right in structural_pairs([c.doc_id for c in chunks], [node[c.id] for c in chunks]).tolist():
                weights.setdefault((left, right), {})["structural"] = 1
        if self.use_sim and self.n_sim:
            near_ones = nearest_passages(vectors, view.chunk_units, stored, self.n_sim, self.exact_below)
            pairs, cosines, listed = semantic_pairs(*near_ones, links=self.links)
            for (left, right), cosine, near in zip(pairs.tolist(), cosines.tolist(), listed.tolist(), strict=True):
                weights.setdefault((left, right), {}).update(similarity=cosine, near=near)
        if self.use_kw:
            number: dict[str, int] = {}
            numbers = [[number.setdefault(key, len(number)) for key in found] for found in keywords]
            least = 1 if self.raw_kw else self.kw_min
            pairs, shares = keyword_pairs(numbers, len(number), least, self.kw_df_cap)
            for (left, right), shared in zip(pairs.tolist(), shares.tolist(), strict=True):
                if shared >= self.kw_min or (left, right) in weights:
                    weights.setdefault((left, right), {})["keywords"] = shared
        return weights


_WEIGHTS = ("structural", "similarity", "keywords")


def _keywords(view: BuildView, *, titles: bool) -> list[dict[str, str]]:
    """Per passage the phrases of its keywords by key, its title last."""
    records = view.records()
    found = []
    for unit in view.chunk_units:
        record = records.get(unit.chunk_ids[0])
        phrases: dict[str, str] = {}
        for phrase in (*(record.keywords if record else ()), *((base_title(unit.title),) if titles else ())):
            if key := name_key(phrase):
                phrases.setdefault(key, phrase)
        found.append(phrases)
    return found


def _media(units: Sequence[Unit]) -> dict[str, int]:
    """Passages by what they are, and how many images nobody looked at."""
    counts: dict[str, int] = {}
    for unit in units:
        entry = media_of(unit.id, unit.metadata) or {"kind": "text"}
        kinds = [str(entry["kind"])]
        if entry["kind"] == "image" and entry["described_by"] != "model":
            kinds.append("images not described by a model")
        for kind in kinds:
            counts[kind] = counts.get(kind, 0) + 1
    return counts


def _edges(
    units: Sequence[Unit],
    keywords: Sequence[Mapping[str, str]],
    weights: Mapping[tuple[int, int], Mapping[str, Any]],
) -> Iterator[Edge]:
    """Edges between passages, and from passages to their keywords."""
    for (left, right), found in weights.items():
        weight = found.get("structural", 0) + found.get("similarity", 0.0) + found.get("keywords", 0) / 5
        yield Edge(INTERACTS, units[left].id, units[right].id, weight, dict(found))
    for unit, phrases in zip(units, keywords, strict=True):
        for key, phrase in phrases.items():
            yield Edge(KEYWORD, unit.id, digest(KEYWORD, key), 1.0, {"phrase": phrase})
