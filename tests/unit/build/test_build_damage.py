"""What lies beside the store may be damaged; the store is not."""

from dataclasses import replace

import numpy as np

from sire_core.index import Index
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Document


def test_damaged_vectors_do_not_reach_the_store(tmp_path):
    documents = [Document(f"d{number}", f"Word{number} saw Thing{number % 7}.") for number in range(300)]
    told = [replace(document, metadata={"told": True}) for document in documents]
    with Index(tmp_path / "index", recipe="flat", embedder=HashEmbedder()) as index:
        index.build(documents)
    before = read_contents(tmp_path / "index").vectors
    (matrix,) = (tmp_path / "index").rglob("matrix.npy")
    np.save(matrix, np.zeros_like(np.load(matrix)))  # of the right length: nobody can tell
    with Index(tmp_path / "index", recipe="flat", embedder=HashEmbedder()) as index:
        index.update(told)
    found = read_contents(tmp_path / "index")
    assert {unit.metadata.get("told") for unit in found.units.values()} == {True}
    assert found.vectors == before
