"""`ReportTrees` by their definition: the edges of a pool."""

import numpy as np

from sire_core.extend import MENTIONS, RELATES
from sire_core.papers.smart.select import ReportTrees
from sire_core.types import UnitKind


def trees_from_edges(view):
    reports = np.flatnonzero(view.kinds == list(view.kind_names).index(UnitKind.REPORT.value)).tolist()
    number = {bytes(name): at for at, name in enumerate(view.ids)}
    entities, named, mentions, children = {}, [], [], []
    for edge in view.edges():
        source, target = number.get(edge.source.encode(), -1), edge.target.encode()
        if edge.kind in (MENTIONS, RELATES) and source >= 0:
            (mentions if source in reports else named).append((source, entities.setdefault(target, len(entities))))
        elif edge.kind == "child" and source in reports and target in number:
            children.append((source, number[target]))
    pairs = (np.array(rows, dtype=np.int64).reshape(-1, 2) for rows in (named, mentions, children))
    trees = {at: unit.tree for at, unit in zip(reports, view.units(reports), strict=True)}
    return ReportTrees.build(view, np.array(list(entities), dtype="S"), trees, *pairs)
