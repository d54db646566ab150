"""Languages: which one a text is in, and how words of each become terms."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sire_core.errors import ConfigurationError
from sire_core.text.lexicon import FUNCTION_WORDS
from sire_core.text.words import find_words, spelled_words, split_words, without_accents

UNDETERMINED = "und"
"""Code (ISO 639) of a text that is too short, or of code and numbers only; it is analysed as English."""
ENGLISH = "en"
STATED = "lang"  # Key of metadata that state the language of a document
_NAMES_BY_CODE = (
    "af:afrikaans am:amharic ar:arabic bg:bulgarian bn:bengali br:breton ca:catalan cs:czech da:danish de:german "
    "el:greek en:english eo:esperanto es:spanish et:estonian eu:basque fa:persian fi:finnish fr:french ga:irish "
    "gl:galician gu:gujarati he:hebrew hi:hindi hr:croatian hu:hungarian hy:armenian id:indonesian it:italian "
    "ja:japanese ka:georgian km:khmer ko:korean lo:lao lt:lithuanian lv:latvian mr:marathi my:burmese ne:nepali "
    "nl:dutch no:norwegian pl:polish pt:portuguese ro:romanian ru:russian sk:slovak sl:slovenian sr:serbian "
    "st:sesotho sv:swedish sw:swahili ta:tamil th:thai tl:tagalog tr:turkish uk:ukrainian ur:urdu vi:vietnamese "
    "yi:yiddish zh:chinese"
)
LANGUAGES: dict[str, str] = dict(pair.split(":") for pair in _NAMES_BY_CODE.split())
"""English names of languages by ISO 639-1 code."""
_CODES = {name: code for code, name in LANGUAGES.items()} | {"nb": "no", "nn": "no", "iw": "he", "in": "id"}
_COMPOUNDING = frozenset("de nl sv da no fi ko et hu af".split())
"""Languages that write compounds as one word; in Korean, what stands behind a noun is written with it, too."""
_SNOWBALL_LISTS = frozenset("de es fr it nl no pt ru sv tr".split())
"""Languages whose function words Snowball lists, as `bm25s` has them."""
_MIN_PART, _MIN_PART_KOREAN = 4, 2  # Letters, or syllables, of a part of a compound
_SCRIPT_LANGUAGES: tuple[tuple[str, str, str], ...] = (
    ("\u3041-\u30ff", "", "ja"),
    ("\u3400-\u9fff\uf900-\ufaff", "", "zh"),
    ("\uac00-\ud7a3\u1100-\u11ff", "", "ko"),
    ("\u0e00-\u0e7f", "", "th"),
    ("\u0e80-\u0eff", "", "lo"),
    ("\u1780-\u17ff", "", "km"),
    ("\u1000-\u109f", "", "my"),
    ("\u0590-\u05ff", "he yi", "he"),
    ("\u0600-\u06ff", "ar fa ur", "ar"),
    ("\u0900-\u097f", "hi mr ne", "hi"),
    ("\u0400-\u04ff", "ru uk bg sr", "ru"),
    ("\u0370-\u03ff\u1f00-\u1fff", "", "el"),
    ("\u0530-\u058f", "", "hy"),
    ("\u10a0-\u10ff", "", "ka"),
    ("\u0980-\u09ff", "", "bn"),
    ("\u0a80-\u0aff", "", "gu"),
    ("\u0b80-\u0bff", "", "ta"),
    ("\u1200-\u137f", "", "am"),
)
"""Letters of a script, the languages that function words tell apart, and the one where they do not."""
_LETTER = re.compile(r"[^\W\d_]")
_BEYOND_LATIN = re.compile("[\u0370-\u1dff\u3041-\ua4cf\uac00-\ufaff]")
_SHORT_SAMPLE_CHARS, _MAX_SAMPLE_CHARS = 600, 2_000
_MIN_PLAIN, _MIN_PLAIN_SHARE = 8, 0.25
_MIN_SCORE, _MARGIN = 3.0, 1.4
"""Score of a language by its function words in a text, at least, and divided by that of English: names are foreign."""
_MIN_SHARE = 0.04  # Score divided by the number of different words
_MIN_SHORT_SCORE, _MIN_SHORT_SHARE = 1.2, 0.2
"""Least score, and share of the words, of a short text without a function word of English."""
_OWN_LETTERS = (
    "tr:\u011f\u0131\u015f de:\u00df es:\u00f1 pt:\u00e3\u00f5 fr:\u0153\u00f9 cs:\u0159\u011b\u016f hu:\u0151\u0171 "
    "pl:\u0105\u0119\u0142\u0144\u015b\u017a\u017c ro:\u0103\u021b\u0219 sv:\u00e5 da:\u00f8\u00e6 no:\u00f8\u00e5 "
    "vi:\u0111\u01a1\u01b0 lv:\u0101\u0113 lt:\u0117\u0173 ru:\u044b\u044d\u0451 uk:\u0456\u0457\u0454 bg:\u044a "
    "fa:\u067e\u0686\u06af\u06cc ur:\u0679\u06d2\u06ba"
)
"""Letters that hardly any other language has."""
_LETTER_WEIGHT = 0.5
_MIN_SCRIPT_SHARE = 0.3
_MIN_HITS_SHARE = 0.25  # Hits in a language divided by those in the most frequent one, at least
_MIN_KANA_SHARE = 0.1
_PARTICLES = re.compile(
    r"(?<=[\uac00-\ud7a3a-z\d])(?:\ub4e4|\uc5d0\uc11c|\uc5d0\uac8c|\uaed8\uc11c|\ud55c\ud14c|\uc73c\ub85c|\ubd80\ud130|\uae4c\uc9c0|\ucc98\ub7fc|\ubcf4\ub2e4|\uc870\ucc28|\ub9c8\uc800|\ub9c8\ub2e4|\ubc16\uc5d0|"
    r"\uc774\ub098|\uc774\ub780|\uc774\ub77c\uace0|\ub77c\uace0|\uc785\ub2c8\ub2e4|\uc774\ub2e4|\uc2b5\ub2c8\ub2e4|\uc2b5\ub2c8\uae4c|\ub2c8\ub2e4|\ub2c8\uae4c|\ud558\uace0|\uc744|\ub97c|\uc740|\ub294|\uc5d0|\uaed8)\Z"
    r"|(?:(?<=[\uac00-\ud7a3]{2})|(?<=[a-z\d]))(?:\uc774|\uac00|\uc758|\ub3c4|\ub85c|\ub9cc|\uc640|\uacfc|\ub098|\uc778|\ub780|\ub791)\Z"
    r"|(?<=[\uac00-\ud7a3]{2})[\ud558\ub418\ud569\ub429\ud588\ub410\ud55c\ub41c\ud560\ub420\ud568\ub428\ud574\ub3fc]"
    r"(?:\uba70|\uace0|\ub098\uc694|\ub294|\ub294\uc9c0|\ub358|\ub2e4|\uae30|\uc5ec|\uc11c|\uba74|\uc9c0|\ub2c8|\uc57c|\uc694|\uc138\uc694|\uba74\uc11c|\ub3c4\ub85d|\ub824\uba74)?\Z"
    r"|(?<=[\uac00-\ud7a3])(?:\uc778\uac00\uc694|\uc778\uc9c0|\uc774\uc5d0\uc694|\uc608\uc694|\ub098\uc694|\uae4c\uc694)\Z"
)
"""Korean particles, and endings of verbs that are made of a noun. Syllables that end nouns, too, are some behind two
others and behind Latin letters and digits."""
_TURKISH_ENDING = re.compile(r"(?<=\w)['\u2019]\w+")
_RUSSIAN_NAME = re.compile("(?<=\\w{3})(?:\u043e\u0432|\u0435\u0432)\\Z")
"""Russian ending that the stemmer takes from the first case of names only (`Kuznetsov`, `Kuznetsova`)."""
_LONG_VOWEL = re.compile("(?<=[\u30a1-\u30fc]{3})\u30fc(?![\u30a1-\u30fc])")
"""Mark at the end of longer Japanese loan words, which some writers leave out (`server`, `user`)."""


@dataclass(frozen=True)
class Language:
    """Analysis of a language: its words become terms.

    Attributes:
        code: ISO 639-1 code.
    """

    code: str

    @property
    def is_english(self) -> bool:
        """True if the rules of English hold; so do they where nothing tells the language."""
        return self.code in (ENGLISH, UNDETERMINED)

    def words(self, text: str) -> list[str]:
        """Words of a text as they are stemmed: lower case; scripts without spaces as pairs of letters."""
        if self.code == ENGLISH:
            return split_words(text)
        if self.code == "tr":  # the small letter of I has no dot, and names have endings behind an apostrophe
            text = _TURKISH_ENDING.sub("", text).replace("I", "\u0131").replace("\u0130", "i")
        return spelled_words(_LONG_VOWEL.sub("", text) if self.code == "ja" else text)

    def stems(self, words: Sequence[str]) -> list[str]:
        """Stems of words of `words`, without accents, which some writers leave out."""
        if self.code == ENGLISH:
            return list(_stemmer("english").stemWords(list(words)))
        if self.code == UNDETERMINED:
            return language(ENGLISH).stems(list(map(without_accents, words)))
        if self.code == "ko":
            return list(map(_without_particles, words))
        stemmer = _stemmer(LANGUAGES.get(self.code, ""))
        stems = [plain_key(stem) for stem in (stemmer.stemWords(list(words)) if stemmer else words)]
        return [_RUSSIAN_NAME.sub("", stem) for stem in stems] if self.code == "ru" else stems

    @cached_property
    def listed_words(self) -> frozenset[str]:
        """Words that are no names, a long list: function words and others that many texts have."""
        return FUNCTION_WORDS if self.is_english else _listed_words().get(self.code, frozenset())

    @cached_property
    def function_words(self) -> frozenset[str]:
        """Words that are not searched for: those of Snowball where it has any, and their other forms."""
        if self.code not in _SNOWBALL_LISTS:
            return self.listed_words
        words = frozenset(_snowball_words()[f"STOPWORDS_{LANGUAGES[self.code].upper()}"])
        others = sorted(self.listed_words - words)
        stems = frozenset(stem for stem in self.stems(sorted(words)) if len(stem) >= _MIN_PART)
        return words.union(word for word, stem in zip(others, self.stems(others), strict=True) if stem in stems)

    @property
    def min_part(self) -> int:
        """Letters of the shortest part of a compound; 0 where compounds are written as several words."""
        if self.code not in _COMPOUNDING:
            return 0
        return _MIN_PART_KOREAN if self.code == "ko" else _MIN_PART


@cache
def language(code: str) -> Language:
    """Return the analysis of a language by its code; of one that is not known, words as they are written."""
    return Language(code or UNDETERMINED)


def language_code(name: str) -> str:
    """Return the ISO 639-1 code of a language by its code (`de`, `de-AT`, `pt_BR`) or English name, else raise."""
    lower = name.strip().lower()
    code = _CODES.get(lower, re.split("[-_]", lower)[0])
    code = _CODES.get(code, code)
    if code not in LANGUAGES:
        raise ConfigurationError(
            f"{name!r} is no language known here. Use an ISO 639-1 code such as 'de', or leave it out: the language of "
            f"each document is found from its text. Known: {', '.join(f'{c} ({n})' for c, n in LANGUAGES.items())}."
        )
    return code


def stated_language(metadata: Mapping[str, Any]) -> str:
    """Return the code of the language that metadata state as `lang`; empty if they state none that is known."""
    stated = metadata.get(STATED)
    try:
        return language_code(stated) if isinstance(stated, str) and stated else ""
    except ConfigurationError:
        return ""


def find_language(text: str, among: Collection[str] = ()) -> str:
    """Return the code of the language of a text, by its script, then by function words; `und` if these do not tell.

    Looks at the first 2,000 letters; `among` are the codes of the languages that it may be in, any for none.
    """
    if not among and _is_plainly_english(text[:_SHORT_SAMPLE_CHARS]):
        return ENGLISH
    sample = text[:_MAX_SAMPLE_CHARS]
    candidates: Collection[str] = ()
    default = UNDETERMINED
    if _BEYOND_LATIN.search(sample):
        candidates, default = _of_script(sample)
        if default != UNDETERMINED and not candidates:
            return default
    words = dict.fromkeys(map(str.lower, find_words(sample)))
    scores: dict[str, float] = {}
    weights = _function_weights()
    for word in words:
        listed = weights.get(word, ())
        for code, weight in listed if word.isascii() else (*listed, *_own_letters(word)):
            scores[code] = scores.get(code, 0.0) + weight
    allowed = [code for code in scores if (not candidates or code in candidates) and (not among or code in among)]
    best = max(allowed, key=lambda code: (scores[code], code == ENGLISH, code), default=default)
    score, english = scores.get(best, 0.0), scores.get(ENGLISH, 0.0)
    if among and not score:
        return default if default in among else UNDETERMINED
    if among or (candidates and score):
        return best
    is_clear = score >= _MIN_SCORE and score >= _MARGIN * english and score >= _MIN_SHARE * len(words)
    is_clear |= not english and score >= _MIN_SHORT_SCORE and score >= _MIN_SHORT_SHARE * len(words)
    return best if is_clear or best == ENGLISH else default


def _is_plainly_english(sample: str) -> bool:
    """True if a text has so many function words of English that no other language need be thought of."""
    words = set(find_words(sample.lower()))
    shared = len(words & FUNCTION_WORDS)
    return shared >= _MIN_PLAIN and shared >= _MIN_PLAIN_SHARE * len(words)


def opens_with_function_word(word: str, text: str) -> bool:
    """True if the first word of a text, in any case, is a function word of its language."""
    lower = word.lower()
    return lower in _function_weights() and lower in language(find_language(text)).listed_words


def ranked_languages(codes: Iterable[str]) -> list[str]:
    """Return the languages of some texts, the most frequent first; English if none is known."""
    return [code for code, _ in Counter(codes).most_common() if code != UNDETERMINED] or [ENGLISH]


def question_language(question: str, codes: Iterable[str]) -> str:
    """Return the code of the language of a question about texts in some languages; the main one if nothing tells."""
    among = ranked_languages(codes)
    code = find_language(question, among) if len(among) > 1 else UNDETERMINED
    return among[0] if code == UNDETERMINED else code


def language_among(question: str, codes: Iterable[str]) -> Language:
    """Return the language to read a question and its hits in; a language of few hits only is foreign in them."""
    counts = Counter(codes)
    least = _MIN_HITS_SHARE * max(counts.values(), default=0)
    frequent = [code for code, number in counts.most_common() if number >= least]
    return language(question_language(question, frequent))


def _own_letters(word: str) -> Sequence[tuple[str, float]]:
    return [(code, _LETTER_WEIGHT) for code, letters in _letters_of_languages() if letters.search(word)]


@cache
def _letters_of_languages() -> Sequence[tuple[str, re.Pattern[str]]]:
    pairs = (pair.split(":") for pair in _OWN_LETTERS.split())
    return [(code, re.compile(f"[{letters}]")) for code, letters in pairs]


def _of_script(sample: str) -> tuple[Collection[str], str]:
    """Languages of the script of most letters, and the one to take where function words do not tell."""
    letters = len(_LETTER.findall(sample))
    counts = {script: len(pattern.findall(sample)) for script, pattern in _script_patterns().items()}
    if counts["ja"] > _MIN_KANA_SHARE * letters:
        return (), "ja"
    best = max(counts, key=lambda script: counts[script])
    if counts[best] <= _MIN_SCRIPT_SHARE * letters:
        return (), UNDETERMINED
    return next(codes.split() for _, codes, script in _SCRIPT_LANGUAGES if script == best), best


def script_language(word: str) -> str:
    """Return the code of the language to read a single word in by its script; empty for Latin letters."""
    if word.isascii():
        return ""
    return next((code for code, letters in _script_patterns().items() if letters.match(word)), "")


@cache
def _script_patterns() -> Mapping[str, re.Pattern[str]]:
    return {script: re.compile(f"[{letters}]") for letters, _, script in _SCRIPT_LANGUAGES}


@cache
def _listed_words() -> Mapping[str, frozenset[str]]:
    """Function words of languages by code."""
    listed = json.loads(_file_of("stopwordsiso", "stopwords-iso.json").read_bytes())
    return {
        code: frozenset(word.lower() for word in words if word.replace("'", "").isalpha())
        for code, words in listed.items()
        if code in LANGUAGES
    }


def _file_of(package: str, name: str) -> Path:
    """A file beside the code of a package, which is not imported: that takes longer than to read it."""
    spec = find_spec(package)
    assert spec is not None
    return Path(str(spec.origin)).with_name(name)


@cache
def _function_weights() -> Mapping[str, Sequence[tuple[str, float]]]:
    """Languages in which a word is a function word, each with a weight that is larger where there are fewer."""
    owners: dict[str, list[str]] = {}
    for code in LANGUAGES:
        for word in filter(_is_telling, language(code).listed_words):
            owners.setdefault(word, []).append(code)
    return {word: [(code, 0.4 + 0.6 / len(codes)) for code in codes] for word, codes in owners.items()}


def _is_telling(word: str) -> bool:
    return len(word) > 1 or word in "ayeo\u00e0"


@cache
def _snowball_words() -> dict[str, Any]:
    """Function words of Snowball by variable of `bm25s.stopwords`; the package imports numba where it is installed."""
    import runpy

    return runpy.run_path(str(_file_of("bm25s", "stopwords.py")))


@lru_cache(1)
def _algorithms() -> frozenset[str]:
    import Stemmer

    return frozenset(Stemmer.algorithms())


@cache
def _stemmer(name: str) -> Any:
    """The Snowball stemmer of a language; None without one."""
    import Stemmer

    return Stemmer.Stemmer(name, 0) if name in _algorithms() else None  # its cache costs more than it saves


def _without_particles(word: str) -> str:
    while match := _PARTICLES.search(word):
        word = word[: match.start()]
    return word


def plain_key(word: str) -> str:
    """A word as names are compared: without accents, and without the difference of Turkish i with and without dot."""
    return word if word.isascii() else without_accents(word).replace("\u0131", "i")


@dataclass(frozen=True, slots=True)
class CompoundWords:
    """Long words of a corpus, in which parts are looked for."""

    text: str  # The words in alphabetical order, a line break before and behind each
    min_part: int  # Letters of the shortest part

    @classmethod
    def of(cls, words: Iterable[str], min_part: int) -> CompoundWords:
        """Choose the words that are long enough to have two parts."""
        long = sorted(word for word in words if len(word) >= 2 * min_part - (min_part == _MIN_PART_KOREAN))
        return cls("\n".join(["", *long, ""]), min_part)

    def holding(self, part: str) -> list[str]:
        """Words of which a part is the beginning, the end or the middle, with other parts around it."""
        if len(part) < self.min_part:
            return []
        escaped, other = re.escape(part), f"[^\n]{{{1 if self.min_part == _MIN_PART_KOREAN else self.min_part},}}"
        return re.findall(rf"(?<=\n)(?:{escaped}{other}|{other}{escaped}(?:{other})?)(?=\n)", self.text)


def compound_parts(word: str, min_part: int, frequency: Mapping[str, int]) -> tuple[str, ...]:
    """Return the two words of a corpus that a compound is made of, those that are most frequent; none if it is no such.

    `frequency` is how many passages have each possible part, see `possible_parts`.
    """
    best: tuple[str, ...] = ()
    highest = 0
    for middle in range(min_part, len(word) - min_part + 1):
        head, tail = word[:middle], word[middle:]
        score = frequency.get(head, 0) * frequency.get(tail, 0)
        if score > highest:
            best, highest = (head, tail), score
    return best


def possible_parts(word: str, min_part: int) -> list[str]:
    """Beginnings and ends of a word that are long enough to be parts of it."""
    middles = range(min_part, len(word) - min_part + 1)
    return [part for middle in middles for part in (word[:middle], word[middle:])]
