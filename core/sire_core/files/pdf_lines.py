"""Lines of a PDF, from the letters that pypdfium2 gives: their words, sizes, fonts, and places on the page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from ctypes import c_double
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from threading import Lock
from typing import Any, NamedTuple

from sire_core.documents.titles import first_title
from sire_core.errors import CorpusError
from sire_core.files.pdf_code import TypewriterLine, advance_end, font_name, origin, pdfium, typewriter_line
from sire_core.files.pdf_forms import PageEntry, page_entries
from sire_core.files.raised_text import END, RAISED, write_scripts

_LOCK = Lock()  # PDFium works in one thread at a time
_GAP = 0.4
"""Share of the height of a letter: more space than this is between two words."""
_BLANK = 0.15
"""Share of the size of a letter: less space than this behind one with its sides is no blank."""
_RAISED = 0.05
"""Share of the height of a letter: so far from the line is a letter of another size that is set into a word."""
_SMALLER, _RISE = 0.9, 0.12
"""So many times the size of the letter before it a raised letter has at most, and so much of that it is above it."""
_SIGNS = "+-\u2212\u2013"
_SPACED, _TRACKED, _WIDER = 5, 0.15, 1.6
"""Letters stand apart in a line of so many, by so much of their height, and words by so many times as much."""
_HEBREW = 0x590
_EXPANSION = 5
_FREE = 500_000
"""A file may have as many letters, and `_EXPANSION` more for each of its bytes; manuals have 0.7 at most."""
_ACCENTS = dict(
    zip(
        "\u00b4\u00a8\u02c6\u02dc\u02c7\u02da\u00b8\u02dd",
        "\u0301\u0308\u0302\u0303\u030c\u030a\u0327\u030b",
        strict=True,
    )
)
_ACCENTED = re.compile(f"([{''.join(_ACCENTS)}]) ?([A-Za-z\u0131])")
"""Accents that old fonts have as letters of their own, in front of the letter that they belong to."""
_ASCII_SIGNS = str.maketrans("\u02c6\u02dc", "^~")
"""Accents beside letters are these signs, which old fonts do not have."""
CUT = "\x02"
"""Stands for a hyphen at the end of a line, behind which PDFium goes on with the next one."""
_HYPHENS = "\x02\ufffe\u00ad"
_UNKNOWN = "\ufffd"
_LIGATURES = dict(zip("\x1b\x1c\x1d\x1e\x1f\x0b\x0e\x0f", "ff fi fl ffi ffl ff ffi ffl".split(), strict=True))
"""As old fonts number them, which PDFium gives as control characters."""
_LIGATURE = re.compile(f"(?<=[A-Za-z])[{''.join(_LIGATURES)}]|[{''.join(_LIGATURES)}](?=[a-z])")
_CONTROLS = re.compile("[\x00\x01\x03-\x08\x0b\x0e-\x1b]+")
_UNNAMED_BULLET = re.compile("\\A[\x80-\x9f\ufffd\uf000-\uf0ff]\\s")
"""A sign at the beginning of a line whose font does not name it."""
_NO_INK = 0.05
"""Points: a letter that is not higher is one that its font does not have."""


class Cell(NamedTuple):
    """Words of a line between wide spaces, and where they begin and end, in points."""

    left: float
    right: float
    text: str


@dataclass(slots=True)
class Line:
    """A line of a page: its words, the size of its letters in points, whether all are bold, and its place.

    It stands apart if there is more space above it than between the lines of a paragraph. The cells of a row are words
    with wide spaces between them. A line of contents refers to a page: its last cell is a number. `typed` is the line
    in a typewriter font, `code` is true if it is one of code; `row` are its cells by the columns of its table.
    """

    text: str
    size: float
    bold: bool
    left: float
    right: float
    base: float
    apart: bool = True
    running: bool = False
    upright: bool = True
    cells: Sequence[Cell] = ()
    refers: bool = False
    page: int = 0
    font: bytes = b""
    first_font: bytes = b""
    typed: TypewriterLine | None = None
    code: bool = False
    row: Sequence[str] = ()


class PdfLines(NamedTuple):
    """Lines of each page in their order, the values of forms and notes on each, and the title of the properties."""

    pages: list[list[Line]]
    entries: list[list[PageEntry]]
    title: str


def read_lines(raw: bytes) -> PdfLines:
    """Read all pages of a file's content."""
    import pypdfium2

    with _LOCK:
        document = pypdfium2.PdfDocument(raw)
        try:
            properties = document.get_metadata_dict()
            title = first_title(properties.get("Title"), properties.get("Subject"))
            entries: list[list[PageEntry]] = []
            pages = _pages(document, _FREE + _EXPANSION * len(raw), entries, _form_environment(document))
            return PdfLines(list(pages), entries, title)
        finally:
            document.close()


def _form_environment(document: Any) -> Any:
    """The environment in which the form of a file can be read; None for a file without a form."""
    if pdfium().FPDF_GetFormType(document) == pdfium().FORMTYPE_NONE:
        return None
    document.init_forms()
    return document.formenv


def _pages(document: Any, max_chars: int, entries: list[list[PageEntry]], form: Any) -> Iterator[list[Line]]:
    """Lines of each page; values and notes on it are added to `entries`."""
    for number in range(len(document)):
        page = document[number]
        text = page.get_textpage()
        try:
            max_chars -= text.count_chars()
            if max_chars < 0:
                raise CorpusError(
                    "the file has more letters than a document of its size; print it to a new PDF to read it"
                )
            entries.append(page_entries(page, form))
            yield list(_lines(text, *page.get_bbox()))
        finally:
            text.close()
            page.close()


class _Letters:
    """Letters of a line, with their positions on the page; raised ones stand between marks."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self.letters: list[str] = []
        self.positions: list[int] = []
        self.gaps: list[float] = []  # before each letter, in heights of a letter
        self.clear()

    def clear(self) -> None:
        """Begin a line."""
        self.letters.clear()
        self.positions.clear()
        self.gaps.clear()
        self._cell_starts: list[int] = []
        self.anchor = -1  # the letter that those which follow are raised above

    def add(self, letter: str, position: int) -> None:
        """Add a letter or a mark."""
        self.letters.append(letter)
        self.positions.append(position)

    def add_accent(self, accent: str, position: int) -> None:
        """Set an accent in front of the last letter, as other fonts have it."""
        self.letters.insert(-1, accent)
        self.positions.insert(-1, position)

    def separate_sign(self, *, is_apart: bool) -> None:
        """Make the last letter a sign: the next one is not below it, and so it is no accent."""
        number = next((n for n in range(len(self.letters) - 1, -1, -1) if self.letters[n] != " "), 0)
        if self.letters and ord(self.letters[number]) in _ASCII_SIGNS:
            self.letters[number] = self.letters[number].translate(_ASCII_SIGNS)
            stop = len(self.letters) if is_apart else number + 1
            del self.letters[stop:], self.positions[stop:]

    def add_unknown(self, position: int) -> None:
        """Add a sign for letters that the font does not have; one stands for several."""
        if self.letters and self.letters[-1] != _UNKNOWN:
            self.add(_UNKNOWN, position)

    def separate(self, position: int, *, is_apart: bool) -> None:
        """Add a blank between words or cells that PDFium has none between; not beside narrow typewriter letters."""
        if not self.letters[-1].isspace() and (is_apart or _is_blank(self._page, self.positions[-1], position)):
            self.add(" ", position)

    def place(self, letter: str, position: int, *, is_wide: bool) -> None:
        """Begin a cell behind a wide space, and begin or end raised letters, before the next letter."""
        begins_cell = is_wide and self.letters[-1:] == [" "]
        if self.anchor >= 0 and (begins_cell or not _is_raised(self._page, position, self.anchor)):
            self._end_raised(position)
        elif self.anchor < 0 and self._rises(letter, position):
            self.anchor = self.positions[-1]
            self.add(RAISED, position)
        if begins_cell:
            self._cell_starts.append(len(self.letters))

    def _rises(self, letter: str, position: int) -> bool:
        follows = bool(self.letters) and not self.letters[-1].isspace() and (letter.isalnum() or letter in _SIGNS)
        return follows and _is_raised(self._page, position, self.positions[-1])

    def _end_raised(self, position: int) -> None:
        if self.anchor >= 0:
            self.add(END, position)
            self.anchor = -1

    def take(self) -> list[Line]:
        """The line, unless it has no words; begins another one."""
        line = self._line()
        self.clear()
        return [line] if line else []

    def _line(self) -> Line | None:
        if not self.letters:
            return None
        self._end_raised(self.positions[-1])
        plain = _without_spacing(_spelled(self.letters), self.gaps)
        words = _written(plain)
        if not words:
            return None
        inked = [pair for pair in zip(self.positions, self.letters, strict=True) if not pair[1].isspace()]
        line = _measure_line(self._page, words, [position for position, _ in inked])
        if self._cell_starts and line.upright:
            line.cells = list(self._cells())
            line.refers = len(line.cells) > 1 and line.cells[-1].text.isdigit()
        if line.upright and RAISED not in self.letters:
            line.typed = typewriter_line(self._page, inked, line.size)
        return line

    def _cells(self) -> Iterator[Cell]:
        for start, end in pairwise([0, *self._cell_starts, len(self.letters)]):
            inked = [number for number in range(start, end) if not self.letters[number].isspace()]
            words = _written(_spelled(self.letters[start:end])) if inked else ""
            if words:
                first, last = self.positions[inked[0]], self.positions[inked[-1]]
                yield Cell(origin(self._page, first)[0], advance_end(self._page, last), words)


def _lines(page: Any, page_left: float, page_bottom: float, page_right: float, page_top: float) -> Iterator[Line]:
    """Lines within the sides of a page; what is printed beside it, such as marks of a printer, is seen by nobody."""
    library = pdfium()
    handle, total = page.raw, page.count_chars()
    line = _Letters(handle)
    letters = line.letters
    left, right, bottom, top = (c_double() for _ in range(4))
    start = end = base = height = 0.0  # of the letter before
    was_accent = False
    for position in range(total + 1):
        code = library.FPDFText_GetUnicode(handle, position) if position < total else 10
        letter = chr(code)
        if (code > 32 or letter in _LIGATURES) and library.FPDFText_GetCharBox(
            handle, position, left, right, bottom, top
        ):
            x, x_end, low, high = left.value, right.value, bottom.value, top.value
            is_level = page_bottom < high and low < page_top
            if not (is_level and page_left < x_end and x < page_right):
                continue
            if was_accent and not x <= (start + end) / 2 <= x_end:
                line.separate_sign(is_apart=x - end > _GAP * (high - low + 4))
            is_blank = high - low < _NO_INK and height > 4 + _NO_INK and letter.isalnum()
            is_accent = letter in _ACCENTS
            if is_blank or (is_accent and start <= (x + x_end) / 2 <= end):  # above the letter before
                line.add_unknown(position) if is_blank else line.add_accent(letter, position)
                continue
            before, height = height, high - low + 4
            tall = max(before, height)  # a full stop says little of its font
            overlaps = x < end - 0.3 * height and abs(low - base) < 0.35 * height
            # Letters of a ligature have one place, accents stand above their letters, Hebrew goes to the left.
            overlaps = overlaps and (x, x_end) != (start, end) and code < _HEBREW
            overlaps = overlaps and bool(letters) and letter.isalnum() and letters[-1].isalnum()
            # In a logo the letters are raised or lowered, in a cell that runs over they stand on one line.
            overlaps = overlaps and abs(_rise(handle, position, line.positions[-1])) < _RAISED * tall
            if letters and (overlaps or x - end > _GAP * tall):
                line.separate(position, is_apart=overlaps)
            if x - end > tall or line.anchor >= 0 or low - base > _RAISED * tall:
                line.place(letter, position, is_wide=x - end > tall)
            line.gaps.append((x - end) / tall)
            start, end, base, was_accent = x, x_end, low, is_accent
        if code == 10:
            yield from line.take()
        elif code not in (0, 13):
            letters.append(CUT if letter in _HYPHENS else letter)
            line.positions.append(position)


def _is_blank(page: Any, before: int, position: int) -> bool:
    """True if there is more between two letters than their sides, which are wide in a typewriter font."""
    return origin(page, position)[0] - advance_end(page, before) > _BLANK * _letter_size(page, before)


def _rise(page: Any, position: int, before: int) -> float:
    """Points that a letter stands above another."""
    return origin(page, position)[1] - origin(page, before)[1]


def _is_raised(page: Any, position: int, before: int) -> bool:
    """True if a letter is smaller than one before it, and stands above its line."""
    size = _letter_size(page, before)
    return _letter_size(page, position) < _SMALLER * size and _rise(page, position, before) > _RISE * size


def _spelled(letters: Sequence[str]) -> str:
    """Letters as words, with the letters of ligatures."""
    plain = _LIGATURE.sub(lambda match: _LIGATURES[match[0]], "".join(letters))
    return " ".join(_CONTROLS.sub(" ", _UNNAMED_BULLET.sub("\u2022 ", plain)).split())


def _written(words: str) -> str:
    """Words with accents on their letters, and raised letters as people write them."""
    return write_scripts(_ACCENTED.sub(_composed, words)).translate(_ASCII_SIGNS)


def _without_spacing(words: str, gaps: Sequence[float]) -> str:
    """Words of a line whose letters stand apart (`T I T L E`): the wider gaps are those between words."""
    letters = words.replace(" ", "")
    apart = len(letters) <= (3 if words.isupper() else 1) * len(words.split())
    if not apart or len(letters) < _SPACED or len(letters) != len(gaps):
        return words
    usual = median(gaps[1:])
    if not (_TRACKED < usual < 1) or not letters.isalpha() or sorted(letters) == list(letters):
        return words
    return "".join(f" {x}" if gap > _WIDER * usual else x for x, gap in zip(letters, gaps, strict=True)).strip()


def _composed(match: re.Match[str]) -> str:
    letter = unicodedata.normalize("NFC", match[2].replace("\u0131", "i") + _ACCENTS[match[1]])
    return letter if len(letter) == 1 else match[0]


def _measure_line(page: Any, words: str, positions: Sequence[int]) -> Line:
    """A line with the size, weight and place of its letters, as its first, middle and last ones have them."""
    samples = [positions[0], positions[len(positions) // 2], positions[-1]]
    sizes = [_letter_size(page, position) for position in samples]
    fonts = [font_name(page, position) for position in samples]
    bold = all(_is_bold(page, position, font) for position, font in zip(samples, fonts, strict=True))
    (left, base), right = origin(page, positions[0]), advance_end(page, positions[-1])
    upright = abs(pdfium().FPDFText_GetCharAngle(page, positions[0])) < 0.1
    size, (first_font, font, _) = round(2 * median(sizes)) / 2, fonts
    return Line(words, size, bold, left, right, base, upright=upright, font=font, first_font=first_font)


def _letter_size(page: Any, position: int) -> float:
    """Size of a letter in points."""
    matrix = pdfium().FS_MATRIX()
    size = float(pdfium().FPDFText_GetFontSize(page, position))
    is_scaled = pdfium().FPDFText_GetMatrix(page, position, matrix)
    return size * ((matrix.b**2 + matrix.d**2) ** 0.5 or 1.0) if is_scaled else size


def _is_bold(page: Any, position: int, font: bytes) -> bool:
    is_heavy = bool(pdfium().FPDFText_GetFontWeight(page, position) >= 600)
    return is_heavy or re.search(rb"bold|black|heavy|-bx|bx\d|medi\b", font.lower()) is not None
