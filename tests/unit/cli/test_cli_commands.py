"""The commands one by one."""

import json
import re
import socket

import pytest

from sire_core import Document, Index
from sire_core.cli.options import manifest_of
from sire_core.extend import count_tokens
from sire_core.recipes import REGISTRY
from sire_core.storage.folder import Folder
from support.command import run

RECORDS = [
    {"id": "m-1", "title": "Ada Holm", "text": "Ada Holm founded Brackwater Press.", "metadata": {"year": 1901}},
    {"id": "m-2", "title": "Brackwater Press", "text": "Brackwater Press stood in Lindle. It burnt [bold]down[/bold]."},
    {
        "id": "m-3",
        "title": "Lindle",
        "text": "Lindle lies on the Marl. Its mayor was Ada Holm.",
        "metadata": {"year": 1950},
    },
]


def write_records(folder):
    folder.mkdir()
    (folder / "corpus.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return folder


@pytest.fixture
def source(tmp_path):
    return write_records(tmp_path / "docs")


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """An index that tests only read; its documents are in `docs` beside it."""
    folder = tmp_path_factory.mktemp("searched")
    run("index", write_records(folder / "docs"), "--to", folder / "ix", "-r", "sirerag")
    return folder / "ix"


@pytest.fixture
def index(tmp_path, source):
    run("index", source, "--to", tmp_path / "ix")
    return tmp_path / "ix"


def test_index_says_what_was_read_skipped_and_made(tmp_path, source):
    (source / "bad.txt").write_bytes(b"caf\xe9")
    (source / "empty.md").write_text("")
    result = run("index", source, "--to", tmp_path / "ix")
    assert "Read 4 documents." in result.stderr
    assert "1 file could not be read and was skipped" in result.stderr
    assert "bad.txt: not UTF-8, read as cp1252, which is guessed" in result.stderr
    assert "4 documents added" in result.stdout
    assert "sirerag: " in result.stdout


def test_strict_refuses_what_cannot_be_read_and_records_are_counted_as_such(tmp_path, source):
    (source / "empty.md").write_text("")
    with (source / "corpus.jsonl").open("a") as records:
        records.write('{"id": 5,\n[}\n')
    (source / "logo.png").write_bytes(b"\x89PNG\r\n")  # nobody expects that to be read
    for command in (("index", source, "--to", tmp_path / "ix"), ("sync", source, "--to", tmp_path / "ix")):
        result = run(*command)
        assert "1 file could not be read and was skipped:" in result.stderr
        assert "2 records could not be read and were skipped:" in result.stderr
        refused = run(*command, "--strict", code=1).stderr
        assert refused.endswith("correct what is listed above, or move it away.\n")
        assert "Nothing was changed" in refused
    for name in ("empty.md", "corpus.jsonl"):
        (source / name).unlink()
    (source / "b.md").write_text("# B\n\nText.")
    assert "1 document added" in run("index", source, "--to", tmp_path / "ix", "--strict").stdout


def test_index_json_holds_the_report_and_nothing_else_is_on_stdout(tmp_path, source):
    (source / "empty.md").write_text("")
    report = json.loads(run("index", source, "--to", tmp_path / "ix", "--json").stdout)
    assert (report["added"], report["recipe"]) == (3, "sirerag")
    assert report["units"] == sum(report["kinds"].values())
    assert [skipped["reason"] for skipped in report["skipped"]] == ["the file is empty"]
    assert report["failures"] == report["notes"] == []


def test_query_json_has_the_agreed_shape(searched):
    hits = json.loads(run("query", searched, "Who founded Brackwater Press?", "-k", 3, "--json", "--explain").stdout)
    assert len(hits) == 3
    for hit in hits:
        assert list(hit) == "id kind score title text doc_ids chunk_ids metadata path snippet".split()
        assert hit["doc_ids"]
        assert hit["chunk_ids"]
        assert set(hit["doc_ids"]) <= {"m-1", "m-2", "m-3"}
        assert hit["path"]
        assert all(list(step) == ["step", "ids", "note"] for step in hit["path"])
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


def test_query_for_people(searched):
    result = run("query", searched, "Where did Brackwater Press stand?", "-k", 20)
    assert result.stdout.startswith("[1] ")
    assert "from m-2" in result.stdout
    assert "[bold]down[/bold]" in result.stdout
    assert result.stderr == "No hit mentions 'stand'.\n"


def test_a_question_about_something_else_is_told_so(searched):
    warned = run("query", searched, "xyzzy qwfp")
    assert "The documents do not seem to answer this. No hit shares a word with the question." in warned.stderr
    asked = run("ask", searched, "xyzzy qwfp")
    said, nearest, passages = asked.stdout.split("\n\n")
    assert said == warned.stderr.strip()
    assert nearest == "No sentence of the hits answers the question. The nearest passages:"
    assert len(passages.splitlines()) == 3
    wrong_key = run("ask", searched, "Ada Holm", "--filter", "yeer=3").stderr
    assert "did you mean 'year'" in wrong_key
    assert run("ask", searched, "Where did Brackwater Press stand?").stderr.splitlines()[-1] == (
        "Quoted from the documents. For a written answer: --llm MODEL (--base-url URL)."
    )


def test_a_filter_that_nothing_passes_is_no_error(searched):
    result = run("query", searched, "Ada Holm", "--filter", "year=3")
    assert result.stdout == ""
    assert "nothing in the index passes the filter" in result.stderr
    assert json.loads(run("query", searched, "Ada Holm", "--filter", "year=3", "--json").stdout) == []


def test_add_update_and_delete(index, tmp_path):
    more = tmp_path / "more.jsonl"
    more.write_text(json.dumps({"id": "m-4", "text": "The Marl is a river."}))
    assert "1 document added" in run("add", index, more).stdout
    more.write_text(json.dumps({"id": "m-4", "text": "The Marl is a slow river."}))
    assert "Update them" in run("add", index, more, code=1).stderr
    assert "1 document updated" in run("update", index, more).stdout
    assert "Nothing changed" in run("update", index, more).stdout
    assert json.loads(run("stats", index, "--json").stdout)["documents"] == 4
    assert "Nothing was deleted" in run("delete", index, "m-4", "zzz", code=1).stderr
    assert json.loads(run("delete", index, "m-4", "--json").stdout)["removed"] == 1
    assert json.loads(run("stats", index, "--json").stdout)["documents"] == 3


def test_recipes_are_listed_in_a_line_each_and_one_with_its_settings():
    first, *lines = run("recipes").stdout.splitlines()
    assert [line.split()[0] for line in lines[: len(REGISTRY)]] == sorted(REGISTRY)
    assert len(lines) <= len(REGISTRY) + 3
    assert "with --llm" in first
    models = {line.split()[0]: line[first.index("with") :].split("  ")[0] for line in lines[: len(REGISTRY)]}
    assert (models["flat"], models["raptor"], models["sirerag"]) == ("nothing", "texts", "extraction, texts")
    assert "  depth=3: Summary levels above the leaves" in run("recipes", "raptor").stdout
    assert [recipe["name"] for recipe in json.loads(run("recipes", "--json").stdout)] == sorted(REGISTRY)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("query {ix} founded", "from press.md"),
        ("query {ix} founded --explain", "documents: press.md"),
        ("ask {ix} founded", "from press.md"),
        ("documents {ix}", "Press, from press.md (1 passage)"),
        ("query {ix} founded --html {ix}.html", "from press.md"),
    ],
)
def test_a_document_whose_id_is_a_digest_is_called_by_its_source(tmp_path, words, shown):
    with Index(tmp_path / "ix") as made:
        made.build([Document("0123456789abcdef" * 2, "Ada Holm founded it.", "Press", metadata={"source": "press.md"})])
    said = run(*words.format(ix=tmp_path / "ix").split()).stdout
    page = tmp_path / "ix.html"
    assert shown in (page.read_text() if page.exists() else said)
    assert ("0123456789abcdef" in said) == words.startswith("documents")


def test_set_help_explains_the_settings_of_the_recipe_that_is_meant(source, index):
    listed = run("recipes", "hipporag2").stdout
    for words in (
        ("index", source, "--to", source / "new", "-r", "hipporag2"),
        ("estimate", source, "--llm", "m", "-r", "hipporag2"),
    ):
        told = run(*words, "--set", "help").stdout
        assert told in listed
        assert "  passage_weight=0.05: Starting weight of a passage" in told
    assert not (source / "new").exists()
    assert "  variant=" in run("query", index, "x", "--set", "help").stdout  # the folder's recipe
    assert "or help, which explains all" in run("query", index, "x", "--set", "helpp", code=1).stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("query", "{ix}", "x", "-k", "0"), 2, "-k"),
        (("query", "{ix}", "x", "--filter", "foo"), 1, "Cannot read the filter"),
        (("query", "{ix}", "   "), 1, "The query is empty"),
        (("query", "{ix}", "x", "-r", "nope"), 1, "There is no recipe 'nope'; choose one of"),
        (("query", "{ix}", "x", "-r", "flat"), 1, "it holds: sirerag"),
        (("query", "{ix}", "x", "--embedder", "nope"), 1, "unknown embedder"),
        (("query", "{docs}", "x"), 1, "sire index {docs} --to {docs}-index"),
        (("query", "{docs}/nothing", "x"), 1, "There is no index in"),
        (("stats", "{docs}/corpus.jsonl"), 1, "is a file, not an index folder"),
        (("query", "{docs}/corpus.jsonl", "{ix}"), 1, "sire query DIR QUESTION"),
        (("add", "{docs}/corpus.jsonl", "{ix}"), 1, "sire add DIR SRC..."),
        (("add", "{docs}", "{ix}"), 1, "The index folder comes first"),
        (("query", "Who founded Brackwater Press?", "{ix}"), 1, "The index folder comes first"),
        (("ask", "Who? " * 2000, "{ix}"), 1, "File name too long"),
        (("query", "{docs}", "Who? " * 2000), 1, "There is no index in"),
        (("add", "{docs}/nothing", "{docs}"), 1, "There is no index in"),
        (("index", "{docs}/nothing", "--to", "{docs}/.ix"), 1, "Not found"),
        (("index", "{docs}", "--to", "{docs}/ix"), 1, "would lie inside"),
        (("index", "{docs}", "--to", "{docs}"), 1, "would lie inside"),
        (("index", "{docs}", "--to", "{docs}/corpus.jsonl"), 1, "Cannot make the folder"),
        (("index", "{docs}"), 2, "--to"),
        (("nonsense",), 2, "nonsense"),
    ],
)
def test_mistakes_are_explained_in_a_line(searched, words, code, message):
    result = run(*(word.format(ix=searched, docs=searched.parent / "docs") for word in words), code=code)
    assert result.stdout == ""
    assert message.format(docs=searched.parent / "docs") in result.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("index {docs} --to {docs}/corpus.jsonl", "corpus.jsonl is no folder. Name another place."),
        ("index {docs} --to {docs}/.. --runner nope", "runner is 'local', 'processes'"),
        ("index {docs} --to {docs}/..", "is not an index and not empty"),
        ("index {docs} --to {ix} --embedder st:nope", "build into another folder"),
        ("index {docs} --dry-run --set nope=1", "There is no setting 'nope'"),
        ("index {docs} --dry-run --to {docs}/corpus.jsonl", "corpus.jsonl is no folder"),
        ("estimate {docs} --llm m --to {docs}/corpus.jsonl", "corpus.jsonl is no folder"),
        ("eval {docs} --limit 1 --to {docs}/corpus.jsonl", "corpus.jsonl is no folder"),
        ("eval {docs} --limit 1 --embedder nope", "unknown embedder 'nope'"),
        ("advise {docs} --embedder nope", "unknown embedder 'nope'"),
    ],
)
def test_what_no_document_decides_is_checked_before_any_is_read(searched, words, message):
    said = " ".join(run(*words.format(ix=searched, docs=searched.parent / "docs").split(), code=1).stderr.split())
    assert message in said
    assert "Read " not in said


@pytest.mark.parametrize("words", ["add {ix} {docs}", "index {docs} --to {ix}", "sync {docs} --to {ix} --yes"])
def test_a_folder_that_is_locked_is_told_before_any_document_is_read(searched, words, monkeypatch):
    monkeypatch.setattr("sire_core.cli.options._LOCK_TIMEOUT", 0.0)
    with Folder(searched).writing():
        said = run(*words.format(ix=searched, docs=searched.parent / "docs").split(), code=1).stderr
    assert said.startswith("error: Another process is writing to")


def test_stats_of_smart_and_of_trees_speak_plainly(index, source):
    assert "similarity tree  drifted 0% of the way to a rebuild" in run("stats", index).stdout
    run("index", source, "--to", index, "-r", "smart", "--default")
    shown = run("stats", index).stdout
    assert re.search(r"perspective 1 \(\w+\) +clusters of entities by level: ", shown)
    assert "% of how entities are related" in shown


def test_the_group_turns_an_interrupt_into_130(searched, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sire_core.index.Index.search", interrupted)
    assert "Interrupted." in run("query", searched, "x", code=130).stderr


def test_settings_of_a_folder_stay_where_others_are_given(tmp_path, source):
    folder = tmp_path / "ix"
    run("index", source, "--to", folder, "-r", "flat", "--set", "ranker=hybrid")
    said = run("index", source, "--to", folder, "--set", "instruction=Briefly").stdout
    assert 'Settings of flat changed: instruction="Briefly" (was ""). Other settings are unchanged.' in said
    assert "Nothing changed" not in said
    (built,) = manifest_of(folder).recipes
    assert (built.config["ranker"], built.config["instruction"]) == ("hybrid", "Briefly")
    assert "Nothing changed" in run("index", source, "--to", folder, "--set", "ranker=hybrid").stdout


def test_a_second_recipe_is_the_default_only_if_that_is_said(index, source):
    said = run("index", source, "--to", index, "-r", "raptor").stdout
    assert "Searches still use sirerag by default." in " ".join(said.split())
    assert f"sire query {index} QUESTION -r raptor" in " ".join(said.split())
    assert json.loads(run("stats", index, "--json").stdout)["recipe"] == "sirerag"
    assert "by default" not in run("index", source, "--to", index, "-r", "raptor").stdout
    said = run("index", source, "--to", index, "-r", "raptor", "--default").stdout
    assert "Searches without -r use raptor from now on" in said
    assert json.loads(run("stats", index, "--json").stdout)["recipes"] == ["raptor", "sirerag"]
    assert "from now on" not in run("index", source, "--to", index, "-r", "sirerag").stdout


def test_diagrams_rules_and_tables_of_letters_are_not_badly_read(tmp_path):
    box = "\u250c\u2500\u2500\u2500\u2510\n\u2502 API \u2502 \u2192 \u25bc\n\u2514\u2500\u2500\u2500\u2518\n"
    (tmp_path / "boxes.md").write_text(f"# Layout\n\n```\n{box * 40}```\n")
    (tmp_path / "ascii.txt").write_text("+-----+ | vm | +-+\n| ovs | | wfp | | |\n+-----+ +----+ |#|\n" * 40)
    (tmp_path / "rules.txt").write_text("Index of the pages\n" + "/" * 500 + "\napi.txt: what it does\n" * 9)
    (tmp_path / "letters.md").write_text("| zone | cache |\n|---|---|\n" + "| yes | n/a |\n" * 60)
    (tmp_path / "contents.txt").write_text("\n".join(f"{n} Boats {'. ' * 40}{n}" for n in range(40)))
    (tmp_path / "font.txt").write_text("\u2702\u2663 \u2665\u24d0 word " * 60)
    listed = run("index", tmp_path, "--to", tmp_path / ".index", "--dry-run").stderr
    assert "1 document looks badly read:\n  font.txt: symbols in the place of letters\n" in listed


def test_what_was_read_is_shown_before_and_after_the_build(tmp_path):
    docs, folder = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    (docs / "good.md").write_text("# The queue\n\nIt keeps `max_jobs` jobs.\n\n## Order\n\nFirst come, first served.\n")
    (docs / "bad.txt").write_text("s p a c e d " * 60)
    listed = run("index", docs, "--to", folder, "--dry-run")
    assert "good.md  The queue (1 passage" in listed.stdout
    assert "The queue; Order" in listed.stdout
    assert "1 document looks badly read:\n  bad.txt: most words broken into letters" in listed.stderr
    assert not folder.exists()
    found = json.loads(run("index", docs, "--to", folder, "--dry-run", "--json").stdout)
    assert [(each["id"], each["headings"]) for each in found] == [("bad.txt", []), ("good.md", ["The queue", "Order"])]
    run("index", docs, "--to", folder, "--recipe", "flat")
    assert run("documents", folder, "good.md").stdout.split("\n\n")[1:3] == ["# The queue", "It keeps `max_jobs` jobs."]
    shown = json.loads(run("documents", folder, "good.md", "--json").stdout)
    assert (shown["title"], shown["text"].split("\n\n")[0]) == ("The queue", "# The queue")
    assert "There is no document 'other.md'" in run("documents", folder, "other.md", code=1).stderr
    assert "There is no document 'ood.md' in" in (wrong := run("documents", folder, "ood.md", code=1).stderr)
    assert "Similar ids: good.md." in wrong


@pytest.fixture
def folders(tmp_path):
    for name, text in (("films", "The Gull was filmed by Ann Hask."), ("towns", "Ann Hask was born in Orr.")):
        (tmp_path / name / "old").mkdir(parents=True)
        (tmp_path / name / "readme.md").write_text(f"# {name}\n\n{text}\n")
        (tmp_path / name / "old" / f"{name}.md").write_text(f"# Old {name}\n\nNothing is known of {name}.\n")
    return tmp_path


def ids(folder):
    with Index(folder) as index:
        return {document.id for document in index.documents()}


def test_documents_are_deleted_by_id_or_by_path(folders, monkeypatch):
    run("index", folders / "films", "--to", folders / "ix")
    monkeypatch.chdir(folders / "films" / "old")
    (folders / "films" / "readme.md").unlink()  # a path need not exist any more
    run("delete", "../../ix", "../readme.md", "films.md", "old/films.md")
    assert ids(folders / "ix") == set()
    assert "1 id to delete (../readme.md)" in run("delete", "../../ix", "../readme.md", code=1).stderr


def test_the_path_of_another_file_with_the_same_name_deletes_nothing(folders):
    run("index", folders / "films", "--to", folders / "ix")
    before = ids(folders / "ix")
    for path in (folders / "films" / "new" / "readme.md", folders / "towns" / "readme.md"):
        said = run("delete", folders / "ix", path, code=1).stderr
        assert f"1 id to delete ({path}). Nothing was deleted" in " ".join(said.split())
    assert ids(folders / "ix") == before
    run("index", folders / "towns" / "readme.md", "--to", folders / "one")  # which notes no folder
    run("delete", folders / "one", folders / "towns" / "readme.md")
    assert ids(folders / "one") == set()


def test_an_id_that_is_nearly_right_is_answered_with_the_right_one(folders):
    run("index", folders / "films", "--to", folders / "ix")
    said = run("delete", folders / "ix", "readm.md", code=1).stderr
    assert "Nothing was deleted; similar to readm.md: readme.md." in said


@pytest.mark.parametrize("at_once", [True, False])
def test_folders_that_get_files_of_one_name_later_keep_their_ids(folders, at_once):
    films, towns, index = folders / "films", folders / "towns", folders / "ix"
    (films / "readme.md").unlink()
    if at_once:
        run("index", films, towns, "--to", index)
        before = {"films/old/films.md", "towns/old/towns.md", "towns/readme.md"}
    else:
        run("index", films, "--to", index)
        run("index", towns, "--to", index)
        before = {"old/films.md", "towns/old/towns.md", "towns/readme.md"}
    assert ids(index) == before
    (films / "readme.md").write_text("# Gulls\n\nThe Gull is a film.\n")
    for sources in ([films, towns], [towns, films]):
        run("sync", *sources, "--to", index, "--yes")
        assert ids(index) == {*before, "films/readme.md" if at_once else "readme.md"}
    run("delete", index, films / "readme.md", "--yes")
    assert ids(index) == before


def test_another_folder_with_files_of_the_same_names_replaces_none(folders):
    films, towns, index = folders / "films", folders / "towns", folders / "ix"
    run("index", films, "--to", index)
    before = ids(index)
    for command in (["index", towns, "--to", index], ["update", index, towns]):
        run(*command)
        assert ids(index) == before | {"towns/readme.md", "towns/old/towns.md"}


def test_a_folder_that_was_moved_keeps_its_ids(folders):
    films, index = folders / "films", folders / "ix"
    run("index", films, "--to", index)
    before = ids(index)
    films.rename(folders / "pictures")
    assert "Nothing changed" in run("sync", folders / "pictures", "--to", index, "--yes").stdout
    assert ids(index) == before


def test_a_file_by_itself_whose_name_is_there_in_a_folder_is_mentioned(folders):
    run("index", folders / "films", "--to", folders / "ix")
    (folders / "copy").mkdir()
    (folders / "copy" / "films.md").write_text("# Old films\n\nSomething is known of films now.\n")
    said = " ".join(run("update", folders / "ix", folders / "copy" / "films.md").stderr.split())
    assert "films.md is a new id, and the index also holds old/films.md." in said
    assert "new id" not in run("update", folders / "ix", folders / "films" / "old" / "films.md").stderr


def test_folders_with_files_of_the_same_name_have_ids_that_begin_with_the_folder(folders):
    both = folders / "films", folders / "towns"
    run("index", *both, "--to", folders / "ix")
    names = ids(folders / "ix")
    assert {"films/readme.md", "towns/readme.md"} <= names
    assert all(name.startswith(("films/", "towns/")) for name in names)
    (both[1] / "readme.md").write_text("# Lindle\n\nA new text.\n")
    assert "1 document updated" in run("update", folders / "ix", both[1] / "readme.md").stdout
    assert "1 document" in run("delete", folders / "ix", both[0] / "readme.md", "--yes").stderr
    assert ids(folders / "ix") == names - {"films/readme.md"}
    left = run("sync", both[1], "--to", folders / "ix", "--yes").stderr
    assert ids(folders / "ix") == {name for name in names if name.startswith("towns/")}
    assert f"still exist in {both[0]}" in left
    said = run("index", *(folder / "readme.md" for folder in both), "--to", folders / "single", code=1).stderr
    assert f"sire index {both[0]} {both[1]} --to NEW_DIR" in said


def test_a_question_that_looks_like_an_option(folders):
    run("index", folders / "films", "--to", folders / "ix")
    said = run("query", folders / "ix", "--watch", code=2).stderr
    assert 'A question that begins with a dash goes behind two of them: -- "--watch ..."' in " ".join(said.split())
    assert "[1]" in run("query", folders / "ix", "--", "--watch").stdout
    assert "behind two of them" not in run("stats", folders / "ix", "--watch", code=2).stderr


@pytest.mark.parametrize("words", ["query ix VRRP backup", "ask ix VRRP backup", "documents ix a b"])
def test_words_without_quotes_are_explained(words):
    said = " ".join(run(*words.split(), code=2).stderr.replace("\u2502", "").split())
    assert "Put a question or a value of several words in quotes." in said


@pytest.mark.parametrize("command", [("explore", "--port"), ("mcp", "--http")])
def test_a_busy_port_says_what_to_do(folders, command):
    pytest.importorskip("starlette" if command[0] == "explore" else "mcp")
    run("index", folders / "films", "--to", folders / "ix")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = run(command[0], folders / "ix", command[1], port, code=1).stderr
    assert f"error: Port {port} of 127.0.0.1 is in use" in said
    assert "0 for one that is free" in said


def test_pictures_are_skipped_and_not_reported_as_failures(tmp_path):
    source = tmp_path / "docs"
    source.mkdir()
    (source / "marl.md").write_text("# The Marl\n\nA river.\n")
    (source / "logo.png").write_bytes(b"\x89PNG\r\n")
    (source / "map.png").write_bytes(b"\x89PNG\r\n")
    (source / "bad.txt").write_bytes(b"caf\0\xe9")
    (source / "sitemap.xml").write_text(
        '<?xml version="1.0"?><urlset xmlns="http://a"><url><loc>a</loc></url></urlset>'
    )
    result = run("index", source, "--to", tmp_path / "ix")
    assert "1 file could not be read and was skipped:" in result.stderr
    assert "bad.txt: the file is not text, despite its name" in result.stderr
    assert "Skipped 2 files of types that are not read (2 .png)." in result.stderr
    assert "logo.png" not in result.stderr
    assert f"Skipped 1 file of a site generator ({source / 'sitemap.xml'})" in result.stderr


def test_skipped_types_that_can_be_read_in_another_way_come_with_the_way(tmp_path):
    for name in ("a.md", "tool.8", "more.8", "conf.5", "changes.txt.gz", "FEATURES", "logo.png"):
        (tmp_path / name).write_text("Words.")
    shown = run("index", tmp_path, "--to", tmp_path / ".ix").stderr
    assert "Skipped 6 files of types that are not read (2 .8, " in shown
    assert "if it is a manual page, write it as a text (man -l FILE" in shown
    assert "  .gz: unpack it" in shown
    assert "  no suffix: if it is a text, give the file itself as a source" in shown
    assert ".png: " not in shown
    run("index", tmp_path / "FEATURES", "--to", tmp_path / ".ix")


def test_query_prints_evidence_within_a_number_of_tokens(index):
    question = "Where did Brackwater Press stand?"
    for max_tokens in (10, 40, 90):
        printed = run("query", index, question, "--max-tokens", max_tokens, "--more").stdout
        assert count_tokens(printed) <= max_tokens
        assert printed.startswith("[1] m-")
    assert "] m-2: Brackwater Press\nBrackwater Press stood in Lindle." in printed
    for max_tokens in (10, 60, 90, 500):
        printed = run("query", index, question, "--max-tokens", max_tokens, "--json").stdout
        assert count_tokens(printed) <= max_tokens
        assert all(one["text"] for one in json.loads(printed))
    assert ["m-2"] in [one["doc_ids"] for one in json.loads(printed)]
    assert "not one word of them fits 1 tokens; allow more" in run("query", index, question, "--max-tokens", 1).stderr
    for wrong in (["--more"], ["--max-tokens", 9, "--explain"], ["--max-tokens", 9, "--json", "--more"]):
        assert run("query", index, question, *wrong, code=1).stderr


def test_an_index_that_was_never_finished_is_no_place_for_changes(tmp_path, source):
    from sire_core.storage.index_files import IndexFiles

    begun = IndexFiles(tmp_path / "begun", create=True)
    assert begun.store.documents() == {}  # opened: the tables are there
    begun.close()
    said = run("add", tmp_path / "begun", source, code=1).stderr
    assert "never finished" in said
    assert f"sire index SOURCE --to {tmp_path / 'begun'}" in said


@pytest.mark.parametrize(("called", "meant"), [("search", "query"), ("ls", "documents"), ("remove", "delete")])
def test_a_command_by_the_name_that_other_tools_have_for_it_is_named(called, meant):
    assert f"Did you mean `sire {meant}`?" in run(called, "my-index", code=2).stderr
