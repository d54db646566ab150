"""Calls of database clients that know neither event loops nor threads, and the texts that databases take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.errors import ConfigurationError, SireError, StorageError
from sire_core.stores.facts import facts_of

if TYPE_CHECKING:
    import threading

    from sire_core.protocols import MirroredUnit

T = TypeVar("T")


async def in_turn(lock: threading.Lock, work: Callable[[], T], name: str, kept_in: str) -> T:
    """Do something in a thread, one after the other."""

    def done() -> T:
        try:
            with lock:
                return work()
        except SireError:
            raise
        except Exception as error:
            raise StorageError(f"{name} failed ({error}). See to {kept_in} and ask again.") from error

    return await asyncio.to_thread(done)


def valid_text(text: str) -> str:
    """A text as UTF-8 can say it: halves of surrogate pairs become question marks."""
    return text.encode("utf-8", "replace").decode()


def payload_of(mirrored: MirroredUnit) -> dict[str, Any]:
    """Columns of a unit beside its id and vector."""
    unit = mirrored.unit
    return {
        "kind": unit.kind.value,
        "title": valid_text(unit.title),
        "text": valid_text(unit.text),
        "doc_ids": [valid_text(doc) for doc in mirrored.doc_ids],
        "facts": facts_of(mirrored.metadata, mirrored.differs),
    }


def check_width(store: str, held: int, width: int) -> None:
    """Refuse vectors of another length than those that a table holds."""
    if held != width:
        raise ConfigurationError(
            f"{store} holds vectors of length {held}, this index has vectors of length {width}. Name another table, or "
            "drop that one and call Index.push(full=True)."
        )


def reconstruct(made: Callable[..., T], arguments: tuple[Any, ...], options: Mapping[str, Any]) -> tuple[Any, ...]:
    """State of a store in pickles: its settings, without connection, lock or table."""
    return partial(made, *arguments, **options), ()
