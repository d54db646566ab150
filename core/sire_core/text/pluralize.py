"""Numbers with their nouns, and parts of texts, for messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_PASSAGE = "chunk"  # The kind of unit that people read as a passage


def count(number: int, noun: str, several: str = "") -> str:
    """A number with its noun, for example `1 document` or `6,119 documents`."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


def kind_name(kind: str) -> str:
    """A kind of unit in words."""
    return "passage" if kind == _PASSAGE else kind.replace("_", " ")


def count_units(units: Mapping[str, int], passages: int = 0) -> str:
    """Number of passages there are, or units by kind: `1 passage`, `32 units (31 aggregates, 1 passage)`."""
    words = {kind: kind_name(kind) for kind in sorted(units)}
    parts = [count(units[kind], word, f"{word[:-1]}ies" if word.endswith("y") else "") for kind, word in words.items()]
    if set(units) <= {_PASSAGE}:
        distinct = units.get(_PASSAGE, 0)
        return (
            f"{count(passages, 'passage')}, {distinct:,} distinct"
            if passages > distinct
            else count(distinct, "passage")
        )
    return f"{count(sum(units.values()), 'unit')} ({', '.join(parts)})"


def some(items: Sequence[str], n: int = 5) -> str:
    """The first items of a list and how many more there are."""
    more = f", and {len(items) - n:,} more" if len(items) > n else ""
    return ", ".join(items[:n]) + more


def shorten(text: str, length: int) -> str:
    """A text on one line, cut after a word where there is one, and marked when it is longer than `length`."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[:length].rsplit(' ', 1)[0].rstrip(' ,;:')} ..."


def excerpt(text: str, word: str, length: int) -> str:
    """A text on one line; of a longer one than `length` the part around a word of it, marked where it is cut."""
    line = " ".join(text.split())
    position = max(0, line.lower().find(" ".join(word.lower().split())))
    start = max(0, min(position - length // 2, len(line) - length))
    if len(line) <= length or not start:
        return shorten(line, length)
    return f"... {shorten(line[start:].split(' ', 1)[-1], length)}"
