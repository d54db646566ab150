"""Promises that every recipe keeps, whatever it builds and however it ranks.

Plain functions with asserts; nothing here needs a test framework. `broken_promises(factory)` runs them all, or those
of `RECIPE_CHECKS` that are given; the sample corpus is built once for all that only read it.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sire_core.data import demo_documents
from sire_core.errors import QueryError
from sire_core.extraction.rules import RulesExtractor
from sire_core.index import Index
from sire_core.knowledge import KEYWORD, MENTIONS
from sire_core.protocols import Recipe
from sire_core.recipes import REGISTRY
from sire_core.storage.index_files import IndexFiles
from sire_core.storage.store import CORPUS
from sire_core.testing.doubles import HashEmbedder, PlainExtractor, ScriptedModel
from sire_core.text.words import tokenize
from sire_core.types import BESIDE, Chunk, Document, Edge, Hit, Unit, UnitKind


@dataclass(frozen=True, slots=True)
class IndexContents:
    """Chunks, and one recipe's units, edges and vectors."""

    chunks: Mapping[str, Chunk]  # By id, in corpus order
    units: Mapping[str, Unit]  # By id
    edges: tuple[Edge, ...]  # In the store's order
    vectors: Mapping[str, bytes]  # Bytes of the float32 vectors by unit id

    def said(self, *kinds: UnitKind) -> set[tuple[str, str, frozenset[str]]]:
        """(kind, text, passages) of the units of some kinds, of all when none is given: what matters to a reader."""
        return {
            (unit.kind.value, unit.text, frozenset(unit.chunk_ids))
            for unit in self.units.values()
            if not kinds or unit.kind in kinds
        }


def read_contents(path: str | os.PathLike[str], recipe: str = "") -> IndexContents:
    """Read an index folder."""
    with closing(IndexFiles(Path(path))) as files, files.store.snapshot():
        built = files.refresh().find(None, recipe)
        owners = [CORPUS, *built.owners]
        return IndexContents(
            chunks={chunk.id: chunk for chunk in files.store.chunks()},
            units={unit.id: unit for owner in owners for unit in files.store.each_unit(owner)},
            edges=tuple(files.store.edges(list(built.owners))),
            vectors={unit: vector.tobytes() for unit, vector in files.store.each_vector(owners)},
        )


def sample_corpus() -> list[Document]:
    """The demo corpus, with a copied passage and one without text."""
    documents = list(demo_documents())
    copy = replace(documents[3], id="copy")
    return [*documents, copy, Document("nothing", "")]


def two_tenants() -> list[Document]:
    """Two tenants with names, sentences and a passage in common; each has words that the other must never see."""
    documents = []
    for tenant in ("red", "blue"):
        name = f"{tenant.title()}marker"
        texts = {
            f"{name} 0": f"Lord Ashby met the {tenant}canary Council in Port Amber. Mira Vale joined Lord Ashby.",
            f"{name} 1": f"Mira Vale owns {name} Mill. Port Amber is a harbor.",
            "Port Amber": "Port Amber is a harbor. Lord Ashby lives in Port Amber.",
            f"{name} 3": f"The {name} Company sells rope. Lord Ashby bought rope of Mira Vale.",
        }
        documents += [Document(f"{name} {title}", text, title, {"tenant": tenant}) for title, text in texts.items()]
    # Titles of one tenant that are longer forms of names in the other's text.
    for title, text in (("Earl Corin, Duke of Redcanary", "..."), ("Lord Ashby (Redcanary)", "It opened late.")):
        documents.append(Document(title, text, title, {"tenant": "red"}))
    for text in ("Earl Corin sailed to Port Amber.", "Earl Corin wrote a long letter to Mira Vale."):
        documents.append(Document(text, text, "Bluemarker 9", {"tenant": "blue"}))
    return documents


_EXACT = (UnitKind.CHUNK, UnitKind.AGGREGATE, UnitKind.PROPOSITION, UnitKind.AKU, UnitKind.BRIDGE, UnitKind.ENTITY)
"""Kinds that come out the same however the corpus got to where it is."""
_VERBATIM = (UnitKind.SIM_SUMMARY, UnitKind.REL_SUMMARY, UnitKind.AGGREGATE, UnitKind.PROPOSITION, UnitKind.AKU)
"""Kinds whose words, without a model, are all taken from their passages."""


class SampledRecipe:
    """A recipe's factory, and indexes of the sample corpus, built when a check first reads them."""

    def __init__(self, make: RecipeFactory) -> None:
        self.make = make
        self._directory = tempfile.TemporaryDirectory()

    @cached_property
    def folder(self) -> Path:
        """Folder with an index of the sample corpus, only to be read."""
        path = Path(self._directory.name, "built")
        with index_for(self.make, path, workers=8) as index:
            index.build(sample_corpus())
        return path

    @cached_property
    def contents(self) -> IndexContents:
        """Contents of the folder."""
        return read_contents(self.folder)

    @cached_property
    def index(self) -> Index:
        """The sample corpus in memory, only to be searched."""
        index = index_for(self.make)
        index.build(sample_corpus())
        return index

    def close(self) -> None:
        """Close the index, if a check read it, and delete the folder."""
        if "index" in self.__dict__:
            self.index.close()
        self._directory.cleanup()


def check_description(sampled: SampledRecipe) -> None:
    """The recipe says what it builds, and its config makes it again."""
    recipe = sampled.make()
    assert recipe.name in recipe.describe()
    assert recipe.summary
    assert recipe.paper
    assert REGISTRY[recipe.name](**dict(recipe.config)) == recipe


def check_provenance(sampled: SampledRecipe) -> None:
    """Units stand on passages that exist, each once, and say nothing that these passages do not say."""
    contents = sampled.contents
    for unit in contents.units.values():
        assert unit.chunk_ids, unit
        assert len(set(unit.chunk_ids)) == len(unit.chunk_ids), unit
        assert set(unit.chunk_ids) <= set(contents.chunks), unit
        assert unit.text.strip(), unit
        sources = [contents.chunks[chunk] for chunk in unit.chunk_ids]
        if unit.kind is UnitKind.CHUNK:
            assert {(chunk.title, chunk.text) for chunk in sources} == {(unit.title, unit.text)}
        if unit.kind in _VERBATIM:
            words = {word for chunk in sources for word in tokenize(chunk.index_text)}
            assert set(tokenize(f"{unit.title} {unit.text}")) <= words, unit


def check_coverage(sampled: SampledRecipe) -> None:
    """Every passage is in the pool and under every level of the tree over passages; edges join what exists."""
    contents = sampled.contents
    levels: dict[tuple[str, int], set[str]] = {}
    for unit in contents.units.values():
        kind = "chunk" if unit.kind is UnitKind.CHUNK else unit.tree
        levels.setdefault((kind, unit.level), set()).update(unit.chunk_ids)
    for (kind, _), covered in levels.items():
        if kind in ("chunk", "sim"):
            assert covered == set(contents.chunks)
    for edge in contents.edges:
        assert edge.source in contents.units
        # Entities and keywords may be nodes without a unit.
        assert edge.target in contents.units or edge.target in contents.chunks or edge.kind in (MENTIONS, KEYWORD)
        assert edge.source != edge.target


def check_determinism(sampled: SampledRecipe) -> None:
    """Two builds in two folders, with one worker and with eight, hold the same units, edges and vectors."""
    assert _build(sampled.make, sample_corpus(), workers=1) == sampled.contents


def check_saved_equals_loaded(sampled: SampledRecipe) -> None:
    """A reopened folder and a saved copy answer as the index that was built."""
    expected = [sampled.index.search(question, 7) for question in QUESTIONS]
    with tempfile.TemporaryDirectory() as directory:
        copied = Path(directory, "copied")
        for path in (sampled.folder, copied):
            with Index(path, embedder=HashEmbedder()) as again:
                assert [again.search(question, 7) for question in QUESTIONS] == expected
                if path != copied:
                    again.save(copied)
        assert read_contents(copied) == sampled.contents


def check_changes(sampled: SampledRecipe) -> None:
    """Documents that come one by one and go again leave what a fresh build would make; deleting all leaves nothing."""
    corpus = sample_corpus()[:9]
    extra = Document("extra", "Zora Quill met the Harbor Council. Zora Quill left Port Amber.", "Zora Quill")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "index")
        index = index_for(sampled.make, path)
        for document in corpus[:4]:
            index.add([document])
        index.add([extra, *corpus[4:]])
        index.update([replace(extra, text="Zora Quill stayed.")])
        index.delete([extra.id])
        grown, fresh = read_contents(path), _build(sampled.make, corpus)
        assert grown.said(*_EXACT) == fresh.said(*_EXACT)
        assert not any("Zora" in unit.text + unit.title for unit in grown.units.values())
        index.delete([document.id for document in corpus])
        empty = read_contents(path)
        assert not empty.units
        assert not empty.edges
        assert index.search("anything", 3) == []
        index.add(corpus)
        assert read_contents(path).said(*_EXACT) == fresh.said(*_EXACT)
        index.close()


def check_copies(sampled: SampledRecipe) -> None:
    """Metadata that tell copies of a passage apart, or make them alike again, reach what stands on them."""
    first, second = Document("first", "Ann Lee left Bob Stone."), Document("second", "Ann Lee met Kwan.")
    corpus = [*sample_corpus()[:4], first, second]
    with tempfile.TemporaryDirectory() as directory, index_for(sampled.make, Path(directory, "index")) as index:
        index.build([*corpus, replace(first, id="copy")])
        for metadata in ({"tenant": "red"}, {}):
            copy = replace(first, id="copy", metadata=metadata)
            index.update([copy])
            grown, fresh = read_contents(Path(directory, "index")), _build(sampled.make, [*corpus, copy])
            cited = [{u.id: u.chunk_ids for u in f.units.values() if u.kind in _EXACT} for f in (grown, fresh)]
            assert cited[0] == cited[1]
            was, now = (
                {(e.kind, e.source, e.target) for e in contents.edges if e.source in contents.chunks}
                for contents in (grown, fresh)
            )
            assert was == now
            for level in {unit.level for unit in fresh.units.values() if unit.tree == "sim"}:
                over = [unit for unit in grown.units.values() if (unit.tree, unit.level) == ("sim", level)]
                assert {chunk for unit in over for chunk in unit.chunk_ids} == set(grown.chunks)


QUESTIONS = ("Who founded the lighthouse?", "Which island has a harbor and a ferry?", "zzz")


def index_for(make: RecipeFactory, path: Path | None = None, **settings: Any) -> Index:
    """An index that needs no model and gives the same bits every time."""
    settings = {"embedder": HashEmbedder(), "extractor": PlainExtractor(), **settings}
    return Index(path, recipe=make(), **settings)


def check_filters(sampled: SampledRecipe) -> None:
    """Nothing of another tenant is in the hits, in their paths, in the explanation or in a prompt."""
    with tempfile.TemporaryDirectory() as directory:
        for number, extractor in enumerate((PlainExtractor(), RulesExtractor())):
            path = Path(directory, str(number))
            with index_for(sampled.make, path, extractor=extractor) as index:
                index.build(two_tenants())
            model = ScriptedModel()
            with index_for(sampled.make, path, extractor=extractor, language_model=model) as index:
                for tenant, foreign in (("red", "blue"), ("blue", "red")):
                    for question in ("Who met Lord Ashby in Port Amber?", f"{foreign}canary {foreign}marker"):
                        model.log.clear()
                        hits = index.search(question, 50, filter={"tenant": tenant}, returns="units")
                        hits += index.search(question, 50, filter={"tenant": tenant})
                        seen = [repr(hits), index.explain(question, 50, filter={"tenant": tenant}), repr(model.log)]
                        prompts = " ".join(seen).lower().replace(question.lower(), "")
                        assert hits
                        assert f"{foreign}canary" not in prompts
                        assert f"{foreign}marker" not in prompts
                assert index.search("Lord Ashby", 5, filter={"tenant": "nobody"}) == []


def check_order(sampled: SampledRecipe) -> None:
    """Exactly k hits while the corpus has them, best first, each once, and fewer hits are the first of more.

    What a selector shut out comes behind everything else, best first too.
    """
    index = sampled.index
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


def check_passages(sampled: SampledRecipe) -> None:
    """By default a search returns k distinct passages while there are so many, whole, cited, scores never rising."""
    index = sampled.index
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


def check_concurrency(sampled: SampledRecipe) -> None:
    """Fifty questions at once, the first that an index is asked, get the answers they get one by one."""
    questions = [f"{question} {number}" for number in range(17) for question in QUESTIONS]
    with index_for(sampled.make, sampled.folder) as index:

        async def together() -> list[list[Hit]]:
            return await asyncio.gather(*(index.asearch(question, 6) for question in questions))

        assert asyncio.run(together())[::2] == [index.search(question, 6) for question in questions[::2]]


def check_odd_corpora(sampled: SampledRecipe) -> None:
    """Corpora that nobody tests: empty, one document, copies, no text, very long, any script."""
    same = [Document(f"copy{i}", "The Same Words stand here.", "Copy") for i in range(5)]
    long = " ".join(f"Sentence number {i} speaks of Port Amber." for i in range(400))
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
        with index_for(sampled.make) as index:
            index.build(documents)
            hits = index.search("Port Amber", 10_000, returns="units")
            assert len(hits) >= least, documents
            assert len(hits) == index.stats()["units"]
            assert {doc for hit in hits for doc in hit.doc_ids} == {d.id for d in documents if d.text.strip()}


def check_bad_input(sampled: SampledRecipe) -> None:
    """Empty questions and impossible k are refused, on an empty index too."""
    for documents in ((), sample_corpus()[:2]):
        with index_for(sampled.make) as index:
            index.build(documents)
            for query, k in (("", 3), ("  \n", 3), ("a", 0), ("a", -1), ("a", True), ("a", 2.0), (None, 3)):
                try:
                    index.search(query, k)  # type: ignore[arg-type]  # the point of the check
                except QueryError:
                    continue
                raise AssertionError(f"search({query!r}, {k!r}) was accepted")


RECIPE_CHECKS: tuple[Callable[[SampledRecipe], None], ...] = (
    check_description,
    check_provenance,
    check_coverage,
    check_determinism,
    check_saved_equals_loaded,
    check_changes,
    check_copies,
    check_filters,
    check_order,
    check_passages,
    check_concurrency,
    check_odd_corpora,
    check_bad_input,
)


def broken_promises(
    make: RecipeFactory, checks: Sequence[Callable[[SampledRecipe], None]] = RECIPE_CHECKS
) -> dict[str, str]:
    """Return the promises that the recipe of `make` breaks; none for a correct recipe.

    Returns by the name of each check that failed, where and on what. Other errors than a failed assertion are raised.
    """
    with closing(SampledRecipe(make)) as sampled:
        failures = {check.__name__: _failure(check, sampled) for check in checks}
    return {name: messages for name, messages in failures.items() if messages}


def _failure(check: Callable[[SampledRecipe], None], sampled: SampledRecipe) -> str:
    try:
        check(sampled)
    except AssertionError as error:
        return "".join(traceback.format_exception(error))
    return ""


def _build(make: RecipeFactory, documents: Sequence[Document], **settings: Any) -> IndexContents:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "index")
        with index_for(make, path, **settings) as index:
            index.build(documents)
        return read_contents(path)


RecipeFactory = Callable[[], Recipe]
