"""`LinearParser`: the standard library's parser of HTML, in time linear in the page, whatever it holds."""

from __future__ import annotations

import re
from html.parser import HTMLParser

__all__ = ["LinearParser"]

_LONG_NUMBER = re.compile(r"&#([0-9]{20,})")
_UNENDED = re.compile(
    r"""<(?!
      [a-zA-Z][^\s<>/]*(?:\s+[^\s<>"'=/]+(?:\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s<>"'=]+))?)*\s*/?>
      |/[a-zA-Z][^<>]*> |!--[^<]*?--> |!(?!--)[^<>]*> |\?[^<>]*>
    )""",
    re.VERBOSE,
)

_UNENDED_MARKS = 8
"""So many marks of a page may have no end before those behind them are taken for text."""


class _UnendedError(Exception):
    """A page has too many marks without an end, and each of them costs a look at all that follows.

    Attributes:
        rest: The page from the last of them on.
    """

    def __init__(self, rest: str) -> None:
        super().__init__("too many marks without an end")
        self.rest = rest


class LinearParser(HTMLParser):
    """Reads a page once; of marks without an end, some are looked for in all that follows, the others are text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._unended: int | None = 0

    def read(self, page: str) -> None:
        """Read a whole page."""
        page = _without_long_numbers(page)
        try:
            self.feed(page)
            self.close()
        except _UnendedError as error:
            self.reset()
            self._unended = None
            self.feed(_without_unended(error.rest))  # all marks of the rest have ends
            self.close()

    def parse_starttag(self, i: int) -> int:
        """Read `<p ..>`."""
        return self._ended(i, super().parse_starttag(i))

    def parse_endtag(self, i: int) -> int:
        """Read `</p>`."""
        return self._ended(i, super().parse_endtag(i))

    def parse_comment(self, i: int, report: bool = True) -> int:
        """Read `<!-- .. -->`."""
        return self._ended(i, super().parse_comment(i, report))

    def parse_pi(self, i: int) -> int:
        """Read `<?..>`."""
        return self._ended(i, super().parse_pi(i))

    def parse_html_declaration(self, i: int) -> int:
        """Read `<!...>`; what is in square brackets there is a comment to HTML, where the parser would raise."""
        if self.rawdata.startswith("<![", i):
            return self._ended(i, self.parse_bogus_comment(i))
        return self._ended(i, super().parse_html_declaration(i))

    def _ended(self, start: int, end: int) -> int:
        """Count the marks without an end: the parser looks for the end of each in all the rest of the page."""
        if end < 0 and self._unended is not None:
            self._unended += 1
            if self._unended > _UNENDED_MARKS:
                raise _UnendedError(self.rawdata[start:])
        return end


def _without_unended(page: str) -> str:
    """Make text of each `<` whose mark does not end before the next `<`. Linear: no mark is looked at twice."""
    return _UNENDED.sub("&lt;", page)


def _without_long_numbers(page: str) -> str:
    """Shorten `&#999..9;`: Python refuses to read numbers of thousands of digits, and no character has one."""
    return _LONG_NUMBER.sub(lambda match: f"&#{match.group(1).lstrip('0')[:9] or '0'}", page)
