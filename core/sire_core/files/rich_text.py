"""Prepares RTF for the library that reads it, which skips notes and keeps deleted words."""

from __future__ import annotations

import re
from typing import NamedTuple

from sire_core.files.raised_text import END, RAISED

_SURROGATES = re.compile(rb"\\u(-?\d{1,5}) ?(?:\\'..|[^\\{}])?(\\uc\d ?)?\\u(-?\d{1,5})")
GAP = "\ue000"
"""Set between a blank and a sign (`the .env file`), without which the blank would be left out; not part of the text."""
CELL_PARAGRAPH = "\ue001"  # Set where a paragraph ends within a cell, or a row of a table in it
_RAISED, _END, _CELL_PARAGRAPH = (rb"{}\uc1\u%d?" % ord(mark) for mark in (RAISED, END, CELL_PARAGRAPH))
_REWRITTEN = {
    b"}": b"}{}",  # without it a blank would be set before the letter behind it
    b" ": rb" {\uc1\u57344?}",
    rb"\~": rb"\'a0",  # would be read as `~`
    rb"\_": b"-",  # would be read as `_`
    rb"\*\footnote": rb"\footnote",
    rb"\*\annotation": rb"\footnote",
    rb"\*\shpinst": rb"\shpinst",
    rb"\*": b"",  # within a group it would hide the rest
    rb"{\sp": rb"{\*\sp",  # names and numbers of a shape, whose text is read
    rb"{\shprslt": rb"{\*\shprslt",  # the same shape once more, for older programs
}
_MARK = re.compile(
    rb"\\\\|\{\\(?:title|subject) [^{}]*|\{\\\*\\atn[a-z]+ [^{}]*\}|\\[~_]| (?=[.,;:!?])"
    rb"|\}(?=[\r\n]*(?:[^{}\\\s]|\\['u]))"
    rb"|(?:\\\*\\(?:footnote|annotation|shpinst)|\{\\(?:sp|shprslt))(?![a-z])"
    rb"|(?<=[^{\s\\])\\\*(?=\\[a-z])"
)
_RTF_TOKEN = re.compile(rb"\\(?:(?P<word>[a-z]+)(?P<number>-?\d{1,9})? ?|'..|.)|[{}]|[^\\{}]+|\\", re.DOTALL)
_LETTERS = frozenset(
    b"par line tab emdash endash bullet lquote rquote ldblquote rdblquote emspace enspace qmspace u chftn".split()
)
"""Control words that stand for letters or ends of lines."""
_DELETIONS = (b"deleted", b"mvf")
_POSITIONS = frozenset(b"super nosupersub sub plain".split())
_INNER_TABLES = (b"nesttableprops", b"nonesttables")
"""Groups with the looks of a table in a cell, and with ends of paragraphs for programs that know no such tables."""


class _State(NamedTuple):
    """Properties of letters that end with their group."""

    deleted: bool = False
    is_raised: bool = False
    in_cell: bool = False
    of_inner_table: bool = False


def prepare_rtf(content: bytes) -> bytes:
    """Leave out what a tracked change deleted or moved away; notes, comments and text in shapes become readable.

    Raised letters stand between the marks of `raised_text`.
    """
    if any(word in content for word in (b"\\deleted", b"\\mvf", b"\\super", b"\\intbl")):
        content = _rewritten(content)
    content = _SURROGATES.sub(_joined, content)
    return _MARK.sub(lambda mark: b"" if b"\\atn" in mark[0] else _REWRITTEN.get(mark[0], mark[0]), content)


def _joined(pair: re.Match[bytes]) -> bytes:
    """One number for a character above U+FFFF, which RTF writes as two."""
    high, low = int(pair[1]) % 0x10000, int(pair[3]) % 0x10000
    if not (0xD800 <= high < 0xDC00 <= low < 0xE000):
        return pair[0]
    return rb"%b\u%d" % (pair[2] or b"", 0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)


def _rewritten(content: bytes) -> bytes:
    """RTF without what is deleted, with marks around raised letters and between the paragraphs of a cell."""
    parts: list[bytes] = []
    outer: list[_State] = []  # of the groups around the open one
    state, in_row = _State(), False
    offset = 0
    while match := _RTF_TOKEN.match(content, offset):
        token, word, before = match[0], match["word"], state
        offset = match.end()
        if word == b"bin":  # so many bytes of a picture
            offset += max(0, int(match["number"] or 0))
            token = content[match.start() : offset]
        elif token == b"{":
            outer.append(state)
        elif token == b"}":
            state = outer.pop() if outer else _State()
        elif word:
            state = _state_behind(state, word, is_on=match["number"] != b"0")
            token = _cell_token(token, word, state, in_row=in_row)
            in_row = word == b"cell" or (in_row and word != b"row")
        if before.is_raised and not state.is_raised:
            parts.append(_END)
        is_shown = not state.deleted or token == b"\\*" or not (word is None or word in _LETTERS)
        if (is_shown and not state.of_inner_table) or token in (b"{", b"}", _CELL_PARAGRAPH):
            parts.append(token)
        if state.is_raised and not before.is_raised:
            parts.append(_RAISED)
    return b"".join(parts)


def _state_behind(state: _State, word: bytes, *, is_on: bool) -> _State:
    if word in _DELETIONS:
        return state._replace(deleted=is_on)
    if word in _POSITIONS:
        return state._replace(is_raised=word == b"super" and is_on, deleted=state.deleted and word != b"plain")
    if word in (b"pard", b"intbl"):
        return state._replace(in_cell=word == b"intbl")
    return state._replace(of_inner_table=True) if word in _INNER_TABLES else state


def _cell_token(token: bytes, word: bytes, state: _State, *, in_row: bool) -> bytes:
    """A control word with the meaning that it has in a cell."""
    if word == b"nestrow" or (word == b"par" and state.in_cell and not state.of_inner_table):
        return _CELL_PARAGRAPH
    if word == b"trowd" and in_row:  # the looks of the row once more, which would begin another one
        return b""
    return rb"\'20" if word == b"nestcell" else token
