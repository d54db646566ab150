"""Names in so many passages that the knowledge graph leaves them out, counted in the texts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sire_core.documents.blocks import CAPTION, HEADING, ROW, block_text
from sire_core.extraction.rules import RulesExtractor
from sire_core.knowledge.entity_graph import EntityGraph
from sire_core.knowledge.knowledge_graph import KnowledgeGraph, PassageNames
from sire_core.text.words import whole_name
from sire_core.types import Chunk, Unit, digest

if TYPE_CHECKING:
    from sire_core.search.snapshot import SearchSnapshot

_COUNTS_VERSION = 2  # Version of stored counts
_NAMED_PASSAGES, _COUNTED_PASSAGES = 300, 5_000
"""Passages, drawn at random, in which names are looked for, and in which they are counted."""
_LISTED_SHARE = 4  # A name with one in so many of its passages in the graph is an entity there, and listed as that
_BESIDE = 30  # Letters on either side of a name by which its repetitions are recognized
_LINE_MARKS = " \t|:`_*."
_NAMES_FILE = "names.json"


def frequent_names(snapshot: SearchSnapshot) -> Mapping[str, int]:
    """Names above `KnowledgeGraph.max_df` and their numbers of visible passages, the most frequent first.

    Made once for each filter and kept in a file with the index. Of more than 5,000 passages a sample is counted.
    """
    name = f"frequent-names-{_COUNTS_VERSION}-{digest(repr(snapshot.where), size=6)}"
    counts: Mapping[str, int] = snapshot.view.cached_on_disk(name, lambda: _counted(snapshot), _save, _load)
    return counts


def is_told(name: str, units: Sequence[Unit]) -> bool:
    """True if most of some passages say something with a name of their own: no heading, head of a table or caption."""
    beside: set[str] = set()
    for unit in units:
        for line in _said_lines(unit):
            if name in line and line.strip(_LINE_MARKS) != name:
                at = line.find(name)
                beside.add(line[max(0, at - _BESIDE) : at + len(name) + _BESIDE])
                break
    return 2 * len(beside) > len(units)


def _said_lines(unit: Unit) -> Iterator[str]:
    """Lines of a passage without headings, captions and headers of tables."""
    for block in unit.blocks:
        if block.kind not in (HEADING, CAPTION) and not (block.kind == ROW and block.level):
            yield from block_text(unit.text, block).split("\n")


def _counted(snapshot: SearchSnapshot) -> dict[str, int]:
    view = snapshot.view
    graph = next((part for part in snapshot.recipe.organizers if isinstance(part, KnowledgeGraph)), None)
    visible = snapshot.positions()
    if graph is None:
        return {}
    limit = max(graph.hub_floor, int(graph.max_df * view.size))
    units = view.units(np.random.default_rng(0).permutation(visible)[:_COUNTED_PASSAGES].tolist())
    chunks = [Chunk(unit.id, "", 0, unit.title, unit.text) for unit in units[:_NAMED_PASSAGES]]
    spelled: dict[str, Counter[str]] = {}
    for chunk, record in zip(chunks, RulesExtractor().records(chunks), strict=True):
        for entity in PassageNames.of(chunk, record).entities:
            if entity.names and entity.type not in graph.skip_types:
                spelled.setdefault(entity.key, Counter())[entity.names[0]] += 1
    least = limit * len(chunks) / max(1, len(visible)) / 2  # half of what is expected in the sample
    names = [spellings.most_common(1)[0][0] for spellings in spelled.values() if spellings.total() >= least]
    texts = [f"{unit.title}\n{unit.text}" for unit in units]
    counts = Counter[str]()
    for name in names:
        whole = whole_name(name)
        using = [unit for unit, text in zip(units, texts, strict=True) if name in text and whole.search(text)]
        if is_told(name, using[:_NAMED_PASSAGES]):
            counts[name] = len(using)
    share = len(visible) / max(1, len(texts))
    frequent = {name: round(n * share) for name, n in counts.most_common() if n * share > limit}
    entities = EntityGraph.of(view)

    def in_graph(name: str) -> int:
        return max(map(entities.frequency, entities.link(name)), default=0)

    return {name: n for name, n in frequent.items() if _LISTED_SHARE * in_graph(name) < n}


def _save(counts: Mapping[str, int], folder: Path) -> None:
    (folder / _NAMES_FILE).write_text(json.dumps(counts), encoding="utf-8")


def _load(folder: Path) -> dict[str, int]:
    counts: dict[str, int] = json.loads((folder / _NAMES_FILE).read_text(encoding="utf-8"))
    return counts
