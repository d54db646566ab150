"""What tells two embedding models of one class and name apart: what they answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sire_core.errors import ModelError
from sire_core.types import digest

__all__ = ["answer_digest"]

_PROBE, _PROBED = "a short text that tells embedding models apart", 16


def answer_digest(called: str, embed: Callable[[str], Sequence[float]]) -> str:
    """What a model answers for a short text, rounded so that the same model always gives the same.

    Args:
        called: The model's class, for errors.
        embed: Embeds a question.

    Returns:
        A few letters; empty for a model that is async only.

    Raises:
        ModelError: The model failed.
    """
    try:
        with ThreadPoolExecutor(1) as thread:  # some models run a loop of their own, which a loop's thread refuses
            vector = np.asarray(thread.submit(embed, _PROBE).result(), dtype=np.float64)
    except NotImplementedError:
        return ""
    except Exception as error:
        raise ModelError(f"{called} failed: {type(error).__name__}: {error}") from error
    length = float(np.linalg.norm(vector)) or 1.0
    rounded = np.round(vector[:_PROBED] / length, 2) + 0.0  # no negative zeros
    return digest(str(len(vector)), *map(str, rounded.tolist()), size=4)
