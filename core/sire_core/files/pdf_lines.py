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
from sire_core.files.pdf_grids import Grid, PageGrids, page_grids
from sire_core.files.raised_text import END, RAISED, write_scripts

_LOCK = Lock()  # PDFium works in one thread at a time
_GAP = 0.4  # Share of the height of a letter: more space than this is between two words
_APART = 0.2
"""Share of the height of a letter: less space than this is within a word, though a line of a table crosses it."""
_MAX_FALL = 2.5  # So many heights of a letter lower is the line that goes on behind a hyphen
_BLANK = 0.15  # Share of the size of a letter: less space than this behind one with its sides is no blank
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
CUT = "\x02"  # Stands for a hyphen at the end of a line, behind which PDFium goes on with the next one
_HYPHENS = "\x02\ufffe\u00ad"
_UNKNOWN = "\ufffd"
_LIGATURES = dict(zip("\x1b\x1c\x1d\x1e\x1f\x0b\x0e\x0f", "ff fi fl ffi ffl ff ffi ffl".split(), strict=True))
"""As old fonts number them, which PDFium gives as control characters."""
_LIGATURE = re.compile(f"(?<=[A-Za-z])[{''.join(_LIGATURES)}]|[{''.join(_LIGATURES)}](?=[a-z])")
_CONTROLS = re.compile("[\x00\x01\x03-\x08\x0b\x0e-\x1b]+")
_UNNAMED_BULLET = re.compile("\\A[\x80-\x9f\ufffd\uf000-\uf0ff]\\s")
"""A sign at the beginning of a line whose font does not name it."""
_NO_INK = 0.05  # Points: a letter that is not higher is one that its font does not have


class Cell(NamedTuple):
    """Words of a line between wide spaces, and where they begin and end, in points."""

    left: float
    right: float
    text: str


@dataclass(slots=True)
class Line:
    """A line of a page: its words, the size of its letters in points, whether all are bold, and its place.

    Behind a hyphen it goes on below: `base` is where its first letter stands, `low` its last one. It stands apart if
    there is more space above it than between the lines of a paragraph. The cells of a row are words with wide spaces
    between them. A line of contents refers to a page: its last cell is a number. `typed` is the line in a typewriter
    font, `code` is true if it is one of code; `row` are its cells by the columns of its table, which is `ruled` if its
    lines are drawn: then `cells` are those that begin in the row.
    """

    text: str
    size: float
    bold: bool
    left: float
    right: float
    base: float
    low: float
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
    ruled: Grid | None = None


class PdfLines(NamedTuple):
    """Lines of each page in their order, what else is on each, and the title of the properties."""

    pages: list[list[Line]]
    entries: list[list[PageEntry]]
    grids: list[PageGrids]
    title: str


def read_lines(raw: bytes) -> PdfLines:
    """Read all pages of a file's content."""
    import pypdfium2

    with _LOCK:
        document = pypdfium2.PdfDocument(raw)
        try:
            properties = document.get_metadata_dict()
            title = first_title(properties.get("Title"), properties.get("Subject"))
            read = PdfLines([], [], [], title)
            _read_pages(document, _FREE + _EXPANSION * len(raw), read, _form_environment(document))
            return read
        finally:
            document.close()


def _form_environment(document: Any) -> Any:
    """The environment in which the form of a file can be read; None for a file without a form."""
    if pdfium().FPDF_GetFormType(document) == pdfium().FORMTYPE_NONE:
        return None
    document.init_forms()
    return document.formenv


def _read_pages(document: Any, max_chars: int, read: PdfLines, form: Any) -> None:
    for number in range(len(document)):
        page = document[number]
        text = page.get_textpage()
        try:
            max_chars -= text.count_chars()
            if max_chars < 0:
                raise CorpusError(
                    "the file has more letters than a document of its size; print it to a new PDF to read it"
                )
            grids = page_grids(page)
            read.grids.append(grids)
            read.entries.append(page_entries(page, form))
            read.pages.append(list(_lines(text, grids, *page.get_bbox())))
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
        self.letters.clear()
        self.positions.clear()
        self.gaps.clear()
        self._cell_starts: list[int] = []
        self.anchor = -1  # the letter that those which follow are raised above

    def add(self, letter: str, position: int) -> None:
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

    def place(self, letter: str, position: int, *, is_apart: bool, has_gap: bool, is_wide: bool) -> None:
        """Before the next letter, add a blank that PDFium has not, begin a cell, and begin or end raised letters.

        There is no blank in the gap between narrow letters of a typewriter font.
        """
        is_word = bool(self.letters) and not self.letters[-1].isspace()
        if is_word and (is_apart or (has_gap and _is_blank(self._page, self.positions[-1], position))):
            self.add(" ", position)
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
        line = _measure_line(self._page, words, inked)
        if self._cell_starts and line.upright:
            line.cells = list(self._cells())
            line.refers = len(line.cells) > 1 and line.cells[-1].text.isdigit()
        if line.upright and RAISED not in self.letters:
            line.typed = typewriter_line(self._page, inked, line.size)
        return line

    def _cells(self) -> Iterator[Cell]:
        for start, end in pairwise([0, *self._cell_starts, len(self.letters)]):
            letters, positions = self.letters[start:end], self.positions[start:end]
            inked = [pair for pair in zip(positions, letters, strict=True) if not pair[1].isspace()]
            words = _written(_spelled(letters)) if inked else ""
            if words:
                yield Cell(origin(self._page, inked[0][0])[0], _right(self._page, words, inked), words)


def _lines(
    page: Any, grids: PageGrids, page_left: float, page_bottom: float, page_right: float, page_top: float
) -> Iterator[Line]:
    """Lines within the sides of a page; what is printed beside it, such as marks of a printer, is seen by nobody."""
    unicode_at, box_at = pdfium().FPDFText_GetUnicode, pdfium().FPDFText_GetCharBox
    handle, total = page.raw, page.count_chars()
    line = _Letters(handle)
    letters = line.letters
    left, right, bottom, top = (c_double() for _ in range(4))
    start = end = base = height = 0.0  # of the letter before
    was_accent, has_grids = False, bool(grids.upright)
    for position in range(total + 1):
        code = unicode_at(handle, position) if position < total else 10
        letter = chr(code)
        if (code > 32 or letter in _LIGATURES) and box_at(handle, position, left, right, bottom, top):
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
            if base - low > _MAX_FALL * tall and letters[-1:] == [CUT]:  # below is the number of the page
                letters[-1] = "-"
                yield from line.take()
            overlaps = x < end - 0.3 * height and abs(low - base) < 0.35 * height
            # Letters of a ligature have one place, accents stand above their letters, Hebrew goes to the left.
            overlaps = overlaps and (x, x_end) != (start, end) and code < _HEBREW
            overlaps = overlaps and bool(letters) and letter.isalnum() and letters[-1].isalnum()
            # In a logo the letters are raised or lowered, in a cell that runs over they stand on one line.
            overlaps = overlaps and abs(_rise(handle, position, line.positions[-1])) < _RAISED * tall
            is_parted = has_grids and bool(letters) and (letters[-1].isspace() or x - end > _APART * tall)
            is_parted = is_parted and grids.parts(end, x, (low + high) / 2)
            is_apart, has_gap = overlaps or is_parted, x - end > _GAP * tall
            if is_apart or has_gap or line.anchor >= 0 or low - base > _RAISED * tall:
                is_wide = is_parted or x - end > tall
                line.place(letter, position, is_apart=is_apart, has_gap=has_gap, is_wide=is_wide)
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


def _right(page: Any, words: str, letters: Sequence[tuple[int, str]]) -> float:
    """Right side of words, which go on below behind a hyphen, and their letters with their positions."""
    ends = [position for position, letter in letters if letter == CUT] if CUT in words else []
    return max(advance_end(page, position) for position in (*ends, letters[-1][0]))


def _measure_line(page: Any, words: str, letters: Sequence[tuple[int, str]]) -> Line:
    """A line with the size, weight and place of its letters, as its first, middle and last ones have them."""
    samples = [letters[0][0], letters[len(letters) // 2][0], letters[-1][0]]
    sizes = [_letter_size(page, position) for position in samples]
    fonts = [font_name(page, position) for position in samples]
    bold = all(_is_bold(page, position, font) for position, font in zip(samples, fonts, strict=True))
    (left, base), right = origin(page, samples[0]), _right(page, words, letters)
    low = min(base, origin(page, samples[-1])[1])
    upright = abs(pdfium().FPDFText_GetCharAngle(page, samples[0])) < 0.1
    size, (first_font, font, _) = round(2 * median(sizes)) / 2, fonts
    return Line(words, size, bold, left, right, base, low, upright=upright, font=font, first_font=first_font)


def _letter_size(page: Any, position: int) -> float:
    """Size of a letter in points."""
    matrix = pdfium().FS_MATRIX()
    size = float(pdfium().FPDFText_GetFontSize(page, position))
    is_scaled = pdfium().FPDFText_GetMatrix(page, position, matrix)
    return size * ((matrix.b**2 + matrix.d**2) ** 0.5 or 1.0) if is_scaled else size


def _is_bold(page: Any, position: int, font: bytes) -> bool:
    is_heavy = bool(pdfium().FPDFText_GetFontWeight(page, position) >= 600)
    return is_heavy or re.search(rb"bold|black|heavy|-bx|bx\d|medi\b", font.lower()) is not None
