"""Formulas of MathML and Office as one line of text: `x^2`, `(a+b)/c`, `√(2x)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Union

_TOKEN = re.compile(r"[+\-\u2212]?(?:\d[\d.,]*|[^\W\d_]+['\u2032]*)|\W|\([^()]*\)")
_WORD = re.compile(r"\w{2,}")
_INVISIBLE = str.maketrans("\u2061\u2062\u2063\u2064", "    ")
_DEPTH = 60
"""Deeper formulas are their letters."""


class MathElement(NamedTuple):
    """An element of MathML: its name, its attributes, and elements and text in it."""

    name: str
    attributes: Mapping[str, str | None]
    children: list[Any]


_Node = Union[MathElement, str]


def grouped(words: str) -> str:
    """Put brackets around an operand of several parts."""
    words = words.strip()
    return words if _TOKEN.fullmatch(words) else f"({words})"


def fraction(above: str, below: str) -> str:
    """Write one formula over another."""
    return f"{grouped(above)}/{grouped(below)}"


def scripts(base: str, below: str = "", above: str = "") -> str:
    """Write a base with an index, an exponent, or the bounds of a sum."""
    below, above = below.strip(), above.strip()
    return f"{base}{f'_{grouped(below)}' if below else ''}{f'^{grouped(above)}' if above else ''}"


def root(radicand: str, degree: str = "") -> str:
    """Write a root; of degree 2 unless another is named."""
    return f"{f'{degree.strip()}' if degree.strip() else ''}\u221a{grouped(radicand)}"


def joined(parts: Sequence[str]) -> str:
    """Write parts in a row, with a blank where two words would become one."""
    row = ""
    for part in parts:
        apart = row[-1:].isalnum() and part[:1].isalnum() and (_WORD.match(part) or _WORD.search(row[-2:]))
        row += f" {part}" if apart else part
    return row


def mathml(element: MathElement) -> str:
    """One line for a formula of MathML."""
    return " ".join(_mathml(element, 0).translate(_INVISIBLE).split())


def _mathml(node: _Node, depth: int) -> str:
    if isinstance(node, str):
        return " ".join(node.split())
    name, _, children = node
    if depth > _DEPTH:
        return "".join(_letters(node))
    if name in ("annotation", "annotation-xml", "mphantom", "maligngroup", "malignmark", "none", "mprescripts"):
        return ""
    if name in ("mi", "mn", "mo", "mtext", "ms"):
        return "".join(_mathml(child, depth + 1) or (" " if child else "") for child in children)
    if name == "mspace":
        return " "
    inner = [_mathml(child, depth + 1) for child in children if not isinstance(child, str) or child.strip()]
    write = _MATHML.get(name)
    if write is not None and len(inner) == write[0]:
        return write[1](*inner)
    if name == "msqrt":
        return root(joined(inner))
    if name in ("mtable", "mtr", "mlabeledtr", "mfenced"):
        words = ("; " if name == "mtable" else ", ").join(inner)
        return words if name in ("mtr", "mlabeledtr") else f"({words})"
    return joined(inner[:1] if name == "semantics" else inner)


def _over(base: str, above: str) -> str:
    return f"{base}{above}" if len(above.strip()) == 1 and not above.strip().isalnum() else scripts(base, above=above)


_MATHML: dict[str, tuple[int, Callable[..., str]]] = {
    "mfrac": (2, fraction),
    "msup": (2, lambda base, above: scripts(base, above=above)),
    "msub": (2, scripts),
    "msubsup": (3, scripts),
    "munderover": (3, scripts),
    "munder": (2, scripts),
    "mover": (2, _over),
    "mroot": (2, root),
}
"""Elements with so many parts, and how they are written."""


def _letters(element: MathElement) -> list[str]:
    """Text of an element that is nested too deeply."""
    letters: list[str] = []
    stack: list[_Node] = [element]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            letters.append(" ".join(node.split()))
        else:
            stack += reversed(node.children)
    return letters


_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"


def office_math(element: Any, words: Callable[[Any], str]) -> str:
    """One line for a formula of Office.

    Args:
        element: The formula, or a part of one.
        words: Text of a run.
    """
    return " ".join(_office(element, words, 0).translate(_INVISIBLE).split())


def _office(element: Any, words: Callable[[Any], str], depth: int) -> str:
    tag = element.tag
    if not isinstance(tag, str) or tag.endswith("Pr") or tag == f"{_MATH}ctrlPr":
        return ""
    if not tag.startswith(_MATH) or tag in (f"{_MATH}r", f"{_MATH}t") or depth > _DEPTH:
        return words(element)

    def part(name: str) -> str:
        found = element.find(f"{_MATH}{name}")
        return "" if found is None else _office(found, words, depth + 1)

    def parts(name: str) -> list[str]:
        return [_office(child, words, depth + 1) for child in element.iterchildren(f"{_MATH}{name}")]

    name = tag[len(_MATH) :]
    if name == "f":
        return fraction(part("num"), part("den"))
    if name in ("sSup", "sSub", "sSubSup", "sPre", "nary"):
        base = _setting(element, "chr", "\u222b") if name == "nary" else part("e")
        written = scripts(base, part("sub"), part("sup"))
        return joined([f"{written} ", part("e")]) if name == "nary" else written
    if name in ("limLow", "limUpp"):
        return scripts(part("e"), **{"below" if name == "limLow" else "above": part("lim")})
    if name == "rad":
        return root(part("e"), part("deg"))
    if name == "d":
        inner = _setting(element, "sepChr", "|").join(parts("e"))
        return f"{_setting(element, 'begChr', '(')}{inner}{_setting(element, 'endChr', ')')}"
    if name == "acc":
        return f"{part('e')}{_setting(element, 'chr', chr(0x302))}"
    if name in ("m", "eqArr"):
        rows = parts("mr" if name == "m" else "e")
        return f"({'; '.join(rows)})" if name == "m" else "; ".join(rows)
    if name == "mr":
        return ", ".join(parts("e"))
    if name == "func":
        return joined([f"{part('fName')} ", part("e")])
    return joined([_office(child, words, depth + 1) for child in element])


def _setting(element: Any, name: str, default: str) -> str:
    """A character that the properties of an element name."""
    for properties in element:
        if isinstance(properties.tag, str) and properties.tag.endswith("Pr"):
            setting = properties.find(f"{_MATH}{name}")
            if setting is not None:
                return str(setting.get(f"{_MATH}val", ""))
    return default
