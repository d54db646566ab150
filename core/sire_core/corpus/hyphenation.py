"""Words that a hyphen cuts at the end of a line, put together again."""

from __future__ import annotations

import re

from sire_core.corpus.markdown_blocks import block_runs

__all__ = ["without_hyphenation"]

_LETTERS = r"[^\W\d_]"
# From the beginning of a word only, so that a line without an end is read once.
_CUT = re.compile(
    rf"(?<![\w\u2010-])(?P<word>{_LETTERS}{{2,}}(?:[\u2010-]\n[ ]{{0,3}}{_LETTERS}+)+)(?P<rest>\S*)(?P<end>[ \t]*\n?)"
)
_BREAK = re.compile(r"[\u2010-]\n *")
_WHOLE = re.compile(rf"(?<![^\W\d_]){_LETTERS}+(?:[\u2010-]{_LETTERS}+)*")
_JOINING = frozenset(
    "and or to und oder bis bzw sowie et ou y o e ed og och eller en of i lub \u0438 \u0438\u043b\u0438".split()
)
"""Behind a hyphen they leave out the second half of a word: "Vor- und Nachteile"."""


def without_hyphenation(text: str) -> str:
    """The text with words that end on the next line put together again; the line ends behind them.

    A word goes on in small letters. It keeps its hyphen where the text writes it with one in the middle of a line, or
    has both halves as words of their own and nowhere the whole: "long-term". Fenced code stays as it is.
    """
    if not _CUT.search(text):
        return text
    known = {word.lower() for word in _WHOLE.findall(_CUT.sub(" ", text))}

    def whole(match: re.Match[str]) -> str:
        parts = _BREAK.split(match["word"])
        return f"{''.join(parts)}{match['rest']}{match['end'] and chr(10)}" if _is_cut(parts, known) else match[0]

    runs = block_runs(text.split("\n"))
    return "\n".join(
        ["\n".join(lines) if kind == "code" else _CUT.sub(whole, "\n".join(lines)) for kind, lines in runs]
    )


def _is_cut(parts: list[str], known: set[str]) -> bool:
    halves = [part.lower() for part in parts]
    if any(not part.islower() or part in _JOINING for part in parts[1:]) or "-".join(halves) in known:
        return False
    return "".join(halves) in known or not known.issuperset(halves)
