"""A user's own `Runner`: parts are a sequence like any other."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from sire_core import Index
from sire_core.data import demo_documents
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder


class Backwards:
    """Goes over all parts and gives the last one first."""

    part_size: int | None = 8

    async def map(
        self, function: Callable[[Any, Any], Any], shared: Any, parts: Sequence[Any]
    ) -> AsyncGenerator[tuple[int, Any], None]:
        taken = []
        for part in parts:
            assert len(taken) < len(parts), "parts have no end"
            taken.append(part)
        with pytest.raises(IndexError):
            parts[len(parts)]
        for number in reversed(range(len(taken))):
            yield number, await asyncio.to_thread(function, shared, taken[number])


def test_a_runner_that_iterates_over_its_parts_builds_the_same(tmp_path: Path) -> None:
    for name, runner in (("here", None), ("there", Backwards())):
        with Index(tmp_path / name, recipe="sirerag", embedder=HashEmbedder(), runner=runner) as index:
            index.build(demo_documents())
    assert read_contents(tmp_path / "there") == read_contents(tmp_path / "here")
