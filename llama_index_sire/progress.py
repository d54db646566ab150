"""Progress of a build as bars, where LlamaIndex is asked to `show_progress`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sire_core.protocols import Progress

__all__ = ["bars"]


def bars() -> Progress:
    """A progress callback that draws one bar per stage."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]  # it has no stubs of its own

    drawn: dict[str, Any] = {}

    def show(stage: str, done: int, total: int) -> None:
        if stage not in drawn:
            drawn[stage] = tqdm(desc=stage)
        bar = drawn[stage]
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            drawn.pop(stage).close()

    return show
