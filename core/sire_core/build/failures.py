"""What could not be extracted or written in a build: logged one by one, and too much of it stops the build."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from sire_core.algorithms.wording import count
from sire_core.errors import BuildError, ConfigurationError
from sire_core.storage.pool import MOST_LETTERS, MOST_LEVELS

if TYPE_CHECKING:
    from sire_core.protocols import Delta
    from sire_core.storage.store import Store
    from sire_core.types import Failure, Unit

__all__ = ["check_deltas", "check_units", "log_dropped", "log_failures"]

_logger = logging.getLogger(__name__)


def log_failures(failures: Sequence[Failure]) -> None:
    """Warn of each; the build goes on without them, and the next one tries them again."""
    for failure in failures:
        _logger.warning("failed, and tried again by the next build: %s: %s", failure.where, failure.reason)


def log_dropped(recipes: Sequence[str]) -> None:
    """Warn of recipes that a change could not keep up."""
    for recipe in recipes:
        _logger.warning(
            "the recipe %s was dropped: it was built with another language model or extractor than this change was "
            "given. Build it again where it is searched.",
            recipe,
        )


def check_units(deltas: Mapping[str, Delta], names: Mapping[str, str], chunks: Container[str]) -> None:
    """Refuse units that no index can hold, before anything of them is written.

    Args:
        deltas: What each organizer has made, by build fingerprint.
        names: Names of the organizers by build fingerprint, for the message.
        chunks: Ids of all chunks after the change.

    Raises:
        ConfigurationError: An organizer has made such a unit or edge. Nothing was changed.
    """
    for owner, delta in deltas.items():
        wrong = next(filter(None, (_wrong_unit(unit, chunks) for unit in delta.put_units)), None)
        wrong = wrong or next(
            (f"the edge {e} has no finite weight" for e in delta.put_edges if not isfinite(e.weight)), ""
        )
        if wrong:
            raise ConfigurationError(
                f"{names.get(owner, owner)} makes what an index cannot hold: {wrong}. Mend the organizer and build "
                "again; nothing was changed."
            )


def _wrong_unit(unit: Unit, chunks: Container[str]) -> str:
    """What is wrong with a unit; empty when nothing is."""
    if not 0 < len(unit.id) <= MOST_LETTERS or not unit.id.isascii():
        return f"the id {unit.id!r} is not 1 to {MOST_LETTERS} ASCII letters long (see sire_core.types.unit_id)"
    if not unit.chunk_ids:
        return f"the unit {unit.id!r} stands on no passage (chunk_ids)"
    if unknown := [chunk for chunk in unit.chunk_ids if chunk not in chunks]:
        return f"the unit {unit.id!r} stands on {unknown[0]!r}, which is no passage of this index"
    if not 0 <= unit.level <= MOST_LEVELS:
        return f"the unit {unit.id!r} has level {unit.level}; levels are 0 to {MOST_LEVELS}"
    return ""


def check_deltas(deltas: Mapping[str, Delta], names: Mapping[str, str], store: Store, max_failure_ratio: float) -> None:
    """Stop a build in which a model failed to write too much of what an organizer makes.

    The share is that of all that the organizer makes of the corpus, not of this change: one cluster that a model
    refuses to summarise must not stand in the way of every later change.

    Args:
        deltas: What each organizer has made, by build fingerprint.
        names: Names of the organizers by build fingerprint, for the message.
        store: What is there already.
        max_failure_ratio: The largest share that may fail.

    Raises:
        BuildError: More failed. What succeeded is stored.
    """
    for owner, delta in deltas.items():
        failed = len(delta.failures)
        if not failed:
            continue
        there = sum(store.counts([owner]).values()) - len(delta.drop_units) + len(delta.put_units)
        if failed > max_failure_ratio * (max(there, 0) + failed):
            first = delta.failures[0]
            raise BuildError(
                f"The model failed {count(failed, 'time')} for {names.get(owner, owner)}, which has "
                f"{count(max(there, 0), 'unit')} without what failed; first: {first.where}: {first.reason}. What "
                "succeeded is stored; fix the cause and build again, or raise max_failure_ratio."
            )
