"""`OrganizerBase`, the defaults of an organizer, and `Derivation`, an organizer made of steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from sire_core.derive.step import Step
    from sire_core.protocols import BuildView, Change, Delta


class OrganizerBase:
    """An organizer that reads extraction records and no other organizer, and writes no summaries.

    Attributes:
        name: Short name, unique within a recipe and part of the build fingerprint. Every subclass declares it.
    """

    name: ClassVar[str]

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of organizers that come before it in a recipe."""
        return ()

    @property
    def needs_records(self) -> bool:
        """Whether it reads extraction records."""
        return True

    @property
    def needs_summaries(self) -> bool:
        """Whether it has texts written, by a model where there is one."""
        return False

    def check_installed(self) -> None:
        """Raise `ConfigurationError` where a library that a build needs is missing, before a model is asked."""


class Derivation(OrganizerBase):
    """An organizer that is a chain of steps. A subclass is a frozen dataclass whose fields are its settings."""

    def settings(self) -> Mapping[str, Any]:
        """All fields as JSON-serialisable values."""
        assert dataclasses.is_dataclass(self)
        found = dataclasses.asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    def steps(self, view: BuildView) -> Sequence[Step]:
        """The steps, in the order in which they run."""
        raise NotImplementedError

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring everything up to date with a change of the corpus."""
        from sire_core.derive.engine import run_steps  # works on arrays; naming a recipe needs none

        return (await run_steps(self.steps(view), change, view)).delta
