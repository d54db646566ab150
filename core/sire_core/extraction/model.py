"""`ModelExtractor`: records made by a language model, one call per chunk."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.text import count_tokens, name_key
from sire_core.algorithms.worker_pool import bounded_map
from sire_core.errors import ConfigurationError, LimitExceededError, ModelError
from sire_core.extraction.answers import (
    EntitiesAnswer,
    EntityAnswer,
    ExtractionAnswer,
    FactAnswer,
    FactsAnswer,
    ShortFactsAnswer,
    record_of,
)
from sire_core.extraction.prompts import passage_data, prompts
from sire_core.extraction.record import validate
from sire_core.protocols import ChunkInContext, Prompt
from sire_core.types import Chunk, Entity, ExtractionRecord

if TYPE_CHECKING:
    from sire_core.protocols import LanguageModel

__all__ = ["ModelExtractor"]

_CONTEXT_TOKENS = 200
_ANSWER_BASE = 800
_ANSWER_PER_TOKEN = 12
_ANSWER_MOST = 8_192
_SHORT_BASE = 200
_SHORT_PER_TOKEN = 6
_MOST_NAMES = 30
"""Names that a prompt lists; small models lose the passage behind longer lists."""


class ModelExtractor:
    """An `Extractor` over a language model (SiReRAG).

    One call per chunk returns entities, facts, keywords and topic together. The end of the previous chunk of the
    document goes along as context. Whatever the model does, every chunk gets a record: what cannot be used becomes a
    failed one with its reason.

    Args:
        language_model: Who reads the chunks. With `with_sources` (see `CachedModel`) it is given the chunk it reads;
            worth it for the three steps, whose answers are not records yet.
        prompt_version: Which prompts; part of the fingerprint.
        native: Use SiReRAG's own three steps (rewrite, entities, facts) instead of one call.
        given: Entities of a chunk that are known; then one short call asks for the facts and relations between them.
        concurrency: Chunks under way at once; None takes the model's own `concurrency`, or 8.
        max_chunk_tokens: A longer chunk fails without a call, since one answer could not hold its facts.

    Raises:
        ConfigurationError: Unknown prompt version, or a number below 1.
    """

    def __init__(
        self,
        language_model: LanguageModel,
        *,
        prompt_version: str = "v1",
        native: bool = False,
        given: Callable[[Chunk], Sequence[Entity]] | None = None,
        concurrency: int | None = None,
        max_chunk_tokens: int = 4_000,
    ) -> None:
        self._model = language_model
        self._version = prompt_version
        self._prompts = prompts(prompt_version)
        self._native = native
        self._given = given
        self._workers = int(getattr(language_model, "concurrency", 8)) if concurrency is None else concurrency
        self._max_chunk_tokens = max_chunk_tokens
        if self._workers < 1 or max_chunk_tokens < 1:
            raise ConfigurationError("concurrency and max_chunk_tokens must be at least 1")

    @property
    def fingerprint(self) -> str:
        """Model, prompt version and way of asking."""
        return f"{self._model.fingerprint}|{self._prompt_name}"

    @property
    def links_titles(self) -> bool:
        """A model names the entities of its facts itself."""
        return False

    @property
    def calls_per_chunk(self) -> int:
        """Calls that a chunk takes when nothing goes wrong."""
        return 3 if self._native else 1

    @property
    def _prompt_name(self) -> str:
        return f"{'native' if self._native else 'given' if self._given else 'extract'}/{self._version}"

    def prompt(self, item: ChunkInContext) -> Prompt:
        """What is asked of the model for a chunk: the joint prompt, the first of the three steps, or the last one."""
        if self._given is not None:
            names = tuple(entity.name for entity in self._given(item.chunk))[:_MOST_NAMES]
            bounded = replace(item, previous=_tail(item.previous))
            return Prompt(self._prompts.facts, passage_data(bounded, entities=names))
        instructions = self._prompts.rewrite if self._native else self._prompts.joint
        return Prompt(instructions, passage_data(replace(item, previous=_tail(item.previous))))

    def answer_room(self, item: ChunkInContext) -> int:
        """Most tokens of an answer; grows with the chunk."""
        if self._given is not None:
            return min(_ANSWER_MOST, _SHORT_BASE + _SHORT_PER_TOKEN * count_tokens(item.chunk.text))
        return min(_ANSWER_MOST, _ANSWER_BASE + _ANSWER_PER_TOKEN * count_tokens(item.chunk.text))

    async def extract(self, chunks: Sequence[ChunkInContext]) -> AsyncIterator[Sequence[ExtractionRecord]]:
        """Yield records as they are ready; see `Extractor.extract`.

        Raises:
            LimitExceededError: A usage limit was reached. Everything answered before is yielded first.
        """
        done = 0
        source: Iterator[ChunkInContext] = iter(chunks)
        async with contextlib.aclosing(bounded_map(self._record, source, self._workers)) as results:
            try:
                async for batch in results:
                    done += len(batch)
                    yield [record for _, record in batch]
            except LimitExceededError as error:
                raise LimitExceededError(
                    f"extraction stopped after {done:,} of {len(chunks):,} chunks: {error}"
                ) from error

    async def _record(self, item: ChunkInContext) -> ExtractionRecord:
        size = count_tokens(item.chunk.text)
        if not item.chunk.text.strip():
            return self._finished(ExtractionRecord("", self._model.fingerprint, self._prompt_name, "empty"), item)
        if size > self._max_chunk_tokens:
            reason = f"the chunk has {size:,} tokens, more than {self._max_chunk_tokens:,}: cut it into smaller chunks"
            return self._failed(item, reason)
        try:
            bind = getattr(self._model, "with_sources", None)
            model: LanguageModel = self._model if bind is None else bind([item.chunk.id])
            ask = self._three_steps if self._native else self._short_call if self._given else self._one_call
            record = await ask(model, item)
        except ModelError as error:
            return self._failed(item, f"{type(error).__name__}: {error}")
        return self._finished(record, item)

    async def _one_call(self, model: LanguageModel, item: ChunkInContext) -> ExtractionRecord:
        done = await model.complete(self.prompt(item), schema=ExtractionAnswer, max_tokens=self.answer_room(item))
        answer: ExtractionAnswer = done.parsed
        return self._read(answer.entities, answer.facts, answer)

    async def _short_call(self, model: LanguageModel, item: ChunkInContext) -> ExtractionRecord:
        assert self._given is not None
        entities = [EntityAnswer(**asdict(entity)) for entity in self._given(item.chunk)]
        done = await model.complete(self.prompt(item), schema=ShortFactsAnswer, max_tokens=self.answer_room(item))
        return self._read(entities, [_with_entities(fact, entities) for fact in done.parsed.whole()], None)

    async def _three_steps(self, model: LanguageModel, item: ChunkInContext) -> ExtractionRecord:
        room = self.answer_room(item)
        passage = (await model.complete(self.prompt(item), max_tokens=room)).text.strip()
        data = passage_data(item, passage=passage)
        named = await model.complete(Prompt(self._prompts.entities, data), schema=EntitiesAnswer, max_tokens=room)
        entities: list[EntityAnswer] = named.parsed.entities
        data = passage_data(item, passage=passage, entities=tuple(entity.name for entity in entities))
        answer = await model.complete(Prompt(self._prompts.facts, data), schema=FactsAnswer, max_tokens=room)
        facts: list[FactAnswer] = [_with_entities(fact, entities) for fact in answer.parsed.facts]
        return self._read(entities, facts, None)

    def _read(self, entities: Sequence[Any], facts: Sequence[Any], extras: ExtractionAnswer | None) -> ExtractionRecord:
        return record_of(entities, facts, model=self._model.fingerprint, prompt=self._prompt_name, extras=extras)

    def _finished(self, record: ExtractionRecord, item: ChunkInContext) -> ExtractionRecord:
        return validate(record, item.chunk)[0]

    def _failed(self, item: ChunkInContext, reason: str) -> ExtractionRecord:
        record = ExtractionRecord(
            item.chunk.hash, self._model.fingerprint, self._prompt_name, status="failed", reason=reason[:500]
        )
        return self._finished(record, item)


def _tail(text: str) -> str:
    """The end of the previous chunk: what a reference most likely points to."""
    words = text.split()
    return text if len(words) <= _CONTEXT_TOKENS else "… " + " ".join(words[-_CONTEXT_TOKENS:])


def _with_entities(fact: FactAnswer, entities: Sequence[EntityAnswer]) -> FactAnswer:
    """Entities of a fact: triple ends that are listed, then listed names in its text (SiReRAG)."""
    ids = {name_key(name): entity.id for entity in reversed(entities) for name in (*entity.aliases, entity.name)}
    ends = [ids.get(name_key(end)) for triple in fact.triples for end in (triple.h, triple.t)]
    padded = f" {_plain(fact.text)} "
    named = [entity.id for entity in entities if f" {_plain(entity.name)} " in padded and _plain(entity.name)]
    found = dict.fromkeys([end for end in ends if end is not None] + named)
    return fact.model_copy(update={"entities": list(found)})


def _plain(text: str) -> str:
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())
