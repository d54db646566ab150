"""The encoding that a page of HTML declares, and its text in it, as browsers read it."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from html.parser import HTMLParser

__all__ = ["declared_encoding", "decode_as"]

_WITHIN = 1024
"""Browsers look no further."""
_CONTENT = re.compile(r"""charset\s*=\s*["']?\s*([^\s"';]+)""", re.IGNORECASE)
_XML = re.compile(r"""xml\s[^>]*?\bencoding\s*=\s*["']([^"']+)""")

_LABELS = {
    "dos-874": "cp874",
    "iso-8859-8-e": "iso8859-8",
    "iso-8859-8-i": "iso8859-8",
    "windows-31j": "cp932",
    "windows-874": "cp874",
}
"""Names that Python does not know."""
_READ_AS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
}
"""What browsers read in the place of a declared encoding, which it extends."""
_ENCODINGS = frozenset(
    [
        *_READ_AS.values(),
        *("big5", "big5hkscs", "cp866", "euc_jp", "iso2022_jp", "koi8-r", "koi8-u", "mac-cyrillic", "mac-roman"),
        *(f"cp{number}" for number in range(1250, 1259)),
        *(f"iso8859-{number}" for number in (*range(2, 9), 10, *range(13, 17))),
    ]
)


def declared_encoding(raw: bytes) -> str:
    """What a page calls its encoding in a `meta` tag, else in the XML declaration; empty where it says nothing."""
    head = _Head()
    with suppress(AssertionError):  # of Python's parser, for markup that it does not know: nothing is read behind it
        head.feed(raw[:_WITHIN].decode("latin-1"))
    return head.meta or head.xml


def decode_as(raw: bytes, declared: str) -> str | None:
    """The text of a page, by the declared encoding where it is no UTF-8; None where that is unknown or wrong."""
    label = declared.lower().removeprefix("x-")
    try:
        name = codecs.lookup(_LABELS.get(label, label)).name
        name = _READ_AS.get(name, name)
        if name not in _ENCODINGS:
            return None
        if name != "iso2022_jp":  # that one is ASCII with escapes, which reads as UTF-8, too
            with suppress(UnicodeDecodeError):
                return raw.decode("utf-8")
        return raw.decode(name)
    except (LookupError, ValueError):
        return None


class _Head(HTMLParser):
    """Notes the first declaration of each kind; what stands in comments and scripts is none."""

    def __init__(self) -> None:
        super().__init__()
        self.meta = self.xml = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta" or self.meta:
            return
        given = {name: value or "" for name, value in reversed(attrs)}
        self.meta = given.get("charset", "").strip()
        if not self.meta and given.get("http-equiv", "").strip().lower() == "content-type":
            found = _CONTENT.search(given.get("content", ""))
            self.meta = found[1] if found else ""

    def handle_pi(self, data: str) -> None:
        found = _XML.match(data)
        if found and not self.xml:
            self.xml = found[1]
