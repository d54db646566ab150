"""Names in languages other than English, by script and punctuation: German, French, Spanish, Chinese, Japanese."""

from __future__ import annotations

import re

from sire_core.extraction.spans import TextSpan


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_FUNCTION_WORDS = {
    "de": _set(
        "der die das den dem des ein eine einen einem einer eines und oder aber nicht ist sind war waren wird "
        "werden hat haben mit von zu zum zur im in am an auf aus bei nach vor für über unter durch gegen ohne um "
        "als wie wenn dass weil er sie es wir ihr ich du man sich seit dort hier auch nur noch schon sehr welche "
        "welcher welches welchem wer was wo wann warum rund etwa diese dieser dieses kein keine vom beim"
    ),
    "fr": _set(
        "le la les l un une des du de d et ou mais pas ne est sont était a ont avec dans en au aux sur sous par "
        "pour sans vers chez que qui quoi dont où quand comme il elle ils elles nous vous je tu on se son sa ses "
        "leur leurs ce cet cette ces depuis avant après environ aujourd'hui quel quelle quels quelles à y plus "
        "très"
    ),
    "es": _set(
        "el la los las un una unos unas y o pero no es son era está están ha han con en de del al a por para sin "
        "sobre entre desde hasta que quien donde cuando como él ella ellos ellas nosotros se su sus este esta "
        "estos estas qué cuál dónde cuándo quién muy más allí aquí también antes después según unos"
    ),
}
_GERMAN_NOUNS = _set(
    "jahr jahre jahren tag tage tagen zeit zeiten teil teile teilen ende anfang mann frau kind kinder kindern "
    "menschen leute leben welt land stadt ort haus name namen weise art beispiel seite seiten grund frage "
    "fragen antwort zahl woche monat freizeit vorher spitze sitz frühjahr sommer herbst winter ausland "
    "unternehmen firma"
)
_ENGLISH = _set(
    "the of and in to is for by with that as on from are was or be can it you not this which an at have has"
)
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_LOOKED_AT = 600

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
_LONGEST = 10


def has_unspaced_script(text: str) -> bool:
    """Whether a text holds letters of a script that puts no spaces between words."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def split_unspaced(sentence: str) -> list[str]:
    """Split a text into sentences if its script puts no space after full stops."""
    return [part for part in _SENTENCE.findall(sentence) if part.strip()]


def language_of(text: str) -> str:
    """Language of a passage by its function words: `de`, `fr` or `es`; empty for English and others."""
    words = list(map(str.lower, _WORD.findall(text[:_LOOKED_AT])))
    counts = {
        language: sum(map(function_words.__contains__, words)) for language, function_words in _FUNCTION_WORDS.items()
    }
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] > 1 and counts[best] > sum(map(_ENGLISH.__contains__, words)) else ""


def without_function_words(span: TextSpan, language: str) -> TextSpan | None:
    """A name without a leading article or preposition: `Die Reederei`, `Depuis`, `En Cantarrana`."""
    words = span.name.split(" ")
    start = span.start
    known = _FUNCTION_WORDS[language]
    vague = _GERMAN_NOUNS if language == "de" and len(words) > 2 else frozenset[str]()  # `Spitze der Reederei`
    while words and (words[0].lower().rstrip("'\u2019") in known or words[0].lower() in vague):
        start += len(words[0]) + 1
        del words[0]
    while words and words[-1].lower() in known:
        del words[-1]
    if not words or (language == "de" and len(words) == 1 and words[0].lower() in _GERMAN_NOUNS):
        return None
    name = " ".join(words)
    if name[:2] in ("d'", "l'", "d\u2019", "l\u2019", "D'", "L'", "D\u2019", "L\u2019"):
        name, start = name[2:], start + 2
    return TextSpan(start, start + len(name), name, span.type) if len(name) > 1 else None


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
    if not 1 < end - start <= _LONGEST:
        return []
    name = sentence[start:end]
    kind = "Organization" if name.endswith(_ORGANIZATIONS) else "Name"
    return [TextSpan(start, end, name, kind)]
