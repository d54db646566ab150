"""sire-rag: retrieval for multi-hop questions. See `Index`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sire_core import moved
from sire_core.version import __version__ as __version__

if TYPE_CHECKING:
    from sire_core.files.readers import read_documents as read_documents
    from sire_core.index import Index as Index
    from sire_core.models.usage import UsageLimits as UsageLimits
    from sire_core.types import Document as Document
    from sire_core.types import Hit as Hit
    from sire_core.types import Passage as Passage

moved.register()

__all__ = ["Document", "Hit", "Index", "Passage", "UsageLimits", "read_documents"]

_MODULES = {"Index": "index", "UsageLimits": "models.usage", "read_documents": "files.readers"}


def __getattr__(name: str) -> Any:
    """Load public names when they are first used, so that importing the package costs next to nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"sire_core.{_MODULES.get(name, 'types')}"), name)
