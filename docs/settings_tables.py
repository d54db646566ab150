"""Fills `recipes/settings.md` from the docstrings of the recipes while the site is built (a hook of MkDocs)."""

import json
import re

from sire_core.recipes import recipe_by_name


def table(name: str) -> str:
    """A table of the settings of a recipe: name, default, meaning."""
    recipe = recipe_by_name(name)
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for key, value in recipe.config.items():
        meaning = recipe.texts[key].replace("|", "\\|")
        rows.append(f"| `{key}` | `{json.dumps(value)}` | {meaning} |")
    return "\n".join(rows)


def on_page_markdown(markdown: str, **_context: object) -> str:
    """Put a table where a page has the comment `settings of NAME`."""
    return re.sub(r"<!-- settings of (\w+) -->", lambda found: table(found[1]), markdown)
