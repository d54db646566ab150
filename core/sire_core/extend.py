"""Everything that authors of a method import: recipes, derivations, the knowledge graph, rankers, and what they share.

    from sire_core.extend import Component, Derivation, Output, Recipe, ResolvedSettings, Row, Step, register, setting

The names are listed once, in `extend.pyi`, which type checkers read, too. Each is loaded when it is first used, so that
naming a recipe stays cheap. `docs/extending/method.md` is the guide; all papers are written against this module alone.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

_LIST = Path(__file__).with_suffix(".pyi")
_MODULES = {
    alias.name: str(node.module)
    for node in ast.parse(_LIST.read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}


def __getattr__(name: str) -> Any:
    """Load a name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(_MODULES)
