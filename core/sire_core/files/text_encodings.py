# ruff: noqa: RUF001 (letters of many alphabets)
"""Tells text from other bytes, and guesses the encoding of a text that declares none and is not UTF-8."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

_SAMPLE = 100_000  # Bytes that are looked at; only lines with letters outside of ASCII count
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r\f\x1b")
_LINE = re.compile(rb"[^\n]*[\x80-\xff][^\n]*\n?")
_FEWEST_EAST = 2
_KANA_SHARE = 0.1
_WESTERN = "cp1252"
_FREQUENT: Mapping[str, str] = {
    "cp1252": "àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿßœÀÁÂÄÅÆÇÉÈÊÖØÜÍÓÚÑ’‘“”–—…•©®°§€£«»´·¿¡ªº",
    "cp1250": "ąćęłńóśźżčďěňřšťůýžáéíôúäöüőűăâîşţđĄĆĘŁŃŚŹŻČĎŠŽŘÓ„”“’–—…•«»§°",
    "iso8859-2": "ąćęłńóśźżčďěňřšťůýžáéíôúäöüőűăâîşţđĄĆĘŁŃŚŹŻČĎŠŽŘÓ§°",
    "cp1254": "ğışİŞĞçöüÇÖÜâîû’‘“”–—…•«»",
    "cp1251": "".join(map(chr, range(0x410, 0x450))) + "ёЁіїєґІЇЄҐўЎјљњћђџ№«»–—…“”„’•",
    "koi8-r": "".join(map(chr, range(0x410, 0x450))) + "ёЁ",
    "cp866": "".join(map(chr, range(0x410, 0x450))) + "ёЁ№",
    "cp1253": "".join(map(chr, range(0x3AC, 0x3CF))) + "".join(map(chr, range(0x391, 0x3AA))) + "ΆΈΉΊΌΎΏ«»–—…’“”",
    "cp1255": "".join(map(chr, range(0x5D0, 0x5EB))) + "–—…“”’‘₪",
    "cp1256": "".join(map(chr, range(0x621, 0x64B))) + "پچژگ،؛؟–—…“”’‘",
}
"""Letters and signs that are frequent where an encoding is used; the first encoding wins a draw."""
_USUAL: Mapping[str, str] = {
    **dict.fromkeys(("cp1251", "koi8-r", "cp866"), "оеаинтсрвл"),
    "cp1253": "αοιετσνυρπ",
    "cp1255": "יוהלאמרתבנש",
    "cp1256": "اليمنرتوبه",
}
"""The letters that half of a text is made of."""
_EASTERN: Mapping[str, Callable[[int], bool]] = {
    "cp932": lambda lead: 0x88 <= lead <= 0x97 or lead in (0x82, 0x83),
    "euc_jp": lambda lead: 0xB0 <= lead <= 0xCF or lead in (0xA4, 0xA5),
    "gb18030": lambda lead: 0xB0 <= lead <= 0xD7,
    "big5": lambda lead: 0xA4 <= lead <= 0xC6,
    "cp949": lambda lead: 0xB0 <= lead <= 0xC8,
}
"""First bytes of the frequent characters of an encoding of two bytes."""


def is_binary(head: bytes) -> bool:
    """True if the first bytes of a file are no text, or one in UTF-16."""
    return b"\0" in head or 50 * (len(head) - len(head.translate(None, _CONTROLS))) > len(head)


def guess_encoding(raw: bytes) -> str:
    """The encoding in which the bytes are most like a text; Western where nothing is."""
    sample = b"".join(match[0] for match in _LINE.finditer(raw[: 20 * _SAMPLE]))[:_SAMPLE]
    sample = sample[: sample.rfind(b"\n") + 1] if len(sample) == _SAMPLE and b"\n" in sample else sample
    scores = {name: _western_score(sample, name) for name in _FREQUENT}
    scores |= {name: _eastern_score(sample, name) for name in _EASTERN}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] > 0 else _WESTERN


def _western_score(sample: bytes, name: str) -> float:
    """Fit of the letters outside of ASCII, per byte of them."""
    text = sample.decode(name, "replace")
    frequent, usual = _FREQUENT[name], _USUAL.get(name, "")
    score, before = 0.0, " "
    for letter in text:
        if letter > "\x7f":
            score += 1 if letter in frequent else -1 if letter.isalpha() else -3 if letter == "\ufffd" else -2
            if usual and letter.isalpha():
                score += 0.3 if letter.lower() in usual else -0.2
            if letter.isalpha() and before.isalpha():
                score -= 3 * (letter.isupper() and before.islower())
                score -= 2 * (_script(letter) != _script(before))
                score -= 0.5 * (before > "\x7f" and _script(letter) == "L")
        elif before > "\x7f" and letter.isalpha() and before.isalpha():
            score -= 2 * (_script(before) != "L")
        before = letter
    return score / max(1, sum(byte > 127 for byte in sample))


def _script(letter: str) -> str:
    return "L" if letter.isascii() else unicodedata.name(letter, "?")[0]


def _eastern_score(sample: bytes, name: str) -> float:
    """Score by the frequent characters; 2 at most, so that all fitting wins over Western letters."""
    try:
        text = sample.decode(name)
    except UnicodeDecodeError:
        return -9.0
    score, total, kana, high, low = 0.0, 0, 0, 0, 0
    before = " "
    for letter in text:
        if letter > "\x7f":
            encoded = letter.encode(name)
            lead = encoded[0]
            frequent, sign = _EASTERN[name](lead) and len(encoded) > 1, lead in (0x81, 0xA1, 0xA3)
            score += 1 if frequent else 0.3 if sign else -2
            score -= 2 * (before.isascii() and before.isalpha())
            total, kana = total + 1, kana + ("\u3040" <= letter <= "\u30ff")
            high += lead > 0xC8
            low += lead < 0xA0 and len(encoded) > 1
        elif letter.isalpha() and before > "\x7f" and before.isalpha():
            score -= 1
        before = letter
    if total < _FEWEST_EAST:
        return -9.0
    is_japanese = kana > _KANA_SHARE * total or (name == "cp932" and 2 * low > total)  # no other code has such bytes
    if (name in ("cp932", "euc_jp")) != is_japanese or (name == "cp949" and high):
        score -= total
    bonus = 0.1 * (name == "cp949") + 0.05 * (name == "big5")
    return 2 * score / total + bonus
