"""Reports of a pool and what stands under them: what `Comprehensive` climbs (ALGORITHMS 6.7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.organize.knowledge_graph import MENTIONS, RELATES
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import View

__all__ = ["ReportTrees"]


@dataclass(frozen=True, slots=True)
class ReportTrees:
    """Reports by position, and who stands above whom.

    Attributes:
        trees: Name of the tree of every report, by its position, ascending.
        count: Number of trees.
        named: By position of a passage, relation or entity, the ids of the entities it names.
        above: By id of an entity, all reports above it, each once, lower ones first.
        places: Positions of the entities that are units of their own, by id.
    """

    trees: Mapping[int, str]
    count: int
    named: Mapping[int, tuple[str, ...]]
    above: Mapping[str, tuple[int, ...]]
    places: Mapping[str, int]

    @classmethod
    def of(cls, view: View) -> ReportTrees:
        """The trees of a pool, read once per snapshot."""
        found: ReportTrees = view.derived("report trees", lambda: cls._read(view))
        return found

    @classmethod
    def _read(cls, view: View) -> ReportTrees:
        code = list(view.kind_names).index(UnitKind.REPORT.value)
        reports = np.flatnonzero(view.kinds == code).astype(np.int64)
        number = {name.decode(): at for at, name in enumerate(view.ids.tolist())} if len(reports) else {}
        named: dict[int, list[str]] = {}
        lowest: dict[str, list[int]] = {}
        parents: dict[int, list[int]] = {}
        for edge in view.edges() if len(reports) else ():
            source, target = number.get(edge.source, -1), number.get(edge.target, -1)
            if edge.kind in (MENTIONS, RELATES) and source >= 0:
                if view.kinds[source] == code:
                    lowest.setdefault(edge.target, []).append(source)
                else:
                    named.setdefault(source, []).append(edge.target)
            elif edge.kind == "child" and source >= 0 and target >= 0 and view.kinds[source] == code:
                parents.setdefault(target, []).append(source)
        places = {entity: number[entity] for entity in lowest if entity in number}
        for entity, place in places.items():
            named.setdefault(place, []).append(entity)
        names = [unit.tree for unit in view.units(reports)]
        return cls(
            dict(zip(reports.tolist(), names, strict=True)),
            len(set(names)),
            {unit: tuple(found) for unit, found in named.items()},
            {entity: _ancestors(sorted(found), parents) for entity, found in lowest.items()},
            places,
        )

    def counts(self, entities: Iterable[str]) -> dict[int, int]:
        """Reports above any of the entities, with how many of them each stands above; ascending."""
        found: dict[int, int] = {}
        for entity in entities:
            for report in self.above.get(entity, ()):
                found[report] = found.get(report, 0) + 1
        return dict(sorted(found.items()))


def _ancestors(lowest: Sequence[int], parents: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    found = dict.fromkeys(lowest)
    queue = list(found)
    for report in queue:  # grows while it is read
        for parent in sorted(parents.get(report, ())):
            if parent not in found:
                found[parent] = None
                queue.append(parent)
    return tuple(found)
