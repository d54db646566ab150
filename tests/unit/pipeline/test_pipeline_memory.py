"""How often the interpreter looks for cycles while an index is built."""

import gc

import pytest

from sire_core import Document, Index
from sire_core.testing.hash_embedder import HashEmbedder


class Watching(HashEmbedder):
    """Notes the thresholds of the collector while it embeds."""

    seen = ()

    async def embed(self, texts, kind="document"):
        if kind == "document":
            self.seen = gc.get_threshold()
        return await super().embed(texts, kind)


@pytest.mark.parametrize("thresholds", [(700, 10, 10), (0, 10, 10), (50_000, 5, 5)])
def test_a_build_has_cycles_looked_for_rarely_and_puts_back_what_was_there(thresholds):
    embedder, before = Watching(), gc.get_threshold()
    gc.set_threshold(*thresholds)
    try:
        Index(embedder=embedder).build([Document("d", "The mill stands on the Marl.")])
        assert gc.get_threshold() == thresholds
    finally:
        gc.set_threshold(*before)
    rare = 0 < thresholds[0] < 20_000
    assert (embedder.seen == thresholds) != rare
    assert embedder.seen[0] == (20_000 if rare else thresholds[0])
