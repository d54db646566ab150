"""An answer without a model: the sentences of hits that answer a question, and whether hits are about it at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, groupby, takewhile, zip_longest
from math import log, sqrt
from textwrap import indent
from typing import TYPE_CHECKING

import numpy as np

from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.documents.blocks import FIELD, FURNITURE
from sire_core.documents.markdown_sections import SEPARATOR
from sire_core.extraction.headings import is_everyday
from sire_core.models.lexical_embedder import keys_of_stems, stem_keys
from sire_core.models.word_vectors import word_vectors
from sire_core.search.explanation import blocks_below_title
from sire_core.text.lexicon import FUNCTION_WORDS, VAGUE_NOUNS
from sire_core.text.snippets import Sentence, cut_around, identifiers, rate_sentences, read_sentences, stem, stems
from sire_core.text.words import find_words, is_plain

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray
    from sire_core.types import Hit

_SENTENCES, _NEAREST = 5, 2  # At most; and of hits that hardly answer
_RANK_DECAY = 0.5  # How much less a sentence of the next hit counts, in the order in which hits are read
_REPEATED = 0.7  # Factor of every further sentence of one hit
_COVERED = 0.3  # Factor of a word of the question for every chosen sentence that has it
_ALIKE, _LEAST_ALIKE = 0.4, 0.5
"""Of a word that means nearly what a word of the question means, times their cosine; and the least that counts."""
_LINK_BONUS, _KIND_BONUS, _TIME_BONUS, _FIRST_BONUS = 0.5, 0.5, 0.25, 0.15
"""Of a sentence that leads to one of the first hits, of one with what is asked for, with a time, and of a text's first
one: in units of the rate of the hit's best sentence. All but that of times were set on even questions of three sets."""
_LEAST_VALUE, _LEAST_LINKED = 0.45, 0.25
"""Of what is added once the chosen sentences have all words of the question; and of a sentence that a link explains."""
_FOLLOWED = 3  # Hits to which linking sentences count, the first that are read
_NAMED_BONUS = 1.0  # Of what is said of an identifier that the question names
_HEADED_BONUS, _HEADED = 1.0, 0.6  # Of the first sentence under a heading that is so like the question
_FEWEST = 3  # Content words of a sentence without any of the question
_REACHED_BONUS = 0.5  # Of the sentences of a hit to which a chosen sentence leads
_MAX_SENTENCE_LETTERS = 600  # Characters of a sentence that are quoted; longer ones are tables and lists in one line
FIT = {"question": 11.2, "sentence": 2.3, "turn": -0.8, "words": -0.4, "short": -1.1, "code": -0.4, "time": 3.0}
"""Of sentences of parts of documents, learned on even questions of `ops`, `frameworks` and `manuals` by
`benchmarks/extracts.py`: share of the question in the sentence, its label and title; share of the sentence in the
question; logarithms of when its hit is read and of how many words it has; whether these are fewer than `_SHORT`;
whether it is code; whether it has a time where one is asked for (5.3 was learned; most such questions ask for more)."""
_FAR = 4  # Sentences behind the best one of each part of a question
_WHOLE = 8  # Words of a sentence that ends without a mark before what it leads to
_SHORT, _ABOVE = 6, 0.7  # And how much a word counts that only the label or the title of the passage has
_LEADING = 2  # Words of the question in what leads to code that answers, where it does not ask for code
_BONUS = 1.0  # What the bonuses below are in units of `FIT`
_WITHIN = 3.0  # By how much less than the best a sentence of parts of documents may fit
_ELSEWHERE = 0.3  # How much a word of the question counts for a part of it that does not have the word
_PARTS, _FEWEST_OF_PART = 3, 2  # Parts of a question, the last ones; and content words of each
_ASKING = (
    "(?:what|which|who|whom|whose|where|when|why|how|do|does|did|is|are|was|were|can|could|will|would|should|may|must"
    "|has|have)"
)
_BETWEEN_PARTS = re.compile(
    rf"(?<=[.?!;])\s+|,?\s(?:and|but|or)\s(?=(?:[a-z]{{2,6}} )?{_ASKING}\b)|,\s(?={_ASKING}\b)", re.IGNORECASE
)
_BLOCK = 400  # Characters of a sentence with those beside it
_CELL = 40  # Characters of a cell that needs the head of its column
_CODE = "    "  # Before lines of code behind what leads to them
_FIELD, _NEAR = re.compile(r"[A-Z][\w ]{1,30}: \S.{0,60}\Z"), 4  # And sentences on either side that are looked at
_PREFIX = 60  # Characters of a linking sentence that are compared; notes shorten long ones
_ASKS_NUMBER = re.compile(
    r"\b(?:when|how (?:many|much|long|old|far|large)|(?:what|which) (?:year|date)|numbers?)\b",
    re.IGNORECASE,
)
_ASKS_NAME = re.compile(r"\b(?:who|whom|whose|where|which|(?:what|whose) name)\b", re.IGNORECASE)
_ASKS_TIME = re.compile(
    r"\bhow (?:long|many (?:milliseconds|seconds|minutes|hours|days|weeks|months|years))\b", re.IGNORECASE
)
_NUMBER = re.compile(r"(?<![\w.])\d(?!\w*\.\d+\.)")
_TIME = re.compile(
    r"(?<![\w.,])\d[\d,.]*[ -]?(?:m?s|m|h|d|(?:millisecond|second|sec|minute|min|hour|day|week|month|year)s?)\b"
    r"|\bdefaults?\b\W+(?:\w+\W+){0,2}\d",
    re.IGNORECASE,
)
_FRAGMENT = re.compile(
    r"[:?]$|^\W*\d*\W*$|^[\])}>;,%\u2013\u2014]|^\([a-z]|^(?:[^\W\d_]|[-/])+(?: (?:[^\W\d_]|[-/])+){0,2}$"
    r"|^\. |(?: \.){3}|^\w+$|^(?:Figure|Fig\.|Table|Listing|Section) [\dA-Z][\d.-]*[.:,] |^\d+(?:\.\d+)+\.? [^.!?]*$"
    r"|^(?:Section|[Ss]ee) [^.!?]*\.?$|^(?:Copyright|\(c\)|\u00a9) |^\[(?:[^\]]*\d\d:\d\d|\d{1,3}\])"
)
"""Of what answers nothing: headings, labels, questions, signatures, entries of contents and of an index, notices,
pointers, lines of a log, footnotes, captions, single words, and what begins within a sentence or line."""
_INDEX_ENTRY = re.compile(r"[^:.!?]{1,80}: (?:Section|[Ss]ee) ")
_KEYWORDS = re.compile(r"(?:keywords|tags)\b", re.IGNORECASE)
_ASKS_CODE = re.compile(
    r"\b(?:how (?:do|can|could|should|to)|(?:command|option|flag|syntax|example)s?)\b", re.IGNORECASE
)
_ABOUT_THIS = (
    r"(?:(?:To|By|For|With|Without|After|Before|Until|Besides|Because of|Due to) (?:[\w'-]{1,30} ){0,4}"
    r"|The (?:solution|answer|fix|remedy|workaround|reason|cause|result|effect) (?:to|for|of) )(?:this|that|these|it)\b"
)
_GOES_ON = re.compile(_ABOUT_THIS)
"""Opens a paragraph about what the one before it says: `To prevent this`."""
_DEPENDS = re.compile(
    rf"{_ABOUT_THIS}|"
    r"(?:No other|None of|It|They|He|She|"
    r"This|That|These|Those|Such|Both|(?:The |By )?[Dd]efaults?|The (?:latter|former)|Rather|Instead"
    r"|Otherwise|However|But|Thus|Therefore|So|Then|Also|Conversely|Similarly|Alternatively"
    r"|(?:In|For|When|If) (?:so|not|this|that|these|such|it)|(?:[\w'-]{1,30} ){1,8}(?:these|those) [a-z]{1,30}s)\b"
)
"""Opens a sentence that is about what was said before."""
_FINAL = (".", "!", "?")
_NAME = re.compile(r"\b[A-Z]\w+")
_SECTION_NUMBER = re.compile(r"^\d+(?:\.\d+)*\.? ")


@dataclass(frozen=True, slots=True)
class Extract:
    """A sentence of the evidence, or sentences of one paragraph.

    Attributes:
        text: The sentences on one line, code line by line; of one of over 600 characters the part around words of the
            question.
        hit: Number of the hit that it stands in, from 1.
        place: The place of the first among the sentences of that hit, from 0.
        label: What it is said of where the sentence does not say so: an item's term or a heading; may be empty.
        block: Number of its paragraph in that hit, from 0.
    """

    text: str
    hit: int
    place: int
    label: str = ""
    block: int = 0

    @property
    def quoted(self) -> str:
        """The text, behind what it is said of."""
        text = f"\n{indent(self.text, _CODE)}" if "\n" in self.text else f" {self.text}"
        return f"{self.label}:{text}" if self.label else self.text


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may be chosen."""

    extract: Extract
    turn: int  # when its hit is read, from 0
    shared: frozenset[str]  # stems of the question that it has
    alike: Mapping[str, float]  # stems that it lacks and has a word for that means nearly the same, and the cosine
    rate: float  # how well it answers, 1 for the best sentence of the hit
    bonus: float
    leads: frozenset[int]  # numbers of the hits that it leads to
    features: Mapping[str, float]  # those of `FIT`
    shares: tuple[float, ...]  # what it has of each part of the question, 0 to 1

    def fit(self, part: int) -> float:
        """How well it answers a part of the question by itself, if hits are parts of documents."""
        features = {**self.features, "question": self.shares[part]}
        return sum(weight * features[name] for name, weight in FIT.items()) + _BONUS * self.bonus

    def value(self, weights: Mapping[str, float], covered: Counter[str], of_hit: int, *, reached: bool) -> float:
        """What it adds to sentences that have words of the question `covered` times, `of_hit` of them its hit's."""
        every = sum(weights[stem] for stem in self.shared)
        new = sum(weights[stem] * _COVERED ** covered[stem] for stem in self.shared)
        alike = max((cosine * _COVERED ** covered[stem] for stem, cosine in self.alike.items()), default=0.0)
        total = self.rate * (new / every if every else 1.0) + _ALIKE * alike + self.bonus + _REACHED_BONUS * reached
        return total / (1 + _RANK_DECAY * self.turn) * _REPEATED**of_hit


_MARKS = "?!.,;:()[]{}<>\"'`\u2018\u2019\u201c\u201d"  # Around words of a question
_SHARED = 3  # Where no hit has one of so many words of a question, hits are about something else
_KEYWORD = 3  # Letters of a word in capitals that is no form of another: `RETURNING`
_VAGUE = (
    "know tell say explain connect put get rid make keep happen want become wait need blame right away already really "
    "please"
)


def unanswered_note(question: str, hits: Sequence[Hit]) -> str:
    """A warning if hits lack words of the question, or none has two, and are only the nearest; else empty."""
    return _judged(question, hits)[0]


def _judged(question: str, hits: Sequence[Hit]) -> tuple[str, int]:
    """The warning, and how many sentences are worth quoting: hits may lack a name and tell the rest."""
    exact = not question.isupper()
    every = _whole_stems(question, exact=exact)
    asked = every - _vague_stems() or every
    if not hits or not is_plain(question):  # scripts without spaces have no words to compare
        return "", _SENTENCES
    if not asked:
        return "The question has no word to search for; these are only the nearest passages.", _NEAREST
    ways = ("\n".join(step.sentence for step in hit.path) for hit in hits)
    texts = [f"{hit.unit.title}\n{hit.unit.text}\n{way}" for hit, way in zip(hits, ways, strict=True)]
    keywords = every - _whole_stems(question)
    shares = [every & (_whole_stems(text) | keywords.intersection(map(str.lower, find_words(text)))) for text in texts]
    if not any(shares):
        return "No hit shares a word with the question; these are only the nearest.", 0
    missing = asked.difference(*shares)
    hardly = len(missing) * _SHARED >= len(asked)
    first, *_ = spelled = list(dict.fromkeys(word.strip(_MARKS) for word in question.split()))
    lacking = [word for word in spelled if _whole_stems(word, exact=exact) & missing]
    if lacking:
        every_word = [word for text in texts for word in find_words(text)]
        lacking = [word for word in lacking if not any(_begins(word, other) for other in every_word)]
    if not hardly:  # then only names are worth a warning
        lacking = [word for word in lacking if not is_everyday(word) or (word[0].isupper() and word != first)]
    if lacking:
        most = 0 if missing == asked else _NEAREST if hardly else _SENTENCES
        return f"No hit mentions {' or '.join(map(repr, lacking[:_SHARED]))}.", most
    if len(asked) > 1 and max(map(len, shares)) == 1:
        return "No hit has more than one word of the question; these are only the nearest.", _NEAREST
    return "", _SENTENCES


def _begins(word: str, other: str) -> bool:
    """True if another word is a word and a part that begins with a capital: `PostgreSQL` of `Postgres`."""
    return other[len(word) :][:1].isupper() and other.lower().startswith(word.lower())


def _whole_stems(text: str, *, exact: bool = False) -> frozenset[str]:
    """As `stems`, but words that only begin alike are told apart (`Tonga`, `Tongann`); if exact, keywords are whole."""
    words = [word for word in find_words(text) if word.lower() not in FUNCTION_WORDS]
    is_whole = [exact and word.isupper() and len(word) >= _KEYWORD for word in words]
    lower = zip(map(str.lower, words), is_whole, strict=True)
    return frozenset(word if whole else stem(word) for word, whole in lower) | identifiers(text)


@cache
def _vague_stems() -> frozenset[str]:
    return _whole_stems(" ".join(VAGUE_NOUNS) + f" {_VAGUE}")


def extract_sentences(question: str, hits: Sequence[Hit], n: int = _SENTENCES) -> list[Extract]:
    """Choose the sentences that answer a question, in the order in which hits are read, and of their texts.

    Hits are read by rank, without those to which a passage leads that only mentions what the question names and is not
    about it, unless there are no others. Of hits that are parts of longer documents the sentences are taken that fit
    each part of the question best, with the sentence that each depends on and what goes on: a sentence, or the list or
    code that it leads to. Of others each next sentence is what adds most to those chosen: words of the question that
    they lack, or others of that meaning. Once they have all words of the question, what adds little is left out: less
    is asked of sentences that lead to another hit, or stand in one that is led to. Hits that hardly answer give two,
    those without what the question asks about none.
    """
    n = min(n, _judged(question, hits)[1])
    order, candidates = sentence_candidates(question, hits)
    are_parts = _are_parts(hits)
    asked = stems(question)
    parts = len(candidates[0].shares) if candidates else 0
    chosen = (
        _with_neighbors(_fitting(candidates, n), hits, asked, parts) if are_parts else _adding(asked, candidates, n)
    )
    return sorted(chosen, key=lambda extract: (order.index(extract.hit - 1), extract.place))


def _adding(asked: frozenset[str], candidates: Sequence[Candidate], n: int) -> list[Extract]:
    """The sentences that add most, one after the other, to those chosen before."""
    counts = Counter(stem for candidate in candidates for stem in candidate.shared)
    weights = {stem: log(1 + len(candidates) / count) for stem, count in counts.items()}
    chosen: list[Extract] = []
    covered, of_hit, reached = Counter[str](), Counter[int](), set[int]()

    def value(one: Candidate) -> float:
        hit = one.extract.hit
        return one.value(weights, covered, of_hit[hit], reached=hit in reached)

    while len(chosen) < n:
        if not asked.difference(covered):
            candidates = [
                one
                for one in candidates
                if one.shared >= counts.keys()
                or value(one) >= (_LEAST_LINKED if one.leads or one.extract.hit in reached else _LEAST_VALUE)
            ]
        best = max(candidates, key=value, default=None)
        if best is None:
            break
        chosen.append(best.extract)
        reached |= best.leads
        covered.update(best.shared)
        of_hit[best.extract.hit] += 1
        candidates = [one for one in candidates if one.extract.text != best.extract.text]
    return chosen


def _are_parts(hits: Sequence[Hit]) -> bool:
    """True if more than a quarter of the hits are parts of longer documents."""
    documents = Counter(document for hit in hits for document in hit.doc_ids)
    parts = [SEPARATOR in hit.unit.title or any(documents[one] > 1 for one in hit.doc_ids) for hit in hits]
    return 4 * sum(parts) > len(hits)


def _fitting(candidates: Sequence[Candidate], n: int) -> list[Extract]:
    """The sentences that fit each part of a question best, in turn, none that says nothing new or fits much less."""
    ranked = []
    for part in range(len(candidates[0].shares) if candidates else 0):
        fits = sorted(((one.fit(part), one.extract) for one in candidates), key=lambda fit: -fit[0])
        ranked.append([extract for fit, extract in fits if fit >= fits[0][0] - _WITHIN])
    chosen: dict[frozenset[str], Extract] = {}
    for one in filter(None, chain.from_iterable(zip_longest(*ranked))):
        if len(chosen) == n:
            break
        words = stems(one.text)
        if not any(_says_no_more(words, others) for others in chosen):
            chosen[words] = one
    return list(chosen.values())


def _says_no_more(words: frozenset[str], others: frozenset[str]) -> bool:
    """True if the words of a sentence are among those of another, or are those and one more."""
    more = words - others
    return not more or (len(more) == 1 and others <= words and not any(map(str.isdigit, more)))


def _with_neighbors(chosen: Sequence[Extract], hits: Sequence[Hit], asked: frozenset[str], best: int) -> list[Extract]:
    """Sentences with those that they depend on and that go on, further for the best ones, each paragraph as one."""
    quoted, lists = {(one.hit, one.place): one for one in chosen}, set[tuple[int, int]]()
    texts = {one.hit: _sentences(hits[one.hit - 1]) for one in chosen}
    for number, one in enumerate(chosen):
        sentences, length = texts[one.hit], len(one.text)
        most, far = (_MAX_SENTENCE_LETTERS, _FAR) if number < best else (_BLOCK, 0)
        own_label = _SECTION_NUMBER.sub("", sentences[one.place].label)
        for place in _fields(one, sentences, asked):
            of_same = Extract(sentences[place].text, one.hit, place, own_label, sentences[place].block)
            quoted.setdefault((one.hit, place), of_same)
        for place in dict.fromkeys((*_beside(one, sentences), *_after(one, sentences, far))):
            beside = sentences[place]
            length += len(beside.text)
            if length <= (most if beside.kind == "prose" else _MAX_SENTENCE_LETTERS):
                label = beside.label if beside.label != sentences[one.place].label else ""
                quoted.setdefault((one.hit, place), Extract(beside.text, one.hit, place, label, beside.block))
        lists |= {(one.hit, sentence.block) for sentence in sentences if sentence.kind == "item"}
    joined: list[Extract] = []
    for block, group in groupby(_named_first(quoted, texts).items(), key=lambda item: (item[1].hit, item[1].block)):
        first, *others = (one for _, one in group)
        sentences, is_code = texts[first.hit], texts[first.hit][first.place].kind == "code"
        text, last, gap = first.text, first.place, "\n" if is_code else " "
        for one in others:
            between = "; " if block in lists and text[-1].isalnum() else gap
            deeper = " " * (sentences[one.place].indent - sentences[first.place].indent)
            text += f"{between if one.place == last + 1 else f'{gap}...{gap}'}{deeper}{one.text}"
            last = one.place
        more = sentences[last + 1 : last + 2]
        goes_on = any(one.block == first.block and one.kind in ("item", "code") for one in more)
        text = f"{text}{gap}..." if goes_on else text
        if _leads(joined, first):
            led_to = f"\n{indent(text, _CODE)}" if is_code else f" {text}"
            joined[-1] = replace(joined[-1], text=f"{joined[-1].text}{led_to}")
        else:
            joined.append(replace(first, text=text))
    return joined


def _named_first(
    quoted: Mapping[tuple[int, int], Extract], texts: Mapping[int, Sequence[Sentence]]
) -> dict[tuple[int, int], Extract]:
    """Extracts by hit and place; of those in a row that are said of one option the first names it."""
    named = dict(sorted(quoted.items()))
    for _, group in groupby(named, key=lambda key: (key[0], texts[key[0]][key[1]].label)):
        first, *others = group
        label = next((named[key].label for key in (first, *others) if identifiers(named[key].label)), "")
        if label and not named[first].text.startswith(label):
            named[first] = replace(named[first], label=label)
            named |= {key: replace(named[key], label="") for key in others}
    return named


def _beside(one: Extract, sentences: Sequence[Sentence]) -> list[int]:
    """Where the sentence stands that one depends on, and the one that goes on or the list or code that it leads to."""
    if sentences[one.place].kind in ("item", "code"):
        same = [place for place, sentence in enumerate(sentences) if sentence.block == one.block]
        return sorted(same, key=lambda place: abs(place - one.place))[1:]
    places = [] if one.text.endswith(_FINAL) else _led_to(one.text, one.place + 1, sentences)
    is_open = one.text[-1].isalnum() and len(one.text.split()) >= _WHOLE  # what ends it stands below
    depends = bool(_DEPENDS.match(one.text)) and one.place > 0 and sentences[one.place - 1].block == one.block
    first = one.place - depends
    before = sentences[first - 1] if first else None
    if before and before.kind == "code" and sentences[first].text[0].islower():  # a sentence with code in its middle
        lead = f"{before.label}:"
        places += [place for place, other in enumerate(sentences) if other.block == before.block or other.text == lead]
    for place in (one.place - 1, one.place + 1):
        is_inside = 0 <= place < len(sentences)
        is_beside = is_inside and sentences[place].block == one.block
        is_next = is_inside and place > one.place and (is_open or _GOES_ON.match(sentences[place].text))
        text = sentences[place].text if is_beside or is_next else "?"
        if text.endswith("?") or (place < one.place and not depends):
            continue
        if place > one.place and text.endswith(":"):
            places += _led_to(text, place, sentences)
        else:
            places.append(place)
    own = sentences[one.place]
    same = [place for place, other in enumerate(sentences) if other.label == own.label and other.kind == own.kind]
    if own.kind == "prose" and sum(len(sentences[place].text) for place in same) <= _BLOCK:  # whole, if it is short
        places += [place for place in same if place != one.place]
    return places


def _after(one: Extract, sentences: Sequence[Sentence], most: int) -> list[int]:
    """Where at most so many sentences stand that go on behind one in its section, with lists and code among them."""
    own = sentences[one.place]
    if own.kind != "prose":
        return []
    end = one.place + 1
    for sentence in sentences[end : end + most]:
        if sentence.label != own.label and sentence.kind not in ("item", "code"):
            break
        end += 1
    while end > one.place + 1 and sentences[end - 1].text.endswith(":"):  # leads to what is not quoted
        end -= 1
    return list(range(one.place + 1, end))


def _fields(one: Extract, sentences: Sequence[Sentence], asked: frozenset[str]) -> list[int]:
    """Where short lines stand that say of the same thing what the question asks for: `Default: 5`."""
    own = sentences[one.place]
    lacking = frozenset() if own.text.startswith(own.label) else asked - stems(f"{own.label} {own.text}")
    found: list[int] = []
    for places in (range(one.place - 1, max(-1, one.place - _NEAR), -1), range(one.place + 1, one.place + _NEAR)):
        near = [place for place in places if place < len(sentences)]
        of_same = takewhile(lambda place: _is_said_of(sentences[place], own.label), near)
        found += [place for place in of_same if _FIELD.match(text := sentences[place].text) and lacking & stems(text)]
    return found


def _is_said_of(sentence: Sentence, label: str) -> bool:
    """True if a sentence is no heading and not said of something else."""
    return sentence.kind != "heading" and (sentence.label == label or sentence.text.startswith(sentence.label))


def _leads(joined: Sequence[Extract], one: Extract) -> bool:
    """True if the last of those before leads to an extract."""
    before = joined[-1] if joined and joined[-1].hit == one.hit else None
    return bool(before and one.label and before.text.removesuffix(":").endswith(one.label))


def _led_to(lead: str, start: int, sentences: Sequence[Sentence]) -> list[int]:
    """Where the items or the lines of code stand that a sentence leads to."""
    return [place for place in range(start, len(sentences)) if sentences[place].label == lead.removesuffix(":")]


def sentence_candidates(question: str, hits: Sequence[Hit]) -> tuple[list[int], list[Candidate]]:
    """The places of hits in the order in which they are read, and their sentences that may answer a question."""
    order = [place for place, hit in enumerate(hits) if not _follows_a_mention(hit)] or list(range(len(hits)))
    leading = _linking_sentences(hits, order)
    texts = {place: _sentences(hits[place]) for place in order}
    words = _Question(question, [one for place in order for one in texts[place]])
    explained = words.names & identifiers("\n".join(one.label for place in order for one in texts[place]))
    return order, [
        candidate
        for turn, place in enumerate(order)
        for candidate in _candidates(
            words, explained, turn, hits[place], place + 1, texts[place], leading.get(place + 1, {})
        )
    ]


class _Question:
    """A question, its words as stems, identifiers and vectors of what they mean; how rare words are in sentences."""

    def __init__(self, question: str, sentences: Sequence[Sentence]) -> None:
        self.text, self.stems, self.names = question, stems(question), identifiers(question)
        self._words, self._vectors = _meanings(question)
        self._number = len(sentences)
        self._counts = Counter(stem for sentence in sentences for stem in stems(sentence.text))
        self._spelled = [stems(word) for word in self._words]
        self._weights = np.array([max(map(self._weight, spelled), default=0.0) for spelled in self._spelled])
        self._asks_time = bool(_ASKS_TIME.search(question))
        parts = [np.array([1.0 if own & word else _ELSEWHERE for word in self._spelled]) for own in _parts(question)]
        self._shares = [weights / (float(weights.sum()) or 1.0) for weights in (self._weights * own for own in parts)]

    def _weight(self, stem: str) -> float:
        return log(1 + self._number / max(self._counts[stem], 0.5))

    def nearest(self, sentence: str) -> FloatArray:
        """Of every word of the question, the cosine of the word of a sentence that comes nearest in meaning."""
        words, vectors = _meanings(sentence)
        if not words or not self._words:
            return np.zeros(len(self._words), dtype=np.float32)
        return np.asarray((self._vectors @ vectors.T).max(axis=1))

    def alike(self, nearest: FloatArray, shared: frozenset[str]) -> dict[str, float]:
        """By stem that a sentence lacks, the cosine of its word that comes nearest in meaning, if one is near."""
        return {
            stem: cosine
            for spelled, cosine in zip(self._spelled, nearest.tolist(), strict=True)
            for stem in spelled - shared
            if cosine >= _LEAST_ALIKE
        }

    def covered(self, sentence: Sentence, title: frozenset[str], nearest: FloatArray) -> FloatArray:
        """How far a sentence has each word of the question, 0 to 1."""
        own, above = stems(sentence.text), stems(sentence.label) | title
        had = [1.0 if own & word else _ABOVE if above & word else 0.0 for word in self._spelled]
        return np.maximum(np.array(had, dtype=np.float32), nearest)

    def shares(self, covered: FloatArray) -> tuple[float, ...]:
        """What a sentence that has words of the question so far has of each part of it."""
        return tuple(float(covered @ weights) for weights in self._shares)

    def features(self, sentence: Sentence, covered: FloatArray, turn: int) -> dict[str, float]:
        """Those of `FIT` of a sentence whose hit is read at a turn, from 0."""
        own, words = stems(sentence.text), len(sentence.text.split())
        question = float(covered @ self._weights) / (float(self._weights.sum()) or 1.0)
        return {
            "question": question,
            "sentence": sum(map(self._weight, own & self.stems)) / (sum(map(self._weight, own)) or 1.0),
            "turn": log(1 + turn),
            "words": log(1 + words),
            "short": words < _SHORT,
            "code": sentence.kind == "code",
            "time": question * (self._asks_time and bool(_TIME.search(sentence.text))),
        }


def _parts(question: str) -> list[frozenset[str]]:
    """The stems of each part of a question that asks for several things, the last ones."""
    parts = [own for part in _BETWEEN_PARTS.split(question) if len(own := stems(part)) >= _FEWEST_OF_PART]
    return parts[-_PARTS:] if len(parts) > 1 else [stems(question)]


def _meanings(text: str) -> tuple[list[str], FloatArray]:
    """The content words of a text, and vectors of length one of what they mean, `[words, n]`."""
    words = [word for word in dict.fromkeys(map(str.lower, find_words(text))) if word not in FUNCTION_WORDS]
    return words, unit_rows(word_vectors(stem_keys(words), keys_of_stems))


def _sentences(hit: Hit) -> list[Sentence]:
    _, *sections = hit.unit.title.split(SEPARATOR)
    return read_sentences(hit.unit.text, sections[-1] if sections else "", blocks_below_title(hit.unit))


def _candidates(
    question: _Question,
    explained: frozenset[str],
    turn: int,
    hit: Hit,
    number: int,
    sentences: Sequence[Sentence],
    leading: Mapping[str, int],
) -> list[Candidate]:
    """Sentences of a hit; none if nothing connects it with the question.

    Where hits explain identifiers of the question, what is said of others answers nothing.
    """
    rates = rate_sentences(sentences, question.text)
    best = max(rates, default=0.0)
    is_reached = any(step.step == "entity" for step in hit.path)
    title = stems(hit.unit.title)
    if not best and not leading and not title & question.stems and not is_reached:
        return []
    candidates, headed = [], set[str]()
    for place, (sentence, rate) in enumerate(zip(sentences, rates, strict=True)):
        text, of = _with_heads(sentence, sentences), identifiers(sentence.label)
        leads = frozenset(target for beginning, target in leading.items() if beginning in text)
        is_foreign = explained and of and not (of | identifiers(text)) & explained
        if is_foreign or _INDEX_ENTRY.match(text) or not _can_answer(question, sentence):
            continue
        share = rate / best if best else 0.0
        weight = 1.0 if is_reached or leads or not of else share  # in a reference, many sentences have a number
        bonus = _FIRST_BONUS * (place == 0)
        is_headed = sentence.label not in headed and _likeness(stems(sentence.label), question.stems) >= _HEADED
        headed.add(sentence.label)
        bonus += _HEADED_BONUS * is_headed
        bonus += _LINK_BONUS * bool(leads) + _NAMED_BONUS * bool(of & explained)
        bonus += weight * _KIND_BONUS * _has_kind_asked(question.text, question.stems, text)
        bonus += weight * _TIME_BONUS * bool(_ASKS_TIME.search(question.text) and _TIME.search(text))
        is_said = sentence.label.lower() in text.lower()
        is_below = sentence.label not in hit.unit.title  # a heading within the passage
        depends = of or is_below or sentence.kind in ("code", "item") or _DEPENDS.match(text)
        label = "" if is_said or not depends else _SECTION_NUMBER.sub("", sentence.label) or sentence.label
        shared = stems(f"{sentence.label} {text}" if of & explained else text) & question.stems
        nearest = question.nearest(text)
        alike = question.alike(nearest, shared)
        if shared or alike or leads or is_headed or (is_reached and len(stems(text)) >= _FEWEST):
            quoted = (
                text if len(text) <= _MAX_SENTENCE_LETTERS else cut_around(text, question.stems, _MAX_SENTENCE_LETTERS)
            )
            extract, covered = (
                Extract(quoted, number, place, label, sentence.block),
                question.covered(sentence, title, nearest),
            )
            features, shares = question.features(sentence, covered, turn), question.shares(covered)
            candidates.append(Candidate(extract, turn, shared, alike, share, bonus, leads, features, shares))
    return candidates


def _with_heads(sentence: Sentence, sentences: Sequence[Sentence]) -> str:
    """A sentence; of the row of a table each cell behind the head of its column, if it is short."""
    name, _, row = sentence.text.partition(": ")
    if sentence.head < 0 or not row:
        return sentence.text
    _, *heads = sentences[sentence.head].text.split(", ")
    values = row.split("; ")
    if len(heads) != len(values):
        return sentence.text
    cells = (value if len(value) > _CELL else f"{head} {value}" for head, value in zip(heads, values, strict=True))
    return f"{name}: {'; '.join(cells)}"


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """The cosine of two sets."""
    return len(one & other) / sqrt(max(len(one) * len(other), 1))


def _can_answer(question: _Question, sentence: Sentence) -> bool:
    """True if a sentence answers: no heading, field, menu or fragment, and code only where it is asked for."""
    if (
        sentence.kind in ("heading", "head", FIELD, FURNITURE)
        or _FRAGMENT.search(sentence.text)
        or _KEYWORDS.match(sentence.label)
    ):
        return False
    return sentence.kind != "code" or bool(
        _ASKS_CODE.search(question.text)
        or identifiers(sentence.text) & question.names
        or len(stems(sentence.label) & question.stems) >= _LEADING
    )


def _follows_a_mention(hit: Hit) -> bool:
    """True if the path goes on from a passage that was found as one of those that mention a name of the question."""
    named = {step.ids[0] for step in hit.path if step.step == "question"}
    steps = [step for step in hit.path if step.step == "entity"]
    return any(named.intersection(step.ids[1:-1]) for step in steps[:-1])


def _linking_sentences(hits: Sequence[Hit], order: Sequence[int]) -> dict[int, dict[str, int]]:
    """By hit, the beginnings of its sentences that lead to one of the first that are read, and the number of that."""
    numbers = {hit.unit.id: number for number, hit in enumerate(hits, 1)}
    found: dict[int, dict[str, int]] = {}
    for number in (place + 1 for place in order[:_FOLLOWED]):
        for step in hits[number - 1].path:
            text = step.sentence.strip(". ")[:_PREFIX]
            if step.step == "entity" and text and step.ids[0] in numbers:
                found.setdefault(numbers[step.ids[0]], {})[text] = number
    return found


def _has_kind_asked(question: str, asked: frozenset[str], sentence: str) -> bool:
    """True if a sentence has a number or a new name where the question asks for one."""
    if _ASKS_NUMBER.search(question):
        return bool(_NUMBER.search(sentence))
    return bool(_ASKS_NAME.search(question)) and any(not stems(name) & asked for name in _NAME.findall(sentence)[1:])
