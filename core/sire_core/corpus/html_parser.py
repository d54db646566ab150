"""Pages of HTML: read in linear time, what of them is navigation or content, and what Markdown would read as marks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser

__all__ = ["HIDDEN_ROLES", "Landmarks", "LinearParser", "fence_around", "is_navigation", "without_comment_marks"]

_NAVIGATION = frozenset(
    "nav navbar navigation navmenu breadcrumb breadcrumbs sidebar sidenav subnav topnav toc menu submenu pagination "
    "skip skiplink headerlink cookie cookies sphinxsidebar sphinxsidebarwrapper".split()
)
_KINDS = frozenset(
    "main site page post posts primary secondary tertiary top bottom side left right global local header footer mobile "
    "desktop link links list inner outer container wrapper wrap bar bars button btn toggle toggler brand collapse tree "
    "tabs pills md wy bd pst sphinx theme docs doc site app js bs mdc fixed sticky default light dark inverse vertical "
    "horizontal static dropdown context hamburger user account social sub mega overlay drawer panel widget area banner "
    "consent notice law info popup modal message next prev previous to of on this in chapters elems".split()
)
"""What stands beside a word of navigation in the name of a class without making it another thing (`main-nav`)."""
_ALL_NAVIGATION = _NAVIGATION | _KINDS
_LAYOUTS = frozenset(
    "no not for with without has have is one two three hide hides hidden show shows open opened closed layout grid "
    "columns column content contents body".split()
)
"""What makes the name of a class that ends in a word of navigation one of the page (`has-sidebar`)."""
_TAGS = frozenset("div ul ol a section header p aside".split())
HIDDEN_ROLES = ("navigation", "banner", "contentinfo", "search")
_PART = re.compile(r"[_-]+")
_RANKS = {"main": 3, "article": 2, "h1": 1}
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})", re.MULTILINE)
_CODE_OR_COMMENT = re.compile(r"(`{1,3})(?!`)[^`\n]{1,500}\1(?!`)|<!--")


def fence_around(code: str) -> str:
    """What may stand around code in Markdown: no line of it begins with as much."""
    marks = _FENCE.findall(code)
    if not any(mark[0] == "`" for mark in marks):
        return "```"
    # no line of backticks ends such a fence, however long it is
    return "~" * (1 + max((len(mark) for mark in marks if mark[0] == "~"), default=2))


def without_comment_marks(text: str) -> str:
    """Keep a written `<!--` from beginning a comment in Markdown; code between backticks keeps it as it is."""
    if "<!--" not in text:
        return text
    return _CODE_OR_COMMENT.sub(lambda match: match.group() if match.group(1) else "&lt;!--", text)


def is_navigation(tag: str, attributes: Mapping[str, str | None], *, in_content: bool = False) -> bool:
    """Whether the classes or the id of an element say that it is navigation."""
    if tag not in _TAGS:
        return False
    names = (attributes.get("class") or "").lower().split()
    if not (in_content and (tag == "section" or "section" in names)):
        names += (attributes.get("id") or "").lower().split()
    for name in names:
        parts = [part for part in _PART.split(name) if part]
        if not _NAVIGATION.isdisjoint(parts) and (
            tag == "a"  # holds no content
            or _ALL_NAVIGATION.issuperset(parts)
            or (parts[-1] in _NAVIGATION and _LAYOUTS.isdisjoint(parts))
        ):
            return True
    return False


class Landmarks:
    """Which elements look like navigation, and which of these hold the page's content: these are none.

    Content is what the best landmark says that a page has: `main`, else `article`, else its first heading (and
    articles and headings inside of a better one count as much as that one).
    """

    def __init__(self) -> None:
        self._best = 0
        self._ranks: dict[int, int] = {}  # of the best landmark in each element that looks like navigation
        self._doubtful: list[tuple[int, int]] = []  # the open ones of these: place and number
        self._landmarks: list[tuple[int, int]] = []  # the open ones: place and rank, the best last

    @property
    def in_content(self) -> bool:
        """Whether `main` or `article` is open."""
        return bool(self._landmarks) and self._landmarks[-1][1] >= _RANKS["article"]

    def begin(self, place: int, number: int, tag: str, attributes: Mapping[str, str | None]) -> None:
        """Note an element that is read, by its place among the open ones and its number in the page."""
        if is_navigation(tag, attributes, in_content=self.in_content):
            self._ranks[number] = 0
            self._doubtful.append((place, number))
        rank = _RANKS.get("main" if attributes.get("role") == "main" else tag, 0)
        if not rank:
            return
        rank = max(rank, self._landmarks[-1][1] if self._landmarks else 0)
        self._best = max(self._best, rank)
        self._landmarks.append((place, rank))
        for _, doubtful in reversed(self._doubtful):
            if self._ranks[doubtful] >= rank:  # and so do all around it
                break
            self._ranks[doubtful] = rank

    def close(self, place: int) -> None:
        """Forget the elements that are no longer open."""
        for opened in (self._doubtful, self._landmarks):
            while opened and opened[-1][0] >= place:
                opened.pop()

    def navigation(self) -> frozenset[int]:
        """Numbers of the elements that are navigation."""
        return frozenset(number for number, rank in self._ranks.items() if not rank or rank < self._best)


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
