"""Markdown of passages as HTML that is safe to show: foreign text adds no tag, no image and no script."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sire_core.documents.block_reading import read_blocks
from sire_core.documents.blocks import ROW, row_cells
from sire_core.documents.markdown_writing import ELEMENTS
from sire_core.explore.highlight import escaped, marked, plain_text, printable
from sire_core.explore.name_kinds import NAME_KINDS
from sire_core.explore.templates import markup

if TYPE_CHECKING:
    from markdown_it.token import Token
    from markupsafe import Markup

_MAX_MARKDOWN_LETTERS = 200_000  # Letters above which a text is shown as it is written
_WRAPPED = 60  # Width from which a line counts as wrapped: its break is a space. Breaks of shorter lines are kept
_SHOWN_TAG = re.compile(rf"</?({ELEMENTS})\b.*>", re.DOTALL | re.IGNORECASE)
_ALT = re.compile(r"""\balt\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_TABLE = '<div class="wide" tabindex="0" role="group" aria-label="Table"><table>\n'
"""A wide table scrolls, also by keys."""
_HIGHLIGHTS = {"": "{}", "word": "<mark>{}</mark>", "name": '<mark class="name">{}</mark>'}
_KIND_MARK = '<mark class="name is-{kind}" title="{words}">{}</mark>'


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A heading of a text: its level from 1, its words, and the id of its element."""

    level: int
    text: str
    id: str


def markdown_html(
    text: str,
    question: str = "",
    names: Sequence[str] | Mapping[str, str] = (),
    target: Callable[[str], str] | None = None,
    outline: list[OutlineEntry] | None = None,
) -> Markup:
    """Render a text, with the words of a question and the names on its path highlighted.

    Headings become bold lines, because they must not mix with those of the page; an image is replaced by its
    description, tags of HTML by their text; links to web addresses remain links, and so do others for which `target`
    knows an address. A very long text is shown as it is written.

    Args:
        text: Markdown, or plain text.
        question: Its content words are highlighted.
        names: Names to highlight, or what they are (keys of `NAME_KINDS`) by name.
        target: Returns the address of a relative link; empty if it leads nowhere.
        outline: Takes the headings of the text, which get ids, after those of texts before it on the page.
    """
    if len(text) > _MAX_MARKDOWN_LETTERS:
        return markup(f'<div class="text plain">{highlighted(text, question, names)}</div>')
    environment = {
        "question": question,
        "names": names,
        "target": target or (lambda _: ""),
        "is_link": [],
        "outline": outline,
    }
    rendered = _parser().render(widened_tables(printable(text)), environment)
    return markup(f'<div class="text">{rendered}</div>')


def highlighted(text: str, question: str = "", names: Sequence[str] | Mapping[str, str] = ()) -> Markup:
    """Escape a text, with its highlights."""

    def way(piece: str, highlight: str) -> str:
        kind = names.get(piece, "") if highlight == "name" and isinstance(names, Mapping) else ""
        return (
            _KIND_MARK.replace("{kind}", kind).replace("{words}", NAME_KINDS[kind]) if kind else _HIGHLIGHTS[highlight]
        )

    return markup("".join(way(*piece).replace("{}", escaped(piece[0])) for piece in marked(text, question, names)))


def widened_tables(text: str) -> str:
    """Pad headers of tables to their widest row: Markdown drops cells that the header has no column for."""
    widest = 0
    for block in reversed(read_blocks(text) if "|" in text else ()):
        span = text[block.start : block.end]
        if block.kind != ROW or "\n" not in span:  # a header has a rule below it
            widest = max(widest, len(row_cells(text, block))) if block.kind == ROW else 0
            continue
        lacking, widest = widest - len(row_cells(text, block)), 0
        if lacking > 0:
            padded = zip(span.split("\n"), ("  |", " --- |"), strict=False)
            lines = (f"{line.rstrip().removesuffix('|').rstrip()} |{cell * lacking}" for line, cell in padded)
            text = text[: block.start] + "\n".join(lines) + text[block.end :]
    return text


@lru_cache(1)
def _parser() -> Any:
    from markdown_it import MarkdownIt

    # Tags are read as parts of lines, not as blocks: the text between them is Markdown, too.
    parser = MarkdownIt("commonmark", {"html": True}).enable("table").disable(["code", "html_block"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign] # noqa: ARG005 - _link_open decides
    rules = {"text": _text, "image": _image, "link_open": _link_open, "link_close": _link_close}
    rules |= {"table_open": lambda *_: _TABLE, "table_close": lambda *_: "</table></div>\n", "th_open": _cell_open}
    for name, rule in {**rules, "html_inline": _tag, "softbreak": _softbreak}.items():
        parser.add_render_rule(name, rule)
    parser.add_render_rule("heading_open", _heading)
    parser.add_render_rule("heading_close", lambda *_: "</p>\n")
    return parser


def _heading(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, env: Any) -> str:
    level, anchor = int(tokens[index].tag[1:]), ""
    if env["outline"] is not None:
        entry = OutlineEntry(level, plain_text(tokens[index + 1].content), f"heading-{len(env['outline']) + 1}")
        env["outline"].append(entry)
        anchor = f' id="{entry.id}"'
    return f'<p class="heading h{level}"{anchor}>'


def _cell_open(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """The cell of a head; one without words is no heading of its column."""
    if not tokens[index + 1].content.strip():
        tokens[index].tag = tokens[index + 2].tag = "td"
    return str(renderer.renderToken(tokens, index, options, env))


def _text(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, env: Any) -> str:
    return highlighted(tokens[index].content, env["question"], env["names"])


def _image(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    return escaped(tokens[index].content)


def _link_open(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    address = str(token.attrs["href"])
    is_web = address.lower().startswith(("http://", "https://"))
    if is_web:
        token.attrs |= {"rel": "noopener noreferrer nofollow", "target": "_blank"}
    else:
        token.attrs["href"] = env["target"](address)
    env["is_link"].append(bool(token.attrs["href"]))
    return str(renderer.renderToken(tokens, index, options, env)) if token.attrs["href"] else ""


def _link_close(_renderer: Any, _tokens: Sequence[Token], _index: int, _options: Any, env: Any) -> str:
    return "</a>" if env["is_link"].pop() else ""


def _tag(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    content = tokens[index].content
    tag = _SHOWN_TAG.fullmatch(content)
    name = tag.group(1).lower() if tag else ""
    if content.startswith("<!--"):
        return ""
    if not name:
        return escaped(content)
    alt = _ALT.search(content) if name == "img" else None
    return escaped(alt.group(1) or alt.group(2) or "") if alt else "<br>" if name == "br" else ""


def _softbreak(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    """A space where the next word did not fit on the line, else a break."""
    width = 0
    for token in reversed(tokens[:index]):
        if token.type in ("softbreak", "hardbreak"):
            break
        width += len(token.content) + len(str(token.attrs.get("href", "")))
    following = tokens[index + 1].content.split(" ", 1)[0] if index + 1 < len(tokens) else ""
    return "\n" if width + 1 + len(following) > _WRAPPED else "<br>\n"
