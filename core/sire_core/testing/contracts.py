"""What every recipe has to keep, whatever it builds and however it ranks.

Plain functions with asserts; nothing here needs a test framework. `broken_promises(factory)` runs them all, or those
of `RECIPE_CHECKS` that are given, for frameworks that want to report each on its own.
"""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sire_core.algorithms.text import tokenize
from sire_core.index import Index
from sire_core.knowledge import KEYWORD, MENTIONS
from sire_core.testing.contents import IndexContents, read_contents, sample_corpus
from sire_core.testing.hash_embedder import HashEmbedder
from sire_core.testing.search_checks import (
    QUESTIONS,
    RecipeFactory,
    check_bad_input,
    check_concurrency,
    check_filters,
    check_odd_corpora,
    check_order,
    check_passages,
    index_for,
)
from sire_core.types import Document, UnitKind

_EXACT = (UnitKind.CHUNK, UnitKind.AGGREGATE, UnitKind.PROPOSITION, UnitKind.AKU, UnitKind.BRIDGE, UnitKind.ENTITY)
"""Kinds that come out the same however the corpus got to where it is."""
_VERBATIM = (UnitKind.SIM_SUMMARY, UnitKind.REL_SUMMARY, UnitKind.AGGREGATE, UnitKind.PROPOSITION, UnitKind.AKU)
"""Kinds whose words, without a model, are all taken from their passages."""


def check_description(make: RecipeFactory) -> None:
    """The recipe says what it builds, and its config makes it again."""
    from sire_core.recipes import REGISTRY

    recipe = make()
    assert recipe.name in recipe.describe()
    assert recipe.summary
    assert recipe.paper
    assert REGISTRY[recipe.name](**dict(recipe.config)) == recipe


def check_provenance(make: RecipeFactory) -> None:
    """Units stand on passages that exist, each once, and say nothing that these passages do not say."""
    found = _build(make, sample_corpus())
    for unit in found.units.values():
        assert unit.chunk_ids, unit
        assert len(set(unit.chunk_ids)) == len(unit.chunk_ids), unit
        assert set(unit.chunk_ids) <= set(found.chunks), unit
        assert unit.text.strip(), unit
        sources = [found.chunks[chunk] for chunk in unit.chunk_ids]
        if unit.kind is UnitKind.CHUNK:
            assert {(chunk.title, chunk.text) for chunk in sources} == {(unit.title, unit.text)}
        if unit.kind in _VERBATIM:
            said = {word for chunk in sources for word in tokenize(chunk.index_text)}
            assert set(tokenize(f"{unit.title} {unit.text}")) <= said, unit


def check_coverage(make: RecipeFactory) -> None:
    """Every passage is in the pool and under every level of the tree over passages; edges join what exists."""
    found = _build(make, sample_corpus())
    levels: dict[tuple[str, int], set[str]] = {}
    for unit in found.units.values():
        kind = "chunk" if unit.kind is UnitKind.CHUNK else unit.tree
        levels.setdefault((kind, unit.level), set()).update(unit.chunk_ids)
    for (kind, _), covered in levels.items():
        if kind in ("chunk", "sim"):
            assert covered == set(found.chunks)
    for edge in found.edges:
        assert edge.source in found.units
        # Entities and keywords may be nodes without a unit.
        assert edge.target in found.units or edge.target in found.chunks or edge.kind in (MENTIONS, KEYWORD)
        assert edge.source != edge.target


def check_determinism(make: RecipeFactory) -> None:
    """Two builds in two folders, with one worker and with eight, hold the same units, edges and vectors."""
    assert _build(make, sample_corpus(), workers=1) == _build(make, sample_corpus(), workers=8)


def check_saved_equals_loaded(make: RecipeFactory) -> None:
    """A reopened folder and a saved copy answer as the index that was built."""
    with tempfile.TemporaryDirectory() as place:
        built, copied = Path(place, "built"), Path(place, "copied")
        with index_for(make, built) as index:
            index.build(sample_corpus())
            expected = [index.search(question, 7) for question in QUESTIONS]
            index.save(copied)
        with index_for(make) as memory:
            memory.build(sample_corpus())
            assert [memory.search(question, 7) for question in QUESTIONS] == expected
        for path in (built, copied):
            with Index(path, embedder=HashEmbedder()) as again:
                assert [again.search(question, 7) for question in QUESTIONS] == expected
        assert read_contents(built) == read_contents(copied)


def check_changes(make: RecipeFactory) -> None:
    """Documents that come one by one and go again leave what a fresh build would make; deleting all leaves nothing."""
    corpus = sample_corpus()[:9]
    extra = Document("extra", "Zora Quill met the Harbor Council. Zora Quill left Port Amber.", "Zora Quill")
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "index")
        index = index_for(make, path)
        for document in corpus[:4]:
            index.add([document])
        index.add([extra, *corpus[4:]])
        index.update([replace(extra, text="Zora Quill stayed.")])
        index.delete([extra.id])
        grown, fresh = read_contents(path), _build(make, corpus)
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


def check_copies(make: RecipeFactory) -> None:
    """Metadata that tell copies of a passage apart, or make them alike again, reach what stands on them."""
    first, second = Document("first", "Ann Lee left Bob Stone."), Document("second", "Ann Lee met Kwan.")
    corpus = [*sample_corpus()[:4], first, second]
    with tempfile.TemporaryDirectory() as place, index_for(make, Path(place, "index")) as index:
        index.build([*corpus, replace(first, id="copy")])
        for metadata in ({"tenant": "red"}, {}):
            copy = replace(first, id="copy", metadata=metadata)
            index.update([copy])
            grown, fresh = read_contents(Path(place, "index")), _build(make, [*corpus, copy])
            cited = [{u.id: u.chunk_ids for u in f.units.values() if u.kind in _EXACT} for f in (grown, fresh)]
            assert cited[0] == cited[1]
            was, now = (
                {(e.kind, e.source, e.target) for e in found.edges if e.source in found.chunks}
                for found in (grown, fresh)
            )
            assert was == now
            for level in {unit.level for unit in fresh.units.values() if unit.tree == "sim"}:
                over = [unit for unit in grown.units.values() if (unit.tree, unit.level) == ("sim", level)]
                assert {chunk for unit in over for chunk in unit.chunk_ids} == set(grown.chunks)


RECIPE_CHECKS: tuple[Callable[[RecipeFactory], None], ...] = (
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
    make: RecipeFactory, checks: Sequence[Callable[[RecipeFactory], None]] = RECIPE_CHECKS
) -> dict[str, str]:
    """What the recipe that `make` returns does not keep: nothing, for a recipe that is right.

    Returns by the name of each check that failed, where and on what. Other errors than a failed assertion are raised.
    """
    failures = {check.__name__: _failure(check, make) for check in checks}
    return {name: found for name, found in failures.items() if found}


def _failure(check: Callable[[RecipeFactory], None], make: RecipeFactory) -> str:
    try:
        check(make)
    except AssertionError as error:
        return "".join(traceback.format_exception(error))
    return ""


def _build(make: RecipeFactory, documents: Sequence[Document], **settings: Any) -> IndexContents:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "index")
        with index_for(make, path, **settings) as index:
            index.build(documents)
        return read_contents(path)
