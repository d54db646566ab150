"""Whether a model of the hub is on this machine, or can be had, before a library spends minutes to find out."""

from __future__ import annotations

from typing import Any

from sire_core.errors import ConfigurationError

__all__ = ["hub_options"]

_TIMEOUT = 10.0
"""Seconds that the hub has to answer whether it knows a model."""


def hub_options(name: str, *, download: bool = True) -> dict[str, Any]:
    """Options with which sentence-transformers loads a model: from this machine alone where it is there already.

    What was downloaded once is not looked for on the network again: an index keeps the vectors it was built with, and
    a machine without network waits for nothing. What is not there is asked for with one short request.

    Args:
        name: On the hub, `org/model`, or `model` of the organisation sentence-transformers.
        download: Whether it may be downloaded.

    Raises:
        ConfigurationError: It is not on this machine, and the hub does not know it or cannot be reached or asked.
    """
    try:
        import huggingface_hub as hub
    except ImportError:  # comes with sentence-transformers, which says so itself
        return {}
    places = [name] if "/" in name else [f"sentence-transformers/{name}", name]
    for place in places:
        if any(isinstance(hub.try_to_load_from_cache(place, file), str) for file in ("modules.json", "config.json")):
            return {"local_files_only": True}
    if not download:
        raise ConfigurationError(
            f"This index names the embedding model {name!r}, which is not on this machine, and a folder does not "
            "decide what is downloaded. If you know it, give it once yourself: --embedder st:NAME, or Index(path, "
            "embedder='st:NAME')."
        )
    missing = getattr(hub.errors, "RepositoryNotFoundError", ())
    for place in places:
        try:
            hub.HfApi().model_info(place, timeout=_TIMEOUT)
        except missing:
            continue
        except Exception as error:
            raise ConfigurationError(
                f"The model {name} is not on this machine, and the hub cannot be asked for it: {error}. Check the "
                "name and the network, or name a folder that holds a model."
            ) from error
        return {}
    raise ConfigurationError(
        f"The hub has no model {name}, or it is private and HF_TOKEN is not set. Check the name, or name a folder that "
        "holds a model."
    )
