"""`PlainExtractor`: records whose facts are the sentences of the passage, or what a test wrote down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sire_core.testing.scripted_model import rule_answer
from sire_core.types import Entity, ExtractionRecord, Fact

if TYPE_CHECKING:
    from sire_core.protocols import ChunkInContext
    from sire_core.types import Chunk

Facts = Sequence[tuple[str, Sequence[str]]]


class PlainExtractor:
    """Makes records without learning anything from the corpus, so that the order of arrival changes nothing."""

    def __init__(self, facts: Mapping[str, Facts] | None = None, *, batch: int = 4) -> None:
        self._facts = facts
        self._batch = batch
        self.asked: list[str] = []
        """Hashes of the passages that were extracted, in order."""

    @property
    def fingerprint(self) -> str:
        """`plain/1`, or `plain/1:written` with facts that were written down."""
        return "plain/1" if self._facts is None else "plain/1:written"

    @property
    def links_titles(self) -> bool:
        """Facts have the entities that their own passage gives them, no others."""
        return False

    async def extract(self, chunks: Sequence[ChunkInContext]) -> AsyncIterator[Sequence[ExtractionRecord]]:
        """Yield records in batches; see `sire_core.protocols.Extractor`."""
        for start in range(0, len(chunks), self._batch):
            part = [item.chunk for item in chunks[start : start + self._batch]]
            self.asked += [chunk.hash for chunk in part]
            yield [self._record(chunk) for chunk in part]

    def _record(self, chunk: Chunk) -> ExtractionRecord:
        if self._facts is None:
            answer = rule_answer("", chunk.text)
            names = {entity["id"]: entity["name"] for entity in answer["entities"]}
            found: Facts = [(fact["text"], [names[e] for e in fact["entities"]]) for fact in answer["facts"]]
        else:
            found = self._facts.get(chunk.text, ())
        ids = {name: f"n{i}" for i, name in enumerate(dict.fromkeys(n for _, names in found for n in names), 1)}
        return ExtractionRecord(
            hash=chunk.hash,
            model="plain",
            prompt="1",
            status="ok" if found else "empty",
            entities=tuple(Entity(local, name) for name, local in ids.items()),
            facts=tuple(
                Fact(f"f{i}", text, tuple(ids[name] for name in names)) for i, (text, names) in enumerate(found, 1)
            ),
        )
