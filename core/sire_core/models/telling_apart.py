"""What tells two embedding models of one class and name apart: what they answer."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from sire_core.errors import ModelError

__all__ = ["answer_text", "same_model", "under_fingerprint"]

E = TypeVar("E", bound=Any)

_PROBE, _PROBED = "a short text that tells embedding models apart", 16
_STEP = 0.04
"""Of the mean size of a vector's numbers; the noise of half precision is a fortieth of it."""
_ANSWER = re.compile(r"(?P<model>.*:answers-\d+-)(?P<numbers>(?:[0-9a-f]{2})*)", re.DOTALL)


def answer_text(called: str, embed: Callable[[str], Sequence[float]]) -> str:
    """What a model answers for a short text, coarsely, as the last part of a fingerprint.

    The same model may give another text now and then, where a number is at the border of two steps: compare
    fingerprints with `same_model`.

    Args:
        called: The model's class, for errors.
        embed: Embeds a question.

    Returns:
        The length of the vector and its first numbers; empty for a model that is async only.

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
    size = float(np.sqrt(np.mean(vector**2))) or 1.0
    steps = np.clip(np.round(vector[:_PROBED] / (size * _STEP)), -127, 127).astype(np.int64) + 128
    return f"answers-{len(vector)}-{bytes(steps.tolist()).hex()}"


def same_model(one: str, other: str) -> bool:
    """Whether two fingerprints name one model: equal, or their last part is what one model answers at two times.

    Args:
        one: A fingerprint.
        other: Another.
    """
    left, right = _ANSWER.fullmatch(one), _ANSWER.fullmatch(other)
    if left is None or right is None or left["model"] != right["model"]:
        return one == other
    numbers = [np.frombuffer(bytes.fromhex(found["numbers"]), dtype=np.uint8).astype(int) for found in (left, right)]
    return len(numbers[0]) == len(numbers[1]) and bool((np.abs(numbers[0] - numbers[1]) <= 1).all())


def under_fingerprint(embedder: E, fingerprint: str) -> E:
    """An adapter's embedder under the fingerprint of an index that its model built; itself where that is another model.

    Args:
        embedder: Keeps its fingerprint in `_fingerprint`.
        fingerprint: Of the embedder that built the index; its own may differ a little, see `answer_text`.
    """
    if fingerprint == embedder.fingerprint or not same_model(fingerprint, embedder.fingerprint):
        return embedder
    found = copy.copy(embedder)
    found._fingerprint = fingerprint  # noqa: SLF001 - a copy, of a class that says so
    return found
