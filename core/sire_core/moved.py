"""Import paths of an earlier layout that users may have in code and pickles; each is the module of today."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

PAPERS = ("hipporag2", "iier", "indexrag", "linearrag", "msrag", "pagerank", "raptor", "sirerag", "smart")

_MOVED = {f"sire_core.recipes.{name}": f"sire_core.papers.{name}" for name in PAPERS} | {
    "sire_core.corpus": "sire_core.files"
}


class _MovedModules:
    """Finder and loader of moved modules. A module is never loaded twice: its classes are the same by both paths."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        """Return a spec that loads the module of today under its earlier name; None for all other names."""
        del path, target
        if not name.startswith(("sire_core.recipes.", "sire_core.corpus")):
            return None
        package = ".".join(name.split(".")[: 3 if name.startswith("sire_core.recipes.") else 2])
        if package not in _MOVED:
            return None
        from importlib.machinery import ModuleSpec
        from importlib.util import find_spec

        today = _MOVED[package] + name[len(package) :]
        return ModuleSpec(name, self, origin=today) if find_spec(today) else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module of today."""
        from importlib import import_module

        module = import_module(str(spec.origin))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its spec back; it was executed when it was imported."""
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state


def register() -> None:
    """Let imports find moved modules, before the files in the folder of a package that is here under two names."""
    if not any(isinstance(finder, _MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, _MovedModules())
