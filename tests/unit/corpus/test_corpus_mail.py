"""Mails keep their lines, say who wrote them when, and bring the attachments that are text."""

import time
from email.message import EmailMessage

import pytest

from sire_core.errors import CorpusError
from sire_core.files.readers import read_documents
from tests.support.outlook import outlook_mail

pytestmark = pytest.mark.usefixtures("one_reading_process")

BODY = "Hallo,\n\ndas Lager zieht um.\nDie Kosten trägt Wismar.\n\n> Wohin?\n> Und wann?\n\n-- \nPetra"


def read(tmp_path, raw):
    (tmp_path / "m.eml").write_bytes(raw)
    found = read_documents(tmp_path / "m.eml")
    (document,) = found.documents
    return document, found.failures


def mail(body=BODY, **headers):
    message = EmailMessage()
    for name, value in {
        "From": "Petra Holm <petra@ex.com>",
        "To": "ops@ex.com",
        "Subject": "Umzüge",
        **headers,
    }.items():
        message[name] = value
    message.set_content(body)
    return message


def test_lines_and_quotes_stay_and_headers_are_metadata(tmp_path):
    raw = bytes(mail(Date="Mon, 04 Mar 2024 09:12:00 +0100"))
    document, failures = read(tmp_path, raw)
    assert document.title == "Umzüge"
    assert document.metadata == {
        "source": "m.eml",
        "from": "Petra Holm <petra@ex.com>",
        "to": "ops@ex.com",
        "date": "2024-03-04T09:12:00+01:00",
    }
    head = "From: Petra Holm <petra@ex.com>\nTo: ops@ex.com\nDate: Mon, 04 Mar 2024 09:12:00 +0100"
    assert document.text == f"{head}\n\n{BODY}"
    assert not failures


def test_attachments_of_text_are_read_and_others_are_named(tmp_path):
    message = mail()
    message.add_alternative("<p>Only in <b>HTML</b>.</p>", subtype="html")
    message.add_attachment("remise de 7 pour cent", filename="annexe.txt")
    message.add_attachment("<p>The <b>terms</b>.</p>", subtype="html", filename="terms.html")
    message.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename="plan.pdf")
    message.add_attachment(mail("Wohin?", Subject="Frage", To="petra@ex.com"))
    document, failures = read(tmp_path, bytes(message))
    assert "## annexe.txt\n\nremise de 7 pour cent" in document.text
    assert "## terms.html\n\nThe terms." in document.text
    assert "## Frage\n\nFrom: Petra Holm <petra@ex.com>\nTo: petra@ex.com\n\nWohin?" in document.text
    assert "Only in" not in document.text
    (failure,) = failures
    assert failure.where.endswith("m.eml: plan.pdf")
    assert "application/pdf" in failure.reason


def test_where_to_answer_and_who_got_a_hidden_copy_are_read(tmp_path):
    document, _ = read(tmp_path, bytes(mail(**{"Bcc": "audit@ex.com", "Reply-To": "Lager <lager@ex.com>"})))
    head = "From: Petra Holm <petra@ex.com>\nReply-To: Lager <lager@ex.com>\nTo: ops@ex.com\nBcc: audit@ex.com\n\n"
    assert document.text.startswith(head)
    assert (document.metadata["reply_to"], document.metadata["bcc"]) == ("Lager <lager@ex.com>", "audit@ex.com")
    assert [block.kind for block in document.blocks][:4] == ["field"] * 4


@pytest.mark.parametrize(
    ("raw", "title", "text"),
    [
        ("Subject: Größe\n\nCafé".encode(), "Größe", "Café"),
        (b"Subject: A\nContent-Type: text/plain; charset=windows-1251\n\n" + "Завод".encode("cp1251"), "A", "Завод"),
        (b"Subject: A\nContent-Type: text/plain; charset=nonsense\n\nIt ends.", "A", "It ends."),
        (b"Subject: A\nContent-Type: text/html\n\n<p>It <i>ends</i> here.", "A", "It ends here."),
        (b"Subject: =?utf-8?Q?Umz=C3=BCge?= =?bad?Q?x\nDate: soon\n\nx", "Umzüge =?bad?Q?x", "Date: soon\n\nx"),
        (b"Subject: A\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nNever closed.", "A", "Never closed."),
    ],
)  # fmt: skip
def test_mails_as_programs_write_them(tmp_path, raw, title, text):
    document, failures = read(tmp_path, raw)
    assert (document.title, document.text) == (title, text)
    assert not failures


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\x01 no mail at all",
        b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(5000)),
    ],
    ids=["noise", "nested"],
)
def test_what_is_no_mail_is_refused(tmp_path, raw):
    with pytest.raises(CorpusError, match="mail"):
        read(tmp_path, raw)


@pytest.mark.parametrize("date", ["Mon, 1 Jan 99999999999999999999 10:00:00 +0000", "gibberish"])
def test_a_date_that_is_none_stays_as_it_is_written(tmp_path, date):
    raw = f"\ufeffFrom: a@b.c\nSubject: Offer\nDate: {date}\n\nThe mill is for sale."
    document, _ = read(tmp_path, raw.encode())
    assert document.metadata["date"] == date
    assert document.title == "Offer"


def test_attachments_beside_another_form_of_the_text_are_read_and_named(tmp_path):
    raw = b"""From: a@b.c
Content-Type: multipart/alternative; boundary=a

--a
Content-Type: text/plain

See attachment.
--a
Content-Type: multipart/mixed; boundary=m

--m
Content-Type: text/html; name=body.html

<p>See attachment.</p>
--m
Content-Type: text/plain; name=contract.txt
Content-Disposition: attachment; filename=contract.txt

The rent is 400.
--m
Content-Type: application/pdf; name=plan.pdf
Content-Disposition: attachment; filename=plan.pdf

x
--m--
--a--
"""
    document, failures = read(tmp_path, raw)
    assert document.text.startswith("From: a@b.c\n\nSee attachment.")
    assert "## contract.txt\n\nThe rent is 400." in document.text
    assert [failure.where.rpartition(": ")[2] for failure in failures] == ["plan.pdf"]


def test_long_headers_are_not_parsed(tmp_path):
    name = '";' * 200_000
    raw = f"From: a@b.c\nSubject: {'=?utf-8?q?a?= ' * 20_000}\nContent-Type: text/plain; name={name}\n\nWords."
    start = time.process_time()
    document, _ = read(tmp_path, raw.encode())
    assert time.process_time() - start < 1
    assert document.text.endswith("Words.")


def test_mails_of_outlook_are_read_in_text_or_html_and_name_what_is_not_read(tmp_path):
    pytest.importorskip("kreuzberg")
    held = {"image001.png": b"x", "plan.pdf": b"%PDF" * 9_000}
    body = "Hallo,\r\ndas Lager zieht um."
    (tmp_path / "a.msg").write_bytes(outlook_mail("Umzüge", body, sender=("Petra", "p@ex.com"), attachments=held))
    (tmp_path / "b.msg").write_bytes(outlook_mail("Umzüge", "", sender=("Petra", "p@ex.com"), html=b"<p>Words.</p>"))
    (tmp_path / "c.msg").write_bytes(outlook_mail("Umzüge", "", sender=("Petra", "p@ex.com")))
    came_with = "Received: by ex.com\nReply-To: =?utf-8?q?B=C3=BCro?= <b@ex.com>\nBcc: x@ex.com\n\n"
    (tmp_path / "d.msg").write_bytes(outlook_mail("Umzüge", "Ja.", sender=("Petra", "p@ex.com"), headers=came_with))
    found = read_documents(tmp_path)
    head = 'From: "Petra" <p@ex.com>\nDate: 2026-01-02T13:30:00+00:00'
    texts = [f"{head}\n\nHallo,\ndas Lager zieht um.", f"{head}\n\nWords.", head]
    texts.append(f"{head}\n\nJa.".replace("\n", "\nReply-To: Büro <b@ex.com>\n", 1))
    assert [document.text for document in found.documents] == texts
    assert found.documents[0].metadata["date"] == "2026-01-02T13:30:00+00:00"
    assert [failure.where.rpartition("/")[2] for failure in found.failures] == ["a.msg: plan.pdf", "c.msg: its text"]
