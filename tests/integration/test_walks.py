"""The walks through the code in CONTRIBUTING are those that the code takes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## Three walks")[1].split("\n## ")[0]
WALKS = dict(re.findall(r"^### ([^:\n]+):.*?\n(.*?)(?=^### |\Z)", TEXT, re.MULTILINE | re.DOTALL))
RUN = {
    "A LangChain call": """
from langchain_sire import SireRetriever
from sire_core.data import demo_documents
from langchain_core.documents import Document
documents = [Document(d.text, id=d.id, metadata={"title": d.title}) for d in demo_documents()[:4]]
SireRetriever.from_documents(documents, k=3).invoke("Who commanded the Northern Wren?")
""",
    "An add": """
import sys
from sire_core import Index
from sire_core.data import demo_documents
with Index(sys.argv[1] + "/index", recipe="msrag") as index:
    index.add(demo_documents()[:8])
""",
    "An eval": """
import json, sys
from pathlib import Path
from sire_core.data import demo_documents
place = Path(sys.argv[1], "data")
place.mkdir()
rows = [{"id": d.id, "title": d.title, "text": d.text} for d in demo_documents()[:8]]
question = {"id": "q", "question": "Who commanded the Northern Wren?", "supporting": [rows[0]["id"]], "answers": ["x"]}
(place / "corpus.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in rows))
(place / "questions.jsonl").write_text(json.dumps(question) + "\\n")
from sire_core.cli.app import app
app(["eval", str(place), "-r", "sire"], standalone_mode=False)
""",
}
TRACE = """
import json, sys, threading
import langchain_core.documents, langchain_core.retrievers, numpy, pydantic, scipy.sparse, typer  # untraced: quick
def note(frame, event, _):
    if event == "call":
        code = frame.f_code
        called.setdefault((code.co_filename, code.co_name), len(called))
threading.setprofile(note)
walks = {{}}
for name, code in {walks!r}.items():
    called = {{}}
    sys.setprofile(note)
    exec(code, {{}})
    sys.setprofile(None)
    walks[name] = sorted(called, key=called.get)
with open(sys.argv[1] + "/called.json", "w") as file:
    json.dump(walks, file)
"""


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """By walk what it called, in the order of the first calls."""
    place = tmp_path_factory.mktemp("walks")
    command = [sys.executable, "-c", TRACE.format(walks=RUN), str(place)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads((place / "called.json").read_text())


def named(walk):
    """(file, function) of a walk, in its order."""
    found = []
    for line in re.findall(r"^\d+\. (.*)$", WALKS[walk], re.MULTILINE):
        file = ""
        for word in re.findall(r"`([^`]+)`", line):
            if word.endswith(".py") and word.split("/")[0] in ("core", "langchain_sire"):
                assert (ROOT / word).exists(), word
                file = word
            elif re.fullmatch(r"_?[a-z][a-z_]*", word):
                found.append((file, word))
    return found


def test_a_walk_has_ten_lines():
    assert list(WALKS) == list(RUN)
    assert [len(re.findall(r"^\d+\. ", text, re.MULTILINE)) for text in WALKS.values()] == [10, 10, 10]


@pytest.mark.parametrize("walk", RUN)
def test_every_function_of_a_walk_is_called_in_its_order(walk, called):
    order = {
        (str(Path(file).relative_to(ROOT)), name): place
        for place, (file, name) in enumerate(called[walk])
        if file.startswith(str(ROOT))
    }
    missing = [pair for pair in named(walk) if pair not in order]
    assert missing == []
    places = [order[pair] for pair in named(walk)]
    assert len(places) >= 10
    swapped = [
        pair for pair, before, place in zip(named(walk)[1:], places[:-1], places[1:], strict=True) if before > place
    ]
    assert swapped == []
