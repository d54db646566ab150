"""What both retrievers promise: the user's own data, folders, changes, titles, models, words, and the hits of the core."""

import asyncio
import copy
import os
import pickle
import shutil
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from uuid import UUID

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents, demo_questions
from sire_core.documents.chunker import SentenceChunker
from sire_core.errors import ConfigurationError, CorpusError, EmbedderMismatchError, IndexMissingError
from sire_core.files.readers import read_documents
from sire_core.recipes import REGISTRY
from sire_core.testing.doubles import HashEmbedder
from support.adapters import ADAPTERS
from support.command import run, run_python

TEXTS = {
    "film": "The Salt Lantern is a film of 1931. It was directed by Petra Quillon.",
    "person": "Petra Quillon was born in Varn Harbour. She was a painter before.",
    "town": "Varn Harbour is a town with a pier. Its school was founded by Otto Brack.",
}
QUESTION = "Where was the director of The Salt Lantern born?"


@pytest.fixture
def texts(adapter):
    return [adapter.document(name, text, source=f"{name}.md", lang="en") for name, text in TEXTS.items()]


def names(retriever):
    return sorted(document.id for document in retriever.index.documents())


def titles(retriever):
    return {document.id: document.title for document in retriever.index.documents()}


@pytest.mark.quick(recipe=["sire", "sirerag"])
@pytest.mark.parametrize("recipe", ["sire", "iier", "raptor", "sirerag", "indexrag", "smart"])
def test_documents_come_back_with_their_ids_and_all_metadata(adapter, texts, recipe):
    retriever = adapter.Retriever.from_documents(texts, recipe=recipe, k=50)
    found = adapter.search(retriever, QUESTION)
    assert {hit.id: (hit.text, hit.metadata) for hit in found} == {
        name: (text, {"source": f"{name}.md", "lang": "en"}) for name, text in TEXTS.items()
    }
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)
    assert len(adapter.search(retriever, QUESTION, k=2)) == 2


def test_hits_and_quotes_name_the_headings_above_them_and_all_their_pages(adapter):
    text = (
        "# Boilers\n\nThe pump is primed by hand.\n\n## Valves\n\nThe valve opens at three bars.\n\fThe lid is blue.\n"
    )
    index = Index(chunker=SentenceChunker(24, overlap_tokens=0))
    index.build(
        [Document("manual.pdf", f"{text}\fThe hatch is green, and nobody opens it in winter.\n", title="Plant")]
    )
    question = "At how many bars does the valve open?"
    [hit] = adapter.search(adapter.over(index, k=1), question)
    assert (hit.title, hit.pages) == ("Plant > Boilers > Valves", [1, 2])
    [quote] = adapter.search(adapter.over(index, k=1, max_tokens=12), question)
    assert ("three bars" in quote.text, quote.pages) == (True, [1])
    plain = adapter.Retriever.from_documents([adapter.document("a", "The hatch opens.")], k=1)
    assert [(hit.title, hit.pages) for hit in adapter.search(plain, "What opens?")] == [("", None)]


def test_units_have_what_their_passages_agree_on(adapter, texts):
    retriever = adapter.Retriever.from_documents(texts, recipe="sirerag", returns="units", k=50)
    mixed = [hit for hit in adapter.search(retriever, QUESTION) if len(hit.doc_ids) > 1]
    assert mixed
    for hit in mixed:
        assert (hit.metadata["lang"], "source" in hit.metadata) == ("en", False)
        assert sorted(hit.differing["source"]) == sorted(f"{name}.md" for name in hit.doc_ids)


def test_metadata_of_any_type_comes_back_and_can_be_filtered(adapter):
    typed = {
        "at": datetime(2024, 5, 31, 10, tzinfo=timezone.utc),
        "day": date(2024, 5, 31),
        "path": Path("a/b.md"),
        "tags": {"b", "a"},
        "n": (1, 2),
        "deep": {"days": [date(2024, 1, 1)]},
        "id_": UUID(int=7),
        "price": Decimal("1.50"),
        "plain": "text",
    }
    retriever = adapter.Retriever.from_documents([adapter.document("a", "A lighthouse.", **typed)], recipe="flat")
    (found,) = adapter.search(retriever, "lighthouse", filter={"day": {"gte": date(2024, 5, 1)}})
    assert found.metadata == typed
    assert adapter.search(retriever, "lighthouse", filter={"day": {"gt": date(2024, 6, 1)}}) == []


def test_from_documents_adds_to_an_index_that_is_there(adapter, texts, tmp_path):
    adapter.Retriever.from_documents(texts, path=tmp_path / "i").index.close()
    more = [adapter.document("new", "A new text."), adapter.document("film", "Another film.")]
    retriever = adapter.Retriever.from_documents(more, path=tmp_path / "i", k=30)
    assert names(retriever) == ["film", "new", "person", "town"]
    assert "Another film." in {hit.text for hit in adapter.search(retriever, "film")}
    assert names(adapter.Retriever.from_documents([], path=tmp_path / "i")) == names(retriever)
    retriever.replace_all(more)
    assert names(retriever) == names(adapter.load(tmp_path / "i")) == ["film", "new"]
    with pytest.raises(CorpusError, match="'new'"):
        adapter.add(retriever, *more, adapter.document("new", "Another text."))
    adapter.delete(retriever, "new")
    with pytest.raises(CorpusError, match="Not in the index"):
        adapter.delete(retriever, "new")


def test_documents_that_the_core_has_read_need_no_conversion(adapter, tmp_path):
    (tmp_path / "film.md").write_text("# The Salt Lantern\n\nIt was directed by Petra Quillon.\n")
    (tmp_path / "people.jsonl").write_text(
        '{"id": "quillon", "title": "Petra Quillon", "chunks": ["A painter.", "Born in Orr."]}\n'
    )
    read = read_documents(tmp_path)
    assert len(read) == len(list(read)) == 2
    retriever = adapter.Retriever.from_documents(read, k=9)
    found = adapter.search(retriever, "Petra Quillon")
    assert {name for hit in found for name in hit.doc_ids} == {"film.md", "quillon"}
    assert {hit.text for hit in found} >= {"A painter.", "Born in Orr."}
    (film,) = [hit for hit in found if hit.doc_ids == ["film.md"]]
    assert (film.metadata["source"], titles(retriever)) == (
        "film.md",
        {"film.md": "The Salt Lantern", "quillon": "Petra Quillon"},
    )
    assert names(adapter.Retriever.from_documents(list(read)[:1], ids=["other"])) == ["other"]


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("<html><body><div class='line'><p>Zebra</p></div>" * 20, "HTML tags"),
        ("%PDF-1.4 stream \x02\x03 endstream obj " * 20, "bytes that are no text"),
    ],
)
def test_text_that_was_read_badly_is_warned_of_once(adapter, texts, text, sign):
    bad = [adapter.document(name, f"{name} {text}", source=f"{name}.bin") for name in ("a", "b")]
    with pytest.warns(UserWarning, match="look badly read") as caught:
        adapter.Retriever.from_documents([*texts, *bad], recipe="flat")
    (said,) = [str(each.message) for each in caught if each.category is UserWarning]
    assert f"2 documents look badly read ({sign}): a" in said
    assert "read_documents(folder)" in said
    assert f"of {adapter.package.__name__}." in said


WAYS = (
    "index {file} --to {ix}",
    "add {ix} {file}",
    "sync {file} --to {ix} --dry-run",
    "index {file} --to {ix} --dry-run",
)


@pytest.mark.parametrize("way", WAYS)
def test_the_command_line_adds_no_documents_to_those_of_an_app(adapter, texts, tmp_path, monkeypatch, way):
    monkeypatch.chdir(tmp_path)
    Path("film.md").write_text("# The Salt Lantern\n\nA film.\n")
    adapter.add(adapter.over(Index("ix")), *texts)
    said = run(*way.format(file="film.md", ix="ix").split(), code=1).stderr
    assert said.startswith(f"error: The documents of ix were added by a {adapter.framework} app")
    assert "index into another folder: sire index SRC... --to DIR." in said
    run("delete", "ix", "film")
    assert names(adapter.load("ix")) == ["person", "town"]


def test_an_app_may_add_documents_to_a_folder_of_the_command_line(adapter, texts, tmp_path):
    (tmp_path / "more.md").write_text("# Otto Brack\n\nHe founded a school.\n")
    run("index", tmp_path / "more.md", "--to", tmp_path / "i")
    adapter.Retriever.from_documents(texts, path=tmp_path / "i").index.close()
    run("update", tmp_path / "i", tmp_path / "more.md")
    assert names(adapter.load(tmp_path / "i")) == ["film", "more.md", "person", "town"]


AS_ANOTHER_USER = """
import sys
from pathlib import Path
import {package}
from sire_core.errors import StorageError
from sire_core.storage.check import check_folder
print([(found.file, found.problem) for found in check_folder(Path(sys.argv[1]))])
try:
    {package}.SireRetriever.{load}(sys.argv[1])
except StorageError as error:
    print(error)
"""


@pytest.mark.quick(adapter=ADAPTERS[:1])  # the other starts a process for the same code
def test_settings_that_may_not_be_read_are_not_called_damaged(adapter, texts, tmp_path):
    adapter.Retriever.from_documents(texts, path=tmp_path / "i", recipe="flat", k=2).index.close()
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if prefix and shutil.which("setpriv") is None:
        pytest.skip("no setpriv")
    (settings,) = tmp_path.glob(f"i/{adapter.package.__name__.removesuffix('_sire')}.json")
    settings.chmod(0)
    script = AS_ANOTHER_USER.format(package=adapter.package.__name__, load=adapter.load.__name__)
    checked, said = run_python(script, tmp_path / "i", prefix=prefix).stdout.splitlines()
    assert checked == str([(settings.name, "it may not be read")])
    assert said.startswith(f"{settings} cannot be read: Permission denied.")
    assert "elete" not in said


def test_a_folder_remembers_k(adapter, texts, tmp_path):
    adapter.Retriever.from_documents(texts, path=tmp_path / "i", recipe="flat", k=2).index.close()
    assert len(adapter.search(adapter.load(tmp_path / "i"), QUESTION)) == 2
    assert len(adapter.search(adapter.load(tmp_path / "i", k=1), QUESTION)) == 1
    with pytest.raises(IndexMissingError, match=r"SireRetriever.from_documents\(documents, p"):
        adapter.load(tmp_path / "none")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("A mill.")
    with pytest.raises(IndexMissingError, match=f"notes, but other files.*'{tmp_path / 'notes'}-index'"):
        adapter.load(tmp_path / "notes")


def test_another_recipe_of_the_folder_for_one_search(adapter, texts, tmp_path):
    for recipe in ("raptor", "pagerank"):
        adapter.Retriever.from_documents(texts, recipe=recipe, path=tmp_path / "i").index.close()
    raptor, pagerank = (adapter.load(tmp_path / "i", recipe=recipe) for recipe in ("raptor", "pagerank"))
    expected = adapter.search(pagerank, QUESTION)
    assert adapter.search(raptor, QUESTION, recipe="pagerank") == expected != adapter.search(raptor, QUESTION)
    adapter.add(raptor, adapter.document("new", "A new text about Varn Harbour."))
    assert "new" in {hit.id for hit in adapter.search(raptor, "A new text", recipe="pagerank", k=9)}


def test_a_folder_keeps_the_recipe_of_its_first_build(adapter, documents, question, tmp_path):
    retriever = adapter.Retriever.from_documents(documents, recipe="sire", path=tmp_path / "i")
    found = adapter.search(retriever, question)
    retriever.index.save(tmp_path / "copy")
    for folder in (tmp_path / "i", tmp_path / "copy"):
        with Index(folder, recipe="raptor", chunker=None) as other:
            other.build(other.documents())
        for again in (adapter.load(folder), adapter.Retriever.from_documents([], path=folder)):
            assert again.index.stats()["recipe"] == "sire"
            assert [hit.id for hit in adapter.search(again, question, k=len(found))] == [hit.id for hit in found]
        assert adapter.load(folder, recipe="raptor").index.stats()["recipe"] == "raptor"
    assert adapter.search(retriever, question) == found
    retriever.index.set_default_recipe("raptor")
    assert adapter.load(tmp_path / "i").index.stats()["recipe"] == "raptor"
    retriever.index.drop_recipe("sire")
    with pytest.raises(ConfigurationError, match=r"does not hold 'sire' \(it holds: raptor\). Choose one of these"):
        adapter.search(adapter.load(tmp_path / "i", recipe="sire"), question)


def test_retrievers_can_be_copied_and_sent_to_other_processes(adapter, texts, tmp_path):
    retriever = adapter.Retriever.from_documents(texts, path=tmp_path / "i", k=3)
    expected = adapter.search(retriever, QUESTION)
    for again in (pickle.loads(pickle.dumps(retriever)), copy.deepcopy(retriever)):
        assert adapter.search(again, QUESTION) == expected
    with_model = pickle.loads(pickle.dumps(adapter.load(tmp_path / "i", llm=adapter.llm)))
    assert adapter.search(with_model, QUESTION) == expected
    memory = adapter.Retriever.from_documents(texts, recipe="flat")
    assert adapter.search(copy.deepcopy(memory), QUESTION) == adapter.search(memory, QUESTION)
    with pytest.raises(Exception, match="Give it a path"):
        pickle.dumps(memory)


async def test_a_callers_filter_narrows_and_never_widens(adapter, index_of, question):
    people = adapter.over(index_of("sirerag"), filter={"kind": "person"}, k=50)
    found = adapter.search(people, question)
    assert {hit.metadata["kind"] for hit in found} == {"person"}
    assert await adapter.asearch(people, question) == found
    assert adapter.search(people, question, filter={"kind": "ship"}) == []
    assert adapter.search(people, question, filter={"kind": {"in": ["person", "ship"]}}) == found
    assert adapter.search(people, question, filter="kind=person", k=2) == found[:2]


CLUSTERS = {"Heron": "green", "Gull": "blue", "Tern": "red"}


@pytest.mark.default_recipe
@pytest.mark.parametrize("opened_over_an_index", [False, True])
def test_headings_under_any_keys_are_searched_and_a_folder_remembers_the_keys(adapter, tmp_path, opened_over_an_index):
    def parts(name, cluster):
        said = {"Production": f"Production runs on the cluster {cluster}.", "Staging": "Staging runs beside it."}
        return [adapter.document(f"{name} {part}", text, page=name, section=part) for part, text in said.items()]

    if opened_over_an_index:
        first = adapter.over(Index(tmp_path / "i", chunker=None), title_key=["page", "section"])
        adapter.add(first, *parts("Heron", "green"))
    else:
        given = {"title_key": ["page", "section"], "path": tmp_path / "i"}
        first = adapter.Retriever.from_documents(parts("Heron", "green"), **given)
    adapter.add(first, *parts("Gull", "blue"))
    first.index.close()
    again = adapter.load(tmp_path / "i")
    assert again.index.recipe_name == "sire"
    adapter.add(again, *parts("Tern", "red"))
    for name, cluster in CLUSTERS.items():
        assert cluster in adapter.search(again, f"On which cluster does production of {name} run?", k=1)[0].text
    assert {hit.unit.title for hit in again.index.search("production", 9)} >= {"Heron > Production", "Tern > Staging"}
    again.index.close()
    other = adapter.over(Index(tmp_path / "i"), title_key="page")
    adapter.add(other, *parts("Wren", "grey"))
    other.index.close()
    assert adapter.load(tmp_path / "i").title_key == ["page", "section"]


def ferries(adapter, *kinds):
    return [adapter.document(kind, f"Ferries sail at noon, so the {kind} says.", kind=kind) for kind in kinds]


@pytest.mark.parametrize("way", ["from_documents", "from_no_documents", "from_texts", "over_an_index", "copy"])
def test_a_folder_stores_the_options_of_the_object_that_adds_documents(adapter, tmp_path, way):
    options, folder = {"filter": "kind=mail", "k": 1}, tmp_path / "i"
    given = ferries(adapter, "mail", "note", "page")
    if way == "over_an_index":
        writer = adapter.over(Index(folder), **options)
        adapter.add(writer, *given)
    elif way == "from_texts":
        texts, metadata = ["Ferries sail.", "Ferries wait."], [{"kind": "mail"}, {"kind": "note"}]
        writer = adapter.Retriever.from_texts(texts, metadatas=metadata, ids=["mail", "note"], path=folder, **options)
    elif way == "copy":
        writer = adapter.Retriever.from_documents(given, **options)
        (writer.save if adapter.name == "langchain" else writer.persist)(folder)
    else:
        first = given if way == "from_documents" else []
        writer = adapter.Retriever.from_documents(first, path=folder, **options)
        adapter.add(writer, *given)
    writer.index.close()
    loaded = adapter.load(folder)
    assert [hit.metadata["kind"] for hit in adapter.search(loaded, "When do ferries sail?")] == ["mail"]
    loaded.index.close()
    assert len(adapter.search(adapter.load(folder, filter=None, k=3), "ferries")) > 1


def test_options_that_are_given_replace_stored_ones_and_nothing_else_does(adapter, tmp_path, caplog):
    folder = tmp_path / "i"
    adapter.Retriever.from_documents(ferries(adapter, "mail", "note"), path=folder, filter="kind=mail").index.close()

    def stored_with(writer, name):
        adapter.add(writer, *ferries(adapter, name))
        writer.index.close()
        loaded = adapter.load(folder)
        hits = adapter.search(loaded, "When do ferries sail?")
        loaded.index.close()
        return {hit.metadata["kind"] for hit in hits}, len(hits)

    assert stored_with(adapter.load(folder, filter=None), "page") == ({"mail"}, 1)
    assert stored_with(adapter.over(Index(folder)), "fax") == ({"mail"}, 1)
    assert stored_with(adapter.load(folder, filter=None).as_retriever(filter="kind=note", k=1), "post") == ({"mail"}, 1)
    assert "and has" not in caplog.text
    assert stored_with(adapter.over(Index(folder), filter="kind=note"), "sign") == ({"note"}, 1)
    assert "{'kind': {'eq': 'note'}} now." in caplog.text
    assert stored_with(adapter.Retriever.from_documents([], path=folder, filter=None, k=2), "card")[1] == 2
    assert "and has no filter" in caplog.text.replace("filters", "filter")


@pytest.mark.parametrize("other_process", [False, True])
def test_all_documents_of_a_file_follow_its_title(adapter, tmp_path, other_process):
    """After any change the titles are those of an index that is made anew from the same documents."""

    def part(name, text, file="a.md", **more):
        return adapter.document(name, text, **{adapter.source_key: file, **more})

    given = [
        part("1", "---\ntitle: The queue\n---\nFirst words."),
        part("2", "Second words."),
        part("own", "Third.", title="Mine"),
        part("b", "Other words.", "b.md"),
    ]
    retriever = adapter.Retriever.from_documents(given, path=tmp_path / "i", recipe="flat")
    documents = dict(zip(("1", "2", "own", "b"), given, strict=True))

    def titles_after(put=None, delete=()):
        writer = adapter.load(tmp_path / "i") if other_process else retriever
        if put:
            documents.update(put)
            adapter.add(writer, *put.values())
        for name in delete:
            del documents[name]
            adapter.delete(writer, name)
        expected = titles(adapter.Retriever.from_documents(list(documents.values()), recipe="flat"))
        assert titles(retriever) == expected
        return expected

    assert titles_after() == {"1": "The queue", "2": "The queue", "own": "Mine", "b": ""}
    assert titles_after({"1": part("1", "---\ntitle: The list\n---\nFirst words.")})["2"] == "The list"
    changed = {"b": part("b", "+++\ntitle = 'B'\n+++\nOther.", "b.md"), "b2": part("b2", "More.", "b.md")}
    assert titles_after(changed)["b2"] == "B"
    assert titles_after({"2": part("2", "Second words.", "b.md")})["2"] == "B"
    titles_after({"1": part("1", "No title any more.")})
    assert titles_after({"2": part("2", "Second words.")})["2"] == ""
    assert titles_after(delete=["b"])["b2"] == ""
    retriever.replace_all([part("1", "---\ntitle: Last\n---\nFirst words."), documents["2"]])
    assert titles(retriever) == {"1": "Last", "2": "Last"}


@pytest.mark.parametrize(
    ("before", "after", "stays"),
    [
        ("a1 b2", "a3", "b"),
        ("a1 b2", "a1", "b"),
        ("a1", "c2", "a"),
        ("a1 b2 c3", "d1 e2", "a, b, c"),
        ("a1 b2", "b5 a4 c1", ""),
    ],
)
def test_parts_that_a_new_split_of_a_file_leaves_are_named(adapter, caplog, before, after, stays):
    def parts(names, file="rota.md"):
        where = {adapter.source_key: file}
        return [adapter.document(name, f"Person {number} is on call.", **where) for name, number in names.split()]

    retriever = adapter.Retriever.from_documents([*parts(before), *parts("z9", "z.md")], recipe="flat")
    adapter.add(retriever, *parts(after))
    assert (f"of rota.md beside those that were given now ({stays})" in caplog.text) == bool(stays)
    assert ("replace_source=True" in caplog.text) == bool(stays)
    caplog.clear()
    adapter.add(retriever, *parts("y1"))
    assert bool(caplog.text) != bool(stays), "once per file: further parts may be added one by one"
    caplog.clear()
    adapter.delete(retriever, "y")
    adapter.add(retriever, *parts("y2"))
    assert "rota.md" in caplog.text, "what is added after parts were taken out is looked at again"


def test_an_index_without_its_embedding_model_says_how_to_pass_it(adapter, texts, tmp_path):
    path = tmp_path / "i"
    adapter.Retriever.from_documents(texts, embedder=adapter.bridged_embedding, path=path, recipe="flat").index.close()
    assert adapter.search(adapter.load(path, embedder=adapter.bridged_embedding), QUESTION)
    with pytest.raises(EmbedderMismatchError, match=r"SireRetriever\.\w+\(path, "):
        adapter.search(adapter.load(path), QUESTION)
    with pytest.raises(EmbedderMismatchError, match=rf"{adapter.bridged_embedding.fingerprint}.*hash/1"):
        adapter.load(path, embedder=HashEmbedder())


def test_vectors_of_another_length_under_the_same_name_are_refused(adapter, texts, tmp_path):
    short, long = (adapter.named_embedder("same", size) for size in (8, 16))
    adapter.Retriever.from_documents(texts, embedder=short, path=tmp_path / "i", recipe="flat").index.close()
    with pytest.raises(EmbedderMismatchError, match="length 16, but the index holds vectors of length 8"):
        adapter.load(tmp_path / "i", embedder=long)
    opened = adapter.Retriever.from_documents([], embedder=long, path=tmp_path / "i")
    with pytest.raises(EmbedderMismatchError, match="another length"):
        adapter.add(opened, adapter.document("new", "Otto sang it."))
    opened.index.close()
    assert adapter.search(adapter.load(tmp_path / "i", embedder=short), QUESTION)


def test_a_class_or_something_else_in_the_place_of_an_object_is_named(adapter, texts):
    make = adapter.Retriever.from_documents
    for wrong in (type(adapter.llm), object()):
        with pytest.raises(ConfigurationError, match=r"(is a class \(pass an object|object is no).*llm is a"):
            make(texts, llm=wrong)
    with pytest.raises(ConfigurationError, match=r"HashEmbedder is a class \(pass an object: HashEmbedder"):
        make(texts, embedder=HashEmbedder)
    with pytest.raises(ConfigurationError, match="is a class"):
        make(texts, vector_store=type(adapter.vector_store()))
    with pytest.raises(ConfigurationError, match=rf"pass it as llm=... of {adapter.package.__name__}"):
        Index(language_model=adapter.llm)


@pytest.mark.parametrize("door", ["from_documents", "from_documents with ids", "from_texts", "add", "replace_all"])
def test_what_is_no_list_of_documents_is_named_with_what_is_expected(adapter, texts, door):
    retriever = adapter.over(Index(recipe="flat"))
    doors = {
        "from_documents": lambda documents: adapter.Retriever.from_documents(documents, recipe="flat"),
        "from_documents with ids": lambda d: adapter.Retriever.from_documents(d, ids=["a"], recipe="flat"),
        "from_texts": lambda documents: adapter.Retriever.from_texts(documents, recipe="flat"),
        "add": getattr(retriever, "add_documents", None) or getattr(retriever, "refresh_ref_docs", None),
        "replace_all": retriever.replace_all,
    }
    theirs = [one.document("a", "Text.") for one in ADAPTERS if one.name != adapter.name]  # none where one is missing
    objects = {None: "None", 5: "int", "text": "str"} | ({} if door == "from_texts" else {("text",): "number 0 is str"})
    for documents, expected in [
        *objects.items(),
        ([None], "number 0 is None"),
        *(([one], type(one).__name__) for one in theirs),
    ]:
        with pytest.raises(CorpusError, match="Expected a list of") as refused:
            doors[door](documents)
        assert str(refused.value).endswith(f"{expected}.")
    home = "llama_index.core" if adapter.name == "langchain" else "langchain_core.documents"
    assert not theirs or home in str(refused.value)
    for not_an_id in (5, [None], texts):
        with pytest.raises(CorpusError, match="Expected a list of ids"):
            retriever.get_by_ids(not_an_id)
        with pytest.raises(CorpusError, match="Expected a list of ids"):
            adapter.delete(retriever, not_an_id)


def test_words_of_other_classes_mean_the_same(adapter, texts, tmp_path, capsys):
    options = {"embedder": "lexical", "top_k": 2, "recipe": "flat", "filter": "lang=en", "show_progress": True}
    made = adapter.Retriever.from_documents(texts, folder=tmp_path / "i", **options)
    assert len(adapter.search(made, QUESTION)) == 2
    assert "embedding: 100%" in capsys.readouterr().err
    titled = adapter.Retriever.from_documents(
        [adapter.document("x", "x", heading="N")], title_key="heading", recipe="flat"
    )
    assert titled.index.documents()[0].title == "N"
    with pytest.raises(
        TypeError, match=r"SireRetriever.from_documents\(\) has no argument 'embedding_modl'; did you mean"
    ):
        adapter.Retriever.from_documents(texts, embedding_modl="lexical")
    with pytest.raises(TypeError, match="twice: "):
        adapter.Retriever.from_documents(texts, embedder="lexical", embeddings="lexical")
    with pytest.raises(TypeError, match=r"SireRetriever.\w+\(\) has no argument 'nothing_like_it'"):
        adapter.load(tmp_path / "i", nothing_like_it=1)


MISSPELLED = [
    ({"recipe": "raptr"}, "did you mean 'raptor'"),
    ({"recipe": "indexrga", "chunker": "sentences"}, "did you mean 'indexrag'"),
    ({"chunker": "sentence"}, "did you mean 'sentences'"),
    ({"embedder": "lexicl"}, "did you mean 'lexical'"),
    ({"embedder": "onx:model"}, "did you mean 'onnx'"),
    ({"extraction": "joined"}, "did you mean 'joint'"),
    ({"recipe": "flat", "rerank": "colbrt:model"}, "did you mean 'colbert'"),
    ({"recipe": "flat", "ranker": "hybrd"}, "did you mean 'hybrid'"),
    ({"recipe": "sire", "ranker": "hybrid"}, "'ranker' is a setting of flat, .*pass recipe='flat', ranker='hybrid'"),
    ({"runner": "proceses"}, "'processes'"),
    ({"language": "Germann"}, "no language"),
    ({"workers": "many"}, "workers is a whole number of at least 1"),
    ({"mirrors": ["qdrant"]}, "is no mirror"),
]


@pytest.mark.parametrize(("options", "words"), MISSPELLED)
def test_names_that_nothing_has_are_refused_before_documents_are_read(adapter, options, words):
    def unread():
        raise AssertionError("documents were read")
        yield

    with pytest.raises((ConfigurationError, TypeError), match=words):
        adapter.Retriever.from_documents(unread(), **options)
    if not {"rerank", "ranker"} & set(options):  # settings of a recipe are arguments of the adapters only
        with pytest.raises(ConfigurationError, match=words):
            Index(**options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"recipe": "raptr"}, "There is no recipe 'raptr'; did you mean 'raptor'"),
        ({"recipe": "raptor"}, r"does not hold 'raptor' \(it holds: flat\)"),
        ({"returns": "unit"}, "did you mean 'units'"),
        ({"as_of": "yesterday"}, "as_of is a date"),
        ({"k": "four"}, "must be a whole number"),
        ({"filter": 3}, "A filter is a mapping"),
    ],
)
def test_search_options_are_checked_when_they_are_given(adapter, index_of, options, words):
    with pytest.raises(ValueError, match=words):
        adapter.viewed(adapter.over(index_of("flat")), **options)


def test_an_index_without_documents_is_a_warning_and_may_be_filled_later(adapter, texts, tmp_path, caplog):
    made = adapter.Retriever.from_documents([], path=tmp_path / "i", recipe="flat")
    assert "SireRetriever.from_documents was given no documents, and the index is empty" in caplog.text
    caplog.clear()
    adapter.add(made, *texts)
    made.index.close()
    again = adapter.Retriever.from_documents([], path=tmp_path / "i")
    assert adapter.search(again, QUESTION)
    assert not caplog.records


def test_a_view_of_an_index_that_is_filled_later(adapter, texts):
    later = Index(recipe="flat")
    retriever = adapter.viewed(adapter.over(later), recipe="flat")
    adapter.add(adapter.over(later), *texts)
    assert adapter.search(retriever, QUESTION)


QUESTIONS = [asked.question for asked in demo_questions()]
FILTERS = [None, {"kind": "person"}, "year>1850, year<1900", {"not": {"kind": {"in": ["person", "place"]}}}]


@pytest.fixture(scope="module")
def core_indexes():
    return {}


@pytest.fixture(params=sorted(REGISTRY))
def sides(request, index_of, adapter, core_indexes):
    """An index of the core, whose documents have their titles in the metadata, too, and a retriever."""
    if request.param not in core_indexes:
        core_indexes[request.param] = index = Index(recipe=request.param)
        index.build([Document(d.id, d.text, d.title, {"title": d.title, **d.metadata}) for d in demo_documents()])
    return core_indexes[request.param], adapter.over(index_of(request.param), k=10)


def expected(adapter, hits):
    return [
        (hit.doc_ids[0], hit.unit.text, adapter.score(hit.score), list(hit.doc_ids), [step.note for step in hit.path])
        for hit in hits
    ]


def shown(found):
    return [(hit.id, hit.text, pytest.approx(hit.score, abs=1e-6), hit.doc_ids, hit.path) for hit in found]


@pytest.mark.quick(where=FILTERS[::2], sides=["flat", "iier", "msrag", "sire", "sirerag"])
@pytest.mark.parametrize("where", FILTERS, ids=str)
def test_the_same_hits_in_the_same_order(adapter, sides, where):
    core, retriever = sides
    for question, k in zip(QUESTIONS, cycle((1, 7, 30))):
        found = adapter.search(retriever, question, k=k, filter=where)
        assert expected(adapter, core.search(question, k, filter=where)) == shown(found)


@pytest.mark.quick(sides=["flat", "msrag"])
async def test_sync_is_async(adapter, sides):
    _, retriever = sides
    native = await asyncio.gather(*(adapter.asearch(retriever, question) for question in QUESTIONS))
    assert native == [adapter.search(retriever, question) for question in QUESTIONS]


def test_a_folder_built_by_one_is_searched_by_the_other(adapter, tmp_path):
    with Index(tmp_path / "i", recipe="sirerag") as core:
        core.build(demo_documents())
        loaded = adapter.load(tmp_path / "i")
        for question in QUESTIONS:
            found = adapter.search(loaded, question, k=10)
            assert [row[1:] for row in expected(adapter, core.search(question, 10))] == [r[1:] for r in shown(found)]


@pytest.mark.parametrize("recipe", ["flat", "raptor"])
def test_a_bridged_embedder_gives_what_the_framework_s_model_gives(adapter, documents, recipe):
    over = adapter.Retriever.from_documents(documents, embedder=adapter.bridged_embedding, recipe=recipe)
    theirs = adapter.Retriever.from_documents(documents, embedder=adapter.embedding, recipe=recipe)
    for question in QUESTIONS:
        assert adapter.search(theirs, question) == adapter.search(over, question)
