"""After `purge`, no file of the folder holds a word of a deleted document."""

import gc
import sqlite3

import pytest

from sire_core.data import demo_documents
from sire_core.errors import IndexLockedError
from sire_core.index import Index
from sire_core.recipes import REGISTRY
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from sire_core.types import Document

SECRET = [
    Document(
        "secret", "Zorquine Vexalot met Lord Ashby in Port Amber. Lord Ashby paid Zorquine Vexalot.", "Zorquine Vexalot"
    ),
    Document("other", "Port Amber once hid Zorquine Vexalot. Mira Vale wrote about Zorquine Vexalot.", "Letters"),
]
KEPT = [
    *list(demo_documents())[:8],
    Document("ashby", "Lord Ashby lives in Port Amber. Mira Vale joined Lord Ashby.", "Ashby"),
]
CANARIES = (b"zorquine", b"vexalot")


def files_with_canary(folder):
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            raw = path.read_bytes().lower()
            wide = [b"".join(bytes((c, 0, 0, 0)) for c in word) for word in CANARIES]  # numpy's strings
            if any(word in raw for word in (*CANARIES, *wide)):
                found.append(path.relative_to(folder).as_posix())
    return found


@pytest.mark.quick(name=["sire", "sirerag", "smart"])
@pytest.mark.parametrize("with_model", [False, True])
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_no_word_of_a_deleted_document_is_left(tmp_path, name, with_model):
    model = ScriptedModel() if with_model else None
    embedder = HashEmbedder() if with_model else None
    with Index(tmp_path / "ix", recipe=name, embedder=embedder, language_model=model) as index:
        index.build([*KEPT[:5], *SECRET, *KEPT[5:]])
        assert any("vexalot" in hit.unit.text.lower() for hit in index.search("Zorquine Vexalot", 5))
        assert len(files_with_canary(tmp_path / "ix")) >= 2
        index.delete([document.id for document in SECRET])
        index.purge()
        assert files_with_canary(tmp_path / "ix") == []
        hits = index.search("Zorquine Vexalot met Lord Ashby", 500)
        assert not any("vexalot" in repr(hit).lower() for hit in hits)
        found = read_contents(tmp_path / "ix")
        assert "vexalot" not in repr(found).lower()
        asked = len(model.log) if model else 0
        index.update([Document("new", "Nothing here.")])
        if model:
            said = " ".join(call.data for call in model.log[asked:]).lower()
            assert "vexalot" not in said
    assert files_with_canary(tmp_path / "ix") == []


def test_a_replaced_text_is_purged_too(tmp_path):
    with Index(tmp_path / "ix", recipe="indexrag") as index:
        index.build([*KEPT, *SECRET])
        assert files_with_canary(tmp_path / "ix")
        # Behind the update nothing may be left already: SQLite overwrites what is deleted where it was built so.
        index.update([Document(document.id, "Lord Ashby sailed.", "Title") for document in SECRET])
        index.purge()
        assert files_with_canary(tmp_path / "ix") == []
        assert index.stats()["documents"] == len(KEPT) + len(SECRET)


def test_a_passage_shared_with_another_document_keeps_its_record(tmp_path):
    model = ScriptedModel()
    shared = Document("copy", KEPT[0].text, KEPT[0].title, KEPT[0].metadata)
    with Index(tmp_path / "ix", recipe="indexrag", embedder=HashEmbedder(), language_model=model) as index:
        index.build([shared, *KEPT])
        before = read_contents(tmp_path / "ix").said()
        index.delete(["copy"])
        index.purge()
        asked = len(model.log)
        index.add([shared])
        assert len(model.log) == asked
        assert read_contents(tmp_path / "ix").said() == before


def test_a_reader_elsewhere_delays_the_purge_and_nothing_is_lost(tmp_path, monkeypatch):
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: connect(*args, **{**kwargs, "timeout": 0.1}))
    with Index(tmp_path / "ix", recipe="flat", embedder=HashEmbedder()) as index:
        index.build([*KEPT, *SECRET])
        index.delete(["secret", "other"])
        reader = connect(str(tmp_path / "ix" / "index.sqlite"), isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM units").fetchone()
        with pytest.raises(IndexLockedError, match="purge again"):
            index.purge()
        reader.close()
        index.purge()
        assert files_with_canary(tmp_path / "ix") == []
        assert index.stats()["documents"] == len(KEPT)


def test_a_snapshot_that_waits_for_the_collector_delays_nothing(tmp_path):
    gc.disable()
    try:
        with Index(tmp_path / "ix", recipe="raptor", embedder=HashEmbedder()) as index:
            index.build([*KEPT, *SECRET])
            waiting = [index.snapshot()]
            waiting.append(waiting)
            del waiting
            index.delete([document.id for document in SECRET])
            index.purge()
    finally:
        gc.enable()
    assert files_with_canary(tmp_path / "ix") == []
