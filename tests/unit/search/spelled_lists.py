"""`SpelledNames` of lists of names."""

import numpy as np

from sire_core.knowledge.edge_columns import NameLists, list_hash
from sire_core.knowledge.entity_graph import SpelledNames


def spelled_names(names, titles):
    """The names of every mention, and whether it titles its passage."""
    hashes = np.array([list_hash(listed) for listed in names], dtype=np.uint64)
    lists = NameLists().updated(np.unique(hashes), dict(zip(hashes.tolist(), names, strict=True)))
    return SpelledNames(lists, lists.places(hashes), titles)
