"""A small corpus where the next passage of a chain is the one whose title the last one names."""

import asyncio

import pytest

from sire_core import Document, Index
from sire_core.extend import Question
from sire_core.papers.iier.training import known_questions
from sire_core.recipes import iier
from sire_core.testing.doubles import HashEmbedder

FIRST = "Ada Bela Cora Dina Edda Fina Gerda Hilda Inga Jana Karla Lena Mara Nora Olga Petra".split()
LAST = "Holm Brack Quist Stern".split()
TOWNS = "Lindle Marlow Norwick Ostend Pellam Querno Rastow Selby".split()
RIVERS = "Amber Birse Calder Dove".split()


def documents():
    people = [
        Document(
            f"p{i}",
            f"{first} {LAST[i % 4]} was a painter. {first} was born in {TOWNS[i % 8]}.",
            f"{first} {LAST[i % 4]}",
        )
        for i, first in enumerate(FIRST)
    ]
    towns = [
        Document(f"t{i}", f"{town} is a town on the {RIVERS[i % 4]}. {town} has a mill.", town)
        for i, town in enumerate(TOWNS)
    ]
    return people + towns


def questions():
    return [
        Question(
            f"q{i}",
            f"On which river is the town where {first} {LAST[i % 4]} was born?",
            (RIVERS[i % 4],),
            (f"p{i}", f"t{i % 8}"),
        )
        for i, first in enumerate(FIRST)
    ]


@pytest.fixture(scope="session")
def painters():
    """View of the index, the questions as the walk sees them, and the recipe."""
    recipe = iier(n_sim=3)
    with Index(recipe=recipe, embedder=HashEmbedder(), chunker=None) as index:
        index.build(documents())
        view = index.view()
        yield view, asyncio.run(known_questions(view, questions(), recipe.ranker))
