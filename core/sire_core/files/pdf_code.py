"""Lines of a PDF in a typewriter font, by the positions of their letters: each stands in its column, as in code."""

from __future__ import annotations

from collections.abc import Iterable
from ctypes import c_double, c_int, create_string_buffer
from functools import cache
from typing import Any, NamedTuple

_MIN_WIDTH, _MAX_WIDTH = 0.4, 0.7  # Widths of a letter of a typewriter font, as shares of its size
_SAME_WIDTH = 0.02  # Widths that differ by less than this share of the size are equal
_MAX_OTHER_LETTERS, _MAX_OTHER_SHARE = 1, 0.05
_MIN_TELLING_LETTERS = 2
_TELLING_LETTERS = frozenset("iljtfrI.,:;'()[]|!-/mwMW@%")
"""In other fonts these are narrower or wider than most letters and digits, of which many have one width there, too."""
_MAX_COLUMNS = 1_000
_X, _Y = c_double(), c_double()  # Where PDFium writes a place; it works in one thread at a time


class TypewriterLine(NamedTuple):
    """A line whose letters have one width."""

    text: str  # The line, with as many blanks between words as columns are empty
    width: float  # Of a letter, in points
    is_certain: bool  # False if it has too few letters to tell; then its font does


def typewriter_line(page: Any, letters: Iterable[tuple[int, str]], size: float) -> TypewriterLine | None:
    """A line of letters with their positions, without blanks; None if their widths differ."""
    seen: list[tuple[int, str, float]] = []
    left = base = width = 0.0
    others, telling = 0, set()
    for position, letter in letters:
        x, y = origin(page, position)
        left, base = (left, base) if seen else (x, y)
        if abs(y - base) > size / 2:
            return None  # it goes on below
        if seen and position == seen[-1][0] + 1:
            advance = x - left - seen[-1][2]
            width = width or advance
            if abs(advance - width) <= _SAME_WIDTH * size:
                telling.add(seen[-1][1])
            elif (others := others + 1) > _MAX_OTHER_LETTERS + _MAX_OTHER_SHARE * len(seen):
                return None
        seen.append((position, letter, x - left))
    width = width or advance_end(page, seen[0][0]) - left
    if not _MIN_WIDTH * size < width < _MAX_WIDTH * size or seen[-1][2] > _MAX_COLUMNS * width:
        return None
    text = ""
    last = seen[0][0]
    for position, letter, offset in seen:
        blanks = max(round(offset / width) - len(text), position - last > 1)  # the least is what PDFium has there
        text, last = f"{text}{' ' * blanks}{letter}", position
    is_certain = len(telling & _TELLING_LETTERS) >= _MIN_TELLING_LETTERS and " " in text
    return TypewriterLine(text, width, is_certain)


def origin(page: Any, position: int) -> tuple[float, float]:
    """Where a letter begins on its line."""
    pdfium().FPDFText_GetCharOrigin(page, position, _X, _Y)
    return _X.value, _Y.value


@cache
def pdfium() -> Any:
    """The library, which an extra installs; an import in each call would take longer than the call."""
    import pypdfium2.raw

    return pypdfium2.raw


def advance_end(page: Any, position: int) -> float:
    """Where the letter behind a letter begins, if there is no space between them."""
    box = pdfium().FS_RECTF()
    pdfium().FPDFText_GetLooseCharBox(page, position, box)
    return float(box.right)


def font_name(page: Any, position: int) -> bytes:
    """Name of the font of a letter; empty if it has none, or a long one."""
    name, flags = create_string_buffer(128), c_int()
    length = pdfium().FPDFText_GetFontInfo(page, position, name, 128, flags)
    return name.value if 0 < length <= 128 else b""
