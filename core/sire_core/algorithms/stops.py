"""Full stops that end no sentence: behind abbreviations, initials and ordinal numbers. Pure functions."""

from __future__ import annotations

import re

__all__ = ["stop_ends_sentence"]

# A full stop after one of these rarely ends a sentence.
_ABBREVIATIONS = frozenset(
    (
        "mr mrs ms dr prof st sr jr vs etc inc ltd co corp no vol fig eq e.g i.e cf al approx ca b d gen col "
        "lt maj capt c fl lit sgt rev hon gov sen rep pres jan feb mar apr jun jul aug sep sept oct nov dec "
        "u.s u.k ph.d op ed est dept "
        # German, Dutch, French, Spanish, Portuguese, Italian, Polish, Russian
        "bzw vgl ggf evtl sog bspw inkl exkl zzgl abzgl z.b d.h u.a s.o i.v.m hr geb gest ehem hrsg "
        "dhr mevr bijv drs mme mlle sra srta d\u00f1a avda sig.ra dott avv ul \u015bw tzw "
        "\u0443\u043b \u0438\u043c \u0442.\u0435 \u0442.\u043a \u043e\u0431\u043b \u043f\u043e\u0441"
    ).split()
)
# Nor does one after these, in front of a number: "Abs. 2", "Art. 12", "p. 7".
_BEFORE_NUMBER = frozenset(
    (
        "abs nr art arts satz ziff kap bd gem abb anm rz rn str pos nos sec sect ch cap p pp pg pag "
        "p\u00e1g p\u00e1gs n\u00fam num n\u00ba nro tel tit poz pkt rozdz ust "
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
_WORD = re.compile(r"\w+")
_LETTER_AND_STOP = re.compile(r"[^\W\d_]\.")
_AROUND = "(\"'\u201e\u201c\u201d\u00ab\u00bb[.,"


def stop_ends_sentence(before: str, after: str) -> bool:
    """Whether a full stop ends a sentence."""
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
