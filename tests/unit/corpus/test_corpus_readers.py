"""Reading corpora: files and encodings."""

from __future__ import annotations

import json
import os
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sire_core.documents.blocks import block_text
from sire_core.documents.chunker import SentenceChunker, chunk_document
from sire_core.documents.validation import check_documents
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.files.readers import read_documents
from support.command import run


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def reasons(corpus) -> dict[str, str]:
    return {Path(failure.where).name: failure.reason for failure in corpus.failures}


def test_text_and_markdown_files_of_a_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.txt").write_bytes(b"Two lines\r\nof text.\r\n")
    (tmp_path / "sub" / "a.md").write_text("---\n# no: title\n---\n```\n# nor this\n```\n\n## The *Mill* ##\nBody.\n")
    (tmp_path / "sub" / "plain.MD").write_text("no heading, #hashtag only")
    (tmp_path / "setext.markdown").write_text("Old style\n=========\ntext")
    corpus = read_documents([tmp_path])
    assert [(d.id, d.title) for d in corpus.documents] == [
        ("b.txt", "b"),
        ("setext.markdown", "Old style"),
        ("sub/a.md", "The Mill"),
        ("sub/plain.MD", "plain"),
    ]
    assert corpus.documents[0].text == "Two lines\nof text.\n"
    assert not corpus.failures
    assert read_documents(str(tmp_path)) == corpus
    assert [d.id for d in read_documents(tmp_path / "sub" / "a.md").documents] == ["a.md"]


def test_hidden_files_are_skipped_and_unknown_types_listed(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.txt").write_text("hidden")
    (tmp_path / ".y.txt").write_text("hidden")
    (tmp_path / "ok.txt").write_text("seen")
    (tmp_path / "movie.MP4").write_bytes(b"moov")
    (tmp_path / "Makefile").write_text("all:")
    corpus = read_documents([tmp_path])
    assert [d.id for d in corpus.documents] == ["ok.txt"]
    assert reasons(corpus) == {
        "movie.MP4": "unsupported type '.mp4'; convert it to text, Markdown, HTML, PDF, CSV, JSON or JSON Lines",
        "Makefile": "unsupported type (no suffix); if it is a text, give the file itself as a source",
    }


def test_texts_without_a_suffix_are_read_by_a_known_name_or_where_they_are_named(tmp_path):
    for name in ("README", "COPYING", "Changes", "install", "Makefile"):
        (tmp_path / name).write_text(f"Words of {name}.")
    (tmp_path / "notes.2024").write_text("Otto sold the mill.")
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\r\n\0\0")
    corpus = read_documents(tmp_path)
    assert [(d.id, d.title) for d in corpus.documents] == [(n, n) for n in ("COPYING", "Changes", "README")]
    named = read_documents([tmp_path, *(tmp_path / name for name in ("Makefile", "notes.2024", "logo.png"))])
    assert {d.id for d in named.documents} == {d.id for d in corpus.documents} | {"Makefile", "notes.2024"}
    assert "of unsupported type '.png'" in reasons(named)["logo.png"]


def test_installed_packages_are_no_documents_of_a_folder(tmp_path):
    for folder in ("web/node_modules/left", "env/lib", "docs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "README.md").write_text("# Read me\n\nWords.")
    (tmp_path / "env" / "pyvenv.cfg").write_text("home = /usr/bin")
    corpus = read_documents([tmp_path])
    assert [document.id for document in corpus.documents] == ["docs/README.md"]
    assert reasons(corpus).keys() == {"node_modules", "env"}
    named = read_documents([tmp_path / "web" / "node_modules", tmp_path / "env"])
    names = [document.id for document in named.documents]
    assert names == ["node_modules/left/README.md", "env/lib/README.md", "env/pyvenv.cfg"]


def test_jsonl_documents(tmp_path):
    path = write(
        tmp_path / "c.jsonl",
        {"id": "a", "title": "T", "text": "x", "metadata": {"n": [1]}},
        {"id": 7, "title": None, "chunks": ["p", " ", "q"], "metadata": None},
        {"text": "no id", "year": 1990, "lang": "en", "void": None, "metadata": {"lang": "de"}},
        {"_id": "beir", "title": 1984, "text": "x"},
        {"text": "lists", "tags": ["hr", 2], "vector": [0.5, 0.25], "deep": [["a"]], "by": {"a": 1}},
    )
    a, seven, unnamed, beir, lists = read_documents([path]).documents
    assert (a.id, a.title, a.text, a.metadata) == ("a", "T", "x", {"n": [1]})
    assert (seven.id, seven.title, seven.text, seven.chunks, seven.metadata) == ("7", "", "", ("p", "q"), {})
    assert (unnamed.id, unnamed.metadata) == ("c.jsonl:3", {"year": 1990, "lang": "de"})
    assert (beir.id, beir.title) == ("beir", "1984")
    assert lists.metadata == {"tags": ["hr", 2]}


def test_jsonl_with_bom_crlf_blank_lines_and_no_last_newline(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id": "a", "text": "x\\r\\ny"}\r\n\r\n  \r\n{"id": "b", "text": "z"}')
    corpus = read_documents([path])
    assert [(d.id, d.text) for d in corpus.documents] == [("a", "x\r\ny"), ("b", "z")]
    assert not corpus.failures


def test_json_list_of_documents(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps([{"title": "A", "text": "x"}, {"id": "b", "text": "y"}, 5]))
    corpus = read_documents([path])
    assert [d.id for d in corpus.documents] == ["c.json:1", "b"]
    assert reasons(corpus) == {"c.json:3": "a JSON object is needed, not int"}


BAD_LINES = [
    (b'{"id": "a", "text": ', "not valid JSON"),
    (b"[1, 2]", "a JSON object is needed, not list"),
    (b'{"id": "a"}', "neither 'text' nor 'chunks'; the keys are id"),
    (b'{"id": "  ", "text": "x"}', "'id' is blank"),
    (b'{"id": 1.5, "text": "x"}', "'id' must be a string"),
    (b'{"id": true, "text": "x"}', "'id' must be a string"),
    (b'{"id": "a", "text": ["x"]}', "'text' must be a string"),
    (b'{"id": "a", "text": " "}', "has no text"),
    (b'{"id": "a", "text": "x", "title": {}}', "'title' must be a string"),
    (b'{"id": "a", "chunks": "x"}', "'chunks' must be a list of strings"),
    (b'{"id": "a", "chunks": []}', "has no text"),
    (b'{"id": "a", "text": "x", "metadata": [1]}', "'metadata' must be a JSON object, not list"),
    (b'{"id": "a", "text": "caf\xe9"}', "byte 53 is not UTF-8"),
    (b"[" * 100_000, "not usable JSON"),
    (b'{"id": ' + b"9" * 5000 + b', "text": "x"}', "not usable JSON"),
    (b'{"question": "Why?", "context": [["T", "not a list"]]}', "context entry"),
    (b'{"question": "Why?", "paragraphs": [{"title": "T"}]}', "paragraph_text"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_LINES, ids=[reason for _, reason in BAD_LINES])
def test_a_bad_line_is_named_and_the_rest_goes_on(tmp_path, line, reason):
    path = tmp_path / "c.jsonl"
    path.write_bytes(b'{"id": "first", "text": "x"}\n' + line + b'\n{"id": "last", "text": "y"}\n')
    corpus = read_documents([path])
    assert [d.id for d in corpus.documents] == ["first", "last"]
    (failure,) = corpus.failures
    assert failure.where == f"{path}:2"
    assert reason in failure.reason


def test_a_folder_with_broken_files_of_each_kind(tmp_path):
    (tmp_path / "ok.txt").write_text("fine")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "blank.md").write_text(" \n")
    (tmp_path / "bare.txt").write_bytes(b"\xff\x01\x02wide" * 99)
    (tmp_path / "wide.jsonl").write_text('{"text": "wide"}\n' * 3, encoding="utf-16")
    (tmp_path / "broken.json").write_text('[{"id": "a",\n "text": }]')
    (tmp_path / "blank.jsonl").write_text("\n\n")
    (tmp_path / "none.json").write_text("[]")
    (tmp_path / "big.txt").write_text("x" * 2000)
    write(tmp_path / "questions.jsonl", {"id": "q", "question": "Why?", "answers": ["so"]})
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere.txt")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.txt")
    corpus = read_documents([tmp_path], max_bytes=1000)
    assert [d.id for d in corpus.documents] == ["ok.txt"]
    found = reasons(corpus)
    expected = {
        "empty.txt": "empty",
        "blank.md": "white space",
        "bare.txt": "the file is not text, despite its name",
        "wide.jsonl": "UTF-16",
        "broken.json": "line 2 column 10",
        "blank.jsonl": "no records",
        "none.json": "no records",
        "big.txt": "max_bytes=1,000",
        "questions.jsonl": "read_questions",
        "gone.txt": "points nowhere",
        "loop": "link to a folder",
        "pipe.txt": "not a regular file",
    }
    assert found.keys() == expected.keys()
    for name, part in expected.items():
        assert part in found[name], name


def test_a_file_of_bad_lines_does_not_fill_the_report(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": "ok", "text": "x"}\n' + "oops\n" * 5000)
    corpus = read_documents([path])
    assert len(corpus.failures) == 101
    assert corpus.failures[-1].reason == "4,900 more records could not be used"


def test_missing_paths_are_all_listed(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(CorpusError, match=r"no1\.txt, .*no2"):
        read_documents([tmp_path / "no1.txt", tmp_path / "a.txt", tmp_path / "no2"])
    with pytest.raises(CorpusError, match="Not found"):
        read_documents("bad\0name")
    with pytest.raises(CorpusError, match="at least one"):
        read_documents([])


def test_nothing_readable_lists_the_reasons(tmp_path):
    with pytest.raises(CorpusError, match="the folder holds no files"):
        read_documents([tmp_path])
    for number in range(12):
        (tmp_path / f"e{number:02}.txt").touch()
    (tmp_path / "p.png").touch()
    said = r"Nothing could be read\. .*e00\.txt, .*e01\.txt, .*e02\.txt, and 9 more: the file is empty; .*p\.png: unsupported type '\.png'"
    with pytest.raises(CorpusError, match=said):
        read_documents([tmp_path])


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "1"])
def test_max_bytes_is_checked(tmp_path, value):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(ConfigurationError, match="max_bytes"):
        read_documents([tmp_path], max_bytes=value)


def test_identical_repeats_are_merged_and_counted(tmp_path):
    one = write(tmp_path / "1.jsonl", {"id": "a", "text": "x"}, {"id": "a", "text": "x"})
    two = write(tmp_path / "2.jsonl", {"id": "a", "text": "x", "title": ""}, {"id": "b", "text": "x"})
    corpus = read_documents([one, two])
    assert [d.id for d in corpus.documents] == ["a", "b"]
    assert corpus.duplicates == {f"{one}:2": f"{one}:1", f"{two}:1": f"{one}:1"}


def test_one_id_with_two_contents_is_an_error(tmp_path):
    one = write(tmp_path / "1.jsonl", *({"id": f"d{n}", "text": "x"} for n in range(12)))
    two = write(tmp_path / "2.jsonl", *({"id": f"d{n}", "text": "y"} for n in range(12)))
    with pytest.raises(CorpusError) as caught:
        read_documents([one, two])
    message = str(caught.value)
    assert message.startswith("12 document ids with different content")
    assert f"'d0' ({one}:1 and {two}:1: text differs)" in message
    assert "'d9'" in message
    assert "'d10'" not in message
    assert "and 2 more" in message
    three = write(tmp_path / "3.jsonl", {"id": "a", "text": "x", "n": 1}, {"id": "a", "text": "x", "n": 2})
    with pytest.raises(CorpusError, match="metadata differs"):
        read_documents([three])


def test_a_file_reached_twice_is_read_once(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("x")
    corpus = read_documents([tmp_path, tmp_path / "sub" / "a.txt", tmp_path / "sub"])
    assert [d.id for d in corpus.documents] == ["sub/a.txt"]


def test_unsafe_characters_are_made_safe(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_bytes(
        rb'{"id": "a\u001bb", "title": "\ud83d\ude00", "text": "lone \ud800 nul \u0000.", '
        rb'"k\ud800": "v\u0000", "metadata": {"deep": ["\udfff"], "nan": NaN}}'
    )
    (document,) = read_documents([path]).documents
    assert (document.id, document.title, document.text) == ("a\x1bb", "\U0001f600", "lone \ufffd nul .")
    assert document.metadata == {"k\ufffd": "v", "deep": ["\ufffd"], "nan": None}
    (tmp_path / "n.txt").write_bytes(b"a\0b")
    assert read_documents([tmp_path / "n.txt"]).documents[0].text == "ab"


def test_file_names_that_are_not_utf8(tmp_path):
    try:
        (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    except OSError:
        pytest.skip("the file system refuses such names")
    (document,) = read_documents([tmp_path]).documents
    assert document.id.encode("utf-8") == "caf\ufffd.txt".encode()


def test_a_20_mb_line(tmp_path):
    path = write(tmp_path / "big.jsonl", {"id": "big", "text": "word " * 4_000_000}, {"id": "next", "text": "x"})
    start = time.process_time()
    corpus = read_documents([path])
    assert [len(d.text) for d in corpus.documents] == [20_000_000, 1]
    assert time.process_time() - start < 5


def test_a_file_that_is_no_text_is_called_so(tmp_path):
    (tmp_path / "noise.txt").write_bytes(random.Random(1).randbytes(5_000))
    (tmp_path / "image.md").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20) + b"\xff" * 40)
    with pytest.raises(CorpusError) as caught:
        read_documents(tmp_path)
    assert "image.md, " in str(caught.value)
    assert "noise.txt: the file is not text" in str(caught.value)
    assert "iconv" not in str(caught.value)


def test_a_fault_in_one_reader_does_not_stop_a_folder(tmp_path, monkeypatch):
    (tmp_path / "bad.html").write_text("<p>Boom.</p>")
    (tmp_path / "good.md").write_text("All is well.")

    def broken(text):
        raise IndexError("list index out of range")

    monkeypatch.setattr("sire_core.files.readers.html_to_markdown", broken)
    result = read_documents([tmp_path])
    assert [document.text for document in result.documents] == ["All is well."]
    assert [failure.reason for failure in result.failures if "IndexError" in failure.reason]


@pytest.mark.parametrize(
    ("declared", "encoding", "words"),
    [
        ('<meta charset="windows-1252">', "cp1252", "Café “Größe”"),
        ("<meta charset=iso-8859-1>", "cp1252", "Café “Größe”"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">', "cp932", "神戸の港"),
        ('<?xml version="1.0" encoding="koi8-r"?>', "koi8-r", "Москва"),
        ('<?xml version="1.0" encoding="koi8-r"?><meta charset="windows-1251">', "cp1251", "Москва"),
        ('<meta charset="iso-2022-jp">', "iso2022_jp", "神戸の港"),
        ('<meta charset="latin1">', "utf-8", "Café, declared wrongly"),
        ('<meta charset="rot13">', "utf-8", "Café"),
        ("<meta charset=iso-8859-9>", "cp1254", "Ali “merhaba” dedi — gün"),
        ("<meta charset=tis-620>", "cp874", "ไทย…ไทย"),
        ("<meta charset=iso-8859-11>", "cp874", "ไทย…ไทย"),
        ("<META CHARSET=windows-874 />", "cp874", "ไทย…ไทย"),
        ("<meta charset=euc-kr>", "cp949", "똠방각하"),
        ("<meta charset=x-sjis>", "cp932", "①日本"),
        ("<meta charset=Windows-31J>", "cp932", "①日本"),
        ("<meta charset=iso-8859-8-i>", "iso8859-8", "שלום"),
        ("<meta charset=koi8-r><![unknown[ ]>", "koi8-r", "Москва"),
    ],
)
def test_html_is_read_in_the_encoding_that_it_declares(tmp_path, declared, encoding, words):
    (tmp_path / "page.html").write_bytes(f"{declared}<html><body><p>{words}</p></body></html>".encode(encoding))
    (document,) = read_documents(tmp_path).documents
    assert document.text == words


@pytest.mark.parametrize(
    "said",
    [
        "<!-- <meta charset=windows-1251> -->",
        "<!-- it's > <meta charset=windows-1251> -->",
        '<meta name="description" content="How to set charset=windows-1251">',
        '<meta data-charset="windows-1251">',
        '<a title="<meta charset=windows-1251>">',
        "<script>head = '<meta charset=windows-1251>'</script>",
    ],
)
def test_what_only_speaks_of_an_encoding_declares_none(tmp_path, said):
    (tmp_path / "page.html").write_bytes(f"{said}<meta charset=iso-8859-1><p>Café “Größe”</p>".encode("cp1252"))
    (tmp_path / "other.html").write_bytes(f"{said}<p>Café “Größe”</p>".encode("cp1252"))
    found = read_documents(tmp_path)
    assert ["Café “Größe”" in document.text for document in found] == [True, True]
    (said_of_other,) = found.notes
    assert said_of_other.where.endswith("other.html")
    assert "not UTF-8, read as cp1252, which is guessed" in said_of_other.reason


@pytest.mark.parametrize("declared", ["utf-8", "euc-jp", "unicode_escape", "nonsense", "utf-16"])
def test_html_that_declares_another_encoding_than_it_has_is_read_with_a_note(tmp_path, declared):
    (tmp_path / "page.html").write_bytes(f'<meta charset="{declared}"><p>Caf'.encode() + b"\xe9 gr\xfcn.")
    found = read_documents(tmp_path)
    assert [document.text for document in found] == ["Café grün."]
    assert ["which is guessed" in note.reason for note in found.notes] == [True]


@pytest.mark.parametrize("encoding", ["utf-8", "euc-jp"])
def test_a_few_wrong_bytes_of_a_page_show_as_in_a_browser(tmp_path, encoding):
    page = f'<meta charset="{encoding}"><p>Caf? {"日本 " * 300}</p>'.encode(encoding)
    (tmp_path / "page.html").write_bytes(page.replace(b"Caf?", b"Caf\xff"))
    (document,) = read_documents(tmp_path).documents
    assert document.text == f"Caf\ufffd {'日本 ' * 300}".strip()


def test_files_of_a_site_generator_are_skipped_unless_they_are_named(tmp_path):
    site = tmp_path / "site"
    kept = ["index.html", "search.html", "genindex.html", "app/app.js", "_sources.html", "guide/search.html"]
    kept += ["guide/_sources/draft.rst.txt"]
    skipped = ["_static/jquery.js", "_static/js/theme.js", "lib.min.js", "searchindex.js"]
    skipped += [
        "_sources/index.rst.txt",
        "_sources/gone/page.rst.txt",
        "templates.js",
        "search/search_index.json",
        "manual/asciidoc.js",
    ]
    kept += [f"manual/{name}.html" for name in ("clock", "driver", "keys", "leap", "refid")]
    for name in (*kept, *skipped):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(f"<p>The words of {name}.</p>" if name.endswith("html") else f"// words of {name}\n")
    found = read_documents(site)
    assert sorted(document.id for document in found.documents) == sorted(kept)
    assert sorted(failure.where for failure in found.failures) == sorted(str(site / name) for name in skipped)
    assert all("name the file as a source" in failure.reason for failure in found.failures)
    assert not found.unread
    assert [document.id for document in read_documents(site / "_static").documents] == ["jquery.js", "js/theme.js"]
    (named,) = read_documents(site / "searchindex.js").documents
    assert "words of searchindex.js" in named.text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "search.html",
            '<script src="_static/searchtools.js"></script><script src="searchindex.js"></script><p>Type.</p>',
        ),
        ("xrefs.xml", '<div element="book" href="a.html" targetptr="main"><ttl>Locks</ttl></div>'),
        (
            "b.html",
            '<head><meta http-equiv="Refresh" content="0; url=a.html"></head><p>Go to <a href=a.html>a</a>.</p>',
        ),
        ("sitemap.xml", '<?xml version="1.0"?><urlset xmlns="http://a"><url><loc>http://a</loc></url></urlset>'),
    ],
)
def test_lists_of_places_and_pages_that_lead_on_are_files_of_a_site_generator(tmp_path, name, content):
    (tmp_path / "a.html").write_text("<p>One writer holds the lock.</p>")
    (tmp_path / name).write_text(content)
    found = read_documents(tmp_path)
    assert [document.id for document in found.documents] == ["a.html"]
    assert found.failures[0].reason.startswith("a file of a site generator")


def test_headings_that_list_the_contents_of_a_page_are_items(tmp_path):
    entries = "".join(f"<h2><a href='#{n}'>{n} Why locks?</a></h2>" for n in (1, 2))
    sections = "".join(f"<h3><a name={n}>{n} Why locks?</a></h3><p>So.</p>" for n in (1, 2))
    (tmp_path / "a.html").write_text(f"<h1>Locks</h1>{entries}<h3> </h3><h3>Introduction</h3><p>Hm.</p>{sections}")
    linked = "<h3><a href=b#1>1 Why locks?</a><br> <a href=b#2>2 Who waits?</a></h3><p>So.</p>"
    (tmp_path / "b.html").write_text(f"<h1>All locks</h1>{linked}<h3><a href=c>The</a> <a href=d>lock</a></h3><p>So.")
    one, other = read_documents(tmp_path).documents
    kinds = [(block.kind, block_text(one.text, block)) for block in one.blocks[:5]]
    listed = [("furniture", "## 1 Why locks?"), ("furniture", "## 2 Why locks?")]
    assert kinds == [("heading", "Locks"), *listed, ("heading", "Introduction"), ("paragraph", "Hm.")]
    assert other.text == "# All locks\n\n- 1 Why locks?\n- 2 Who waits?\n\nSo.\n\n### The lock\n\nSo."


@pytest.mark.parametrize(
    ("more", "page", "is_read"),
    [
        ("", "lock.html", False),
        ("", "lock.htm", False),
        ("", "other.html", True),
        ("<para>A reader waits.</para>", "lock.html", True),
    ],
)
def test_the_xml_of_a_page_beside_it_is_skipped_if_the_page_has_its_words(tmp_path, more, page, is_read):
    text = "Locks &amp; leases are held by one writer of the queue at a time. " * 3
    (tmp_path / "lock.xml").write_text(f"<refentry><refmeta>5</refmeta><para>{text}</para>{more}</refentry>")
    (tmp_path / page).write_text(f"<title>Locks</title><h1>Locks</h1><p>{text}</p>")
    found = read_documents(tmp_path)
    assert sorted(document.id for document in found.documents) == sorted([page, *["lock.xml"] * is_read])
    assert [failure.where for failure in found.failures] == [str(tmp_path / "lock.xml")] * (not is_read)


_INDEX_OF_SPHINX = '<h1 id="index">Index</h1><div class="genindex-jumpbox">A</div>'
_SEARCH_OF_SPHINX = "<h1>Search</h1><noscript>Please activate JavaScript.</noscript><div id='search-results'></div>"
_DOXYGEN = '<body class="SRPage"><div id="SRIndex">Loading...</div></body>'
_NOT_FOUND = "<title>Queue</title><h1>404</h1><p>Page not found</p>"


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("genindex.html", _INDEX_OF_SPHINX),
        ("genindex-A.html", _INDEX_OF_SPHINX),
        ("py-modindex.html", '<div class="modindex-jumpbox">a</div>'),
        ("search.html", _SEARCH_OF_SPHINX),
        (
            "search.html",
            '<h1 id="search">Search Results</h1><form></form><div id="mkdocs-search-results">Searching</div>',
        ),
        ("search.html", "<!-- Generated by javadoc (17) --><title>Search (queue API)</title>"),
        ("_modules/queue.html", "<h1>Source code for queue</h1><pre>class Queue: pass</pre>"),
        ("_modules/index.html", "<h1>All modules for which code is available</h1><a href='queue.html'>queue</a>"),
        ("index-all.html", "<!-- Generated by javadoc --><p>lock() - Method in class Queue</p>"),
        ("search/all_0.html", _DOXYGEN),
        ("404.html", _NOT_FOUND),
        ("404.html", "<h1>Page Not Found</h1><p>The page you requested does not exist.</p>"),
    ],
)
def test_index_pages_of_a_site_are_skipped_by_their_content(tmp_path, name, page):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(page)
    (tmp_path / "a.html").write_text(page + "<p>Locks are held by one writer.</p>")
    found = read_documents(tmp_path)
    assert [document.id for document in found.documents] == ["a.html"]
    assert [failure.where for failure in found.failures] == [str(tmp_path / name)]
    assert "Locks" in read_documents(tmp_path / "a.html").documents[0].text
    assert found.failures[0].reason.startswith("a file of a site generator")


_LONG = f"<h1>Errors</h1><p>{'The status 404 says that a queue was not found by the server. ' * 12}</p>"


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("search.html", "<h1>Search</h1><p>Full text search needs an index.</p>"),
        ("search.html", f"{_LONG}<div id='search-results'></div>"),
        ("404.html", _LONG),
        ("404.html", "<h1>Peugeot</h1><p>A car.</p>"),
        ("genindex.html", "<h1>Genetic index</h1><p>Of genes.</p>"),
        ("_modules/kitchen.html", "<h1>Kitchens</h1><p>Made of modules.</p>"),
        ("index-all.html", "<h1>All indexes</h1><p>Of the shop.</p>"),
        ("search/query.html", "<h1>Queries</h1><p>In the form of words.</p>"),
    ],
)
def test_pages_that_are_only_called_like_an_index_are_read(tmp_path, name, page):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(page)
    (tmp_path / "_static").mkdir()
    found = read_documents(tmp_path)
    assert [document.id for document in found.documents] == [name]
    assert not found.failures


@pytest.mark.parametrize(
    ("title", "body", "is_left_out"),
    [
        ("Locks — Queue 3.2", "<div id=hd><h1><a href=i>Queue 3.2</a></h1></div><h1>Locks</h1>", True),
        ("a.locks — Queue 3.2", "<h1>Queue 3.2</h1><h1>Source code for a.locks</h1>", True),
        ("Locks — Guide — Queue 3.2", "<h1>Queue 3.2</h1><h1>Locks</h1>", False),
        ("Locks | Queue 3.2", "<header><h1>Queue 3.2</h1></header><h2>Locks</h2>", True),
        ("Queue 3.2 - Locks", "<header><h1>Queue 3.2</h1></header><p>Words.</p><h2>Locks</h2>", True),
        ("Queue 3.2 - Locks", "<h1>Queue 3.2</h1><h1>Locks</h1>", False),  # which may be the page and its site
        ("Locks - Queue 3.2", "<h1>Queue 3.2</h1><h2>Locks</h2>", False),  # a book and its chapter
        ("Locks - Queue 3.2", "<h1>Queue 3.2</h1><h1>Keys</h1><h1>Locks</h1>", False),
        ("Queue 3.2", "<h1>Queue 3.2</h1><h1>Locks</h1>", False),
    ],
)
def test_the_banner_of_a_site_is_no_heading_of_its_pages(tmp_path, title, body, is_left_out):
    (tmp_path / "a.html").write_text(f"<title>{title}</title>{body}<p>One writer holds the lock.</p>")
    (document,) = read_documents(tmp_path).documents
    assert ("# Queue 3.2" not in document.text) is is_left_out
    assert "Words." in document.text or "Words." not in body
    assert "Locks" in document.text or "locks" in document.text
    assert document.text.endswith("One writer holds the lock.")


def test_the_date_and_licence_of_a_page_are_no_text(tmp_path):
    date, licence = "<div>updated: 2026-02-06</div>", "<p>This page is <a href=l>licensed under</a> CC.</p>"
    licence += "<img src=l.png alt='Creative Commons 3.0 License'>"
    (tmp_path / "a.html").write_text(f"<h2>Locks</h2>{date}<h1>Locks</h1><p>One waits.</p>{date}{licence}")
    (tmp_path / "b.html").write_text("<h1>Locks</h1><p>Last updated: June 2024</p>")
    footer = "<div id=footer><div id=footer-text>Version 1.2<br/>\nLast updated 2023-01-25 09:27:30 UTC</div></div>"
    (tmp_path / "aa.html").write_text(f"<h1>Locks</h1><p>One waits.</p>{footer}")
    assert [one.text for one in read_documents(tmp_path)] == [
        "# Locks\n\nOne waits.",
        "# Locks\n\nOne waits.",
        "# Locks\n\nLast updated: June 2024",
    ]


@pytest.mark.parametrize("name", ["a.js", "a.html", "a.pdf", "README"])
def test_a_link_to_a_file_that_does_not_exist_is_named_as_such(tmp_path, name):
    (tmp_path / "b.txt").write_text("Words.")
    (tmp_path / name).symlink_to(tmp_path / "missing")
    (failure,) = read_documents(tmp_path).failures
    assert failure.reason.startswith("a link that points nowhere")


def test_links_and_pipes_of_types_that_are_never_read_are_skipped_as_such(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "b.txt").write_text("Words.")
    for name in ("a.css", "a.woff2", "a.png"):
        (tmp_path / "docs" / name).symlink_to(tmp_path / f"no-{name}")
    (tmp_path / "outside.woff").write_bytes(b"\0font")
    (tmp_path / "docs" / "b.woff").symlink_to(tmp_path / "outside.woff")
    os.mkfifo(tmp_path / "docs" / "app.sock")
    failures = read_documents(tmp_path / "docs").failures
    assert len(failures) == 5
    assert {failure.reason.partition(" '")[0] for failure in failures} == {"unsupported type"}
    result = run("index", tmp_path / "docs", "--to", tmp_path / "ix", "--strict")
    assert "Skipped 5 files of types that are not read" in result.stderr


@pytest.mark.parametrize(
    ("title", "heading", "named"),
    [
        ("5. DNSSEC — BIND 9 documentation", "5. DNSSEC", "5. DNSSEC"),
        (
            "Authors &#8212; Borg - Archiver 1.2.4 documentation",
            "<code>Authors</code><a class='headerlink' href='#'>¶</a>",
            "Authors",
        ),
        ("Locks | Queue", "Locks", "Locks"),
        ("mod_lock - Queue Server", "Module mod_lock", "mod_lock - Queue Server"),
        ("Locks-free queues", "Locks", "Locks-free queues"),
        ("Locks", "Locks", "Locks"),
        ("Queue Docs: Locks", "Locks", "Locks"),
        ("Queue Manager - Locks", "Locks", "Locks"),
        ("Chapter 3: Locks", "Locks", "Chapter 3: Locks"),
        ("queue.locks — Queue 3.3 documentation", "Source code", "queue.locks"),
        ("What are locks? | Queue Writers", "What does a lock do?", "What are locks?"),
        ("Queue | Keys", "Locks", "Queue | Keys"),
        ("Queue - Contents", "Contents", "Queue - Contents"),
        ("Queue Manager - ", "Locks", "Locks"),
        ("| Queue Manager", "Locks", "Locks"),
    ],
)
def test_titles_of_pages_have_no_name_of_their_site(tmp_path, title, heading, named):
    (tmp_path / "a.html").write_text(
        f"<title>{title}</title><h1>{heading}</h1><p>One.</p><h2>5.1. Keys</h2><p>Two.</p>"
    )
    (document,) = read_documents(tmp_path / "a.html").documents
    assert document.title == named
    long = replace(document, text=document.text.replace("One.", "One word. " * 300))
    assert not any(chunk.title.startswith("5. DNSSEC > 5. DNSSEC") for chunk in chunk_document(long, SentenceChunker()))


@pytest.mark.parametrize(
    ("opening", "title"),
    [
        ("The Mill, chapter 2\n\n\n\n", "The Mill, chapter 2"),
        ("The Mill, chapter 2\n", "notes"),  # the first line of a paragraph
        ("The mill was sold in May.\n\n", "notes"),
        ("Meeting notes\n\n", "notes"),  # the name of the file says more
        ("Dear Sir or Madam\n\n", "notes"),
        ("Karn, 12 May 1920\n\nDear Anna,\n", "notes"),
        ("2024-05-01 12:00:03 Server started\n\n", "notes"),
        ("X = read(the_mill, 3)\n\n", "notes"),
        ("Mill\n====\n\n", "Mill"),
        ("Karn for Debian\n---------------\n", "Karn for Debian"),
        ("*****\nMills of Karn\n*****\n\n", "Mills of Karn"),
        ("Contents\n========\n\n", "notes"),
        ("Mills  Towns\n-----  -----\n", "notes"),
    ],
)
def test_a_first_line_that_stands_alone_is_the_title_of_a_text_file(tmp_path, opening, title):
    text = f"{opening}Ole Brandt bought the mill at Karn from Hedda Sorrel,\nand sold it in the next year to the town."
    (tmp_path / "notes.txt").write_text(text)
    (document,) = read_documents(tmp_path).documents
    assert (document.id, document.title, document.text) == ("notes.txt", title, text)


def test_reading_tells_how_far_it_is(tmp_path):
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(f"# {name}\n\nA mill.")
    told = []
    read_documents(tmp_path, progress=lambda *step: told.append(step))
    assert told == [("reading", 1, 2), ("reading", 2, 2)]


def test_a_build_frees_the_texts_and_keeps_the_structure_that_was_read(tmp_path):
    (tmp_path / "a.md").write_text("# Gate\n\nOrla keeps it.")
    loaded = read_documents(tmp_path)
    (document,) = loaded.documents
    (checked,) = check_documents(loaded.drain())
    assert checked.blocks == document.blocks != ()
    assert (loaded.documents, loaded.ids) == ((), {"a.md"})
    of_another_text = replace(document, text="Gate")
    assert check_documents([of_another_text])[0].blocks == ()
