"""What disks and programs do to files by accident."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

__all__ = ["DAMAGES", "damage"]

DAMAGES = ("flip", "zero tail", "cut", "swap", "edit", "empty", "gone")
"""A changed bit, zeros from some place on, a file cut off, another file's content, four other bytes, no content."""


def damage(file: Path, how: str, rng: random.Random, others: Sequence[Path]) -> None:
    """Damage a file.

    Args:
        file: The file.
        how: One of `DAMAGES`.
        rng: Chooses the place and the bytes.
        others: Whose content it may get.
    """
    whole = file.read_bytes()
    place = rng.randrange(max(1, len(whole)))
    if how == "gone":
        file.unlink()
        return
    file.write_bytes(
        {
            "flip": whole[:place] + bytes([whole[place] ^ (1 << rng.randrange(8))]) + whole[place + 1 :]
            if whole
            else b"x",
            "zero tail": whole[:place] + bytes(len(whole) - place),
            "cut": whole[:place],
            "swap": rng.choice(others).read_bytes(),
            "edit": whole[:place] + bytes(rng.randrange(256) for _ in range(4)) + whole[place + 4 :],
            "empty": b"",
        }[how]
    )
