"""Words of every script are found whole: with vowel signs, with soft hyphens inside, with and without points."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from sire_core import Document, Index
from sire_core.algorithms.text import count_tokens, find_words, word_pattern
from sire_core.corpus.chunker import SentenceChunker
from sire_core.recipes import REGISTRY

HINDI = [
    ("चाय की दुकान सुबह खुलती है।", "चाय की दुकान कब खुलती है?"),
    ("चोर को पुलिस ने पकड़ा।", "चोर को किसने पकड़ा?"),
    ("चार लोग मेले में गए।", "चार लोग कहाँ गए?"),
    ("चीर पहनकर रानी आई।", "चीर पहनकर कौन आई?"),
    ("मेला नदी के पास लगता है।", "मेला कहाँ लगता है?"),
    ("माली बाग में काम करता है।", "माली कहाँ काम करता है?"),
    ("मूली खेत में उगती है।", "मूली कहाँ उगती है?"),
    ("मौली धागे से बनती है।", "मौली किससे बनती है?"),
    ("रोटी तवे पर बनती है।", "रोटी किस पर बनती है?"),
    ("रात को तारे दिखते हैं।", "रात को क्या दिखते हैं?"),
    ("रीति पुरानी होती है।", "रीति कैसी होती है?"),
    ("रेत समुद्र के किनारे मिलती है।", "रेत किसके किनारे मिलती है?"),
]


def _first(pages: list[str], question: str, ranker: str = "bm25") -> str:
    with Index(recipe=REGISTRY["flat"](ranker=ranker)) as index:
        index.build([Document(str(number), text) for number, text in enumerate(pages)])
        hit, _ = index.search(question, 2)
    return hit.doc_ids[0] if hit.score > 0 else ""


@pytest.mark.parametrize("number", range(len(HINDI)))
def test_hindi_words_keep_their_vowels(number: int) -> None:
    assert _first([page for page, _ in HINDI], HINDI[number][1].split()[0]) == str(number)


@pytest.mark.parametrize("ranker", ["bm25", "tfidf", "hybrid", "dense"])
@pytest.mark.parametrize(
    ("page", "other", "question"),
    [
        ("বাস শহরে যায়", "বিষ শহরে যায়", "বাস"),
        ("பால் கடையில் உள்ளது", "புல் கடையில் உள்ளது", "பால்"),
        ("Die Brenninger\u00adhütte ist offen", "Die Brenninger haben eine Hütte", "Brenningerhütte"),
        ("Zur Kranken\u200bkasse geht man", "Zur Kasse gehen Kranke", "Krankenkasse"),
        ("كَتَبَ الرِّسَالَةَ", "كتاب في المدينة", "الرسالة"),
        ("מֶלֶךְ בָּעִיר", "מלכה בכפר", "מלך"),
        ("Un cafe\u0301 noir", "Un caf noir", "caf\u00e9"),
        ("\u0915\u094d\u200d\u092f\u093e बात", "क्यों बात", "क्या"),
    ],
    ids=["bengali", "tamil", "soft hyphen", "zero width", "arabic", "hebrew", "decomposed", "joiner"],
)
def test_words_are_found_however_they_are_written(ranker: str, page: str, other: str, question: str) -> None:
    assert _first([other, "Something else", page], question, ranker) == "2"


def test_persian_endings_stand_apart() -> None:
    assert _first(["خانه بزرگ است", "کتاب\u200cها روی میز"], "کتاب") == "1"


ARABIC = {
    "سمرقند": "بنى يعقوب برج سمرقند في وسط المدينة القديمة.",
    "يعقوب": "كان مسقط رأس يعقوب قرية صغيرة قرب البحر.",
    **{
        name: f"ولد التاجر {name} في مدينة {town} وباع الحرير."
        for name, town in zip(
            "سالم منصور خالد رشيد زياد فريد".split(), "حلب بغداد فاس تونس صنعاء القاهرة".split(), strict=True
        )
    },
}
HEBREW = {
    "מגדלור": "אביגדור בנה את מגדלור על הצוק הגבוה.",
    "אביגדור": "מקום הולדתו של אביגדור הוא כפר קטן ליד הים.",
    **{
        name: f"הסוחר {name} נולד בעיר {town} ומכר משי."
        for name, town in zip(
            "שלמה מנחם ברוך יצחק מרדכי אהרון".split(), "חיפה יפו צפת עכו לוד רמלה".split(), strict=True
        )
    },
}


@pytest.mark.parametrize(
    ("pages", "question"),
    [(ARABIC, "أين ولد التاجر الذي بنى برج سمرقند؟"), (HEBREW, "היכן נולד הסוחר שבנה את מגדלור?")],
    ids=["arabic", "hebrew"],
)
def test_names_of_one_word_lead_on_in_scripts_without_case(pages: dict[str, str], question: str) -> None:
    with Index(recipe="sire") as index:
        index.build([Document(title, text, title=title) for title, text in pages.items()])
        hits = index.search(question, 5)
    assert [hit.doc_ids[0] for hit in hits][:2] == list(pages)[:2]


def test_a_name_with_soft_hyphens_is_extracted_whole() -> None:
    with Index(recipe="sire") as index:
        index.build(
            [
                Document(
                    "a",
                    "In the valley stands Brenninger\u00adh\u00fctte, which Ada Lowe built in 1920.",
                    title="Valley",
                ),
                Document(
                    "b",
                    "Brenningerh\u00fctte burned down in 1931. Nobody was hurt.",
                    title="Brenninger\u00adh\u00fctte",
                ),
            ]
        )
        assert index.search("Brenningerh\u00fctte 1931", 1)[0].doc_ids == ("b",)
        assert "\u00ad" in index.search("Who built Brenningerh\u00fctte?", 1)[0].unit.text


def test_chunks_of_other_scripts_are_as_long_as_english_ones() -> None:
    hindi = "हरिनारायण किताबें पढ़ता रहता है। " * 100
    words = len(hindi.split())
    assert words <= count_tokens(hindi) <= 1.3 * words
    chinese = "\u7b2c\u4e00\u53f7\u4ed3\u5e93\u4f4d\u4e8e\u57ce\u533a\uff0c" * 400
    pieces = SentenceChunker(max_tokens=100, overlap_tokens=0).split(chinese)
    assert max(map(len, pieces)) <= 100
    assert "".join(pieces) == chinese
    thai = "\u0e01\u0e34\u0e19\u0e02\u0e49\u0e32\u0e27" * 100
    assert len(thai) / 5 < count_tokens(thai) < len(thai) / 2


def test_every_combining_sign_belongs_to_the_word_before_it() -> None:
    for sign in filter(lambda sign: unicodedata.category(sign)[0] == "M", map(chr, range(sys.maxunicode + 1))):
        assert word_pattern().findall(f"x{sign}y") == [f"x{sign}y"], hex(ord(sign))
        assert len(find_words(f"a{sign}b c")) == 2
