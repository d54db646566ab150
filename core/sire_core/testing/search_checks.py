"""What searches have to keep in every recipe; checks of `contracts`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sire_core.errors import QueryError
from sire_core.index import Index
from sire_core.protocols import Recipe
from sire_core.recipes.smart.select import BESIDE
from sire_core.testing.contents import sample_corpus, two_tenants
from sire_core.testing.hash_embedder import HashEmbedder
from sire_core.testing.plain_extractor import PlainExtractor
from sire_core.types import Document, Hit, UnitKind

RecipeFactory = Callable[[], Recipe]

QUESTIONS = ("Who founded the lighthouse?", "Which island has a harbor and a ferry?", "zzz")


def index_for(make: RecipeFactory, path: Path | None = None, **settings: Any) -> Index:
    """An index that needs no model and gives the same bits every time."""
    settings = {"embedder": HashEmbedder(), "extractor": PlainExtractor(), **settings}
    return Index(path, recipe=make(), **settings)


def check_filters(make: RecipeFactory) -> None:
    """Nothing of another tenant is in the hits, in their paths, in the explanation or in a prompt."""
    from sire_core.extraction.rules import RulesExtractor
    from sire_core.testing.scripted_model import ScriptedModel

    with tempfile.TemporaryDirectory() as place:
        for number, extractor in enumerate((PlainExtractor(), RulesExtractor())):
            path = Path(place, str(number))
            with index_for(make, path, extractor=extractor) as index:
                index.build(two_tenants())
            model = ScriptedModel()
            with index_for(make, path, extractor=extractor, language_model=model) as index:
                for own, foreign in (("red", "blue"), ("blue", "red")):
                    for question in ("Who met Lord Ashby in Port Amber?", f"{foreign}canary {foreign}marker"):
                        model.log.clear()
                        hits = index.search(question, 50, filter={"tenant": own}, returns="units")
                        hits += index.search(question, 50, filter={"tenant": own})
                        seen = [repr(hits), index.explain(question, 50, filter={"tenant": own}), repr(model.log)]
                        prompts = " ".join(seen).lower().replace(question.lower(), "")
                        assert hits
                        assert f"{foreign}canary" not in prompts
                        assert f"{foreign}marker" not in prompts
                assert index.search("Lord Ashby", 5, filter={"tenant": "nobody"}) == []


def check_order(make: RecipeFactory) -> None:
    """Exactly k hits while the corpus has them, best first, each once, and fewer hits are the first of more.

    What a selector shut out comes behind everything else, best first too.
    """
    with index_for(make) as index:
        index.build(sample_corpus())
        size = index.stats()["units"]
        for question in QUESTIONS:
            everything = index.search(question, size + 50, returns="units")
            assert len(everything) == size
            assert len({hit.unit.id for hit in everything}) == size
            topped_up = [any(step.step == "top_up" for step in hit.path) for hit in everything]
            keys = [(extra, -hit.score) for extra, hit in zip(topped_up, everything, strict=True)]
            assert keys == sorted(keys)
            for k in (1, 2, 5, size):
                assert index.search(question, k, returns="units") == everything[:k]
            assert all(hit.path for hit in everything)
            assert all(hit.doc_ids for hit in everything)


def check_passages(make: RecipeFactory) -> None:
    """By default a search returns k distinct passages while there are so many, whole, cited, scores never rising."""
    with index_for(make) as index:
        index.build(sample_corpus())
        chunks = index.stats()["kinds"]["chunk"]
        for question in QUESTIONS:
            everything = index.search(question, chunks + 50)
            assert len({hit.unit.id for hit in everything}) == len(everything) == chunks
            assert {str(hit.unit.kind) for hit in everything} == {"chunk"}
            scores = [hit.score for hit in everything]
            assert scores == sorted(scores, reverse=True)
            assert all(hit.path and hit.doc_ids for hit in everything)
            beside = any(step.step == BESIDE for hit in everything for step in hit.path)
            for k in (1, 2, 5):
                units = index.search(question, k, returns="units")
                if beside:  # reports that stand beside passages bring none
                    units = [hit for hit in units if hit.unit.kind is not UnitKind.REPORT]
                cited = list(dict.fromkeys(chunk for hit in units for chunk in hit.unit.chunk_ids))
                first = [chunk for hit in index.search(question, k) for chunk in hit.unit.chunk_ids]
                assert first[: len(cited)] == cited[: len(first)]


def check_concurrency(make: RecipeFactory) -> None:
    """Fifty questions at once get the answers they get one by one; sync equals async."""
    with index_for(make) as index:
        index.build(sample_corpus())
        questions = [f"{question} {number}" for number in range(17) for question in QUESTIONS]

        async def together() -> list[list[Hit]]:
            return await asyncio.gather(*(index.asearch(question, 6) for question in questions))

        assert asyncio.run(together()) == [index.search(question, 6) for question in questions]


def check_odd_corpora(make: RecipeFactory) -> None:
    """Corpora that nobody tests: empty, one document, copies, no text, very long, any script."""
    same = [Document(f"copy{i}", "The Same Words stand here.", "Copy") for i in range(5)]
    long = " ".join(f"Sentence number {i} speaks of Port Amber." for i in range(1500))
    odd = "\u0645\u0631\u062d\u0628\u0627 \u4e16\u754c\u3002 \U0001f30a na\u00efve \u0130stanbul \x0b \u200b e\u0301."
    cases: tuple[tuple[Sequence[Document], int], ...] = (
        ((), 0),
        ((Document("one", "One passage about Port Amber.", "Only"),), 1),
        (same, 1),
        ((Document("blank", ""), Document("space", " \n "), Document("said", "Something is said.")), 1),
        ((Document("long", long), Document("short", "Short.")), 3),
        ((Document("\u00fc \u2192 id", odd, "\u00c5land"), Document("dots", "... !!! ???")), 2),
    )
    for documents, least in cases:
        with index_for(make) as index:
            index.build(documents)
            hits = index.search("Port Amber", 10_000, returns="units")
            assert len(hits) >= least, documents
            assert len(hits) == index.stats()["units"]
            assert {doc for hit in hits for doc in hit.doc_ids} == {d.id for d in documents if d.text.strip()}


def check_bad_input(make: RecipeFactory) -> None:
    """Empty questions and impossible k are refused, on an empty index too."""
    for documents in ((), sample_corpus()[:2]):
        with index_for(make) as index:
            index.build(documents)
            for query, k in (("", 3), ("  \n", 3), ("a", 0), ("a", -1), ("a", True), ("a", 2.0), (None, 3)):
                try:
                    index.search(query, k)  # type: ignore[arg-type]  # the point of the check
                except QueryError:
                    continue
                raise AssertionError(f"search({query!r}, {k!r}) was accepted")
