"""`InteractionGraph`: passages linked by structure, meaning and keywords (IIER section 3.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sire_core.algorithms.text import name_key
from sire_core.corpus.media import media_of
from sire_core.derive.derivation import OrganizerBase
from sire_core.extraction.headings import base_title
from sire_core.protocols import BlockEdges, Delta
from sire_core.recipes.iier.links import PassageLinks, RowMapping
from sire_core.recipes.iier.phrases import WORDS_NOTE, PassagePhrases
from sire_core.recipes.iier.recipe import GRAPH_NOTE
from sire_core.recipes.iier.table import InteractionTable
from sire_core.settings import check_settings, refuse_unused, setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sire_core.algorithms.neighbor_updates import NeighborLists
    from sire_core.protocols import BuildView, Change
    from sire_core.recipes.iier.keyword_table import KeywordTable
    from sire_core.types import Unit

    Lists = tuple[NDArray[np.int64], NDArray[np.float64]]

__all__ = ["InteractionGraph"]

_AT_ONCE = 4096
"""Passages whose records are read at the same time."""


@dataclass(frozen=True, slots=True)
class InteractionGraph(OrganizerBase):
    """A graph over passages: neighbours in a document, nearest in meaning, and those that share keywords.

    No unit and no vector beyond the passages. Two notes hold the graph with the nearest passages of each, and the words
    of all, as arrays: a change starts from them, and queries read them. The graph after any changes is the one that a
    build of the same corpus makes.

    Attributes:
        n_sim: Number of most similar passages to which every passage is linked.
        links: Whether similarity links need one direction (`union`) or both (`mutual`); the paper does not say.
        exact_below: In corpora with at least this many passages, similar passages are found approximately.
        kw_min: Number of shared keywords for a link; the paper has "more than two" (section 4.3).
        kw_df_cap: Keywords in more passages than this create no links.
        title_keywords: Whether a passage's title, without its bracketed part, is one of its keywords, as in the paper's
            example.
        raw_kw: Whether links of other kinds also record fewer than `kw_min` shared keywords.
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
    raw_kw: bool = False
    use_struc: bool = True
    use_sim: bool = True
    use_kw: bool = True

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.use_sim:
            refuse_unused(self, "use_sim=False", ("n_sim", "links", "exact_below"))
        if not self.use_kw:
            refuse_unused(self, "use_kw=False", ("kw_min", "kw_df_cap", "title_keywords", "raw_kw"))

    def settings(self) -> Mapping[str, Any]:
        """Settings that change what is built, and the form in which it is kept."""
        return {**asdict(self), "version": "v2"}

    def describe(self) -> str:
        """What is built, and what it costs."""
        return (
            "A graph of passages by document order, similarity and shared keywords, without further vectors. Model "
            "calls: one extraction per passage with a language model, none without."
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring the graph up to date: only passages that the change touches are read."""
        import asyncio

        # Even a change of no chunk may tell apart passages that were one: those that differ in their metadata are two.
        vectors = await view.vectors(view.chunk_units)
        return await asyncio.to_thread(self._delta, {chunk.id for chunk in change.added}, view, vectors)

    def _delta(self, redone: Collection[str], view: BuildView, vectors: NDArray[np.float32]) -> Delta:
        import numpy as np

        units = view.chunk_units
        before, words = self._known(view)
        moves = RowMapping.between(before.passages, np.array([unit.id for unit in units], dtype="S24"))
        again = [i for i, unit in enumerate(units) if moves.origin[i] < 0 or unit.id in redone]
        keywords = before.keywords.followed(moves.origin, self._phrases(view, again))
        lists, nearest = self._nearest(before, view.fingerprints, vectors, moves)
        links = self._links(view, keywords, nearest)
        table = InteractionTable(view.fingerprints, moves.passages, links, keywords, lists)
        words = words.followed(units, moves)
        return Delta(
            in_blocks=BlockEdges(put=table, drop=before),
            state={"figures": {"interactions": links.counts(), "media": _media(units)}},
            notes={GRAPH_NOTE: table.to_note(), WORDS_NOTE: words.to_note()},
        )

    def _known(self, view: BuildView) -> tuple[InteractionTable, PassagePhrases]:
        """What earlier builds left; empty tables where there is nothing of use."""
        notes = view.notes([GRAPH_NOTE, WORDS_NOTE])
        table = InteractionTable.from_note(notes.get(GRAPH_NOTE))
        words = PassagePhrases.from_note(notes.get(WORDS_NOTE))
        if table is None or words is None or table.fingerprints[1] != view.fingerprints[1]:
            return InteractionTable.empty(self.n_sim), PassagePhrases.empty()
        return table, words

    def _nearest(
        self, before: InteractionTable, fingerprints: tuple[str, str], vectors: NDArray[np.float32], moves: RowMapping
    ) -> tuple[NeighborLists, Lists | None]:
        if not (self.use_sim and self.n_sim):
            return before.lists, None
        listed = len(before.lists.indices) == len(before.passages) and before.fingerprints[0] == fingerprints[0]
        return _nearest_passages(vectors, self.n_sim, self.exact_below, before.lists if listed else None, moves)

    def _phrases(self, view: BuildView, nodes: Sequence[int]) -> Iterator[tuple[int, dict[str, str]]]:
        """Phrases of the keywords of some passages by key, their titles last. Linking titles changes no keyword."""
        units = view.chunk_units
        for start in range(0, len(nodes), _AT_ONCE):
            part = nodes[start : start + _AT_ONCE]
            records = view.records({units[node].chunk_ids[0] for node in part})
            for node in part:
                record = records.get(units[node].chunk_ids[0])
                title = (base_title(units[node].title),) if self.title_keywords else ()
                phrases: dict[str, str] = {}
                for phrase in (*(record.keywords if record else ()), *title):
                    if key := name_key(phrase):
                        phrases.setdefault(key, phrase)
                yield node, phrases

    def _links(self, view: BuildView, keywords: KeywordTable, nearest: Lists | None) -> PassageLinks:
        """The edges between passages; quick enough to be made again from arrays."""
        from sire_core.recipes.iier.interactions import keyword_pairs, semantic_pairs, structural_pairs

        size = len(view.chunk_units)
        kinds: dict[str, Any] = {}
        if self.use_struc:
            node = {chunk: i for i, unit in enumerate(view.chunk_units) for chunk in unit.chunk_ids}
            chunks = [chunk for chunk in view.chunks if chunk.id in node]
            kinds["structural"] = structural_pairs([c.doc_id for c in chunks], [node[c.id] for c in chunks])
        if nearest is not None:
            kinds["semantic"] = semantic_pairs(*nearest, links=self.links)
        if self.use_kw:
            kinds["shared"] = keyword_pairs(
                keywords.indptr, keywords.numbers, 1 if self.raw_kw else self.kw_min, self.kw_df_cap
            )
        return PassageLinks.of(size, kw_min=self.kw_min, **kinds)


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


def _nearest_passages(
    vectors: NDArray[np.float32], k: int, exact_below: int, known: NeighborLists | None, moves: RowMapping
) -> tuple[NeighborLists, Lists]:
    """Nearest neighbours of every passage: the same whatever is known.

    Args:
        vectors: Of the passages after the change, `[n, d]`.
        k: Neighbours wanted.
        exact_below: Corpora of at least so many passages are searched approximately, and again after every change.
        known: Lists of the passages before the change by the same vectors; None where there are none.
        moves: Where these passages are now.

    Returns:
        Lists to be remembered, of no row where the search was approximate; and row numbers and cosines, `[n, k]` or
        fewer columns: what is not positive is no neighbour.
    """
    import numpy as np

    from sire_core.algorithms.neighbor_updates import NeighborLists, approximate_neighbors, updated_neighbors

    size = len(vectors)
    if size >= exact_below:
        return NeighborLists.empty(0, k), approximate_neighbors(vectors, k)
    new, lost = np.ones(size, dtype=bool), np.zeros(size, dtype=bool)
    lists = NeighborLists.empty(size, k)
    if known is not None and moves.in_order:  # ties go by the order of passages
        lists, lost = known.renumbered(moves.origin, moves.place)
        new = np.asarray(moves.origin < 0, dtype=bool)
    lists = updated_neighbors(vectors, lists, new, lost)
    return lists, lists.nearest(k)
