"""What a passage is about: the kind of its title, and sentences that say so by `He`, `It` or `The film`."""

from __future__ import annotations

import re
from typing import NamedTuple

from sire_core.extraction.headings import base_title
from sire_core.extraction.lexicon import DEMONYMS, FUNCTION_WORDS, KIND_NOUNS, NAME_TAILS, PERSON_SUFFIXES

__all__ = ["Reference", "detect_kind", "find_reference"]

_COPULA = re.compile(r"\b(?:is|was|are|were|became)\b (?:one of |also |an? |the |his |her |their )*")
_CLAUSE_END = re.compile(
    r"[,;.(:]| (?:who|which|that|of|in|from|by|for|to|on|at|with|about|as|and|or|based|known|located|situated|starring|"
    r"written|made|built|sung|run|set|held|featuring|including|serving|playing|living|born|near|between|set|\w+ed)\b"
)
_BIRTH = re.compile(
    r"\((?:[^()]{0,60}?[;,] )?(?:born|b\.|d\.|died|c\.|ca\.|\d{1,2} [A-Z][a-z]+ \d{3,4}|[A-Z][a-z]+ \d{1,2}, \d{4}|"
    r"\d{3,4} ?[\u2013-] ?\d{3,4}\))"
)
_SHE = re.compile(r"\b(?:[Ss]he|[Hh]er)\b")
_HE = re.compile(r"\b(?:[Hh]e|[Hh]is)\b")
_REFERENCE = re.compile(
    r"(?P<intro>(?:(?:In|On|At|After|By|During|Since|From|Until|Before|Following|Throughout|Upon|As|While|When|"
    r"Although|Though|Despite|Born|Originally|Later|Then|Initially|Subsequently|However|Eventually|Today|Currently)\b"
    r"[^,;:()]{0,60}, |(?:In|Since|By|During|Until|On) (?:\w+ ){0,2}\d{4} ))?"
    r"(?:(?P<subject>[Hh]e|[Ss]he|[Ii]t|[Tt]hey)(?! ?['\u2019])|(?P<owner>[Hh]is|[Hh]er|[Ii]ts|[Tt]heir)(?= \w)|"
    r"[Tt](?:he|his) (?:\d{4} |[a-z-]+ly )?(?P<noun>[a-z-]+))\b"
)
_VERB = re.compile(
    r"(?P<own>['\u2019]s\b)|,? (?:also |then |later |originally |first |is|was|are|were|has|had|have|will|would|can|"
    r"could|may|did|does|became|began|won|took|ran|made|came|went|left|met|led|lies|sold|told|got|grew|held|spent|\w{3,}ed\b|"
    r"\w{2,}[^s\W]s\b)"
)


class Reference(NamedTuple):
    """A piece of a sentence that stands for the title: `sentence[start:end]`; `owner` when it is possessive."""

    start: int
    end: int
    owner: bool


def detect_kind(title: str, sentences: list[str]) -> str:
    """Coarse type of what the title names, from the first sentence; empty when nothing tells."""
    first = sentences[0][:400] if sentences else ""
    bracket = title[len(base_title(title)) :].strip(" ()").lower().split()
    if bracket and (kind := _noun_kind(bracket[-1])):
        return kind
    if _BIRTH.search(first[: len(title) + 120]):
        return "Person"
    copula = _COPULA.search(first)
    if copula and copula.start() < len(title) + 120:
        clause = first[copula.end() :]
        end = _CLAUSE_END.search(clause)
        words = clause[: end.start() if end else 80].split()
        if words and (kind := _noun_kind(words[-1].lower())):
            return kind
    return _kind_of_name(base_title(title), sentences)


def _noun_kind(noun: str) -> str:
    for form in (noun, noun.removesuffix("s")):
        if form in KIND_NOUNS:
            return KIND_NOUNS[form]
    return "Person" if noun.endswith(PERSON_SUFFIXES) and noun not in DEMONYMS else ""


def _kind_of_name(base: str, sentences: list[str]) -> str:
    words = base.split(",", 1)[0].split()
    if words and (tail := NAME_TAILS.get(words[-1].lower())):
        return tail
    looks_personal = 1 < len(words) < 5 and all(word[0].isupper() for word in words)
    return "Person" if looks_personal and any(re.match(r"(?:He|She|His|Her)\b", text) for text in sentences) else ""


def gender(text: str) -> str:
    """`she` or `he`, whichever a passage says more often; empty when that does not tell."""
    she, he = len(_SHE.findall(text)), len(_HE.findall(text))
    return "" if she == he else "she" if she > he else "he"


def find_reference(sentence: str, kind: str, sex: str, names_before: int) -> Reference | None:
    """Find the piece at the start of a sentence that safely stands for the title."""
    match = _REFERENCE.match(sentence)
    if match is None or (match["intro"] and match.end("intro") > names_before):
        return None
    noun = match["noun"]
    if noun:
        return _described(sentence, match, noun, kind)
    group = "owner" if match["owner"] else "subject"
    word = match[group].lower()
    fits = {
        "he": kind == "Person" and sex == "he",
        "his": kind == "Person" and sex == "he",
        "she": kind == "Person" and sex == "she",
        "her": kind == "Person" and sex == "she",
        "they": kind == "Organization",
        "their": kind == "Organization",
    }
    return (
        Reference(match.start(group), match.end(group), group == "owner") if fits.get(word, kind != "Person") else None
    )


def _described(sentence: str, match: re.Match[str], noun: str, kind: str) -> Reference | None:
    if noun in FUNCTION_WORDS or not kind or _noun_kind(noun) != kind:
        return None
    verb = _VERB.match(sentence, match.end("noun"))
    if verb is None:
        return None
    start = match.end("intro") if match["intro"] else 0
    return Reference(start, verb.end("own") if verb["own"] else match.end("noun"), bool(verb["own"]))
