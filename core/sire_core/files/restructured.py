"""reStructuredText as Markdown, by docutils; extensions of Sphinx are read without Sphinx."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from textwrap import indent
from typing import Any

from sire_core.documents.markdown_writing import code_block, list_item, plain_text, table
from sire_core.documents.titles import split_header
from sire_core.files.html import LONGEST_REPEATED
from sire_core.files.raised_text import lowered, raised, write_scripts

_LONGEST_PARAGRAPH = 20_000
"""Longer ones are read as they are written: docutils searches the rest of a paragraph for the end of each mark."""
_BLANK = re.compile(r"(\n[ \t]*\n)")
_DIRECTIVE = re.compile(
    r"^(?P<mark>[ \t]*(?:[-*+][ \t]+)?\.\. )(?P<name>[A-Za-z][\w:.+-]{0,60}?)[ ]?::(?=[ \t\n]|$)", re.MULTILINE
)
_OURS = "sire-directive"
_BACK = re.compile(rf"{_OURS}:: ([\w:.+-]+)")
_ROLE = re.compile(r":([A-Za-z][\w:.+-]{0,60}):`")
_TARGET = re.compile(r"(?P<title>.*\S)\s*<[^<>]*>", re.DOTALL)
_PROBLEM = re.compile(r"^(?::[\w:.+-]+:)?[`|*]*(.*?)[`|*]*_{0,2}$", re.DOTALL)
_CODE_ROLES = frozenset(
    "attr attribute c class cls command confval const cpp data dec envvar exc file func function kbd macro member meth "
    "method mod module obj option paramref program py regexp samp setting type var code".split()
)
_STANDARD = frozenset(
    "admonition attention caution class compound container csv-table danger date epigraph error figure footer "
    "header highlights hint image important line-block list-table math note parsed-literal pull-quote replace role "
    "rubric sectnum sidebar table tip title topic unicode warning".split()
)
"""Directives that docutils reads like Sphinx."""
_LEFT_OUT = frozenset(
    "contents toctree index currentmodule module py:module py:currentmodule highlight default-role tabularcolumns "
    "program include raw meta literalinclude sectionauthor moduleauthor codeauthor target-notes".split()
)
_UNREAD_ARGUMENTS = frozenset("only ifconfig rst-class cssclass grid hlist tab-set".split())
"""Directives whose argument is an instruction; what they hold is read."""
_LITERAL = frozenset(
    "code code-block sourcecode prompt console doctest testcode testoutput testsetup productionlist graphviz digraph "
    "mermaid uml plantuml ipython parsed-code plot jinja".split()
)
_LABELS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "versionremoved": "Removed in version",
    "deprecated": "Deprecated since version",
    "seealso": "See also:",
}
_ERROR = 3  # Level of the messages of docutils that come with text which is nowhere else
_ADORNMENT = re.compile(r"([=\-~^\"'*+#`])\1{2,}[ \t]*")  # Below a title
_UNDERLINED = re.compile(r"(\S.*)\n([^\w\s])\2+\s*")
_SIGNATURES = _CODE_ROLES | frozenset("cmdoption cppvar describe enum envvar exception object struct".split())
_NOTES = frozenset("attention caution danger error hint important note tip warning".split())


def read_rst(text: str) -> tuple[str, str]:
    """Title and Markdown of a text.

    The title is that of a header (`Title: ...` above the text, as enhancement proposals have it), of a field `:Title:`,
    or the first heading. Roles and links are the words that readers see, comments and directives without words are
    left out; other directives are their titles and their content.
    """
    title, header, text = split_header(text)
    try:
        document = _parsed("".join(map(_bounded, _BLANK.split(text))))
        writer = _Writer()
        body = writer.blocks(document)
        title = " ".join(_Writer().blocks(_parsed(title)).split()) if "`" in title else title
    except RecursionError:
        return title, f"{header}\n\n{text}" if header else text
    body = _BACK.sub(r"\1::", body)
    whole = f"{plain_text(header)}\n\n{body}" if header else body
    return title or writer.title, whole


def is_rst(text: str) -> bool:
    """True if a text has a section title and a directive of reStructuredText, and docutils is there to read it."""
    directives = {match["name"].lower() for match in _DIRECTIVE.finditer(text)}
    if directives.isdisjoint(_STANDARD | _LEFT_OUT | _LITERAL | {"image"}) or find_spec("docutils") is None:
        return False
    lines = text.splitlines()
    return any(
        title.strip() and _ADORNMENT.fullmatch(line) and len(line) >= len(title.rstrip())
        for title, line in pairwise(lines)
    )


def _bounded(paragraph: str) -> str:
    """A paragraph; a very long one as a literal block."""
    if len(paragraph) <= _LONGEST_PARAGRAPH:
        return paragraph
    margin = paragraph[: len(paragraph) - len(paragraph.lstrip())].rpartition("\n")[2]
    return f"{margin}::\n\n{indent(paragraph, '    ')}"


def _parsed(text: str) -> Any:
    """Parse a document; unknown directives and roles keep their words."""
    from docutils.core import publish_doctree
    from docutils.parsers.rst import directives, roles

    directives.register_directive(_OURS, _directive_class())
    for name in {role.lower() for role in _ROLE.findall(text)}:
        if name not in (
            "pep",
            "rfc",
            "sub",
            "sup",
            "subscript",
            "superscript",
            "math",
            "emphasis",
            "strong",
            "literal",
        ):
            roles.register_local_role(name, partial(_role, is_code=not _CODE_ROLES.isdisjoint(name.split(":"))))
    settings = {
        "file_insertion_enabled": False,
        "raw_enabled": False,
        "report_level": 3,
        "halt_level": 5,
        "warning_stream": False,
        "syntax_highlight": "none",
        "doctitle_xform": False,
        "smart_quotes": False,
        "_disable_config": True,
        "line_length_limit": 10 * _LONGEST_PARAGRAPH,
    }
    return publish_doctree(_DIRECTIVE.sub(_renamed, text), settings_overrides=settings)


def _renamed(match: re.Match[str]) -> str:
    """Rename a directive that docutils does not know, or knows fewer options of, to ours."""
    return match[0] if match["name"].lower() in _STANDARD else f"{match['mark']}{_OURS}:: {match['name']}"


def _role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any, is_code: bool, **__: Any
) -> tuple[list[Any], list[Any]]:
    """Words of a role: its title, else its target without abbreviation marks."""
    del name, lineno, inliner
    from docutils import nodes, utils

    plain = utils.unescape(text)
    titled = _TARGET.fullmatch(plain)
    words = (
        titled["title"]
        if titled
        else plain.lstrip("!").rpartition(".")[2]
        if plain.startswith("~")
        else plain.lstrip("!")
    )
    return [(nodes.literal if is_code and not titled else nodes.inline)(rawtext, words)], []


class _AnyOption(dict[str, Callable[[str], str]]):
    """Accepts options of every name."""

    def __missing__(self, name: str) -> Callable[[str], str]:
        return str


def _directive_class() -> type[Any]:
    from docutils import nodes
    from docutils.parsers.rst import Directive

    class Ours(Directive):  # type: ignore[misc, unused-ignore]
        """Any Sphinx directive; the first word of the argument is its name."""

        required_arguments, optional_arguments = 1, 1
        final_argument_whitespace = has_content = True
        option_spec = _AnyOption({"class": str})  # docutils reads options where there is one

        def run(self) -> list[Any]:
            name = self.arguments[0].lower()
            argument = self.arguments[1] if len(self.arguments) > 1 else ""
            if name in _LEFT_OUT:
                return []
            if name in _LITERAL:
                caption = [nodes.paragraph("", self.options["caption"])] if self.options.get("caption") else []
                code = "\n".join(self.content) or ("" if name.startswith(("code", "source")) else argument)
                return [*caption, nodes.literal_block(code, code)] if code else caption
            holder = nodes.container()
            words = "" if name in _UNREAD_ARGUMENTS else f"{_LABELS.get(name, '')} {argument}".strip()
            if name.startswith("auto") or not _SIGNATURES.isdisjoint(name.split(":")):
                holder += [nodes.paragraph("", "", nodes.literal(line, line.strip())) for line in argument.split("\n")]
            elif words:
                inline, problems = self.state.inline_text(words, self.lineno)
                holder += nodes.paragraph(words, "", *inline)
                holder += problems
            self.state.nested_parse(self.content, self.content_offset, holder)
            return [holder]

    return Ours


class _Writer:
    """Writes a document tree as Markdown; `title` is that of a field `Title`, else the first heading."""

    def __init__(self) -> None:
        self.title = ""
        self._depth = 0

    def blocks(self, node: Any) -> str:
        return "\n\n".join(filter(None, (self._block(child) for child in node.children)))

    def _block(self, node: Any) -> str:
        write = getattr(self, f"_{node.tagname}", None)
        if write is not None:
            return str(write(node))
        if node.tagname in _SILENT:
            return ""
        if node.tagname in _NOTES:
            return self._led(f"{node.tagname.capitalize()}:", node)
        if node.tagname in _PARAGRAPHS or not hasattr(node, "children") or not node.children:
            return plain_text(_inline(node))
        return self.blocks(node)

    def _led(self, words: str, node: Any) -> str:
        """Words before the text of a node; before a list or code on a line of their own."""
        text = self.blocks(node)
        first = next((child.tagname for child in node.children if child.tagname != "label"), "paragraph")
        return f"{words}{' ' if first in _PARAGRAPHS else chr(10) * 2}{text}"

    def _section(self, node: Any) -> str:
        self._depth += 1
        text = self.blocks(node)
        self._depth -= 1
        return text

    def _title(self, node: Any) -> str:
        words = " ".join(_inline(node).split())
        if node.parent.tagname != "section":
            return plain_text(words)
        self.title = self.title or words.replace("`", "")
        return f"{'#' * min(self._depth, 6)} {words}"

    def _literal_block(self, node: Any) -> str:
        return code_block(node.astext())

    _doctest_block = _math_block = _literal_block

    def _bullet_list(self, node: Any) -> str:
        return "\n".join(list_item(self.blocks(item), "-", 0) for item in node.children)

    def _enumerated_list(self, node: Any) -> str:
        lines = []
        for number, item in enumerate(node.children, start=int(node.get("start", 1))):
            kind = node.get("enumtype", "arabic")
            letter = chr(ord("a") + (number - 1) % 26)
            name = letter if kind == "loweralpha" else letter.upper() if kind == "upperalpha" else str(number)
            lines.append(list_item(self.blocks(item), f"{node.get('prefix', '')}{name}{node.get('suffix', '.')}", 0))
        return "\n".join(lines)

    def _field(self, node: Any) -> str:
        name, body = _inline(node.children[0]).strip(), self.blocks(node.children[1])
        if name.lower() == "title" and not self.title:
            self.title = " ".join(body.split())
        return self._led(f"{name}:", node.children[1]) if body else ""

    def _docinfo(self, node: Any) -> str:
        lines = [
            self._block(child)
            if child.tagname in ("field", "authors")
            else f"{child.tagname.capitalize()}: {_inline(child)}"
            for child in node.children
        ]
        return "\n".join(filter(None, lines))

    def _option_list_item(self, node: Any) -> str:
        options, meaning = node.children
        return self._led(plain_text(", ".join(option.astext() for option in options.children)), meaning)

    def _line_block(self, node: Any) -> str:
        return "\n".join(self._block(child) for child in node.children)

    def _footnote(self, node: Any) -> str:
        label = next((child.astext() for child in node.children if child.tagname == "label"), "")
        return self._led(f"[{label}]", node)

    _citation = _footnote

    def _image(self, node: Any) -> str:
        return plain_text(str(node.get("alt", "")))

    def _system_message(self, node: Any) -> str:
        """Text that docutils could not parse, such as a heading on the wrong level. Warnings repeat text."""
        if node["level"] < _ERROR:
            return ""
        unread = [child.astext() for child in node.children if child.tagname == "literal_block"]
        titles = [_UNDERLINED.fullmatch(text) for text in unread]
        return "\n\n".join(
            f"{'#' * min(self._depth + 1, 6)} {title[1]}" if title else plain_text(text)
            for title, text in zip(titles, unread, strict=True)
        )

    def _table(self, node: Any) -> str:
        spans: dict[int, tuple[int, str]] = {}  # by column, how many more rows have the cell above, and its text
        rows = [list(self._cells(row, spans)) for row in node.findall(lambda inner: inner.tagname == "row")]
        titles = [self._block(child) for child in node.children if child.tagname == "title"]
        header = any(True for _ in node.findall(lambda inner: inner.tagname == "thead"))
        return "\n\n".join(filter(None, [*titles, table(rows, header=header)]))

    def _cells(self, row: Any, spans: dict[int, tuple[int, str]]) -> Iterator[str]:
        column = 0
        for entry in [*row.children, None]:
            while spans.get(column, (0, ""))[0]:
                more, text = spans[column]
                spans[column] = more - 1, text
                column += 1
                yield text
            if entry is None:
                return
            wide, text = 1 + int(entry.get("morecols", 0)), self.blocks(entry)
            yield from [text, *[""] * (wide - 1)]
            below = text if len(text) <= LONGEST_REPEATED else ""
            for number in range(wide):
                spans[column + number] = int(entry.get("morerows", 0)), "" if number else below
            column += wide


_SILENT = frozenset(
    "comment target substitution_definition pending raw transition colspec label meta generated decoration".split()
)
_PARAGRAPHS = frozenset("paragraph term classifier line rubric caption attribution subtitle reference".split())


def _inline(node: Any) -> str:
    """Text of a paragraph, code between backticks."""
    parts: Sequence[Any] = node.children
    if not parts:
        return "" if node.tagname in _SILENT else node.astext() if node.tagname != "image" else str(node.get("alt", ""))
    return write_scripts("".join(_phrase(child) for child in parts))


def _phrase(node: Any) -> str:
    kind = node.tagname
    if kind == "#text":
        return str(node.astext())
    if kind == "literal":
        return f"`{node.astext()}`" if "`" not in node.astext() else str(node.astext())
    if kind in ("footnote_reference", "citation_reference"):
        return f"[{node.astext()}]"
    if kind in ("superscript", "subscript"):
        return (raised if kind == "superscript" else lowered)(_inline(node))
    if kind == "problematic":
        return _PROBLEM.sub(r"\1", node.astext())
    return _inline(node)
