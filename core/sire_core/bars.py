"""Progress of a build as bars, for adapters that are asked to `show_progress`."""

from __future__ import annotations

from typing import Any

from sire_core.errors import ConfigurationError

__all__ = ["Bars"]


class Bars:
    """A progress callback that draws one bar per stage.

    Raises:
        ConfigurationError: tqdm is missing.
    """

    def __init__(self) -> None:
        try:
            import tqdm.auto  # type: ignore[import-untyped]  # noqa: F401 - it has no stubs; whether it is there
        except ImportError as error:
            raise ConfigurationError("Progress bars need tqdm: pip install tqdm") from error
        self._drawn: dict[str, Any] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Draw; see `sire_core.protocols.Progress`."""
        from tqdm.auto import tqdm

        if stage not in self._drawn:
            self._drawn[stage] = tqdm(desc=stage)
        bar = self._drawn[stage]
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            self._drawn.pop(stage).close()

    def __getstate__(self) -> dict[str, Any]:
        return {"_drawn": {}}  # bars belong to the terminal of this process
