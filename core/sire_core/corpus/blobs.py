"""Runs of letters that are no words: pictures as `data:`, certificates and keys, other base64 in lines."""

from __future__ import annotations

import re

__all__ = ["without_blobs"]

_BASE64 = "[A-Za-z0-9+/]"
_PAYLOAD = re.compile(
    r"data:[a-z]{1,20}/[\w.+-]{1,80}(?:;[\w=.-]{1,80}){0,5},"
    rf"(?:(?<=;base64,)(?:{_BASE64}|%[0-9A-Fa-f]{{2}})*=*(?:\n[ \t>]*{_BASE64}{{40,}}=*)*"
    rf"(?:\n[ \t>]*{_BASE64}+=*(?=[)\"'>]))?"
    r"|[^\s\"')>]*)"
)
_IMAGE = re.compile(r"!\[([^\[\]]{0,500})\]\(\s*<?data:>?(?:\s+(?:\"[^\"\n]{0,500}\"|'[^'\n]{0,500}'))?\s*\)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\[\]\n]{1,200}\]:[ \t]*<?data:>?[^\n]*\n?", re.MULTILINE)
_ELEMENT = re.compile(r"<img\b(?:[^<>\"']|\"[^\"<>]*\"|'[^'<>]*'){0,50}>", re.IGNORECASE)
_ALTERNATIVE = re.compile(r"\balt\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{256,}={0,2}")
_LINES = re.compile(
    rf"^(?:[ \t>]*{_BASE64}{{60,}}={{0,2}}[ \t]*\n){{2,}}"
    rf"(?:[ \t>]*(?={_BASE64}*[0-9+/=]){_BASE64}+={{0,2}}[ \t]*$\n?)?",
    re.MULTILINE,
)
_KEY = re.compile(rf"(?<=-----\n)(?:[ \t>]*{_BASE64}{{1,100}}={{0,2}}[ \t]*\n)+(?=[ \t>]*-----END )")
_LONG = 60
_LONG_RUN = re.compile(rf"{_BASE64}{{{_LONG}}}|[\w+/-]{{256}}", re.ASCII)
_KINDS = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"))


def without_blobs(text: str) -> str:
    """The text without runs that are longer than any word and hold none.

    Of a picture its alternative text stays, of a certificate or a key the lines around it. Left out are the content
    of `data:` addresses, runs of 256 and more letters and digits, and lines that hold nothing but base64, two or more
    of them. Letters of scripts without spaces are words.
    """
    if "data:" in text:
        shorter = _PAYLOAD.sub("data:", text)
        if shorter != text:
            text = _REFERENCE.sub("", _IMAGE.sub(r"\1", shorter))
            text = _ELEMENT.sub(_alternative, text)
    if not any(map(_LONG_RUN.search, [word for word in text.split() if len(word) >= _LONG])):
        return _KEY.sub("", text) if "-----BEGIN " in text else text
    return _RUN.sub("", _KEY.sub("", _LINES.sub(_kept, text)))


def _alternative(match: re.Match[str]) -> str:
    if "data:" not in match[0]:
        return match[0]
    found = _ALTERNATIVE.search(match[0])
    return (found[1] or found[2] or "") if found else ""


def _kept(match: re.Match[str]) -> str:
    """Lines of digits and small letters alone may be a list of check sums; base64 has letters of all kinds."""
    return "" if all(kind.search(match[0]) for kind in _KINDS) else match[0]
