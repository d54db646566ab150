"""Identifiers in technical text: calls, flags, variables, error codes, paths, versions, things in backticks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sire_core.extraction.spans import TextSpan
from sire_core.extraction.words import is_everyday

__all__ = ["CODE", "code_terms", "find_identifiers", "without_backticks"]

CODE = "Code"
"""Type of identifiers."""

_IDENTIFIER = re.compile(
    r"(?P<address>(?:https?|ftp|wss?)://[^\s<>()\"'`]*|www\.[\w.-]+[^\s<>()\"'`]*|[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64})"
    r"|(?<![\w-])(?P<flag>--[a-zA-Z][\w-]*\w)"
    r"|(?<![\w/.$])(?P<call>[A-Za-z_$][\w$]{0,60}(?:(?:\.|::|->|#)[A-Za-z_$][\w$]{0,60}){0,6})\((?P<arguments>[^()\n]{0,120})\)(?!\w)"
    r"|(?<![\w/.-])(?P<path>(?:~|\.{1,2})?(?:/[\w.{}*:-]{1,60}){2,12}/?)(?![\w/])"
    r"|(?<![\w.-])(?P<variable>\$?[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,8})(?![\w-])"
    r"|(?<![\w./@-])(?P<dotted>[A-Za-z_]\w{1,60}(?:(?:\.|::)[a-z_]\w{1,60}){1,6})(?![\w(/@]|[.-]\w)"
    r"|(?<![\w./-])(?P<snake>[a-z][a-z0-9]{0,40}(?:_[a-z0-9]{1,40}){1,8})(?![\w.]\w)"
    r"|(?<![\w./-])(?P<camel>[a-z]{2,30}\d?[A-Z][a-z]\w{0,40})(?![\w.]\w)"
    r"|(?<![\w./-])(?P<code>[A-Z]{2,8}(?:-\d{2,8}){1,3}|[A-Z]{3,8}\d{3,6}[A-Z]?)(?![\w-])"
    r"|(?<![\w./-])(?P<version>v\d{1,4}(?:\.\d{1,5}){1,3}|\d{1,4}\.\d{1,5}\.\d{1,5}[_-]\w{1,12})(?![\w.]\w)"
)
# Most sentences hold no identifier. Every one has a mark that takes a fraction of the work to look for, or letters and
# digits in an order that prose has not.
_MARKS = ("_", "@", "--", "://", "www.")
_HINT = re.compile(
    r"\((?<=[\w$]\()|/[\w.{}*:-]{1,60}/|[.:](?:(?<=\w\.)|:)[a-z_]\w|[A-Z](?:(?<=[a-z\d][A-Z])[a-z]|-\d\d|\d{3})|\.\d{1,5}\.\d"
    r"|v\d{1,4}\."
)
_TICKED = re.compile(r"(`{1,2})(?!`)([^`\n]{1,160})\1(?!`)")
_PLAIN = re.compile(r"[\w$@./:+#-]+(?: [\w$@./:+#-]+){0,2}$")
_TICKED_CALL = re.compile(r"(?:new |await |async )?([A-Za-z_$][\w$]*(?:(?:\.|::|->|#)[A-Za-z_$][\w$]*)*)\(")
_VALUES = frozenset(
    "true false null none nil undefined nan yes no on off string number integer int float bool boolean object array "
    "list dict function bytes buffer date error any void id name value key type data get post put delete patch head "
    "options self this default".split()
)
_ABBREVIATIONS = frozenset(("e.g", "i.e", "a.k.a", "p.m", "a.m", "u.s", "etc"))
_SHORTEST = 2


def without_backticks(sentence: str) -> tuple[str, list[tuple[int, int]]]:
    """The sentence without backticks, and where in it the code stands that they marked."""
    if "`" not in sentence:
        return sentence, []
    kept: list[str] = []
    places: list[tuple[int, int]] = []
    length = place = 0
    for match in _TICKED.finditer(sentence):
        kept += (sentence[place : match.start()], match.group(2))
        length += match.start() - place
        places.append((length, length + len(match.group(2))))
        length += len(match.group(2))
        place = match.end()
    kept.append(sentence[place:])
    return "".join(kept), places


def find_identifiers(sentence: str, ticked: list[tuple[int, int]]) -> tuple[list[TextSpan], list[tuple[int, int]]]:
    """Identifiers of a sentence, and the places of addresses, in which nothing is a name.

    Args:
        sentence: From `without_backticks`.
        ticked: Likewise: what stands there is an identifier even where its form does not tell.
    """
    if not (ticked or any(mark in sentence for mark in _MARKS) or _HINT.search(sentence)):
        return [], []
    found = {span.start: span for start, end in ticked if (span := _ticked(sentence, start, end))}
    taken = [(span.start, span.end) for span in found.values()]
    addresses = []
    for match in _IDENTIFIER.finditer(sentence):
        start, end = match.span()
        if any(start < other and before < end for before, other in taken):
            continue
        if match.lastgroup == "address":
            addresses.append((start, end))
        elif name := _named(match, inside=any(before <= start and end <= other for before, other in ticked)):
            found[start] = TextSpan(start, start + len(name) if sentence.startswith(name, start) else end, name, CODE)
    return sorted(found.values()), addresses


def code_terms(code: str) -> Iterator[str]:
    """Identifiers of a block of code that other text may name: flags, calls of members, variables in capitals."""
    seen: set[str] = set()
    for match in _IDENTIFIER.finditer(code):
        group = "call" if match["call"] else match.lastgroup
        member = group == "call" and any(mark in match["call"] for mark in (".", "::"))
        if (member or group in ("flag", "variable", "code")) and (name := _named(match, inside=False)) not in seen:
            seen.add(name)
            yield name


def _named(match: re.Match[str], *, inside: bool) -> str:
    """The name that an identifier goes by; empty when it is none after all."""
    text = match.group()
    if match["call"]:
        call: str = match["call"]
        member = any(mark in call for mark in (".", "::", "->", "#"))
        if not (inside or member or not match["arguments"].strip()):
            return ""  # `name (something)` in prose
        return call if member else f"{call}()"
    text = text.rstrip(".,;:")
    if text.lower() in _ABBREVIATIONS or len(text) < _SHORTEST:
        return ""
    if match["path"] and not inside:
        parts = [part for part in re.split(r"[/~.]+", text) if part]
        if all(is_everyday(part) or len(part) < _SHORTEST or part.isdigit() for part in parts):
            return ""  # `and/or`, `read/write/execute`
    return text.lstrip("$") if match["variable"] else text


def _ticked(sentence: str, start: int, end: int) -> TextSpan | None:
    """What backticks mark, if it is one thing: a value says nothing, a command is named by its words before options."""
    text = sentence[start:end].strip()
    offset = sentence.index(text, start) if text else start
    if call := _TICKED_CALL.match(text):
        name = call.group(1)
        member = any(mark in name for mark in (".", "::", "->", "#"))
        at = offset + call.start(1)
        return TextSpan(at, at + len(name), name if member else f"{name}()", CODE)
    words: list[str] = []
    for word in text.split():
        if word.startswith("-") and words:
            break
        words.append(word)
    name = " ".join(words)
    bare = name.strip("[]{}<>\"'=,;:.")
    if not _PLAIN.match(bare) or len(bare) < _SHORTEST or bare.lower() in _VALUES or not any(map(str.isalpha, bare)):
        return None
    at = sentence.index(bare, offset)
    return TextSpan(at, at + len(bare), bare, CODE)
