"""Furniture of documents: what is no text of theirs, such as menus, contents, licences, greetings and page headers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise

from sire_core.documents.blocks import CAPTION, FIELD, FURNITURE, HEADING, ITEM, PARAGRAPH, QUOTE, ROW

_WORD = re.compile(r"\w+")
_MIN_LISTED = 4  # headings of a text that lists some of them first
_MIN_LINKS = 3  # links side by side, or below each other, that make a menu
_MIN_REPEATED_PAGES = 3
_MIN_INDEX_LETTERS, _MIN_NAMED_INDEX_LETTERS = 4, 2  # in the order of the alphabet, with entries below each
_MAX_SENTENCES = 0.1  # share of the entries of an index that end like a sentence; those of a glossary do
_MAX_PAGE_LINE_CHARS = 120
_LINK = re.compile(r"!?\[[^\[\]\n]{0,300}\]\((?:[^()\s]|\([^()\s]{0,100}\)){0,1000}(?:[ \t]+\"[^\"\n]{0,200}\")?\)")
_IMAGE = re.compile(r"!\[[^\[\]\n]{0,1000}\]\([^()\n]{0,1000}\)\s*\Z")
_CAPTION = re.compile(
    r"(?:figure|fig\.|table|listing|abbildung|abb\.|tabelle|tableau|figura|tabla) ?\d{1,3}(?:[.-]\d{1,3})*"
    r"(?:[.:]| [-\u2013\u2014])\s",
    re.IGNORECASE,
)
_DEFINED_LINK = re.compile(r" {0,3}\[[^\[\]\n]{1,200}\]:[ \t]*\S+(?:[ \t]+[\"'(][^\n]{0,300})?[ \t]*\Z")
_LEADER = re.compile(r"[ \t]{0,9}(?:\d{1,4}|[cilvx]{1,7})?[ \t]{0,9}(?:\.{4}|\.?(?: \.){3}|\u2026{2})")
"""Dots that lead to a page number, at the end of a line of contents that is read backwards."""
_PAGE_NUMBER = re.compile(
    r"\W*(?:(?:page|seite|p\.|pag\.|s\.)\s*)?\d{1,4}(?:\s*(?:of|von|de|/)\s*\d{1,4})?\W*\Z", re.IGNORECASE
)
_GREETING = re.compile(
    r"(?:dear|hi|hello|hey|good (?:morning|afternoon|evening)|liebe[rs]?|hallo|guten (?:tag|morgen|abend)|moin"
    r"|sehr geehrte[rs]?|bonjour|bonsoir|ch[e\u00e8]re?s?|madame|monsieur|hola|buen[oa]s|estimad[oa]s?|querid[oa]s?"
    r"|ciao|gentil[ei]|buongiorno|beste|geachte|ol\u00e1|prezad[oa]s?|drog[ia]|szanown[yia]|cze\u015b\u0107)\b[^\n.?]{0,60}[,!:]?\Z",
    re.IGNORECASE,
)
_SIGN_OFF = re.compile(
    r"(?:(?:(?:best|kind|warm|many) )*(?:regards|wishes|thanks)|thanks(?: again)?|thank you|cheers|sincerely"
    r"|yours(?: \w+)?|all the best|best|gru\u00df|mfg|vg|lg"
    r"|(?:mit )?(?:freundliche|beste|viele|liebe|herzliche|sch\u00f6ne)[nr]? gr\u00fc(?:\u00df|ss)en?"
    r"|cordialement|bien \u00e0 (?:vous|toi)|saludos(?: cordiales)?|atentamente|cordiali saluti|saluti"
    r"|(?:met )?vriendelijke groet(?:en)?|atenciosamente|pozdrawiam)[^\w\n]{0,3}(?:\n|\Z)",
    re.IGNORECASE,
)
_MAX_SIGNATURE_LINES, _MAX_SIGNATURE_LINE_CHARS = 8, 80
_CONTENTS = re.compile(
    r"(?:table of )?contents|list of (?:figures|tables)|toc|index|indices and tables"
    r"|inhalt(?:sverzeichnis|s\u00fcbersicht)?"
    r"|table des mati\u00e8res|sommaire|(?:tabla de )?contenidos?|\u00edndice(?: general)?|indice|sommario|sum\u00e1rio"
    r"|inhoud(?:sopgave)?|spis tre\u015bci|\u0441\u043e\u0434\u0435\u0440\u0436\u0430\u043d\u0438\u0435"
    r"|\u043e\u0433\u043b\u0430\u0432\u043b\u0435\u043d\u0438\u0435|\u76ee\u5f55|\u76ee\u6b21",
    re.IGNORECASE,
)
_LICENCE = re.compile(
    r"(?:appendix )?(?:[\dA-Z][\d.]{0,6}:? )?(?:the )?(?:gnu (?:(?:lesser |library |affero )?general public"
    r"|free documentation)|apache|mozilla public|eclipse public|mit|(?:\w+-clause )?bsd) licen[cs]e\b[^\n]{0,40}",
    re.IGNORECASE,
)
_LICENCE_WORDS = (
    *("permitted to copy and distribute", "permission is hereby granted", "redistribution and use in source"),
    *("terms and conditions for", "without warranties or conditions"),
)
_INDEX = re.compile(
    r"(?:\S+ ){0,6}(?:index(?:es)?|indices|\w*verzeichnis|\w*register|skorowidz"
    r"|\u0443\u043a\u0430\u0437\u0430\u0442\u0435\u043b\u044c|\u7d22\u5f15)"
    r"|(?:index|\u00edndice|indice) \w+(?: \w+){0,4}",
    re.IGNORECASE,
)
_INDEX_LETTER = re.compile(r"[\W_]*(?:([^\W\d_])|symbole?s?|numbers|sonderzeichen)[\W_]*", re.IGNORECASE)
_ENDS_WITH_PAGES = re.compile(r"(?:,|[ .]\.) ?\d{1,4}(?:[-\u2013]\d{1,4})?\Z")
_MAX_INDEX_LETTER_CHARS = 40


def is_greeting(text: str) -> bool:
    """True if a text is a greeting of a mail: `Dear Fanny`."""
    return _GREETING.match(text) is not None


def is_contents(heading: str) -> bool:
    """True if a heading only announces a list of contents or an index, in any of ten languages."""
    return _CONTENTS.fullmatch(heading.strip(" .:")) is not None


def with_furniture(
    kinds: Sequence[str], levels: Sequence[int], texts: Sequence[str], pages: Sequence[int]
) -> list[str]:
    """Kinds of blocks, with captions, menus, contents, greetings, signatures and lines of pages told from text.

    For each block its kind by its marks, its level or depth, its lines, and the page on which it begins (0: none).
    """
    marked = [_kind_of(*block) for block in zip(kinds, levels, texts, strict=True)]
    _mark_menus(marked, texts)
    _mark_indexes(marked, texts)
    _mark_licences(marked, levels, texts)
    _mark_contents(marked, levels, texts)
    if FIELD in marked:
        _mark_signatures(marked, levels, texts)
    if any(pages):
        _mark_page_lines(marked, texts, pages)
    return marked


def _kind_of(kind: str, level: int, words: str) -> str:
    if kind not in (PARAGRAPH, ITEM, QUOTE):
        return kind
    if not any(map(str.isalnum, words)):
        return FURNITURE
    rows = words.split("\n")
    of_text = kind == PARAGRAPH and not level and len(rows) == 1
    if ("](" in words and _IMAGE.match(words)) or (of_text and _CAPTION.match(words)):
        return CAPTION
    greets = of_text and words[-1] in ",!" and is_greeting(words)
    defines = "]:" in words and all(map(_DEFINED_LINK.match, rows))
    return FURNITURE if greets or defines or _is_contents_list(words, rows) else kind


def _is_contents_list(words: str, rows: Sequence[str]) -> bool:
    """True if dots lead to page numbers in most lines."""
    if not any(dots in words for dots in ("....", ". . .", "\u2026\u2026")):
        return False
    return 2 * sum(_LEADER.match(row[:-41:-1]) is not None for row in rows) > len(rows)


def _mark_menus(kinds: list[str], texts: Sequence[str]) -> None:
    """Paragraphs and items next to each other that hold nothing but links are a menu if the links are enough."""
    counts = [
        _link_count(words) if "](" in words and kind in (PARAGRAPH, ITEM, QUOTE) else 0
        for kind, words in zip(kinds, texts, strict=True)
    ]
    for _, group in groupby(range(len(kinds)), lambda number: counts[number] > 0):
        numbers = list(group)
        if sum(counts[number] for number in numbers) >= _MIN_LINKS:
            for number in numbers:
                kinds[number] = FURNITURE


def _link_count(words: str) -> int:
    """Number of links in a text of nothing else; 0 if there is anything else in it."""
    rest, count = _LINK.subn("", words)
    return 0 if any(map(str.isalpha, rest)) else count


def _mark_signatures(kinds: list[str], levels: Sequence[int], texts: Sequence[str]) -> None:
    """Closings of mails, and the few short lines below them."""
    room = 0  # lines that may still belong to a signature
    for number, (kind, words) in enumerate(zip(kinds, texts, strict=True)):
        if kind != PARAGRAPH or levels[number]:
            room = 0 if kind != FURNITURE else room
            continue
        rows = words.split("\n")
        is_short = max(map(len, rows)) <= _MAX_SIGNATURE_LINE_CHARS
        begins = is_short and (_SIGN_OFF.match(words) is not None or rows[0].rstrip() == "--")
        room = _MAX_SIGNATURE_LINES if begins else room
        if is_short and room >= len(rows) and (begins or not words.endswith((".", "?"))):
            kinds[number], room = FURNITURE, room - len(rows)
        else:
            room = 0


def _mark_indexes(kinds: list[str], texts: Sequence[str]) -> None:
    """Entries below letters of the alphabet, if the heading is that of an index or most end with pages."""
    letters = {
        number: (match[1] or "").casefold()
        for number, words in enumerate(texts)
        if len(words) <= _MAX_INDEX_LETTER_CHARS and (match := _INDEX_LETTER.fullmatch(words))
    }
    if len(letters) < _MIN_NAMED_INDEX_LETTERS:
        return
    heads = [number for number, kind in enumerate(kinds) if kind == HEADING and number not in letters]
    for head, stop in pairwise([-1, *heads, len(kinds)]):
        marks = [number for number in range(head + 1, stop) if number in letters]
        marks = [number for number in marks if kinds[number] == HEADING] or marks
        order = [letters[number] for number in marks]
        is_named = head >= 0 and _INDEX.fullmatch(texts[head].strip("# \t")) is not None
        least = _MIN_NAMED_INDEX_LETTERS if is_named else _MIN_INDEX_LETTERS
        if len(set(order)) < least or order != sorted(order):
            continue
        entries = [number for number in range(marks[0], stop) if number not in marks]
        ends = [texts[number] for number in entries if kinds[number] not in (ROW, FURNITURE)]
        if sum(words.endswith((".", "?", "!")) for words in ends) > _MAX_SENTENCES * len(entries):
            continue
        if is_named or 2 * sum(_ENDS_WITH_PAGES.search(words[-10:]) is not None for words in ends) > len(entries):
            first = head if is_named else marks[0]
            kinds[first:stop] = [FURNITURE] * (stop - first)


def _mark_licences(kinds: list[str], levels: Sequence[int], texts: Sequence[str]) -> None:
    """Texts of well-known licences in documents that are mostly about something else, with their headings."""
    sizes = list(accumulate(map(len, texts), initial=0))
    for number, (kind, level) in enumerate(zip(kinds, levels, strict=True)):
        if kind != HEADING or not _LICENCE.fullmatch(texts[number].strip("# \t").split("\n")[0]):
            continue
        behind = range(number + 1, len(kinds))
        stop = next((row for row in behind if kinds[row] == HEADING and levels[row] <= level), len(kinds))
        is_part = 2 * (sizes[stop] - sizes[number]) < sizes[-1]
        if is_part and any(mark in words.lower() for words in texts[number:stop] for mark in _LICENCE_WORDS):
            kinds[number:stop] = [FURNITURE] * (stop - number)


def _mark_contents(kinds: list[str], levels: Sequence[int], texts: Sequence[str]) -> None:
    """Items and short lines below a heading that announces contents, up to the next heading; it too if all are such."""
    _mark_listed_headings(kinds, levels, texts)
    heads = [number for number, kind in enumerate(kinds) if kind == HEADING]
    for number, stop in pairwise([*heads, len(kinds)]):
        if not is_contents(texts[number].partition("\n")[0].strip("# \t")):
            continue
        for below in range(number + 1, stop):
            is_line = kinds[below] == PARAGRAPH and not texts[below].endswith((".", "?", "!", ":"))
            if is_line or kinds[below] in (ITEM, ROW):
                kinds[below] = FURNITURE
        if stop > number + 1 and all(kind == FURNITURE for kind in kinds[number + 1 : stop]):
            kinds[number] = FURNITURE


def _mark_listed_headings(kinds: list[str], levels: Sequence[int], texts: Sequence[str]) -> None:
    """Headings that list contents: several above no text whose words come again below."""
    heads = [number for number, kind in enumerate(kinds) if kind == HEADING]
    if len(heads) < _MIN_LISTED:
        return
    keys = {number: " ".join(_WORD.findall(texts[number].casefold())) for number in heads}
    last = {key: number for number, key in keys.items()}
    announced = {one for one, below in pairwise(heads) if below == one + 1 and one < last[keys[one]]}
    for level, group in groupby(heads, lambda number: levels[number] if number in announced else 0):
        listed = list(group)
        if level and len(listed) > 1:
            for number in listed:
                kinds[number] = FURNITURE


def _mark_page_lines(kinds: list[str], texts: Sequence[str], pages: Sequence[int]) -> None:
    """Page numbers, and lines that come again at the beginning or end of pages."""
    edges: dict[int, str] = {}
    for _, group in groupby(range(len(pages)), lambda number: pages[number]):
        numbers = list(group)
        for number in (numbers[0], numbers[-1]):
            if kinds[number] == PARAGRAPH and len(texts[number]) <= _MAX_PAGE_LINE_CHARS:
                edges[number] = re.sub(r"\d+", "0", " ".join(texts[number].split()))
    repeated = Counter(edges.values())
    least = max(_MIN_REPEATED_PAGES, pages[-1] // 3)
    for number, key in edges.items():
        if repeated[key] >= least or _PAGE_NUMBER.match(texts[number]):
            kinds[number] = FURNITURE
