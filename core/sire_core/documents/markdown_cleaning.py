"""Markdown without comments, anchors and navigation."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import groupby

from sire_core.documents.front_matter import front_matter_end
from sire_core.documents.markdown_lines import block_runs, code_end
from sire_core.documents.markdown_sections import ATTRIBUTES, LONGEST_LINE
from sire_core.documents.markdown_writing import ELEMENTS, LIST_ITEM

_BASE64 = "[A-Za-z0-9+/]"
_PAYLOAD = re.compile(
    r"data:[a-z]{1,20}/[\w.+-]{1,80}(?:;[\w=.-]{1,80}){0,5},"
    rf"(?:(?<=;base64,)(?:{_BASE64}|%[0-9A-Fa-f]{{2}})*=*(?:\n[ \t>]*{_BASE64}{{40,}}=*)*"
    rf"(?:\n[ \t>]*{_BASE64}+=*(?=[)\"'>]))?"
    r"|[^\s\"')>]*)"
)
_DATA_IMAGE = re.compile(r"!\[([^\[\]]{0,500})\]\(\s*<?data:>?(?:\s+(?:\"[^\"\n]{0,500}\"|'[^'\n]{0,500}'))?\s*\)")
_REFERRING = re.compile(r"!\[([^\[\]]{0,500})\](?:\[([^\[\]\n]{0,200})\])?(?!\()")
_REFERENCE = re.compile(r"^ {0,3}\[([^\[\]\n]{1,200})\]:[ \t]*<?data:>?[^\n]*\n?", re.MULTILINE)
_ELEMENT = re.compile(r"<img\b(?:[^<>\"']|\"[^\"<>]*\"|'[^'<>]*'){0,50}>", re.IGNORECASE)
_ALTERNATIVE = re.compile(r"\balt\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{256,}={0,2}")
_LINES = re.compile(
    rf"^(?:[ \t>]*{_BASE64}{{60,}}={{0,2}}[ \t]*\n){{2,}}"
    rf"(?:[ \t>]*(?={_BASE64}*[0-9+/=]){_BASE64}+={{0,2}}[ \t]*$\n?)?",
    re.MULTILINE,
)
_KEY = re.compile(rf"(?<=-----\n)(?:[ \t>]*{_BASE64}{{1,100}}={{0,2}}[ \t]*\n)+(?=[ \t>]*-----END )")
_LONG = 60
_LONG_RUN = re.compile(rf"{_BASE64}{{{_LONG}}}|[\w+/-]{{256}}", re.ASCII)
_KINDS = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"))

_ANCHOR = re.compile(r"<a (?:id|name)=[\"']?[^<>\"']{0,200}[\"']?\s*/?>(?:</a>)?")
_LINK = re.compile(r"!?\[[^\[\]]{0,200}\]\([^()\s]{0,500}\)")
_BETWEEN_LINKS = re.compile(r"[\s|\u00b7\u2022\u2039\u203a\u00ab\u00bb<>*/,\u2190\u2192-]*")
_INLINE_CODE = re.compile(r"(`{1,3})(?!`)[^`\n]{1,500}\1(?!`)")
_BEGINS_NOTE = re.compile(r"[\s>]*(?:[:!?=/]{3}|\[!|[ie][mx]port\s)")
_SHORT_CODE = re.compile(
    r"\{\{[<%][^{}\n]{0,300}[%>]\}\}|\{% comment %\}[^{}\n]{0,1000}\{% endcomment %\}|\{%[^{}\n]{0,300}%\}"
)
"""Short codes of Hugo, Jekyll and others: `{{< ref "a.md" >}}`, `{% include note.html %}`, comments on one line."""
_LABEL = re.compile(r"\b(?:alt|caption|label|text|title|summary|header)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_NOTE = re.compile(
    r"(?P<indent>\s*(?:>\s*)?)(?::{3,}[ \t]*\{?[\w-]*\}?(?:\[(?P<quoted>[^\[\]]*)\])?"
    r"|(?:!!!|\?\?\?\+?)[ \t]+[\w-]+(?:[ \t]+[\w-]+){0,3}"
    r"|===[+!]?(?=[ \t]+\")|/{3,}(?:[ \t]+[a-z-]+(?:[ \t]+\|)?)?(?=[ \t]|$)|\[![A-Za-z]+\][+-]?)"
    r"(?:[ \t]+(?:\{[^{}]*\}|\"?(?P<title>[^\"]+)\"?))?[ \t]*$"
)
"""Begin and end of notes and tabs: of Docusaurus and MyST, of MkDocs, of GitHub and Obsidian."""
_HOLDS_TEXT = re.compile(
    r"^[ \t]*(?:(?:!!!|\?\?\?\+?)[ \t]+[\w-]|===[+!]?[ \t]+\"|:{3,}[ \t]*\{?[A-Za-z.]|/{3,}[ \t]+[a-z-]+"
    r"|(?P<note>\[\^[^\[\]\s]{1,100}\]:)|(?P<definition>:)[ \t]{1,3}(?=\S))",
    re.MULTILINE,
)
"""First line of a note, tab, footnote or definition; the text that belongs to it is indented."""
_MYST_NOTE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})\{(?:admonition|attention|caution|danger|dropdown|error|hint|important|note|seealso"
    r"|tab-item|tip|topic|versionadded|versionchanged|warning)\}[ \t]*(?P<title>[^`\n]*)$",
    re.MULTILINE,
)
"""Fence of a note of MyST: between it and the next one is text, not code."""
_OPTION = re.compile(r"[ \t]*:[a-z-]{1,40}:(?:[ \t]|$)")
_MOST_NESTED = 8  # Notes within notes; of deeper ones the text stays where it is
_TAG = re.compile(r"</?[A-Za-z][\w.:-]{0,60}(?:\s(?:[^<>\"'{}]|\"[^\"<>]*\"|'[^'<>]*'|\{[^{}<>]*\}){0,100})?/?>")
_COMPONENT = re.compile(r"\s*(<([A-Z][A-Za-z]{0,40})(?:\s[^<>]{0,300})?>)([^<>]*)</\2>\s*")
"""A line of MDX: `<TabItem value="a">words</TabItem>`."""
_OF_PAGES = (
    "body|button|dialog|fieldset|form|g|head|html|input|label|legend|link|meta|noscript|object|optgroup|option|param|"
    "path|script|select|style|svg|template|textarea|title"
)
_HTML_OR_COMPONENT = rf"</?(?:(?i:{ELEMENTS}|{_OF_PAGES})(?![\w.:-])|[a-z]*[A-Z]|\w+[.:-])"
_TAGS_ALONE = re.compile(rf"\s*(?:(?={_HTML_OR_COMPONENT}){_TAG.pattern}\s*)+")
"""A line of elements of HTML or of components; `<order>` in a mail is text."""
_MODULE = re.compile(
    r"(?:import\s[^;]{1,200}\sfrom\s+|import\s+)[\"'][^\"']{1,200}[\"'];?|export\s+(?:const|default|let)\s[^\n]{0,500}[;}]"
)
"""A line of MDX that loads or names a component."""
_LETTERS = r"[^\W\d_]"
_DEEP = 4  # Indentation from which a line may be code
# From the beginning of a word only, so that a line without an end is read once. Options and paths are no words.
_CUT = re.compile(
    rf"(?<![\w\u2010./@=:\\-])(?P<word>{_LETTERS}{{2,}}(?:[\u2010-]\n[ \t]*{_LETTERS}+)+)(?![/@=\\\d_]|\.\w)"
    r"(?P<rest>\S*)(?P<end>[ \t]*\n?)"
)
_BREAK = re.compile(r"[\u2010-]\n([ \t]*)")
_SET_CUT = re.compile(r"(?P<word>(?:\u2010\n[ \t]*[^\s\u2010]+)+)(?P<end>[ \t]*\n?)")
_SET_HYPHEN = re.compile(r"\u2010(?!\n)")
_TYPED_HYPHEN = re.compile(rf"{_LETTERS}-{_LETTERS}")
_WHOLE = re.compile(rf"(?<![^\W\d_]){_LETTERS}+(?:[\u2010-]{_LETTERS}+)*")
JOINING = frozenset(
    "and or to und oder bis bzw sowie et ou y o e ed og och eller en of i lub \u0438 \u0438\u043b\u0438".split()
)
"""Behind a hyphen they leave out the second half of a word: "Vor- und Nachteile"."""


def without_blobs(text: str) -> str:
    """Remove base64 and other runs that are longer than any word."""
    if "data:" in text:
        shorter = _PAYLOAD.sub("data:", text)
        if shorter != text:
            labels = {label.casefold() for label in _REFERENCE.findall(shorter)}
            text = _REFERENCE.sub("", _DATA_IMAGE.sub(r"\1", shorter))
            if labels:
                text = _REFERRING.sub(lambda m: m[1] if (m[2] or m[1]).casefold() in labels else m[0], text)
            text = _ELEMENT.sub(_alternative, text)
    if not any(map(_LONG_RUN.search, [word for word in text.split() if len(word) >= _LONG])):
        return _KEY.sub("", text) if "-----BEGIN " in text else text
    return _RUN.sub("", _KEY.sub("", _LINES.sub(_keep_short, text)))


def _alternative(match: re.Match[str]) -> str:
    if "data:" not in match[0]:
        return match[0]
    match_ = _ALTERNATIVE.search(match[0])
    return (match_[1] or match_[2] or "") if match_ else ""


def _keep_short(match: re.Match[str]) -> str:
    """Keep lines of digits and lower-case letters (check sums); base64 has letters of all kinds."""
    return "" if all(kind.search(match[0]) for kind in _KINDS) else match[0]


def clean_markdown(text: str) -> str:
    """Leave out front matter, comments, anchors, marks of site generators and lines of nothing but links elsewhere."""
    lines = without_blobs(text).split("\n")
    lines = lines[front_matter_end(lines) :]
    if _HOLDS_TEXT.search(text) or _MYST_NOTE.search(text):
        lines = _without_margins(lines)
    return "\n".join(_visible_lines(lines, _tidied))


def _without_margins(lines: list[str]) -> list[str]:
    """Move the text of notes, tabs, footnotes and definitions to the left: behind four blanks it would be code."""
    result: list[str] = []
    margins: list[int] = []  # columns at which the texts around a line begin
    fences: list[tuple[int, int]] = []  # last line and length of the fences of notes around a line
    listed, row = False, 0
    while row < len(lines):
        line = lines[row]
        closes = any(row == end for end, _ in fences)
        fences = [fence for fence in fences if fence[0] > row]
        words = line.lstrip(" \t")
        column = len(line[: len(line) - len(words)].expandtabs(_DEEP))
        while margins and words.strip() and column < margins[-1]:
            margins.pop()
        inner = column - _DEEP * len(margins)
        if not inner and words:
            listed = LIST_ITEM.match(words) is not None
        stop = code_end(lines, row) if not closes and words.startswith(("```", "~~~")) else row
        note = _MYST_NOTE.match(line) if stop > row and inner < _DEEP else None
        if note and len(fences) < _MOST_NESTED and all(len(note["fence"]) < length for _, length in fences):
            fences.append((stop - 1 if lines[stop - 1].strip(" \t`~") == "" else stop, len(note["fence"])))
            result += [title] if (title := note["title"].strip()) else []
            row += 1
            while row < stop and _OPTION.match(lines[row]):
                row += 1
        elif stop > row:
            result += [_moved(code, len(margins)) for code in lines[row:stop]]
            row = stop
        elif closes:
            row += 1
        else:
            opened = _HOLDS_TEXT.match(line) if inner < _DEEP or listed else None
            if opened and opened["definition"] and not (result and result[-1].strip()):
                opened = None  # it defines nothing
            if opened and len(margins) < _MOST_NESTED:
                result += _first_line(opened, line, len(margins))
                margins.append(column + _DEEP)
            else:
                result.append(_moved(line, len(margins)))
            row += 1
    return result


def _first_line(opened: re.Match[str], line: str, levels: int) -> list[str]:
    if opened["definition"]:
        return ["", line[opened.end() :]]
    return [_moved(line, levels)] if opened["note"] else [cleaned] if (cleaned := _tidied(_moved(line, levels))) else []


def _moved(line: str, levels: int) -> str:
    """Move a line to the left."""
    return re.sub(rf"^(?: {{4}}| {{0,3}}\t| +$){{0,{levels}}}", "", line) if levels else line


def without_comments(text: str) -> str:
    """The text without HTML comments, and without lines that hold nothing else."""
    return "\n".join(_visible_lines(text.split("\n"), lambda line: line)) if "<!--" in text else text


def _visible_lines(lines: list[str], tidied: Callable[[str], str | None]) -> list[str]:
    """Lines without comments; outside of code each is tidied, and left out when that leaves nothing."""
    comments = _Comments(lines)
    result: list[str] = []
    listed, row = False, 0
    while row < len(lines):
        line = lines[row]
        if line and not line[0].isspace():
            listed = LIST_ITEM.match(line) is not None
        if line.startswith(("    ", "\t")) and not listed and (not result or _indented(result[-1])):
            result.append(line)  # code that is set off by its indentation
            row += 1
            continue
        if ("```" in line or "~~~" in line) and (stop := code_end(lines, row)) > row:
            result += lines[row:stop]
            row = stop
            continue
        rests, row = comments.left_out(row) if comments.any else ((line,), row + 1)
        for rest in rests:
            cleaned = tidied(rest)
            if cleaned is not None and (cleaned is line or cleaned == line or cleaned.strip()):
                result.append(cleaned)
    return result


def _indented(line: str) -> bool:
    return not line.strip() or line.startswith(("    ", "\t"))


def _tidied(line: str) -> str | None:
    marked = "](" in line or "<" in line or "{" in line or _BEGINS_NOTE.match(line) or line.endswith("\u00b6")
    if not marked or len(line) > LONGEST_LINE:
        return line
    cleaned = _ANCHOR.sub("", line)
    cleaned = _SHORT_CODE.sub(_labels, cleaned) if "{" in cleaned else cleaned
    cleaned = ATTRIBUTES.sub("", cleaned) if cleaned.endswith(("}", "\u00b6")) else cleaned
    note = _NOTE.match(cleaned)
    if note:
        cleaned = note["indent"] + (note["quoted"] or note["title"] or "").strip()
    elif cleaned.lstrip().startswith("<") and _TAGS_ALONE.fullmatch(cleaned):
        cleaned = " ".join(filter(None, map(_labels, _TAG.finditer(cleaned))))
    elif component := _COMPONENT.fullmatch(cleaned):
        cleaned = " ".join(filter(None, (" ".join(a or b for a, b in _LABEL.findall(component[1])), component[3])))
    elif _MODULE.fullmatch(cleaned):
        cleaned = ""
    return None if _navigates(cleaned) or (cleaned != line and not cleaned.strip()) else cleaned


def _labels(match: re.Match[str]) -> str:
    """Text that readers see of an element or short code: its title, label or alternative text."""
    return " ".join(double or single for double, single in _LABEL.findall(match[0]))


class _Comments:
    """Where comments end; lines are looked through once, however many comments they begin and never close."""

    def __init__(self, lines: Sequence[str]) -> None:
        seen = any("<!--" in line for line in lines)
        self._lines = lines
        self._closing = [number for number, line in enumerate(lines) if "-->" in line] if seen else []
        self._breaks = [number for number, line in enumerate(lines) if _ends_paragraph(line)] if self._closing else []
        self._searched = -1  # a line with no further end of a comment
        self.any = bool(self._closing)

    def left_out(self, row: int) -> tuple[list[str], int]:
        """Rest of a line and of the one that its last comment ends in; and the number of the next line."""
        line = self._lines[row]
        if not self._closing:
            return [line], row + 1
        rests: list[str] = []
        left: list[str] = []
        bare, at = True, 0
        start = _opening(line, 0)
        while start >= 0:
            bare = bare and not line[at:start].strip()
            end = self._end(row, start, bare)
            if end is None:
                bare, start = False, _opening(line, start + 4)
                continue
            left.append(line[at:start])
            if end[0] > row:
                rests.append("".join(left))
                left, line = [], self._lines[end[0]]
            row, at = end
            start = _opening(line, at)
        left.append(line[at:])
        return [*rests, "".join(left)], row + 1

    def _end(self, row: int, start: int, bare: bool) -> tuple[int, int] | None:
        """Line and column behind a comment; None when it is never closed."""
        if row != self._searched:
            end = self._lines[row].find("-->", start + 4)
            if end >= 0:
                return row, end + 3
            self._searched = row
        following = bisect_right(self._closing, row)
        if following == len(self._closing):
            return None
        closing = self._closing[following]
        ends_before = bisect_right(self._breaks, row) < bisect_right(self._breaks, closing)
        return (closing, self._lines[closing].find("-->") + 3) if bare or not ends_before else None


def _ends_paragraph(line: str) -> bool:
    bare = line.strip()
    return not bare or bare.startswith(("```", "~~~"))


def _opening(line: str, position: int) -> int:
    """Where the next comment begins; code between backticks is none."""
    start = line.find("<!--", position)
    while start >= 0 and line.find("`", position, start) >= 0:
        code = _INLINE_CODE.search(line, position, start + 600)
        if code is None or code.start() > start:
            break
        position = code.end()
        start = start if position <= start else line.find("<!--", position)
    return start


def _navigates(line: str) -> bool:
    """True if a line is two or more links side by side and nothing else."""
    if "](" not in line or len(line) > LONGEST_LINE or line.lstrip().startswith(("- ", "* ", "+ ")):
        return False
    links = len(_LINK.findall(line))
    return links > 1 and _BETWEEN_LINKS.fullmatch(_LINK.sub("", line)) is not None


def without_hyphenation(text: str) -> str:
    """The text with words that end on the next line put together again; the line ends behind them."""
    if "\u2010\n" in text and not _SET_HYPHEN.search(text) and _TYPED_HYPHEN.search(text):
        return _SET_CUT.sub(lambda match: _joined(match, "", _BREAK.split(match["word"])[1:]), text)
    if not _CUT.search(text):
        return text
    vocabulary = {word.lower() for word in _WHOLE.findall(_CUT.sub(" ", text))}
    runs = block_runs(text.split("\n"))
    parts: list[str] = []
    for is_code, group in groupby(runs, key=lambda run: run[0] == "code"):
        part = "\n".join("\n".join(lines) for _, lines in group)
        parts.append(part if is_code else _CUT.sub(lambda match: _whole(match, vocabulary), part))
    return "\n".join(parts)


def _joined(match: re.Match[str], first: str, breaks: Sequence[str]) -> str:
    """A word whose parts stand behind indentations; the words behind it begin a line below its last part."""
    end = match["end"]
    behind = "" if not end else "\n" if end.endswith("\n") else f"\n{breaks[-2]}"
    return f"{first}{''.join(breaks[1::2])}{match.groupdict().get('rest') or ''}{behind}"


def _whole(match: re.Match[str], vocabulary: set[str]) -> str:
    first, *breaks = _BREAK.split(match["word"])
    line_start = match.string.rfind("\n", 0, match.start()) + 1
    line = match.string[line_start : match.start()]
    stands = all(_is_below(line, indent) for indent in breaks[::2])
    return _joined(match, first, breaks) if stands and _is_cut([first, *breaks[1::2]], vocabulary) else match[0]


def _is_below(line: str, indent: str) -> bool:
    """True if a line that begins behind an indentation goes on with the text of the line above it."""
    column = len(indent)
    begins = len(line) - len(line.lstrip())
    return column < _DEEP or column == begins or (line[column - 2 : column] == "  " and column > begins)


def _is_cut(parts: list[str], vocabulary: set[str]) -> bool:
    halves = [part.lower() for part in parts]
    if any(not part.islower() or part in JOINING for part in parts[1:]) or "-".join(halves) in vocabulary:
        return False
    whole = "".join(halves)
    from sire_core.models.word_vectors import is_english

    compound = vocabulary.issuperset(halves) or (len(halves) == 2 and all(len(h) > 2 and is_english(h) for h in halves))
    return whole in vocabulary or is_english(whole) or not compound
