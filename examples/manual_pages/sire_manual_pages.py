# ruff: noqa: RUF001 (signs that troff has names for)
"""Reader of manual pages in troff (`man` and `mdoc` macros) as Markdown: sections are headings, examples are code.

Installed (`pip install examples/manual_pages`), `sire index /usr/share/man/man1` reads them; see
`docs/extending/reader.md`.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from sire_core.documents.markdown_writing import code_block, plain_text
from sire_core.errors import CorpusError

_BEGINS = re.compile(r"^[.'][ \t]*(?:TH|Dd|Dt|SH|Sh|so)\b", re.MULTILINE)
_REQUEST = re.compile(r"[.'][ \t]*(\\?[A-Za-z%]\w{0,40}|\\\"|\\\}|\.)?[ \t]*(.*)")
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|((?:[^\s\\]|\\.)+)', re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:\".*|[fFgkmMOYV](?:\[[^\]]*\]|\(..|.)|s(?:[+-]?(?:\(..|\[[^\]]*\]|'[^']*'|[0-9]{1,2}))"
    r"|[hvwlLDoXRZbANHS](?P<quote>['\"])(?P<within>[^\n]{0,200}?)(?P=quote)|\*(?P<string>\[[^\]]*\]|\(..|.)|n[+-]?(?:\[[^\]]*\]|\(..|.)"
    r"|\((?P<two>..)|\[(?P<long>[^\]]{1,40})\]|z|(?P<one>.)|$)"
)
_COMMENT = re.compile(r'(?<!\\)\\".*')
_UNICODE = re.compile(r"u((?!D[89A-F])[0-9A-F]{4,5})(?:_[0-9A-F_]+)?")
_PARAMETER = re.compile(r"\\{1,2}\$([1-9])")
_NESTED = re.compile(r"^(?:[.']\s{0,4}if n\s{1,4})+")
_REFERS = re.compile(r"(?:[.']\\\".*\n|[ \t]*\n)*[.']so[ \t]+(\S+)\s*")
"""A page that is nothing but the name of another."""
_MAX_BYTES = 16 << 20
_DEEP = 6
_EXPANDED = 100_000
"""Number of lines that macros of a page may bring."""
_FORM = 8
"""Longest word in a line that says how the columns of a table are set (`lb|cx`)."""
_CHARACTERS = dict(
    pair.split(None, 1)
    for pair in (
        "aq '|dq \"|lq “|rq ”|oq ‘|cq ’|em —|en –|hy -|bu •|co ©|rg ®|tm ™|sl /|rs \\|at @|ha ^|ti ~|ga `|aa ´|"
        "pl +|mi −|eq =|mu ×|di ÷|+- ±|<= ≤|>= ≥|!= ≠|== ≡|-> →|<- ←|de °|sc §|dg †|ps ¶|Fo «|Fc »|fo ‹|fc ›|"
        "la ⟨|ra ⟩|lB [|rB ]|lC {|rC }|ul _|ru _|sh #|Do $|Eu €|Po £|ss ß|ae æ|AE Æ|:a ä|:o ö|:u ü|:A Ä|:O Ö|"
        ":U Ü|'e é|'a á|`e è|`a à|^e ê|,c ç|~n ñ|/o ø|/O Ø|oa å|oA Å|*a α|*b β|*g γ|*d δ|*l λ|*m μ|*p π|*s σ|"
        "*W Ω|12 ½|14 ¼|34 ¾|if ∞|ci ○|sq □|OK ✓|mc µ"
    ).split("|")
) | {"ba": "|", "br": "|", "or": "|"}
_STRINGS = {"lq": "“", "rq": "”", "Aq": "'", 'L"': '"', 'R"': '"', "``": '"', "''": '"', "--": "–", "Tm": "™", "R": "®"}
_ONE = {
    "-": "-",
    "e": "\\",
    "\\": "\\",
    " ": " ",
    "~": " ",
    "0": " ",
    "t": "\t",
    "'": "´",
    "`": "`",
    ".": ".",
    "(": "(",
}

_ALTERNATING = frozenset("BR BI IB IR RB RI".split())
_FONTS = frozenset("B I SM SB R Vb".split())
_PARAGRAPHS = frozenset("PP LP P HP RS RE sp Pp Lp IP TP TQ It bp Bl El Bd Ed D1 Dl Sp in".split())
_DEFINES = frozenset("de de1 am ami dei ig".split())
_LITERAL = {"nf": True, "EX": True, "Vb": True, "fi": False, "EE": False, "Ve": False}

_SIGNS = {"Fl": "-", "Cm": "", "Ar": "", "Pa": "", "Ev": "", "Va": "", "Em": "", "Sy": "", "Li": "", "Ic": "", "Ad": ""}
_PAIRS = {"Op": "[]", "Pq": "()", "Dq": "“”", "Sq": "‘’", "Ql": "‘’", "Qq": '""', "Bq": "[]", "Brq": "{}", "Aq": "<>"}
_OPEN = {"Oo": "[", "Po": "(", "Do": "“", "So": "‘", "Bo": "[", "Bro": "{", "Ao": "<", "Qo": '"'}
_CLOSE = {"Oc": "]", "Pc": ")", "Dc": "”", "Sc": "’", "Bc": "]", "Brc": "}", "Ac": ">", "Qc": '"'}
_PLAIN_MACROS = frozenset("No Nd Fn Ft Fa Fd In Vt Dv Er Tn Ms Lk Mt An Rv St At Bx Nx Ox Fx Cd Lb Sx Xo Xc Ux".split())
_LEFT_OUT = frozenset(
    "-tag -bullet -compact -offset -width -item -enum -dash -hang -diag -nosplit -split indent".split()
)
_CLOSES = frozenset(". , ; : ) ] ? !".split())


def read_manual_page(path: Path) -> tuple[str, str]:
    """Title (`tar(1)`) and Markdown of a manual page, also a packed one (`.1.gz`)."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except (OSError, EOFError) as error:
        raise CorpusError(f"cannot be read: {error}") from error
    if len(raw) > _MAX_BYTES:
        raise CorpusError(f"is longer than {_MAX_BYTES:,} bytes; that is no manual page")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", "replace")
    if "\0" in text or not _BEGINS.search(text):
        raise CorpusError("is no manual page, as its suffix says; if it is text, rename it to .txt")
    text = text.replace("\r\n", "\n")
    if reference := _REFERS.fullmatch(text):
        raise CorpusError(f"only refers to the manual page {reference[1][:80]}; read that one")
    page = _Page()
    page.read(text.split("\n"))
    return page.title, page.markdown()


class _Page:
    """Goes through the lines once and collects paragraphs."""

    def __init__(self) -> None:
        self.title = ""
        self._name = ""
        self._blocks: list[str] = []
        self._words: list[str] = []  # lines of the open paragraph
        self._code: list[str] | None = None
        self._heading = ""  # of a section whose name stands on the next line
        self._tag = False  # the next line is the label of an item
        self._in_table = False
        self._strings = dict(_STRINGS)
        self._macros: dict[str, list[str]] = {}  # of this page
        self._expanded = 0  # lines that came from them
        self._depth = 0
        self._handlers: dict[str, Callable[[list[str]], None]] = {
            "TH": self._page_title,
            "Dt": self._page_title,
            **dict.fromkeys(("SH", "Sh"), lambda words: self._section("## ", words)),
            **dict.fromkeys(("SS", "Ss"), lambda words: self._section("### ", words)),
            **dict.fromkeys(("UR", "MT", "URL", "MTO", "nop"), lambda words: self._text(" ".join(words))),
            "ds": lambda words: self._strings.update({word: " ".join(words[1:]) for word in words[:1]}),
            "so": lambda words: self._add(f"See {' '.join(words)}"),
        }

    def markdown(self) -> str:
        """The whole page."""
        self._end_code()
        self._end_paragraph()
        return "\n\n".join(self._blocks)

    def read(self, lines: Sequence[str]) -> None:
        """Read the lines of a page."""
        waiting = iter(lines)
        for line in waiting:
            if line[:1] in (".", "'"):
                self._request(line, waiting)
            elif self._in_table:
                self._table_line(line)
            elif self._code is not None:
                self._code.append(self._unescaped(line))
            elif line.strip():
                self._text(self._unescaped(line))
            else:
                self._end_paragraph()

    def _request(self, line: str, waiting: Iterator[str]) -> None:
        match = _REQUEST.match(line)
        name, rest = (match[1] or "", match[2]) if match else ("", "")
        if name in ("if", "ie", "el"):
            self._condition(name, rest, waiting)
        elif name in _DEFINES:
            self._define(name, _COMMENT.sub("", rest).split(), waiting)
        elif name in _LITERAL:
            self._literal(on=_LITERAL[name])
        elif name in ("TS", "TE"):
            self._end_paragraph()
            self._in_table = name == "TS"
            if self._in_table:
                self._table_form(waiting)
        elif name in self._handlers:
            self._handlers[name](self._arguments(rest))
        elif name in _ALTERNATING or name in _FONTS:
            self._text(("" if name in _ALTERNATING else " ").join(self._arguments(rest)))
        else:
            self._paragraph_request(name, rest)

    def _paragraph_request(self, name: str, rest: str) -> None:
        if name in _PARAGRAPHS:
            self._end_paragraph()
            words = self._arguments(rest)
            if name == "IP":
                self._add(words[0] if words else "")
            elif name in ("TP", "TQ"):
                self._tag = True
            elif name in ("It", "D1", "Dl", "Bl"):
                self._add(_inline(words, self._name) if name != "Bl" else "")
                self._tag = False
        elif name == "br":
            self._add("")
        elif name == "Nm":
            words = self._arguments(rest)
            self._name = self._name or next(iter(words), "")
            self._text(_inline(["Nm", *words], self._name))
        elif name.startswith("%"):
            self._text(" ".join(self._arguments(rest)))
        elif (
            name in _SIGNS or name in _PAIRS or name in _OPEN or name in _CLOSE or name in _PLAIN_MACROS or name == "Xr"
        ):
            self._text(_inline([name, *self._arguments(rest)], self._name))
        else:
            self._expand(name, rest)

    def _expand(self, name: str, rest: str) -> None:
        """Read the lines of a macro of this page."""
        lines = self._macros.get(name, ()) if self._expanded < _EXPANDED and self._depth < _DEEP else ()
        self._expanded += len(lines) + 1
        self._depth += 1
        words = dict(enumerate(self._arguments(rest), start=1)) if lines else {}
        self.read([_PARAMETER.sub(lambda found: words.get(int(found[1]), ""), line) for line in lines])
        self._depth -= 1

    def _define(self, name: str, words: Sequence[str], waiting: Iterator[str]) -> None:
        """Keep a macro of this page; one that is written over a macro of ours counts for nothing."""
        ignored = name == "ig"
        end = next(iter(words[0 if ignored else 1 :]), ".")
        lines = list(takewhile(lambda line: line.rstrip() != f".{end}", waiting))
        if not ignored and words and not any(f".{words[0]}" in line.replace(" ", "") for line in lines):
            self._macros[words[0]] = lines

    def _table_form(self, waiting: Iterator[str]) -> None:
        """Skip the lines that say how a table is set."""
        for line in waiting:
            words = line.split()
            if line.rstrip().endswith(".") or "\\" in line or any(len(word) > _FORM for word in words[:3]):
                if not line.rstrip().endswith((".", ";")):
                    self._table_line(line)
                if not line.rstrip().endswith(";"):
                    break

    def _condition(self, name: str, rest: str, waiting: Iterator[str]) -> None:
        """Read what holds for text on a terminal (`.if n`), and leave out other branches."""
        word, _, then = rest.partition(" ") if name != "el" else ("", "", rest)
        if "\\{" in rest:
            depth = rest.count("\\{") - rest.count("\\}")
            while depth > 0 and (inner := next(waiting, None)) is not None:
                depth += inner.count("\\{") - inner.count("\\}")
        elif word == "n":
            self._request(_NESTED.sub("", then), waiting)

    def _page_title(self, words: list[str]) -> None:
        if words:
            name = words[0] if words[0] != words[0].upper() or len(words[0]) < 2 else words[0].lower()
            self.title = f"{name}({words[1].lower()})" if len(words) > 1 else name

    def _section(self, mark: str, words: list[str]) -> None:
        self._end_code()
        self._end_paragraph()
        self._heading = mark
        if words:
            self._text(" ".join(words))

    def _literal(self, *, on: bool) -> None:
        if on and self._code is None:
            self._end_paragraph()
            self._code = []
        elif not on:
            self._end_code()

    def _text(self, text: str) -> None:
        """Words of a heading, of an item's label, or of the open paragraph."""
        if self._code is not None:
            self._code.append(text)
        elif self._heading:
            self._blocks.append(self._heading + " ".join(text.split()))
            self._heading = ""
        elif self._tag:
            self._tag = False
            self._add(text)
        elif text.strip():
            self._words.append(text)

    def _add(self, text: str) -> None:
        """A line of its own in the open paragraph."""
        self._words += [text, "\n"] if text.strip() else ["\n"]

    def _table_line(self, line: str) -> None:
        words = " ; ".join(
            cell
            for part in line.split("\t")
            if (cell := self._unescaped(part).strip("_= ")) and cell not in ("T{", "T}")
        )
        if words:
            self._add(words)

    def _end_paragraph(self) -> None:
        lines = " ".join(self._words).split("\n")
        self._words = []
        text = plain_text("\n".join(filter(None, (" ".join(line.split()) for line in lines))))
        if text:
            self._blocks.append(text)

    def _arguments(self, rest: str) -> list[str]:
        rest = _COMMENT.sub("", rest)
        return [self._unescaped(quoted.replace('""', '"') or bare) for quoted, bare in _ARGUMENT.findall(rest)]

    def _unescaped(self, text: str) -> str:
        return _ESCAPE.sub(self._character, text) if "\\" in text else text

    def _character(self, match: re.Match[str]) -> str:
        if match["string"]:
            return self._strings.get(match["string"].strip("[]").removeprefix("("), "")
        name = match["two"] or match["long"]
        if name:
            code = _UNICODE.fullmatch(name)
            return chr(int(code[1], 16)) if code else _CHARACTERS.get(name, "")
        return _ONE.get(match["one"] or "", "")

    def _end_code(self) -> None:
        code = "\n".join(self._code or ()).strip("\n")
        self._code = None
        if code:
            self._blocks.append(code_block(code))


def _inline(words: Sequence[str], name: str) -> str:
    """A line of `mdoc`: macros within it give signs around the words behind them."""
    last = len(words)
    while last and words[last - 1] in _CLOSES:
        last -= 1
    parts: list[str] = []
    closing: list[str] = []
    glued = False
    sign = ""
    place = 0
    while place < last:
        word = words[place]
        place += 1
        space = "" if glued else " "
        if word in _PAIRS or word in _OPEN:
            parts.append(space + (_PAIRS[word][0] if word in _PAIRS else _OPEN[word]))
            closing += _PAIRS.get(word, "")[1:]
            glued, sign = True, ""
        elif word == "Xr" and place + 1 < len(words):
            parts.append(f"{space}{words[place]}({words[place + 1]})")
            place, glued = place + 2, False
        elif word == "Nm" and (place == last or words[place] in _CLOSES):
            parts.append(space + name)
            glued = False
        elif word in _SIGNS or word in _PLAIN_MACROS or word == "Nm":
            sign = (sign if place > 1 and words[place - 2] == word else "") + _SIGNS.get(word, "")
            parts += [f"{space}UNIX"] if word == "Ux" else []
        elif word == "Ns":
            glued = True
        elif word not in _LEFT_OUT:
            attached = word in _CLOSES or word in _CLOSE
            parts.append(
                f"{'' if attached else space}{'' if attached or word == '|' else sign}{_CLOSE.get(word, word)}"
            )
            glued = False
    return "".join([*parts, *reversed(closing), *words[last:]]).strip()
