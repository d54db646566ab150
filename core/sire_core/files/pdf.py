"""PDF files as Markdown, by pypdfium2: lines in their order, paragraphs, and headings by the size of their letters."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, takewhile
from pathlib import Path
from statistics import median
from threading import Lock
from typing import Any

from sire_core.documents.furniture import is_contents
from sire_core.documents.markdown_cleaning import without_hyphenation
from sire_core.documents.markdown_writing import code_block, literal_text
from sire_core.documents.titles import first_title
from sire_core.errors import CorpusError
from sire_core.files.pdf_code import TypewriterLine, advance_end, font_name, origin, typewriter_line
from sire_core.files.pdf_forms import PageEntry, page_entries
from sire_core.files.raised_text import END, RAISED, write_scripts

_LOCK = Lock()  # PDFium works in one thread at a time
_HEADING_WORDS = 12
_TITLE_WORDS = 30
_LABEL_WORDS = 3
"""Longest heading that ends with a colon; longer lines lead to what follows."""
_QUOTES = "\"'\u201c\u2018\u00ab\u201e\u00bf\u00a1"
_LARGER = 1.12
"""So many times as large as the text are the letters of a heading that is not bold."""
_EDGE = 3
"""So many lines at the top or bottom of a page may be running ones, if more space than usual is between."""
_GAP = 0.4
"""Share of the height of a letter: more space than this is between two words."""
_BLANK = 0.15
"""Share of the size of a letter: less space than this behind one with its sides is no blank."""
_MAX_CODE_SHARE = 0.6
"""A file with more of its letters in a typewriter font is written on a typewriter: they are no code."""
_COMMENT = re.compile(r"(?:^|\s)(?:#+|//|/\*|%+) \S")
_MIN_CODE_LINES = 3
"""Lines of a file that are certainly in a typewriter font; fonts of formulas have fewer of one width."""
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
_BULLET = re.compile(r"[\u2022\u2023\u25aa\u25cf\u25e6\u2043\uf0b7\u25a0]\s*|[-\u2013]\s+(?=[^\W\d])")
_ITEM = re.compile(r"(?:\d{1,2}|[a-z])[.)]\s")
_NUMBERED = re.compile(r"(?:\d{1,2}(?:\.\d{1,2}){0,3}\.?|[A-Z]\.?)\s+(?=\S)")
_MONTH = "(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*"
_DATE = rf"(?:\d{{1,2}}\.?\s+)?{_MONTH}\.?\s+(?:\d{{1,2}},?\s+)?\d{{4}}$"
_NO_HEADING = re.compile(
    rf"arxiv:|(?:figure|fig\.|table|algorithm)\s*\d|https?:|\w{{0,10}}>\s|{_DATE}|\W*$|[\d\W]*$", re.IGNORECASE
)
"""Captions, addresses, prompts, dates, and what has no letters."""
_PAGE_NUMBER = re.compile(
    r"\W*(?:(?:page|seite|p\.)\s*)?(?:\d{1,4}|[ivxlc]{1,6})(?:\s*(?:/|of|von)\s*\d{1,4})?[^\w.)]*", re.IGNORECASE
)
"""Not `3.`, which begins an item of a list."""
_ENDS_WITH_PAGE = re.compile(r"[\s.](\d{1,4})$")
_LEADER = re.compile(r"(?:\.\s?){5}")
_FEWEST_ENTRIES = 4
"""Lines of a page of contents that end with the number of a page."""
_NOTE_MARK = re.compile(r"(?<=\w)\s?[*\u2217\u2020\u2021\u00a7]+$")
_CHAPTER = re.compile(
    r"(?:chapter|part|appendix|kapitel|teil|anhang|chapitre|partie|annexe)?\s*(?:\d{1,3}|[ivx]{1,5}|[a-z]|one|two|three|four"
    r"|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen)\.?",
    re.IGNORECASE,
)
"""A line above the title of a chapter, often in larger letters."""
_ACCENTS = dict(
    zip(
        "\u00b4\u00a8\u02c6\u02dc\u02c7\u02da\u00b8\u02dd",
        "\u0301\u0308\u0302\u0303\u030c\u030a\u0327\u030b",
        strict=True,
    )
)
_ACCENTED = re.compile(f"([{''.join(_ACCENTS)}]) ?([A-Za-z\u0131])")
"""Accents that old fonts have as letters of their own, in front of the letter that they belong to."""
_CUT = "\x02"
"""Stands for a hyphen at the end of a line, behind which PDFium goes on with the next one."""
_HYPHENS = "\x02\ufffe\u00ad"
_NAME_MARKS = "_-/.&=?#%~+"
_BEGINS_NAME = r"(?:(?:https?|ftp|file)://|\bwww\.)"
_IN_ADDRESS = r"[^\s.,;:)\]]*(?:[/=_~%&#?]|\.\w)"
_BROKEN_NAME = re.compile(
    r"\w_\n\w|\w\n_\w|\A\W?--?\w[\w-]*-\n[a-z]"
    rf"|{_BEGINS_NAME}(?:\n\w|\S*(?:-\n\w|[\w/]\n[/._=&?#%~-]\w|[/_=&?#%~+]\n{_IN_ADDRESS}"
    rf"|\w\.\n(?:{_IN_ADDRESS}|(?:html?|pdf|txt|zip|gz|com|edu|net|org)\b)))"
)
"""The last word of a line and the first of the next, where no word ends: in an identifier, an option, an address."""
_NAME_WITH_CUT = re.compile(rf"(?:{_BEGINS_NAME}|(?<!\S)\W?--?\w)\S*{_CUT}\S*")
_UNKNOWN = "\ufffd"
_LIGATURES = dict(zip("\x1b\x1c\x1d\x1e\x1f\x0b\x0e\x0f", "ff fi fl ffi ffl ff ffi ffl".split(), strict=True))
"""As old fonts number them, which PDFium gives as control characters."""
_LIGATURE = re.compile(f"(?<=[A-Za-z])[{''.join(_LIGATURES)}]|[{''.join(_LIGATURES)}](?=[a-z])")
_CONTROLS = re.compile("[\x00\x01\x03-\x08\x0b\x0e-\x1b]+")
_NO_INK = 0.05
"""Points: a letter that is not higher is one that its font does not have."""


@dataclass(slots=True)
class _Line:
    """A line of a page: its words, the size of its letters in points, whether all are bold, and its place.

    It stands apart if there is more space above it than between the lines of a paragraph. The cells of a row are words
    with wide spaces between them. A line of contents refers to a page: its last cell is a number. `typed` is the line
    in a typewriter font, `code` is true if it is one of code.
    """

    text: str
    size: float
    bold: bool
    left: float
    base: float
    apart: bool = True
    running: bool = False
    upright: bool = True
    cells: int = 1
    refers: bool = False
    page: int = 0
    font: bytes = b""
    first_font: bytes = b""
    typed: TypewriterLine | None = None
    code: bool = False


def read_pdf(path: Path) -> tuple[str, str]:
    """Title and Markdown of a file."""
    return pdf_to_markdown(path.read_bytes())


def pdf_to_markdown(raw: bytes) -> tuple[str, str]:
    """Title and Markdown of a file's content.

    Lines that stand at the edge of several pages are read once, numbers of pages are left out. Where a page ends is a
    form feed. A title is that of the properties, else what the largest letters of the first page say.
    """
    import pypdfium2

    with _LOCK:
        document = pypdfium2.PdfDocument(raw)
        try:
            properties = document.get_metadata_dict()
            form = _form_environment(document)
            entries: list[list[PageEntry]] = []
            pages = list(_pages(document, _FREE + _EXPANSION * len(raw), entries, form))
        finally:
            document.close()
    for number, page in enumerate(pages):
        lists_pages = _lists_pages(page)
        for line in page:
            line.page = number
            line.refers |= lists_pages and not is_contents(line.text)
            line.typed = None if lists_pages else line.typed
    _mark_running(pages)
    _mark_code(pages)
    _drop_repeated_heads(pages)
    body = _body_size(pages)
    title = first_title(properties.get("Title"), properties.get("Subject")) or _title(pages, body)
    for number, (page, on_page) in enumerate(zip(pages, entries, strict=True)):
        _add_entries(page, on_page, body, number)
    blocks = [block for page in pages for block in _blocks(page)]
    return title, without_hyphenation("\n\n".join(_to_markdown(_join_blocks(blocks), body)))


def _form_environment(document: Any) -> Any:
    """The environment in which the form of a file can be read; None for a file without a form."""
    import pypdfium2.raw as pdfium

    if pdfium.FPDF_GetFormType(document) == pdfium.FORMTYPE_NONE:
        return None
    document.init_forms()
    return document.formenv


def _add_entries(page: list[_Line], entries: Sequence[PageEntry], size: float, number: int) -> None:
    """Write the values of a form behind their labels, those of boxes before them, and notes below the page."""
    for count, entry in enumerate(entries, 1):
        level = [line for line in page if entry.bottom - 2 <= line.base <= entry.top + 2 and not line.running]
        before = [line for line in level if line.left <= entry.left]
        after = [line for line in level if line.left > entry.left]
        if entry.is_box and after:
            label = min(after, key=lambda line: line.left)
            label.text = f"{entry.text} {label.text}"
        elif entry.name and before:
            label = max(before, key=lambda line: line.left)
            label.text = f"{label.text} {entry.text}"
        else:
            text = f"{entry.name}: {entry.text}" if entry.name else entry.text
            page.append(_Line(text, size, bold=False, left=entry.left, base=-100.0 * size * count, page=number))


def _pages(document: Any, max_chars: int, entries: list[list[PageEntry]], form: Any) -> Iterator[list[_Line]]:
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
        self.cells, self._last_cell = 1, 0
        self.anchor = -1  # the letter that those which follow are raised above

    def add(self, letter: str, position: int) -> None:
        """Add a letter or a mark."""
        self.letters.append(letter)
        self.positions.append(position)

    def add_accent(self, accent: str, position: int) -> None:
        """Set an accent in front of the last letter, as other fonts have it."""
        self.letters.insert(-1, accent)
        self.positions.insert(-1, position)

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
        if self.anchor >= 0 and not _is_raised(self._page, position, self.anchor):
            self._end_raised(position)
        elif self.anchor < 0 and self._rises(letter, position):
            self.anchor = self.positions[-1]
            self.add(RAISED, position)
        if is_wide and self.letters[-1:] == [" "]:
            self.cells, self._last_cell = self.cells + 1, len(self.letters)

    def _rises(self, letter: str, position: int) -> bool:
        follows = bool(self.letters) and not self.letters[-1].isspace() and (letter.isalnum() or letter in _SIGNS)
        return follows and _is_raised(self._page, position, self.positions[-1])

    def _end_raised(self, position: int) -> None:
        if self.anchor >= 0:
            self.add(END, position)
            self.anchor = -1

    def line(self) -> _Line | None:
        """The line; None without letters."""
        if not self.letters:
            return None
        self._end_raised(self.positions[-1])
        spelled = _LIGATURE.sub(lambda match: _LIGATURES[match[0]], "".join(self.letters))
        plain = _without_spacing(" ".join(_CONTROLS.sub(" ", spelled).split()), self.gaps)
        words = write_scripts(_ACCENTED.sub(_composed, plain))
        if not words:
            return None
        pairs = zip(self.positions, self.letters, strict=True)
        line = _measure_line(self._page, words, [position for position, letter in pairs if not letter.isspace()])
        last_cell = "".join(self.letters[self._last_cell :]).strip()
        line.cells, line.refers = self.cells, self.cells > 1 and last_cell.isdigit()
        if line.upright and RAISED not in self.letters:
            inked = (pair for pair in zip(self.positions, self.letters, strict=True) if not pair[1].isspace())
            line.typed = typewriter_line(self._page, inked, line.size)
        return line


def _lines(page: Any, page_left: float, page_bottom: float, page_right: float, page_top: float) -> Iterator[_Line]:
    """Lines within the sides of a page; what is printed beside it, such as marks of a printer, is seen by nobody."""
    import ctypes

    import pypdfium2.raw as pdfium

    handle, total = page.raw, page.count_chars()
    line = _Letters(handle)
    letters = line.letters
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    start = end = base = height = 0.0  # of the letter before
    for position in range(total + 1):
        code = pdfium.FPDFText_GetUnicode(handle, position) if position < total else 10
        letter = chr(code)
        if (code > 32 or letter in _LIGATURES) and pdfium.FPDFText_GetCharBox(
            handle, position, left, right, bottom, top
        ):
            x, x_end, low, high = left.value, right.value, bottom.value, top.value
            is_level = page_bottom < high and low < page_top
            if not (is_level and page_left < x_end and x < page_right):
                continue
            is_blank = high - low < _NO_INK and height > 4 + _NO_INK and letter.isalnum()
            if is_blank or (letter in _ACCENTS and start <= (x + x_end) / 2 <= end):  # above the letter before
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
            start, end, base = x, x_end, low
        if code == 10:
            if words := line.line():
                yield words
            line.clear()
        elif code not in (0, 13):
            letters.append(_CUT if letter in _HYPHENS else letter)
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


def _measure_line(page: Any, words: str, positions: Sequence[int]) -> _Line:
    """A line with the size, weight and place of its letters, as its first, middle and last ones have them."""
    import pypdfium2.raw as pdfium

    samples = [positions[0], positions[len(positions) // 2], positions[-1]]
    sizes = [_letter_size(page, position) for position in samples]
    fonts = [font_name(page, position) for position in samples]
    bold = all(_is_bold(page, position, font) for position, font in zip(samples, fonts, strict=True))
    left, base = origin(page, positions[0])
    upright = abs(pdfium.FPDFText_GetCharAngle(page, positions[0])) < 0.1
    size, (first_font, font, _) = round(2 * median(sizes)) / 2, fonts
    return _Line(words, size, bold, left, base, upright=upright, font=font, first_font=first_font)


def _letter_size(page: Any, position: int) -> float:
    """Size of a letter in points."""
    import pypdfium2.raw as pdfium

    matrix = pdfium.FS_MATRIX()
    size = float(pdfium.FPDFText_GetFontSize(page, position))
    is_scaled = pdfium.FPDFText_GetMatrix(page, position, matrix)
    return size * ((matrix.b**2 + matrix.d**2) ** 0.5 or 1.0) if is_scaled else size


def _is_bold(page: Any, position: int, font: bytes) -> bool:
    import pypdfium2.raw as pdfium

    is_heavy = bool(pdfium.FPDFText_GetFontWeight(page, position) >= 600)
    return is_heavy or re.search(rb"bold|black|heavy|-bx|bx\d|medi\b", font.lower()) is not None


def _lists_pages(page: Sequence[_Line]) -> bool:
    """True if most lines of a page end with the number of a page, in their order: it is one of contents."""
    ends = [(line.text, _ENDS_WITH_PAGE.search(line.text)) for line in page]
    numbers = [int(end[1]) for text, end in ends if end and any(map(str.isalpha, text[: end.start()]))]
    return len(numbers) >= max(_FEWEST_ENTRIES, len(page) / 2) and numbers == sorted(numbers)


def _mark_running(pages: Sequence[list[_Line]]) -> None:
    """Mark lines at the edges of pages that several pages have; take out those behind the first, and page numbers."""

    def edges(page: list[_Line]) -> list[_Line]:
        ordered = sorted(page, key=lambda line: line.base)
        gaps = [line.base - below.base for below, line in pairwise(ordered)]
        wide = 1.6 * median(gaps) if gaps else 0.0
        below = next((row + 1 for row, gap in enumerate(gaps[:_EDGE]) if gap > wide), 0)
        above = next((row + 1 for row, gap in enumerate(gaps[: -_EDGE - 1 : -1]) if gap > wide), 0)
        return ordered[:below] + ordered[max(below, len(ordered) - above) :]

    def key(line: _Line) -> tuple[str, float]:
        number = _PAGE_NUMBER.fullmatch(line.text) is not None
        return ("0", 0.0) if number else (re.sub(r"\d+", "0", line.text.lower()), line.size)

    if len(pages) < 2:
        return
    seen = Counter(name for page in pages for name in {key(line) for line in edges(page)})
    earlier: set[object] = set()
    for page in pages:
        outer = {id(line) for pick in (min, max) for line in page[:1] and [pick(page, key=lambda line: line.base)]}
        names = {id(line): key(line) for line in edges(page)}
        body = []
        for line in page:
            name = names.get(id(line))
            line.running = name is not None and seen[name] > max(1, len(pages) // 10)
            # with another number it may be "Chapter 2": only the outermost lines count pages
            again = line.text in earlier or (name in earlier and id(line) in outer)
            if not (line.running and (again or name == ("0", 0.0))):
                body.append(line)
            earlier.update([name, line.text] if name else [])
        page[:] = body


def _mark_code(pages: Sequence[list[_Line]]) -> None:
    """Mark lines of code: in a typewriter font, unless most of the file is, and not within a paragraph."""
    lines = [line for page in pages for line in page if not (line.running or _LEADER.search(line.text))]
    certain = [line for line in lines if line.typed and line.typed.is_certain]
    if sum(len(line.text) for line in certain) > _MAX_CODE_SHARE * sum(len(line.text) for line in lines):
        return
    code, prose = (
        Counter(line.font for line in part) for part in (certain, [line for line in lines if not line.typed])
    )
    common = {font for font, number in code.items() if number >= _MIN_CODE_LINES}
    fonts = {font for font in common if code[font] * prose.total() > prose[font] * code.total()}
    typed_lines = {id(line) for line in lines if line.typed and line.font in fonts}
    for page in pages:
        usual = _usual_gap(page)
        typed_lines.update(_commented(page, typed_lines, fonts, usual))
        runs = [(typed, list(group)) for typed, group in groupby(page, lambda line: id(line) in typed_lines)]
        for number, (typed, run) in enumerate(runs):
            above = runs[number - 1][1][-1:] if number else []
            below = runs[number + 1][1][:1] if number + 1 < len(runs) else []
            goes_on = any(_is_next(line, run[0], usual) and line.left > run[0].left - 2 for line in above)
            leads_on = any(_is_next(run[-1], line, usual) and line.left > run[0].left - 2 for line in below)
            for line in run if typed and not (len(run) == 1 and (goes_on or leads_on)) else ():
                line.code = True


def _commented(page: Sequence[_Line], typed: set[int], fonts: set[bytes], usual: float) -> set[int]:
    """Lines next to a line of code that begin in its font and end with a comment in another one."""
    commented: set[int] = set()
    for lines in (page, page[::-1]):
        for beside, line in pairwise(lines):
            above, below = (beside, line) if lines is page else (line, beside)
            is_next = _is_next(above, below, usual) and line.left > beside.left - 2
            is_code = line.first_font in fonts and _COMMENT.search(line.text) is not None
            if is_next and is_code and id(beside) in commented | typed:
                commented.add(id(line))
    return commented


def _usual_gap(page: Sequence[_Line]) -> float:
    gaps = [above.base - line.base for above, line in pairwise(page) if 0 < above.base - line.base < 60]
    return median(gaps) if gaps else 0.0


def _is_next(above: _Line, line: _Line, usual: float) -> bool:
    """True if there is no more space between two lines than between those of a paragraph."""
    return 0 < above.base - line.base < 1.25 * usual


def _drop_repeated_heads(pages: Sequence[list[_Line]]) -> None:
    """Take out the head of a table that goes on from the page before: rows at the top that are there, too."""
    for before, page in pairwise(pages):
        rows = [line for line in page if not line.running]
        above = [(line.text, line.size, line.left) for line in before]
        for start, first in enumerate(rows[:1] and above):
            if first != (rows[0].text, rows[0].size, rows[0].left):
                continue
            same = list(
                takewhile(
                    lambda pair: pair[0] == (pair[1].text, pair[1].size, pair[1].left),
                    zip(above[start:], rows, strict=False),
                )
            )
            if any(line.cells > 1 for _, line in same) and len(same) < len(rows):  # else it is a form, filled again
                gone = {id(line) for _, line in same}
                page[:] = [line for line in page if id(line) not in gone]
                break


def _body_size(pages: Sequence[list[_Line]]) -> float:
    """The size of most letters."""
    letters: Counter[float] = Counter()
    for page in pages:
        for line in page:
            letters[line.size] += len(line.text)
    return max(letters, key=lambda size: (letters[size], -size), default=0.0)


def _title(pages: Sequence[list[_Line]], body: float) -> str:
    """Text in the largest letters of the upper half of the first page, if they are larger than the text."""
    lines = [line for line in (pages[0] if pages else []) if line.upright and not line.running and not line.refers]
    if not lines:
        return ""
    middle = (max(line.base for line in lines) + min(line.base for line in lines)) / 2
    lines = [line for line in lines if line.base >= middle and not _NO_HEADING.match(line.text)]
    lines = [line for line in lines if not _CHAPTER.fullmatch(line.text)] or lines
    largest = max((line.size for line in lines), default=0.0)
    first = next((list(group) for size, group in groupby(lines, key=lambda line: line.size) if size == largest), [])
    end = next((n for n, (one, other) in enumerate(pairwise(first), 1) if one.base - other.base > 1.8 * largest), None)
    words = _heading_text(" ".join(line.text for line in first[:end]))
    return words if largest > _LARGER * body and 0 < len(words.split()) <= _TITLE_WORDS else ""


def _blocks(page: list[_Line]) -> Iterator[list[_Line]]:
    """Lines of one size and weight that stand closely below each other."""
    usual = _usual_gap(page)
    block: list[_Line] = []
    above: _Line | None = None
    for line in page:
        gap = above.base - line.base if above else 0.0
        line.apart = not above or gap < 0 or gap > 1.25 * usual or above.bold or above.size > _LARGER * line.size
        above = line
        if block and _begins_block(block[-1], line, usual):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _begins_block(above: _Line, line: _Line, usual: float) -> bool:
    gap = above.base - line.base
    if above.code or line.code:
        return not (
            above.code and line.code and 0 < gap < 2.5 * line.size and abs(above.size - line.size) < 0.1 * line.size
        )
    same = abs(above.size - line.size) <= 0.1 * max(above.size, line.size) and above.running == line.running
    if not same or above.bold != line.bold or _BULLET.match(line.text) or _ITEM.match(line.text):
        return True
    if gap < -2 * line.size:  # a column or page further on
        return above.text[-1:] in ".!?:"
    return gap > max(1.45 * usual, 1.3 * line.size) if usual else gap > 1.8 * line.size


def _join_blocks(blocks: list[list[_Line]]) -> list[list[_Line]]:
    """Blocks, with paragraphs that go on in the next column or on the next page put together."""
    result: list[list[_Line]] = []
    for block in blocks:
        last = result[-1][-1] if result else None
        if (
            last
            and not any(line.running or line.bold or line.code for line in (last, block[0]))
            and last.size == block[0].size
            and last.base < block[0].base
            and last.text[-1:] not in ".!?:"
            and block[0].text[:1].islower()
        ):
            result[-1] += block
        else:
            result.append(block)
    return result


def _to_markdown(blocks: Sequence[list[_Line]], body: float) -> Iterator[str]:
    """Blocks as Markdown; the headings of a file in which most is one are none."""
    headings = {number for number, block in enumerate(blocks) if _is_heading(block, body)}
    letters = [sum(len(line.text) for line in block) for block in blocks]
    if sum(letters[number] for number in headings) > 0.4 * sum(letters):
        headings = set()
    chapters = {n for n in headings if n + 1 in headings and _CHAPTER.fullmatch(_text(blocks[n]))}
    headings -= chapters
    sizes = sorted({blocks[number][0].size for number in headings}, reverse=True)[:4]
    feeds = ["\f" * (after[0].page - block[-1].page) for block, after in pairwise(blocks)] + ["\f"]  # behind each block
    chapter = chapter_feeds = ""
    if blocks and blocks[0][0].page:
        yield "\f" * blocks[0][0].page
    for is_list, group in groupby(enumerate(blocks), key=lambda item: _is_item(item[1][0])):
        if is_list:
            items = ((literal_text(_BULLET.sub("", _text(block), count=1)), feeds[number]) for number, block in group)
            yield "\n".join(f"- {words}{feed}" for words, feed in items)
            continue
        for number, block in group:
            if number in chapters:
                chapter, chapter_feeds = f"{_text(block)} ", feeds[number]
            elif number in headings:
                level = 1 + next((rank for rank, size in enumerate(sizes) if block[0].size >= size), len(sizes))
                words = _heading_text(" ".join(_text(block).split()))
                yield f"{'#' * level} {literal_text(chapter + words)}{chapter_feeds}{feeds[number]}"
                chapter = chapter_feeds = ""
            elif block[0].code:
                yield _code(block) + feeds[number]
            else:
                yield literal_text(_text(block).strip("\n")) + feeds[number]


def _is_item(line: _Line) -> bool:
    return not line.code and _BULLET.match(line.text) is not None


def _code(block: Sequence[_Line]) -> str:
    """Lines of code in a fence, with their indentation, and empty ones where the space above is wider."""
    left = min(line.left for line in block)
    width = next((line.typed.width for line in block if line.typed), block[0].size / 2)
    usual = min((above.base - line.base for above, line in pairwise(block)), default=0.0)
    text = ""
    for above, line in zip([None, *block], block, strict=False):
        blank = "\n" if above and above.base - line.base > 1.5 * usual else ""
        words = line.typed.text if line.typed else line.text
        text += f"{blank}{' ' * round((line.left - left) / width)}{words}\n"
    return code_block(text.replace(_CUT, "-"))


def _is_heading(block: Sequence[_Line], body: float) -> bool:
    first, words = block[0], " ".join(line.text for line in block)
    if len(block) > 3 or len(words.split()) > _HEADING_WORDS or first.running or not first.upright or block[-1].refers:
        return False
    leads_on = words[-1] in ".,;" or (words[-1] == ":" and len(words.split()) > _LABEL_WORDS)
    if _NO_HEADING.match(words) or leads_on or not any(map(str.isalpha, words)) or words[0].islower():
        return False
    begins = words[0].isalnum() or words[0] in _QUOTES
    if not begins or "\\" in words or words.count("(") != words.count(")"):  # samples of letters, code, formulas
        return False
    if first.size > _LARGER * body:
        return True
    return (
        first.bold
        and first.apart
        and first.size >= 0.95 * body
        and (len(block) == 1 or _NUMBERED.match(words) is not None)
    )


def _text(block: Sequence[_Line]) -> str:
    """Lines of a block; they stay lines where a hyphen ends one, so that words can be put together again."""
    text, feeds = block[0].text, ""
    for above, line in pairwise(block):
        feeds += "\f" * (line.page - above.page)
        is_marked = above.text[-1:] in _NAME_MARKS or line.text[:1] in _NAME_MARKS
        if is_marked and _BROKEN_NAME.search(f"{above.text.rsplit(None, 1)[-1]}\n{line.text.split(None, 1)[0]}"):
            text += line.text
        elif above.text.endswith("-") and above.text[-2:-1].isalpha() and line.text[:1].isalpha():
            text += f"\n{line.text}"
        else:
            text, feeds = f"{text}{feeds or ' '}{line.text}", ""
    if _CUT in text:
        text = _NAME_WITH_CUT.sub(lambda match: match[0].replace(_CUT, "-"), text).replace(_CUT, "-\n")
    return text + feeds


def _heading_text(words: str) -> str:
    """A heading with words put together that a hyphen cuts, without the mark of a footnote."""
    return _NOTE_MARK.sub("", re.sub(r"(?<=[a-z])(?:\x02|- )(?=[a-z])", "", words).replace(_CUT, "-"))
