"""Front matter of Markdown pages, in YAML or TOML, as fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

Value: TypeAlias = "str | int | float | bool"
_RULES = {"---": ("---", "..."), "+++": ("+++",)}
_MAX_LINES = 200
_QUOTED_KEY = r"\"(?P<double>[^\"]{1,100})\"|'(?P<single>[^']{1,100})'"
_YAML_KEY = re.compile(
    rf"(?:(?P<plain>[A-Za-z_][\w.-]{{0,60}}|[a-z][\w-]*(?: [\w-]+){{1,3}})|{_QUOTED_KEY})\s{{0,3}}:(?=\s|$)"
)
_SPACED_KEY = re.compile(r"[A-Za-z_][\w-]*(?: [\w-]+){1,3}\s{0,3}:(?=\s|$)")
_TOML_KEY = re.compile(rf"[ \t]*(?:(?P<plain>[\w-]{{1,60}})|{_QUOTED_KEY})[ \t]*=")
_QUOTED = re.compile(r"(?P<mark>[\"'])(?P<text>.*)(?P=mark)(?:\s+#.*)?")
_ITEM = re.compile(r"\s{0,8}-\s+(?=\S)")
_LISTED = re.compile(r"\[[^\[\]{}#]*\]")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")


def front_matter(text: str) -> dict[str, Value | list[Value]]:
    """Values of the front matter of a Markdown page (`title: Queues`), by name, and flat lists of them."""
    lines = text.split("\n", _MAX_LINES + 1)
    end = front_matter_end(lines)
    toml = lines[0].strip() == "+++"
    pattern = _TOML_KEY if toml else _YAML_KEY
    fields: dict[str, Value | list[Value]] = {}
    listing = ""
    for line in lines[1 : max(1, end - 1)]:
        if listing and (item := _ITEM.match(line)):
            _add_item(fields, listing, line[item.end() :].strip())
            continue
        listing = ""
        if toml and line.lstrip().startswith("["):
            break  # what follows belongs to a table
        if match := pattern.match(line) or (None if toml else _SPACED_KEY.match(line)):
            value = line[match.end() :].strip()
            quoted = _QUOTED.fullmatch(value)
            if quoted or (value and value[0] not in "[{|>&*!#\"'"):
                fields[_name(match)] = quoted["text"] if quoted else _plain_value(value)
            elif _LISTED.fullmatch(value):
                fields[_name(match)] = [_unquoted(item.strip()) for item in value[1:-1].split(",") if item.strip()]
            elif not value and not toml:
                listing = _name(match)
    return fields


def _add_item(fields: dict[str, Value | list[Value]], name: str, value: str) -> None:
    """Add an item to a list; items that are not plain values are left out."""
    if not (value[0] in "[{|>&*!#-" or _YAML_KEY.match(value)):
        items = fields.setdefault(name, [])
        if isinstance(items, list):
            items.append(_unquoted(value))


def _unquoted(value: str) -> Value:
    quoted = _QUOTED.fullmatch(value)
    return quoted["text"] if quoted else _plain_value(value)


def front_matter_end(lines: Sequence[str]) -> int:
    """Number of lines of front matter with its marks; 0 when the first line is just a rule."""
    closing = _RULES.get(lines[0].strip(), ())
    for row, line in enumerate(lines[1:_MAX_LINES] if closing else (), start=1):
        if line.strip() in closing:
            fits = _is_toml if closing[0] == "+++" else _is_yaml
            return row + 1 if fits(lines[1:row]) else 0
    return 0


def _is_toml(lines: Sequence[str]) -> bool:
    return any(_TOML_KEY.match(line) for line in lines)


def _is_yaml(lines: Sequence[str]) -> bool:
    """True if lines between rules are fields: prose has a blank line behind the first rule or before the second."""
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
