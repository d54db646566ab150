"""Escaped text, with highlights of the words of a question and of names on its path."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from sire_core.text.languages import Language, find_language, language
from sire_core.text.lexicon import FUNCTION_WORDS
from sire_core.text.pluralize import excerpt, shorten
from sire_core.text.snippets import form_stem, readable_sentences, stem
from sire_core.text.words import find_words, joined_parts, whole_name, word_pattern

# What neither XML nor a UTF-8 file may hold: control characters except tab and newlines, and halves of pairs.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """Replace what neither XML nor a UTF-8 file may hold."""
    return _FORBIDDEN.sub("\ufffd", text)


def escaped(text: str) -> str:
    """Escape a text for an element or a quoted attribute of HTML or XML."""
    # A parser of XML turns the line ends of Windows into one letter unless they are written as references.
    return html.escape(printable(text), quote=True).replace("\r", "&#13;")


Piece = tuple[str, str]  # Some text and its highlight: `word` of the question, `name` on the path, or nothing


def question_words(question: str) -> list[str]:
    """Distinct content words of a question, as they are written."""
    idle = FUNCTION_WORDS | language(find_language(question)).listed_words
    words = (word for word in find_words(question) if word.lower() not in idle)
    return list({word.lower(): word for word in words}.values())


def shared_words(question: str, text: str) -> list[str]:
    """Content words of a question that a text has, in any form; as the question writes them."""
    spoken = language(find_language(text))
    forms = {_form(word, spoken) for word in find_words(text)}
    return [word for word in question_words(question) if _form(word, spoken) in forms]


def _form(word: str, spoken: Language) -> str:
    return form_stem(word.lower()) if spoken.is_english else stem(word.lower(), spoken)


def plain_text(text: str) -> str:
    """A text on one line, without marks of Markdown and HTML."""
    return joined_parts(readable_sentences(text)).replace(" | ", ", ")


def first_words(text: str) -> str:
    """Label of a text without a title: its first words."""
    return shorten(plain_text(text), 80)


def sentence_with(text: str, name: str, size: int) -> str:
    """The sentence or row of a table that has a name, else the first one; cut around the name."""
    sentences = readable_sentences(text)
    whole = whole_name(name)
    at = next((at for at, sentence in enumerate(sentences) if name and whole.search(sentence)), 0)
    ends = at + 1 + (sentences[at : at + 1] == [name])  # a heading, or one of rows: with what follows
    return excerpt(joined_parts(sentences[at:ends]), name, size)


def marked(text: str, question: str, names: Iterable[str] = ()) -> list[Piece]:
    """Cut a text into highlighted and plain pieces."""
    spoken = language(find_language(text))
    wanted = {_form(word, spoken) for word in question_words(question)}
    spans = _name_spans(text, [name for name in names if name.strip()])
    spans.sort()
    starts = [start for start, _, _ in spans]
    for match in word_pattern().finditer(text):
        index = bisect_right(starts, match.start()) - 1
        word, *_ = find_words(text[match.start() : match.end() + 2])  # "won't" is no form of "won"
        if (index < 0 or spans[index][1] <= match.start()) and _form(word, spoken) in wanted:
            spans.append((match.start(), match.end(), "word"))
    pieces: list[Piece] = []
    at = 0
    for start, end, kind in sorted(spans):
        if start > at:
            pieces.append((text[at:start], ""))
        pieces.append((text[start:end], kind))
        at = end
    if at < len(text):
        pieces.append((text[at:], ""))
    return pieces


def _name_spans(text: str, names: Sequence[str]) -> list[tuple[int, int, str]]:
    if not names:
        return []
    # Longest first: of two names that begin alike, the whole one is marked.
    ways = "|".join(re.escape(name) for name in sorted(set(names), key=lambda name: (-len(name), name)))
    return [(m.start(), m.end(), "name") for m in re.finditer(rf"(?<!\w)(?:{ways})(?!\w)", text)]
