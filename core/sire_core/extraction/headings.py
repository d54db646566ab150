"""The subject of titles and headings, headings without one, and word frequencies."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from pathlib import Path

from sire_core.documents.heading_paths import is_path, title_path
from sire_core.text.lexicon import ACTIONS, FUNCTION_WORDS, MONTHS, OPENERS, VAGUE_NOUNS, VAGUE_WORDS, WEEKDAYS


@lru_cache(1)
def _ranks() -> dict[str, int]:
    """Rank by stem, 0 for the most common."""
    words = (Path(__file__).parent / "common_words.txt").read_text(encoding="ascii").split()
    return {word: rank for rank, word in enumerate(words)}


@lru_cache(1)
def _stemmer() -> object:
    import Stemmer

    return Stemmer.Stemmer("english")


@lru_cache(1 << 15)
def _rank(word: str) -> int | None:
    if not word.isprintable():  # halves of surrogate pairs, which no stemmer takes
        return None
    stem: str = _stemmer().stemWord(word)  # type: ignore[attr-defined] # PyStemmer has no type information
    return _ranks().get(stem)


def is_everyday(word: str) -> bool:
    """True if a word, in any case and inflection, is ordinary English prose rather than a name."""
    return _rank(word.lower()) is not None


@lru_cache(1 << 15)
def rarity(word: str) -> float:
    """Inverse document frequency of a lower-case word in general English, by its rank (Zipf): 0 to about 9."""
    rank = _rank(word)
    return math.log1p(3 * len(_ranks()) if rank is None else rank)


_STEP = re.compile(
    r"(?:step|chapter|section|part|appendix|example|figure|table|note|tip|phase|lesson|task)s?\b"
    r"[ .:]*(?:\d|[ivx]+\b|$)",
    re.IGNORECASE,
)
_NUMBERING = re.compile(r"\A(?:\d{1,3}(?:\.\d{1,3}){0,4}[.)]?|[A-Z]\.)\s+")
WORD = re.compile(r"[^\W_][\w'\u2019-]*")
STOP_WORDS = FUNCTION_WORDS | OPENERS | VAGUE_WORDS
_CALL = re.compile(r"([A-Za-z_$][\w$]{0,60}(?:\.[A-Za-z_$][\w$]{0,60}){0,6})\(")
_KIND = re.compile(r"\A(?:class|module|function|method|event|property|command|interface|type):? (?=\S)", re.IGNORECASE)
_CODE_MARKS = re.compile(r"[=<>{}|;]")
_ENDINGS = FUNCTION_WORDS | frozenset("include includes contain contains provide provides".split())
_DATES = WEEKDAYS | frozenset(MONTHS)
CAPTIONS = frozenset("figure fig step table tab note tip example item".split())
"""First words of captions and of steps of instructions."""

_LEADS = frozenset(
    "how what why when where who which can do does did is are should will you your i my we our it its if let there "
    "to with without using from about".split()
)


def base_title(title: str) -> str:
    """The subject of a title, without its bracketed part: `Aylwin (film)` becomes `Aylwin`."""
    title = " ".join(title.split())
    if is_path(title):
        path = title_path(title)
        title = next((name for name in map(heading_term, reversed(path)) if name), path[0])
    opening = title.rfind("(")
    if not title.endswith(")") or opening < 0 or ")" in title[opening:-1]:
        return title
    return title[:opening].rstrip() or title


def heading_term(heading: str, *, explained: bool = True) -> str:
    """The subject of a heading; empty for instructions, questions, and headings that any page has."""
    text = _NUMBERING.sub("", heading.strip(), count=1).strip(" *:#`\"'\u00b6")
    text = _KIND.sub("", text, count=1)
    if call := _CALL.match(text):
        return call.group(1) if "." in call.group(1) else f"{call.group(1)}()"
    words = [word.lower().split("'")[0].split("\u2019")[0] for word in WORD.findall(text)]
    if not words or len(words) > 5 or len(text) > 60 or text.endswith(("?", "!", ".")) or _CODE_MARKS.search(text):
        return ""
    is_question = (
        any(word in _LEADS for word in words) or words[0] in STOP_WORDS or words[0] in CAPTIONS or words[-1] in _ENDINGS
    )
    instructs = _STEP.match(text) or (acts(words[0]) and len(words) > 1 and not text[:1].islower())
    if len(words) == 1:
        is_specific = explained or not is_everyday(words[0]) or not text.isalpha()
    else:  # `Reliability features` of what?
        is_specific = len(words) > 2 or words[1] not in VAGUE_NOUNS or "(" in text or text[-1].isupper()
    vague = all(
        word in STOP_WORDS or word in VAGUE_NOUNS or word in _DATES or word.isdigit() or (acts(word) and len(words) > 1)
        for word in words
    )
    return text if is_specific and not (is_question or instructs or vague) else ""


def is_numbered(text: str) -> bool:
    """True if the words are like `Step 3` or `Table 12`."""
    return bool(_STEP.match(text))


def acts(word: str) -> bool:
    """True if a lower-case word is an action: a verb of instructions, a gerund or a participle."""
    return word in ACTIONS or (word.endswith(("ing", "ed")) and len(word) > 5 and is_everyday(word))
