"""Stores validated answers, so that no prompt is paid for twice."""

from __future__ import annotations

import asyncio
import copy
import hashlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from sire_core.errors import SireError
from sire_core.models.answer_parsing import schema_fingerprint
from sire_core.models.base import AnswerParts, ModelWrapper, in_own_task
from sire_core.models.prompt_format import FORMAT_VERSION
from sire_core.models.usage_meter import UsageMeter, with_meter
from sire_core.protocols import Completion, LanguageModel, ModelRequest
from sire_core.types import digest

if TYPE_CHECKING:
    from sire_core.storage.call_cache import CallStore


def answer_key(fingerprint: str, request: ModelRequest) -> str:
    """Digest of everything that an answer depends on."""
    prompt = request.prompt
    return digest(
        "answer",
        FORMAT_VERSION,
        fingerprint,
        prompt.instructions,
        prompt.data,
        *(hashlib.blake2b(image, digest_size=16).hexdigest() for image in prompt.images),
        "schema",
        schema_fingerprint(request.schema),
        *request.stop,
        "settings",
        str(request.max_tokens),
        repr(float(request.temperature)),
        size=16,
    )


_CUT_MARK = "\x1flength\x1f"  # Stands before a stored text that was cut off; no answer begins like this


@dataclass(slots=True)
class _Flight:
    """A prompt under way (single-flight): the same prompt meanwhile waits for its outcome."""

    done: asyncio.Event
    answer: Completion | None = None
    error: SireError | None = None


class CachedModel(ModelWrapper):
    """A `LanguageModel` that looks into a store first and writes validated answers to it, one by one.

    Refusals and failures are never written. With a schema the final, valid JSON is written, whatever the
    model wrapped around it or needed a repair for. Equal prompts that are under way at the same time are asked once.
    """

    def __init__(
        self,
        model: LanguageModel,
        store: CallStore,
        stage: str = "",
        *,
        meter: UsageMeter | None = None,
        source_of: Callable[[str], str] = str,
    ) -> None:
        super().__init__(model if meter is None else with_meter(model, meter, stage))
        self._store = store
        self._stage = stage
        self._meter = meter
        self._source_of = source_of
        self._sources: tuple[str, ...] = ()
        self._flights: dict[tuple[int, str], _Flight] = {}  # By event loop and key: no two threads share an entry

    def with_sources(self, ids: Sequence[str]) -> CachedModel:
        """A copy whose answers are noted as made from these chunks (or hashes), so that a purge finds them."""
        twin = copy.copy(self)
        twin._sources = tuple(dict.fromkeys(self._source_of(name) for name in ids))  # noqa: SLF001 - a copy of ourselves
        return twin

    def parts(self, request: ModelRequest) -> AnswerParts:
        """Answer in pieces, a stored answer in one. Stored when it is whole."""
        # Calls with an equal prompt must not wait for the reader of this stream.
        return in_own_task(super().parts(request))

    async def asked(self, request: ModelRequest, *, in_pieces: bool) -> AnswerParts:
        """Answer from the store, else ask and store."""
        key = answer_key(self.fingerprint, request)
        async with self._flying(key, request.schema) as (flight, stored):
            answer = stored
            if answer is None:
                async with aclosing(super().asked(request, in_pieces=in_pieces)) as walk:
                    async for part in walk:
                        if isinstance(part, str):
                            yield part
                        else:
                            answer = flight.answer = part
                            await self._keep(key, part)
            elif in_pieces:
                yield answer.text
        if answer is not None:
            yield answer

    @asynccontextmanager
    async def _flying(
        self, key: str, schema: type[Any] | None
    ) -> AsyncGenerator[tuple[_Flight, Completion | None], None]:
        """A flight, and its answer if the store or an equal prompt has it; else the caller asks for it."""
        flight_key = (id(asyncio.get_running_loop()), key)
        while (flight := self._flights.get(flight_key)) is not None:
            await flight.done.wait()
            if flight.error is not None:
                raise flight.error
            if flight.answer is not None:
                self._count_stored(flight.answer)
                yield flight, replace(flight.answer, stored=True)  # the other call paid for it
                return
            # The other call was cancelled: ask ourselves.
        flight = self._flights[flight_key] = _Flight(asyncio.Event())
        try:
            flight.answer = await self._stored(key, schema)
            yield flight, flight.answer
        except SireError as error:
            flight.error = error
            raise
        finally:
            del self._flights[flight_key]
            flight.done.set()

    async def _stored(self, key: str, schema: type[Any] | None) -> Completion | None:
        stored = await asyncio.to_thread(self._store.answer, key)
        if stored is None:
            return None
        text, read, wrote = stored
        cut, parsed = text.startswith(_CUT_MARK), None
        if schema is None:
            text = text.removeprefix(_CUT_MARK)
        else:
            try:
                parsed = schema.model_validate_json(text)
            except ValidationError:  # written by other rules under the same name: ask again rather than fail
                return None
        answer = Completion(text, parsed, read, wrote, "length" if cut else "stop", stored=True)
        self._count_stored(answer)
        return answer

    async def _keep(self, key: str, answer: Completion) -> None:
        if isinstance(answer.parsed, BaseModel):
            text = answer.parsed.model_dump_json()
        else:
            text = f"{_CUT_MARK}{answer.text}" if answer.finish == "length" else answer.text
        # Shielded: the answer is paid for, so that even a cancelled build keeps it.
        await asyncio.shield(
            asyncio.to_thread(
                self._store.put_answer,
                key,
                text,
                sources=self._sources,
                stage=self._stage,
                input_tokens=answer.input_tokens,
                output_tokens=answer.output_tokens,
            )
        )

    def _count_stored(self, answer: Completion) -> None:
        if self._meter is not None:
            self._meter.cached(self._stage, answer.input_tokens + answer.output_tokens)
