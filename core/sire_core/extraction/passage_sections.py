"""A passage as sections with subject, sentences and spans that may be names; and its important terms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sire_core.documents.block_reading import read_blocks
from sire_core.documents.blocks import CODE, FIELD, FURNITURE, HEADING, ITEM, PARAGRAPH, ROW, Block, block_text
from sire_core.documents.heading_paths import is_path
from sire_core.documents.markdown_cleaning import without_comments
from sire_core.documents.markdown_sections import title_line
from sire_core.extraction.foreign_names import names_in_language
from sire_core.extraction.headings import CAPTIONS, STOP_WORDS, WORD, acts, heading_term, is_everyday
from sire_core.extraction.spans import (
    TextSpan,
    find_spans,
    has_unspaced_script,
    sentences_of,
    split_unspaced,
    stands_free,
    unspaced_names,
)
from sire_core.text.lexicon import ACTIONS, FUNCTION_WORDS, VAGUE_NOUNS
from sire_core.text.words import visible_text
from sire_core.types import Chunk

TERM = "Term"  # Type of common nouns that a passage defines or repeats

_DEFINITION = re.compile(
    r"(?:(?:In|For|With) [^,.:;]{2,60}, )?(?P<article>An? |The )?(?P<term>[\w.$@`/+#-]+(?: [\w.$@`/+#'-]+){0,4}?)"
    r"(?P<short> \([A-Za-z0-9 ./-]{2,40}\))?"
    r"(?:,? (?:also|sometimes|often) (?:known|called|referred)[^,.]{2,60},)? "
    r"(?:is|are|refers to|means|describes|represents)(?: (?:simply|basically|usually|typically))? "
    r"(?=(?:an? |the |one of |any |used |where |what |how |designed |responsible )"
    r"|[\w-]+(?: [\w-]+){0,3} (?:that|which|for|of)\b)"
)
_LONG_FORM = re.compile(r"(?<![\w'])((?:[A-Za-z][\w']*[ -]){1,10})\((?P<short>[A-Z][A-Za-z]{0,2}[A-Z]{1,5})s?\)")
_SHORT_FIRST = re.compile(r"\b(?P<short>[A-Z]{2,7})s? \((?P<long>[A-Za-z][a-z]+(?:[ -][A-Za-z]\w*){1,9})\)")
# What stands in brackets, or right in front of them: most brackets need no closer look.
_SHORT_BEHIND = re.compile(r"\([A-Z][A-Za-z]{0,2}[A-Z]")
_SHORT_BEFORE = re.compile(r"\((?<=[A-Zs] \()[A-Za-z][a-z]")
_RUN = re.compile(r"(?<![\w'\u2019.@/$-])[a-z][a-z0-9-]+(?: [a-z][a-z0-9-]+)+(?![\w'\u2019])")
_LONGEST = 3
_MOST = 6
_CANDIDATES = 60
_DESCRIPTION = 240


class Definition(NamedTuple):
    """A definition: the term, its span in the sentence, and the description."""

    start: int
    end: int
    term: str
    description: str


def definition_of(sentence: str) -> Definition | None:
    """The definition in a sentence: `A lease is the right to ..`, `Leases are ..`; None if there is none."""
    match = _DEFINITION.match(sentence)
    if match is None or not _may_name(match["term"], article=bool(match["article"])):
        return None
    description = " ".join(sentence[match.end() : match.end() + _DESCRIPTION].split())
    return Definition(*match.span("term"), match["term"], description)


def _may_name(term: str, *, article: bool) -> bool:
    """True if the words before `is a` are a term, not a pronoun, a clause or an everyday noun."""
    words = [word.lower() for word in WORD.findall(term)]
    if not words or words[0] in STOP_WORDS or words[0] in CAPTIONS or words[-1] in FUNCTION_WORDS | VAGUE_NOUNS:
        return False
    if any(word in FUNCTION_WORDS and word not in ("of", "and", "for", "as", "on") for word in words):
        return False
    if acts(words[0]) and not article and len(words) > 1 and term[0].isupper():
        return False
    return len(words) > 1 or not is_everyday(words[0]) or article or term[0].isupper()


def long_forms(sentence: str) -> list[TextSpan]:
    """Lower-case long forms before or after their acronym: `service level agreement (SLA)`."""
    spans: list[TextSpan] = []
    if "(" not in sentence:
        return spans
    for match in _LONG_FORM.finditer(sentence) if _SHORT_BEHIND.search(sentence) else ():
        words = [(word.start(), word.group()) for word in re.finditer(r"[A-Za-z][\w']*", match.group(1))]
        initials = match["short"].lower()
        for first in range(len(words)):
            letters = "".join(
                word[0].lower() for _, word in words[first:] if word not in ("of", "and", "for", "the", "to")
            )
            if letters == initials and len(words) - first > 1 and words[first][1].lower() not in FUNCTION_WORDS:
                start = match.start() + words[first][0]
                end = match.start() + words[-1][0] + len(words[-1][1])
                spans.append(TextSpan(start, end, sentence[start:end], TERM))
                break
    for match in _SHORT_FIRST.finditer(sentence) if _SHORT_BEFORE.search(sentence) else ():
        letters = "".join(word[0].lower() for word in re.findall(r"[A-Za-z][\w']*", match["long"]))
        joined = "".join(
            word[0].lower() for word in re.findall(r"[A-Za-z]\w*", match["long"]) if word not in ("of", "and")
        )
        if match["short"].lower() in (letters, joined):
            spans.append(TextSpan(match.start("long"), match.end("long"), match["long"], TERM))
    return spans


def recurring_phrases(sentences: Sequence[str], headings: Iterable[str]) -> list[str]:
    """Lower-case noun phrases of two or three words that occur twice, or once and in a heading."""
    counts = Counter(_phrases("\n".join(sentences)))
    for heading in headings:
        counts.update(set(_phrases(heading.lower())))
    phrases = [phrase for phrase, number in counts.most_common(_CANDIDATES) if number > 1]
    longer = [phrase for phrase in phrases if phrase.count(" ") > 1]
    phrases = [
        p for p in phrases if not any(p != other and p in other and counts[p] <= counts[other] for other in longer)
    ]
    return sorted(phrases, key=lambda phrase: -counts[phrase])[:_MOST]


def _phrases(lines: str) -> Iterator[str]:
    for match in _RUN.finditer(lines):
        run: list[str] = []
        for word in (*match.group().split(), ""):
            if word and word not in STOP_WORDS and len(word) > 2:
                run.append(word)
                continue
            while len(run) > 1 and (acts(run[0]) or run[0].endswith(("ed", "ly"))):
                del run[0]
            while len(run) > 1 and (run[-1].endswith(("ed", "ly")) or run[-1] in ACTIONS):
                del run[-1]
            for size in range(2, _LONGEST + 1):
                if len(run) >= size and run[-1] not in VAGUE_NOUNS and not any(acts(w) for w in run[-size:-1]):
                    yield " ".join(run[-size:])
            run = []


def term_spans(sentence: str, terms: Iterable[str]) -> list[TextSpan]:
    """Spans of terms in a sentence, in any case and number; longest first, without overlap."""
    lower = sentence.lower()
    spans: list[TextSpan] = []
    for term in sorted(terms, key=len, reverse=True):
        wanted = term.lower()
        at = lower.find(wanted)
        while at >= 0:
            end = at + len(wanted)
            if lower[end : end + 1] == "s":
                end += 1
            free = stands_free(lower, at, end)
            if free and all(end <= span.start or span.end <= at for span in spans):
                spans.append(TextSpan(at, end, term, TERM))
            at = lower.find(wanted, end)
    return spans


IDENTIFIER = "Code"  # Type of identifiers

_ADDRESS = r"(?:https?|ftp|wss?)://[^\s<>()\"'`]*|www\.[\w.-]+[^\s<>()\"'`]*"
_MAIL = r"[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}"
_NAMED = (
    r"(?<!\w)(?:(?<![\w-])(?P<flag>--[a-zA-Z][\w-]*\w)"
    r"|(?<![\w/.$])(?P<call>[A-Za-z_$][\w$]{0,60}(?:(?:\.|::|->|#)[A-Za-z_$][\w$]{0,60}){0,6})\((?P<arguments>[^()\n]{0,120})\)(?!\w)"
    r"|(?<![\w/.-])(?P<path>(?:~|\.{1,2})?(?:/(?:[\w.{}*:-]|,(?=[^\s{}]{0,40}\})){1,60}){2,12}/?)(?![\w/])"
    r"|(?<![\w.-])(?P<variable>\$?[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,8})(?![\w-])"
    r"|(?<![\w./@-])(?P<dotted>[A-Za-z_]\w{1,60}(?:(?:\.|::)[a-z_]\w{1,60}){1,6})(?![\w(/@]|[.-]\w)"
    r"|(?<![\w./-])(?P<snake>[a-z][a-z0-9]{0,40}(?:_[a-z0-9]{1,40}){1,8})(?![\w.]\w)"
    r"|(?<![\w./-])(?P<camel>[a-z]{2,30}\d?[A-Z][a-z]\w{0,40})(?![\w.]\w)"
    r"|(?<![\w./-])(?P<code>[A-Z]{2,8}(?:-\d{2,8}){1,3}|[A-Z]{3,8}\d{3,6}[A-Z]?)(?![\w-])"
    r"|(?<![\w./-])(?P<version>v\d{1,4}(?:\.\d{1,5}){1,3}|\d{1,4}\.\d{1,5}\.\d{1,5}[_-]\w{1,12})(?![\w.]\w))"
)
# An address of mail is looked for at every letter, so only where there is one.
_IDENTIFIER, _IDENTIFIER_OR_MAIL = (
    re.compile(f"(?P<address>{address})|{_NAMED}") for address in (_ADDRESS, f"{_ADDRESS}|{_MAIL}")
)
# An option in prose: dashes behind a word, a mark or a closing quotation mark are punctuation.
_OPTION = re.compile(
    r"(?<![^\s(\[{<>|/=,\"'\u201c\u2018])(?<![^\s(\[{=][\"'\u201c\u2018])(?<!(?<!-\w),)--(?:[a-z]|[A-Z]\w*[a-z][A-Z])"
)
# Most sentences hold no identifier. Every one has a mark that takes a fraction of the work to look for, or letters and
# digits in an order that prose has not.
_HINT = re.compile(
    r"[(/.:A-Zv](?:(?<=[\w$]\()|(?<=/)[\w.{}*:-]{1,60}/|(?<=[.:])(?:(?<=\w\.)|:)[a-z_]\w|(?<=[a-z\d][A-Z])[a-z]"
    r"|(?<=[A-Z])(?:-\d\d|\d{3})|(?<=\.)\d{1,5}\.\d|(?<=v)\d{1,4}\.)"
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
    """The sentence without backticks, and the spans that they marked as code."""
    if "`" not in sentence:
        return sentence, []
    parts: list[str] = []
    ticked_spans: list[tuple[int, int]] = []
    length = position = 0
    for match in _TICKED.finditer(sentence):
        parts += (sentence[position : match.start()], match.group(2))
        length += match.start() - position
        ticked_spans.append((length, length + len(match.group(2))))
        length += len(match.group(2))
        position = match.end()
    parts.append(sentence[position:])
    return "".join(parts), ticked_spans


def find_identifiers(sentence: str, ticked: list[tuple[int, int]]) -> tuple[list[TextSpan], list[tuple[int, int]]]:
    """Identifiers of a sentence, and the spans of addresses, which contain no names."""
    has_mark = "_" in sentence or "@" in sentence or "--" in sentence or "://" in sentence or "www." in sentence
    if not (has_mark or ticked or _HINT.search(sentence)):
        return [], []
    by_start = {span.start: span for start, end in ticked if (span := _code_name(sentence, start, end))}
    ranges = [(span.start, span.end) for span in by_start.values()]
    addresses = []
    for match in _identifiers(sentence):
        start, end = match.span()
        if any(start < other and before < end for before, other in ranges):
            continue
        inside = any(before <= start and end <= other for before, other in ticked)
        if match.lastgroup == "address":
            addresses.append((start, end))
        elif match["flag"] and not (inside or _OPTION.match(sentence, start)):
            continue
        elif name := _name(match, inside=inside):
            by_start[start] = TextSpan(
                start, start + len(name) if sentence.startswith(name, start) else end, name, IDENTIFIER
            )
    return sorted(by_start.values()), addresses


def code_terms(code: str) -> Iterator[str]:
    """Identifiers in a code block that prose may mention: flags, member calls, upper-case variables."""
    seen: set[str] = set()
    for match in _identifiers(code):
        group = "call" if match["call"] else match.lastgroup
        member = group == "call" and any(mark in match["call"] for mark in (".", "::"))
        if (member or group in ("flag", "variable", "code")) and (name := _name(match, inside=False)) not in seen:
            seen.add(name)
            yield name


def _identifiers(text: str) -> Iterator[re.Match[str]]:
    return (_IDENTIFIER_OR_MAIL if "@" in text else _IDENTIFIER).finditer(text)


def _name(match: re.Match[str], *, inside: bool) -> str:
    """Name of an identifier; empty if it is none."""
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
        if text.count("{") > text.count("}"):
            return ""  # a template or a choice with spaces, cut inside
        parts = [part for part in re.split(r"[/~.]+", text) if part]
        if all(is_everyday(part) or len(part) < _SHORTEST or part.isdigit() for part in parts):
            return ""  # `and/or`, `read/write/execute`
    return text.lstrip("$") if match["variable"] else text


def _code_name(sentence: str, start: int, end: int) -> TextSpan | None:
    """Name of a span in backticks: a value has none, a command is named by its words before options."""
    text = sentence[start:end].strip()
    offset = sentence.index(text, start) if text else start
    if call := _TICKED_CALL.match(text):
        name = call.group(1)
        member = any(mark in name for mark in (".", "::", "->", "#"))
        at = offset + call.start(1)
        return TextSpan(at, at + len(name), name if member else f"{name}()", IDENTIFIER)
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
    return TextSpan(at, at + len(bare), bare, IDENTIFIER)


_LINK_MARKUP = re.compile(r"!?\[([^\[\]]{0,300})\]\((?:[^()\s]|\([^()\s]*\)){0,500}(?:[ \t]+\"[^\"]{0,200}\")?\)")
_REFERENCE = re.compile(r"\[([^\[\]]{1,200})\]\[[^\[\]]{0,100}\]")
_MARKUP_TAG = re.compile(r"</?[a-zA-Z][\w-]{0,20}(?: [^<>`]{0,300})?/?>")
_ANCHOR = re.compile(r"(?<![ \t])[ \t]*\{[#:.][^{}\s]{1,100}\}")
_STRONG = re.compile(r"(?<!\w)(\*{1,3}|__)(?=\S)([^*_\n]{1,200})(?<=\S)\1(?!\w)")
_ENDS = (".", "!", "?", ":", ";", ",", "\u3002", "\uff01", "\uff1f", "\uff1a", "\uff0c", "\u3001")
_LONGEST_HEADING = 90
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")

_LONGEST_SENTENCE = 1_000
_PLURAL = re.compile(r"[A-Z]{2,6}s|[A-Z][a-z]+(?:ist|ik|ian|ite)s")
VALUES = frozenset(("Date", "Quantity"))  # Types of values, as opposed to things


class Piece(NamedTuple):
    """A part of a passage."""

    kind: str  # `heading`, `prose`, `row` or `code`
    text: str  # Without the marks that Markdown puts around it; backticks stay, they tell what is code


def pieces_of(text: str, blocks: Sequence[Block] | None = None) -> list[Piece]:
    """Pieces of a passage that may hold names: all of its blocks but fields and furniture. Linear time.

    `blocks` is its structure, or that of the parts to read; None reads it from the text.
    """
    blocks = read_blocks(text) if blocks is None else blocks
    pieces = []
    for block, above, below in zip(blocks, [None, *blocks], [*blocks[1:], None], strict=False):
        if block.kind in (FIELD, FURNITURE):
            continue
        words = without_comments(visible_text(block_text(text, block)))
        is_whole = len(blocks) == 1
        apart = not is_whole and _is_apart(text, block, below) and (block.kind == ITEM or _is_apart(text, above, block))
        kind = "prose" if is_whole and block.kind != CODE else _kind_of(block, words, apart=apart)
        if cleaned := words if kind == CODE else " ".join(without_markup(words).split()):
            pieces.append(Piece(kind, cleaned))
    return pieces


def _kind_of(block: Block, words: str, *, apart: bool) -> str:
    if block.kind in (CODE, ROW):
        return block.kind
    is_line = "\n" not in words
    if block.kind == HEADING or (is_line and apart and block.kind in (PARAGRAPH, ITEM) and _may_be_heading(words)):
        return HEADING
    return ROW if is_line and words.count(" | ") > 1 else "prose"


def _is_apart(text: str, above: Block | None, below: Block | None) -> bool:
    """True if a blank line is between two blocks, or nothing above the second."""
    if below is None:
        return False
    return above is None or _BLANK_LINE.search(text, above.end, below.start) is not None


def without_markup(text: str) -> str:
    """Prose without link targets, tags, anchors and emphasis."""
    if "](" in text or "][" in text:
        text = _REFERENCE.sub(r"\1", _LINK_MARKUP.sub(r"\1", text))
    if "<" in text:
        text = _MARKUP_TAG.sub("", text)
    if "{" in text:
        text = _ANCHOR.sub("", text)
    if "**" in text or "__" in text or " *" in text or text[:1] == "*":
        text = _STRONG.sub(r"\2", text)
    return text


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
    """A heading and what follows it."""

    subject: str  # What it is about: the passage's title, else what the heading names or the first sentence defines
    # Of its prose and the rows of its tables, without marks of Markdown
    sentences: list[str] = field(default_factory=list)
    spans: list[list[TextSpan]] = field(default_factory=list)  # What may be a name, per sentence
    definitions: dict[str, str] = field(default_factory=dict)  # What is said of each term that it defines
    # Names outside of sentences, with types: its heading, identifiers in its code
    others: list[tuple[str, str]] = field(default_factory=list)


def sections_of(chunk: Chunk) -> list[TextSection]:
    """The sections of a passage; always at least one."""
    has_path = is_path(chunk.title)
    title = "" if has_path else " ".join(visible_text(chunk.title).split())
    start = 0
    if not title and not has_path:
        title, rest = title_line(chunk.text)
        start = len(chunk.text) - len(rest) if title else 0
    blocks = [
        block if block.start >= start else replace(block, start=start) for block in chunk.blocks if block.end > start
    ]
    pieces = pieces_of(chunk.text, blocks)
    if len(pieces) < 2 and not any("`" in piece.text for piece in pieces):  # prose in one piece: a page's paragraph
        return [_section(title, "", pieces, [], chunk.language)]
    parts = list(_parts(pieces))
    phrases = recurring_phrases(
        list(_bounded(piece.text for piece in pieces if piece.kind == "prose")),
        [heading for heading, _ in parts if heading],
    )
    return [
        _section(title if index == 0 else "", heading, part, phrases, chunk.language)
        for index, (heading, part) in enumerate(parts)
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
    """True if a piece begins like a glossary entry."""
    return piece.kind == "prose" and piece.text.startswith(("A ", "An ", "The ", "Any ", "One "))


def _section(title: str, heading: str, pieces: Sequence[Piece], phrases: Sequence[str], code: str) -> TextSection:
    section = TextSection(title or heading)
    rows: list[tuple[str, list[tuple[int, int]], Definition | None]] = []
    for piece in pieces:
        if piece.kind == "code":
            section.others += [(name, IDENTIFIER) for name in code_terms(piece.text)]
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
    _in_its_language(section, code)
    return section


def _in_its_language(section: TextSection, code: str) -> None:
    """Adapt the names of a passage that is not English to its language."""
    text = " ".join(section.sentences)
    if has_unspaced_script(text):
        for sentence, row in zip(section.sentences, section.spans, strict=True):
            row[:] = merged([span._replace(type="Term") for span in unspaced_names(sentence)], row)
    else:
        names_in_language(section.sentences, section.spans, code)


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
    spans = find_spans(sentence)
    if identifiers or addresses:
        code = [*addresses, *((span.start, span.end) for span in identifiers)]
        spans = sorted([*(span for span in spans if not _overlaps(span, code)), *identifiers])
    common = long_forms(sentence)
    if definition is not None:
        common.append(TextSpan(definition.start, definition.end, definition.term, TERM))
    if terms:
        places = [(span.start, span.end) for span in common]
        common += [span for span in term_spans(sentence, terms) if not _overlaps(span, places)]
    if not common:
        return spans
    code = [(span.start, span.end) for span in identifiers]
    return merged([span for span in common if not _overlaps(span, code)], spans)


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
    """Equivalent forms of a name: `lookup` for `lookup()`, `lease` for `leases`, `Marxist` for `Marxists`."""
    if kind == IDENTIFIER:
        return (name[:-2],) if name.endswith("()") else ()
    if _PLURAL.fullmatch(name):
        return (name[:-1],)
    if kind == TERM and len(name) > 4 and name.endswith("s") and not name.endswith(("ss", "us", "is")):
        return (name[:-1],)
    return ()
