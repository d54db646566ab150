"""What searches and reasoning of either adapter gave, in one form."""

import asyncio
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sire_core.protocols import Completion


@dataclass(frozen=True)
class Found:
    """A document of LangChain or a node of LlamaIndex that a search gave; `metadata` are the user's own."""

    id: str
    text: str
    metadata: dict[str, Any]
    kind: str
    doc_ids: list[str]
    score: float
    path: list[str]
    differing: dict[str, list[Any]]
    title: str = ""
    pages: list[int] | None = None


@dataclass(frozen=True)
class Reasoned:
    """What a reasoning chain or query engine gave; `rest` has `steps`, `stop`, `sufficient`, `citations` and others."""

    text: str
    found: list[Any]
    rest: dict[str, Any]


def by_words(query, texts):
    """Places of the three texts that share the most words with a question."""
    asked = set(query.lower().rstrip("?").split())
    return sorted(range(len(texts)), key=lambda n: (-len(asked & set(texts[n].lower().rstrip(".").split())), n))[:3]


async def gather(parts):
    """The pieces of a streamed answer, and the whole."""
    came = [part async for part in parts]
    assert isinstance(came[-1], Completion)
    return came[:-1], came[-1]


async def longest_pause(work):
    """Await something while a task ticks; seconds of the longest time between two ticks."""
    beats = []

    async def tick():
        while True:
            beats.append(time.perf_counter())
            await asyncio.sleep(0.02)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    await work
    await asyncio.sleep(0)
    beats.append(time.perf_counter())
    ticking.cancel()
    return max(after - before for before, after in pairwise(beats))
