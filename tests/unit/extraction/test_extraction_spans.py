"""Named spans of single sentences, and text as it comes from the web."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.extraction.spans import find_spans, tidy


def names(sentence):
    return [span.name for span in find_spans(sentence)]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("He knew Ludwig van Beethoven and Osama bin Laden.", ["Ludwig van Beethoven", "Osama bin Laden"]),
        ("She met Charles of the Valois, J. R. R. Tolkien and A.C. Clarke.",
         ["Charles of the Valois", "J. R. R. Tolkien", "A.C. Clarke"]),
        ("It left Lothair II, Boso the Elder and Sammy Davis, Jr. alone.",
         ["Lothair II", "Boso the Elder", "Sammy Davis, Jr."]),
        ("The BBC and Track & Field News visited St. John's College.",
         ["BBC", "Track & Field News", "St. John's College"]),
        ("He saw Kwan's film \"Rouge\" in Hong Kong.", ["Kwan", "Rouge", "Hong Kong"]),
        ("A drink at the 2013 Cannes Film Festival.", ["2013 Cannes Film Festival"]),
        ("Born on 24 May 1953, on May 5, 1905, in June 1999 and in the 1960s.",
         ["24 May 1953", "May 5, 1905", "June 1999", "1960s"]),
        ("It has 8,211 inhabitants, 42.5 km2 and cost $3 million.", ["8,211 inhabitants", "42.5 km2", "$3 million"]),
        ("On August 19, 600,000 people came.", ["August 19", "600,000 people"]),
        ("He was President of the United States.", ["United States"]),
        ("In French, I like Mondays and the Trinidadian-American singers.", ["Mondays"]),
        ("the Oscar-winning Academy Award-winning actor", ["Oscar", "Academy Award"]),
        ('He said "we will never go there again" to Bob.', ["Bob"]),
        ('William "Bucky" Moore slept.', ['William "Bucky" Moore']),
        ("Über Ångström and Ольга spoke.", ["Über Ångström", "Ольга"]),
        ("", []),
    ],
)  # fmt: skip
def test_spans(sentence, expected):
    assert names(sentence) == expected


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("then Apple Records won", "Organization"),
        ("then the Potomac River won", "Location"),
        ("then the Battle of Cassel", "Event"),
        ("then the Korean War ended", "Event"),
        ("then in Paris it rained", "Location"),
        ("then Sir John won", "Person"),
        ("then directed by Ann Low", "Person"),
        ('the film "Rope"', "Work"),
        ('nicknamed "Shura"', "Name"),
        ("since 1999", "Date"),
        ("over 30 km", "Quantity"),
    ],
)  # fmt: skip
def test_coarse_types(sentence, kind):
    assert find_spans(sentence)[0].type == kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Phoolwari( 1946) is a film.", "Phoolwari (1946) is a film."),
        ('The film" Sabotage", and" Rope" too.', 'The film "Sabotage", and "Rope" too.'),
        ('"Rope" is a film "Rope" here.', '"Rope" is a film "Rope" here.'),
        ("Episode ``Bon Bon ''marked it.", 'Episode "Bon Bon" marked it.'),
        ("A Vice- Chancellor, pre- and post-war.", "A Vice-Chancellor, pre- and post-war."),
        ("Teen Sex& Squalor", "Teen Sex & Squalor"),
        ("The Simpsons<nowiki>'</nowiki> show", "The Simpsons' show"),
        ('A 5" disc', 'A 5" disc'),
        ("  a\n\tb  ", "a b"),
    ],
)
def test_tidy(text, expected):
    assert tidy(text) == expected


@given(st.text(alphabet=st.sampled_from("Ab c.,\"“”(&-’'I1990 of May"), max_size=60))
def test_spans_are_ordered_apart_and_inside(text):
    spans = find_spans(text)
    assert all(0 <= span.start < span.end <= len(text) and span.name for span in spans)
    assert all(left.end <= right.start for left, right in pairwise(spans))
