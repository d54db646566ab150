"""HTML as Markdown: headings, paragraphs, lists, tables and code; no navigation, scripts or hidden parts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from statistics import median

from sire_core.documents.markdown_writing import code_block, one_line, without_comment_marks
from sire_core.files.conversion import spend, whole_number
from sire_core.files.formulas import Element
from sire_core.files.page_regions import find_navigation, is_imprint, is_site_name
from sire_core.files.page_tree import BLOCKS, CELLS, HEADINGS, STRAY, events, parse_page, place
from sire_core.files.preformatted import Preformatted, written_lines
from sire_core.files.raised_text import END, LOWERED, RAISED, RUBY_BASE, RUBY_END, RUBY_READING, write_scripts

LONGEST_REPEATED = 500
"""Letters of a merged cell that is written in each of its rows; a longer one is a text beside the table."""
_LONGEST_TERM, _FEWEST_TERMS, _LONG_DEFINITION = 200, 3, 200
"""Letters of a term that may be a heading; how many terms a list of such has, and letters of most definitions."""

_OF_TABLES = ("table", "tr", *CELLS)
_BOX_TAGS = ("div", "aside", "table", "td", "details", "dd", "li")
_BOX_NAMES = frozenset(
    "note notecard warning tip caution important danger hint attention notice admonition alert callout example "
    "awsdocs-note".split()
)
"""Classes and roles of boxes: what follows one belongs to the section around it."""
_SCRIPTS = {
    "sup": (RAISED, END),
    "sub": (LOWERED, END),
    "ruby": (RUBY_BASE, ""),
    "rt": (RUBY_READING, RUBY_END + RUBY_BASE),
}
"""Marks around what is raised, lowered, or says how letters are read."""
_INLINE = frozenset(("title", "code", "a", *_SCRIPTS))
_LISTS = ("ol", "ul")
_ITEM = re.compile(r"- |\d+\. ")
_IMAGE = re.compile(r"!\[([^\[\]]*)\]\([^()\s]*\)")
_HTML_WORD = re.compile(r"[^\W_]+")
_LABEL = re.compile(r"(?<![^\W_])[^\W_]+(?: [^\W_]+)?:")
_STEP_LABEL = re.compile(r"\W{0,4}(?:next|prev|previous|up|back)\b", re.IGNORECASE)
_STEPS = frozenset("prev previous next up".split())  # Relations of a link to the page before, behind or above this one
_STEP_KEYS = ("p", "n", "u", "h")
_STEP_WORDS = _STEPS | frozenset(
    "top home contents toc index ind bib back return to of the goto go page chapter section part book start table main "
    "manual".split()
)
_STEP_BLOCKS = frozenset("p div header section table ul ol address".split())
_STEP_NAME = 40
_STEP_LINKS = 60
_STEP_LETTERS = 600  # Length of a block of links between pages
_TITLES_BETWEEN = 20
"""Words that a table or list of such links may have outside of them: the titles of the page and of its book."""
_HTML_SPACE = re.compile(r"[ \t\r\n\f]+")
_CODE_CLASS = re.compile("code|highlight|prettyprint|brush|lang(?:uage)?-|listing", re.IGNORECASE)
_BRACKETS = str.maketrans("", "", "[]")
_CAPTION_REACH = 8  # Lines above an image that may have its text behind a number: `Figure 3. Layers`


def html_to_markdown(page: str) -> tuple[str, str]:
    """Convert a page to its title and Markdown in linear time, without scripts, controls and navigation."""
    root, elements = parse_page(page)
    for left_out in dict.fromkeys((*find_navigation(root, elements), frozenset())):
        title, text = _Writer(left_out).written(root)
        if text:
            return title, text
    return _Writer(keeps_steps=True).written(root)  # a menu, or a list of pages


def _linked_words(text: str) -> list[str]:
    """Words in lower case, of an image its alternative text."""
    return _HTML_WORD.findall(_IMAGE.sub(r" \1 ", text).lower())


def _is_step_name(words: list[str]) -> bool:
    """True if words say where a link leads in a sequence of pages ("Next chapter", "Top", "2") and nothing else."""
    return not _STEP_WORDS.isdisjoint(words) and all(
        word in _STEP_WORDS or word.isdigit() or len(word) == 1 for word in words
    )


def _is_between_pages(lines: list[str], links: list[tuple[str, bool]], *, is_list: bool) -> bool:
    """True if a block holds nothing but links to the pages before, behind and above, with their labels."""
    text = "\n".join(lines)
    if len(text) > _STEP_LETTERS or any(line.startswith("#") for line in lines):
        return False
    words = _linked_words(text)
    if _is_step_name(words):
        return True
    others = Counter(words)
    for name, _ in links:
        others.subtract(_linked_words(name))
    if not any(is_step for _, is_step in links):
        return _STEP_LABEL.match(text) is not None and _is_step_name(list(others.elements()))
    if is_list:
        return sum(others.values()) <= _TITLES_BETWEEN
    others.subtract(_linked_words(" ".join(_LABEL.findall(text))))
    return len(lines) == 1 and not any(others.elements())


def _is_box(tag: str, attributes: Mapping[str, str | None]) -> bool:
    """True if an element is a note, an example, a quotation or a figure beside the text."""
    if tag not in _BOX_TAGS or not attributes:
        return tag in ("blockquote", "figure", "aside")
    names = f"{attributes.get('class') or ''} {attributes.get('role') or ''}".lower().split()
    return tag == "aside" or not _BOX_NAMES.isdisjoint(names)


class _Writer:
    """Writes the elements of a page as lines of Markdown.

    Links between pages are left out unless `keeps_steps`.
    """

    def __init__(self, left_out: Collection[Element] = (), *, keeps_steps: bool = False) -> None:
        self._left_out, self._keeps_steps = left_out, keeps_steps
        self._lines: list[str] = []
        self._text: list[str] = []
        self._title: list[str] = []
        self._around: Counter[str] = Counter()  # names of the open elements
        self._prefix = ""
        self._lists: list[int] = []  # the number of the next item in each open list; 0 where they have none
        self._in_title = False
        self._code: list[str] | None = None
        self._is_code = False
        self._row: list[str] | None = None
        self._rows = 0
        self._header = self._columns = 0  # line of the header of the open table, and its width
        self._cells: set[str] = set()  # what the cells with text in this row are
        self._size = (1, 1)  # rows and columns of the open cell
        self._is_index = False
        self._cell: list[str] = []  # paragraphs of the cell
        self._spans: dict[int, tuple[int, str]] = {}  # by column, how many more rows have the cell above, and its text
        self._alternative = ""  # text of the last image, which its caption may repeat
        self._is_layout = False  # whether the open table places the icon of a note beside its text
        self._links: list[tuple[str, bool]] = []  # text of each link, and whether it leads to the next page
        self._link: tuple[int, bool] | None = None  # the open one: where its text begins
        self._first_link = 0  # of the open heading or item
        self._last_step = 0  # number of links up to the last one to a page before, behind or above
        self._boxes = 0  # number of the open ones
        self._blocks: list[tuple[Element, int, int]] = []  # open ones outside of tables, first line and link of each
        self._level = 0  # of the last heading
        # Line and words of the first one, and whether it is in the header of the page; until the second one.
        self._banner: tuple[int, str, bool] | None = None
        # Of each open list of definitions the level of the heading above, and line and text of its terms.
        self._definitions: list[tuple[int, list[tuple[int, str]]]] = []
        self._term: int | None = None  # line behind which the open one begins

    def written(self, root: Element) -> tuple[str, str]:
        """Title and Markdown of a page."""
        for node, ends in events(root, self._left_out):
            if isinstance(node, str):
                self._add(node)
            elif ends:
                self._close(node)
            else:
                self._open(node)
        self._flush()
        while len(self._lines) > 2 and (not (last := self._lines[-1]) or is_imprint(last)):
            self._lines.pop()  # a page ends in its date, its author's rights and its licence
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(written_lines(self._lines))).strip()
        return self._page_title(), text

    def _open(self, element: Element) -> None:
        self._boxes += _is_box(element.name, element.attributes)
        if element.name == "table":
            self._is_index = "indextable" in (element.attributes.get("class") or "")
        self._begin(element.name, element.attributes)
        if element.name in _STEP_BLOCKS and self._row is None:
            self._blocks.append((element, len(self._lines), len(self._links)))
        self._around[place(element)] += 1

    def _close(self, element: Element) -> None:
        self._around[place(element)] -= 1
        self._end(element.name)
        if self._blocks and self._blocks[-1][0] is element:
            self._leave_out_steps(element.name, *self._blocks.pop()[1:])
        if element.name in _LISTS:
            del self._lists[-1:]
        self._boxes -= _is_box(element.name, element.attributes)

    def _begin(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        """Begin an element whose content is kept."""
        if tag in _LISTS:
            self._lists.append(whole_number(attributes.get("start"), 1) if tag == "ol" else 0)
        self._is_layout |= tag == "table" and self._boxes > 0 and attributes.get("border") == "0"
        if tag in _INLINE:
            self._begin_inline(tag, attributes)
        elif tag in ("img", "br", "hr", STRAY):
            self._begin_void(tag, attributes)
        elif self._is_layout and tag in _OF_TABLES:
            self._flush()
        elif tag in CELLS:
            self._flush()
            rows, columns = (max(1, whole_number(attributes.get(name), digits=2)) for name in ("rowspan", "colspan"))
            self._size = rows, columns
            self._row = [] if self._row is None and self._around["table"] else self._row
        elif tag in ("pre", "li", "table", "tr") or tag in HEADINGS:
            self._end_block(tag)
            if tag == "pre":
                self._code = [] if self._code is None else self._code
                self._is_code = _CODE_CLASS.search(attributes.get("class") or "") is not None
            elif tag in ("table", "tr"):
                self._end_row()  # of the table around this one
                self._spans = {} if tag == "table" else self._spans
                self._rows, self._row = (0, None) if tag == "table" or not self._around["table"] else (self._rows, [])
            else:
                self._prefix = "" if self._is_in_cell(tag) else self._label(tag)
                self._first_link = len(self._links)
        elif tag in BLOCKS:
            self._break()
            self._begin_definitions(tag)

    def _begin_inline(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        if tag == "title":
            self._in_title = True
        elif tag in _SCRIPTS:
            (self._text if self._code is None else self._code).append(_SCRIPTS[tag][0])
        elif tag == "code":
            self._is_code = True
            self._text += ["`"] if self._code is None else []
        elif tag == "a" and attributes.get("href"):
            is_step = not _STEPS.isdisjoint((attributes.get("rel") or "").lower().split())
            self._link = len(self._text), is_step or attributes.get("accesskey") in _STEP_KEYS

    def _end_inline(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in _SCRIPTS:
            (self._text if self._code is None else self._code).append(_SCRIPTS[tag][1])
        elif tag == "code" and self._code is None:
            self._text.append("`")
        elif tag == "a" and self._link is not None:
            start, is_step = self._link
            self._links.append((text := write_scripts("".join(self._text[start:])), is_step))
            self._link = None
            if is_step or (len(text) < _STEP_NAME and _is_step_name(_linked_words(text))):
                self._last_step = len(self._links)

    def _label(self, tag: str) -> str:
        """Marker of a heading or of the next item of the innermost list."""
        if tag in HEADINGS:  # the title of a box opens no section
            return "" if self._boxes and tag != "h1" else "#" * HEADINGS[tag] + " "
        number = self._lists[-1] if self._lists else 0
        if not number:
            return "- "
        self._lists[-1] += 1
        return f"{number}. "

    def _end(self, tag: str) -> None:
        """End an element whose content is kept."""
        if tag in _INLINE:
            self._end_inline(tag)
        elif self._is_layout and tag in _OF_TABLES:
            self._flush()
            self._is_layout = tag != "table"
        elif tag in CELLS and self._row is not None:
            self._repeat_above(self._row)
            text = self._take_text().replace("|", "\\|")
            (rows, columns), at = self._size, len(self._row)
            below = "" if len(text) > LONGEST_REPEATED else text
            self._spans |= {at + column: (rows - 1, "" if column else below) for column in range(columns) if rows > 1}
            self._row += [text, *[""] * (columns - 1)]
            spend(" | " * (columns - 1))
            if text:
                self._cells.add("th" if self._around["thead"] else tag)
        elif tag == "pre" and self._code is not None:
            code, self._code = write_scripts("".join(self._code)), None
            is_code = self._is_code or self._row is not None
            self._lines += ["", code_block(code) if is_code else Preformatted(code, self._level), ""]
        elif tag in ("tr", "table"):
            self._end_row()
            if tag == "table":
                self._rows = 0
                self._lines.append("")
        elif tag in HEADINGS or tag in ("li", *CELLS):
            self._end_block(tag)
            self._prefix = ""  # an empty one marks nothing behind it
        elif tag in BLOCKS:
            self._break()
            self._end_definitions(tag)

    def _begin_definitions(self, tag: str) -> None:
        if tag == "dl":
            self._definitions.append((self._level, []))
        elif tag == "dt" and self._row is None and not self._boxes:
            self._term = len(self._lines)

    def _end_definitions(self, tag: str) -> None:
        """Terms of long definitions are headings, as in the reference of a program's settings; fields are lines."""
        if tag == "dt" and self._term is not None and self._definitions:
            lines = [line for line in self._lines[self._term :] if line]
            if len(lines) == 1 and len(lines[0]) <= _LONGEST_TERM:
                self._definitions[-1][1].append((len(self._lines) - 1, lines[0]))
            self._term = None
        elif tag == "dd" and self._definitions and self._definitions[-1][1]:
            row, term = self._definitions[-1][1][-1]
            below = [line for line in self._lines[row + 1 :] if line]
            if term.endswith(":") and self._lines[row] == term and len(below) == 1 and len(below[0]) <= _LONGEST_TERM:
                self._lines[row:] = [f"{term} {below[0]}"]  # `Default: 5`
        elif tag == "dl" and self._definitions:
            level, terms = self._definitions.pop()
            if self._definitions or len(terms) < _FEWEST_TERMS:
                return
            ends = [*(row for row, _ in terms[1:]), len(self._lines)]
            spans = [self._lines[row + 1 : end] for (row, _), end in zip(terms, ends, strict=True)]
            if median(sum(map(len, lines)) for lines in spans) >= _LONG_DEFINITION:
                for row, text in terms:
                    if self._lines[row : row + 1] == [text]:  # else it was links to other pages
                        self._lines[row] = f"{'#' * min(level + 1, 6)} {text}"

    def _add(self, data: str) -> None:
        if self._in_title:
            self._title.append(data)
        else:
            (self._text if self._code is None else self._code).append(data)

    def _begin_void(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        if tag == STRAY:
            self._break()
        elif tag == "br":
            if self._code is not None:
                self._code.append("\n")
            else:
                self._text.append(" ")
        elif tag == "img" and attributes.get("alt"):
            inline = (attributes.get("src") or "data:").lstrip()[:5].lower() == "data:"
            alternative = " ".join(str(attributes["alt"]).translate(_BRACKETS).split())
            above = () if any(map(str.strip, self._text[-20:])) else self._lines[-_CAPTION_REACH:]
            captions = (line[: -len(alternative)].rstrip(" .:\xa0") for line in above if line.endswith(alternative))
            is_told = any(caption[-1:].isdigit() for caption in captions)
            self._alternative = "" if inline or is_told else alternative
            if not is_told:
                self._text.append(f" {alternative} " if inline else f"![{alternative}]({attributes['src']})")
        elif tag == "hr":
            self._flush()

    def _take_text(self) -> str:
        """The text since the last block; in a cell, since its beginning."""
        paragraphs, self._cell = [*self._cell, self._take_part()], []
        return one_line(paragraphs) if len(paragraphs) > 1 else paragraphs[0]

    def _take_part(self) -> str:
        text = _HTML_SPACE.sub(" ", write_scripts("".join(self._text))).strip()
        self._text.clear()
        return without_comment_marks(text)

    def _is_in_cell(self, tag: str) -> bool:
        """True for an item that is a paragraph of a cell; the table of an index only sets its entries side by side."""
        return tag == "li" and self._row is not None and not self._is_index

    def _end_block(self, tag: str) -> None:
        if self._is_in_cell(tag):
            self._break()
        else:
            self._flush()

    def _break(self) -> None:
        """Separate two blocks; those in a table cell stay on one line."""
        if self._row is None:
            self._flush()
        else:
            self._cell.append(self._take_part())

    def _flush(self) -> None:
        text = self._take_text()
        if text and (self._prefix or text != self._alternative):
            if self._prefix == "# " and not self._level:
                self._leave_out_links_above()
            if not (_ITEM.match(self._prefix) and self._lines and _ITEM.match(self._lines[-1])):
                self._lines.append("")
            self._lines += self._entries(text) or [self._prefix + text]
            if f"![{self._alternative}](" not in text:
                self._alternative = ""
            if self._prefix.startswith("#"):
                self._leave_out_banner(text.replace("`", ""))
                self._level = len(self._prefix) - 1
            self._prefix = ""

    def _entries(self, heading: str) -> list[str]:
        """The items of a list of contents that is marked as one heading: it holds several links and nothing else."""
        names = [_HTML_SPACE.sub(" ", name).strip() for name, _ in self._links[self._first_link :]]
        is_list = self._prefix.startswith("#") and len(names) > 1 and heading == " ".join(names)
        if not (is_list and all(" " in name for name in names)):
            return []
        self._prefix = ""
        return [f"- {name}" for name in names]

    def _leave_out_banner(self, heading: str) -> None:
        """Forget the first heading if the next one names the page and it the site, by the title of the page."""
        level, line_number = len(self._prefix) - 1, len(self._lines) - 1
        if not self._level:
            self._banner = line_number, heading, self._around["header"] > 0 and not self._in_content()
        elif self._banner is not None:
            first, name, is_above = self._banner
            title = self._page_title()
            is_above = is_above or (level == self._level and title.endswith(name))
            if is_above and is_site_name(name, heading, title):
                self._lines[first] = ""  # and so the places of other lines stay
            between = filter(None, self._lines[first + 1 : line_number])
            if name == heading and level < self._level and all(map(is_imprint, between)):  # again, below its date
                self._lines[first:line_number] = [""] * (line_number - first)
            self._banner = None

    def _in_content(self) -> bool:
        return self._around["main"] + self._around["article"] > 0

    def _page_title(self) -> str:
        return " ".join("".join(self._title).split())

    def _leave_out_links_above(self) -> None:
        """Forget the lines above the heading of the page if they hold nothing but links."""
        text = "\n".join(self._lines)
        if not self._row and not self._around["table"] and len(text) < _STEP_LETTERS:
            words = Counter(_linked_words(text))
            words.subtract(_linked_words(" ".join(name for name, _ in self._links)))
            if not any(count > 0 for count in words.values()):
                self._lines.clear()

    def _leave_out_steps(self, tag: str, first_line: int, first_link: int) -> None:
        """Forget the lines of a block that holds nothing but links to the pages before, behind and above."""
        links, lines = len(self._links) - first_link, len(self._lines) - first_line
        if not (self._last_step > first_link or (links and 0 < lines < 3 and _STEP_LABEL.match(self._lines[-1]))):
            return
        if self._keeps_steps or links > _STEP_LINKS or lines > 2 * _STEP_LINKS:
            return
        block = [line for line in self._lines[first_line:] if line]
        if _is_between_pages(block, self._links[first_link:], is_list=tag in ("table", *_LISTS)):
            del self._lines[first_line:]

    def _repeat_above(self, row: list[str]) -> None:
        """Add to a row the cells above that reach into it."""
        while len(row) in self._spans:
            more, text = self._spans.pop(len(row))
            if more > 1:
                self._spans[len(row)] = more - 1, text
            row.append(spend(text))

    def _end_row(self) -> None:
        row, self._row = self._row, None
        is_header, self._cells = self._cells == {"th"}, set()
        if not row:
            return
        self._repeat_above(row)
        line, rule = f"| {' | '.join(row)} |", f"|{' --- |' * len(row)}"
        if self._rows:
            more = max(0, len(row) - self._columns)  # the header is as wide as the widest row
            self._lines[self._header] += "  |" * more
            self._lines[self._header + 1] += " --- |" * more
            self._columns += more
            self._lines.append(line)
        else:  # Markdown has no table without a header: a first row of data is below an empty one
            self._header, self._columns = len(self._lines) + 1, len(row)
            self._lines += ["", line, rule] if is_header else ["", f"|{'  |' * len(row)}", rule, line]
        self._rows += 1
