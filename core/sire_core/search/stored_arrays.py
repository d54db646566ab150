"""`stored_arrays`: arrays derived from a snapshot, kept beside it for the next process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from sire_core.protocols import View

    Arrays = Mapping[str, NDArray[Any]]

__all__ = ["join_words", "split_words", "stored_arrays"]


def stored_arrays(view: View, name: str, make: Callable[[], Arrays]) -> Arrays:
    """Arrays that another process kept in the snapshot's folder, else made now and kept for the next one.

    Args:
        view: The snapshot; in memory nothing is kept.
        name: Name of the file, with a number that changes whenever what it holds does.
        make: Makes the arrays; no objects among them.
    """
    place = view.directory / f"{name}.npz" if view.directory else None
    if place is not None and place.exists():
        import zipfile

        with (
            suppress(OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile),  # damaged: made again
            place.open("rb") as file,
            np.load(file, allow_pickle=False) as found,
        ):
            return {key: found[key] for key in found.files}
    arrays = make()
    if place is not None:
        _keep(arrays, place)
    return arrays


def join_words(words: Sequence[str]) -> NDArray[np.uint8]:
    """Words without line ends as one array of bytes."""
    return np.frombuffer("\n".join(words).encode("utf-8", "surrogatepass"), dtype=np.uint8)


def split_words(array: NDArray[np.uint8], count: int) -> list[str]:
    """The words of `join_words`.

    Args:
        array: Their bytes.
        count: How many; none and an empty one look the same.
    """
    return array.tobytes().decode("utf-8", "surrogatepass").split("\n") if count else []


def _keep(arrays: Arrays, place: Path) -> None:
    """Write beside and rename. A folder that cannot be written, or that a writer has tidied away, costs time only."""
    partial = place.with_name(f"{place.stem}.{os.getpid()}.partial.npz")
    try:
        np.savez(partial, **arrays)  # type: ignore[arg-type]  # numpy's stubs take further keywords for its own
        partial.replace(place)
    except OSError:
        with suppress(OSError):
            partial.unlink()
