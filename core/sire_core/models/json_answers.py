"""Reading JSON out of what models really answer. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from sire_core.clean_text import clean_value

__all__ = ["tolerant_json"]

_FENCE = re.compile(r"```[ \t]*(?:[\w+-]+[ \t]*)?\r?\n(.*?)```", re.DOTALL)
_THINKING = re.compile(r"<(?P<end>/?)think(?:ing)?>", re.IGNORECASE)
_PYTHON = {"True": "true", "False": "false", "None": "null"}
_PIECES = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*(?:"|\\?\Z))'
    r"|(?P<comment>//[^\n]*)"
    r"|(?P<comma>,)(?=(?:\s|//[^\n]*(?:\n|\Z))*[}\]])"
    r"|(?P<word>\b(?:True|False|None)\b)",
    re.DOTALL,
)
_ENDS_STRING = re.compile(r"\s{0,20}(?:[,:}\]]|\Z)")
_BEGINS_JSON = re.compile(r"""[{\[]\s*["{\[]""")
_PAIRS = {"}": "{", "]": "["}
# Openings that are tried when earlier ones never close; keeps hostile answers linear.
_MAX_STARTS = 16


def tolerant_json(text: str) -> Any:
    """Read the JSON value of an answer.

    Strict JSON first. Then, in turn, what models add to it: a thinking block, code fences, prose around the outermost
    object or array, comments, trailing commas, Python's constants and single quotes, raw line breaks in strings. A
    value that was cut off is an error: closing it would lose what is missing without a word. Halves of surrogate
    pairs, which small models write as escapes and no database takes, become U+FFFD.

    Args:
        text: The answer.

    Raises:
        ValueError: There is no complete JSON object or array; the message says where reading stopped.
    """
    text = text.strip().lstrip("\ufeff")
    if not text:
        raise ValueError("the answer is empty")
    first: ValueError | None = None
    for candidate in _candidates(text):
        try:
            return clean_value(_container(_loads(candidate)))
        except (ValueError, RecursionError) as error:  # noqa: PERF203 - a handful of candidates
            first = first or ValueError(str(error) or type(error).__name__)
    if "'" in text and (quoted := _double_quoted(text)) != text:
        with suppress(ValueError):
            return tolerant_json(quoted)
    raise first or ValueError("there is no complete JSON object in the answer")


def _candidates(text: str) -> Iterator[str]:
    """Where the value may stand, most likely first; most answers need the first only."""
    yield text
    # An end of thinking without a beginning: that stood in the prompt, and what came before is a draft. Or the tag is a
    # stray one, behind the answer or in it.
    for bare in dict.fromkeys((_without_thinking(text, opened=True), _without_thinking(text, opened=False))):
        fenced = [match.group(1) for match in _FENCE.finditer(bare)]
        yield from sorted(fenced, key=len, reverse=True)[:4]
        yield from _outermost(bare)


def _without_thinking(text: str, *, opened: bool) -> str:
    """The text without its thinking blocks; one that never ends stays, since the answer may be in it.

    Args:
        text: An answer.
        opened: Whether an end without a beginning ends a block that began before the answer; else it stays.
    """
    kept: list[str] = []
    start, begin = 0, -1
    for tag in _THINKING.finditer(text):
        if not tag["end"]:
            begin = tag.start() if begin < 0 else begin
        elif begin >= 0:
            kept.append(text[start:begin])
            start, begin = tag.end(), -1
        elif opened:
            kept, start = [], tag.end()
    return "".join((*kept, text[start:])).strip()


def _double_quoted(text: str) -> str:
    """The text with JSON's quotes around strings that stand in single ones, as Python writes them."""
    parts: list[str] = []
    depth = at = 0
    while at < len(text):
        letter = text[at]
        end = at + 1
        if letter == '"' and depth:
            while end < len(text) and text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            end += 1
        elif letter == "'" and depth:
            while end < len(text) and not (text[end] == "'" and _ENDS_STRING.match(text, end + 1)):
                end += 2 if text[end] == "\\" else 1
            said = text[at + 1 : end].replace("\\'", "'").replace('\\"', '"').replace('"', '\\"')
            parts.append(f'"{said}"')
            at = end + 1
            continue
        depth += (letter in "{[") - (letter in "}]" and depth > 0)
        parts.append(text[at:end])
        at = end
    return "".join(parts)


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(_PIECES.sub(_repair, text), strict=False)


def _repair(match: re.Match[str]) -> str:
    if match.group("string") is not None:
        return match.group(0)
    if match.group("word") is not None:
        return _PYTHON[match.group("word")]
    return ""


def _container(value: Any) -> Any:
    if isinstance(value, str):  # JSON written into a JSON string
        value = json.loads(value)
    if not isinstance(value, dict | list):
        raise ValueError(f"a JSON object is needed, not {type(value).__name__}")  # noqa: TRY004 - one kind of error for callers
    return value


def _outermost(text: str) -> list[str]:
    """Balanced top-level objects and arrays, longest first."""
    spans: list[tuple[int, int]] = []
    position = 0
    for _ in range(_MAX_STARTS):
        start = min((at for at in (text.find("{", position), text.find("[", position)) if at >= 0), default=-1)
        if start < 0:
            break
        end = _closing(text, start)
        if end < 0:
            if _BEGINS_JSON.match(text, start):  # cut off: what is inside is a fragment, not the answer
                break
            position = start + 1
        else:
            spans.append((start, end))
            position = end
    return [text[start:end] for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span[0]))]


def _closing(text: str, start: int) -> int:
    """Index after the bracket that closes the one at `start`, or -1."""
    stack: list[str] = []
    in_string = False
    at = start
    while at < len(text):
        letter = text[at]
        if in_string:
            if letter == "\\":
                at += 1
            elif letter == '"':
                in_string = False
        elif letter == '"':
            in_string = True
        elif letter in "{[":
            stack.append(letter)
        elif letter in "}]":
            if stack.pop() != _PAIRS[letter]:
                return -1
            if not stack:
                return at + 1
        at += 1
    return -1
