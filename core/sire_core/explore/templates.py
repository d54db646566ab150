"""Templates of pages and their style sheets (`templates/`); every value that is no HTML already is escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sire_core.explore.highlight import escaped
from sire_core.explore.name_kinds import MARKS, NAME_KINDS
from sire_core.explore.picture import kind_name, node_class
from sire_core.text.pluralize import count

if TYPE_CHECKING:
    from markupsafe import Markup

_FOLDER = Path(__file__).parent / "templates"
NEAREST = "Nearest sentences"


def markup(html: str) -> Markup:
    """Mark text as HTML, which templates do not escape."""
    from markupsafe import Markup

    return Markup(html)  # noqa: S704 - what calls this has escaped it


@cache
def style(*names: str) -> Markup:
    """Style sheets, one after the other: `picture`, `page` and `explorer`."""
    return markup("".join((_FOLDER / f"{name}.css").read_text(encoding="utf-8") for name in names))


def render(template: str, macro: str, *values: Any, **named: Any) -> Markup:
    """HTML that a macro of a template makes of values."""
    made: Markup = getattr(_macros(template), macro)(*values, **named)
    return markup(made.strip())


@cache
def _macros(template: str) -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if hasattr(value, "__html__") else markup(escaped(str(value))),
    )
    environment.filters |= {"px": "{:.0f}".format, "kind_name": kind_name, "node_class": node_class}
    environment.globals |= {"NAME_KINDS": NAME_KINDS, "MARKS": MARKS, "NEAREST": NEAREST, "count": count}
    return environment.get_template(f"{template}.html").module
