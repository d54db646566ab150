"""What stands for a document: its facts, its words or a summary, in units of bounded length."""

from sire_core.index import Index
from sire_core.recipes import indexrag
from sire_core.testing.doubles import HashEmbedder, PlainExtractor
from sire_core.text.words import text_length
from sire_core.types import Document, UnitKind

CHAPTERS = [" ".join(f"Keeper{number} lit lamp{number}x{line} at dusk." for line in range(4)) for number in range(6)]


def open_index(extractor=None, model=None, **settings):
    return Index(
        recipe=indexrag(stage2=False, **settings),
        embedder=HashEmbedder(),
        extractor=extractor or PlainExtractor(),
        language_model=model,
        chunker=None,
        max_failure_ratio=1,
    )


def units(index):
    view = index.view()
    return [unit for unit in view.units(range(view.size)) if unit.kind == UnitKind.AKU]


def chunk_texts(index):
    view = index.view()
    return {unit.chunk_ids[0]: unit.text for unit in view.units(range(view.size)) if unit.kind == UnitKind.CHUNK}


def test_a_long_document_becomes_units_that_stand_on_the_passages_that_state_them():
    with open_index(split_tokens=40) as index:
        index.build([Document("log", title="Log", chunks=tuple(CHAPTERS)), Document("short", CHAPTERS[0][:22])])
        short, *parts = sorted(units(index), key=lambda unit: len(unit.text))
        texts = chunk_texts(index)
        assert short.text == CHAPTERS[0][:22]
        assert len(parts) > 2
        facts = [fact for part in parts for fact in part.text.split("\n")]
        assert sorted(facts) == sorted(f"{fact}." for chapter in CHAPTERS for fact in chapter[:-1].split(". "))
        for part in parts:
            assert text_length(part.text) <= 40
            for fact in part.text.split("\n"):
                assert sum(fact in texts[chunk] for chunk in part.chunk_ids) == 1
            assert all(any(fact in texts[chunk] for fact in part.text.split("\n")) for chunk in part.chunk_ids)


def test_a_document_that_states_nothing_stands_as_it_is_in_parts():
    with open_index(PlainExtractor({}), split_tokens=10) as index:
        index.build([Document("log", title="Log", chunks=tuple(CHAPTERS))])
        found = units(index)
        assert all(text_length(unit.text) <= 10 for unit in found)
        said = "".join("".join(unit.text.split()) for unit in found)
        assert sorted(said) == sorted("".join(("Log " + " ".join(CHAPTERS)).split()))
