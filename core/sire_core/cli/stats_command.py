"""`sire stats`: what an index holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sire_core.cli import arguments
from sire_core.cli.options import IndexOptions, open_index
from sire_core.cli.output import bar, kinds, say, say_json

__all__ = ["stats"]

_TREES = {"drift_sim": "similarity tree", "drift_rel": "relatedness tree", "drift_cross": "cross tree"}


def stats(folder: arguments.Folder, recipe: arguments.RecipeName = None, as_json: arguments.AsJson = False) -> None:
    """Show what an index holds and how it was made."""
    with open_index(IndexOptions(folder=folder, recipe=recipe)) as index:
        found = index.stats()
    if as_json:
        say_json(found)
        return
    rows = {
        "documents": f"{found['documents']:,}",
        "passages": f"{found['chunks']:,}",
        "units": f"{found['units']:,} ({kinds(found['kinds'])})",
        "recipe": f"{found['recipe']} (the folder holds: {', '.join(found['recipes'])})",
        "embedder": f"{found['embedder']}, {found['dimension']} dimensions",
        "extraction": found["extraction"] or "none needed",
        "language model": found["language_model"] or "none",
        "failed": f"{found['failed']:,}",
        "generation": f"{found['generation']:,}",
    }
    rows |= _tree_rows(found)
    for name, value in rows.items():
        say(f"{name:<16} {value}")
    for line in _bars(found):
        say(line)


def _bars(found: Mapping[str, Any]) -> list[str]:
    """Units by kind and the drift of trees as bars; nothing where there is but one kind."""
    sizes = found["kinds"]
    most = max(sizes.values(), default=0)
    lines = [
        f"{kind.replace('_', ' '):<16} {bar(number / most)} {number:,}"
        for kind, number in sorted(sizes.items(), key=lambda item: -item[1])
        if len(sizes) > 1
    ]
    lines += [f"{name:<16} {bar(found[key])} {found[key]:.0%} drifted" for key, name in _TREES.items() if key in found]
    return ["", *lines] if lines else []


def _tree_rows(found: Mapping[str, Any]) -> dict[str, str]:
    """How far trees have drifted, and what the perspectives of `smart` look like."""
    rows = {name: f"drifted {found[key]:.0%} of the way to a rebuild" for key, name in _TREES.items() if key in found}
    if bridging := found.get("bridging"):
        rows["bridging"] = (
            f"{bridging['facts']:,} facts of {bridging['entities']:,} entities that documents share; "
            f"{bridging['non_empty_rate']:.0f}% of these have one"
        )
    perspectives = found.get("perspectives", {})
    for number, tree in enumerate(perspectives.get("trees", ()), 1):
        levels = ", ".join(f"{size:,}" for size in tree["clusters"])
        explained = tree["information"] / perspectives["entropy"] if perspectives["entropy"] else 0.0
        rows[f"perspective {number}"] = (
            f"clusters of entities by level: {levels}; they explain {explained:.0%} of how entities are related"
        )
    return rows
