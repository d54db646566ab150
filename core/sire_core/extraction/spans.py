"""Named spans of a sentence: names, quoted works, dates and quantities; in Japanese and Chinese, too. Patterns only."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from sire_core.text.lexicon import (
    ABBREVIATIONS,
    DEMONYMS,
    EPITHETS,
    FUNCTION_WORDS,
    HONORIFICS,
    MONTHS,
    NAME_TAILS,
    OPENERS,
    UNITS,
    WEEKDAYS,
)
from sire_core.text.words import split_sentences

UPPER = "A-Z" + "".join(chr(code) for code in range(0xC0, 0x590) if chr(code).isupper())
"""Body of a character class: upper-case letters of the Latin, Greek, Cyrillic and Armenian scripts."""


@cache
def _compiled() -> re.Pattern[str]:
    """The pattern of spans, compiled lazily because it is slow."""
    return re.compile(_SPAN)


class TextSpan(NamedTuple):
    """A named piece of a sentence: `text[start:end]` and a coarse type."""

    start: int
    end: int
    name: str
    type: str


def _either(words: tuple[str, ...] | list[str]) -> str:
    return "|".join(words)


_MONTH = _either([month.capitalize() for month in MONTHS])
_DATE = (
    rf"\d{{1,2}}(?:st|nd|rd|th)? (?:{_MONTH})(?:,? \d{{3,4}}\b(?!,\d))?"
    rf"|(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?(?!\d)(?:,? \d{{3,4}}\b(?!,\d))?"
    rf"|(?:{_MONTH}),? (?:of )?\d{{4}}\b"
    r"|(?:1[0-9]|20)\d\ds?\b(?![-.,]?\d{3})"
)
_QUANTITY = (
    r"[$€£]\d[\d,.]{0,30}(?: (?:million|billion|trillion))?|\d[\d,]{0,30}(?:\.\d{1,30})?"
    rf"(?: (?:million|billion))?[ -]?(?:{UNITS})(?!\w)"
)
_TAILS = _either([word.capitalize() for word in NAME_TAILS if word.isalpha()])
_CONNECTORS = (
    r"of(?: the)?|for(?: the)?|de(?: la| los| las)?|du|des|da|das|do|dos|di|del|della|dei|van(?: der| den| de)?|"
    r"von(?: der| und zu)?|der|den|zu|zur|zum|und|et|la|le|y|e|al|el|bin|ibn|binti?|ben|af|av|til|ap|ferch|ka|ki|ke"
)
_WORD = (
    rf"(?:(?:[{UPPER}]\.){{1,12}}(?!\w)|(?:{ABBREVIATIONS})\.|(?:[Aa]l|[Ee]l|a[dnrsz]|ash|at|ul|[dDlL])[-'\u2019][{UPPER}]\w*|"
    rf"[{UPPER}]\w*(?:['\u2019&/\u2013-](?!(?:s|winning|nominated|born|based|trained|style|era|themed|owned|inspired|"
    r"wide|area)\b)\w+){0,12}!?)"
)
_JOIN = (
    rf"(?: | (?:{_CONNECTORS}) | & |['\u2019]s (?=(?:{_TAILS}|Day|World)\b)|['\u2019] (?=(?:{_TAILS})\b)"
    rf"| the (?=(?:{_either([word.capitalize() for word in sorted(EPITHETS)])})\b)"
    rf"|, (?=(?:Jr|Sr|Inc|Ltd|LLC)\b)| [\"“]{_WORD}[\"”] (?=[{UPPER}]))"
)
_NUMBER = rf" \d{{1,3}}(?![\w%]|[,.\u2013-]\d| (?:{UNITS}|million|billion|{_MONTH})\b)"
_NAME = rf"{_WORD}(?:{_JOIN}{_WORD}){{0,40}}(?:{_NUMBER}(?: {_WORD})*)?"
_SPAN = (
    r"(?P<work>[\"“][^\"“”]{2,90}[\"”])"
    rf"|(?<![\w$€£])(?:(?P<date>{_DATE})|(?P<quantity>{_QUANTITY})|(?P<name>{_NAME}))"
)
_EDITION = re.compile(r"(?:\b(?:1[5-9]|20)\d\d|\b\d{1,3}(?:st|nd|rd|th)) $")
_CAPITAL_START = re.compile(rf"[{UPPER}\d¿¡#]")
_SPOKEN_END = re.compile(r"(?:[,.!?;:]|--|[\u2013\u2014])['\u2019]?\Z")
_LEADS_TO_TITLE = re.compile(r"[\w)\]'\u2019] \Z")  # speech stands at the start of a sentence or behind a mark
_LISTED = re.compile(r"[\s,;/&]+(?:and |or )?")
_ROMAN = re.compile(r"(?:I{1,3}|IV|VI{0,3}|IX|XI{0,3}|XIV|XV|XVI{1,3}|V)\Z")
_INITIAL = re.compile(rf"[{UPPER}]\.")
_TIGHT_BRACKET = re.compile(r"(?<=[\w\"])\((?=\w)")
_TIGHT_AMPERSAND = re.compile(r"(?<=\w)& ")
_SPLIT_HYPHEN = re.compile(r"(?<=\w)- (?!and |or |to )(?=\w)")
_SHORT_TAG = re.compile(r"</?[a-z]{1,12}>")
_UNFINISHED = re.compile(r"(?:^|[\s(])(?:c|b|d|r|fl|m|lit|pron|pop)\.$")
_STOPPED = frozenset(("jr", "sr", "inc", "ltd", "co", "corp", "bros", "st"))
_NOT_NAMES = FUNCTION_WORDS | OPENERS
_RANKS = HONORIFICS - {"grand", "high", "prime", "vice", "crown", "deputy", "chief", "private", "major", "general"}
_SUFFIXES = frozenset(("language", "born", "speaking", "based", "style", "era", "bred", "trained", "educated"))
_OFFICE = re.compile(
    r"(?:(?:Vice|Deputy|Prime|First|General|Executive|Managing|Associate) )*(?:President|Chancellor|Governor|Mayor|"
    r"Director|Professor|Chairman|Dean|Minister|Secretary|Head|Bachelor|Master|Doctor|Member|Governors) "
    r"(?:of|for)(?: the)? "
)
_LONGEST_NAME = 12  # in words; what is longer is a list without commas
_LONGEST_SENTENCE = 2_000  # In characters; longer ones are cut, so that all patterns take linear time


def tidy(text: str) -> str:
    """Repair spacing that web extracts get wrong (`Aylwin( 1920)`, `film" Sabotage"`), TeX quotes and tags."""
    if "``" in text:
        text = text.replace("`` ", '"').replace("``", '"').replace(" ''", '"').replace("''", '"')
    if "<" in text:
        text = _SHORT_TAG.sub("", text)
    if '"' in text:
        text = _mend_quotes(text)
    if "(" in text:
        text = _TIGHT_BRACKET.sub(" (", text.replace("( ", "("))
    if "- " in text:
        text = _SPLIT_HYPHEN.sub("-", text)
    if "& " in text:
        text = _TIGHT_AMPERSAND.sub(" & ", text)
    return " ".join(text.split())


def _mend_quotes(text: str) -> str:
    """Move spaces from inside to outside of quotation marks if all marks are paired."""
    parts = text.split('"')
    if len(parts) % 2 == 0 or not all(inside.strip() for inside in parts[1::2]):
        return text
    pieces = [parts[0]]
    for inside, outside in zip(parts[1::2], parts[2::2], strict=True):
        before = " " if pieces[-1][-1:].isalnum() or pieces[-1][-1:] in (",", ";", ":") else ""
        after = " " if outside[:1].isalnum() or outside[:1] == "(" else ""
        pieces += (before, '"', inside.strip(), '"', after, outside)
    return "".join(pieces)


def sentences_of(text: str) -> list[str]:
    """The tidied sentences of a passage; `(c. 905 - 960)` and `b. 1913` do not end one."""
    sentences: list[str] = []
    for sentence in split_sentences(tidy(text)):
        if sentences and _UNFINISHED.search(sentences[-1]):
            sentences[-1] += f" {sentence}"
        else:
            sentences.append(sentence)
    return [piece for sentence in sentences for piece in _pieces(sentence)]


def _pieces(sentence: str) -> list[str]:
    """A sentence, cut between words if it is too long."""
    pieces: list[str] = []
    start = 0
    while len(sentence) - start > _LONGEST_SENTENCE:
        gap = sentence.rfind(" ", start, start + _LONGEST_SENTENCE)
        end = gap if gap > start else start + _LONGEST_SENTENCE
        pieces.append(sentence[start:end].strip())
        start = end
    return [*pieces, sentence[start:].strip()]


def is_common(words: list[str]) -> bool:
    """True if the words name nothing: months, nationalities, ranks, function words."""
    for word in words:
        lower = word.lower().strip(".!'\u2019")
        if lower in _NOT_NAMES or lower in DEMONYMS or lower in HONORIFICS or lower in WEEKDAYS or lower in MONTHS:
            continue
        parts = lower.replace("\u2013", "-").split("-")
        if len(parts) > 1 and all(part in DEMONYMS or part in _NOT_NAMES or part in _SUFFIXES for part in parts):
            continue
        return False
    return True


def find_spans(sentence: str) -> list[TextSpan]:
    """Find the named spans of a sentence, left to right, without overlap; `NameTable` decides about first words."""
    spans: list[TextSpan] = []
    position, closing = 0, -1
    pattern = _compiled()
    while match := pattern.search(sentence, position):
        position = match.end()
        kind = match.lastgroup
        span = None
        if kind == "name":
            skip = _opening(match.group(), at_start=match.start() == 0)
            if skip:  # what follows a function word may be a date or a work: look again from there
                position = match.start() + skip
                continue
            span = _name_span(sentence, match.start(), match.group())
        elif kind == "work":
            if match.start() == closing:  # the last quotation mark of speech
                position = closing + 1
                continue
            follows = spans and spans[-1].type == "Work" and _LISTED.fullmatch(sentence, spans[-1].end, match.start())
            span = _work_span(match, listed=bool(follows))
            if span is None:
                position = match.start() + 1  # ordinary speech: look for names inside,
                closing = match.end() - 1  # and do not take its last quotation mark for a first one
        else:
            span = TextSpan(match.start(), match.end(), match.group(), "Date" if kind == "date" else "Quantity")
        if span is not None:
            if spans and spans[-1].end > span.start:  # the year of `2013 Cannes Film Festival`
                spans.pop()
            spans.append(span)
    return spans


def names_in(text: str) -> list[str]:
    """Names that a text spells, in order, each once, found by rules."""
    return list(dict.fromkeys(span.name for span in find_spans(tidy(text))))


def stands_free(text: str, start: int, end: int) -> bool:
    """True if no letter, digit or hyphen is in front of a span, and no letter or digit behind it."""
    before = text[start - 1 : start]
    return not (before.isalnum() or before == "-" or text[end : end + 1].isalnum())


def _opening(name: str, *, at_start: bool) -> int:
    """Length of a leading word that is not part of a name, else 0."""
    first, _, rest = name.partition(" ")
    lower = first.lower().rstrip("'\u2019")
    lower = lower.replace("\u2019", "'").partition("'")[0] or lower
    return len(first) if lower in FUNCTION_WORDS or (at_start and rest and lower in OPENERS) else 0


def _work_span(match: re.Match[str], *, listed: bool) -> TextSpan | None:
    """A quoted title; none if it reads as speech. `listed`: it follows another title."""
    quoted = match.group()[1:-1]
    name = quoted.strip(" ,.;:'\u2019`")
    words = name.split()
    is_between = quoted[:1].isspace() or quoted[-1:].isspace()  # of two quotations: `," he said, "`
    if is_between or not words or len(words) > 12 or not _CAPITAL_START.match(name):
        return None
    content = [word for word in words if word.lower().strip(",.;:!?") not in FUNCTION_WORDS]
    capitals = sum(not word[0].islower() for word in content or words)
    if capitals * 2 < len(content or words) or (len(words) == 1 and not content):
        return None
    before = match.string[max(0, match.start() - 11) : match.start()]
    certain = len(content) > 2 and capitals == len(content) and not quoted.endswith(",")
    if _SPOKEN_END.search(quoted) and not (certain or listed or _LEADS_TO_TITLE.search(before)):
        return None
    kind = "Name" if before.endswith((" as ", "nicknamed ", "called ", "(", "named ")) else "Work"
    return TextSpan(match.start(), match.end(), name, kind)


def _name_span(sentence: str, start: int, capitalized: str) -> TextSpan | None:
    words = capitalized.split(" ")
    while words and words[-1].lower() in FUNCTION_WORDS and words[-1] != "I":
        del words[-1]
    if office := _OFFICE.match(" ".join(words)):  # the place is what passages share, not the office
        start += office.end()
        words = capitalized[office.end() :].split(" ")[: len(words) - office.group().count(" ")]
    if not words or len(words) > _LONGEST_NAME or is_common(words) or len(words[0].strip(".")) + len(words) < 3:
        return None
    name = " ".join(words)
    end = start + len(name)
    name = _strip_stop(name, words[-1])
    kind = NAME_TAILS.get(words[-1].lower(), "")
    if kind == "Event" and (edition := _EDITION.search(sentence, max(0, start - 6), start)):
        start = edition.start()
        name = sentence[start : start + len(edition.group()) + len(name)]
    return TextSpan(start, end, name, kind or _cue(sentence, start, words))


def _strip_stop(name: str, last: str) -> str:
    if name.endswith(".") and last.count(".") == 1 and last[:-1].lower() not in _STOPPED:
        return name[:-1]
    return name


def _cue(sentence: str, start: int, words: list[str]) -> str:
    """Coarse type by the words themselves or the word before them."""
    first = NAME_TAILS.get(words[0].lower(), "")
    if len(words) > 2 and words[1] in ("of", "for") and first:
        return first
    if words[0].lower().rstrip(".") in _RANKS or (len(words) > 1 and any(_person_mark(word) for word in words)):
        return "Person"
    before = sentence[max(0, start - 9) : start].lower()
    if before.endswith((" in ", " near ", " at ")) or before == "in ":
        return "Location"
    if before.endswith(" by ") and 1 < len(words) < 4 and words[0].lower() not in DEMONYMS:
        return "Person"
    return "Name"


@lru_cache(1 << 13)
def _person_mark(word: str) -> bool:
    return bool(_ROMAN.match(word) or _INITIAL.fullmatch(word) or word in ("bin", "ibn", "von", "van", "Jr.", "Sr."))


_KANJI = "\u3400-\u4dbf\u4e00-\u9fff\u3005\u30f6"
_KATAKANA = "\u30a1-\u30fa\u30fc"
_UNSPACED = re.compile(rf"[{_KANJI}{_KATAKANA}\u3041-\u3096]")
_SENTENCE = re.compile(r"[^\u3002\uff01\uff1f]+[\u3002\uff01\uff1f\u201d\u300d\u300f]*|[\u3002\uff01\uff1f]+")
_KANA = re.compile(rf"[\u3041-\u3096{_KATAKANA}]")
_QUOTED = re.compile(r"[\u300a\u300c\u300e\u201c]([^\u300a-\u300f\u201c\u201d\n]{2,30})[\u300b\u300d\u300f\u201d]")
_JAPANESE = re.compile(rf"[{_KANJI}{_KATAKANA}A-Za-z0-9]{{2,16}}|[{_KATAKANA}]{{3,16}}")
# Words of grammar and everyday verbs, between which Chinese names stand; single letters only where they hardly occur
# inside of names.
_CHINESE_BREAK = re.compile(
    r"自从|一直|现在|曾经|以前|以后|此前|大约|位于|设在|担任|领导|喜欢|收集|生产|制造|闻名|全国|总部|成立|工作|员工|一位|一个|一种|一家|"
    r"著名的?|他们|她们|我们|你们|它们|这个|那个|这些|那些|那里|这里|什么|哪个|哪家|哪里|如何|怎么|可以|没有|不是|以及|或者|因为|所以|如果|"
    r"但是|并且|而且|通过|进行|使用|需要|已经|[的了在是和与及或为着过到从向被把由于对等就也都还又很]"
)
_CHINESE = re.compile(rf"[{_KANJI}]+")
_ORGANIZATIONS = tuple("公司 大学 学院 银行 出版社 研究所 医院 集团 工厂".split())
_MAX_TITLE_WORDS = 10


def has_unspaced_script(text: str) -> bool:
    """True if a text holds letters of a script that puts no spaces between words."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def split_unspaced(sentence: str) -> list[str]:
    """Split a text into sentences if its script puts no space after full stops."""
    return [part for part in _SENTENCE.findall(sentence) if part.strip()]


def unspaced_names(sentence: str) -> list[TextSpan]:
    """Names in Chinese and Japanese: quoted text, and runs between grammatical words."""
    quoted = [TextSpan(match.start(1), match.end(1), match.group(1), "Work") for match in _QUOTED.finditer(sentence)]
    names = _japanese(sentence) if _KANA.search(sentence) else _chinese(sentence)
    free = (span for span in names if all(span.end <= other.start or other.end <= span.start for other in quoted))
    return sorted([*quoted, *free])


def _japanese(sentence: str) -> list[TextSpan]:
    runs = [TextSpan(*match.span(), match.group(), "Name") for match in _JAPANESE.finditer(sentence)]
    return [span for span in runs if not span.name.isascii()]


def _chinese(sentence: str) -> list[TextSpan]:
    spans: list[TextSpan] = []
    for run in _CHINESE.finditer(sentence):
        position = run.start()
        for stop in _CHINESE_BREAK.finditer(sentence, *run.span()):
            spans += _short(sentence, position, stop.start())
            position = stop.end()
        spans += _short(sentence, position, run.end())
    return spans


def _short(sentence: str, start: int, end: int) -> list[TextSpan]:
    if not 1 < end - start <= _MAX_TITLE_WORDS:
        return []
    name = sentence[start:end]
    kind = "Organization" if name.endswith(_ORGANIZATIONS) else "Name"
    return [TextSpan(start, end, name, kind)]
