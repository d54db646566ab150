"""Derived arrays are kept for the next process, and made again when they are damaged."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core import Index
from sire_core.data import demo_documents
from sire_core.recipes import iier
from sire_core.search.chain_graph import ChainGraph
from sire_core.search.passage_words import PassageWords
from sire_core.search.stored_arrays import join_words, split_words, stored_arrays
from sire_core.testing.hash_embedder import HashEmbedder


class Maker:
    def __init__(self):
        self.made = 0

    def __call__(self):
        self.made += 1
        return {"a": np.arange(3), "b": np.zeros((0, 2), dtype=np.float32)}


def same(left, right):
    return left.keys() == right.keys() and all(np.array_equal(left[key], right[key]) for key in left)


def test_arrays_are_made_once_per_folder(tmp_path):
    view, make = SimpleNamespace(directory=tmp_path), Maker()
    assert same(stored_arrays(view, "x", make), stored_arrays(view, "x", make))
    assert make.made == 1
    assert [file.name for file in tmp_path.iterdir()] == ["x.npz"]


@pytest.mark.parametrize("damage", [b"", b"no archive", b"PK\x03\x04 cut off"])
def test_damaged_files_are_made_again(tmp_path, damage):
    view, make = SimpleNamespace(directory=tmp_path), Maker()
    expected = stored_arrays(view, "x", make)
    (tmp_path / "x.npz").write_bytes(damage)
    assert same(stored_arrays(view, "x", make), expected)
    assert make.made == 2


def test_a_folder_that_is_gone_costs_time_only(tmp_path):
    for directory in (None, tmp_path / "gone"):
        make = Maker()
        assert stored_arrays(SimpleNamespace(directory=directory), "x", make)["a"].tolist() == [0, 1, 2]
        assert make.made == 1


@given(st.lists(st.text(st.characters(exclude_characters="\n")), max_size=8))
def test_words_come_back(words):
    assert split_words(join_words(words), len(words)) == words


def test_a_graph_read_from_its_file_is_the_graph(tmp_path):
    seen = []
    for _ in range(2):
        with Index(tmp_path / "i", recipe=iier(), embedder=HashEmbedder()) as index:
            if not seen:
                index.build(demo_documents())
            view = index.view()
            graph = ChainGraph.of(view)
            words = PassageWords.of(view, graph.positions)
            names = [field for field in ChainGraph.__slots__ if field not in ("keyword_of", "keys", "vectors")]
            seen.append(
                (
                    {name: getattr(graph, name).tolist() for name in names},
                    dict(graph.keyword_of),
                    list(graph.keys),
                    words.titled("The Salt Lantern").tolist(),
                    words.with_phrase("was born").tolist(),
                )
            )
            assert len(list(view.directory.glob("*.npz"))) == 2
    assert seen[0] == seen[1]
    assert seen[0][3]
    assert seen[0][4]
