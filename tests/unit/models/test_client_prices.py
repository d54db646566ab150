from __future__ import annotations

import json

import pytest

from sire_core.build.estimate import estimate_extraction
from sire_core.errors import ConfigurationError
from sire_core.extraction.model import ModelExtractor
from sire_core.models.usage import CostRange, Price, load_prices, price_of
from sire_core.protocols import ChunkInContext
from sire_core.testing.doubles import ScriptedModel
from sire_core.types import Chunk


def items(count: int) -> list[ChunkInContext]:
    return [
        ChunkInContext(Chunk(f"c{n}", f"d{n}", 0, f"Title {n}", f"Passage {n} tells of Ann. " * 9))
        for n in range(count)
    ]


def test_the_packaged_table_knows_editions_of_a_model_and_no_other_of_like_names() -> None:
    table = load_prices()
    assert price_of("gpt-4o-mini-2024-07-18", table) == table["gpt-4o-mini"]
    assert price_of("openai:gpt-4o", table) == table["gpt-4o"]
    assert price_of("openai/gpt-4.1-nano", table) == table["gpt-4.1-nano"]
    assert price_of("gpt-4o-latest", table) == price_of("gpt-4o-0613", table) == table["gpt-4o"]
    # Other models, often dearer ones.
    for other in ("my-llama", "gpt-5-pro", "o3-pro", "o3-deep-research", "gpt-5.5-turbo", "gpt-4o-audio-preview"):
        assert price_of(other, table) is None


def test_the_users_own_table(tmp_path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"prices": {"my-llama": [1, 2]}}), encoding="utf-8")
    assert price_of("http://localhost:8000/v1:my-llama", load_prices(path)) == Price(1.0, 2.0)
    for bad in ("[]", "{", '{"prices": {"x": 3}}'):
        path.write_text(bad, encoding="utf-8")
        with pytest.raises(ConfigurationError, match="price table"):
            load_prices(path)
    with pytest.raises(ConfigurationError, match="price table"):
        load_prices(tmp_path / "missing.json")


@pytest.mark.parametrize("native", [None, "rewrite"])
async def test_a_scripted_extraction_lands_inside_its_estimate(native: str | None) -> None:
    model = ScriptedModel()
    extractor = ModelExtractor(model, native=native)
    chunks = items(20)
    known = {chunk.chunk.hash for chunk in chunks[:5]}
    cost = estimate_extraction(chunks, extractor, known=known, price=Price(1.0, 2.0))
    async for _ in extractor.extract(chunks[5:]):
        pass
    assert cost.calls == (len(model.log), len(model.log))
    assert cost.calls[0] == 15 * (3 if native else 1)
    assert cost.price is not None
    assert 0 < cost.price[0] < cost.price[1]


def test_equal_passages_are_counted_once_and_stored_ones_not_at_all() -> None:
    extractor = ModelExtractor(ScriptedModel())
    chunks = items(3)
    assert estimate_extraction(chunks + chunks, extractor).calls == (3, 3)
    done = estimate_extraction(chunks, extractor, known={chunk.chunk.hash for chunk in chunks}, price=Price(1, 1))
    assert done == CostRange(price=(0.0, 0.0))
