"""Links and other types of files inside an index folder: never followed, and nothing outside is changed or deleted."""

import os
import shutil

import pytest

from sire_core import Document, Index
from sire_core.errors import SireError
from sire_core.storage.check import check_folder
from sire_core.storage.plain_files import FILES, FOLDERS
from sire_core.testing.doubles import HashEmbedder
from support.command import run

LATE = Document("late", "Boris Veld was born in Izola.")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("links") / "index"
    with Index(path, recipe="raptor", embedder=HashEmbedder()) as index:
        index.build([Document(f"d{i}", f"Alma met Boris in Ceuta. Alma lives in Drava {i}.") for i in range(5)])
    return path


@pytest.fixture
def folder(template, tmp_path):
    copy = shutil.copytree(template, tmp_path / "index")
    os.utime(copy / "index.sqlite", (0, 0))  # nobody is publishing just now
    return copy


@pytest.fixture
def outside(tmp_path):
    """What belongs to the user: folders, files, an empty file."""
    place = tmp_path / "outside"
    for name in ("photos", "a1b2c3d4e5f6-1", "732c705bcdac-carried", "letters"):
        (place / "folder" / name).mkdir(parents=True)
        (place / "folder" / name / "arrays.bin").write_text("mine")
    (place / "file").write_text("mine")
    (place / "empty").touch()
    (place / "folder" / "00000001.json").write_text("mine")
    return place


def contents(place):
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(place.rglob("*"))}


def use(opened, folder):
    """All that a user does with an index; what it says where it refuses."""
    said = []

    def attempt(action):
        try:
            with opened(folder) as index:
                return action(index)
        except SireError as error:
            said.append(str(error))

    for action in (
        lambda index: index.search("Who lives in Drava 3?"),
        lambda index: index.documents(),
        lambda index: index.add([LATE]),
        lambda index: (index.delete(["d1"]), index.purge()),
        lambda index: index.save(folder.with_name("copy")),
        lambda index: index.search("Who lives in Drava 3?"),
    ):
        attempt(action)
    return said


def put(entry, target, how):
    if entry.is_symlink() or entry.is_file():
        entry.unlink()
    elif entry.is_dir():
        shutil.rmtree(entry)
    if how == "pipe":
        os.mkfifo(entry)
    elif how == "other type":
        entry.mkdir() if entry.name in FILES else entry.write_text("x")
    else:
        entry.symlink_to(target)


HOW = ("folder", "file", "empty", "nowhere", "pipe", "other type")


@pytest.mark.parametrize("name", sorted(FILES | FOLDERS))
@pytest.mark.quick(name=["derived", "calls.sqlite", "index.sqlite-wal", "manifest.json", "writer.lock"])
def test_no_entry_of_an_index_is_followed(folder, opened, outside, tmp_path, name):
    before = contents(outside)
    for how in HOW:
        copy = shutil.copytree(folder, tmp_path / how)
        put(copy / name, outside / how, how)
        said = use(opened, copy)
        assert contents(outside) == before
        assert len(said) == 6
        assert all(name in message and "Move it away" in message for message in said)
        (finding,) = check_folder(copy)
        assert finding.file == name


def test_the_command_says_so(folder, outside):
    put(folder / "derived", outside / "folder", "folder")
    assert "derived: it is a link" in run("check", folder, code=1).output
    before = contents(outside)
    for words in (["query", folder, "Who?"], ["delete", folder, "d1"], ["reembed", folder, "--embedder", "lexical"]):
        run(*words, code=1)
    assert contents(outside) == before


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_links_among_derived_files_are_made_again(folder, opened, outside, ids, depth):
    expected = ids(folder)
    before = contents(outside)
    entries = [path for path in (folder / "derived").rglob("*") if len(path.relative_to(folder).parts) == depth + 1]
    for entry in entries or [next((folder / "derived").iterdir()) / "part"]:
        put(entry, outside / "folder", "folder")
    assert check_folder(folder)
    assert ids(folder) == expected
    with opened(folder) as index:
        index.add([LATE])
        index.delete(["late"])
        assert [hit.unit.id for hit in index.search("Who lives in Drava 3?", 4)] == expected
    assert contents(outside) == before


def test_what_a_carried_folder_links_to_stays(folder, opened, outside):
    key = next((folder / "derived").iterdir()).name.rpartition("-")[0]
    (folder / "derived" / f"{key}-carried").symlink_to(outside / "folder")
    before = contents(outside)
    with opened(folder) as index:
        index.add(Document(f"n{i}", f"Alma {i} met Boris {i} in Ceuta.") for i in range(60))
        index.search("Who met Alma 4?")
        index.delete([f"n{i}" for i in range(60)])
    assert contents(outside) == before


@pytest.mark.parametrize("name", ["photos", "notes.txt", ".git", "a1b2-x", "abc"])
def test_what_we_did_not_write_stays_in_derived(folder, opened, name):
    """Directories of the user inside ours outlive changes and a new embedder."""
    mine = folder / "derived" / name
    if "." in name[1:]:
        mine.write_text("mine")
    else:
        mine.mkdir()
        (mine / "00001").write_text("mine")
    before = contents(mine) if mine.is_dir() else mine.read_text()
    with opened(folder) as index:
        index.add([LATE])
        index.delete(["late"])
        index.purge()
    assert (contents(mine) if mine.is_dir() else mine.read_text()) == before
    run("reembed", folder, "--embedder", "lexical")
    assert (contents(mine) if mine.is_dir() else mine.read_text()) == before


def test_a_link_to_an_index_folder_may_be_used(folder, opened, ids, tmp_path):
    (tmp_path / "current").symlink_to(folder)
    assert ids(tmp_path / "current") == ids(folder)
    with opened(tmp_path / "current") as index:
        index.add([LATE])
    assert check_folder(tmp_path / "current") == []
