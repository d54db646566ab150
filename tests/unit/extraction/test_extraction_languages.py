"""German, French, Spanish, Chinese and Japanese: names without a model, and questions of two pages over them."""

import json
from pathlib import Path

import pytest

from sire_core.extraction.rules import RulesExtractor
from sire_core.types import Chunk

DATA = Path(__file__).parents[2] / "data" / "languages"


def lines(language, name):
    text = (DATA / language / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        (
            "Seit Jahren leitet Ada Vollmer die Vollhard Werke. Die Reederei ist in Falkenau.",
            "Ada Vollmer|Vollhard Werke|Reederei|Falkenau",
            "Jahren|Seit|Die",
        ),
        (
            "Depuis le printemps, Léandre Pontieu préside la société Bonval. Elle est à Isleval.",
            "Léandre Pontieu|Bonval|Isleval",
            "Depuis|Elle",
        ),
        (
            "Desde la primavera, Amparo Villalta dirige la empresa Peñalba. En Hoyales está la sede.",
            "Amparo Villalta|Peñalba|Hoyales",
            "Desde|En",
        ),
        (
            "陆明远现在担任远山机械公司的总经理。公司总部位于临河市，他写了《长河》。",
            "陆明远|远山机械公司|临河市|长河",
            "现在|位于",
        ),
        (
            "藤崎美咲は遠山機械製作所の社長です。本社は雲沢市にあり、「長い川」という本を書いた。",
            "藤崎美咲|遠山機械製作所|雲沢市|長い川",
            "です",
        ),
    ],
)
def test_names_of_a_language(text, wanted, unwanted):
    (record,) = RulesExtractor().records([Chunk("c", "d", 0, "", text)])
    names = {entity.name for entity in record.entities}
    assert set(wanted.split("|")) <= names
    assert not set(unwanted.split("|")) & names
    assert len(record.facts) == 2


@pytest.mark.parametrize("language", ["de", "fr", "es", "zh", "ja"])
def test_people_meet_their_companies_in_the_entities(language):
    corpus = lines(language, "corpus")
    records = RulesExtractor().records([Chunk(row["id"], row["id"], 0, "", row["text"]) for row in corpus])
    names = {
        row["id"]: {entity.name for entity in record.entities} for row, record in zip(corpus, records, strict=True)
    }
    pairs = [question["supporting"] for question in lines(language, "questions") if question["hops"] == 2]
    assert sum(bool(names[first] & names[second]) for first, second in pairs) >= 9
