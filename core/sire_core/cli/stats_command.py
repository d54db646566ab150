"""`sire stats`: what an index holds."""

from __future__ import annotations

from sire_core.cli import arguments
from sire_core.cli.options import IndexOptions, open_index
from sire_core.cli.output import say, say_json

__all__ = ["stats"]


def stats(folder: arguments.Folder, recipe: arguments.RecipeName = None, as_json: arguments.AsJson = False) -> None:
    """Show what an index holds and how it was made."""
    with open_index(IndexOptions(folder=folder, recipe=recipe)) as index:
        found = index.stats()
    if as_json:
        say_json(found)
        return
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(found["kinds"].items()))
    rows = {
        "documents": f"{found['documents']:,}",
        "passages": f"{found['chunks']:,}",
        "units": f"{found['units']:,} ({kinds})",
        "recipe": f"{found['recipe']} (the folder holds: {', '.join(found['recipes'])})",
        "embedder": f"{found['embedder']}, {found['dimension']} dimensions",
        "extraction": found["extraction"] or "none needed",
        "language model": found["language_model"] or "none",
        "failed passages": f"{found['failed']:,}",
        "generation": f"{found['generation']:,}",
    }
    for number, tree in enumerate(found.get("perspectives", {}).get("trees", ()), 1):
        clusters = ", ".join(f"{count:,}" for count in tree["clusters"])
        rows[f"perspective {number}"] = f"{clusters} clusters, {tree['information']:.2f} bits of information"
    for name, value in rows.items():
        say(f"{name:<16} {value}")
