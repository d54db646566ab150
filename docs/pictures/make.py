"""Draws one picture per recipe, what it derives and how a question is led through it: python docs/pictures/make.py."""

from pathlib import Path

from sire_core.explore.drawing import document
from sire_core.explore.picture import Link, Node, Picture

HERE = Path(__file__).parent

# Per recipe: nodes (id, kind, label, text) in reading order, and links (from, to, label).
SHARED = [
    ("q", "question", "Question", "Who was the mother of the captain of the Northern Wren?"),
    ("p1", "chunk", "Passage: SS Northern Wren", "... she was commanded by Aldous Brack."),
    ("p2", "chunk", "Passage: Aldous Brack", "... second son of the botanist Hedda Sorrel."),
]
RECIPES = {
    "flat": ([], [("q", "p1", "cosine"), ("q", "p2", "cosine")]),
    "raptor": (
        [("s", "sim_summary", "Summary of similar passages", "ships and their captains")],
        [("q", "p1", "cosine"), ("q", "s", "cosine"), ("s", "p2", "stands on")],
    ),
    "sirerag": (
        [
            ("s", "sim_summary", "Summary of similar passages", "ships and their captains"),
            ("a", "aggregate", "Aggregate: Aldous Brack", "all facts that name him, from both passages"),
            ("r", "rel_summary", "Summary of aggregates", "the family and the ship"),
        ],
        [
            *[("q", "s", "cosine"), ("q", "a", "cosine"), ("q", "r", "cosine")],
            *[("s", "p1", ""), ("a", "p1", ""), ("a", "p2", ""), ("r", "p2", "")],
        ],
    ),
    "indexrag": (
        [
            ("u", "aku", "Knowledge of one document", "its facts, one after the other"),
            ("b", "bridge", "Bridging fact", "The Wren's captain was a son of Hedda Sorrel."),
        ],
        [("q", "u", "cosine"), ("q", "b", "at most 3"), ("u", "p1", ""), ("b", "p1", ""), ("b", "p2", "")],
    ),
    "msrag": (
        [
            ("e", "entity", "Northern Wren", "", 0, "title"),
            ("r", "relation", "Northern Wren was commanded by Aldous Brack", ""),
            ("n", "entity", "Aldous Brack", "", 0, "title"),
        ],
        [
            *[("q", "e", "cosine"), ("q", "r", "cosine"), ("r", "n", "nearby")],
            *[("e", "p1", "votes"), ("r", "p1", "votes"), ("n", "p2", "votes"), ("q", "p2", "cosine")],
        ],
    ),
    "iier": (
        [("c", "chunk", "Passage: Hen Rocks", "shares a keyword with both")],
        [("q", "p1", "its keyword"), ("p1", "c", "keyword"), ("p1", "p2", "meaning"), ("c", "p2", "")],
    ),
    "pagerank": (
        [("e", "entity", "Northern Wren", "", 0, "title"), ("n", "entity", "Aldous Brack", "", 0, "title")],
        [("q", "e", "names"), ("e", "p1", "walk"), ("p1", "n", "walk"), ("n", "p2", "walk")],
    ),
    "hipporag2": (
        [
            ("r", "relation", "Northern Wren was commanded by Aldous Brack", ""),
            ("e", "entity", "Northern Wren", "", 0, "title"),
            ("n", "entity", "Aldous Brack", "", 0, "title"),
        ],
        [
            *[("q", "r", "cosine"), ("r", "e", ""), ("r", "n", ""), ("q", "p1", "cosine")],
            *[("e", "p1", "walk"), ("n", "p1", "walk"), ("n", "p2", "walk")],
        ],
    ),
    "linearrag": (
        [
            ("e", "entity", "Northern Wren", "", 0, "title"),
            ("s", "chunk", "Sentence", "she was commanded by Aldous Brack"),
            ("n", "entity", "Aldous Brack", "", 0, "title"),
        ],
        [("q", "e", "names"), ("e", "s", "cosine"), ("s", "n", "activates"), ("e", "p1", "walk"), ("n", "p2", "walk")],
    ),
    "sire": (
        [("e", "entity", "Northern Wren", "", 0, "title"), ("n", "entity", "Aldous Brack", "", 0, "title")],
        [("q", "e", "names"), ("e", "p1", ""), ("p1", "n", "a sentence"), ("n", "p2", "")],
    ),
    "smart": (
        [
            ("n", "entity", "Aldous Brack", "named by a hit", 0, "title"),
            ("t1", "report", "Report, perspective 1", "the family"),
            ("t2", "report", "Report, perspective 2", "the harbour"),
        ],
        [("q", "p1", "base ranker"), ("q", "p2", "base ranker"), ("p1", "n", ""), ("n", "t1", ""), ("n", "t2", "")],
    ),
}


def drawn(name: str) -> str:
    """The picture of a recipe as SVG."""
    derived, links = RECIPES[name]
    nodes = tuple(Node(*row) for row in [SHARED[0], *derived, *SHARED[1:]])
    lines = tuple(Link(source, target, label) for source, target, label in links)
    return document(Picture(f"How {name} leads a question to passages", nodes, lines))


if __name__ == "__main__":
    for recipe in RECIPES:
        (HERE / f"{recipe}.svg").write_text(drawn(recipe), encoding="utf-8")
