"""What mirrors and sources over the vector stores of frameworks share."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from sire_core.arguments import kind_of
from sire_core.errors import ConfigurationError
from sire_core.metadata_values import flat_metadata

_logger = logging.getLogger(__name__)

T = TypeVar("T")


def check_store(store: object, kind: type, what: str) -> None:
    """Raise unless an object is a vector store of a framework."""
    if not isinstance(store, kind):
        raise ConfigurationError(f"{kind_of(store)} is no {what}.")


def describe_store(store: object) -> str:
    """What `Index.stats` says of a user's store."""
    return f"{type(store).__name__} (yours) + local 8-bit scores"


class FrameworkMirror:
    """A mirror into a store of a framework.

    Args:
        name: Unique among the stores of an index, and the same in every process.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_flat = False

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    async def _add(self, entries: list[Any], add: Callable[[list[Any]], Awaitable[T]]) -> T:
        """Add entries (pydantic models with `metadata`); from the first refusal on with single values as metadata."""
        if not self._is_flat:
            try:
                return await add(entries)
            except Exception as error:
                flat = list(map(_flat, entries))
                if flat == entries:
                    raise
                added = await add(flat)
                self._is_flat = True
                _logger.warning(
                    "The vector store %r takes single values as metadata only (%s). From now on it gets lists and "
                    "mappings as JSON, and no null.",
                    self._name,
                    str(error)[:200],
                )
                return added
        return await add(list(map(_flat, entries)))


def _flat(entry: Any) -> Any:
    return entry.model_copy(update={"metadata": flat_metadata(entry.metadata)})
