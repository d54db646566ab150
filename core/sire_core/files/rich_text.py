"""Prepares RTF for the library that reads it, which skips notes and keeps deleted words."""

from __future__ import annotations

import re

_SURROGATES = re.compile(rb"\\u(-?\d{1,5}) ?(?:\\'..|[^\\{}])?(\\uc\d ?)?\\u(-?\d{1,5})")
GAP = "\ue000"
"""Set between a blank and a sign (`the .env file`), without which the blank would be left out; not part of the text."""
_REWRITTEN = {
    b" ": rb" {\uc1\u57344?}",
    rb"\~": rb"\'a0",  # would be read as `~`
    rb"\_": b"-",  # would be read as `_`
    rb"\*\footnote": rb"\footnote",
    rb"\*\annotation": rb"\footnote",
    rb"\*\shpinst": rb"\shpinst",
    rb"{\sp": rb"{\*\sp",  # names and numbers of a shape, whose text is read
    rb"{\shprslt": rb"{\*\shprslt",  # the same shape once more, for older programs
}
_MARK = re.compile(
    rb"\\\\|\{\\(?:title|subject) [^{}]*|\{\\\*\\atn[a-z]+ [^{}]*\}|\\[~_]| (?=[.,;:!?])"
    rb"|(?:\\\*\\(?:footnote|annotation|shpinst)|\{\\(?:sp|shprslt))(?![a-z])"
)
_TOKEN = re.compile(rb"\\(?:(?P<word>[a-z]+)(?P<number>-?\d{1,9})? ?|'..|.)|[{}]|[^\\{}]+|\\", re.DOTALL)
_LETTERS = frozenset(
    b"par line tab emdash endash bullet lquote rquote ldblquote rdblquote emspace enspace qmspace u chftn".split()
)
"""Control words that stand for letters or ends of lines."""


def prepare_rtf(content: bytes) -> bytes:
    """Leave out what a tracked change deleted or moved away; notes, comments and text in shapes become readable."""
    if b"\\deleted" in content or b"\\mvf" in content:
        content = _without_deletions(content)
    content = _SURROGATES.sub(_joined, content)
    return _MARK.sub(lambda mark: b"" if b"\\atn" in mark[0] else _REWRITTEN.get(mark[0], mark[0]), content)


def _joined(pair: re.Match[bytes]) -> bytes:
    """One number for a character above U+FFFF, which RTF writes as two."""
    high, low = int(pair[1]) % 0x10000, int(pair[3]) % 0x10000
    if not (0xD800 <= high < 0xDC00 <= low < 0xE000):
        return pair[0]
    return rb"%b\u%d" % (pair[2] or b"", 0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)


def _without_deletions(content: bytes) -> bytes:
    kept: list[bytes] = []
    outer: list[bool] = []  # of the groups around the open one
    deleted = False
    place = 0
    while match := _TOKEN.match(content, place):
        token, word = match[0], match["word"]
        place = match.end()
        if word == b"bin":  # so many bytes of a picture
            place += max(0, int(match["number"] or 0))
            token = content[match.start() : place]
        elif token == b"{":
            outer.append(deleted)
        elif token == b"}":
            deleted = outer.pop() if outer else False
        elif word in (b"deleted", b"mvf"):
            deleted = match["number"] != b"0"
        elif word == b"plain":
            deleted = False
        if not deleted or token in (b"{", b"}", b"\\*") or (word and word not in _LETTERS):
            kept.append(token)
    return b"".join(kept)
