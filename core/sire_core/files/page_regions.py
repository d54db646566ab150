"""Navigation and content of a web page: which of its elements are menus, side bars and footers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from sire_core.files.formulas import Element
from sire_core.files.page_tree import BLOCK_TAGS, EDGES, events, place

_NAVIGATION = frozenset(
    "nav navbar navigation navmenu breadcrumb breadcrumbs sidebar sidenav subnav topnav toc menu submenu pagination "
    "skip skiplink headerlink cookie cookies sphinxsidebar sphinxsidebarwrapper footer".split()
)
_REGION_CLASSES = frozenset(
    "main site page post posts primary secondary tertiary top bottom side left right global local header mobile "
    "desktop link links list inner outer container wrapper wrap bar bars button btn toggle toggler brand collapse tree "
    "tabs pills md wy bd pst sphinx theme docs doc site app js bs mdc fixed sticky default light dark inverse vertical "
    "horizontal static dropdown context hamburger user account social sub mega overlay drawer panel widget area banner "
    "consent notice law info popup modal message next prev previous to of on this in chapters elems relations".split()
)
"""Words that may join a navigation word in a class name without changing its meaning (`main-nav`)."""
_ALL_NAVIGATION = _NAVIGATION | _REGION_CLASSES
_BACK = "backref"  # In the class of a link around a heading, back to the table of contents
_LAYOUTS = frozenset(
    "no not for with without has have is one two three hide hides hidden show shows open opened closed layout grid "
    "columns column content contents body".split()
)
"""Words that make a class name about the page, though it ends in a navigation word (`has-sidebar`)."""
_TAGS = frozenset("div ul ol a section header p aside".split())
_EDGE_ROLES = ("navigation", "banner", "contentinfo", "search")
_SENTENCE_END = re.compile(
    r"""(?:[^\W\d_]|[\])"'\u2019\u201d])[.!?\u2026]["'\u2019\u201d)\]]*\s|[.!?\u2026]["'\u2019\u201d)\]]*\s*$"""
    "|[\u3002\uff01\uff1f]"
)
_SHORTEST_SENTENCE, _LONG_BLOCK = 30, 150
"""Letters outside of links of a sentence with its full stop, and of a block that is running text without one."""
_IMPRINT = re.compile(
    r"\W*(?:(?:created|built|generated|powered|made) (?:using|with|by)\b|(?:last )?(?:updated|modified)(?: on\b|: \d)"
    r"|(?:version [\w.-]{1,20}\s+)?last (?:updated|modified) \d"
    r"|creative commons [^\]]{0,60}\]\()"
    r"|.{0,60}(?:\u00a9|\bcopyright\b.{0,9}\d{4}|all rights reserved|\buses? cookies\b"
    r"|\b(?:page|site|document) (?:was )?(?:last )?(?:updated|modified)\b|\blicensed under\b)",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST_IMPRINT = 400  # Letters of a copyright notice or a note about cookies; they are no text of the page
_PART = re.compile(r"[_-]+")
_RANKS = {"main": 3, "article": 2, "h1": 1}
_BETWEEN_NAMES = frozenset([*"-|:\u00b7\u00bb\u2013\u2014", "::"])
_LONGEST_TITLE = 300


def is_imprint(text: str) -> bool:
    """True if a block is a notice about the page: its date, rights, licence or program, or cookies."""
    return len(text) < _LONGEST_IMPRINT and _IMPRINT.match(text) is not None


def is_site_name(name: str, heading: str, title: str) -> bool:
    """True if the title of a page consists of the name of its site and the heading below that, in either order."""
    if not name or not heading or len(title) > _LONGEST_TITLE:
        return False
    name, heading, title = name.casefold(), heading.casefold(), title.casefold()
    if title.endswith(f" {name}"):  # `Locks - Queue`
        *page, separator = title[: -len(name)].split() or [""]
        return separator in _BETWEEN_NAMES and f" {heading}".endswith(f" {' '.join(page)}")
    separator, *page = title.removeprefix(f"{name} ").split() or [""]  # `Queue - Locks`
    return separator in _BETWEEN_NAMES and " ".join(page) == heading and title.startswith(f"{name} ")


def is_navigation(tag: str, attributes: Mapping[str, str | None], *, in_content: bool = False) -> bool:
    """True if the classes or the id of an element mark it as navigation."""
    if tag not in _TAGS:
        return False
    names = (attributes.get("class") or "").lower().split()
    is_place = tag == "a" and "href" not in attributes  # a place that links lead to
    if not is_place and not (in_content and (tag == "section" or "section" in names)):
        names += (attributes.get("id") or "").lower().split()
    for name in names:
        parts = [part for part in _PART.split(name) if part]
        if not _NAVIGATION.isdisjoint(parts) and (
            (tag == "a" and _BACK not in parts)
            or _ALL_NAVIGATION.issuperset(parts)
            or (parts[-1] in _NAVIGATION and parts[-1] != "footer" and _LAYOUTS.isdisjoint(parts))
        ):
            return True
    return False


class _Region:
    """An element that looks like navigation; letters of its sentences and code, and of its links and imprints."""

    __slots__ = ("by_name", "element", "linked", "prose", "rank")

    def __init__(self, element: Element, *, by_name: bool) -> None:
        self.element, self.by_name = element, by_name
        self.rank = self.prose = self.linked = 0  # rank: of the best landmark inside

    def is_text(self) -> bool:
        """True if it holds running text rather than links."""
        return self.element.name != "a" and self.prose >= _SHORTEST_SENTENCE and self.prose > self.linked


def _is_sentence(text: str, own: int, linked: int) -> bool:
    """True if a block is running text, by its letters outside of links and in them."""
    if own < max(linked, _SHORTEST_SENTENCE):
        return False
    return own >= _LONG_BLOCK or _SENTENCE_END.search(text) is not None


def find_navigation(root: Element, elements: Iterable[Element]) -> tuple[frozenset[Element], frozenset[Element]]:
    """Find navigation among the elements that look like it by their tag, role, class or id; without classes and ids.

    Those with running text are content. Of those that only a class or id marks, the ones with the page's content are
    kept, too. That is what the best landmark says that a page has: `main`, else `article`, else its first heading (and
    articles and headings inside of a better one count as much as that one).
    """
    regions = _Regions()
    if not any(_is_edge(one) or (one.attributes and is_navigation(one.name, one.attributes)) for one in elements):
        return frozenset(), frozenset()
    for node, ends in events(root):
        if isinstance(node, str):
            regions.add(node)
        elif ends:
            regions.close(node)
        else:
            regions.open(node)
    links = [region for region in regions.found if not region.is_text()]
    by_all = (region for region in links if not (region.by_name and region.rank and region.rank >= regions.best))
    return frozenset(one.element for one in by_all), frozenset(one.element for one in links if not one.by_name)


def _is_edge(element: Element) -> bool:
    return element.name in EDGES or element.attributes.get("role") in _EDGE_ROLES


class _Regions:
    """Elements that look like navigation, and what is in them; `best` is the rank of the page's best landmark."""

    def __init__(self) -> None:
        self.found: list[_Region] = []
        self.best = 0
        self._open: list[_Region] = []
        self._around: Counter[str] = Counter()  # what the open elements are
        self._run: list[tuple[str, bool]] = []  # text since a block began or ended, and whether it is in a link

    def open(self, element: Element) -> None:
        """Note that an element begins."""
        tag, attributes = element.name, element.attributes
        if tag in BLOCK_TAGS:
            self._end_run()
        in_content = self._around["main"] + self._around["article"] > 0
        at_edge = _is_edge(element) and (
            attributes.get("role") in _EDGE_ROLES
            or (
                not (tag == "aside" and in_content)  # in the content it is a note
                and not (tag == "footer" and self._around["blockquote"])
            )  # there it names who said it
        )
        if at_edge or is_navigation(tag, attributes, in_content=in_content):
            self._open.append(_Region(element, by_name=not at_edge))
            self.found.append(self._open[-1])
        self._around[place(element)] += 1
        if place(element) not in _RANKS:
            return
        rank = max(rank for name, rank in _RANKS.items() if self._around[name])
        self.best = max(self.best, rank)
        for region in reversed(self._open):
            if region.rank >= rank:  # and so do all around it
                break
            region.rank = rank

    def close(self, element: Element) -> None:
        """Note that an element ends."""
        self._around[place(element)] -= 1
        if element.name in BLOCK_TAGS:
            self._end_run(is_code=element.name == "pre")
        if self._open and self._open[-1].element is element:
            region = self._open.pop()
            if region.is_text() and self._open:
                self._open[-1].prose += region.prose
                self._open[-1].linked += region.linked

    def add(self, text: str) -> None:
        if self._open and not self._around["title"]:
            self._run.append((text, self._around["link"] > 0))

    def _end_run(self, *, is_code: bool = False) -> None:
        """A block begins or ends: decide whether the text before is a sentence."""
        if not self._run:
            return
        text = "".join(text for text, _ in self._run)
        letters = len("".join(text.split()))
        linked = sum(len("".join(text.split())) for text, is_linked in self._run if is_linked)
        self._run.clear()
        if not self._open:
            return
        if not is_code and is_imprint(text):
            self._open[-1].linked += letters
        elif is_code or _is_sentence(text, letters - linked, linked):
            self._open[-1].prose += letters
        elif "://" not in text:  # navigation does not spell addresses
            self._open[-1].linked += linked
