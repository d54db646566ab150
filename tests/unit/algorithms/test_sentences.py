"""Where sentences end, in several languages."""

import pytest

from sire_core.algorithms.text import split_sentences

WHOLE = [
    "Er wurde am 3. Mai 1902 geboren.",
    "Es gilt vom 3. bis 5. Mai und im 19. Jahrhundert.",
    "Es war der 2. Senat.",
    "Nach § 5 Abs. 2 Nr. 3 BGB und gem. § 7 gilt es.",
    "Das ist z. B. Bier, d. h. Wasser und u. a. Malz.",
    "Der Verein Seehund e. V. Husum ist da.",
    "Przy ul. Lipowej stoi dom.",
    "Он живёт в г. Москва на ул. Ленина.",
    "La casa núm. 5 es vieja.",
    "Voir Art. 12 et p. 7 du texte.",
    "Il Prof. Dott. Guido Tersilli.",
    "See Nos. 5 and 7.",
]
SEVERAL = [
    ["He scored 12.", "The team won in 1961.", "He left."],
    ["It ran on Erlang 20.", "September came."],
    ["This is modern art.", "The gem.", "It ends."],
    ["Open the Jobs tab.", "2.", "Click Save."],
    ["Take option x.", "Then go on."],
    ["Он родился в 1902 г.", "Он умер."],
    ["यह घर है।", "वह जाता है।", "अंत॥"],
    ["هل هذا بيت؟", "نعم هذا بيت.", "یہ گھر ہے۔", "نعم"],
]


@pytest.mark.parametrize("text", WHOLE)
def test_ordinals_and_abbreviations_end_no_sentence(text):
    assert split_sentences(f"{text} Then it ends.") == [text, "Then it ends."]


@pytest.mark.parametrize("sentences", SEVERAL)
def test_sentences_end_where_they_end(sentences):
    assert split_sentences(" ".join(sentences)) == sentences
