"""Prepares RTF for the library that reads it, which skips notes and keeps deleted words."""

from __future__ import annotations

import re

from sire_core.files.raised_text import END, RAISED

_SURROGATES = re.compile(rb"\\u(-?\d{1,5}) ?(?:\\'..|[^\\{}])?(\\uc\d ?)?\\u(-?\d{1,5})")
GAP = "\ue000"
"""Set between a blank and a sign (`the .env file`), without which the blank would be left out; not part of the text."""
_RAISED, _END = (rb"{}\uc1\u%d?" % ord(mark) for mark in (RAISED, END))
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


def prepare_rtf(content: bytes) -> bytes:
    """Leave out what a tracked change deleted or moved away; notes, comments and text in shapes become readable.

    Raised letters stand between the marks of `raised_text`.
    """
    if any(word in content for word in (b"\\deleted", b"\\mvf", b"\\super")):
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
    """RTF without what is deleted, and with marks around raised letters."""
    parts: list[bytes] = []
    outer: list[tuple[bool, bool]] = []  # of the groups around the open one
    deleted = is_raised = False
    offset = 0
    while match := _RTF_TOKEN.match(content, offset):
        token, word, was_raised = match[0], match["word"], is_raised
        offset = match.end()
        if word == b"bin":  # so many bytes of a picture
            offset += max(0, int(match["number"] or 0))
            token = content[match.start() : offset]
        elif token == b"{":
            outer.append((deleted, is_raised))
        elif token == b"}":
            deleted, is_raised = outer.pop() if outer else (False, False)
        elif word in _DELETIONS:
            deleted = match["number"] != b"0"
        elif word in _POSITIONS:
            is_raised = word == b"super" and match["number"] != b"0"
            deleted &= word != b"plain"
        if was_raised and not is_raised:
            parts.append(_END)
        if not deleted or token in (b"{", b"}", b"\\*") or (word and word not in _LETTERS):
            parts.append(token)
        if is_raised and not was_raised:
            parts.append(_RAISED)
    return b"".join(parts)
