"""A corpus that is carried over changes is the corpus that reading everything gives."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import given
from hypothesis import strategies as st

from sire_core import Document
from sire_core.corpus import stored_corpus
from sire_core.corpus.changes import plan_build, plan_delete, plan_put
from sire_core.corpus.stored_corpus import StoredCorpus
from sire_core.types import Passage

PASSAGES = st.builds(
    Passage,
    st.sampled_from(["It rained.", "It snowed.", "Nobody came."]),
    title=st.sampled_from(["", "Weather"]),
    metadata=st.sampled_from([{}, {"year": 1}, {"year": True}]),
)
DOCUMENTS = st.builds(
    Document,
    id=st.sampled_from([f"d{i}" for i in range(6)]),
    title=st.sampled_from(["", "Weather", "Guests"]),
    chunks=st.lists(PASSAGES, max_size=3).map(tuple),
)
STEPS = st.tuples(
    st.sampled_from(["build", "put", "delete"]), st.lists(DOCUMENTS, max_size=4, unique_by=lambda document: document.id)
)


def changed(corpus, action, documents):
    if action == "delete":
        return corpus.updated(plan_delete(corpus.documents, [document.id for document in documents], missing_ok=True))
    plan = plan_build if action == "build" else plan_put
    return corpus.updated(plan(corpus.documents, documents, None))


@given(st.lists(STEPS, max_size=5))
def test_carried_over_is_read_anew(steps):
    corpus = StoredCorpus()
    for action, documents in steps:
        update = changed(corpus, action, documents)
        before, corpus = corpus, update.after
        in_order = sorted(corpus.documents.values(), key=lambda document: (document.sequence, document.id))
        chunks = sorted(corpus.chunk_by_id.values(), key=corpus.place)
        whole = StoredCorpus.of({document.id: document for document in in_order}, chunks)
        assert list(corpus.documents) == list(whole.documents)
        assert repr(corpus.chunks) == repr(whole.chunks)  # 1 and True are equal, and are not the same here
        assert repr(corpus.units) == repr(whole.units)
        assert corpus.hashes == whole.hashes
        assert corpus.unit_by_chunk == whole.unit_by_chunk
        assert {key: set(ids) for key, ids in corpus.units_by_hash.items()} == {
            key: set(ids) for key, ids in whole.units_by_hash.items()
        }
        assert [corpus.number(chunk.id) for chunk in corpus.chunks] == list(range(len(corpus.chunks)))
        assert {chunk.id for chunk in update.added} == corpus.chunk_by_id.keys() - before.chunk_by_id.keys()
        assert {chunk.id for chunk in update.removed} == before.chunk_by_id.keys() - corpus.chunk_by_id.keys()
        put = {unit.id: unit for unit in update.passages.delta.put_units}
        known = {unit.id: unit for unit in before.units if unit.id not in update.passages.delta.drop_units}
        assert repr([{**known, **put}[unit.id] for unit in corpus.units]) == repr(corpus.units)
        assert len({**known, **put}) == len(corpus.units)


class Texts:
    """Follows a corpus, and says what it looked at."""

    made: ClassVar[list[str]] = []

    def __init__(self, texts):
        self.texts = texts

    @classmethod
    def of(cls, corpus):
        cls.made += [chunk.text for chunk in corpus.chunks]
        return cls({chunk.id: chunk.text for chunk in corpus.chunks})

    def updated(self, update):
        self.made += [chunk.text for chunk in update.new_chunks]
        gone = {chunk.id for chunk in update.old_chunks}
        kept = {chunk: text for chunk, text in self.texts.items() if chunk not in gone}
        return Texts(kept | {chunk.id: chunk.text for chunk in update.new_chunks})


def test_a_change_looks_at_what_changes_only(monkeypatch):
    grouped = []
    whole = stored_corpus.chunk_units
    monkeypatch.setattr(stored_corpus, "chunk_units", lambda chunks: grouped.append(len(chunks)) or whole(chunks))
    documents = [Document(f"d{i}", f"Number {i}.") for i in range(500)]
    corpus = changed(StoredCorpus(), "build", documents).after
    assert corpus.following(Texts).texts == {chunk.id: chunk.text for chunk in corpus.chunks}
    grouped.clear(), Texts.made.clear()
    corpus = changed(corpus, "put", [Document("d7", "Number eight."), Document("new", "Number 9.")]).after
    assert grouped == [3], "the two passages, and the old one with the same words"
    assert corpus.following(Texts).texts == {chunk.id: chunk.text for chunk in corpus.chunks}
    assert sorted(Texts.made) == ["Number 9.", "Number eight."]
