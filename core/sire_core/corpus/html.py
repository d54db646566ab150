"""HTML as Markdown: headings, paragraphs, lists, tables and code; no navigation, scripts or hidden parts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

__all__ = ["html_to_markdown"]

_SKIPPED = frozenset(
    "script style nav footer aside form svg template noscript iframe button select dialog object canvas audio "
    "video".split()
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    "p div section article main header ul ol dl dt dd figure figcaption blockquote details summary address body".split()
)
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_NAVIGATION = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|breadcrumbs?|sidebar|toc|menu|pagination|skip-link|headerlink|cookie)"
    r"(?:$|[\s_-])",
    re.IGNORECASE,
)
_SPACE = re.compile(r"[ \t\r\n\f]+")


def html_to_markdown(page: str) -> tuple[str, str]:
    """Convert a page.

    Left out are scripts, styles, forms, comments, what is hidden, and navigation: its elements, its roles, and classes
    and ids that say so. Linear in the length of the page; broken HTML loses no text outside of these.

    Returns:
        The title of the page (empty when it has none) and its body as Markdown.
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.finished()


class _Reader(HTMLParser):
    """Collects lines of Markdown while the parser goes through a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._lines: list[str] = []
        self._text: list[str] = []
        self._title: list[str] = []
        self._skipped: list[str] = []
        self._prefix = ""
        self._in_title = False
        self._code: list[str] | None = None
        self._row: list[str] | None = None
        self._rows = 0

    def parse_html_declaration(self, i: int) -> int:
        """Read `<!...>`; what is in square brackets there is a comment to HTML, where the parser would raise."""
        if self.rawdata.startswith("<![", i):
            return self.parse_bogus_comment(i)
        return super().parse_html_declaration(i)

    def finished(self) -> tuple[str, str]:
        """Title and Markdown."""
        self._flush()
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip()
        return " ".join("".join(self._title).split()), text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        if tag in _VOID:
            self._void(tag, dict(attrs))
            return
        if self._skipped or self._hides(tag, dict(attrs)):
            self._skipped.append(tag)
            return
        if tag == "title":
            self._in_title = True
        elif tag == "code" and self._code is None:
            self._text.append("`")
        elif tag in ("td", "th"):
            self._text.clear()
        elif tag in ("pre", "li", "table", "tr") or tag in _HEADINGS or (tag in _BLOCKS and self._row is None):
            self._flush()
            self._begin(tag)

    def _begin(self, tag: str) -> None:
        """Begin what stands on lines of its own."""
        if tag == "pre":
            self._code = []
        elif tag == "table":
            self._rows = 0
        elif tag == "tr":
            self._row = []
        elif tag == "li" or tag in _HEADINGS:
            self._prefix = "- " if tag == "li" else "#" * _HEADINGS[tag] + " "

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        if self._skipped:
            # An element that nobody closes (`<nav><p>..</nav>`) ends with the one around it.
            if tag in self._skipped:
                while self._skipped.pop() != tag:
                    pass
            return
        if tag == "title":
            self._in_title = False
        elif tag == "code" and self._code is None:
            self._text.append("`")
        elif tag in ("td", "th") and self._row is not None:
            self._row.append(self._taken().replace("|", "\\|"))
        else:
            self._end(tag)

    def _end(self, tag: str) -> None:
        """End what stands on lines of its own."""
        if tag == "pre" and self._code is not None:
            self._lines += ["", "```", "".join(self._code).strip("\n"), "```", ""]
            self._code = None
        elif tag == "tr":
            self._end_row()
        elif tag == "table":
            self._lines.append("")
        elif tag in _HEADINGS or tag == "li" or (tag in _BLOCKS and self._row is None):
            self._flush()

    def handle_data(self, data: str) -> None:
        """Take in text."""
        if self._in_title:
            self._title.append(data)
        elif self._code is not None and not self._skipped:
            self._code.append(data)
        elif not self._skipped:
            self._text.append(data)

    def _void(self, tag: str, attributes: dict[str, str | None]) -> None:
        if self._skipped:
            return
        if tag == "br":
            if self._code is not None:
                self._code.append("\n")
            else:
                self._text.append(" ")
        elif tag == "img" and attributes.get("alt") and attributes.get("src"):
            self._text.append(f"![{attributes['alt']}]({attributes['src']})")
        elif tag == "hr":
            self._flush()

    def _hides(self, tag: str, attributes: dict[str, str | None]) -> bool:
        if tag in _SKIPPED or "hidden" in attributes or attributes.get("aria-hidden") == "true":
            return True
        if attributes.get("role") in ("navigation", "banner", "contentinfo", "search"):
            return True
        if tag in ("body", "main", "article", "html"):
            return False
        marks = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
        return tag in ("div", "ul", "ol", "a", "section", "header", "p") and bool(_NAVIGATION.search(marks))

    def _taken(self) -> str:
        text = _SPACE.sub(" ", "".join(self._text)).strip()
        self._text.clear()
        return text

    def _flush(self) -> None:
        text = self._taken()
        if text:
            if not self._prefix.startswith("- ") or not self._lines or not self._lines[-1].startswith("- "):
                self._lines.append("")
            self._lines.append(self._prefix + text)
            self._prefix = ""

    def _end_row(self) -> None:
        if not self._row:
            self._row = None
            return
        if self._rows == 0:
            self._lines.append("")
        self._lines.append(f"| {' | '.join(self._row)} |")
        if self._rows == 0:
            self._lines.append(f"|{' --- |' * len(self._row)}")
        self._rows += 1
        self._row = None
