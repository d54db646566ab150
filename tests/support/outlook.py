"""Writes mails as Outlook saves them (`.msg`): streams and folders of them in a compound file (OLE2)."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Union

_FREE, _END, _TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_SECTOR, _SMALL_SECTOR, _SMALL = 512, 64, 4096
_UNICODE = 0x1F

Tree = Mapping[str, Union[bytes, "Tree"]]


class _CompoundFile:
    """Collects entries of the directory, then sectors; streams under 4096 bytes lie together in one of their own."""

    def __init__(self, tree: Tree) -> None:
        self._names, self._kinds, self._contents = ["Root Entry"], [5], [b""]
        self._links = [[_FREE, _FREE, _FREE]]  # names before and after it in its folder, first of its own
        self._links[0][2] = self._add(tree)
        self._sectors: list[bytes] = []
        self._next: list[int] = []
        self._small = b""
        self._next_small: list[int] = []

    def _add(self, folder: Tree) -> int:
        names = sorted(folder, key=lambda name: (len(name), name.upper()))
        first = len(self._names)
        for name in names:
            content = folder[name]
            self._names.append(name)
            self._kinds.append(2 if isinstance(content, bytes) else 1)
            self._contents.append(content if isinstance(content, bytes) else b"")
            self._links.append([_FREE, _FREE, _FREE])
        for number, name in enumerate(names, start=first):
            content = folder[name]
            if not isinstance(content, bytes):
                self._links[number][2] = self._add(content)
        return self._balanced(first, first + len(names))

    def _balanced(self, low: int, high: int) -> int:
        if low == high:
            return _FREE
        middle = (low + high) // 2
        self._links[middle][:2] = self._balanced(low, middle), self._balanced(middle + 1, high)
        return middle

    def _store(self, content: bytes, fill: bytes = b"\0") -> int:
        blocks = [content[n : n + _SECTOR].ljust(_SECTOR, fill) for n in range(0, len(content), _SECTOR)]
        self._sectors += blocks
        return _chain(self._next, len(blocks))

    def _store_small(self, content: bytes) -> int:
        many = -(-len(content) // _SMALL_SECTOR)
        self._small += content.ljust(many * _SMALL_SECTOR, b"\0")
        return _chain(self._next_small, many)

    def content(self) -> bytes:
        starts = [
            self._store_small(content) if len(content) < _SMALL else self._store(content) for content in self._contents
        ]
        starts[0], self._contents[0] = self._store(self._small), self._small
        entries = [
            _entry(name, kind, links, start, len(content))
            for name, kind, links, start, content in zip(
                self._names, self._kinds, self._links, starts, self._contents, strict=True
            )
        ]
        entries += [_entry("", 0, [_FREE] * 3, 0, 0)] * (-len(entries) % 4)
        directory = self._store(b"".join(entries))
        small_table = self._store(struct.pack(f"<{len(self._next_small)}I", *self._next_small), b"\xff")
        many = -(-len(self._next) // 127)  # sectors of the table, which lists itself
        places = [*range(len(self._next), len(self._next) + many)]
        table = struct.pack(f"<{len(self._next) + many}I", *self._next, *[_TABLE] * many)
        numbers = (many, directory, 0, _SMALL, small_table, -(-len(self._next_small) // 128), _END, 0)
        head = bytes.fromhex("d0cf11e0a1b11ae1") + struct.pack("<16x5H10x8I", 0x3E, 3, 0xFFFE, 9, 6, *numbers)
        head += struct.pack("<109I", *places, *[_FREE] * (109 - many))
        return head + b"".join(self._sectors) + table.ljust(many * _SECTOR, b"\xff")


def _chain(table: list[int], many: int) -> int:
    start = len(table)
    table += [*range(start + 1, start + many), _END] if many else []
    return start if many else _END


def _entry(name: str, kind: int, links: Sequence[int], start: int, size: int) -> bytes:
    raw = name.encode("utf-16-le")
    return struct.pack("<64sHBB3I36xIQ", raw, len(raw) + 2 if raw else 0, kind, 1, *links, start, size)


def _properties(head: bytes, texts: Mapping[int, str], times: Mapping[int, int] | None = None) -> dict[str, bytes]:
    """Streams of properties, each named by its number and type."""
    raw = {number: text.encode("utf-16-le") for number, text in texts.items()}
    listed = [struct.pack("<HHIII", _UNICODE, number, 6, len(text) + 2, 0) for number, text in raw.items()]
    listed += [struct.pack("<HHIQ", 0x40, number, 6, time) for number, time in (times or {}).items()]
    streams = {f"__substg1.0_{number:04X}{_UNICODE:04X}": text for number, text in raw.items()}
    return {**streams, "__properties_version1.0": head + b"".join(listed)}


def compound_file(tree: Tree) -> bytes:
    return _CompoundFile(tree).content()


def outlook_mail(
    subject: str,
    body: str,
    *,
    sender: tuple[str, str],
    to: Sequence[tuple[str, str]] = (),
    attachments: Mapping[str, bytes] | None = None,
    html: bytes = b"",
    headers: str = "",
) -> bytes:
    """A mail of 2 January 2026, 13:30 UTC; people are names and addresses, headers those with which it came."""
    held = attachments or {}
    texts = {0x001A: "IPM.Note", 0x0037: subject, 0x0C1A: sender[0], 0x0C1E: "SMTP", 0x0C1F: sender[1], 0x1000: body}
    texts[0x007D] = headers
    texts = {number: text for number, text in texts.items() if text}
    counts = struct.pack("<8x4I8x", len(to), len(held), len(to), len(held))
    tree: dict[str, bytes | Tree] = {**_properties(counts, texts, {0x0E06: 134118342000000000})}
    tree.update({"__substg1.0_10130102": html} if html else {})
    for number, (name, address) in enumerate(to):
        kind = struct.pack("<8xHHIII", 3, 0x0C15, 6, 1, 0)
        tree[f"__recip_version1.0_#{number:08X}"] = _properties(kind, {0x3001: name, 0x39FE: address})
    for number, (name, content) in enumerate(held.items()):
        stored = struct.pack("<8xHHIII", 3, 0x3705, 6, 1, 0)
        streams = _properties(stored, {0x3707: name})
        tree[f"__attach_version1.0_#{number:08X}"] = {**streams, "__substg1.0_37010102": content}
    return _CompoundFile(tree).content()
