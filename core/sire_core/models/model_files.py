"""Folders that hold a model: which one a name means, what their settings say, and a digest of their files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sire_core.errors import ConfigurationError

__all__ = ["MODEL_SETTINGS", "files_digest", "local_folder", "read_json"]

MODEL_SETTINGS = (
    "config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "special_tokens_map.json",
    "sentencepiece.bpe.model",
)
"""Files beside the weights that decide what a model computes."""

_SAMPLES, _SAMPLE_BYTES = 256, 4096


def local_folder(name: str | Path) -> Path | None:
    """Return the folder of a model, or None if `name` is a name on the hub.

    Args:
        name: A folder, or `org/model` or `model` on the hub.

    Raises:
        ConfigurationError: `name` is neither.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder.resolve()
    text = str(name)
    is_name = text.count("/") <= 1 and "\\" not in text and not text.startswith((".", "/", "~")) and text.strip("/ ")
    if isinstance(name, Path) or not is_name or folder.exists():
        raise ConfigurationError(
            f"there is no model folder at {name}; name a folder, or a model of the hub as org/name"
        )
    return None


def files_digest(folder: Path, files: Iterable[Path]) -> str:
    """Hash settings files as a whole, and of large files the size, the header and evenly spaced samples.

    Args:
        folder: Names of files are relative to it.
        files: Files in it.
    """
    state = hashlib.blake2b(digest_size=8)
    for path in files:
        size = path.stat().st_size
        state.update(f"{path.relative_to(folder).as_posix()}:{size}:".encode())
        with path.open("rb") as file:
            if path.name in MODEL_SETTINGS or size <= _SAMPLES * _SAMPLE_BYTES:
                state.update(file.read())
                continue
            for i in range(_SAMPLES):
                file.seek(i * (size - _SAMPLE_BYTES) // (_SAMPLES - 1))
                state.update(file.read(_SAMPLE_BYTES))
    return state.hexdigest()


def read_json(path: Path, default: Any) -> Any:
    """Parse a JSON file; `default` if it is missing or no JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return default
