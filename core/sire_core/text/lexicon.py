"""English words by their use, for extraction without a model; all lower case. `lexicon.toml` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sire_core.settings import read_toml

_LISTS: Mapping[str, Any] = read_toml("sire_core.text", "lexicon.toml")


def _words(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name].split())


def _kinds(name: str) -> dict[str, str]:
    return {word: kind for kind, words in _LISTS[name].items() for word in words.split()}


MONTHS = tuple(_LISTS["months"].split())
WEEKDAYS = _words("weekdays")
PRONOUNS = _words("pronouns")
FUNCTION_WORDS = PRONOUNS | _words("function_words")  # Words that neither name nor describe
OPENERS = _words("openers")  # Words that often open a sentence and are not names
HONORIFICS = _words("honorifics")  # Ranks and titles before a person's name
EPITHETS = _words("epithets")  # Words that may follow `the` in a person's name
ABBREVIATIONS = "|".join(_LISTS["abbreviations"].split())
"""Abbreviations whose period belongs to the name, as a pattern."""
UNITS = (
    r"square (?:kilomet(?:re|er)s?|miles?|feet|met(?:re|er)s?)|sq (?:mi|km|ft)|km[²2]?|mi[²2]?|kilomet(?:re|er)s?|"
    r"met(?:re|er)s?|miles?|feet|foot|ft|inch(?:es)?|cm|mm|acres?|hectares?|ha|yards?|kg|kilograms?|pounds?|lbs?|"
    r"tons?|tonnes?|percent|per cent|%|people|inhabitants|residents|copies|students|employees|seats|members|votes|"
    r"kHz|MHz|GHz|watts|kW|MW|dollars|euros|rupees|pesos|yen|minutes|hours|days|weeks|months|years|episodes|points|"
    r"goals|games|matches|households|families|species|soldiers|men|passengers|viewers"
)
"""Units of quantities, as a pattern."""
NAME_TAILS = _kinds("name_tails")  # Type of a name by its last word
KIND_NOUNS = _kinds("kind_nouns")  # Type of X by the head noun of `X is a ...`
PERSON_SUFFIXES = tuple("ist ician ologist grapher maker player man woman ess ian eur wright".split())
"""Suffixes of nouns for occupations."""
DEMONYMS = _words("demonyms")  # Adjectives of nations, languages, faiths and directions: not entities by themselves


def _third_person(verb: str) -> str:
    if verb.endswith(("s", "sh", "ch", "x", "o")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if verb.endswith("y") and verb[-2] not in "aeiou" else f"{verb}s"


ACTIONS = _words("verbs").union(map(_third_person, _words("verbs")))
"""Verbs of instructions: at the start of a sentence or heading they name nothing."""
VAGUE_WORDS = _words("vague_words")  # Adjectives and participles that carry little meaning
VAGUE_NOUNS = _words("vague_nouns")
"""Nouns that occur on every page of a manual: alone or after vague words they name nothing."""
HEADING_PARTS = _words("heading_parts")  # Words of headings that name a part of a document, which nobody asks about
