"""Files that an index holds are not read again, and whatever is not sure is read."""

import os
import shutil

import pytest

from sire_core import Document, Index
from support.command import run

LATER = 4_000_000_000  # Nanoseconds after which a file is no longer a fresh one


def age(file):
    """Give a file times of a while ago."""
    status = file.stat()
    os.utime(file, ns=(status.st_atime_ns - LATER, status.st_mtime_ns - LATER))


@pytest.fixture
def source(tmp_path):
    place = tmp_path / "docs"
    place.mkdir()
    for name in ("ada", "otto", "petra"):
        (place / f"{name}.md").write_text(f"# {name.title()}\n\n{name.title()} lives in Lindle.")
    return place


@pytest.fixture
def folder(tmp_path, source):
    run("index", source, "--to", tmp_path / "ix")
    return tmp_path / "ix"


def text_of(folder, name):
    with Index(folder) as index:
        return index.documents([name])[0].text


def sync(source, folder, *words):
    return run("sync", source, "--to", folder, "--yes", *words)


def test_what_did_not_change_is_not_read(source, folder):
    assert "Read 0 documents; 3 files unchanged." in sync(source, folder).stderr
    (source / "ada.md").write_text("Ada moved to Varn.")
    (source / "new.md").write_text("Mira is new.")
    (source / "otto.md").unlink()
    changed = sync(source, folder)
    assert "Read 2 documents; 1 file unchanged." in changed.stderr
    assert "1 document added, 1 updated, 1 removed, 1 unchanged" in changed.stdout
    assert text_of(folder, "ada.md") == "Ada moved to Varn."
    for command in (("index", source, "--to", folder), ("add", folder, source), ("update", folder, source)):
        assert "Read 0 documents; 3 files unchanged." in run(*command).stderr
    assert "Read 1 document." in run("update", folder, source / "ada.md").stderr


def test_files_that_are_gone_are_named_until_a_sync_removes_their_documents(source, folder):
    (source / "ada.md").rename(source / "lake.md")
    (source / "otto.md").unlink()
    for command in (("index", source, "--to", folder), ("update", folder, source)):
        said = " ".join(run(*command).stderr.split())
        assert f"2 documents are no longer in {source} (ada.md, otto.md); `sire sync` removes them." in said
    run("delete", folder, "otto.md")
    assert "1 document is no longer in" in run("index", source, "--to", folder).stderr
    assert "no longer in" not in run("index", source / "lake.md", "--to", folder).stderr
    sync(source, folder)
    assert "no longer in" not in run("index", source, "--to", folder).stderr


def test_another_text_of_the_same_size_and_time_is_read(source, folder):
    file = source / "ada.md"
    age(file)
    sync(source, folder)
    before = file.stat()
    file.write_text(file.read_text().replace("Lindle", "Lundle"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    sync(source, folder)
    assert "Lundle" in text_of(folder, "ada.md")


def test_a_copy_with_other_times_is_compared_and_not_read(source, folder):
    os.utime(source / "ada.md")
    assert "3 files unchanged" in sync(source, folder).stderr
    moved = source.with_name("moved")
    shutil.move(source, moved)  # other paths: they are read
    assert "Read 3 documents." in sync(moved, folder).stderr


def test_the_index_is_what_counts(source, folder):
    run("delete", folder, "ada.md")
    with Index(folder) as index:
        index.update([Document("otto.md", "Somebody else wrote this.")])
    assert "Read 2 documents; 1 file unchanged." in sync(source, folder).stderr
    assert "Ada lives" in text_of(folder, "ada.md")
    assert "Otto lives" in text_of(folder, "otto.md")
    with Index(folder) as index:
        index.defer([Document("otto.md", "This one waits.")])
    sync(source, folder)
    assert "Otto lives" in text_of(folder, "otto.md")


@pytest.mark.parametrize("damage", [lambda file: file.write_text("{"), lambda file: file.unlink()])
def test_without_the_list_everything_is_read(source, folder, damage):
    damage(folder / "known_files.json")
    assert "Read 3 documents." in sync(source, folder).stderr
    assert "3 files unchanged" in sync(source, folder).stderr


def test_other_rules_of_cutting_read_everything(source, folder):
    (source / "long.md").write_text("Ada sails the lake in winter. " * 60)
    sync(source, folder)
    again = run("index", source, "--to", folder, "--chunk-tokens", 100)
    assert "Read 4 documents." in again.stderr
    with Index(folder) as index:
        assert len(index.documents(["long.md"])[0].chunks) > 1


def test_a_record_with_the_id_of_a_known_file_is_a_conflict(source, folder):
    (source / "notes.jsonl").write_text('{"id": "ada.md", "text": "Another text."}\n')
    assert "'ada.md'" in run("sync", source, "--to", folder, "--yes", code=1).stderr
    assert "Ada lives" in text_of(folder, "ada.md")


def test_files_with_failures_and_records_are_read_every_time(source, folder):
    (source / "notes.jsonl").write_text('{"id": "n1", "text": "A note."}\nno json\n')
    (source / "bad.md").write_bytes(b"bad\0\xe9")
    for _ in range(2):
        result = sync(source, folder)
        assert "bad.md" in result.stderr
        assert "notes.jsonl" in result.stderr
        assert "Read 1 document; 3 files unchanged." in result.stderr


def test_purging_removes_the_names_of_files(source, folder):
    run("delete", folder, "ada.md", "--purge")
    assert not any(b"ada.md" in file.read_bytes() for file in folder.rglob("*") if file.is_file())
