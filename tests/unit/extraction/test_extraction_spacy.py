"""The spaCy tagger, on a rule-based pipeline that needs no download."""

import sys

import pytest

from sire_core.errors import ConfigurationError
from sire_core.extraction.rules import RulesExtractor
from sire_core.extraction.spacy_tagger import SpacyTagger
from sire_core.types import Chunk


def pipeline(spacy):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns(
        [
            {"label": "PERSON", "pattern": "Thurn and Taxis"},
            {"label": "ORG", "pattern": "the Zeta group"},
            {"label": "NORP", "pattern": "Canadian"},
            {"label": "GPE", "pattern": "american"},
            {"label": "DATE", "pattern": "two years later"},
            {"label": "PERSON", "pattern": "Otto"},
        ]
    )
    return nlp


def test_tagged_spans_replace_and_augment():
    spacy = pytest.importorskip("spacy")
    tagger = SpacyTagger(pipeline(spacy))
    sentences = ["Then Thurn and Taxis bought the Zeta group in 1920.", "two years later a Canadian met Otto II."]
    assert [[(span.name, span.type) for span in row] for row in tagger.tag(sentences)] == [
        [("Thurn and Taxis", "Person"), ("Zeta group", "Organization")],
        [("Otto", "Person")],
    ]
    for sentence, row in zip(sentences, tagger.tag(sentences), strict=True):
        assert all(sentence[span.start : span.end] == span.name for span in row)
    chunk = Chunk("c", "d", 0, "", " ".join(sentences).replace("two", "Two"))
    (record,) = RulesExtractor(tagger).records([chunk])
    assert [entity.name for entity in record.entities] == ["Thurn and Taxis", "Zeta group", "1920", "Otto II"]
    assert "spacy:en" in RulesExtractor(tagger).fingerprint


def test_missing_spacy_says_how_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ConfigurationError, match=r"pip install \"sire-rag\[spacy\]\""):
        SpacyTagger()


def test_missing_pipeline_says_what_to_do():
    pytest.importorskip("spacy")
    with pytest.raises(ConfigurationError, match="no_such_pipeline"):
        SpacyTagger("no_such_pipeline")
