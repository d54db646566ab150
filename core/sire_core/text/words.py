"""Words, name keys, answer normalisation, tokens, sentences and parts of texts. Pure functions."""

from __future__ import annotations

import codecs
import re
import string
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from typing import Any, TypeVar

_BREAKS = "\u00ad\u200b\u2060\ufeff"  # where a line may break, or must not
_INVISIBLE = rf"{_BREAKS}\u034f\u061c\u200c-\u200f\u202a-\u202e\u2061-\u2064\u2066-\u2069\ufe00-\ufe0f"
# Arabic and Hebrew are written with and without: vowels, cantillation, the stroke that widens a word.
_POINTS = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0898-\u089f\u08ca-\u08e1\u08e3-\u08ff"
)
_SOUTH_EAST = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_EAST = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
UNSPACED = _SOUTH_EAST + _EAST
"""Body of a character class: scripts written without spaces between words, Thai to Khmer, kana, Han."""
# All combining signs lie in these blocks; the others hold a million characters.
_BLOCKS = ((0x300, 0x3100), (0xA600, 0xAC00), (0xFB00, 0xFF00), (0x10000, 0x12000), (0x16000, 0x1F000))
_MOST_SIGNS = 8  # Signs on one letter; more are tokens by themselves, so that no token is of any length

_RARE = re.compile("[\U00010000-\U0010ffff]")
_RARE_RANGE = re.compile("[\U00010000-\U0010ffff]-[\U00010000-\U0010ffff]")
_IN_WORDS = bytes(code if chr(code).isalnum() or chr(code) == "_" else ord(" ") for code in range(128)).ljust(256)
_IN_LOWER_WORDS = _IN_WORDS.lower()
_IN_RUNS = bytes(code if chr(code) in ".-" else _IN_WORDS[code] for code in range(128)).ljust(256)
_PRINTED_MARKS = "\u2019\u2018\u201c\u201d\u2013\u2014\u2026\u2022\xa0\xb7\xbb\u2192"
"""Marks and spaces of printed English, which stand between words in any form of a text."""
_IDENTIFIER = re.compile(r"(?<!\w)(?=[^\W_]*_)\w+")  # Words joined by `_`
_NEGATION = re.compile(r"\b[DWdw]on['\u2019]t\b")  # No form of "won" or of "don"
_CONTRACTED = re.compile(
    r"(?i)\b(?:(?:ca|wo|sha|ai)n['\u2019]t\b|(?P<verb>[a-z]{2,6})n['\u2019]t\b|(?P<word>[a-z]{1,8})['\u2019](?:m|re|ve|ll|d)\b)"
)
_ACCENT = re.compile("[\u0300-\u036f]")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
SOUTH_EAST = re.compile(f"[{_SOUTH_EAST}]")
"""A character of a script without spaces whose letters have signs: Thai, Lao, Burmese, Khmer."""
_WRITTEN = re.compile(f"[{UNSPACED}\uff66-\uff9f]+")  # half-width kana, too: they are folded to the others
_EAST_LINE = rf"[{_EAST}\u3001-\u3003\u3008-\u301b\uff01-\uff65]"
_EAST_BREAK = re.compile(rf"(?<={_EAST_LINE})\n(?={_EAST_LINE})")
_UNREAD = re.compile(f"[{_INVISIBLE}{_POINTS}]+")
# Persian writes endings behind one: `books` is `book`, this and the ending of plurals.
_GAP = re.compile("(?<=[\u0620-\u06ff])\u200c")
LINK_TARGET = r"\]\([^()\s]{0,2000}(?:\([^()\s]{0,500}\)[^()\s]{0,500}){0,4}(?:[ \t]+\"[^\"\n]{0,300}\")?\)"
"""Pattern of the address of a Markdown link or image, from the closing bracket of its text on."""
_TARGET = re.compile(LINK_TARGET)


@cache
def signs() -> str:
    """Body of a character class: what goes on with the word that it stands in, but begins none."""
    blocks = (map(chr, range(*block)) for block in _BLOCKS)
    marks = [sign for block in blocks for sign in block if unicodedata.category(sign)[0] == "M"]
    ranges = [f"{first}-{last}" for first, last in _runs(marks)]
    return "".join([*ranges, _INVISIBLE, "\U000e0100-\U000e01ef"])


def _runs(letters: Sequence[str]) -> list[tuple[str, str]]:
    """First and last of letters that follow each other."""
    starts = [i for i, letter in enumerate(letters) if not i or ord(letter) != ord(letters[i - 1]) + 1]
    return [(letters[start], letters[stop - 1]) for start, stop in pairwise([*starts, len(letters)])]


@cache
def word_pattern() -> re.Pattern[str]:
    """The pattern of a word as it is written; making it takes longer than importing the package should."""
    # Most words end before a space: it is not looked up among the signs, whose rarer blocks are compared one by one.
    return re.compile(rf"\w+(?:(?![\0-\xac])[{signs()}]+\w*)*")


@cache
def _special() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Signs and scripts without spaces: in the basic plane, where a letter is looked up in one step, and in all."""
    every = signs() + UNSPACED
    return re.compile(f"[{_RARE_RANGE.sub('', every)}]"), re.compile(f"[{every}]")


def is_plain(text: str, start: int = 0, end: int | None = None) -> bool:
    r"""True if `\w+` finds the words of a part of a text: it has no signs, and no script without spaces."""
    if text.isascii():
        return True
    end = len(text) if end is None else end
    basic, every = _special()
    if basic.search(text, start, end):
        return False
    return not _RARE.search(text, start, end) or every.search(text, start, end) is None


def visible_text(text: str) -> str:
    """A text without soft hyphens and other places where a line may break."""
    for mark in () if text.isascii() else _BREAKS:  # a tenth of the time of a pattern
        text = text.replace(mark, "")
    return text


def bare_text(text: str) -> str:
    """A text as words are compared: composed, without what is invisible and without points of Arabic and Hebrew."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text)
    return _UNREAD.sub("", _GAP.sub(" ", text) if "\u200c" in text else text)


def find_words(text: str) -> list[str]:
    """The words of a text in order, see `bare_text`; upper and lower case stay, "won't" is "not"."""
    text = with_negations(text)
    return _ascii_words(text, _IN_WORDS) or word_pattern().findall(bare_text(text))


def word_runs(text: str) -> list[str]:
    """Words of an ASCII text, several that dots and hyphens join as one, "won't" as "not"; nothing of other texts."""
    return _ascii_words(with_negations(text), _IN_RUNS)


def with_negations(text: str) -> str:
    """A text with "not" for "don't" and "won't"."""
    return _NEGATION.sub("not", text) if "on't" in text or "on\u2019t" in text else text


def uncontracted(question: str) -> str:
    """An English question in which "aren't" is "are", "I'm" is "I": halves of contractions are no words to look for."""
    if "'" not in question and "\u2019" not in question:
        return question
    return _CONTRACTED.sub(lambda word: word["verb"] or word["word"] or "", question)


def _ascii_words(text: str, letters: bytes) -> list[str]:
    r"""Words of a text whose letters are ASCII, as `\w+` finds them, in a fifth of the time; nothing of others."""
    if not text.isascii():
        for mark in _PRINTED_MARKS:
            text = text.replace(mark, " ")
    return text.encode("ascii").translate(letters).decode("ascii").split() if text.isascii() else []


def split_words(text: str, *, whole_letters: bool = False) -> list[str]:
    """Lower-case words without accents; runs of a script without spaces become overlapping pairs of characters.

    With `whole_letters` pairs are of letters with their signs, as in `spelled_words`.
    """
    if words := _ascii_words(text, _IN_LOWER_WORDS):
        return words
    folded = without_accents(bare_text(unicodedata.normalize("NFKC", text).casefold()))
    letters_of: Callable[[str], Sequence[str]] = _letter_with_signs().findall if whole_letters else lambda run: run
    return _ascii_words(folded, _IN_LOWER_WORDS) or _cut_words(folded, letters_of)


def spelled_words(text: str) -> list[str]:
    """Words as `split_words` has them, with their accents; the signs of a letter stay with it in pairs, too."""
    return _ascii_words(text, _IN_LOWER_WORDS) or _cut_words(
        bare_text(unicodedata.normalize("NFKC", text).casefold()), _letter_with_signs().findall
    )


def without_accents(text: str) -> str:
    """A text without the accents of its letters, composed."""
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", text)))


def _cut_words(text: str, letters_of: Callable[[str], Sequence[str]]) -> list[str]:
    if not _UNSPACED_RUN.search(text):
        return word_pattern().findall(text)
    words = []
    for word in word_pattern().findall(text):
        if not _UNSPACED_RUN.search(word):
            words.append(word)
            continue
        start = 0
        for run in _UNSPACED_RUN.finditer(word):
            words += [word[start : run.start()]] if run.start() > start else []
            letters = letters_of(run.group())
            words += ["".join(letters[i : i + 2]) for i in range(max(1, len(letters) - 1))]
            start = run.end()
        words += [word[start:]] if start < len(word) else []
    return words


@cache
def _letter_with_signs() -> re.Pattern[str]:
    """A letter of a script without spaces with its signs; in Khmer with the letters written below it, too."""
    return re.compile(rf".(?:\u17d2.|[{signs()}])*", re.DOTALL)


def spaced_text(text: str) -> str:
    """A text for who splits at spaces: runs of a script without them as pairs, see `split_words`; all of it bare."""
    if text.isascii():
        return text
    return _WRITTEN.sub(lambda run: f" {' '.join(split_words(run.group()))} ", bare_text(text))


@cache
def indexed_words() -> re.Pattern[str]:
    """Words of two letters or more, as `bm25s` has them; a character by itself is one in a script without spaces."""
    return re.compile(rf"\w[\w{signs()}]+|[{UNSPACED}]")


@cache
def token_pattern(longest: int = 0) -> re.Pattern[str]:
    """The pattern of a token: a word or a single mark; what it skips is space."""
    on = rf"[{signs()}]{{0,{_MOST_SIGNS}}}"
    letter = rf"[^\W{UNSPACED}]"
    word = rf"(?:{letter}{on}){{1,{longest}}}" if longest else rf"{letter}+(?:[{signs()}]+{letter}*)*"
    return re.compile(rf"[{_EAST}]{on}|(?:[{_SOUTH_EAST}]{on}){{1,3}}|{word}|[^\w\s]{on}")


def joined_parts(parts: Iterable[str]) -> str:
    """Lines or sentences on one line: Chinese and Japanese write no space between them."""
    text = "\n".join(parts)
    return (text if text.isascii() else _EAST_BREAK.sub("", text)).replace("\n", " ")


def one_line(text: str) -> str:
    """A text on one line, with single spaces."""
    return " ".join(joined_parts(map(str.strip, text.splitlines())).split())


def without_link_targets(text: str) -> str:
    """Return a text with `[words]` for every `[words](address)`: addresses are no words of a passage."""
    return _TARGET.sub("]", text) if "](" in text else text


def with_parts(text: str) -> str:
    """The text with the words of its identifiers behind each: `max_size max size`."""
    return _IDENTIFIER.sub(_parts_behind, text) if "_" in text else text


def _parts_behind(identifier: re.Match[str]) -> str:
    parts = [part for part in identifier[0].split("_") if len(part) > 1 and not part.isdigit()]
    return f"{identifier[0]} {' '.join(parts).lower()}" if len(parts) > 1 else identifier[0]


# A full stop after one of these rarely ends a sentence.
_ABBREVIATIONS = frozenset(
    (
        "mr mrs ms dr prof st sr jr vs etc inc ltd co corp no vol fig eq e.g i.e cf al approx ca b d gen col "
        "lt maj capt c fl lit sgt rev hon gov sen rep pres jan feb mar apr jun jul aug sep sept oct nov dec "
        "u.s u.k ph.d op ed est dept "
        # German, Dutch, French, Spanish, Portuguese, Italian, Polish, Russian
        "bzw vgl ggf evtl sog bspw inkl exkl zzgl abzgl z.b d.h u.a s.o i.v.m hr geb gest ehem hrsg "
        "dhr mevr bijv drs mme mlle t\u00e9l bd min env sra srta d\u00f1a avda tel sig.ra dott avv ul \u015bw tzw "
        "\u0443\u043b \u0438\u043c \u0442.\u0435 \u0442.\u043a \u043e\u0431\u043b \u043f\u043e\u0441"
    ).split()
)
# Nor does one after these, in front of a number: "Abs. 2", "Art. 12", "p. 7".
_BEFORE_NUMBER = frozenset(
    (
        "abs nr art arts satz ziff kap bd gem abb anm rz rn str pos nos sec sect ch chap cap p pp pg pag "
        "ext extn max ver vers p\u00e1g p\u00e1gs n\u00fam num n\u00ba nro tel tit poz pkt rozdz ust "
        "\u0441\u0442 \u043f \u0441\u0442\u0440 \u0433\u043b \u0440\u0438\u0441 \u0434 \u043a\u0432"
    ).split()
)
# Between one of these and a noun a number with a stop is an ordinal: "am 3. Mai", "der 2. Senat".
_BEFORE_ORDINAL = frozenset(
    "am der die das den dem des vom zum zur im beim ab bis seit ein eine einem einen einer eines und d dne".split()
)
_MONTHS = frozenset("januar j\u00e4nner februar m\u00e4rz mai juni juli oktober dezember jahrhundert".split())
_YEAR = frozenset(("\u0433", "\u0433\u0433"))
"""Russian: a year behind a number, where the sentence may end, and else a town."""
_LONGEST_ORDINAL = 3
_LETTER_AND_STOP = re.compile(r"[^\W\d_]\.")
_AROUND = "(\"'\u201e\u201c\u201d\u00ab\u00bb[.,"
_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"\w+")
_SPACE = re.compile(r"\s+")
_BY_SHAPE = "sire_core.shape"
_LATIN = bytes(range(256)).decode("latin-1")
_LATIN_MARKS = bytes(ord(letter) for letter in _LATIN if _TOKEN.match(letter) and not _WORD.match(letter))
_SHAPES = bytes(ord("w" if _WORD.match(letter) else " ") for letter in _LATIN)
_LOOKED_AT = 40
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_QUOTES = "\"'\u2018\u2019\u201c\u201d\u00ab\u00bb`"
# Also of Hindi, Arabic, Urdu, Chinese and Japanese.
FINAL_MARKS = ".!?\u0964\u0965\u061f\u06d4\u3002\uff01\uff1f\uff61"  # Marks that end a sentence
# Chinese and Japanese write no space behind their marks; behind a Japanese quotation its sentence goes on.
_UNSPACED_FINAL, _CLOSING = r"\u3002\uff01\uff1f\uff61", r"\"'\u201d\u2019)\]\u300d\u300f\uff09"
_SENTENCE_ENDS = rf"\s+|$|(?<=[{_UNSPACED_FINAL}])(?![{_CLOSING}])|(?<=[{_UNSPACED_FINAL}]\u201d)"
# The first letter decides where a match is tried: patterns that begin with a look behind are tried everywhere.
_BOUNDARY = re.compile(
    rf"[{FINAL_MARKS}\n](?:(?<!\n)(?<![{FINAL_MARKS}][{FINAL_MARKS}])[{FINAL_MARKS}]*(?P<closed>[{_CLOSING}]*)"
    rf"(?:{_SENTENCE_ENDS})|(?<=\n)\s*\n)"
)


def stop_ends_sentence(before: str, after: str) -> bool:
    """True if a full stop ends a sentence."""
    words = before.split()
    last = words[-1].strip("(\"'\u201e\u00ab[") if words else ""
    low = last.lower()
    beside = _LETTER_AND_STOP.match(after) or _LETTER_AND_STOP.fullmatch(words[-2] if len(words) > 1 else "")
    if len(last) == 1 and last.isalpha() and (last.isupper() or beside):
        return False  # "J. Smith", "z. B.", "d. h."
    if low in _ABBREVIATIONS:
        return False
    if low in _BEFORE_NUMBER and (after[:1].isdigit() or after[:1] == "\u00a7"):
        return False
    previous = words[-2].strip(_AROUND).lower() if len(words) > 1 else ""
    if low in _YEAR:
        return previous[-1:].isdigit()
    if last.isdigit() and len(last) <= _LONGEST_ORDINAL:
        following = _WORD.match(after)
        return previous not in _BEFORE_ORDINAL and not (following and following[0].lower() in _MONTHS)
    return True


def count_tokens(text: str, longest: int = 0) -> int:
    """Number of tokens: words and single punctuation marks; in scripts without spaces letters, see `token_pattern`.

    Args:
        text: The text.
        longest: A word counts once per so many letters; 0 for once.
    """
    if not text.isascii() and not is_plain(text):
        return len(token_pattern(longest).findall(text))
    # Faster than finding the tokens: marks are counted by leaving them out, words by where they begin.
    raw = text.encode("latin-1", _BY_SHAPE)
    marks = len(raw) - len(raw.translate(None, _LATIN_MARKS))
    shapes = b" " + raw.translate(_SHAPES)
    if longest and b"w" * (longest + 1) in shapes:
        return marks + sum(-(-len(word) // longest) for word in shapes.split())
    return marks + shapes.count(b" w")


def _shapes(error: UnicodeError) -> tuple[str, int]:
    """Substitutes for the letters that Latin-1 does not have."""
    assert isinstance(error, UnicodeEncodeError)
    return "".join([_shape(letter) for letter in error.object[error.start : error.end]]), error.end


@lru_cache(1 << 14)
def _shape(letter: str) -> str:
    """A Latin letter, mark or space that counts as this one does."""
    return "w" if _WORD.match(letter) else " " if _SPACE.match(letter) else "."


codecs.register_error(_BY_SHAPE, _shapes)


def truncate_tokens(text: str, tokens: int) -> str:
    """Cut a text after its first `tokens` tokens (as `count_tokens` counts them); what is left is verbatim."""
    pattern = _TOKEN if is_plain(text) else token_pattern()
    for number, match in enumerate(pattern.finditer(text)):
        if number == tokens:
            return text[: match.start()].rstrip()
    return text


def tokenize(text: str) -> list[str]:
    """Lower-case words, in order."""
    return find_words(text.lower())


def whole_name(name: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern of a name that stands by itself: `path` does not stand in `filepath`."""
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", flags)


def name_key(name: str, mode: str = "norm") -> str:
    """Key under which mentions of one entity meet.

    Args:
        name: A mention.
        mode: `exact`, `lower` (the SiReRAG code) or `norm`: NFKC, casefold, inner whitespace collapsed, surrounding
            quotes and a trailing full stop (unless the name has an inner one) removed.

    Raises:
        ValueError: Unknown mode.
    """
    if mode == "exact":
        return name
    if mode == "lower":
        return name.lower()
    if mode != "norm":
        raise ValueError(f"entity_key must be exact, lower or norm, not {mode!r}")
    folded = name.lower() if name.isascii() else bare_text(unicodedata.normalize("NFKC", name).casefold())
    key = " ".join(folded.split()).strip(_QUOTES + " ")
    if key.endswith(".") and "." not in key[:-1]:
        key = key[:-1].rstrip(_QUOTES + " ")
    return key


cached_key = lru_cache(1 << 13)(name_key)  # `name_key`, which is asked of the same names again and again


def normalize_answer(text: str) -> str:
    """SQuAD normalisation: lower-case, no ASCII punctuation, no articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def split_sentences(text: str) -> list[str]:
    """Cut text into sentences, verbatim and in order, without surrounding whitespace.

    A boundary is final punctuation followed by whitespace and something that can start a sentence, or a blank line.
    Abbreviations, initials and ordinal numbers in front of a noun do not end a sentence.
    """
    sentences: list[str] = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        end = match.end("closed")
        if end < 0:  # a blank line
            end = match.start()
        elif not _ends_sentence(text, start, match):
            continue
        piece = text[start:end].strip()
        if piece:
            sentences.append(piece)
        start = match.end()
    tail = text[start:].strip()
    if tail:
        sentences.append(tail)
    return sentences


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    following = text[match.end() : match.end() + 1]
    if not following:
        return True
    if following.islower():
        return False
    if text[match.start() : match.start("closed")] != ".":
        return True
    # A few characters are enough for the words around it, and keep hostile text linear.
    before = text[max(start, match.start() - _LOOKED_AT) : match.start()]
    return stop_ends_sentence(before, text[match.end() : match.end() + _LOOKED_AT])


def phrase_words(text: str) -> str:
    """Words in compatibility form, case-folded, joined by single spaces; punctuation and spacing do not matter."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(find_words(text.casefold()))


def clean_text(text: str) -> str:
    """Remove NUL characters, join surrogate pairs and replace lone surrogates by U+FFFD."""
    # Subclasses (string enumerations, numpy strings) become plain strings.
    text = str.__str__(text)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "")


def clean_value(value: Any) -> Any:
    """A JSON value whose texts and keys are clean."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [clean_value(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): clean_value(item) for key, item in value.items()}
    return value


T = TypeVar("T")

_NO_SPACE = re.compile(r"\S+")
_MAX_TOKEN_LETTERS = 8
"""Letters that count as a token at least: some languages write without spaces, and some texts are one endless word."""


def text_length(text: str) -> int:
    """Tokens of a text; a long run of letters counts as several."""
    return max(count_tokens(text), -(-len(text) // _MAX_TOKEN_LETTERS))


def packed(items: Iterable[T], size: Callable[[T], int], room: int, most: int | None = None) -> Iterator[list[T]]:
    """Items in order, in as few groups as fit; one that is larger than `room` stays alone."""
    group: list[T] = []
    used = 0
    for item in items:
        length = size(item)
        if group and (used + length > room or len(group) == most):
            yield group
            group, used = [], 0
        group.append(item)
        used += length
    if group:
        yield group


def part_starts(lengths: Sequence[int], hashes: Sequence[int], room: int) -> list[int]:
    """Where the parts of a list of lines begin, so that no part of several lines is longer than `room`."""
    ends = [0, *accumulate(lengths)]
    starts = [0]
    while ends[-1] - ends[starts[-1]] > room:
        start = starts[-1]
        last = max(start + 1, bisect_right(ends, ends[start] + room) - 1)
        first = min(last, max(start + 1, bisect_left(ends, ends[start] + room / 2)))
        if first >= len(lengths):
            break
        possible = range(first, min(last, len(lengths) - 1) + 1)
        starts.append(min(possible, key=lambda position: (hashes[position], position)))
    return starts


def cut_line(text: str, room: int) -> list[str]:
    """A text as pieces no longer than `room`: whole if it fits, else by sentences, these by words if needed."""
    if text_length(text) <= room:
        return [text]
    return [piece for sentence in split_sentences(text) for piece in _cut_sentence(sentence, room)]


def _cut_sentence(sentence: str, room: int) -> Iterator[str]:
    start = end = spent = 0
    for left, right in _word_spans(sentence, room):
        tokens = count_tokens(sentence[left:right])
        if end and (spent + tokens > room or right - start > room * _MAX_TOKEN_LETTERS):
            yield sentence[start:end]
            start, spent = left, 0
        end, spent = right, spent + tokens
    if end:
        yield sentence[start:end]


def _word_spans(sentence: str, room: int) -> Iterator[tuple[int, int]]:
    """Where words begin and end; one that is longer than `room` counts as several."""
    for match in _NO_SPACE.finditer(sentence):
        step = len(match[0]) if text_length(match[0]) <= room else room
        for left in range(match.start(), match.end(), step):
            yield left, min(left + step, match.end())
