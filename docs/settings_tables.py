"""Fills pages while the site is built (a hook of MkDocs): settings from docstrings, elements from `published.toml`."""

import json
import re

from sire_core.recipes import recipe_by_name
from sire_core.recipes.published import published_of


def table(name: str) -> str:
    """A table of the settings of a recipe: name, default, meaning."""
    recipe = recipe_by_name(name)
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for key, value in recipe.config.items():
        meaning = recipe.texts[key].replace("|", "\\|")
        rows.append(f"| `{key}` | `{json.dumps(value)}` | {meaning} |")
    return "\n".join(rows)


def elements(name: str) -> str:
    """A table of the elements of a recipe's paper."""
    head = "| element | in the paper | how to use it | as published? | check |"
    return "\n".join(
        [head, "|---|---|---|---|---|", *(f"| {' | '.join(row)} |" for row in published_of(name).elements)]
    )


def on_page_markdown(markdown: str, **_context: object) -> str:
    """Put a table where a page has the comment `settings of NAME` or `elements of NAME`."""
    markdown = re.sub(r"<!-- settings of (\w+) -->", lambda found: table(found[1]), markdown)
    return re.sub(r"<!-- elements of (\w+) -->", lambda found: elements(found[1]), markdown)
