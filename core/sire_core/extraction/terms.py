"""Common nouns that matter to a passage: what it defines, its headings, phrases that recur, long forms of acronyms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sire_core.extraction.lexicon import ACTIONS, FUNCTION_WORDS, MONTHS, OPENERS, VAGUE_NOUNS, VAGUE_WORDS, WEEKDAYS
from sire_core.extraction.spans import TextSpan
from sire_core.extraction.words import is_everyday

__all__ = [
    "CAPTIONS",
    "TERM",
    "Definition",
    "acts",
    "definition_of",
    "heading_term",
    "is_numbered",
    "long_forms",
    "recurring_phrases",
    "term_spans",
]

TERM = "Term"
"""Type of common nouns that a passage defines or keeps coming back to."""

_DEFINITION = re.compile(
    r"(?:(?:In|For|With) [^,.:;]{2,60}, )?(?P<article>An? |The )?(?P<term>[\w.$@`/+#-]+(?: [\w.$@`/+#'-]+){0,4}?)"
    r"(?P<short> \([A-Za-z0-9 ./-]{2,40}\))?"
    r"(?:,? (?:also|sometimes|often) (?:known|called|referred)[^,.]{2,60},)? "
    r"(?:is|are|refers to|means|describes|represents)(?: (?:simply|basically|usually|typically))? "
    r"(?=(?:an? |the |one of |any |used |where |what |how |designed |responsible )"
    r"|[\w-]+(?: [\w-]+){0,3} (?:that|which|for|of)\b)"
)
_LONG_FORM = re.compile(r"((?:[A-Za-z][\w'-]*[ -]){1,8})\((?P<short>[A-Z][A-Za-z]{0,2}[A-Z]{1,5})s?\)")
_SHORT_FIRST = re.compile(r"\b(?P<short>[A-Z]{2,7})s? \((?P<long>[A-Za-z][a-z]+(?:[ -][A-Za-z][\w-]*){1,7})\)")
_STEP = re.compile(
    r"(?:step|chapter|section|part|appendix|example|figure|table|note|tip|phase|lesson|task)s?\b"
    r"[ .:]*(?:\d|[ivx]+\b|$)",
    re.IGNORECASE,
)
_RUN = re.compile(r"(?<![\w'\u2019.@/$-])[a-z][a-z0-9-]+(?: [a-z][a-z0-9-]+)+(?![\w'\u2019])")
_NUMBERING = re.compile(r"(?:\d{1,3}(?:\.\d{1,3}){0,4}[.)]?|[A-Z]\.)\s+")
_WORD = re.compile(r"[^\W_][\w'\u2019-]*")
_STOP = FUNCTION_WORDS | OPENERS | VAGUE_WORDS
_LONGEST = 3
_MOST = 6
_CANDIDATES = 60
_DESCRIPTION = 240


class Definition(NamedTuple):
    """What a passage defines: the term, where it stands in its sentence, and what is said of it."""

    start: int
    end: int
    term: str
    description: str


def definition_of(sentence: str) -> Definition | None:
    """The term that a sentence defines: `A lease is the right to ..`, `Leases are ..`; None when it defines nothing."""
    match = _DEFINITION.match(sentence)
    if match is None or not _may_name(match["term"], article=bool(match["article"])):
        return None
    description = " ".join(sentence[match.end() : match.end() + _DESCRIPTION].split())
    return Definition(*match.span("term"), match["term"], description)


def heading_term(heading: str, *, explained: bool = True) -> str:
    """What a heading names; empty for headings that say what to do or ask, and for those that any page has.

    `Step 3`, `Get started`, `What to do next?`, `Options` and `Before you begin` name nothing; `Lease pool`,
    `IBM Cloudant` and `queue.claim()` do. Of a call its name is enough: `store.get(key, default=None)`.

    Args:
        heading: Without marks.
        explained: Whether what follows says what the thing is; without that one everyday word (`Script`) is a label.
    """
    text = _NUMBERING.sub("", heading.strip(), count=1).strip(" *:#`\"'")
    text = _KIND.sub("", text, count=1)
    if call := _CALL.match(text):
        return call.group(1) if "." in call.group(1) else f"{call.group(1)}()"
    words = [word.lower().split("'")[0].split("\u2019")[0] for word in _WORD.findall(text)]
    if not words or len(words) > 5 or len(text) > 60 or text.endswith(("?", "!", ".")) or _MARKS.search(text):
        return ""
    asks = any(word in _LEADS for word in words) or words[0] in _STOP or words[0] in CAPTIONS or words[-1] in _ENDINGS
    instructs = _STEP.match(text) or (acts(words[0]) and len(words) > 1 and not text[:1].islower())
    if len(words) == 1:
        says = explained or not is_everyday(words[0]) or not text.isalpha()
    else:  # `Reliability features` of what?
        says = len(words) > 2 or words[1] not in VAGUE_NOUNS or "(" in text or text[-1].isupper()
    vague = all(
        word in _STOP or word in VAGUE_NOUNS or word in _DATES or word.isdigit() or (acts(word) and len(words) > 1)
        for word in words
    )
    return text if says and not (asks or instructs or vague) else ""


def is_numbered(text: str) -> bool:
    """Whether words are those of `Step 3` or `Table 12`."""
    return bool(_STEP.match(text))


def acts(word: str) -> bool:
    """Whether a lower-case word says what is done: a verb of instructions, a gerund or a participle."""
    return word in ACTIONS or (word.endswith(("ing", "ed")) and len(word) > 5 and is_everyday(word))


_CALL = re.compile(r"([A-Za-z_$][\w$]{0,60}(?:\.[A-Za-z_$][\w$]{0,60}){0,6})\(")
_KIND = re.compile(r"(?:class|module|function|method|event|property|command|interface|type):? (?=\S)", re.IGNORECASE)
_MARKS = re.compile(r"[=<>{}|;]")
_ENDINGS = FUNCTION_WORDS | frozenset("include includes contain contains provide provides".split())
_DATES = WEEKDAYS | frozenset(MONTHS)
CAPTIONS = frozenset("figure fig step table tab note tip example item".split())
"""Words that open captions and steps of instructions."""

_LEADS = frozenset(
    "how what why when where who which can do does did is are should will you your i my we our it its if let there "
    "to with without using from about".split()
)


def _may_name(term: str, *, article: bool) -> bool:
    """Whether what stands before `is a` is a term rather than a pronoun, a clause or an everyday noun."""
    words = [word.lower() for word in _WORD.findall(term)]
    if not words or words[0] in _STOP or words[0] in CAPTIONS or words[-1] in FUNCTION_WORDS | VAGUE_NOUNS:
        return False
    if any(word in FUNCTION_WORDS and word not in ("of", "and", "for", "as", "on") for word in words):
        return False
    if acts(words[0]) and not article and len(words) > 1 and term[0].isupper():
        return False
    return len(words) > 1 or not is_everyday(words[0]) or article or term[0].isupper()


def long_forms(sentence: str) -> list[TextSpan]:
    """Long forms written in lower case in front of their acronym, or behind it: `service level agreement (SLA)`."""
    found: list[TextSpan] = []
    if "(" not in sentence:
        return found
    for match in _LONG_FORM.finditer(sentence):
        words = [(word.start(), word.group()) for word in re.finditer(r"[A-Za-z][\w']*", match.group(1))]
        initials = match["short"].lower()
        for first in range(len(words)):
            letters = "".join(
                word[0].lower() for _, word in words[first:] if word not in ("of", "and", "for", "the", "to")
            )
            if letters == initials and len(words) - first > 1 and words[first][1].lower() not in FUNCTION_WORDS:
                start = match.start() + words[first][0]
                end = match.start() + words[-1][0] + len(words[-1][1])
                found.append(TextSpan(start, end, sentence[start:end], TERM))
                break
    for match in _SHORT_FIRST.finditer(sentence):
        letters = "".join(word[0].lower() for word in re.findall(r"[A-Za-z][\w']*", match["long"]))
        joined = "".join(
            word[0].lower() for word in re.findall(r"[A-Za-z]\w*", match["long"]) if word not in ("of", "and")
        )
        if match["short"].lower() in (letters, joined):
            found.append(TextSpan(match.start("long"), match.end("long"), match["long"], TERM))
    return found


def recurring_phrases(sentences: Sequence[str], headings: Iterable[str]) -> list[str]:
    """Lower-case noun phrases of two or three words that a passage says more than once, or once and in a heading.

    What recurs in one passage is what the passage is about; how many other passages say it, only a search can weigh.
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(_phrases(sentence))
    for heading in headings:
        counts.update(set(_phrases(heading.lower())))
    kept = [phrase for phrase, number in counts.most_common(_CANDIDATES) if number > 1]
    longer = [phrase for phrase in kept if phrase.count(" ") > 1]
    kept = [p for p in kept if not any(p != other and p in other and counts[p] <= counts[other] for other in longer)]
    return sorted(kept, key=lambda phrase: -counts[phrase])[:_MOST]


def _phrases(sentence: str) -> Iterator[str]:
    for match in _RUN.finditer(sentence):
        run: list[str] = []
        for word in (*match.group().split(), ""):
            if word and word not in _STOP and len(word) > 2:
                run.append(word)
                continue
            while run and (acts(run[0]) or run[0].endswith(("ed", "ly"))):
                del run[0]
            while run and (run[-1].endswith(("ed", "ly")) or run[-1] in ACTIONS):
                del run[-1]
            for size in range(2, _LONGEST + 1):
                if len(run) >= size and run[-1] not in VAGUE_NOUNS and not any(acts(w) for w in run[-size:-1]):
                    yield " ".join(run[-size:])
            run = []


def term_spans(sentence: str, terms: Iterable[str]) -> list[TextSpan]:
    """Where terms stand in a sentence, in any case and in the plural; longest first, without overlap."""
    lower = sentence.lower()
    found: list[TextSpan] = []
    for term in sorted(terms, key=len, reverse=True):
        wanted = term.lower()
        at = lower.find(wanted)
        while at >= 0:
            end = at + len(wanted)
            if lower[end : end + 1] == "s":
                end += 1
            free = not lower[at - 1 : at].isalnum() and not lower[end : end + 1].isalnum()
            if free and all(end <= span.start or span.end <= at for span in found):
                found.append(TextSpan(at, end, term, TERM))
            at = lower.find(wanted, end)
    return found
