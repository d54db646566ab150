"""Formulas of MathML and Office as one line of text: `x^2`, `(a+b)/c`, `√(2x)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

_TOKEN = re.compile(r"[+\-\u2212]?(?:\d[\d.,]*|[^\W\d_]+['\u2032]*)|\W|\([^()]*\)")
_FORMULA_WORD = re.compile(r"\w{2,}")
_INVISIBLE = str.maketrans("\u2061\u2062\u2063\u2064", "    ")
_DEPTH = 60  # Deeper formulas are their letters


@dataclass(eq=False, slots=True)
class Element:
    """An element of HTML or MathML: its name, its attributes, and elements and text in it."""

    name: str
    attributes: Mapping[str, str | None]
    children: list[Any]


_Node = Union[Element, str]


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
        apart = (
            row[-1:].isalnum() and part[:1].isalnum() and (_FORMULA_WORD.match(part) or _FORMULA_WORD.search(row[-2:]))
        )
        row += f" {part}" if apart else part
    return row


def mathml(element: Element) -> str:
    """One line for a formula of MathML."""
    return " ".join(_mathml(element, 0).translate(_INVISIBLE).split())


def _mathml(node: _Node, depth: int) -> str:
    if isinstance(node, str):
        return " ".join(node.split())
    name, children = node.name, node.children
    if name in _UNSEEN:
        return ""
    if depth > _DEPTH:
        return "".join(_letters(node))
    if name in _LEAVES:
        return "".join(_mathml(child, depth + 1) or (" " if child else "") for child in children)
    inner = [_mathml(child, depth + 1) for child in children if not isinstance(child, str) or child.strip()]
    inner = ["", ""] if name == "mspace" else inner
    write = _MATHML.get(name)
    if write is not None and len(inner) == write[0]:
        return write[1](*inner)
    return _MATHML_ROWS.get(name, joined)(inner)


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
_MATHML_ROWS: dict[str, Callable[[list[str]], str]] = {
    "mspace": " ".join,
    "msqrt": lambda inner: root(joined(inner)),
    "semantics": lambda inner: joined(inner[:1]),
    "mfenced": lambda inner: f"({', '.join(inner)})",
    "mtable": lambda inner: f"({'; '.join(inner)})",
    **dict.fromkeys(("mtr", "mlabeledtr"), ", ".join),
}
_UNSEEN = frozenset("annotation annotation-xml mphantom maligngroup malignmark none mprescripts".split())
_LEAVES = frozenset("mi mn mo mtext ms".split())


def _letters(element: Element) -> list[str]:
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
    """One line for a formula of Office, or a part of one; `words` gives the text of a run."""
    return " ".join(_office(element, words, 0).translate(_INVISIBLE).split())


@dataclass(frozen=True, slots=True)
class _OfficeElement:
    """An element of a formula of Office, whose parts are read as text."""

    element: Any
    words: Callable[[Any], str]
    depth: int

    def texts(self, name: str) -> list[str]:
        parts = self.element.iterchildren(f"{_MATH}{name}")
        return [_office(part, self.words, self.depth + 1) for part in parts]

    def text(self, name: str) -> str:
        """Text of the first part of a name; empty if there is none."""
        return "".join(self.texts(name)[:1])

    def sign(self, name: str, default: str) -> str:
        for properties in self.element:
            if isinstance(properties.tag, str) and properties.tag.endswith("Pr"):
                setting = properties.find(f"{_MATH}{name}")
                if setting is not None:
                    return str(setting.get(f"{_MATH}val", ""))
        return default


def _office(element: Any, words: Callable[[Any], str], depth: int) -> str:
    tag = element.tag
    if not isinstance(tag, str) or tag.endswith("Pr"):
        return ""
    if not tag.startswith(_MATH) or tag in (f"{_MATH}r", f"{_MATH}t") or depth > _DEPTH:
        return words(element)
    write = _OFFICE.get(tag[len(_MATH) :])
    if write is not None:
        return write(_OfficeElement(element, words, depth))
    return joined([_office(child, words, depth + 1) for child in element])


def _sum(e: _OfficeElement) -> str:
    """A sum, product or integral with its bounds."""
    return f"{scripts(e.sign('chr', chr(0x222B)), e.text('sub'), e.text('sup'))} {e.text('e')}"


def _brackets(e: _OfficeElement) -> str:
    return f"{e.sign('begChr', '(')}{e.sign('sepChr', '|').join(e.texts('e'))}{e.sign('endChr', ')')}"


_OFFICE: dict[str, Callable[[_OfficeElement], str]] = {
    "f": lambda e: fraction(e.text("num"), e.text("den")),
    **dict.fromkeys(("sSup", "sSub", "sSubSup", "sPre"), lambda e: scripts(e.text("e"), e.text("sub"), e.text("sup"))),
    "nary": _sum,
    "limLow": lambda e: scripts(e.text("e"), below=e.text("lim")),
    "limUpp": lambda e: scripts(e.text("e"), above=e.text("lim")),
    "rad": lambda e: root(e.text("e"), e.text("deg")),
    "d": _brackets,
    "acc": lambda e: f"{e.text('e')}{e.sign('chr', chr(0x302))}",
    "m": lambda e: f"({'; '.join(e.texts('mr'))})",
    "eqArr": lambda e: "; ".join(e.texts("e")),
    "mr": lambda e: ", ".join(e.texts("e")),
    "func": lambda e: f"{e.text('fName')} {e.text('e')}",
}
"""Write an element."""
