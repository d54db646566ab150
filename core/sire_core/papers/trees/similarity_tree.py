"""`SimilarityTree`: RAPTOR's tree over chunks, the left tree of SiReRAG."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from sire_core.extend import Delta, OrganizerBase, Unit, UnitKind, count_tokens, split_sentences, unit_id
from sire_core.papers.trees.tree import SummaryTree, TreeSettings, cluster_units

if TYPE_CHECKING:
    from sire_core.extend import BuildView, Change


@dataclass(frozen=True, slots=True)
class SimilarityTree(OrganizerBase):
    """Clusters of similar chunks, summarised recursively.

    Attributes:
        tree: How the tree grows.
        entity_clusters: Whether chunks are also clustered by the entities they mention (SiReRAG's variant E): the
            sentence "This chunk mentions ..." stands for each chunk, and the clusters of these sentences are added to
            the clusters of chunks.
        hierarchy: Whether passages that give an overview join the tree at level 1 instead of 0 (SiReRAG section 4.1),
            so that the first summaries cover details only. Which passages these are is in their metadata
            `abstractiveness` (see `group_sentences`), or else in their extraction record, or else recognised by cues in
            the text.
    """

    name: ClassVar[str] = "similarity_tree"
    needs_summaries = True

    tree: TreeSettings = field(default_factory=TreeSettings)
    entity_clusters: bool = False
    hierarchy: bool = False

    @property
    def needs_records(self) -> bool:
        """True if entities or abstractiveness are read."""
        return self.entity_clusters or self.hierarchy

    def settings(self) -> Mapping[str, Any]:
        """Return the settings that change what is built."""
        switches = {"entity_clusters": self.entity_clusters, "hierarchy": self.hierarchy}
        return {"tree": asdict(self.tree), **{name: True for name, on in switches.items() if on}}

    def describe(self) -> str:
        """Describe what is built, and what it costs."""
        also = " and of passages that mention similar entities" if self.entity_clusters else ""
        above = ", overviews from level 1 on" if self.hierarchy else ""
        return (
            f"Up to {self.tree.depth} levels of summaries over clusters of similar passages{also}{above}. Model "
            "calls: about 60-135 summaries per 1,000 passages with a language model, none without."
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring the summaries up to date; only those whose passages changed are written again."""
        if not (change or (self.hierarchy and view.touched(change))):  # metadata says which passages are overviews
            return Delta()
        leaves, overviews = by_abstractiveness(view) if self.hierarchy else (view.chunk_units, ())
        entity_clusters = await self._by_entities(leaves, view) if self.entity_clusters else []
        joining = {1: overviews} if overviews else {}
        tree = SummaryTree(UnitKind.SIM_SUMMARY, "sim", self.tree, view)
        full = len(change.added) == len(view.chunks)
        return await tree.grow(leaves, full=full, extra_clusters=entity_clusters, joining=joining)

    async def _by_entities(self, leaves: Sequence[Unit], view: BuildView) -> list[list[int]]:
        """Cluster chunks by their entities, as positions among the leaves; chunks without entities stay out."""
        records = view.records()
        mentions: list[Unit] = []
        positions: list[int] = []
        for position, leaf in enumerate(leaves):
            record = records.get(leaf.chunk_ids[0])
            if record is not None and record.entities:
                mentions.append(_mention(leaf, [entity.name for entity in record.entities]))
                positions.append(position)
        if len(positions) < 2:
            return []
        vectors = await view.vectors(mentions)
        chunks = [leaves[position] for position in positions]  # the limit counts what will be summarised
        clusters = await cluster_units(chunks, vectors, self.tree, view.rng("tree", "entities"), view.runner)
        return [[positions[i] for i in cluster] for cluster in clusters]


def _mention(chunk: Unit, names: Sequence[str]) -> Unit:
    """Return the sentence that represents a chunk; it is embedded, and never stored in the pool."""
    text = f"This chunk mentions {', '.join(dict.fromkeys(names))}."
    return Unit(unit_id("mention", "", chunk.chunk_ids, text), UnitKind.PROPOSITION, text, chunk.chunk_ids)


def by_abstractiveness(view: BuildView) -> tuple[list[Unit], list[Unit]]:
    """Return details and overviews, each in corpus order."""
    records = view.records()
    labelled = any(record.abstractiveness == "high" for record in records.values())

    def label(unit: Unit) -> str:
        value = unit.metadata.get("abstractiveness")
        if value in ("high", "low"):
            return str(value)
        record = records.get(unit.chunk_ids[0])
        # Whoever is not asked leaves every record at "low"; of our prompts the joint one asks for it.
        if record is not None and (labelled or record.prompt.startswith("extract/")):
            return record.abstractiveness
        return abstractiveness(unit.text)

    labeled = [(unit, label(unit)) for unit in view.chunk_units]
    return [u for u, value in labeled if value != "high"], [u for u, value in labeled if value == "high"]


_DIGITS = re.compile(r"\b\d[\d.,:/-]*")
_CAPITALIZED_NAME = re.compile(r"(?<=[\w,;:)] )[A-Z][\w'\u2019-]*")
_QUOTE = re.compile(r"[\"\u201c\u201d]")
_OVERVIEW = re.compile(
    r"\b(?:overall|in (?:general|summary|short|conclusion)|generally|usually|typically|broadly|commonly|overview|"
    r"summary|introduction|concepts?|theor(?:y|ies)|principles?|(?:kinds?|types?|forms?|range|variety) of|"
    r"(?:refers?|relates?) to|consists? of|throughout|various|many|most|often)\b",
    re.IGNORECASE,
)
_FEW_DETAILS = 0.06
_SOME_DETAILS = 0.12
_MIN_TOKENS = 12


def abstractiveness(text: str) -> str:
    """Return `high` for an overview, `low` for details."""
    tokens = count_tokens(text)
    if tokens < _MIN_TOKENS:
        return "low"
    details = len(_DIGITS.findall(text)) + len(_CAPITALIZED_NAME.findall(text)) + len(_QUOTE.findall(text)) / 2
    density = details / tokens
    general = len(_OVERVIEW.findall(text)) >= len(split_sentences(text))
    return "high" if density < _FEW_DETAILS or (general and density < _SOME_DETAILS) else "low"
