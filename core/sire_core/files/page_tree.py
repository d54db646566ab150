"""Pages of HTML as trees of elements, with the tags that authors leave out, and without what is hidden."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from html import escape
from html.parser import HTMLParser

from sire_core.files.formulas import Element, mathml
from sire_core.files.xml_entities import without_entities

HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(
    "p div section article main header ul ol dl dt dd figure figcaption blockquote details summary address body "
    "form fieldset aside nav footer".split()
)
_HEADING_CLASS = re.compile(r"(?:\S+\s)*(?:section|sect|chapter|part)-?([1-5])-(?:title|heading)(?:\s|\Z)")
"""Classes of elements that are headings without being called so: `section2-title`, below the title of the page."""
_MAX_HEADING_CHARS = 200
_NONE: Mapping[str, str | None] = {}
_TEXT_BLOCKS = BLOCKS.union(HEADINGS)
CELLS = ("td", "th")
EDGES = ("nav", "footer", "aside")  # Elements that stand at the edges of a page, unless they are a part of its content
STRAY = "stray"  # Name of an element without content for an end tag of a block that nothing begins
_HIDDEN = "template"  # Name of an element without content for a block that is not shown
_RAW_END = re.compile(r"</(script|style|textarea|title|noscript|iframe|xmp)[\s/][^<>]*>", re.IGNORECASE)
"""The end of an element whose content is no markup; browsers do not mind what stands behind its name."""
_SHORT_COMMENT = re.compile(r"<!--?>|<!--->|--!>")
_CDATA = re.compile(r"<!\[CDATA\[((?:[^\]]|\](?!\]>)){0,100000})\]\]>")
_DOCTYPE_START = re.compile(r"[^<]*(?:<(?!!DOCTYPE)[?!][^<>]*>[^<]*){0,9}<!DOCTYPE[^<>\[]*\[", re.IGNORECASE)
_LONG_NUMBER = re.compile(r"&#([0-9]{20,})")
_UNENDED = re.compile(
    r"""<(?!
      [a-zA-Z][^\s<>/]*(?:\s+[^\s<>"'=/]+(?:\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s<>"'=]+))?)*\s*/?>
      |/[a-zA-Z][^<>]*> |!--[^<]*?--> |!(?!--)[^<>]*> |\?[^<>]*>
    )""",
    re.VERBOSE,
)
_UNENDED_MARKS = 8  # Number of unended marks after which the rest of the page is taken as text
_SKIPPED = frozenset(
    "script style svg template noscript iframe button select textarea datalist dialog object canvas audio video".split()
)
_GROUPS = ("tbody", "thead", "tfoot")
_ENDS_P = "pre table hr dialog center menu hgroup search".split()
_CLOSED_BY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys([*BLOCKS, *HEADINGS, *_ENDS_P], ("p",)),
    "li": ("li", "p"),
    **dict.fromkeys(("dt", "dd"), ("dt", "dd", "p")),
    **dict.fromkeys(CELLS, CELLS),
    "tr": ("tr", *CELLS),
    **dict.fromkeys(_GROUPS, (*_GROUPS, "tr", *CELLS)),
    "option": ("option",),
    **dict.fromkeys(("rt", "rp"), ("rt", "rp")),
    "rb": ("rt", "rp", "rb"),
}
"""Elements that a start tag closes implicitly."""
_BLOCK = ""  # Stands for block elements, which end tags of inline elements (`</b>`) do not close
BLOCK_TAGS = (_SKIPPED | _CLOSED_BY.keys() | {"html", "head", "caption"}) - {"rt", "rp", "rb"}
_WALLS = {
    "p": ("table", "object", "template", "button"),
    "li": ("table", "object", "template", "ul", "ol"),
    **dict.fromkeys(("dt", "dd"), ("table", "object", "template", "dl")),
    **dict.fromkeys((*CELLS, *_GROUPS, "tr", "table"), ("table",)),
}
"""Elements whose inner tags close nothing outside of them."""
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_MAY_HIDE = _SKIPPED | {"label", "rp"}  # Elements that may not be shown without an attribute that says so
_NAMED_BY_BUTTONS = (*HEADINGS, "summary", "dt")


class _UnendedError(Exception):
    """A page has too many marks without an end, each of which costs a scan of the `rest`, from the last of them on."""

    def __init__(self, rest: str) -> None:
        super().__init__("too many marks without an end")
        self.rest = rest


class LinearParser(HTMLParser):
    """Parses a page in linear time: after a few marks without an end, further ones are text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._unended: int | None = 0

    def read(self, page: str) -> None:
        """Read a whole page."""
        # Python refuses to parse numbers of thousands of digits, such as `&#999..9;`.
        page = _LONG_NUMBER.sub(lambda match: f"&#{match.group(1).lstrip('0')[:9] or '0'}", page)
        try:
            self.feed(page)
            self.close()
        except _UnendedError as error:
            self.reset()
            self._unended = None
            self.feed(_UNENDED.sub("&lt;", error.rest))  # all marks of the rest have ends
            self.close()

    def updatepos(self, i: int, j: int) -> int:  # noqa: ARG002 (of the base class)
        """Count no lines, which takes a tenth of the time."""
        return j

    def parse_starttag(self, i: int) -> int:
        """Read `<p ..>`."""
        return self._count_unended(i, super().parse_starttag(i))

    def parse_endtag(self, i: int) -> int:
        """Read `</p>`."""
        return self._count_unended(i, super().parse_endtag(i))

    def parse_comment(self, i: int, report: bool = True) -> int:
        """Read `<!-- .. -->`."""
        return self._count_unended(i, super().parse_comment(i, report))

    def parse_pi(self, i: int) -> int:
        """Read `<?..>`."""
        return self._count_unended(i, super().parse_pi(i))

    def parse_html_declaration(self, i: int) -> int:
        """Read `<!...>`; a declaration in square brackets is a comment in HTML, where the base class would raise."""
        if self.rawdata.startswith("<![", i):
            return self._count_unended(i, self.parse_bogus_comment(i))
        return self._count_unended(i, super().parse_html_declaration(i))

    def _count_unended(self, start: int, end: int) -> int:
        """Count the marks without an end, since the parser searches the rest of the page for each."""
        if end < 0 and self._unended is not None:
            self._unended += 1
            if self._unended > _UNENDED_MARKS:
                raise _UnendedError(self.rawdata[start:])
        return end


def parse_page(page: str) -> tuple[Element, list[Element]]:
    """Parse a page in linear time: its root, which has no name, and all elements in order, those not shown, too."""
    tree = _Tree()
    tree.read(_prepared(page))
    for element in tree.elements:
        if element.name in ("div", "p") and element.attributes and (level := _heading_level(element)):
            element.name = f"h{level}"
    return tree.root, tree.elements


def _heading_level(element: Element) -> int:
    """Level of a short line that its role or class calls the heading of a section; 0 for others."""
    level = element.attributes.get("aria-level") if element.attributes.get("role") == "heading" else None
    by_class = _HEADING_CLASS.match(element.attributes.get("class") or "")
    tag = f"h{int(by_class[1]) + 1 if by_class else level}"
    return HEADINGS[tag] if tag in HEADINGS and _is_short_line(element) else 0


def _is_short_line(element: Element) -> bool:
    """True if an element has some words and no blocks."""
    nodes, letters = list(element.children), 0
    while nodes and letters <= _MAX_HEADING_CHARS:
        node = nodes.pop()
        if isinstance(node, str):
            letters += len(node.strip())
        elif node.name in BLOCK_TAGS:
            return False
        else:
            nodes += node.children
    return 0 < letters <= _MAX_HEADING_CHARS


def place(element: Element) -> str:
    """Name an element as those inside see it: `main` for the content of the page, `link`, or its tag."""
    if not element.attributes:
        return element.name
    is_link = element.name == "a" and element.attributes.get("href")
    return "link" if is_link else "main" if element.attributes.get("role") == "main" else element.name


def events(root: Element, left_out: Collection[Element] = ()) -> Iterator[tuple[Element | str, bool]]:
    """Yield the texts and elements below a root, elements again with True where they end; some are left out."""
    stack: list[Element | str | None] = [root]  # None for the end of the innermost open one
    inside: list[Element] = []
    while stack:
        node = stack.pop()
        if node is None:
            yield inside.pop(), True
        elif isinstance(node, str):
            yield node, False
        elif node not in left_out:
            yield node, False
            inside.append(node)
            stack.append(None)
            stack += reversed(node.children)


def _prepared(page: str) -> str:
    """A page with marks that the parser of the standard library reads otherwise than browsers."""
    if _DOCTYPE_START.match(page):
        page = without_entities(page, is_xml=False)
    if "<![CDATA[" in page and page.lstrip("\ufeff \t\r\n").startswith("<?xml"):
        page = _CDATA.sub(lambda match: escape(match[1]), page)
    if "<!-" in page:
        page = _SHORT_COMMENT.sub(lambda match: "-->" if match[0] == "--!>" else "", page)
    return _RAW_END.sub(r"</\1>", page)


class _Tree(LinearParser):
    """Collects elements as browsers do, as far as it matters for text."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {}, [])
        self.elements: list[Element] = []
        self._open = [self.root]
        self._depths: defaultdict[str, list[int]] = defaultdict(list)  # of the open elements, by name
        self._hidden_from = 0  # depth of the open element that is not shown, with what is inside; 0 for none
        self._letters: list[str] = []  # that are shown since a block of text began or ended

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add an element, and end those that it ends."""
        is_block = tag in BLOCK_TAGS
        name = tag if is_block and not self._depths["math"] else self._local_name(tag)
        ended = [
            depth for other in _CLOSED_BY.get(tag, ()) if self._depths[other] and (depth := self._open_depth(other))
        ]
        if ended:
            self._close(min(ended))
        element = Element(name, dict(attrs) if attrs else _NONE, [])
        self.elements.append(element)
        is_void = tag in _VOID
        may_hide = not is_void and self._hidden_from == 0 and (attrs or tag in _MAY_HIDE)
        is_shown = not (may_hide and self._hides(tag, element.attributes))
        if is_shown or is_block:
            self._open[-1].children.append(element if is_shown else Element(_HIDDEN, _NONE, []))
        if tag in _TEXT_BLOCKS:
            self._letters.clear()
        if not is_void:
            self._hidden_from = self._hidden_from if is_shown else len(self._open)
            self._depths[name].append(len(self._open))
            if is_block:
                self._depths[_BLOCK].append(len(self._open))
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        """End an element, and unclosed ones inside of it."""
        if depth := self._open_depth(self._local_name(tag)):
            self._close(depth)
        elif tag in _TEXT_BLOCKS:
            self._open[-1].children.append(Element(STRAY, _NONE, []))

    def handle_data(self, data: str) -> None:
        """Add text."""
        self._open[-1].children.append(data)
        if not self._hidden_from:
            self._letters.append(data)

    def close(self) -> None:
        """End the page, and a formula that has no end."""
        super().close()
        self._end_formula()

    def _local_name(self, tag: str) -> str:
        """The name of an element, in a formula without its namespace; a block ends the formula that it stands in."""
        if self._depths["math"] and tag in BLOCK_TAGS:
            self._end_formula()
        name = tag.rpartition(":")[2] if ":" in tag else tag
        return name if name == "math" or self._depths["math"] else tag

    def _end_formula(self) -> None:
        if self._depths["math"]:
            self._close(self._depths["math"][0])

    def _open_depth(self, name: str) -> int:
        """Depth of the innermost open element of a name that a tag here may close; 0 for none."""
        depth = self._depths[name][-1] if self._depths[name] else 0
        # no broken table keeps what is not shown, or may be left out, from ending
        if not depth or depth == self._hidden_from or name in EDGES:
            return depth
        walls = _WALLS.get(name, ("table", "object", "template") if name in BLOCK_TAGS else (_BLOCK, "math"))
        return 0 if any(self._depths[wall] and self._depths[wall][-1] > depth for wall in walls) else depth

    def _close(self, depth: int) -> None:
        """Close an open element and all inside of it."""
        while len(self._open) > depth:
            element = self._open.pop()
            name = element.name
            self._depths[name].pop()
            if name in BLOCK_TAGS:
                self._depths[_BLOCK].pop()
            if name in _TEXT_BLOCKS:
                self._letters.clear()
            elif name == "math":
                self._open[-1].children[-1:] = [mathml(element)]
            if self._hidden_from == len(self._open):
                self._hidden_from = 0

    def _hides(self, tag: str, attributes: Mapping[str, str | None]) -> bool:
        if self._depths["math"] or tag == "math":
            return False
        if tag == "button" and any(self._depths[name] for name in _NAMED_BY_BUTTONS):
            # what opens a part of a page is its name, unless it stands behind one
            return any(letter.isalpha() for text in self._letters[-20:] for letter in text)
        if tag in _SKIPPED or tag == "rp" or (tag == "label" and self._depths["form"]):
            return True
        # one of several panels shows at a time
        return attributes.get("role") != "tabpanel" and (
            "hidden" in attributes or attributes.get("aria-hidden") == "true"
        )
