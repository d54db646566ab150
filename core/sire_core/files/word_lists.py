"""Styles and lists of Word files: which paragraphs are headings, and the numbers of items as Word counts them."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any, NamedTuple

from sire_core.files.conversion import whole_number
from sire_core.files.office_package import OFFICE, WORDPROCESSING
from sire_core.files.raised_text import lowered, raised

HEADING = re.compile(r"heading ?([1-9])", re.IGNORECASE)
RAISED_OR_LOWERED = {"superscript": raised, "subscript": lowered}


class _Level(NamedTuple):
    """A level of a numbered list: form of its numbers, the text around them, the first number."""

    form: str
    text: str
    start: int


class WordStyle(NamedTuple):
    """Style of a paragraph: level of a heading (0 for none), list and level in it, and whether it is of a title."""

    heading: int = 0
    number: str = ""
    level: int = 0
    contents: bool = False
    is_title: bool = False


class WordLists:
    """Numbers of the items of lists, as Word counts them."""

    def __init__(self, part: Any) -> None:
        self._levels: dict[str, dict[int, _Level]] = {}
        self._counted_as: dict[str, str] = {}
        self._counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        numbering = next((r.target_part for r in part.rels.values() if r.reltype == f"{OFFICE}/numbering"), None)
        if numbering is None:
            return
        root = numbering.element
        shared = {
            abstract.get(f"{WORDPROCESSING}abstractNumId"): {
                level.get(f"{WORDPROCESSING}ilvl"): level for level in abstract.iterfind(f"{WORDPROCESSING}lvl")
            }
            for abstract in root.iterfind(f"{WORDPROCESSING}abstractNum")
        }
        for number in root.iterfind(f"{WORDPROCESSING}num"):
            name, abstract = number.get(f"{WORDPROCESSING}numId"), value_of(number, "abstractNumId")
            levels = {
                int(key): _level(level) for key, level in shared.get(abstract, {}).items() if whole_number(key, -1) >= 0
            }
            overrides = number.findall(f"{WORDPROCESSING}lvlOverride")
            for override in overrides:
                depth = small_number(override.get(f"{WORDPROCESSING}ilvl", ""), 0)
                changed = override.find(f"{WORDPROCESSING}lvl")
                level = levels.get(depth, _Level("decimal", "%1.", 1)) if changed is None else _level(changed)
                levels[depth] = level._replace(start=whole_number(value_of(override, "startOverride"), level.start))
            self._levels[name] = levels
            self._counted_as[name] = f"num {name}" if overrides else f"abstract {abstract}"

    def label(self, number: str, depth: int) -> str:
        """The label of the next item of a list at a level."""
        levels = self._levels.get(number, {})
        level = levels.get(depth)
        if level is None or level.form == "bullet":
            return "-"
        counts = self._counts[self._counted_as[number]]
        counts[depth] = counts.get(depth, level.start - 1) + 1
        for deeper in [other for other in counts if other > depth]:
            del counts[deeper]
        if level.form == "none":
            return ""

        def number_of(match: re.Match[str]) -> str:
            other = int(match[1]) - 1
            form = levels.get(other, level)
            return _number_text(counts.get(other, form.start), form.form)

        return re.sub(r"%([1-9])", number_of, level.text).strip()


def _level(element: Any) -> _Level:
    form, start = value_of(element, "numFmt") or "decimal", whole_number(value_of(element, "start"), 1)
    return _Level(form, value_of(element, "lvlText"), start)


def _number_text(number: int, form: str) -> str:
    if form.endswith("Letter") and number > 0:
        letter = chr(ord("a") + (number - 1) % 26) * (1 + (number - 1) // 26)
        return letter.upper() if form.startswith("upper") else letter
    if form.endswith("Roman") and 0 < number < 4000:
        roman = ""
        for value, letters in zip(
            (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
            "m cm d cd c xc l xl x ix v iv i".split(),
            strict=True,
        ):
            roman += letters * (number // value)
            number %= value
        return roman.upper() if form.startswith("upper") else roman
    return f"{number:02d}" if form == "decimalZero" else str(number)


def paragraph_styles(part: Any) -> dict[str, WordStyle]:
    """Styles of paragraphs by their id."""
    elements = {
        style.get(f"{WORDPROCESSING}styleId", ""): style
        for style in part.styles.element.iterfind(f"{WORDPROCESSING}style")
    }
    based_on = {name: value_of(element, "basedOn") for name, element in elements.items()}
    style_of = {name: _own_style(element) for name, element in elements.items()}
    styles: dict[str, WordStyle] = {}
    for style_id in elements:
        name, chain = style_id, list[str]()
        while name in style_of and name not in styles and name not in chain:
            chain.append(name)
            name = based_on[name]
        style = styles.get(name, WordStyle())
        for derived in reversed(chain):
            style = styles[derived] = _over(style_of[derived], style)
    return styles


def outline_heading(level: str) -> int:
    """Level of a heading by the level in the outline, from 0; 0 for text."""
    heading = whole_number(level, 9) + 1
    return heading if heading < 10 else 0


def _own_style(element: Any) -> WordStyle:
    """Properties that a style sets itself."""
    label = value_of(element, "name")
    match_ = HEADING.fullmatch(label)
    properties = element.find(f"{WORDPROCESSING}pPr")
    outline = value_of(properties, "outlineLvl")
    if match_:
        level = int(match_[1])
    elif label.lower() == "title":
        level = 1
    else:
        level = outline_heading(outline)
    numbers = None if properties is None else properties.find(f"{WORDPROCESSING}numPr")
    number, depth = (
        ("", 0) if numbers is None else (value_of(numbers, "numId"), small_number(value_of(numbers, "ilvl"), 0))
    )
    return WordStyle(level, number, depth, label.lower().startswith("toc "), label.lower() == "title")


def _over(style: WordStyle, base: WordStyle) -> WordStyle:
    """A style with what the one that it is based on adds."""
    number, level = (style.number, style.level) if style.number else (base.number, base.level)
    is_title = style.is_title or (base.is_title and not style.heading)
    return WordStyle(style.heading or base.heading, number, level, style.contents or base.contents, is_title)


def raised_styles(part: Any) -> dict[str, str]:
    """Styles of letters that are raised or lowered, by their ids."""
    return {
        style.get(f"{WORDPROCESSING}styleId", ""): position
        for style in part.styles.element.iterfind(f"{WORDPROCESSING}style[@{WORDPROCESSING}type='character']")
        if (position := value_of(style.find(f"{WORDPROCESSING}rPr"), "vertAlign")) in RAISED_OR_LOWERED
    }


def value_of(parent: Any, name: str) -> str:
    """The `val` of a child of an element; empty if either is missing."""
    element = None if parent is None else parent.find(f"{WORDPROCESSING}{name}")
    return "" if element is None else str(element.get(f"{WORDPROCESSING}val", ""))


def small_number(number: str, other: int) -> int:
    """A number of at most 62, as many columns as a table may have; levels are below 9."""
    return min(whole_number(number, other), 62)
