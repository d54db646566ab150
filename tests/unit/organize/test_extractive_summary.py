"""Extractive summaries: which sentences are chosen, and what it takes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from sire_core.trees.summarizers import ExtractiveSummarizer, select_sentences
from sire_core.types import Unit, UnitKind


def rows(generator, n):
    """Sparse rows of length one; some are empty."""
    from scipy.sparse import csr_matrix

    dense = generator.random((n, 30)) * (generator.random((n, 30)) < 0.2)
    norms = np.linalg.norm(dense, axis=1, keepdims=True)
    return csr_matrix((dense / np.where(norms > 0, norms, 1)).astype(np.float32))


def by_all_pairs(vectors, lengths, budget, diversity):
    """Maximal marginal relevance as it is defined: over the similarities of all pairs."""
    similarity = np.asarray((vectors @ vectors.T).todense())
    relevance = similarity.mean(axis=1)
    relevance = relevance / max(float(relevance.max()), 1e-9)
    chosen = []
    while fitting := [i for i in range(len(lengths)) if i not in chosen and (not chosen or lengths[i] <= budget)]:
        redundancy = similarity[:, chosen].max(axis=1, initial=0)
        values = np.round((1 - diversity) * relevance - diversity * redundancy, 5)
        chosen.append(max(fitting, key=lambda i: (values[i], -i)))
        budget -= int(lengths[chosen[-1]])
    return chosen


@pytest.mark.parametrize("diversity", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("n", [1, 7, 60])
def test_sentences_are_chosen_by_marginal_relevance(n, diversity):
    for seed in range(8):
        generator = np.random.default_rng(seed)
        vectors, lengths = rows(generator, n), generator.integers(3, 40, n)
        assert select_sentences(vectors, lengths, 200, diversity) == by_all_pairs(vectors, lengths, 200, diversity)


def test_a_long_document_takes_memory_as_it_grows():
    generator = np.random.default_rng(0)
    words = generator.integers(0, 3000, (3000, 12)).tolist()
    text = "\n".join("The " + " ".join(f"w{word}" for word in line) + "." for line in words)
    from sire_core.models.sync import run_sync

    summarizer = ExtractiveSummarizer()
    run_sync(summarizer.summarize([[Unit("a", UnitKind.CHUNK, "One line.\nTwo.", ("a",))]]))  # what is loaded is loaded
    tracemalloc.start()
    [(summary, cited)] = run_sync(summarizer.summarize([[Unit("b", UnitKind.CHUNK, text, ("b",))]]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert cited == ("b",)
    assert 5 < len(summary.splitlines()) < 30
    assert peak < 20_000_000, "all pairs of 3,000 sentences take 36 MB"
