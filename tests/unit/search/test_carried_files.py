"""What a process leaves behind so that another one need not read all passages again after a change."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.arrays.lists import Lists
from sire_core.recipes.sire.evidence_index import EvidenceIndex
from sire_core.recipes.sire.passage_arrays import PassageWords
from sire_core.search import view
from sire_core.testing.doubles import HashEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

QUESTION = "Who married Orla Venn?"
COUNT = 60
TOWNS = [
    Document(f"t{i}", f"Tobin Marsh {i} built organs in Élne {i}.\n\n# Years\n\nOrla Venn {i} saw it.", f"Town {i}")
    for i in range(COUNT)
]
NEW = Document("new", "Orla Venn & Sons (1931) married 한국 Élise Aubry near Town 7.", "Orla Venn (painter)")


@pytest.fixture(autouse=True)
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many passages are read, each time; files are worth while for few, too."""
    monkeypatch.setattr(view, "_WORTH_FILES", 10)
    found: list[int] = []
    whole = PassageWords.read.__func__  # type: ignore[attr-defined]

    def counted(cls: type, ids: Sequence[bytes], units: object, runner: object) -> PassageWords:
        found.append(len(ids))
        return whole(cls, ids, units, runner)

    monkeypatch.setattr(PassageWords, "read", classmethod(counted))
    return found


def opened(folder: Path | None) -> Index:
    return Index(folder, recipe="sire", embedder=HashEmbedder())


def built(folder: Path) -> Path:
    with opened(folder) as index:
        index.build(TOWNS)
    return folder


def arrays(index: Index) -> Iterator[tuple[str, NDArray[np.generic]]]:
    found = EvidenceIndex.of(index.snapshot().view)
    for field in (entry for entry in fields(EvidenceIndex) if entry.init):
        value = getattr(found, field.name)
        yield from (
            (field.name, part) for part in ((value.starts, value.values) if isinstance(value, Lists) else (value,))
        )


def carried(folder: Path) -> dict[str, tuple[int, int]]:
    """The files, and whether they were written again."""
    files = folder.glob("derived/*-carried/*/*.npz")
    return {file.name: (file.stat().st_ino, file.stat().st_mtime_ns) for file in files}


def assert_as_fresh(index: Index) -> None:
    with opened(None) as fresh:
        fresh.build(index.documents())
        fresh.search(QUESTION)
        for (name, mine), (_, theirs) in zip(arrays(index), arrays(fresh), strict=True):
            np.testing.assert_array_equal(mine, theirs, err_msg=name)


@pytest.mark.parametrize("damage", ["noise", "cut", "another structure"])
def test_damaged_files_are_made_again(tmp_path: Path, read: list[int], damage: str) -> None:
    folder = built(tmp_path / "ix")
    [words] = folder.glob("derived/*-carried/*/words.npz")
    [names] = folder.glob("derived/*-carried/*/names.npz")
    whole = words.read_bytes()
    words.write_bytes({"noise": b"noise", "cut": whole[:-9], "another structure": names.read_bytes()}[damage])
    with opened(folder) as index:
        index.add([NEW])
        index.search(QUESTION)
        assert read == [COUNT, COUNT + 1]
        assert_as_fresh(index)
    with opened(folder) as index:
        index.add([replace(NEW, id="more", text="More.")])
        index.search(QUESTION)
    assert read[3:] == [1], "and were right again for the next process"


def test_a_purge_leaves_none(tmp_path: Path, read: list[int]) -> None:
    folder = built(tmp_path / "ix")
    with opened(folder) as index:
        index.delete(["t3"])
        assert carried(folder)
        index.purge()
        assert not carried(folder)
        index.search(QUESTION)
        assert read == [COUNT, COUNT - 1]
        [words] = folder.glob("derived/*-carried/*/words.npz")
        with np.load(words) as saved:
            assert b"t3" not in saved["ids"].tobytes()
            spelled = saved["names"].tobytes() + saved["spelled"].tobytes()
            assert b"Town 4" in spelled
            assert b'Town 3"' not in spelled
