# ruff: noqa: RUF001 (letters that commands of TeX stand for)
"""Notations like Markdown (Org, AsciiDoc, LaTeX, Typst) with their headings and code as in Markdown, and BibTeX."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from html.entities import html5
from itertools import takewhile

from sire_core.documents.markdown_writing import code_block
from sire_core.files.conversion import spend

NOTATIONS = (".org", ".adoc", ".asciidoc", ".asc", ".tex", ".latex", ".typ", ".djot")
"""Suffixes of texts with their own markup."""
_TEX = (".tex", ".latex")


def read_notation(text: str, suffix: str) -> tuple[str, str]:
    """Title and text, with headings and code as in Markdown, without comments; other markup stays as it is."""
    if suffix in _TEX:
        title, lines = tex_title(text), _tex_lines(text)
    elif suffix == ".org":
        title, lines = _org_title(text), _org_lines(text)
    elif suffix in (".adoc", ".asciidoc", ".asc"):
        title, lines = "", _asciidoc_lines(text)
    else:
        title, lines = "", _equals_lines(text) if suffix == ".typ" else iter(text.split("\n"))
    return title, re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _fenced(lines: list[str], language: str = "") -> list[str]:
    code = code_block("\n".join(lines), language)
    return ["", code, ""] if code else []


_EQUALS = re.compile(r"(={1,6})[ \t]+(?=\S)")


def _equals_lines(text: str) -> Iterator[str]:
    """Typst: headings with equals signs, code between backticks as in Markdown."""
    code = False
    for line in text.split("\n"):
        code ^= line.lstrip().startswith("```") and line.count("```") % 2 == 1
        mark = None if code else _EQUALS.match(line)
        if mark:
            yield from ("", f"{'#' * len(mark[1])} {line[mark.end() :]}", "")
        elif code or not line.lstrip().startswith("//"):
            yield line


_DELIMITER = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,})[ \t]*(?P<language>\w*)[ \t]*$")
_ENTRY = re.compile(r":(?P<unset>!?)(?P<name>\w[\w-]*)!?:(?:[ \t]+(?P<value>.*))?$")
_ATTRIBUTE = re.compile(r"\{(\w[\w-]*)\}")
_BLOCK_STYLE = re.compile(r"\[(?P<code>source|listing|literal)?(?P<rest>[^\[\]]*)\][ \t]*$|\[\[[^\[\]]*\]\][ \t]*$")
_LABELS = re.compile(r"\[(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION|quote\b.*|verse\b.*)\]", re.IGNORECASE)
_DIRECTIVE = re.compile(r"(?:ifdef|ifndef|ifeval|endif|include)::\S*\[.*\][ \t]*$")
_LONGEST_VALUE = 2_000
_BUILT_IN: Mapping[str, str] = {
    **{name: html5[f"{name};"] for name in "amp lt gt plus deg apos quot lsquo rsquo ldquo rdquo".split()},
    **dict.fromkeys(("nbsp", "sp"), " "),
    **dict.fromkeys(("empty", "blank", "zwsp"), ""),
    **dict(zip("asterisk caret tilde backtick vbar".split(), "*^~`|", strict=True)),
}


def _asciidoc_lines(text: str) -> Iterator[str]:
    """AsciiDoc: attributes are replaced, comments left out; nothing in code is a heading."""
    attributes = dict(_BUILT_IN)

    def replaced(line: str) -> str:
        return spend(_ATTRIBUTE.sub(lambda match: attributes.get(match[1].lower(), match[0]), line))

    lines = text.split("\n")
    for entry in map(_ENTRY.match, takewhile(str.strip, lines)):  # the title above them may use them
        if entry and not entry["unset"]:
            attributes[entry["name"].lower()] = replaced(entry["value"] or "")[:_LONGEST_VALUE]
    row, style = 0, ""  # what the line above says of the next block, such as `source,ruby`
    while row < len(lines):
        line = lines[row]
        stop, code = _asciidoc_code(lines, row, style)
        if stop > row:
            yield from code
            row, style = stop, ""
            continue
        row += 1
        entry, block = _ENTRY.match(line), _BLOCK_STYLE.match(line)
        if entry:
            value = replaced(entry["value"] or "").removesuffix(" \\")[:_LONGEST_VALUE]
            attributes[entry["name"].lower()] = "" if entry["unset"] else value
        elif block and not _LABELS.match(line):
            style = line.strip().strip("[]") if block["code"] else ""
        elif not (line.startswith("//") and not line.startswith("///")) and not _DIRECTIVE.match(line):
            mark = _EQUALS.match(line)
            words = replaced(line)
            yield from ("", f"{'#' * len(mark[1])} {words[mark.end() :]}", "") if mark else (words,)


def _asciidoc_code(lines: list[str], row: int, style: str) -> tuple[int, list[str]]:
    """Row behind a block of code that begins here, and its lines; none of a comment. The same row for other lines."""
    delimiter = _DELIMITER.match(lines[row])
    if delimiter:
        stop = next((n for n in range(row + 1, len(lines)) if lines[n].rstrip() == delimiter[1]), len(lines))
        is_comment = delimiter[1][0] == "/"
        code = [] if is_comment else _fenced(lines[row + 1 : stop], delimiter["language"] or _language(style))
        return stop + 1, code
    if style and lines[row].strip():
        stop = next((n for n in range(row, len(lines)) if not lines[n].strip()), len(lines))
        return stop, _fenced(lines[row:stop], _language(style))
    return row, []


def _language(style: str) -> str:
    """Language of `source,ruby`."""
    words = style.split(",")
    return words[1].strip() if len(words) > 1 and re.fullmatch(r"\s*[\w+#-]{1,20}\s*", words[1]) else ""


_ORG_TITLE = re.compile(r"^#\+title:[ \t]*(.+)", re.MULTILINE | re.IGNORECASE)
_ORG_BLOCK = re.compile(r"[ \t]*#\+begin_(\w+)(?:[ \t]+(\S+))?", re.IGNORECASE)
_ORG_HEADING = re.compile(r"(\*{1,6})[ \t]+(?=\S)")
_ORG_STATE = re.compile(r"(?:(?:TODO|DONE|NEXT|WAITING|CANCELLED)[ \t]+)?(?:\[#[A-Z]\][ \t]+)?")
_ORG_TAGS = re.compile(r"(?<![ \t])[ \t]+:[\w@#%:]+:[ \t]*$")
_ORG_KEYWORD = re.compile(r"[ \t]*#\+(\w+)(?:\[[^\[\]]*\])?:[ \t]*(.*)", re.IGNORECASE)
_ORG_DRAWER = re.compile(r"[ \t]*:(?:PROPERTIES|LOGBOOK|CLOCK):[ \t]*$", re.IGNORECASE)
_ORG_LINK = re.compile(r"\[\[[^\[\]]{1,2000}\]\[([^\[\]]{1,2000})\]\]|\[\[([^\[\]]{1,2000})\]\]")
_ORG_MACRO = re.compile(r"\{\{\{([\w-]+)(?:\(([^{}]{0,1000})\))?\}\}\}")
_ORG_SHOWN = ("author", "date", "caption", "subtitle", "description", "email", "attr_alt")


def _org_title(text: str) -> str:
    match = _ORG_TITLE.search(text)
    return " ".join(match[1].split()) if match else ""


def _org_lines(text: str) -> Iterator[str]:
    """Org: comments, drawers and settings are left out, macros replaced; nothing in code is a heading."""
    macros: dict[str, str] = {}
    lines = text.split("\n")
    row, commented = 0, 0  # level of the heading that begins with COMMENT
    while row < len(lines):
        line = lines[row]
        row += 1
        heading, block = _ORG_HEADING.match(line), _ORG_BLOCK.match(line)
        commented = 0 if heading and len(heading[1]) <= commented else commented
        if heading and line[heading.end() :].startswith("COMMENT"):
            commented = commented or len(heading[1])
        if block:
            end = f"#+end_{block[1].lower()}"
            stop = next((n for n in range(row, len(lines)) if lines[n].strip().lower() == end), len(lines))
            if block[1].lower() in ("src", "example", "export") and not commented:
                yield from _fenced([inner.removeprefix(",") for inner in lines[row:stop]], block[2] or "")
            if block[1].lower() in ("src", "example", "export", "comment"):
                row = stop + 1
        elif _ORG_DRAWER.match(line):
            ends = (n for n in range(row, min(len(lines), row + 100)) if lines[n].strip().lower() == ":end:")
            row = next(ends, row - 1) + 1
        elif not commented:
            yield from _org_line(line, heading, macros)


def _org_line(line: str, heading: re.Match[str] | None, macros: dict[str, str]) -> Iterator[str]:
    keyword = _ORG_KEYWORD.match(line)
    if keyword:
        name = keyword[1].lower()
        if name == "macro":
            macro, _, words = keyword[2].partition(" ")
            macros[macro] = words[:_LONGEST_VALUE]
        elif name in _ORG_SHOWN:
            yield f"{name.capitalize()}: {keyword[2]}"
        return
    if line.lstrip().startswith(("# ", "#+end_", "#+END_")) or line.strip() == "#":
        return

    def expanded(match: re.Match[str]) -> str:
        words = macros.get(match[1], match[0])
        for number, argument in enumerate((match[2] or "").split(",")[:9], 1):
            words = words.replace(f"${number}", argument.strip())
        return words

    line = _ORG_LINK.sub(lambda match: match[1] or match[2], spend(_ORG_MACRO.sub(expanded, line)))
    if heading:
        words = _ORG_TAGS.sub("", line[heading.end() :])
        yield from ("", f"{'#' * len(heading[1])} {_ORG_STATE.sub('', words, count=1)}", "")
    else:
        yield line


_SECTIONS = {"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5}
_SECTION = re.compile(r"[ \t]*\\(part|chapter|(?:sub){0,2}section|paragraph)\*?[ \t]*(?:\[[^\[\]]{0,200}\])?[ \t]*\{")
_TEX_TITLE = re.compile(r"^[ \t]*\\title[ \t]*(?:\[[^\[\]]{0,200}\])?[ \t]*\{", re.MULTILINE)
_VERBATIM = re.compile(
    r"[ \t]*\\begin\{(verbatim\*?|Verbatim|BVerbatim|lstlisting|minted|alltt|comment|filecontents\*?)\}"
)
_UNSEEN = ("comment", "filecontents", "filecontents*")
_COMMENT = re.compile(r"(\\(?:verb|lstinline)\*?(?P<mark>[^\sA-Za-z*{])[^\n]{0,300}?(?P=mark))|(?<!\\)((?:\\\\)*)%.*")
_WITHIN_LINE = re.compile(r"(?<=[^\s{\\])(?=\\(?:part|chapter|(?:sub){0,2}section|title)\*?(?:\[[^\[\]]{0,200}\])?\{)")
"""Place in a line where a heading begins."""
_DEFINES = re.compile(r"[ \t]*\\(?:(?:re)?newcommand|providecommand|def|let|title(?:format|spacing))\b")
_ASIDE = re.compile(r"\\(?:thanks|footnote|label|index|footnotemark|inst)\b(?:\[[^\[\]]{0,100}\])?")
_LONGEST_ARGUMENT = 2_000
_ACCENTS = dict(
    zip(
        "`'^\"~=.uvHcdbrk",
        "\u0300\u0301\u0302\u0308\u0303\u0304\u0307\u0306\u030c\u030b\u0327\u0323\u0331\u030a\u0328",
        strict=True,
    )
)
_ACCENTED = re.compile(
    r"""\\(?:(?P<sign>[`'^"~=.])[ \t]*|(?P<letter>[uvHcdbrk])(?=[{\\ ])[ \t]*)"""
    r"(?:\{\\?(?P<braced>[A-Za-z])\}|\\(?P<dotless>[ij])(?![A-Za-z])(?:\{\})?|(?P<bare>[A-Za-z])(?(letter)(?![A-Za-z])))"
)
_NAMED_LETTERS = {
    "ss": "ß",
    "ae": "æ",
    "AE": "Æ",
    "oe": "œ",
    "OE": "Œ",
    "aa": "å",
    "AA": "Å",
    "o": "ø",
    "O": "Ø",
    "l": "ł",
    "L": "Ł",
    "i": "ı",
    "j": "ȷ",
    "dh": "ð",
    "DH": "Ð",
    "th": "þ",
    "TH": "Þ",
    "dj": "đ",
    "DJ": "Đ",
    "ng": "ŋ",
    "textendash": "–",
    "textemdash": "—",
    "ldots": "…",
    "dots": "…",
    "textellipsis": "…",
    "S": "§",
    "P": "¶",
    "textquoteright": "’",
    "textquoteleft": "‘",
    "textquotedblleft": "“",
    "textquotedblright": "”",
    "euro": "€",
    "copyright": "©",
    "pounds": "£",
    "texteuro": "€",
    "textdegree": "°",
    "guillemotleft": "«",
    "guillemotright": "»",
    "LaTeX": "LaTeX",
    "TeX": "TeX",
    "textbackslash": "\\",
    "textasciitilde": "~",
    "glqq": "„",
    "grqq": "“",
}
_NAMED_SIGNS = re.compile(
    rf"\\({'|'.join(sorted(_NAMED_LETTERS, key=len, reverse=True))})(?![A-Za-z])(?:\{{\}}|[ \t]+(?=\w)|)"
)
_STYLED = re.compile(
    r"\\(?:emph|text(?:bf|it|tt|sc|sf|rm|sl|up|md|normal)?|underline|mbox|enquote|textsuperscript)\{([^{}]{0,2000})\}"
)
_SIGN = re.compile(r"\\([%&$#_{}])")
_THIN = re.compile(r"\\[,;:!> ](?=\S)|(?<!\\)~")
_SINGLE = re.compile("\\{([^\\x00-\\x7f]{1,3})\\}")
_COMMAND = re.compile(r"\\[A-Za-z]+\*?[ \t]*(?=\{)")
_STYLES = 4


def tex_letters(text: str) -> str:
    r"""A text in which commands of TeX for letters (`G\"odel`, `{\ss}`, `\l{}`) are those letters."""
    if "\\" not in text:
        return text
    text = _NAMED_SIGNS.sub(lambda match: _NAMED_LETTERS[match[1]], _ACCENTED.sub(_with_accent, text))
    return _SINGLE.sub(r"\1", text)


def _with_accent(match: re.Match[str]) -> str:
    letter = match["braced"] or match["dotless"] or match["bare"]
    return unicodedata.normalize("NFC", letter + _ACCENTS[match["sign"] or match["letter"]])


def _tex_words(text: str) -> str:
    """Words of TeX without commands for letters, signs and styles; formulas stay as they are."""
    text = tex_letters(text)
    for _ in range(_STYLES):
        changed = _STYLED.sub(r"\1", text)
        if changed == text:
            break
        text = changed
    return _SIGN.sub(r"\1", _THIN.sub(" ", text))


def _heading_words(text: str) -> str:
    """Words of a title or heading, without notes and braces."""
    while aside := _ASIDE.search(text):
        end = _argument_end(text, aside.end())
        text = text[: aside.start()] + (text[end:] if end > aside.end() else text[aside.end() :])
    words = _tex_words(
        re.sub(r"\\\\(?:\[[^\[\]]{0,20}\])?|\\newline\b|\\(?:large|Large|LARGE|huge|Huge|bf|it|sc)\b", " ", text)
    )
    words = _COMMAND.sub("", words)
    return " ".join(words.replace("{", "").replace("}", "").split())


def _argument_end(text: str, start: int) -> int:
    """Position behind the closing brace of an argument that begins there; its beginning if it has no end."""
    depth = 0
    for position in range(start, min(len(text), start + _LONGEST_ARGUMENT)):
        letter = text[position]
        if letter in "{}" and text[position - 1 : position] != "\\":
            depth += 1 if letter == "{" else -1
            if depth == 0:
                return position + 1
        elif depth == 0:
            return start
    return start


def tex_title(text: str) -> str:
    r"""The argument of `\title`, outside of comments and verbatim text."""
    plain = "\n".join(line for line, is_code in _tex_parts(text) if not is_code)
    match = _TEX_TITLE.search(plain)
    if match is None:
        return ""
    end = _argument_end(plain, match.end() - 1)
    return _heading_words(plain[match.end() : end - 1]) if end >= match.end() else ""


def _tex_parts(text: str) -> Iterator[tuple[str, bool]]:
    """Lines without comments, and whole verbatim texts as fenced code."""
    lines = text.split("\n")
    row = 0
    while row < len(lines):
        line = lines[row]
        row += 1
        verbatim = _VERBATIM.match(line)
        if verbatim:
            end = f"\\end{{{verbatim[1]}}}"
            stop = next((n for n in range(row, len(lines)) if end in lines[n]), len(lines))
            if verbatim[1] not in _UNSEEN:
                yield "\n".join(_fenced(lines[row:stop])), True
            row = stop + 1
            continue
        plain = _COMMENT.sub(r"\1\3", line)
        if plain.strip() or not line.strip():
            yield from ((part, False) for part in ([plain] if _DEFINES.match(plain) else _WITHIN_LINE.split(plain)))


def _tex_lines(text: str) -> Iterator[str]:
    parts = list(_tex_parts(text))
    row = 0
    while row < len(parts):
        line, is_code = parts[row]
        row += 1
        section = None if is_code else _SECTION.match(line)
        if section is None:
            yield line if is_code else _tex_words(line)
            continue
        end = _argument_end(line, section.end() - 1)
        while end < section.end() and row < len(parts) and len(line) < _LONGEST_ARGUMENT and not parts[row][1]:
            line = f"{line} {parts[row][0]}"  # a heading of several lines
            row += 1
            end = _argument_end(line, section.end() - 1)
        heading = _heading_words(line[section.end() : end - 1]) if end >= section.end() else ""
        if heading:
            yield from ("", f"{'#' * _SECTIONS[section[1]]} {heading}", "", _tex_words(line[end:]))
        else:
            yield _tex_words(line)
