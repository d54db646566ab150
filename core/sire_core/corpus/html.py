"""HTML as Markdown: headings, paragraphs, lists, tables and code; no navigation, scripts or hidden parts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from sire_core.corpus.html_parser import HIDDEN_ROLES, Landmarks, LinearParser, fence_around, without_comment_marks

__all__ = ["html_to_markdown"]

_SKIPPED = frozenset(
    "script style nav footer svg template noscript iframe button select textarea datalist dialog object canvas audio "
    "video".split()
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    "p div section article main header ul ol dl dt dd figure figcaption blockquote details summary address body "
    "form fieldset aside".split()
)
_CELLS = ("td", "th")
_GROUPS = ("tbody", "thead", "tfoot")
_ENDS_P = "pre table hr nav footer dialog center menu hgroup search".split()
_ENDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys([*_BLOCKS, *_HEADINGS, *_ENDS_P], ("p",)),
    "li": ("li", "p"),
    **dict.fromkeys(("dt", "dd"), ("dt", "dd", "p")),
    **dict.fromkeys(_CELLS, _CELLS),
    "tr": ("tr", *_CELLS),
    **dict.fromkeys(_GROUPS, (*_GROUPS, "tr", *_CELLS)),
    "option": ("option",),
}
"""Elements that end where one begins: their end tags may be left out."""
_BLOCK = ""
"""Stands for elements that no end tag of a word or phrase (`</b>`) ends."""
_BLOCK_TAGS = _SKIPPED | _ENDS.keys() | {"html", "head", "caption"}
_WALLS = {
    "p": ("table", "object", "template", "button"),
    "li": ("table", "object", "template", "ul", "ol"),
    **dict.fromkeys(("dt", "dd"), ("table", "object", "template", "dl")),
    **dict.fromkeys((*_CELLS, *_GROUPS, "tr", "table"), ("table",)),
}
"""Elements that a tag inside of them ends nothing outside of."""
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_NAMED_BY_BUTTONS = (*_HEADINGS, "summary", "dt")
_LISTS = ("ol", "ul")
_ITEM = re.compile(r"- |\d+\. ")
_SPACE = re.compile(r"[ \t\r\n\f]+")


def html_to_markdown(page: str) -> tuple[str, str]:
    """Convert a page.

    Left out are scripts, styles, controls, comments, what is hidden, and navigation: its elements, its roles, and
    classes and ids that say so, unless the page's content stands in their element, or nothing else would be left.
    Linear in the length of the page; broken HTML loses no text outside of these.
    """
    found, navigation = _read(page, frozenset())
    if navigation:
        title, text = _read(page, navigation)[0]
        return (title, text) if text else found
    return found


def _read(page: str, left_out: frozenset[int]) -> tuple[tuple[str, str], frozenset[int]]:
    """Title and Markdown of a page without some of its elements, and the elements that are navigation."""
    reader = _Reader(left_out)
    reader.read(page)
    return reader.finished(), reader.landmarks.navigation()


class _Reader(LinearParser):
    """Collects lines of Markdown while the parser goes through a page."""

    def __init__(self, left_out: frozenset[int]) -> None:
        super().__init__()
        self.landmarks = Landmarks()
        self._left_out = left_out
        self._number = 0  # of the elements that began
        self._lines: list[str] = []
        self._text: list[str] = []
        self._title: list[str] = []
        self._open: list[str] = []
        self._places: defaultdict[str, list[int]] = defaultdict(list)  # of the open elements, by name
        self._skips_from: int | None = None  # what is left out now is this open element, with what is inside
        self._prefix = ""
        self._lists: list[int] = []  # the number of the next item in each open list; 0 where they have none
        self._in_title = False
        self._code: list[str] | None = None
        self._row: list[str] | None = None
        self._rows = 0
        self._cells: set[str] = set()  # what the cells with text in this row are

    def finished(self) -> tuple[str, str]:
        """Title and Markdown."""
        self._close(0)
        self._flush()
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip()
        return " ".join("".join(self._title).split()), text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        ended = [place for name in _ENDS.get(tag, ()) if (place := self._place(name)) is not None]
        if ended:
            self._close(min(ended))
        attributes = dict(attrs)
        self._number += 1
        if tag in _VOID:
            self._void(tag, attributes)
            return
        if self._skips_from is None:
            if self._number in self._left_out or self._hides(tag, attributes):
                self._skips_from = len(self._open)
            else:
                self.landmarks.begin(len(self._open), self._number, tag, attributes)
                self._begin(tag, attributes)
        for name in (tag, _BLOCK)[: 1 + (tag in _BLOCK_TAGS)]:
            self._places[name].append(len(self._open))
        self._open.append(tag)

    def _place(self, tag: str) -> int | None:
        """Where among the open elements the innermost of a name is that a tag here may end."""
        place = self._places[tag][-1] if self._places[tag] else None
        if place is None or place == self._skips_from:  # no broken table keeps what is left out from ending
            return place
        walls = _WALLS.get(tag, ("table", "object", "template") if tag in _BLOCK_TAGS else (_BLOCK,))
        return None if any(self._places[wall] and self._places[wall][-1] > place for wall in walls) else place

    def _close(self, place: int) -> None:
        """End an open element and all inside of it."""
        while len(self._open) > place:
            tag = self._open.pop()
            for name in (tag, _BLOCK)[: 1 + (tag in _BLOCK_TAGS)]:
                self._places[name].pop()
            if self._skips_from is None:
                self._end(tag)
                if tag in _LISTS:
                    del self._lists[-1:]
            elif self._skips_from == len(self._open):
                self._skips_from = None
        self.landmarks.close(place)

    def _begin(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        """Begin an element that is read."""
        if tag in _LISTS:
            start = attributes.get("start") or "1"
            self._lists.append(int(start) if tag == "ol" and start.isdigit() and len(start) < 9 else int(tag == "ol"))
        if tag == "title":
            self._in_title = True
        elif tag == "code" and self._code is None:
            self._text.append("`")
        elif tag in _CELLS:
            self._flush()
            self._row = [] if self._row is None and self._places["table"] else self._row
        elif tag in ("pre", "li", "table", "tr") or tag in _HEADINGS:
            self._flush()
            if tag == "pre":
                self._code = [] if self._code is None else self._code
            elif tag in ("table", "tr"):
                self._end_row()  # of the table around this one
                self._rows, self._row = (0, None) if tag == "table" or not self._places["table"] else (self._rows, [])
            else:
                self._prefix = self._label() if tag == "li" else "#" * _HEADINGS[tag] + " "
        elif tag in _BLOCKS:
            self._break()

    def _label(self) -> str:
        """What stands in front of the next item of the innermost list."""
        number = self._lists[-1] if self._lists else 0
        if not number:
            return "- "
        self._lists[-1] += 1
        return f"{number}. "

    def handle_endtag(self, tag: str) -> None:
        """End an element; one that nobody closes (`<nav><p>..</nav>`) ends with the one around it."""
        place = self._place(tag)
        if place is not None:
            self._close(place)
        elif self._skips_from is None and (tag in _HEADINGS or tag in _BLOCKS):
            self._break()

    def _end(self, tag: str) -> None:
        """End an element that was read."""
        if tag == "title":
            self._in_title = False
        elif tag == "code" and self._code is None:
            self._text.append("`")
        elif tag in _CELLS and self._row is not None:
            self._row.append(self._taken().replace("|", "\\|"))
            if self._row[-1]:
                self._cells.add("th" if self._places["thead"] else tag)
        elif tag == "pre" and self._code is not None:
            code = "".join(self._code).strip("\n")
            fence = fence_around(code)
            self._lines += ["", fence, code, fence, ""]
            self._code = None
        elif tag in ("tr", "table"):
            self._end_row()
            if tag == "table":
                self._rows = 0
                self._lines.append("")
        elif tag in _HEADINGS or tag in ("li", *_CELLS):
            self._flush()
            self._prefix = ""  # an empty one marks nothing behind it
        elif tag in _BLOCKS:
            self._break()

    def handle_data(self, data: str) -> None:
        """Take in text."""
        if self._in_title:
            self._title.append(data)
        elif self._skips_from is None:
            (self._text if self._code is None else self._code).append(data)

    def _void(self, tag: str, attributes: dict[str, str | None]) -> None:
        if self._skips_from is not None:
            return
        if tag == "br":
            if self._code is not None:
                self._code.append("\n")
            else:
                self._text.append(" ")
        elif tag == "img" and attributes.get("alt") and attributes.get("src"):
            inline = str(attributes["src"]).lstrip()[:5].lower() == "data:"
            self._text.append(str(attributes["alt"]) if inline else f"![{attributes['alt']}]({attributes['src']})")
        elif tag == "hr":
            self._flush()

    def _hides(self, tag: str, attributes: Mapping[str, str | None]) -> bool:
        if tag == "button" and any(self._places[name] for name in _NAMED_BY_BUTTONS):
            # what opens a part of a page is its name, unless it stands behind one
            return any(letter.isalpha() for text in self._text[-20:] for letter in text)
        if tag == "aside" and not self.landmarks.in_content:  # in the content it is a note
            return True
        if tag in _SKIPPED or (tag == "label" and self._places["form"]):
            return True
        if attributes.get("role") != "tabpanel" and ("hidden" in attributes or attributes.get("aria-hidden") == "true"):
            return True  # but one of several panels shows at a time
        return attributes.get("role") in HIDDEN_ROLES

    def _taken(self) -> str:
        text = _SPACE.sub(" ", "".join(self._text)).strip()
        self._text.clear()
        return without_comment_marks(text)

    def _break(self) -> None:
        """Keep apart what stands in two blocks; those in a cell are on one line."""
        if self._row is None:
            self._flush()
        else:
            self._text.append(" ")

    def _flush(self) -> None:
        text = self._taken()
        if text:
            if not (_ITEM.match(self._prefix) and self._lines and _ITEM.match(self._lines[-1])):
                self._lines.append("")
            self._lines.append(self._prefix + text)
            self._prefix = ""

    def _end_row(self) -> None:
        row, self._row = self._row, None
        is_header, self._cells = self._cells == {"th"}, set()
        if not row:
            return
        line, rule = f"| {' | '.join(row)} |", f"|{' --- |' * len(row)}"
        if self._rows:
            self._lines.append(line)
        else:  # Markdown has no table without a header: a first row of data is below an empty one
            self._lines += ["", line, rule] if is_header else ["", f"|{'  |' * len(row)}", rule, line]
        self._rows += 1
