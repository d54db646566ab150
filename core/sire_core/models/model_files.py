"""Finds models: names with options, folders with their settings and digests, the hub and its cache."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

from sire_core.errors import ConfigurationError

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


_TIMEOUT = 10.0  # Seconds that the hub has to answer whether it knows a model


def local_folder(name: str | Path) -> Path | None:
    """Return the folder of a model, or None if `name` is a name on the hub."""
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
    """Hash settings files as a whole, and of large files the size, the header and evenly spaced samples."""
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


def split_options(text: str, **kinds: Callable[[str], Any]) -> tuple[str, dict[str, Any]]:
    """Split a name from the options behind its question mark."""
    name, _, rest = text.partition("?")
    try:
        pairs = parse_qsl(rest, keep_blank_values=True, strict_parsing=True) if rest else []
        return name, {key: kinds[key](value) for key, value in pairs}
    except (KeyError, ValueError) as error:
        options = ", ".join(f"{key}=..." for key in kinds)
        raise ConfigurationError(f"In {text!r} only {options} may follow the question mark, joined by &.") from error


def join_options(name: str, options: Mapping[str, Any]) -> str:
    """The reverse of `split_options`; options that are None or 0 are left out."""
    query = "&".join(f"{key}={quote(str(value), safe='')}" for key, value in options.items() if value not in (None, 0))
    return f"{name}?{query}" if query else name


def is_installed(package: str) -> bool:
    """True if a package can be imported; it is not."""
    return sys.modules.get(package) is not None or (package not in sys.modules and find_spec(package) is not None)


def hub_options(name: str, *, download: bool = True) -> dict[str, Any]:
    """Options with which sentence-transformers loads a model: from this machine alone where it is there already."""
    try:
        import huggingface_hub as hub
    except ImportError:  # comes with sentence-transformers, which says so itself
        return {}
    for full_name in _places(name):
        cached = (hub.try_to_load_from_cache(full_name, file) for file in ("modules.json", "config.json"))
        if any(isinstance(path, str) and _has_weights(Path(path).parent) for path in cached):
            return {"local_files_only": True}
    _known_model(hub, name, "st", download=download)
    return {}


def _places(name: str) -> list[str]:
    """Names on the hub that a name may mean."""
    return [name] if "/" in name else [f"sentence-transformers/{name}", name]


def _has_weights(folder: Path) -> bool:
    """True if a folder of the cache holds weights for torch: it may have been filled for an ONNX graph only."""
    return any(path.suffix in (".safetensors", ".bin") for path in folder.rglob("*"))


def _said(error: Exception) -> str:
    return str(error).rstrip(". \n")


def _known_model(hub: Any, name: str, form: str, *, download: bool) -> tuple[str, list[str]]:
    """Look a name up on the hub; returns its full form and the model's files. Raises if it may not be downloaded."""
    if not download:
        raise ConfigurationError(
            f"This index names the embedding model {name!r}, which is not on this machine, and a folder does not "
            f"decide what is downloaded. If you know it, give it once yourself: --embedder {form}:NAME, or Index(path, "
            f"embedder='{form}:NAME')."
        )
    missing = getattr(hub.errors, "RepositoryNotFoundError", ())
    for full_name in _places(name):
        try:
            info = hub.HfApi().model_info(full_name, timeout=_TIMEOUT)
        except missing:
            continue
        except Exception as error:
            raise ConfigurationError(
                f"The model {name} is not on this machine, and the hub cannot be asked for it: {_said(error)}. "
                "Check the name and the network, or name a folder that holds a model."
            ) from error
        return full_name, [file.rfilename for file in getattr(info, "siblings", None) or ()]
    raise ConfigurationError(
        f"The hub has no model {name}, or it is private and HF_TOKEN is not set. Check the name, or name a folder that "
        "holds a model."
    )


def hub_folder(name: str, choose: Callable[[Sequence[str]], list[str]], *, download: bool = True) -> Path:
    """Folder in the cache of the hub (HF_HOME) that holds the wanted files of a model; downloads what is missing."""
    try:
        import huggingface_hub as hub
    except ImportError as error:  # comes with tokenizers
        raise ConfigurationError(
            f'To find {name} huggingface_hub is needed: pip install "sire-rag[onnx]". Or name a folder.'
        ) from error
    for full_name in _places(name):
        if (folder := _cached_folder(hub, full_name, choose)) is not None:
            return folder
    full_name, listed = _known_model(hub, name, "onnx", download=download)
    try:
        return Path(hub.snapshot_download(full_name, allow_patterns=choose(listed)))
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"The model {name} cannot be downloaded: {_said(error)}. Check the network, or name a folder "
            "that holds a model."
        ) from error


def _cached_folder(hub: Any, full_name: str, choose: Callable[[Sequence[str]], list[str]]) -> Path | None:
    """Folder of the hub's cache with the wanted files; None if some are missing."""
    path = hub.try_to_load_from_cache(full_name, "tokenizer.json")
    if not isinstance(path, str):
        return None
    folder = Path(path).parent
    try:
        choose([path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()])
    except ConfigurationError:
        return None
    return folder


def model_folders() -> Iterator[tuple[str, Path, str]]:
    """Name, folder and origin of what may be a model on this machine: of SIRE_MODELS and of the cache of the hub."""
    setting = os.environ.get("SIRE_MODELS", "")
    if setting and (root := Path(setting).expanduser()).is_dir():
        for folder in (root, *sorted(path for path in root.iterdir() if path.is_dir())):
            yield str(folder.resolve()), folder, f"SIRE_MODELS={setting}"
    try:
        import huggingface_hub as hub
        from huggingface_hub.constants import HF_HUB_CACHE
    except ImportError:
        return
    for directory in sorted(Path(HF_HUB_CACHE).glob("models--*--*")):
        name = directory.name.removeprefix("models--").replace("--", "/")
        if (cached := _cached_folder(hub, name, list)) is not None:
            yield name, cached, "the cache of the hub"


def short_name(name: str) -> str:
    """The last part of a name, as patterns of names have it."""
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1].lower().replace("_", "-")
