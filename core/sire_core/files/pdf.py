"""PDF files as Markdown: paragraphs, headings, lists, tables and code, from the sizes and places of their lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median

from sire_core.documents.furniture import is_contents
from sire_core.documents.markdown_cleaning import JOINING, without_hyphenation
from sire_core.documents.markdown_writing import code_block, literal_text, table
from sire_core.files.pdf_forms import PageEntry
from sire_core.files.pdf_furniture import drop_repeated_heads, drop_running_lines
from sire_core.files.pdf_lines import CUT, Line, read_lines
from sire_core.files.pdf_tables import LEADER, has_header, join_ruled_rows, mark_tables

_HEADING_WORDS = 12
_TITLE_WORDS = 30
_LABEL_WORDS = 3  # Longest heading that ends with a colon; longer lines lead to what follows
_MIN_INDENT, _MAX_SET_IN_SHARE = 6.0, 0.25
"""Points that a note is further in than most text, and letters of the file that begin there, as a share."""
_QUOTES = "\"'\u201c\u2018\u00ab\u201e\u00bf\u00a1"
_LARGER = 1.12  # So many times as large as the text are the letters of a heading that is not bold
_MAX_CODE_SHARE = 0.6
"""A file with more of its letters in a typewriter font is written on a typewriter: they are no code."""
_COMMENT = re.compile(r"(?:^|\s)(?:#+|//|/\*|%+) \S")
_MIN_CODE_LINES = 3
"""Lines of a file that are certainly in a typewriter font; fonts of formulas have fewer of one width."""
_BULLET = re.compile(r"[\u2022\u2023\u25aa\u25cf\u25e6\u2043\uf0b7\u25a0]\s*|[-\u2013]\s+(?=[^\W\d])")
_ITEM = re.compile(r"(?:\d{1,2}|[a-z])[.)]\s")
_NUMBERED = re.compile(r"(?:\d{1,2}(?:\.\d{1,2}){0,3}\.?|[A-Z]\.?)\s+(?=\S)")
_MONTH = "(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*"
_DATE = rf"(?:\d{{1,2}}\.?\s+)?{_MONTH}\.?\s+(?:\d{{1,2}},?\s+)?\d{{4}}$"
_NO_HEADING = re.compile(
    rf"arxiv:|(?:figure|fig\.|table|algorithm)\s*\d|https?:|\w{{0,10}}>\s|{_DATE}|\W*$|[\d\W]*$", re.IGNORECASE
)
"""Captions, addresses, prompts, dates, and what has no letters."""
_HYPHEN = re.compile(rf"-\n(?!(?:{'|'.join(JOINING)})\b)")
_CUT_WORD = re.compile(rf"(?<=[a-z])(?:{CUT}|- )(?!(?:{'|'.join(JOINING)})\b)(?=[a-z])")
_END_OF_LINE = re.compile(r"(?<=[^\W\d_])- (?=[^\W\d_])")
_LINE_START, _LINE_STOP = "\x05", "\x06"
_BROKEN_HEADING = re.compile(f"{_LINE_START}([^{_LINE_STOP}]*){_LINE_STOP}")
"""A heading or row of several lines, until it is known which words a hyphen cuts."""
_ENDS_WITH_PAGE = re.compile(r"[\s.](\d{1,4})$")
_FEWEST_ENTRIES = 4  # Lines of a page of contents that end with the number of a page
_NOTE_MARK = re.compile(r"(?<=\w)\s?[*\u2217\u2020\u2021\u00a7]+$")
_CHAPTER = re.compile(
    r"(?:chapter|part|appendix|kapitel|teil|anhang|chapitre|partie|annexe)?\s*(?:\d{1,3}|[ivx]{1,5}|[a-z]|one|two|three|four"
    r"|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen)\.?",
    re.IGNORECASE,
)
"""A line above the title of a chapter, often in larger letters."""
_NAME_MARKS = "_-/.&=?#%~+"
_BEGINS_NAME = r"(?:(?:https?|ftp|file)://|\bwww\.)"
_IN_ADDRESS = r"[^\s.,;:)\]]*(?:[/=_~%&#?]|\.\w)"
_BROKEN_NAME = re.compile(
    r"\w_\n\w|\w\n_\w|\A\W?--?\w[\w-]*-\n[a-z]"
    rf"|{_BEGINS_NAME}(?:\n\w|\S*(?:-\n\w|[\w/]\n[/._=&?#%~-]\w|[/_=&?#%~+]\n{_IN_ADDRESS}"
    rf"|\w\.\n(?:{_IN_ADDRESS}|(?:html?|pdf|txt|zip|gz|com|edu|net|org)\b)))"
)
"""The last word of a line and the first of the next, where no word ends: in an identifier, an option, an address."""
_NAME_WITH_CUT = re.compile(rf"(?:{_BEGINS_NAME}|(?<!\S)\W?--?\w)\S*{CUT}\S*")


def read_pdf(path: Path) -> tuple[str, str]:
    """Title and Markdown of a file."""
    return pdf_to_markdown(path.read_bytes())


def pdf_to_markdown(raw: bytes) -> tuple[str, str]:
    """Title and Markdown of a file's content.

    Lines that stand at the edge of several pages are read once, numbers of pages are left out. Where a page ends is a
    form feed. A title is that of the properties, else what the largest letters of the first page say.
    """
    pages, entries, grids, title = read_lines(raw)
    for number, page in enumerate(pages):
        lists_pages = _lists_pages(page)
        for line in page:
            line.page = number
            line.refers |= lists_pages and not is_contents(line.text)
            line.typed = None if lists_pages else line.typed
    body = _body_size(pages)
    drop_running_lines(pages, body)
    for page, ruled in zip(pages, grids, strict=True):
        join_ruled_rows(page, ruled.grids)
    _mark_code(pages)
    drop_repeated_heads(pages)
    for page in pages:
        mark_tables([] if _lists_pages(page) else page)
    title = title or _title(pages, body)
    for number, (page, on_page) in enumerate(zip(pages, entries, strict=True)):
        _add_entries(page, on_page, body, number)
    blocks = [block for page in pages for block in _blocks(page)]
    text = without_hyphenation("\n\n".join(_to_markdown(_join_blocks(blocks), body)))
    return title, _BROKEN_HEADING.sub(_on_one_line, text)


def _add_entries(page: list[Line], entries: Sequence[PageEntry], size: float, number: int) -> None:
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
            base = -100.0 * size * count
            page.append(
                Line(text, size, bold=False, left=entry.left, right=entry.left, base=base, low=base, page=number)
            )


def _lists_pages(page: Sequence[Line]) -> bool:
    """True if most lines of a page end with the number of a page, in their order: it is one of contents."""
    ends = [(line.text, _ENDS_WITH_PAGE.search(line.text)) for line in page]
    numbers = [int(end[1]) for text, end in ends if end and any(map(str.isalpha, text[: end.start()]))]
    return len(numbers) >= max(_FEWEST_ENTRIES, len(page) / 2) and numbers == sorted(numbers)


def _mark_code(pages: Sequence[list[Line]]) -> None:
    """Mark lines of code: in a typewriter font, unless most of the file is, and not within a paragraph."""
    lines = [line for page in pages for line in page if not (line.running or LEADER.search(line.text))]
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


def _commented(page: Sequence[Line], typed: set[int], fonts: set[bytes], usual: float) -> set[int]:
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


def _usual_gap(page: Sequence[Line]) -> float:
    gaps = [above.low - line.base for above, line in pairwise(page) if not line.ruled]
    gaps = [gap for gap in gaps if 0 < gap < 60]
    return median(gaps) if gaps else 0.0


def _is_next(above: Line, line: Line, usual: float) -> bool:
    """True if there is no more space between two lines than between those of a paragraph."""
    return 0 < above.low - line.base < 1.25 * usual


def _body_size(pages: Sequence[list[Line]]) -> float:
    letters: Counter[float] = Counter()
    for page in pages:
        for line in page:
            letters[line.size] += len(line.text)
    return max(letters, key=lambda size: (letters[size], -size), default=0.0)


def _title(pages: Sequence[list[Line]], body: float) -> str:
    """Text in the largest letters of the upper half of the first page, if they are larger than the text."""
    lines = [line for line in (pages[0] if pages else []) if line.upright and not line.running and not line.refers]
    if not lines:
        return ""
    middle = (max(line.base for line in lines) + min(line.base for line in lines)) / 2
    lines = [line for line in lines if line.base >= middle and not _NO_HEADING.match(line.text)]
    lines = [line for line in lines if not _CHAPTER.fullmatch(line.text)] or lines
    largest = max((line.size for line in lines), default=0.0)
    first = next((list(group) for size, group in groupby(lines, key=lambda line: line.size) if size == largest), [])
    end = next((n for n, (one, other) in enumerate(pairwise(first), 1) if one.low - other.base > 1.8 * largest), None)
    words = _title_text(" ".join(line.text for line in first[:end]))
    return words if largest > _LARGER * body and 0 < len(words.split()) <= _TITLE_WORDS else ""


def _blocks(page: list[Line]) -> Iterator[list[Line]]:
    """Lines of one size and weight that stand closely below each other."""
    usual = _usual_gap(page)
    block: list[Line] = []
    above: Line | None = None
    for line in page:
        gap = above.low - line.base if above else 0.0
        line.apart = not above or gap < 0 or gap > 1.25 * usual or above.bold or above.size > _LARGER * line.size
        above = line
        if block and _begins_block(block[-1], line, usual):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _begins_block(above: Line, line: Line, usual: float) -> bool:
    gap = above.low - line.base
    if above.row or line.row:
        return len(above.row) != len(line.row) or above.ruled is not line.ruled
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


def _join_blocks(blocks: list[list[Line]]) -> list[list[Line]]:
    """Blocks, with paragraphs and code that go on in the next column or on the next page put together."""
    result: list[list[Line]] = []
    for block in blocks:
        if result and _goes_on(result[-1][-1], block[0]):
            result[-1] += block
        else:
            result.append(block)
    return result


def _goes_on(last: Line, first: Line) -> bool:
    if last.size != first.size or last.low >= first.base or last.code != first.code:
        return False
    is_text = not any(line.running or line.bold or line.row for line in (last, first))
    return last.code or (is_text and last.text[-1:] not in ".!?:" and first.text[:1].islower())


def _to_markdown(blocks: Sequence[list[Line]], body: float) -> Iterator[str]:
    """Blocks as Markdown; the headings of a file in which most is one are none."""
    headings = {number for number, block in enumerate(blocks) if _is_heading(block, body)}
    letters = [sum(len(line.text) for line in block) for block in blocks]
    if sum(letters[number] for number in headings) > 0.4 * sum(letters):
        headings = set()
    chapters = {n for n in headings if n + 1 in headings and _CHAPTER.fullmatch(_text(blocks[n]))}
    headings -= chapters
    headings -= _box_titles(blocks, headings)
    sizes = _heading_sizes([blocks[number][0].size for number in sorted(headings)])
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
                words = literal_text(chapter + _NOTE_MARK.sub("", _text(block)))
                heading = f"{'#' * level} {words}"
                heading = _one_line(heading)
                yield f"{heading}{chapter_feeds}{feeds[number]}"
                chapter = chapter_feeds = ""
            elif block[0].row:
                yield _table(block, blocks[number - 1][-1] if number else None) + feeds[number]
            elif block[0].code:
                yield _code(block) + feeds[number]
            else:
                yield literal_text(_text(block).strip("\n")) + feeds[number]


def _heading_sizes(sizes: Sequence[float]) -> Sequence[float]:
    """Sizes of the levels of headings; not the size of a single one behind smaller ones, which stands in a picture."""
    uses, levels = Counter(sizes), set(sizes[:1])
    for number, size in enumerate(sizes):
        if number < 2 or uses[size] > 1 or size < max(levels):
            levels.add(size)
    return sorted(levels, reverse=True)[:4]


def _box_titles(blocks: Sequence[list[Line]], headings: set[int]) -> set[int]:
    """Headings that repeat, further in than most text, as what follows them: titles of notes and warnings."""
    letters: Counter[int] = Counter()
    for block in blocks:
        letters[round(block[0].left)] += 0 if block[0].row else sum(len(line.text) for line in block)
    usual = max(letters, key=lambda left: letters[left], default=0)

    def is_set_in(number: int) -> bool:
        left, follows = blocks[number][0].left, blocks[number + 1 : number + 2]
        is_rare = left > usual + _MIN_INDENT and letters[round(left)] < _MAX_SET_IN_SHARE * letters.total()
        return is_rare and number + 1 not in headings and any(abs(block[0].left - left) < 2 for block in follows)

    titles = Counter(_text(blocks[number]) for number in headings if is_set_in(number))
    return {number for number in headings if len(text := _text(blocks[number])) > 1 < titles[text]}


def _is_item(line: Line) -> bool:
    return not (line.code or line.row) and _BULLET.match(line.text) is not None


def _table(block: Sequence[Line], above: Line | None) -> str:
    """Rows as a table; one that goes on from the page before, or names no columns, has no header."""
    rows = [[literal_text(_END_OF_LINE.sub(CUT, cell)) for cell in line.row] for line in block]
    goes_on = above is not None and len(above.row) == len(block[0].row) and above.page < block[0].page
    lines = table(rows, header=has_header(block, goes_on=goes_on)).split("\n")
    return "\n".join(_one_line(line.replace(CUT, "-\n")) for line in lines)


def _code(block: Sequence[Line]) -> str:
    """Lines of code in a fence, with their indentation, and empty ones where the space above is wider."""
    left = min(line.left for line in block)
    width = next((line.typed.width for line in block if line.typed), block[0].size / 2)
    usual = min((gap for above, line in pairwise(block) if (gap := above.base - line.base) > 0), default=0.0)
    text = ""
    for above, line in zip([None, *block], block, strict=False):
        feeds = "\f" * (line.page - above.page) if above else ""
        blank = f"{feeds}\n" if above else ""
        if above and above.base - line.base > 1.5 * usual:
            blank += "\n"
        words = line.typed.text if line.typed else line.text
        text += f"{blank}{' ' * round((line.left - left) / width)}{words}"
    return code_block(text.replace(CUT, "-"))


def _is_heading(block: Sequence[Line], body: float) -> bool:
    first, words = block[0], " ".join(line.text for line in block)
    is_other = first.row or first.running or block[-1].refers or not first.upright
    if is_other or len(block) > 3 or len(words.split()) > _HEADING_WORDS:
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


def _text(block: Sequence[Line]) -> str:
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
    if CUT in text:
        text = _NAME_WITH_CUT.sub(lambda match: match[0].replace(CUT, "-"), text).replace(CUT, "-\n")
    return text + feeds


def _one_line(text: str) -> str:
    """A heading or row with marks around it if a hyphen cuts words in it."""
    return f"{_LINE_START}{text}{_LINE_STOP}" if "\n" in text else text


def _on_one_line(heading: re.Match[str]) -> str:
    return _HYPHEN.sub("-", heading[1]).replace("\n", " ")


def _title_text(words: str) -> str:
    """A title with words put together that a hyphen cuts, without the mark of a footnote."""
    return _NOTE_MARK.sub("", _CUT_WORD.sub("", words).replace(CUT, "-"))
