"""Any history of changes leaves the graph, and the arrays that queries read, of a build of what is left."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sire_core import Document, Index
from sire_core.recipes import iier
from sire_core.recipes.iier import GRAPH_NOTE, WORDS_NOTE
from sire_core.recipes.iier.graph import ChainGraph, PassageKeywords
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import ExtractionRecord
from support.damage import forget_notes

WORDS = ("harbor", "bridge", "mill", "ferry", "lamp", "tide")
SETTINGS = {
    "default": {},
    "mutual": {"links": "mutual", "n_sim": 1},
    "raw": {"raw_kw": True, "kw_min": 2, "kw_df_cap": 3, "title_keywords": False},
    "capped": {"kw_df_cap": 2, "n_sim": 2},
    "approximate": {"exact_below": 7, "n_sim": 2},
    "keywords": {"use_sim": False, "use_struc": False, "kw_df_cap": 4},
    "similarity": {"use_kw": False, "use_struc": False, "n_sim": 3},
}


class Keywords:
    """The words of the list that a passage contains are its keywords, as they are written there."""

    fingerprint = "keywords"
    links_titles = False

    async def extract(self, chunks):
        for item in chunks:
            words = [word.strip(".") for word in item.chunk.text.split()]
            found = tuple(word for word in words if word.lower() in WORDS)
            yield [ExtractionRecord(item.chunk.hash, "m", "p", keywords=found[:5])]


PASSAGES = st.lists(
    st.lists(st.sampled_from((*WORDS, "Harbor", "old", "new")), min_size=1, max_size=4).map(" ".join),
    min_size=1,
    max_size=3,
)
CONTENTS = st.tuples(PASSAGES, st.sampled_from(("", "Harbor", "Mill (film)", "Mill")), st.sampled_from(({}, {"a": 1})))
CHANGES = st.lists(
    st.one_of(
        st.lists(CONTENTS, min_size=1, max_size=4),
        st.tuples(st.integers(0, 20), CONTENTS),
        st.lists(st.integers(0, 20), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=6,
)


def document(name, contents):
    passages, title, metadata = contents
    return Document(name, title=title, chunks=tuple(passages), metadata=metadata)


def changed(index, documents, change, number):
    """Apply a change: contents to add, (which, contents) to replace, or whom to delete."""
    names = list(documents)
    if isinstance(change, tuple):
        if names:
            name = names[change[0] % len(names)]
            documents[name] = document(name, change[1])
            index.update([documents[name]])
    elif isinstance(change[0], tuple):
        new = {f"d{number}-{i}": document(f"d{number}-{i}", contents) for i, contents in enumerate(change)}
        index.add(list(new.values()))
        documents |= new
    elif names:
        gone = list(dict.fromkeys(names[i % len(names)] for i in change))
        index.delete(gone)
        for name in gone:
            del documents[name]


def told(index):
    """What the store holds, and what queries read."""
    view = index.view()
    graph = ChainGraph.of(view)
    words = PassageKeywords(view, graph.positions)
    edges = {(e.kind, e.source, e.target): (e.weight, dict(e.metadata)) for e in view.edges()}
    arrays = {
        name: getattr(graph, name).tolist() for name in ("positions", "vectors", "indptr", "neighbors", "features")
    }
    arrays |= {f"keywords of {node}": graph.keywords.of(node).tolist() for node in range(graph.size)}
    arrays |= {f"holders of {key}": graph.postings.of(number).tolist() for number, key in enumerate(graph.keys)}
    found = {word: words.with_phrase(word).tolist() for word in (*WORDS, "old", "harbor mill")}
    titles = {title: words.titled(title).tolist() for title in ("Mill", "Mill (film)", "harbor")}
    return edges, arrays, list(graph.keys), dict(graph.keyword_of), found, titles


def opened(name, embedder=None, path=None):
    return Index(path, recipe=iier(**SETTINGS[name]), embedder=embedder or HashEmbedder(8), extractor=Keywords())


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(sorted(SETTINGS)), start=st.lists(CONTENTS, min_size=1, max_size=8), changes=CHANGES)
@example("default", [(["harbor"], "", {}), (["harbor"], "", {})], [(0, (["harbor"], "", {"a": 1}))])
def test_any_history_ends_as_a_build_of_what_is_left(name, start, changes):
    documents = {f"s{i}": document(f"s{i}", contents) for i, contents in enumerate(start)}
    with opened(name) as grown, opened(name) as fresh:
        grown.build(list(documents.values()))
        for number, change in enumerate(changes):
            changed(grown, documents, change, number)
        if documents:
            fresh.build(list(documents.values()))
            assert told(grown) == told(fresh)
        else:
            assert not grown.view().edges()


def forget(path, *keys):
    assert forget_notes(path, *keys) == len(keys)


@pytest.mark.parametrize("lost", [(GRAPH_NOTE,), (WORDS_NOTE,), (GRAPH_NOTE, WORDS_NOTE)])
def test_an_index_without_notes_opens_and_gets_them_with_the_next_change(tmp_path, lost):
    documents = [
        document(f"d{i}", (words, "", {})) for i, words in enumerate([["harbor mill"], ["mill"], ["tide old"]])
    ]
    seen = []
    for name in ("whole", "lost"):
        with opened("default", path=tmp_path / name) as index:
            index.build(documents)
        if name == "lost":
            forget(tmp_path / name, *lost)
        with opened("default", path=tmp_path / name) as index:
            before = told(index)
            index.delete(["d1"])
            index.add([document("d9", (["lamp mill", "harbor"], "", {}))])
            seen.append((before, told(index), index.view().note(GRAPH_NOTE), index.view().note(WORDS_NOTE)))
    # The graph is what is lost, words are read again.
    assert (seen[0][0] == seen[1][0]) == (GRAPH_NOTE not in lost)
    assert seen[0][1] == seen[1][1]
    assert None not in seen[1]
    assert [len(note) for note in seen[0][2:]] == [len(note) for note in seen[1][2:]]


def test_a_passage_whose_extraction_is_made_up_for_gets_its_keywords():
    class Failing(Keywords):
        fails = True

        async def extract(self, chunks):
            async for batch in super().extract(chunks):
                failed = self.fails and "lamp" in batch[0].keywords
                yield [ExtractionRecord(batch[0].hash, "m", "p", status="failed", reason="away")] if failed else batch

    documents = [document(f"d{i}", ([f"{words} {i}"], "", {})) for i, words in enumerate(["lamp tide", "lamp", "tide"])]
    extractor, settings = Failing(), {"recipe": iier(**SETTINGS["default"]), "embedder": HashEmbedder(8)}
    with Index(extractor=extractor, max_failure_ratio=1.0, **settings) as index, opened("default") as fresh:
        index.build(documents)
        assert "lamp" not in ChainGraph.of(index.view()).keyword_of
        extractor.fails = False
        index.build(documents)
        fresh.build(documents)
        assert told(index) == told(fresh)
