"""Reports of a pool and what stands under them: what `ReportSelector` climbs (SMART)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sire_core.algorithms.grouping import id_hashes, stable_order
from sire_core.knowledge.kinds import MENTIONS, RELATES
from sire_core.recipes.smart.network_table import NETWORK, NetworkTable
from sire_core.recipes.smart.recipe import REPORTS
from sire_core.recipes.smart.report_table import ReportTable, tree_name
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from sire_core.protocols import IntArray, View

    Ids = NDArray[np.bytes_]

__all__ = ["ReportTrees"]


class _Parts(NamedTuple):
    """Trees as they are read; units are positions, entities numbers of `ids`.

    Attributes:
        ids: Of the entities.
        trees: Name of the tree of every report.
        named: Unit and an entity it names, `[n, 2]`.
        mentions: Report and an entity that it is the lowest report of, `[n, 2]`.
        children: Report and a report right below it, `[n, 2]`.
    """

    ids: NDArray[Any]
    trees: Mapping[int, str]
    named: IntArray
    mentions: IntArray
    children: IntArray


@dataclass(frozen=True, slots=True)
class ReportTrees:
    """Reports by position, and who stands above whom. Entities are known by their numbers.

    Attributes:
        trees: Name of the tree of every report, by its position, ascending.
        ids: Ids of the entities.
        places: Position of every entity that is a unit of its own, else -1.
    """

    trees: Mapping[int, str]
    ids: NDArray[Any]
    places: IntArray
    _named: tuple[IntArray, IntArray]
    _above: tuple[IntArray, IntArray]
    _parents: Mapping[int, Sequence[int]]
    _known: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, view: View) -> ReportTrees:
        """The trees of a pool, read once per snapshot."""
        found: ReportTrees = view.derived("report trees", lambda: cls._read(view))
        return found

    @classmethod
    def _read(cls, view: View) -> ReportTrees:
        parts = _of_notes(view) or _of_edges(view)
        some = len(_of_kind(view, UnitKind.ENTITY)) > 0
        places = _positions(view.ids, parts.ids) if some else np.full(len(parts.ids), -1, dtype=np.int64)
        own = np.flatnonzero(places >= 0)
        named = np.concatenate([parts.named, np.stack([places[own], own], axis=1)])
        parents: dict[int, list[int]] = {}
        for parent, child in sorted(parts.children.tolist()):
            parents.setdefault(child, []).append(parent)
        mentions = parts.mentions[stable_order(parts.mentions[:, 0])]
        return cls(
            trees=parts.trees,
            ids=parts.ids,
            places=places,
            _named=_by_first(named, view.size),
            _above=_by_first(mentions[:, ::-1], len(parts.ids)),
            _parents=parents,
        )

    @property
    def count(self) -> int:
        """Number of trees."""
        return len(set(self.trees.values()))

    def named(self, position: int) -> list[int]:
        """Entities that a passage, a relation or an entity names, by their ids."""
        starts, entities = self._named
        found: list[int] = entities[starts[position] : starts[position + 1]].tolist()
        return sorted(found, key=lambda entity: bytes(self.ids[entity]))

    def above(self, entity: int) -> tuple[int, ...]:
        """All reports above an entity, each once, lower ones first."""
        if entity in self._known:
            return self._known[entity]
        starts, reports = self._above
        found = dict.fromkeys(reports[starts[entity] : starts[entity + 1]].tolist())
        queue = list(found)
        for report in queue:  # grows while it is read
            for parent in self._parents.get(report, ()):
                if parent not in found:
                    found[parent] = None
                    queue.append(parent)
        self._known[entity] = tuple(found)
        return self._known[entity]

    def counts(self, entities: Iterable[int]) -> dict[int, int]:
        """Reports above any of the entities, with how many of them each stands above; ascending."""
        found: dict[int, int] = {}
        for entity in entities:
            for report in self.above(entity):
                found[report] = found.get(report, 0) + 1
        return dict(sorted(found.items()))

    def name(self, entity: int) -> str:
        """Id of an entity."""
        return str(bytes(self.ids[entity]).decode())


def _of_notes(view: View) -> _Parts | None:
    """From what the organizer left for queries; None where there is nothing, or of another generation."""
    notes = view.note(NETWORK), view.note(REPORTS)
    if notes[0] is None or notes[1] is None:
        return None
    network, table = NetworkTable.from_note(notes[0]), ReportTable.from_note(notes[1])
    chunks, reports = (_of_kind(view, kind) for kind in (UnitKind.CHUNK, UnitKind.REPORT))
    passages = np.array(network.passages, dtype="S24")
    if not (_same(view.ids[chunks], passages) and np.array_equal(np.sort(view.ids[reports]), table.reports)):
        return None
    positions, places = reports[np.argsort(view.ids[reports])], _positions(view.ids, passages)
    named, unnamed = network.parts["named"], network.parts["unnamed"]
    relations = _positions(view.ids, network.relations[:, 0])
    units = np.concatenate([places[named.groups()], places[unnamed.groups()], relations])
    ids, numbers = _numbered(table.entities, np.concatenate([named["ids"], unnamed["ids"], network.relations[:, 1]]))
    order = np.argsort(positions)
    names = [tree_name(tree) for tree in range(int(table.trees.max(initial=0)) + 1)]
    return _Parts(
        ids=ids,
        trees={
            at: names[tree] for at, tree in zip(positions[order].tolist(), table.trees[order].tolist(), strict=True)
        },
        named=np.stack([units, numbers], axis=1)[units >= 0],
        mentions=np.stack([positions[table.mentions[:, 0]], table.mentions[:, 1]], axis=1),
        children=positions[table.children],
    )


def _of_edges(view: View) -> _Parts:
    """From the edges of the pool."""
    reports = _of_kind(view, UnitKind.REPORT)
    number = {bytes(name): at for at, name in enumerate(view.ids)} if len(reports) else {}
    entities: dict[bytes, int] = {}
    named: list[tuple[int, int]] = []
    mentions: list[tuple[int, int]] = []
    children: list[tuple[int, int]] = []
    above = set(reports.tolist())
    for edge in view.edges() if len(reports) else ():
        source, target = number.get(edge.source.encode(), -1), edge.target.encode()
        if edge.kind in (MENTIONS, RELATES) and source >= 0:
            pair = source, entities.setdefault(target, len(entities))
            (mentions if source in above else named).append(pair)
        elif edge.kind == "child" and source in above and target in number:
            children.append((source, number[target]))
    pairs = (np.array(found, dtype=np.int64).reshape(-1, 2) for found in (named, mentions, children))
    trees = {at: unit.tree for at, unit in zip(reports.tolist(), view.units(reports), strict=True)}
    return _Parts(np.array(list(entities), dtype="S"), trees, *pairs)


def _of_kind(view: View, kind: UnitKind) -> IntArray:
    code = list(view.kind_names).index(kind.value)
    return np.flatnonzero(view.kinds == code).astype(np.int64)


def _same(first: Ids, second: Ids) -> bool:
    return np.array_equal(first, second) or np.array_equal(np.sort(first), np.sort(second))


def _positions(ids: Ids, wanted: NDArray[Any]) -> IntArray:
    """Where some ids are, -1 for those that are not there."""
    if not len(ids) or not len(wanted):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(ids, kind="stable")
    places = order[np.minimum(np.searchsorted(ids[order], wanted), len(ids) - 1)]
    return np.where(ids[places] == wanted, places, -1)


def _numbered(entities: Ids, others: Ids) -> tuple[Ids, IntArray]:
    """Entities, with those of others that are not among them behind them; and the numbers of the others."""
    both = np.concatenate([entities, others])
    _, first, inverse = np.unique(id_hashes(both), return_index=True, return_inverse=True)
    ranks = np.argsort(np.argsort(first, kind="stable"), kind="stable")  # entities come first: they keep their numbers
    return both[np.sort(first)], ranks[inverse.ravel()][len(entities) :]


def _by_first(pairs: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Second numbers by first ones, as compressed rows."""
    order = stable_order(pairs[:, 0])
    starts = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=size))])
    return starts.astype(np.int64), pairs[order, 1]
