"""BM25 and TF-IDF: languages and scripts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sire_core import Document, Index
from sire_core.errors import ConfigurationError
from sire_core.recipes import REGISTRY
from sire_core.search.rankers.lexical import Lexical


@pytest.mark.parametrize(
    ("language", "pages", "question"),
    [
        ("finnish", ("Juna ajaa Turkuun.", "Kirja on talossa."), "talot"),
        ("fi", ("Juna ajaa Turkuun.", "Kirja on talossa."), "talot"),
        ("romanian", ("Trenul pleac\u0103.", "O carte veche."), "c\u0103r\u021bi vechi"),
        ("german", ("Der Zug f\u00e4hrt.", "Das Haus der Mutter."), "der H\u00e4user"),
        ("porter", ("Trains run.", "Old houses stand."), "housing"),
    ],
)
def test_every_language_with_a_stemmer_is_searched(language: str, pages: tuple[str, str], question: str) -> None:
    with Index(recipe=replace(REGISTRY["flat"](), name="mine", ranker=Lexical(language=language))) as index:
        index.build([Document(str(n), text) for n, text in enumerate(pages)])
        first, second = index.search(question, 2)
    assert first.doc_ids == ("1",)
    assert first.score > second.score


@pytest.mark.parametrize("language", ["klingon", "English", "", "chinese"])
def test_other_languages_are_refused_with_those_there_are(language: str) -> None:
    with pytest.raises(ConfigurationError, match=r"english.*finnish.*leave it out"):
        Lexical(language=language)


@pytest.mark.parametrize("ranker", ["bm25", "tfidf", "hybrid"])
@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("\u5927\u962a\u57ce\u306f\u3069\u3053", "\u5927\u962a\u57ce\u306f\u5927\u962a\u5e02\u306b\u3042\u308b\u3002"),
        ("\u4f60\u559c\u6b22\u5e7f\u5dde\u5417", "\u5e7f\u5dde\u5728\u73e0\u6c5f\u8fb9\uff0c2023\u5e74\u3002"),
        ("\uff84\uff96\uff80\u306e\u672c\u793e", "\u30c8\u30e8\u30bf\u306f\u8eca\u3092\u4f5c\u308b\u3002"),
        ("\u732b", "An entry: \u732b, a cat"),
        (
            "\u0e0a\u0e49\u0e32\u0e07\u0e2d\u0e22\u0e39\u0e48\u0e17\u0e35\u0e48\u0e44\u0e2b\u0e19",
            "\u0e0a\u0e49\u0e32\u0e07\u0e01\u0e34\u0e19\u0e01\u0e25\u0e49\u0e27\u0e22",
        ),
    ],
    ids=["japanese", "chinese", "half-width", "one character", "thai"],
)
def test_scripts_without_spaces_are_searched(ranker: str, question: str, page: str) -> None:
    others = ["Zebras live in Africa.", "\u6771\u4eac\u30bf\u30ef\u30fc\u3067\u3059\u3002"]
    with Index(recipe=REGISTRY["flat"](ranker=ranker)) as index:
        index.build([Document(str(n), text) for n, text in enumerate([*others, page])])
        hits = index.search(question, 3)
    assert hits[0].unit.text == page
    scores = [float(step.note.split()[1]) for hit in hits for step in hit.path if step.step == "words:chunk"]
    assert scores[0] > 0
    assert scores[1:] == [0, 0]
