"""Rules of questions by language: what they ask for, and what answers have. Months and units are those of CLDR."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from sire_core.settings import read_toml
from sire_core.text.languages import ENGLISH, Language
from sire_core.text.snippets import stems
from sire_core.text.words import find_words, uncontracted

_MAX_PARTS, _MIN_PART_STEMS = 3, 2  # Parts of a question, the last ones; and content words of each
_TIME_SYMBOLS = frozenset("ms s m h d".split())
_SPANS = "millisecond second minute hour day week month year".split()
_COUNTED = (1, 2, 3, 5, 11, 100, 0.5)  # Numbers that bring out every form of a unit in the languages of CLDR
_AMOUNT = r"\d[\d,.]*[\s-]?([^\W\d_]+)"
_NUMERALS = "二三四五六七八九十百千万億亿"
_NEVER = r"(?!)"
_FINAL, _COMMAS = ".?!;\u061b\u061f\u3002\uff01\uff1b\uff1f", ",\u060c"


@dataclass(frozen=True, eq=False)
class AskingRules:
    """Words by which questions of a language ask, and what answers have."""

    spoken: Language  # The language
    words: Mapping[str, str]  # Its words in `asking.toml`; none for a language without

    def parts(self, question: str) -> list[str]:
        """The parts of a question that asks for several things, the last ones."""
        parts = [part for part in self._between_parts.split(question) if part]
        parts = [part for part in parts if len(stems(part, self.spoken)) >= _MIN_PART_STEMS]
        return parts[-_MAX_PARTS:] if len(parts) > 1 else [question]

    def searched_text(self, question: str) -> str:
        """A question without halves of contractions, or the words that ask where they make pairs with other letters."""
        if self.words.get("inside") != "pairs":
            return self.without_contractions(question)
        text = self._pattern("ask", "person", "place", "date").sub(" ", question)
        letters = self.words.get("grammar")
        if not letters or not re.search(rf"[^\W{letters}]", text):
            return text
        return re.sub(f"([{letters}])[{letters}]*([{letters}])", r"\1 \2", text)

    def without_contractions(self, question: str) -> str:
        """An English question in which "aren't" is "are" and "I'm" is "I"; any other as it is."""
        return uncontracted(question) if self.spoken.is_english else question

    def content_words(self, question: str) -> list[str]:
        """Words of a question, each once, without those that ask, function words and pairs with particles."""
        asking = self._pattern("ask", "person", "place", "date", "span")
        text = question if self.words.get("inside") == "endings" else asking.sub(" ", question)
        words = list(dict.fromkeys(self.spoken.words(self.searched_text(text))))
        stems = self.spoken.stems(words)
        idle = self.spoken.listed_words.union(word for word in (*words, *stems) if asking.fullmatch(word))
        content = [word for word, stem in zip(words, stems, strict=True) if stem and idle.isdisjoint((word, stem))]
        letters = re.compile(f"[{self.words['grammar']}]" if "grammar" in self.words else _NEVER)
        return [word for word in content if not letters.search(word)] or content

    def goes_on(self, question: str, max_words: int) -> bool:
        """True if a question has hardly a word of its own and refers to what was asked before."""
        begins = re.match(rf"\W*(?:{self._either('join')})(?!\w)", question, re.IGNORECASE)
        is_short = len(self.content_words(question)) <= max_words
        return is_short and bool(begins or self._pattern("refers").search(question))

    def asks_code(self, question: str) -> bool:
        """True if a command, an option or the way to do something is asked for."""
        return self._pattern("way").search(question) is not None

    def is_value_asked(self, question: str, question_stems: frozenset[str], label: str) -> bool:
        """True if a question asks for what a label names: with its words, or for a number where it is a default."""
        if stems(label, self.spoken) & question_stems:
            return True
        return bool(self._pattern("number").search(question) and self._pattern("default").search(label))

    def has_time_asked(self, question: str, sentence: str) -> bool:
        """True if a sentence has a time where the question asks for one."""
        return bool(self._pattern("span").search(question)) and self._has_time(sentence)

    def has_kind_asked(self, question: str, question_stems: frozenset[str], sentence: str) -> bool:
        """True if a sentence has a number, a month or a new name where the question asks for one."""
        is_date = self._pattern("date").search(question)
        if is_date or self._pattern("number").search(question):
            return bool(self._number.search(sentence) or (is_date and self._month.search(sentence)))
        is_name = self._pattern("person", "place", "name").search(question)
        return bool(is_name) and any(not stems(name, self.spoken) & question_stems for name in self._names(sentence))

    @cached_property
    def _is_inside(self) -> bool:
        return "inside" in self.words

    def _pattern(self, *kinds: str) -> re.Pattern[str]:
        """A pattern of the words of some kinds."""
        if kinds not in self._patterns:
            left, right = ("", "") if self._is_inside else (r"(?<!\w)", r"(?!\w)")
            self._patterns[kinds] = re.compile(f"{left}(?:{self._either(*kinds)}){right}", re.IGNORECASE)
        return self._patterns[kinds]

    @cached_property
    def _patterns(self) -> dict[tuple[str, ...], re.Pattern[str]]:
        return {}

    def _either(self, *kinds: str) -> str:
        """Alternatives of the words of some kinds."""
        listed = sorted(" ".join(self.words.get(kind, "") for kind in kinds).split(), key=len, reverse=True)
        phrases = (re.escape(phrase).replace("_", r"\s+").replace(r"\*", r"\w*") for phrase in listed)
        either = "|".join(phrases) or _NEVER
        if r"\{unit\}" in either:
            either = either.replace(r"\{unit\}", f"(?:{'|'.join(map(re.escape, sorted(self._units, reverse=True)))})")
        return either

    @cached_property
    def _between_parts(self) -> re.Pattern[str]:
        join, ask = self._either("join"), self._either("ask")
        if self._is_inside:
            return re.compile(rf"(?<=[{_FINAL}])\s*|(?:{join})\s*(?=[^{_FINAL}]*(?:{ask}))")
        behind, named = rf"(?=(?:\w{{2,6}} )?(?:{ask})\b)", rf"(?=\w+ \w+ (?:{self._either('name')})\b)"
        comma = rf"[{_COMMAS}]"
        return re.compile(
            rf"(?<=[{_FINAL}])\s+|{comma}?\s(?:{join})\s{behind}|{comma}\s(?:{join})\s{named}|{comma}\s(?=(?:{ask})\b)",
            re.IGNORECASE,
        )

    @cached_property
    def _number(self) -> re.Pattern[str]:
        return re.compile(rf"[\d{_NUMERALS}]" if self._is_inside else r"(?<![\w.])\d(?!\w*\.\d+\.)")

    @cached_property
    def _month(self) -> re.Pattern[str]:
        """Months as they are written, in dates and alone."""
        from babel.dates import get_month_names

        of_dates, alone = get_month_names(locale=self._locale), get_month_names("wide", "stand-alone", self._locale)
        names = {*of_dates.values(), *alone.values()}
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)")

    @property
    def _locale(self) -> str:
        return self.spoken.code if self.words and not self.spoken.is_english else ENGLISH

    @cached_property
    def _units(self) -> frozenset[str]:
        """Units of time, long and short, in all their forms."""
        from babel.units import format_unit

        texts = (
            format_unit(number, f"duration-{unit}", length, locale=self._locale)
            for unit in _SPANS
            for number in _COUNTED
            for length in ("long", "short")
        )
        return frozenset(words[-1].lower() for text in texts if (words := re.findall(r"[^\W\d_]+", text)))

    @cached_property
    def _unit_stems(self) -> frozenset[str]:
        return frozenset(self.spoken.stems(sorted(self._units))) | _TIME_SYMBOLS

    def _has_time(self, sentence: str) -> bool:
        units = tuple(self._units)
        for match in re.finditer(_AMOUNT if self._is_inside else rf"(?<![\w.,]){_AMOUNT}", sentence):
            word = match[1].lower()
            if word.startswith(units) if self._is_inside else self.spoken.stems([word])[0] in self._unit_stems:
                return True
        return re.search(rf"(?i)\b(?:{self._either('default')})\b\W+(?:\w+\W+){{0,2}}\d", sentence) is not None

    def _names(self, sentence: str) -> list[str]:
        """Words with a capital but the first such; where all nouns have one, behind another or a word before names."""
        words, openers = find_words(sentence), self.words.get("before_name", "").split()
        names = [
            word
            for before, word in zip(["", *words], words, strict=False)
            if len(word) > 1 and word[0].isupper() and (not openers or before[:1].isupper() or before in openers)
        ]
        return names if openers else names[1:]


@cache
def asking_rules(spoken: Language) -> AskingRules:
    """Return the rules of a language; of one without, only numbers and the ends of sentences tell anything."""
    every: Mapping[str, Mapping[str, str]] = read_toml(__package__, "asking.toml")
    return AskingRules(spoken, every.get(ENGLISH if spoken.is_english else spoken.code, {}))
