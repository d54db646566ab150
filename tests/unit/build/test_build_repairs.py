"""Passages whose extraction failed are made good by the first build that finishes, whatever happened in between."""

from dataclasses import replace

import pytest

from sire_core.errors import BuildError
from sire_core.index import Index
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, PlainExtractor
from sire_core.types import Document, ExtractionRecord

ANN, BOB, EVE = (
    Document("ann", "Ann met Bob.", title="Ann"),
    Document("bob", "Bob saw Dun. Ann saw Dun.", title="Bob"),
    Document("eve", "Eve saw Ann. Eve met Bob.", title="Eve"),
)


class Flaky(PlainExtractor):
    """Fails for some texts."""

    def __init__(self, silent):
        super().__init__()
        self.silent = silent

    async def extract(self, chunks):
        silent = {item.chunk.hash for item in chunks if item.chunk.text in self.silent}
        async for batch in super().extract(chunks):
            failed = ExtractionRecord("", "plain", "1", status="failed", reason="silent")
            yield [replace(failed, hash=record.hash) if record.hash in silent else record for record in batch]


def index_at(path, recipe, *silent, max_failure_ratio=0.5):
    return Index(
        path,
        recipe=recipe,
        embedder=HashEmbedder(),
        extractor=Flaky(silent),
        max_failure_ratio=max_failure_ratio,
    )


@pytest.mark.parametrize("recipe", ["sirerag", "indexrag", "iier", "pagerank", "msrag"])
def test_what_an_unfinished_build_repaired_is_not_lost(tmp_path, recipe):
    path = tmp_path / "index"
    with index_at(path, recipe, ANN.text) as index:
        index.build([ANN, BOB])
        assert index.stats()["failed"] == 1
    with index_at(path, recipe, EVE.text, max_failure_ratio=0.1) as index, pytest.raises(BuildError):
        index.add([EVE])  # repairs Ann's passage before it stops
    with index_at(path, recipe) as index:
        index.build([ANN, BOB])
        assert index.stats()["failed"] == 0
    with index_at(tmp_path / "fresh", recipe) as fresh:
        fresh.build([ANN, BOB])
    grown, wanted = read_contents(path), read_contents(tmp_path / "fresh")
    assert grown.units == wanted.units
    assert set(map(repr, grown.edges)) == set(map(repr, wanted.edges))
