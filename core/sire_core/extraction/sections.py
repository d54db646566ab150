"""A passage as sections, each with its subject, sentences and spans that may be names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sire_core.algorithms.words import visible_text
from sire_core.corpus.markdown_blocks import code_end
from sire_core.corpus.markdown_cleaning import without_comments
from sire_core.corpus.sections import SEPARATOR, title_line
from sire_core.extraction.headings import heading_term
from sire_core.extraction.languages import (
    has_unspaced_script,
    language_of,
    split_unspaced,
    unspaced_names,
    without_function_words,
)
from sire_core.extraction.spans import TextSpan, find_spans, sentences_of
from sire_core.extraction.terms import (
    CODE,
    TERM,
    Definition,
    code_terms,
    definition_of,
    find_identifiers,
    long_forms,
    recurring_phrases,
    term_spans,
    without_backticks,
)
from sire_core.types import Chunk

_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(\S.*?)[ \t]*#*[ \t]*$")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")
_RULE = re.compile(r"[\s|:=*_+-]*$")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\((?:[^()\s]|\([^()\s]*\)){0,500}(?:[ \t]+\"[^\"]{0,200}\")?\)")
_REFERENCE = re.compile(r"\[([^\[\]]{1,200})\]\[[^\[\]]{0,100}\]")
_TAG = re.compile(r"</?[a-zA-Z][\w-]{0,20}(?: [^<>`]{0,300})?/?>")
_ANCHOR = re.compile(r"[ \t]*\{[#:.][^{}\s]{1,100}\}")
_STRONG = re.compile(r"(?<!\w)(\*{1,3}|__)(?=\S)([^*_\n]{1,200})(?<=\S)\1(?!\w)")
_ENDS = (".", "!", "?", ":", ";", ",", "\u3002", "\uff01", "\uff1f", "\uff1a", "\uff0c", "\u3001")
_LONGEST_HEADING = 90
_LONGEST_LINE = 300  # of a line that is looked at as a heading

_LONGEST_SENTENCE = 1_000
_PLURAL_ACRONYM = re.compile(r"[A-Z]{2,6}s")
VALUES = frozenset(("Date", "Quantity"))
"""Types of values, as opposed to things."""
_CERTAIN = VALUES | {"Work", CODE, TERM}


class Piece(NamedTuple):
    """A part of a passage.

    Attributes:
        kind: `heading`, `prose`, `row` or `code`.
        text: Without the marks that Markdown puts around it; backticks stay, they tell what is code.
    """

    kind: str
    text: str


def pieces_of(text: str) -> list[Piece]:
    """Cut a passage at its layout: headings, list items, rows, code and blank lines. Linear time.

    Text in which nothing but blank lines tells headings (as converters leave it) has them, too: short lines between
    blank ones that no punctuation ends. Linear in the length of the text.
    """
    if "\n" not in text.strip():
        cleaned = _clean("prose", without_comments(text))
        return [Piece("prose", cleaned)] if cleaned else []
    return [Piece(kind, cleaned) for kind, part in _pieces(without_comments(text)) if (cleaned := _clean(kind, part))]


def without_markup(text: str) -> str:
    """Prose without link targets, tags, anchors and emphasis."""
    if "](" in text or "][" in text:
        text = _REFERENCE.sub(r"\1", _LINK.sub(r"\1", text))
    if "<" in text:
        text = _TAG.sub("", text)
    if "{" in text:
        text = _ANCHOR.sub("", text)
    if "**" in text or "__" in text or " *" in text or text[:1] == "*":
        text = _STRONG.sub(r"\2", text)
    return text


def _clean(kind: str, text: str) -> str:
    return text if kind == "code" else " ".join(without_markup(text).split())


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    lines = text.split("\n")
    prose: list[str] = []
    row = 0
    while row < len(lines):
        line = lines[row]
        if (stop := code_end(lines, row)) > row:
            yield from _close_prose(prose)
            yield "code", "\n".join(_within_fences(lines[row:stop]))
            row = stop
            continue
        line = line[quote.end() :] if (quote := _QUOTE.match(line)) else line
        bare = line.strip()
        if _RULE.match(bare):
            if prose and bare[:1] in ("=", "-") and len(prose) == 1 and len(bare) > 1:
                yield "heading", prose.pop()
            yield from _close_prose(prose)
        elif len(line) <= _LONGEST_LINE and (heading := _HEADING.match(line)):
            yield from _close_prose(prose)
            yield "heading", heading.group(1)
        elif bare[0] == "|" or bare.count(" | ") > 1:
            yield from _close_prose(prose)
            yield "row", bare.strip("|")
        elif item := _ITEM.match(line):
            yield from _close_prose(prose)
            rest = line[item.end() :].strip()
            if _blank_follows(lines, row) and _may_be_heading(rest):
                yield "heading", rest
            else:
                prose.append(rest)
        elif not prose and _stands_alone(lines, row) and _may_be_heading(bare):
            yield "heading", bare
        else:
            prose.append(bare)
        row += 1
    yield from _close_prose(prose)


def _within_fences(lines: list[str]) -> list[str]:
    return lines[1:-1] if lines[-1].strip(" \t`~") == "" else lines[1:]


def _close_prose(prose: list[str]) -> Iterator[tuple[str, str]]:
    if prose:
        yield "prose", " ".join(prose)
        prose.clear()


def _stands_alone(lines: list[str], row: int) -> bool:
    """Whether the lines around one are blank, and something follows."""
    return (row == 0 or not lines[row - 1].strip()) and _blank_follows(lines, row)


def _blank_follows(lines: list[str], row: int) -> bool:
    return row + 1 < len(lines) and not lines[row + 1].strip()


def _may_be_heading(line: str) -> bool:
    first = line[:1]
    return (
        0 < len(line) <= _LONGEST_HEADING
        and not line.endswith(_ENDS)
        and (first.isupper() or first.isdigit() or first in "`[-_./" or not first.isascii())
        and len(line.split()) <= 14
    )


@dataclass(slots=True)
class TextSection:
    """A heading and what follows it.

    Attributes:
        subject: What it is about: the passage's title, else what the heading names or the first sentence defines.
        sentences: Of its prose and the rows of its tables, without marks of Markdown.
        spans: What may be a name, per sentence.
        definitions: What is said of each term that it defines.
        others: Names outside of sentences, with types: its heading, identifiers in its code.
    """

    subject: str
    sentences: list[str] = field(default_factory=list)
    spans: list[list[TextSpan]] = field(default_factory=list)
    definitions: dict[str, str] = field(default_factory=dict)
    others: list[tuple[str, str]] = field(default_factory=list)


def sections_of(chunk: Chunk) -> list[TextSection]:
    """The sections of a passage; always at least one."""
    is_path = SEPARATOR in chunk.title
    title = "" if is_path else " ".join(visible_text(chunk.title).split())
    text = visible_text(chunk.text)
    if not title and not is_path:
        title, text = title_line(text)
    pieces = pieces_of(text)
    if len(pieces) < 2 and not any("`" in piece.text for piece in pieces):  # prose in one piece: a page's paragraph
        return [_section(title, "", pieces, [])]
    parts = list(_parts(pieces))
    phrases = recurring_phrases(
        list(_bounded(piece.text for piece in pieces if piece.kind == "prose")),
        [heading for heading, _ in parts if heading],
    )
    return [
        _section(title if index == 0 else "", heading, part, phrases) for index, (heading, part) in enumerate(parts)
    ]


def _parts(pieces: Sequence[Piece]) -> Iterator[tuple[str, list[Piece]]]:
    """Runs of pieces, each with its heading; of consecutive headings the last one with a subject."""
    heading, part = "", list[Piece]()
    for piece, following in zip(pieces, [*pieces[1:], Piece("prose", "")], strict=True):
        if piece.kind != "heading":
            part.append(piece)
            continue
        if part:
            yield heading, part
            heading, part = "", []
        heading = heading_term(without_backticks(piece.text)[0], explained=_explains(following)) or heading
    yield heading, part


def _explains(piece: Piece) -> bool:
    """Whether a piece begins like a glossary entry."""
    return piece.kind == "prose" and piece.text.startswith(("A ", "An ", "The ", "Any ", "One "))


def _section(title: str, heading: str, pieces: Sequence[Piece], phrases: Sequence[str]) -> TextSection:
    section = TextSection(title or heading)
    rows: list[tuple[str, list[tuple[int, int]], Definition | None]] = []
    for piece in pieces:
        if piece.kind == "code":
            section.others += [(name, CODE) for name in code_terms(piece.text)]
            continue
        for index, marked in enumerate(_bounded(_sentences(piece.text))):
            sentence, ticked = without_backticks(marked)
            rows.append((sentence, ticked, definition_of(sentence) if index == 0 else None))
    defined = [defined_term for _, _, defined_term in rows if defined_term]
    if not section.subject and defined and rows[0][2] is not None:
        section.subject = defined[0].term
    section.definitions = {defined_term.term: defined_term.description for defined_term in reversed(defined)}
    if heading:
        section.others.insert(0, (heading, TERM))
    wanted = [*phrases, *(defined_term.term for defined_term in defined if not defined_term.term[0].isupper())]
    for sentence, ticked, definition in rows:
        section.sentences.append(sentence)
        section.spans.append(_spans(sentence, ticked, definition, wanted))
    _in_its_language(section)
    return section


def _in_its_language(section: TextSection) -> None:
    """Adapt the names of a passage that is not English to its language."""
    text = " ".join(section.sentences)
    if has_unspaced_script(text):
        for sentence, row in zip(section.sentences, section.spans, strict=True):
            row[:] = merged([span._replace(type="Term") for span in unspaced_names(sentence)], row)
    elif language := language_of(text):
        for row in section.spans:
            spans = (span if span.type in _CERTAIN else without_function_words(span, language) for span in row)
            row[:] = [span for span in spans if span is not None]


def _sentences(text: str) -> list[str]:
    sentences = sentences_of(text)
    if not has_unspaced_script(text):
        return sentences
    return [part for sentence in sentences for part in split_unspaced(sentence)]


def _bounded(sentences: Iterable[str]) -> Iterator[str]:
    """Split long sentences: some steps take quadratic time."""
    for sentence in sentences:
        start = 0
        while len(sentence) - start > _LONGEST_SENTENCE:
            stop = sentence.rfind(" ", start + _LONGEST_SENTENCE // 2, start + _LONGEST_SENTENCE) + 1
            stop = stop or start + _LONGEST_SENTENCE
            yield sentence[start:stop].strip()
            start = stop
        if rest := sentence[start:].strip():
            yield rest


def _spans(
    sentence: str, ticked: list[tuple[int, int]], definition: Definition | None, terms: Sequence[str]
) -> list[TextSpan]:
    identifiers, addresses = find_identifiers(sentence, ticked)
    names = [span for span in find_spans(sentence) if not _overlaps(span, [(s.start, s.end) for s in identifiers])]
    names = [span for span in names if not _overlaps(span, addresses)]
    spans = sorted([*names, *identifiers])
    common = long_forms(sentence)
    if definition is not None:
        common.append(TextSpan(definition.start, definition.end, definition.term, TERM))
    common += [span for span in term_spans(sentence, terms) if not _overlaps(span, [(s.start, s.end) for s in common])]
    common = [span for span in common if not _overlaps(span, [(s.start, s.end) for s in identifiers])]
    return merged(common, spans) if common else spans


def _overlaps(span: TextSpan, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start < span.end and span.start < end for start, end in spans)


def merged(preferred: Sequence[TextSpan], others: Sequence[TextSpan]) -> list[TextSpan]:
    """Merge spans; where they overlap the preferred one wins, except over values, works and longer names."""

    def yields(span: TextSpan, other: TextSpan) -> bool:
        inside = span.start <= other.start and other.end <= span.end and span.end - span.start > other.end - other.start
        return not (inside or span.type in VALUES or span.type == "Work")

    result = list(others)
    for span in preferred:
        clashes = [other for other in result if other.start < span.end and span.start < other.end]
        if all(yields(other, span) for other in clashes):
            result = [other for other in result if other not in clashes] + [span]
    return sorted(result)


def other_forms(name: str, kind: str) -> tuple[str, ...]:
    """Equivalent forms of an identifier or common noun: `lookup` for `lookup()`, `lease` for `leases`."""
    if kind == CODE:
        return (name[:-2],) if name.endswith("()") else ()
    if _PLURAL_ACRONYM.fullmatch(name):
        return (name[:-1],)
    if kind == TERM and len(name) > 4 and name.endswith("s") and not name.endswith(("ss", "us", "is")):
        return (name[:-1],)
    return ()
