"""Titles of files through changes: what a change of one part means for the others, without reading all documents."""

import random

import pytest
from langchain_core.documents import Document

from langchain_sire import SireRetriever
from sire_core.index import Index
from sire_core.types import Document as CoreDocument


def part(name, file, title="", own=""):
    text = f"---\ntitle: {title}\n---\nWords of {name}." if title else f"Words of {name}."
    return Document(id=name, page_content=text, metadata={"source": file, **({"title": own} if own else {})})


def titles(retriever):
    return {document.id: document.title for document in retriever.index.documents()}


@pytest.mark.parametrize("seed", range(3))
def test_titles_are_those_of_the_files_whatever_the_order_of_changes(tmp_path, seed):
    rng = random.Random(seed)
    known = {}
    retriever = SireRetriever.open(tmp_path, recipe="flat")
    for number in range(15):
        if known and rng.random() < 0.3:
            gone = rng.sample(sorted(known), min(len(known), 2))
            (retriever.delete_documents if rng.random() < 0.5 else retriever.delete)(gone)
            known = {name: document for name, document in known.items() if name not in gone}
        else:
            given = {
                f"d{n}": part(
                    f"d{n}", f"f{rng.randrange(3)}.md", rng.choice(["", "", f"T{number}"]), rng.choice(["", "", "Own"])
                )
                for n in rng.sample(range(12), 2)
            }
            (retriever.add_documents if rng.random() < 0.5 else retriever.upsert)(list(given.values()))
            known |= given
        if rng.random() < 0.3:
            retriever = SireRetriever.load(tmp_path) if known else retriever
        in_parts, in_use = {}, {}
        for name, title in titles(retriever).items():
            text, metadata = known[name].page_content, known[name].metadata
            if own := metadata.get("title"):
                assert title == own
                continue
            in_use.setdefault(metadata["source"], set()).add(title)
            in_parts.setdefault(metadata["source"], set()).add(
                text.split("\n")[1][7:] if text.startswith("---") else ""
            )
        for file, (title,) in in_use.items():
            assert title in in_parts[file] - {""} or in_parts[file] == {title}


def test_sources_of_documents_with_what_waits_and_without_what_is_hidden(tmp_path):
    index = Index(tmp_path, recipe="flat")
    assert index.sources() == {}
    index.build(
        [
            CoreDocument("a", "One.", metadata={"source": "x.md", "tenant": "a"}),
            CoreDocument("b", "Two.", metadata={"source": 7, "file_path": "y.md", "tenant": "b"}),
            CoreDocument("c", "Three.", metadata={"source": "", "tenant": "a"}),
        ]
    )
    index.defer([CoreDocument("d", "Four.", metadata={"file_path": "z.md", "tenant": "a"})], delete=["a"])
    assert index.sources() == {"b": "y.md", "d": "z.md"}
    assert Index(tmp_path, allow="tenant=a").sources() == {"d": "z.md"}


def test_documents_by_id_are_those_of_all_documents(tmp_path):
    index = Index(tmp_path, recipe="flat", chunker="sentences")
    index.build([CoreDocument(f"d{n}", " ".join(f"Sentence {m} of {n}." * 30 for m in range(5))) for n in range(9)])
    every = index.documents()
    assert max(len(document.passages) for document in every) > 1
    assert index.documents(["d7", "d2", "none"]) == [document for document in every if document.id in ("d2", "d7")]
    assert [index.documents(document.id) for document in every] == [[document] for document in every]
