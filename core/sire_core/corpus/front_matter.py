"""Front matter of Markdown pages, in YAML between `---` or in TOML between `+++`: single values, read line by line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

__all__ = ["front_matter", "front_matter_end"]

Value: TypeAlias = "str | int | float | bool"

_RULES = {"---": ("---", "..."), "+++": ("+++",)}
_LONGEST = 200
_QUOTED_KEY = r"\"(?P<double>[^\"]{1,100})\"|'(?P<single>[^']{1,100})'"
_YAML_KEY = re.compile(
    rf"(?:(?P<plain>[A-Za-z_][\w.-]{{0,60}}|[a-z][\w-]*(?: [\w-]+){{1,3}})|{_QUOTED_KEY})\s{{0,3}}:(?=\s|$)"
)
_SPACED_KEY = re.compile(r"[A-Za-z_][\w-]*(?: [\w-]+){1,3}\s{0,3}:(?=\s|$)")
_TOML_KEY = re.compile(rf"[ \t]*(?:(?P<plain>[\w-]{{1,60}})|{_QUOTED_KEY})[ \t]*=")
_QUOTED = re.compile(r"(?P<mark>[\"'])(?P<said>.*)(?P=mark)(?:\s+#.*)?")
_ITEM = re.compile(r"\s{0,8}-\s+(?=\S)")
_LISTED = re.compile(r"\[[^\[\]{}#]*\]")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")


def front_matter(text: str) -> dict[str, Value | list[Value]]:
    """Values of the front matter of a Markdown page (`title: Queues`), by name, and flat lists of them.

    Lists stand in brackets (`tags: [red, blue]`, without commas in their items) or, in YAML, in lines of their own
    (`- red`). Whatever is nested is left out. Whole and decimal numbers become such if they
    would be written as they stand (`3.10` would not), and so do true and false; everything else is text, without its
    quotes.
    """
    lines = text.split("\n", _LONGEST + 1)
    end = front_matter_end(lines)
    toml = lines[0].strip() == "+++"
    pattern = _TOML_KEY if toml else _YAML_KEY
    found: dict[str, Value | list[Value]] = {}
    listing = ""
    for line in lines[1 : max(1, end - 1)]:
        if listing and (item := _ITEM.match(line)):
            _add_item(found, listing, line[item.end() :].strip())
            continue
        listing = ""
        if toml and line.lstrip().startswith("["):
            break  # what follows belongs to a table
        if match := pattern.match(line) or (None if toml else _SPACED_KEY.match(line)):
            value = line[match.end() :].strip()
            quoted = _QUOTED.fullmatch(value)
            if quoted or (value and value[0] not in "[{|>&*!#\"'"):
                found[_name(match)] = quoted["said"] if quoted else _plain_value(value)
            elif _LISTED.fullmatch(value):
                found[_name(match)] = [_said(item.strip()) for item in value[1:-1].split(",") if item.strip()]
            elif not value and not toml:
                listing = _name(match)
    return found


def _add_item(found: dict[str, Value | list[Value]], name: str, value: str) -> None:
    """Add an item to a list in lines of their own; one that is more than a plain value is left out."""
    if not (value[0] in "[{|>&*!#-" or _YAML_KEY.match(value)):
        items = found.setdefault(name, [])
        if isinstance(items, list):
            items.append(_said(value))


def _said(value: str) -> Value:
    quoted = _QUOTED.fullmatch(value)
    return quoted["said"] if quoted else _plain_value(value)


def front_matter_end(lines: Sequence[str]) -> int:
    """Number of lines of front matter with its marks; 0 when the first line is just a rule.

    Args:
        lines: Of a page.
    """
    closing = _RULES.get(lines[0].strip(), ())
    for place, line in enumerate(lines[1:_LONGEST] if closing else (), start=1):
        if line.strip() in closing:
            fits = _is_toml if closing[0] == "+++" else _is_yaml
            return place + 1 if fits(lines[1:place]) else 0
    return 0


def _is_toml(lines: Sequence[str]) -> bool:
    return any(_TOML_KEY.match(line) for line in lines)


def _is_yaml(lines: Sequence[str]) -> bool:
    """Whether lines between rules are fields: prose has a blank line behind the first rule or before the second.

    With a blank line before the closing rule it takes fields alone, without comments: those may be headings.
    """
    if not lines or not lines[0].strip() or not any(_YAML_KEY.match(line) for line in lines):
        return False
    strict = not lines[-1].strip()
    return all(_may_stand(line, strict=strict) for line in lines)


def _may_stand(line: str, *, strict: bool) -> bool:
    if not line.strip() or line.startswith((" ", "\t", "- ")) or line.rstrip() in ("-", "]", "}"):
        return True
    if _YAML_KEY.match(line):
        return True
    return not strict and (line.startswith("#") or _SPACED_KEY.match(line) is not None)


def _name(match: re.Match[str]) -> str:
    return next((name for name in match.groupdict().values() if name), None) or match[0].rstrip(" \t:")


def _plain_value(value: str) -> str | int | float | bool:
    value = value.split(" #", 1)[0].rstrip()
    if value in ("true", "false"):
        return value == "true"
    if _NUMBER.fullmatch(value):
        number = float(value) if "." in value else int(value)
        return number if str(number) == value else value  # "3.10" is a version, "007" a code
    return value
