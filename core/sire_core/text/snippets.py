"""The sentences of a text that answer a question, as people read them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby
from math import log

from sire_core.documents.block_reading import read_blocks
from sire_core.documents.blocks import (
    CODE,
    FIELD,
    FURNITURE,
    HEADING,
    ITEM,
    PARAGRAPH,
    ROW,
    Block,
    block_text,
    row_cells,
)
from sire_core.documents.markdown_writing import ELEMENTS
from sire_core.text.days import days_in
from sire_core.text.languages import ENGLISH, Language, find_language, language, script_language
from sire_core.text.lexicon import FUNCTION_WORDS
from sire_core.text.words import (
    FINAL_MARKS,
    LINK_TARGET,
    find_words,
    joined_parts,
    one_line,
    split_sentences,
    with_parts,
    word_runs,
)

_PROMPT = re.compile(r"[ \t]*\$ \S")
_TASK = re.compile(r"\[[ xX]\][ \t]+")
_CODE = r"(`{2}(?!`)(?:[^`]|(?<!`)`(?!`)){1,500}`{2}|`[^`]{1,500}`)"
_LINK = re.compile(rf"{_CODE}|!?\[([^\[\]]{{0,1000}})(?:{LINK_TARGET}|\]\[[^\[\]]{{0,200}}\])")
_SPAN_OR_LONE_MARK = re.compile(
    r"(?<![\w`])(?:`{2}(?!`) ?((?:[^`]|(?<!`)`(?!`)){1,500}?) ?`{2}|`([^`]{1,500})`)"
    r"|(?<!\w)`|`(?!\w)|(?<=[.!?,;)\"\u2019\u201d])\[\d{1,3}\]"
)
"""Code between backticks, other backticks but those of `Makali`i`, and numbers of footnotes behind a sentence."""
_EMPHASIS = re.compile(
    rf"{_CODE}|(?<!\*)(\*{{2,3}})(?=[^\s*])([^\n]{{0,200}}?[^\s*])\2(?!\*)"
    r"|(?<![\w*])(\*|_{1,3})(?=[^\s*_\u2019\u201d)\]}.,;:!?])([^\n]{0,200}?[^\s*_\u2018\u201c(\[{])\4(?![\w*])"
)
_ELEMENT_TAG = rf"<(?P<end>/?)(?P<name>{ELEMENTS})(?P<rest>[\s/][^<>]{{0,300}})?>"
_UNCLOSED = frozenset("br hr wbr p li dd dt td th tr div details center".split())
"""Elements whose opening tag is one without its closing tag, or without it in the same passage."""
_TAG = re.compile(rf"{_CODE}|<!--.{{0,2000}}?-->|{_ELEMENT_TAG}|\{{[:#][^{{}}\n]{{0,100}}\}}", re.IGNORECASE)
_ADDRESS = re.compile(rf"{_CODE}|<((?:https?://|mailto:)[^<>\s]{{1,2000}})>")
_TERM_WORDS = r"(?:[^\s:.!?\u2013\u2014]|[.!?](?=\S)){1,60}(?: [^\s:.!?\u2013\u2014]{1,40}){0,4}"
_NOTES = "(?i:note|tip|hint|warning|caution|important|attention|danger|notice|example|see also)"
_LONE_TERM = re.compile(rf"(?!{_NOTES}s?\W*\Z)(?=[^\W_]|[`$\u201c-]){_TERM_WORDS}\s*\Z")
"""A term on a line of its own, above its definition."""
_IDENTIFIER = re.compile(
    r"(?<![\w.-])(?=[-A-Za-z])"
    r"(?:--?[a-zA-Z][\w-]*|(?=\w*[a-z0-9](?:[A-Z]|[._]\w\w)|[A-Z]+_[A-Z])[A-Za-z]\w*(?:\.\w{2,})*)"
)
_JOINED_CODE = re.compile(r"(?=[\d-]*[^\W\d])(?=\D*\d)[^\W_]+(?:-[^\W_]+)+")
_FINAL = (*FINAL_MARKS, ":", "\uff1a")
_ENDS = FINAL_MARKS + ':;,…{([<\\"”\uff1a\uff1b\uff0c\u3001\u300d'
_NUMBER_ONLY = re.compile(r"\W*(?:\d{1,3}|[A-Za-z])?(?:\.\d{1,3})*\W*$")
_ENDS_IN_NUMBER = re.compile(r"(?:^|\W)(?i:section|sec|chapter|part|step|no|fig|figure|table|version|v)\.? ?[\d.]+\.$")

_BEFORE_WEIGHT, _AFTER_WEIGHT = 0.35, 0.2
"""Weight of words that only a neighbour shares with the question: a sentence takes up what was said."""
_TYPICAL_WORDS = 25  # Longer sentences share more words by chance
_FULL_WORDS = 8  # Shorter ones are headings and labels
_STEM = 6  # Letters of a stem that are compared: `director` is said of what somebody directed
_REMEMBERED = 100_000  # Runs whose stems are remembered, at most 30 MB
_MAX_REMEMBERED_LETTERS = 40  # Of such a run; a text may be one run of a megabyte
_LEAST = 1e-9
_PAST_FORMS = {"found": "find", "fell": "fall", "felt": "feel", "saw": "see", "bore": "bear", "wound": "wind"}
"""Past forms whose stem is also that of a verb of another meaning (founded, felled, sawed)."""
_ALSO_SHOWN = 0.5  # Of the best sentence's rate: what else is shown before its neighbours are


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a text as people read it, on one line and without marks of Markdown."""

    text: str  # The sentence; of a table a row, of code a line
    # `prose`, `item` (of a list), `term` (a line by itself above its definition), `heading`, `code`, `head` (of a
    # table), `row`, `field` (of a mail or front matter) or `furniture` (menus, contents, greetings)
    kind: str
    head: int = -1  # Number of the sentence that is the head of its table; -1 for others
    indent: int = 0  # Columns that a line of code is indented by
    cells: tuple[str, ...] = ()  # Of a row or the head of a table, empty ones too


def readable_sentences(text: str) -> list[str]:
    """The sentences of a text on one line each, without marks of Markdown; each row of a table is one."""
    return [sentence.text for sentence in read_sentences(text)]


def read_sentences(text: str, blocks: Sequence[Block] | None = None) -> list[Sentence]:
    """The sentences of a text; `blocks` are its structure, or that of the parts to read, read from it if missing."""
    sentences: list[Sentence] = []
    head = -1
    for words, kind, *cells in _parts(text, read_blocks(text) if blocks is None else blocks):
        has_words = any(map(str.isalnum, words))
        if kind != "row":
            head = len(sentences) if kind == "head" and has_words else -1
        if kind in ("prose", "term", ITEM):
            sentences += [Sentence(part, kind) for part in _cut(words)]
        elif has_words or kind == CODE:
            bare = words.lstrip() if kind == CODE else words
            of_head = head if kind == "row" else -1
            sentences.append(Sentence(bare, kind, of_head, len(words) - len(bare), tuple(cells)))
    return sentences


def _cut(block: str) -> list[str]:
    sentences: list[list[str]] = []
    for number, part in enumerate(map(one_line, split_sentences(block))):
        if number and _goes_on(sentences[-1]):
            sentences[-1].append(part)
        else:
            sentences.append([part])
    return [sentence for parts in sentences if any(map(str.isalnum, sentence := joined_parts(parts)))]


def _goes_on(parts: Sequence[str]) -> bool:
    """True if a sentence is a number so far, or ends in the number of a section: what follows belongs to it."""
    last = " ".join(parts[-4:])
    is_whole = len(parts) <= 4 and len(last) <= 60
    return bool((is_whole and _NUMBER_ONLY.match(last)) or _ENDS_IN_NUMBER.search(last[-60:]))


def _parts(text: str, blocks: Sequence[Block]) -> Iterator[tuple[str, ...]]:
    """Words of blocks as people read them, each with its kind; code line by line, behind those of a row its cells."""
    with_tags = blocks if "</" in text else ()
    closed = frozenset[str]().union(*(_unpaired_tags(block_text(text, one))[1] for one in with_tags))
    for block in blocks:
        if block.kind == ROW:
            cells = [_plain(cell, closed).strip() for cell in row_cells(text, block)]
            is_head = block.level == 1
            yield (_row(cells, is_head=is_head), "head" if is_head else "row", *cells)
            continue
        lines = block_text(text, block).split("\n")
        if block.kind == CODE:
            yield from map(_code_line, filter(str.strip, lines))
        elif block.kind == HEADING:
            words = _plain(joined_parts(lines), closed)
            yield words if words.endswith(_FINAL) else f"{words}:", "heading"
        else:
            yield from _prose_parts(lines, block, closed)


def _prose_parts(lines: list[str], block: Block, closed: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Words of a paragraph or item; lines behind a prompt are code."""
    kind = block.kind if block.kind in (ITEM, FIELD, FURNITURE) else "prose"
    is_term = block.kind == PARAGRAPH and not block.level and len(lines) == 1 and _LONE_TERM.match(lines[0])
    for is_code, group in groupby(lines, lambda line: _PROMPT.match(line) is not None):
        if is_code:
            yield from map(_code_line, group)
        else:
            words = _plain(joined_parts(group), closed)
            yield _TASK.sub("", words) if kind == ITEM else words, "term" if is_term else kind


def _code_line(line: str) -> tuple[str, str]:
    code = line.expandtabs(4)
    return " " * (len(code) - len(code.lstrip())) + " ".join(code.split()), CODE


def _row(cells: Sequence[str], *, is_head: bool) -> str:
    """Cells of a table's row as a list of words: `name: value; value`."""
    first, *others = list(filter(None, cells)) or [""]
    if is_head or not others:
        return ", ".join([first, *others])
    return f"{first if first.endswith(':') else f'{first}:'} {'; '.join(others)}"


def _plain(text: str, closed: frozenset[str]) -> str:
    """A text without marks of links, emphasis, code, footnotes, HTML; what stands in code, or in its angles, stays.

    A tag that nothing closes is a placeholder, such as `<time>`, unless another block has a closing tag for it.
    """
    lone, _ = _unpaired_tags(text)

    def without_tag(match: re.Match[str]) -> str:
        is_placeholder = match.start() in lone and match["name"].lower() not in closed
        return match[1] or (match[0] if is_placeholder else " ")

    text = _ADDRESS.sub(lambda match: match[1] or match[2], _TAG.sub(without_tag, text))
    for _ in range(2):  # a picture may be a link, and words in a bold sentence may lean
        text = _LINK.sub(lambda match: match[1] or match[2] or "", text)
        text = _EMPHASIS.sub(lambda match: match[1] or match[3] or match[5], text)
    return _SPAN_OR_LONE_MARK.sub(lambda match: match[1] or match[2] or "", text)


def _unpaired_tags(text: str) -> tuple[frozenset[int], frozenset[str]]:
    """Starts of bare opening tags that nothing closes, and names of closing tags that nothing opens."""
    opened: dict[str, list[re.Match[str]]] = {}
    closings = set()
    for match in _TAG.finditer(text) if "<" in text else ():
        name = (match["name"] or "").lower()
        if match["end"] and opened.get(name):
            opened[name].pop()
        elif match["end"]:
            closings.add(name)
        elif name and name not in _UNCLOSED:
            opened.setdefault(name, []).append(match)
    lone = [match for matches in opened.values() for match in matches]
    bare = [match for match in lone if "=" not in (rest := match["rest"] or "") and not rest.endswith("/")]
    return frozenset(match.start() for match in bare), frozenset(closings)


def rate_sentences(sentences: Sequence[Sentence], question: str, spoken: Language) -> list[float]:
    """Score of each sentence of a text in a language, with its neighbours, for a question; 0 for nothing in common."""
    question_stems = stems(question, spoken)
    shared = [text_stems(one.text, spoken) & question_stems for one in sentences]
    counts = Counter(stem for stems_of_one in shared for stem in stems_of_one)
    weights = {stem: log(1 + len(sentences) / number) for stem, number in counts.items()}
    none: frozenset[str] = frozenset()
    rates = []
    for sentence, before, own, after in zip(sentences, [none, *shared], shared, [*shared[1:], none], strict=False):
        rate = sum(weights[stem] for stem in own)
        rate += _BEFORE_WEIGHT * sum(weights[stem] for stem in before - own)
        rate += _AFTER_WEIGHT * sum(weights[stem] for stem in after - own)
        words = max(len(sentence.text.split()), 1)
        rates.append(rate * min(1.0, words / _FULL_WORDS) ** 0.3 / max(1.0, words / _TYPICAL_WORDS) ** 0.5)
    return rates


_BELOW_ZERO = re.compile(r"[-\u2212](?<![\w.,)\]/-].)(\d+(?:[.,]\d+)?)(?![\w-])")


def identifiers(text: str) -> frozenset[str]:
    """Names of options, settings and functions in a text, in lower case: `--all`, `worker_pool`, `SuspendTime`."""
    return frozenset(match.lower() for match in _IDENTIFIER.findall(text))


def stems(text: str, spoken: Language | None = None) -> frozenset[str]:
    """Stems of the content words of a text, whole identifiers, numbers below zero with their sign, and its days.

    Args:
        text: The text.
        spoken: Its language; None reads each word in that of its script, English in Latin letters.
    """
    return _stems(text, spoken, _QUESTION_RUNS)


def text_stems(text: str, spoken: Language) -> frozenset[str]:
    """Stems of a text that is searched: also those of the words of its identifiers."""
    return _stems(text, spoken, _TEXT_RUNS)


def _stems(text: str, spoken: Language | None, runs: _RunStems) -> frozenset[str]:
    signed = _BELOW_ZERO.findall(text) if "-" in text or "\u2212" in text else ()
    below_zero = [f"-{number}" for number in signed]
    is_english = spoken is None or spoken.is_english
    if is_english and (words := word_runs(text)):  # an identifier never reaches further than such a run
        days = days_in(text, spoken, words)
        return frozenset(chain(below_zero, days, chain.from_iterable(map(runs.__getitem__, words))))
    text = runs.expanded(text)
    whole = identifiers(text).union(below_zero, days_in(text, spoken))
    if spoken is not None and not is_english:
        return _stems_of(spoken, text) | whole
    words = list(map(str.lower, find_words(text)))
    others = {word: code for word in words if (code := script_language(word))}
    own = frozenset(stem(word)[:_STEM] for word in words if word not in FUNCTION_WORDS and word not in others)
    return own.union(whole, *(_stems_of(language(code), word) for word, code in others.items()))


class _RunStems(dict[str, tuple[str, ...]]):
    """Stems of English words, also of several joined by dots and hyphens, and identifiers; many are remembered."""

    def __init__(self, expanded: Callable[[str], str]) -> None:
        super().__init__()
        self.expanded = expanded

    def __missing__(self, run: str) -> tuple[str, ...]:
        word = run.rstrip(".")
        if word.isalpha() and (word.islower() or word.istitle()):  # and so no identifier
            words, whole = [word.lower()], frozenset[str]()
        else:
            text = self.expanded(run)
            words, whole = list(map(str.lower, find_words(text))), identifiers(text)
        compared = (*[stem(word)[:_STEM] for word in words if word not in FUNCTION_WORDS], *whole)
        if len(words) > 1 and (not compared or _JOINED_CODE.fullmatch(word)):
            compared = (*compared, "-".join(words))  # `it-all` is a name, and `HT-2224`
        if len(self) >= _REMEMBERED:
            self.clear()  # what is still read is soon there again
        if len(run) <= _MAX_REMEMBERED_LETTERS:
            self[run] = compared
        return compared


_QUESTION_RUNS, _TEXT_RUNS = _RunStems(str), _RunStems(with_parts)


def _stems_of(spoken: Language, text: str) -> frozenset[str]:
    words = [word for word in spoken.words(text) if word not in spoken.function_words]
    return frozenset(own_stem[:_STEM] for own_stem in spoken.stems(words))


def stem(word: str, spoken: Language | None = None) -> str:
    """The stem of a lower-case word, of an English one if no language is given."""
    return (_stem if len(word) <= _MAX_REMEMBERED_LETTERS else _stem.__wrapped__)(word, spoken)


@lru_cache(1 << 16)
def _stem(word: str, spoken: Language | None) -> str:
    if spoken is None or spoken.is_english:
        return language(ENGLISH).stems([word])[0]
    return "".join(spoken.stems(spoken.words(word)))


def form_stem(word: str) -> str:
    """The stem of a lower-case word, past forms that look like other words told apart: "found" is of "find"."""
    return stem(_PAST_FORMS.get(word, word))


def has_form(word: str, words: Collection[str]) -> bool:
    """True if lower-case words with the stem of a word have a form of it: "found" is none of "founded"."""
    own, form = stem(word.lower()), form_stem(word.lower())
    forms = {form_stem(other) for other in words}
    return form in forms or (form == own and own not in {stem(other) for other in words})


def snippet(text: str, question: str, length: int = 240, via: str = "", blocks: Sequence[Block] | None = None) -> str:
    """The sentences of a text that answer a question best, on one line, without marks of Markdown.

    Of a table these are its head and the rows that answer, or that share words with `via`, the sentence that led to
    the text. `blocks` are as in `read_sentences`.
    """
    read = read_sentences(text, blocks=blocks)
    if not read:
        return ""
    sentences = [sentence.text for sentence in read]
    heads = {number: sentence.head for number, sentence in enumerate(read) if sentence.head >= 0}
    spoken = language(find_language(text))
    rates = rate_sentences(read, question, spoken)
    for number, rate in enumerate(rate_sentences(read, via, spoken) if via and heads else ()):
        rates[number] += rate * (number in heads)
    best, *others = sorted(range(len(sentences)), key=lambda number: (-rates[number], number))
    if len(sentences[best]) > length:
        return cut_around(sentences[best], question, length, spoken)
    chosen = {best}
    room = length - len(sentences[best])
    least = max(_ALSO_SHOWN * rates[best], _LEAST)
    for number in [best, *(number for number in others if rates[number] >= least)]:
        for shown in (number, heads.get(number, number)):
            needed = len(sentences[shown]) + len(" ... ")
            if shown not in chosen and needed <= room and (shown == number or number in chosen):
                chosen.add(shown)
                room -= needed
    rows = heads if rates[best] and chosen & heads.keys() else ()  # rows that answer stand without those around them
    return _joined(read, _with_neighbours(sentences, chosen, room, rows))


def _with_neighbours(sentences: Sequence[str], chosen: set[int], room: int, rows: Collection[int]) -> list[int]:
    """Sentences, and those around them as far as there is room, without some rows; in order."""
    waiting = sorted(chosen)
    while waiting:
        number = waiting.pop(0)
        for near in (number + 1, number - 1):
            if 0 <= near < len(sentences) and near not in chosen and near not in rows and len(sentences[near]) < room:
                chosen.add(near)
                waiting.append(near)
                room -= len(sentences[near]) + 1
    return sorted(chosen)


def _joined(sentences: Sequence[Sentence], numbers: Sequence[int]) -> str:
    """Sentences on one line, with dots where some are left out."""
    parts: list[str] = []
    for last, number in zip([-1, *numbers], numbers, strict=False):
        text, kind = sentences[number].text, sentences[number].kind
        if number > last + 1:
            parts.append("...")
        elif parts and parts[-1][-1] not in _ENDS and kind != "code":
            is_term = kind in ("prose", "term") and text[0].isupper() and _LONE_TERM.match(parts[-1])
            parts[-1] += ":" if is_term else ";"  # items and rows
        parts.append(text)
    return joined_parts([*parts, "..."] if numbers[-1] + 1 < len(sentences) else parts)


def cut_around(sentence: str, question: str, length: int, spoken: Language) -> str:
    """Words of a long sentence, beginning a little before the first that is asked for."""
    words, question_stems = sentence.split(), stems(question, spoken)
    hits = [n for n, word in enumerate(words) if question_stems & stems(word, spoken)]
    start = max(0, (hits[0] if hits else 0) - 6)
    shown = " ".join(words[start:])
    shown = shown if len(shown) <= length else f"{shown[:length].rsplit(' ', 1)[0]} ..."
    return f"... {shown}" if start else shown
