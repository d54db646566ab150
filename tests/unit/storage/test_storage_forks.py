"""Servers that open an index and fork their workers."""

import os

import pytest

SCRIPT = """
import os, sys, warnings
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
from sire_core.index import Index
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Document
index = Index(sys.argv[1], embedder=HashEmbedder())
def ids():
    return [hit.unit.id for hit in index.search("Who lives in Drava 3?", 4)]
expected = ids()
held = index.snapshot()
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert ids() == expected
            assert [hit.unit.id for hit in held.search("Who lives in Drava 3?", 4)] == expected
            if number == 2:
                index.add([Document("late", "Zelda rules Zadar.")])
                assert index.search("Zelda", 1)[0].doc_ids == ("late",)
            code = 0
        finally:
            os._exit(code)
    children.append(child)
    assert ids() == expected if number < 2 else True
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(codes, index.search("Zelda", 1)[0].doc_ids)
index.delete(["late"])
assert ids() == expected
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_index_that_is_open_before_a_fork_works_in_parent_and_children(folder, run):
    done = run(SCRIPT, folder)
    assert done.stdout.strip() == "[0, 0, 0] ('late',)", done.stderr
    assert done.stderr == ""
