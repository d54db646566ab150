"""Overview or detail, by cues in the text."""

import pytest

from sire_core.trees.similarity_tree import abstractiveness


@pytest.mark.parametrize(
    "text",
    [
        "Drifting is a technique where the driver oversteers, with loss of traction, while keeping control of the car.",
        "There are various kinds of clouds. Most of them consist of water. In Europe they often bring rain.",
    ],
)
def test_overviews(text):
    assert abstractiveness(text) == "high"


@pytest.mark.parametrize(
    "text",
    [
        "On 4 May 1912 the ship left Cork for Boston with 1,200 people, among them Mary Flynn and her son John.",
        "The novel follows Anna, who leaves Moscow with Count Vronsky and returns to her brother Stiva in the spring.",
        "Types of cheese",
        "",
    ],
)
def test_details_and_fragments(text):
    assert abstractiveness(text) == "low"
