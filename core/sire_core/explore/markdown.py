"""Markdown of passages as HTML that is safe to show: foreign text adds no tag, no image and no script."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sire_core.explore.highlight import escaped, marked, printable

if TYPE_CHECKING:
    from markdown_it.token import Token

_LONGEST = 200_000
"""Letters above which a text is shown as it is written."""
_MARKS = {"": "{}", "word": "<mark>{}</mark>", "name": '<mark class="name">{}</mark>'}


def markdown_html(text: str, question: str = "", names: Sequence[str] = ()) -> str:
    """Render a text, with the words of a question and the names on its path highlighted.

    Headings become bold lines, because they must not mix with those of the page; an image is replaced by its
    description; only links to web addresses remain links. Without markdown-it-py, which the extras `cli` and `explore`
    bring, the text is shown as it is written.

    Args:
        text: Markdown, or plain text.
        question: Its content words are highlighted.
        names: Names to highlight.
    """
    if len(text) > _LONGEST or find_spec("markdown_it") is None:
        return f'<div class="text plain">{highlighted(text, question, names)}</div>'
    rendered = _parser().render(printable(text), {"question": question, "names": names})
    return f'<div class="text">{rendered}</div>'


def highlighted(text: str, question: str = "", names: Sequence[str] = ()) -> str:
    """Escape a text, with its highlights."""
    return "".join(_MARKS[kind].replace("{}", escaped(piece)) for piece, kind in marked(text, question, names))


@lru_cache(1)
def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table").disable("code")
    parser.validateLink = lambda url: url.lower().startswith(("http://", "https://"))  # type: ignore[method-assign]

    def text(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, env: Any) -> str:
        return highlighted(tokens[index].content, env["question"], env["names"])

    def image(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
        return escaped(tokens[index].content)

    def link(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        tokens[index].attrSet("rel", "noopener noreferrer nofollow")
        tokens[index].attrSet("target", "_blank")
        return str(renderer.renderToken(tokens, index, options, env))

    parser.add_render_rule("text", text)
    parser.add_render_rule("image", image)
    parser.add_render_rule("link_open", link)
    parser.add_render_rule("heading_open", lambda *_: '<p class="heading">')
    parser.add_render_rule("heading_close", lambda *_: "</p>\n")
    return parser
