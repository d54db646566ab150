"""Labels from shortest paths: oracle I5, limits, invariants."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.papers.iier.training_data import UNREACHABLE, hops_to, path_labels, shortest_path, step_labels


def csr(size, edges):
    both = sorted({*edges, *((j, i) for i, j in edges)})
    counts = np.bincount([i for i, _ in both], minlength=size) if both else np.zeros(size, np.int64)
    indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return indptr, np.array([j for _, j in both], dtype=np.int64)


I5 = csr(6, [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5)])


def labels_at(found, chain):
    """Right and wrong candidates of a chain."""
    decision = next(d for d in found.decisions if d.chain == chain)
    return decision.candidates[decision.positive].tolist(), decision.candidates[~decision.positive].tolist()


def test_oracle_I5_shortest_path_labels():
    (hops,) = hops_to(*I5, [5])
    assert hops.tolist() == [3, 2, 2, 1, 3, 0]
    assert shortest_path(*I5, hops, 0) == (0, 1, 3, 5)
    one = path_labels(*I5, [0, 5], "one_path")
    assert labels_at(one, (0,)) == ([1], [2])
    assert step_labels(np.array([1, 2]), hops, 3, [0, 5], None).tolist() == [True, True]
    # At 2 on the other shortest path: 0 was visited, 3 is nearer, 4 is not.
    assert step_labels(np.array([3, 4]), hops, 2, [0, 5], None).tolist() == [True, False]


def test_oracle_I5_evidence_off_the_path_is_wrong_as_published_and_right_by_ours():
    graph = csr(5, [(0, 1), (0, 2), (0, 3), (1, 4)])
    assert labels_at(path_labels(*graph, [0, 4, 2], "one_path"), (0,)) == ([1], [2, 3])
    assert labels_at(path_labels(*graph, [0, 4, 2], "all_shortest"), (0,)) == ([1, 2], [3])


def test_pairs_without_a_path_are_counted_and_skipped():
    found = path_labels(*csr(4, [(0, 1), (2, 3)]), [0, 1, 2])
    assert found.unreachable == 4
    far = csr(6, [(0, 1), (1, 2), (2, 3), (1, 4), (2, 5)])
    assert path_labels(*far, [0, 3], max_hops=2).unreachable == 2
    assert path_labels(*far, [0, 3], max_hops=3).unreachable == 0


GRAPHS = st.integers(2, 9).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] < e[1]), max_size=16),
        st.lists(st.integers(0, n - 1), min_size=2, max_size=4),
    )
)


@given(GRAPHS, st.sampled_from(["one_path", "all_shortest"]))
@settings(max_examples=80, deadline=None)
def test_following_right_steps_reaches_evidence_in_as_many_hops(case, kind):
    size, edges, evidence = case
    indptr, neighbors = csr(size, list(edges))
    distances = floyd(size, edges)
    found = path_labels(indptr, neighbors, evidence, kind)
    pairs = list(itertools.permutations(dict.fromkeys(evidence), 2))
    assert found.unreachable == sum(distances[a, b] == UNREACHABLE for a, b in pairs)
    for decision in found.decisions:
        last = decision.chain[-1]
        assert decision.hops == distances[last, decision.target]
        assert not set(decision.candidates.tolist()) & set(decision.chain)
        assert decision.positive.any()
        assert not decision.positive.all()
        for node in decision.candidates[decision.positive].tolist():
            assert node in evidence or distances[node, decision.target] == decision.hops - 1
        if kind == "all_shortest":
            for node in decision.candidates[~decision.positive].tolist():
                assert distances[node, decision.target] >= decision.hops


def floyd(size, edges):
    d = np.full((size, size), UNREACHABLE, dtype=np.int64)
    np.fill_diagonal(d, 0)
    for i, j in edges:
        d[i, j] = d[j, i] = 1
    for k, i, j in itertools.product(range(size), repeat=3):
        d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return np.minimum(d, UNREACHABLE)
