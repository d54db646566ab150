"""Manual pages in troff are read with their headings, and every word once."""

import gzip
import re
import time

import pytest

from sire_core.corpus.readers import read_documents
from sire_core.errors import CorpusError

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


def read(path, content):
    path.write_bytes(content)
    (document,) = read_documents(path).documents
    return document


@pytest.mark.parametrize(
    ("name", "page", "title", "words"),
    [("tar.1", MAN, "tar(1)", MAN_WORDS), ("lease.8", MDOC, "lease(8)", MDOC_WORDS), ("lease.mdoc", MDOC, "lease(8)", MDOC_WORDS)],
)  # fmt: skip
@pytest.mark.parametrize("packed", [False, True])
def test_every_word_of_a_manual_page_is_read_once(tmp_path, name, page, title, words, packed):
    content = gzip.compress(page.encode()) if packed else page.encode()
    document = read(tmp_path / (f"{name}.gz" if packed else name), content)
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
        ("b.1.gz", gzip.compress(b".TH A 1\n" + b"a" * 100_000), "longer than max_bytes"),
    ],
)
def test_what_is_no_manual_page_is_refused(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=reason):
        read_documents(tmp_path / name, max_bytes=10_000)


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
    def seconds(size):
        content = (".TH A 1\n.SH B\nText.\n" + piece * (size // len(piece)) + "\n").encode()
        start = time.process_time()
        read(tmp_path / "a.1", content)
        return time.process_time() - start

    assert seconds(160_000) < 10 * max(seconds(20_000), 0.05)
