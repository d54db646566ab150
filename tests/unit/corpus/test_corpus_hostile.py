"""Files that expand without end, links that lead out of a folder, ids that could not be found again."""

import io
import json
import os
import socket
import zipfile
import zlib
from pathlib import Path

import pytest

from sire_core import Document, Index, Passage
from sire_core.errors import CorpusError
from sire_core.files.html import html_to_markdown
from sire_core.files.readers import read_documents
from sire_core.testing.doubles import HashEmbedder
from support.command import run

pytestmark = pytest.mark.usefixtures("one_reading_process")

LAUGHS = "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {after} '{f'&{name};' * 10}'>" for name, after in zip("abcdefgh", "bcdefghi", strict=True)
)
LAUGHS += "]><x>&i;</x>"


def archive(**members):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name.replace("__", "/").replace("_xml", ".xml"), content)
    return made.getvalue()


def lying(content):
    """An archive that says a member is small and is not."""
    made = bytearray(archive(word__document_xml=content))
    size = len(content).to_bytes(4, "little")
    while size in made:
        place = made.index(size)
        made[place : place + 4] = (10).to_bytes(4, "little")
    return bytes(made)


PAGES = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[2 0 R]/Count 1>>endobj "
LOCK = b"/Encrypt<</Filter/Standard/V 1/R 2/P -44/O(%s)/U(%s)>>/ID[(x)(x)]" % (b"o" * 32, b"u" * 32)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("encrypted.pdf", PAGES + b"trailer<</Root 1 0 R" + LOCK + b">>", "password"),
        ("circle.pdf", PAGES + b"trailer<</Root 1 0 R>>", "cannot be converted"),
        ("half.pdf", PAGES[:40], "cannot be converted"),
        ("bomb.docx", archive(word__document_xml=bytes(3_000_000)), "expands to more than max_bytes"),
        ("many.epub", archive(**{f"p{i}_xml": bytes(300_000) for i in range(10)}), "expands to more than max_bytes"),
        ("lying.xlsx", lying(bytes(3_000_000)), "expands to more than max_bytes"),
        ("ratio.docx", archive(word__document_xml=bytes(20_000_000)), "times its size"),
        ("laughs.docx", archive(word__document_xml=LAUGHS), "declares XML entities"),
        ("laughs.xml", LAUGHS.encode(), "declares XML entities"),
        ("wide.xml", LAUGHS.encode("utf-16"), "declares XML entities"),
        ("late.fb2", b" " * ((1 << 20) - 5) + LAUGHS.encode(), "declares XML entities"),
        ("broken.docx", archive(word__document_xml=b"x" * 999)[:-30], "cannot be opened"),
        ("garbage.pptx", b"PK\x03\x04" + bytes(range(256)) * 8, "cannot be opened"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_files_are_refused_and_the_rest_is_read(tmp_path, name, content, reason):
    pytest.importorskip("kreuzberg")
    (tmp_path / "good.txt").write_text("Alma lives in Drava.")
    (tmp_path / name).write_bytes(content)
    found = read_documents([tmp_path], max_bytes=2_000_000 if "ratio" not in name else 100_000_000)
    assert [document.id for document in found.documents] == ["good.txt"]
    assert [reason in failure.reason for failure in found.failures] == [True], found.failures
    with pytest.raises(CorpusError, match=r"[^.]\.\Z"):
        read_documents(tmp_path / name, max_bytes=2_000_000 if "ratio" not in name else 100_000_000)


def elsewhere():
    """An archive whose list says that a member begins before the file does."""
    made = bytearray(archive(word__document_xml=b"x" * 999))
    end = made.rindex(b"PK\x05\x06")
    made[end + 16 : end + 20] = (int.from_bytes(made[end + 16 : end + 20], "little") + 9).to_bytes(4, "little")
    return bytes(made)


def test_an_archive_whose_members_lie_nowhere(tmp_path):
    pytest.importorskip("kreuzberg")
    (tmp_path / "odd.docx").write_bytes(elsewhere())
    with pytest.raises(CorpusError, match="cannot be opened"):
        read_documents([tmp_path / "odd.docx"])


@pytest.mark.parametrize("odd", ["<![a](b.png)", "<![if mso]>", "<![CDATA[x]]>", "<![", "<!a[", "<!>"])
def test_odd_declarations_do_not_stop_a_page(odd):
    title, text = html_to_markdown(f"<title>Mill</title><p>Alma lives in Drava.</p>{odd}<p>She left.</p>")
    assert title == "Mill"
    assert text.startswith("Alma lives in Drava.")


def test_a_packed_member_of_another_kind(tmp_path):
    pytest.importorskip("kreuzberg")
    with zipfile.ZipFile(tmp_path / "odd.docx", "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("word/document.xml", zlib.compress(b"x"))
    with pytest.raises(CorpusError, match="compressed with an unsupported method"):
        read_documents([tmp_path / "odd.docx"])


def test_links_to_files_outside_of_the_folder_are_not_followed(tmp_path):
    (tmp_path / "secret.txt").write_text("The password is Zorbleflux.")
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("Alma lives in Drava.")
    (docs / "inner.txt").symlink_to(docs / "a.txt")
    (docs / "outer.txt").symlink_to(tmp_path / "secret.txt")
    (docs / "up.txt").symlink_to("../secret.txt")
    found = read_documents([docs])
    assert "Zorbleflux" not in repr(found.documents)
    assert [(failure.where[-9:], "outside of the folder" in failure.reason) for failure in found.failures] == [
        ("outer.txt", True),
        ("cs/up.txt", True),
    ]
    assert [d.text for d in read_documents([docs / "outer.txt"]).documents] == ["The password is Zorbleflux."]


IDS = [
    "\x1b[31mred",
    "line\nbreak",
    "tab\there",
    "\x7f",
    "\u202eright to left",
    "a/b\\c",
    "%",
    "'; DROP TABLE units",
    "\u0130",
]


def test_delete_finds_every_id_that_add_took(tmp_path):
    lines = [json.dumps({"id": name, "text": f"Alma met Person{n}."}) for n, name in enumerate(IDS)]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    read = read_documents([tmp_path / "c.jsonl"]).documents
    assert [document.id for document in read] == IDS
    with Index(tmp_path / "ix", recipe="flat", embedder=HashEmbedder()) as index:
        index.add(read)
        assert [document.id for document in index.documents()] == IDS
        for name in IDS:
            index.delete([name])
        assert index.documents() == []


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "\ud83d\ude00", "a\udfff"])
def test_ids_that_cannot_be_kept_are_refused(tmp_path, name):
    with Index(recipe="flat", embedder=HashEmbedder()) as index:
        for document in (Document(name, "Alma."), Document("a", chunks=(Passage("Alma.", name),))):
            with pytest.raises(CorpusError, match="NUL character or half a surrogate"):
                index.add([document])
    if name != "\ud83d\ude00":  # which JSON says of one character
        (tmp_path / "c.jsonl").write_text(json.dumps({"id": name, "text": "Alma."}))
        with pytest.raises(CorpusError, match="NUL character or half a surrogate"):
            read_documents([tmp_path / "c.jsonl"])


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "process files", "system files"])
def test_what_is_no_plain_file_is_named_and_never_read(tmp_path, kind):
    """Through the command line, which also remembers what it has read: a pipe would hold it for ever."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "good.md").write_text("Alma lives in Drava.")
    sources = [folder]
    if kind == "pipe":
        os.mkfifo(folder / "pipe.md")
        os.mkfifo(folder / "pipe")
    elif kind == "socket":
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(os.path.relpath(folder / "s.md"))
        bound.close()
    elif kind == "device":
        (tmp_path / "zero.md").symlink_to("/dev/zero")
        sources += [Path("/dev/zero"), Path("/dev/tty"), tmp_path / "zero.md"]
    else:
        sources += [Path("/proc/self/fdinfo" if kind == "process files" else "/sys/kernel/mm")]
        if not sources[-1].exists():
            pytest.skip("no such files here")
    for _ in range(2):  # the second time it knows what it has read
        found = run("index", *sources, "--to", tmp_path / "ix")
        assert "could not be read and w" in found.output or (
            kind.endswith("files") and "of types that are not read" in found.output
        )
    with Index(tmp_path / "ix") as index:
        name = "source/good.md" if kind.endswith("files") else "good.md"  # of two folders, or of one
        assert [document.id for document in index.documents()] == [name]


def repeated_table(rows, letters):
    cells = "".join(f"<td rowspan=99>{'z' * letters}" for _ in range(40))
    return f"<table>{(f'<tr>{cells}</tr>' + '<tr><td>x' * 98) * rows}</table>"


@pytest.mark.parametrize(
    ("name", "content", "most"),
    [
        ("rows.html", repeated_table(10, 490), None),
        ("columns.html", "<table>" + "<tr>" + "<td colspan=99>x" * 40_000 + "</table>", None),
        ("deep.xml", "<a>" * 30_000 + "Alma." + "</a>" * 30_000, 99),
        ("deep.ipynb", '{"cells":' + "[" * 30_000, None),
        ("macros.org", "#+MACRO: a " + "x" * 1900 + "\n" + "{{{a}}}\n" * 9_000, None),
        ("attributes.adoc", ":a0: xx\n" + "".join(f":a{n}: {{a{n - 1}}}{{a{n - 1}}}\n" for n in range(1, 60)) + "{a59}\n", 4_000),
        ("values.xml", "<!DOCTYPE x [<!ENTITY a '" + "b" * 900 + "'>]><x>" + "&a;" * 9_000 + "</x>", None),
        ("quotes.csv", "a,b\n" + '"x,1\n' * 9_000, 200_000),
        ("marks.html", "<p>" + "<sup>" * 9_000 + "<ruby>a<rt>b" * 9_000 + "<math><mrow>" * 9_000 + "x", 200_000),
        ("boundaries.eml", "From: a@b.c\nContent-Type: multipart/mixed; boundary=z\n\n" + "--a\n\nx\n" * 5_000, 60_000),
        ("forwarded.eml", "From: a@b.c\nContent-Type: message/rfc822\n\n" * 3_000, None),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)  # fmt: skip
def test_text_does_not_grow_beyond_what_a_file_holds(tmp_path, name, content, most):
    (tmp_path / name).write_text(content)
    if most is None:
        with pytest.raises(CorpusError):
            read_documents(tmp_path / name)
    else:
        assert sum(len(document.text) for document in read_documents(tmp_path / name)) <= most
