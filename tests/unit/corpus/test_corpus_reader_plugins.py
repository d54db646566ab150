"""Readers that installed packages offer: the one of manual pages in `examples`, broken and hostile ones."""

import gzip
import re
import runpy
import sys
from pathlib import Path

import pytest

from sire_core.errors import CorpusError
from sire_core.files.readers import read_documents
from support import plugins
from support.growth import growth
from support.one_file import read_file

EXAMPLE = Path(__file__).parents[3] / "examples/manual_pages"


@pytest.fixture
def install(tmp_path_factory, monkeypatch):
    """Lays a package with a module and its entry points onto `sys.path`, as an installer does."""

    def put(module, source, entries, site=None):
        site = site or tmp_path_factory.mktemp("site")
        plugins.install(site, module, source, "sire_core.files", entries)
        monkeypatch.syspath_prepend(str(site))

    return put


@pytest.fixture
def manual_pages(install):
    """The reader of manual pages, with the entry points of its package."""
    entries = (EXAMPLE / "pyproject.toml").read_text().partition('[project.entry-points."sire_core.files"]')[2]
    install("sire_manual_pages", (EXAMPLE / "sire_manual_pages.py").read_text(), entries.replace('"', "").split("\n"))


MAN = r"""'\" t
.\" A comment
.de CMD
.  BR tar " \-\-" \\$1
..
.if t .ds X paper
.ie n \{\
.  ds C code
.\}
.TH TAR 1 "2023-01-01" "GNU" "User Commands"
.SH NAME
tar \- an "archiving" utility & <more>
.SH "SYNOPSIS"
.CMD create
.br
\fBtar\fR [\fIOPTION\fR]\&... \(lqquoted\(rq it\(aqs 50\ % \[u00E9]t\('e \(<= 5\\n \e \*(Aq
.SS
Sub & title
.TP
.BI \-f " file"
Use
.I file
as archive.\" a remark
.IP \(bu 2
An item.
.PP
Before.
.nf
  if (a < b) \-x
	tab
.fi
.TS
allbox;
lb l.
Name	Size
a|b	1
.TE
.ig
left out
..
.so man1/other.1
.UR http://a.example
the site
.UE
"""
MAN_WORDS = (
    "NAME tar - an \"archiving\" utility & <more> SYNOPSIS tar --create tar [OPTION]... “quoted” it's 50 % été ≤ 5\\n \\ '"
    " Sub & title -f file Use file as archive. • An item. Before. ``` if (a < b) -x tab ``` Name ; Size a|b ; 1 "
    "See man1/other.1 http://a.example the site"
)
MDOC = """.Dd May 1, 2023
.Dt LEASE 8
.Os
.Sh NAME
.Nm lease
.Nd give jobs
.Sh SYNOPSIS
.Nm
.Op Fl v | Fl q
.Op Fl o Ar file
.Ar job ...
.Sh DESCRIPTION
The
.Nm
tool reads
.Pa /etc/lease ,
see
.Xr queue 5 .
.Bl -tag -width Ds
.It Fl v , Fl Fl verbose
Says
.Dq more .
.El
"""
MDOC_WORDS = (
    "NAME lease give jobs SYNOPSIS lease [-v | -q] [-o file] job ... DESCRIPTION The lease tool reads /etc/lease, see "
    "queue(5). -v, --verbose Says “more”."
)


@pytest.mark.parametrize(
    ("name", "page", "title", "words"),
    [("tar.1", MAN, "tar(1)", MAN_WORDS), ("lease.8", MDOC, "lease(8)", MDOC_WORDS), ("lease.mdoc", MDOC, "lease(8)", MDOC_WORDS)],
)  # fmt: skip
@pytest.mark.parametrize("packed", [False, True])
def test_every_word_of_a_manual_page_is_read_once(manual_pages, tmp_path, name, page, title, words, packed):
    content = gzip.compress(page.encode()) if packed else page.encode()
    document = read_file(tmp_path / (f"{name}.gz" if packed else name), content)
    assert document.title == title
    assert " ".join(re.sub(r"^#+ ", "", document.text, flags=re.MULTILINE).split()) == words
    assert "\n## SYNOPSIS\n" in document.text


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("notes.1", b"Plain text.\n", "is no manual page"),
        (
            "see.1",
            b'.\\" Generated.\n\n.so man1/other.1\n',
            "only refers to the manual page man1/other.1; read that one",
        ),
        ("lib.so.2", b"\x7fELF\0\0", "is no manual page"),
        ("a.1.gz", b"no archive", "cannot be read"),
        ("b.1.gz", gzip.compress(b".TH A 1\n" + b"a" * (17 << 20)), "is longer than"),
    ],
)
def test_what_is_no_manual_page_is_refused(manual_pages, tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=reason):
        read_documents(tmp_path)


@pytest.mark.parametrize(
    "piece",
    [
        ".de A\n.A\n..\n.A\n",
        ".de A\n.B\n.B\n..\n.de B\n.A\n.A\n..\n.A\n",
        ".if n .if n ",
        ".if t \\{\n",
        ".TS\n",
        "\\*(",
        '.BR "',
        ".Op ",
        "\\[u",
        ".nf\n",
    ],
)
def test_hostile_pages_take_linear_time(tmp_path, piece):
    page = tmp_path / "a.1"
    read_manual_page = runpy.run_path(str(EXAMPLE / "sire_manual_pages.py"))["read_manual_page"]

    def work(size):
        page.write_text(".TH A 1\n.SH B\nText.\n" + piece * (size // len(piece)) + "\n")
        assert "Text." in read_manual_page(page)[1]

    assert growth(work, 20_000, 160_000) < 10


SHOUT = """
def read(path):
    text = path.read_text()
    if text.startswith("loop"):
        while True:
            pass
    return "Shouts", "# First\\n\\n" + text.upper()
"""


def test_a_package_reads_a_format_of_its_own_within_limits(install, tmp_path, monkeypatch):
    monkeypatch.setattr("sire_core.files.reading_process.SECONDS", 1)
    install("shouts", SHOUT, [".shout = shouts:read"])
    (tmp_path / "a.shout").write_text("a lease ends")
    (tmp_path / "b.shout").write_text("loop")
    (tmp_path / "c.other").write_text("no reader")
    loaded = read_documents(tmp_path)
    assert [(document.title, document.text) for document in loaded] == [("Shouts", "# First\n\nA LEASE ENDS")]
    reasons = {Path(failure.where).name: failure.reason for failure in loaded.failures}
    assert "needs more time" in reasons["b.shout"]
    assert "unsupported type" in reasons["c.other"]
    assert "shouts" not in sys.modules  # it runs in the process of the readers only


def test_a_broken_package_costs_its_own_files_only(install, tmp_path):
    install("broken_reader", "import absent_library_of_theirs", [".broken = broken_reader:read"])
    (tmp_path / "a.broken").write_text("words")
    (tmp_path / "b.md").write_text("# A lease\n\nIt ends.")
    loaded = read_documents(tmp_path)
    assert loaded.ids == {"b.md"}
    (failure,) = loaded.failures
    assert "the reader of .broken in broken_reader cannot be loaded" in failure.reason
    assert "mend or uninstall" in failure.reason


def test_a_package_among_the_documents_is_never_imported(install, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    marker = tmp_path / "ran"
    install("evil", f"open({str(marker)!r}, 'w')\ndef read(path): return '', 'x'", [".evil = evil:read"], tmp_path)
    (tmp_path / "a.evil").write_text("words")
    (tmp_path / "b.md").write_text("# A lease\n\nIt ends.")
    read_documents([tmp_path, tmp_path / "b.md"])
    assert not marker.exists()
