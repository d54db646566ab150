"""Progress bars, for `progress=True` and `show_progress`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.protocols import Progress

ProgressLike = Union["Progress", bool, None]  # A callback; True for bars; False or None for nothing


def progress_of(progress: ProgressLike) -> Progress:
    """Return the given callback; bars for True, one that does nothing for None or False."""
    if progress is True:
        return Bars(quiet=True)
    return progress or _silent


def _silent(stage: str, done: int, total: int) -> None:
    """Show nothing."""


class Bars:
    """A progress callback that draws one bar per stage."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        try:
            import tqdm.auto  # type: ignore[import-untyped]  # noqa: F401 - it has no stubs; whether it is there
        except ImportError as error:
            raise ConfigurationError("Progress bars need tqdm: pip install tqdm") from error
        self._drawn: dict[str, Any] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Draw progress; see `sire_core.protocols.Progress`."""
        from tqdm.auto import tqdm

        if stage not in self._drawn:
            # None: tqdm itself looks whether anybody sees it.
            self._drawn[stage] = tqdm(desc=stage, disable=None if self._quiet else False)
        bar = self._drawn[stage]
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            self._drawn.pop(stage).close()

    def __getstate__(self) -> dict[str, Any]:
        return {"_drawn": {}, "_quiet": self._quiet}  # bars belong to the terminal of this process
