"""What could not be extracted or written in a build: logged one by one, and too much of it stops the build."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sire_core.algorithms.wording import count
from sire_core.errors import BuildError

if TYPE_CHECKING:
    from sire_core.protocols import Delta
    from sire_core.storage.store import Store
    from sire_core.types import Failure

__all__ = ["check_deltas", "log_failures"]

_logger = logging.getLogger(__name__)


def log_failures(failures: Sequence[Failure]) -> None:
    """Warn of each; the build goes on without them, and the next one tries them again."""
    for failure in failures:
        _logger.warning("failed, and tried again by the next build: %s: %s", failure.where, failure.reason)


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
