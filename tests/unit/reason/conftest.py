"""Indexes of the demo corpus and of nothing."""

from __future__ import annotations

import pytest

from sire_core.data import demo_documents
from sire_core.testing.doubles import HashEmbedder
from support.indexes import indexed


@pytest.fixture(scope="session")
def index():
    with indexed(demo_documents(), recipe="flat", embedder=HashEmbedder(), chunker=None) as built:
        yield built


@pytest.fixture
def empty_index():
    with indexed([], recipe="flat", embedder=HashEmbedder(), chunker=None) as built:
        yield built
