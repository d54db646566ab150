"""Checkpoints of chain scorers: one file of weights and a card that says how they came about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError, StorageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.recipes.iier.scorers import ChainScorer

__all__ = ["FORMAT", "load_chain_scorer", "read_checkpoint", "scorer_digest", "scorer_of", "write_checkpoint"]

FORMAT = "chain-scorer/1"
"""`format` of every card; another one is another meaning of the weights."""
_CARD = "card"
_AGAIN = "Train it again with `sire train-chains DATASET --to FILE`."


def load_chain_scorer(path: str | Path) -> ChainScorer:
    """Read a trained scorer, of whichever kind.

    Raises:
        ConfigurationError: A library is missing.
        StorageError: The file is missing, damaged, or of another version.
    """
    weights, card = read_checkpoint(path)
    try:
        return scorer_of(weights, card)
    except StorageError as error:
        raise StorageError(f"{path} {error}") from error


def scorer_of(weights: Mapping[str, NDArray[np.float32]], card: Mapping[str, Any]) -> ChainScorer:
    """The scorer that weights and card describe.

    Raises:
        ConfigurationError: A library is missing.
        StorageError: They do not fit; the message goes on from the name of the file.
    """
    if card.get("kind") == "encoder":
        from sire_core.recipes.iier.encoder_scorer import EncoderChainScorer

        return EncoderChainScorer.of(weights, card)
    from sire_core.recipes.iier.neural_scorer import NeuralScorer

    return NeuralScorer.of(weights, card)


def scorer_digest(weights: Mapping[str, NDArray[np.float32]], card: Mapping[str, Any]) -> str:
    """Digest of the weights and of all that the card says besides it; the same training gives the same one."""
    rest = {name: value for name, value in card.items() if name != "digest"}
    found = hashlib.blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=16)
    for name in sorted(weights):
        array = np.ascontiguousarray(weights[name], dtype="<f4")
        found.update(f"\0{name}\0{array.shape}\0".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def write_checkpoint(
    path: str | Path, weights: Mapping[str, NDArray[np.float32]], card: Mapping[str, Any]
) -> dict[str, Any]:
    """Write a scorer; the file appears whole or not at all.

    Args:
        path: Where to; an existing file is replaced.
        weights: float32 arrays by name.
        card: JSON values: data, config, metrics, and what the weights need.

    Returns:
        The card as it was written, with `format` and `digest`.

    Raises:
        ConfigurationError: The library is missing.
        StorageError: The file cannot be written.
    """
    library = _safetensors()
    full = {**json.loads(json.dumps(card)), "format": FORMAT}
    full["digest"] = scorer_digest(weights, full)
    path = Path(path)
    part = path.with_name(f".{path.name}.part")
    arrays = {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in weights.items()}
    try:
        try:
            # One entry: with several, the library writes them in no fixed order.
            library.save_file(arrays, str(part), metadata={_CARD: json.dumps(full, sort_keys=True)})
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except (OSError, library.SafetensorError) as error:
        raise StorageError(f"{path} cannot be written ({error}). Name a file in a folder that exists.") from error
    return full


def read_checkpoint(path: str | Path) -> tuple[Mapping[str, NDArray[np.float32]], Mapping[str, Any]]:
    """Read a scorer: weights by name and the card.

    Raises:
        ConfigurationError: The library is missing.
        StorageError: The file is missing, damaged, or no scorer.
    """
    if not Path(path).is_file():
        raise StorageError(
            f"There is no checkpoint {Path(path).absolute()}. Give its full path, or train one: `sire train-chains`."
        )
    library = _safetensors()
    try:
        with library.safe_open(str(path), framework="numpy") as file:
            card = json.loads((file.metadata() or {})[_CARD])
            weights = {name: np.asarray(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118 - no mapping
    except KeyError as error:
        raise StorageError(f"{path} is a safetensors file, but of no chain scorer: it has no card. {_AGAIN}") from error
    except (OSError, ValueError, library.SafetensorError) as error:
        raise StorageError(f"{path} is damaged or no checkpoint ({error}). {_AGAIN}") from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        found = card.get("format") if isinstance(card, dict) else card
        raise StorageError(f"{path} has the format {found!r}, this version reads {FORMAT!r}. {_AGAIN}")
    if any(array.dtype != np.float32 for array in weights.values()) or card.get("digest") != scorer_digest(
        weights, card
    ):
        raise StorageError(f"{path} is damaged: its weights are not those that its card was written for. {_AGAIN}")
    return MappingProxyType(weights), MappingProxyType(card)


class _Library:
    """The three names of safetensors that are used here."""

    def __init__(self) -> None:
        from safetensors import SafetensorError, safe_open
        from safetensors.numpy import save_file

        self.SafetensorError: type[Exception] = SafetensorError
        self.safe_open: Any = safe_open
        self.save_file: Any = save_file


def _safetensors() -> _Library:
    try:
        return _Library()
    except ImportError as error:
        # Not the extra with torch: the light scorer is read and searched without.
        raise ConfigurationError("Trained scorers need safetensors: pip install safetensors") from error
