"""Encoding trees by their definition, slowly: what the fast ways are compared with."""

import math

import numpy as np


def clusters(tree):
    """Vertices of every internal node but the root, by (level, number of the cluster)."""
    numbered = [(m, level, c) for m, level in enumerate(tree.labels, 1) for c in range(level.max(initial=-1) + 1)]
    return {(m, c): tuple(np.flatnonzero(level == c).tolist()) for m, level, c in numbered}


def ancestors(tree, vertex):
    """The nodes above a vertex, the finest first, without the root."""
    return [(m, int(level[vertex])) for m, level in enumerate(tree.labels, 1) if level[vertex] >= 0]


def nested(tree):
    """Nested lists of vertices, the outermost being the root: clusters first, then what is in none of them."""
    root = {}
    for vertex in range(tree.size):
        node = root
        for above in reversed(ancestors(tree, vertex)):
            node = node.setdefault(above, {})
        node[vertex] = {}

    def listed(node):
        below = sorted(key for key in node if isinstance(key, tuple))
        return [*(listed(node[key]) for key in below), *(key for key in node if not isinstance(key, tuple))]

    return listed(root)


def tree_entropy(graph, tree):
    """H of a tree, leaves included: bits that say where a random walk steps, given what the tree tells (Li and Pan)."""
    degrees, volume = graph.degrees(), graph.volume()
    found = clusters(tree)
    volumes = {node: degrees[list(members)].sum() for node, members in found.items()}
    entropy = 0.0
    for vertex in range(graph.size):
        above = next(iter(ancestors(tree, vertex)), None)
        entropy += _part(degrees[vertex], degrees[vertex], volumes.get(above, volume), volume)
    for node, members in found.items():
        above = next((other for other in ancestors(tree, members[0]) if other[0] > node[0]), None)
        leaving = np.isin(graph.edges, members).sum(axis=1) == 1
        entropy += _part(graph.weights[leaving].sum(), volumes[node], volumes.get(above, volume), volume)
    return entropy


def _part(cut, inside, above, volume):
    return -cut / volume * math.log2(inside / above) if cut else 0.0
