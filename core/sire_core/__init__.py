"""sire-rag: retrieval for multi-hop questions. See `Index`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sire_core import moved
from sire_core.version import __version__ as __version__

if TYPE_CHECKING:
    from sire_core.index import Index as Index
    from sire_core.models.usage import UsageLimits as UsageLimits
    from sire_core.types import Document as Document
    from sire_core.types import Hit as Hit
    from sire_core.types import Passage as Passage

moved.register()

__all__ = ["Document", "Hit", "Index", "Passage", "UsageLimits"]


def __getattr__(name: str) -> Any:
    """Load public names when they are first used, so that importing the package costs next to nothing."""
    if name == "Index":
        from sire_core.index import Index

        return Index
    if name == "UsageLimits":
        from sire_core.models.usage import UsageLimits

        return UsageLimits
    if name in ("Document", "Hit", "Passage"):
        from sire_core import types

        return getattr(types, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
