"""The organizing stage of a build: every organizer of every recipe in the folder, once, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sire_core.build.organizer_view import OrganizerView
from sire_core.errors import ConfigurationError
from sire_core.extraction.stage import RecordReader
from sire_core.protocols import Change
from sire_core.types import digest

if TYPE_CHECKING:
    from sire_core.build.build_context import BuildContext
    from sire_core.protocols import Delta, Organizer

__all__ = ["Job", "fingerprint_of", "organize_all"]


@dataclass(frozen=True, slots=True)
class Job:
    """One organizer and what changed for it."""

    organizer: Organizer
    fingerprint: str
    change: Change


def fingerprint_of(organizer: Organizer, extractor: str, summarizer: str, required: Sequence[str] = ()) -> str:
    """Build fingerprint: everything that decides what an organizer builds from a corpus.

    Args:
        organizer: Its name and settings count.
        extractor: Fingerprint of the records it reads.
        summarizer: Fingerprint of who writes its summaries.
        required: Build fingerprints of the organizers it reads.
    """
    import json

    return digest(
        organizer.name,
        json.dumps(dict(organizer.settings()), sort_keys=True),
        extractor if organizer.needs_records else "",
        summarizer if organizer.needs_summaries else "",
        *required,
        size=8,
    )


async def organize_all(jobs: Sequence[Job], context: BuildContext) -> Mapping[str, Delta]:
    """Run organizers one after the other; each sees the deltas of those before it.

    Returns:
        Deltas by build fingerprint, with the summaries that failed among their failures; an organizer that stands in
        several recipes runs once.

    Raises:
        ConfigurationError: An organizer requires one that does not come before it.
    """
    # Not the build's: what it has read is let go of before the commit.
    records = RecordReader(context.update, context.extractor, context.files.calls)
    finished: dict[str, tuple[str, Delta]] = {}
    deltas: dict[str, Delta] = {}
    for done, job in enumerate(jobs):
        context.given.progress("organizing", done, len(jobs))
        missing = [name for name in job.organizer.requires if name not in finished]
        if missing:
            raise ConfigurationError(f"{job.organizer.name} needs {', '.join(missing)} before it in the recipe.")
        if job.fingerprint not in deltas:
            view = OrganizerView(job.fingerprint, context, records, dict(finished))
            before = len(context.failures)
            delta = await job.organizer.organize(job.change, view)
            # Summaries are written concurrently and fail in any order.
            failed = sorted(context.failures[before:], key=lambda failure: failure.where)
            deltas[job.fingerprint] = replace(delta, failures=(*delta.failures, *failed))
        finished[job.organizer.name] = (job.fingerprint, deltas[job.fingerprint])
    if jobs:
        context.given.progress("organizing", len(jobs), len(jobs))
    return deltas
