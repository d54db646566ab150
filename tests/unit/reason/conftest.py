"""Indexes of the demo corpus and of nothing."""

from __future__ import annotations

import pytest

from sire_core import Index
from sire_core.data import demo_documents
from sire_core.testing.doubles import HashEmbedder


@pytest.fixture(scope="session")
def index():
    with Index(recipe="flat", embedder=HashEmbedder(), chunker=None) as built:
        built.build(demo_documents())
        yield built


@pytest.fixture
def empty_index():
    with Index(recipe="flat", embedder=HashEmbedder(), chunker=None) as built:
        built.build([])
        yield built
