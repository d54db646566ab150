"""Pages of HTML are read in the encoding that they declare, as browsers read it."""

from __future__ import annotations

import pytest

from sire_core.corpus.readers import read_documents
from sire_core.errors import CorpusError


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
    (document,) = found.documents
    assert "Café “Größe”" in document.text
    (failure,) = found.failures
    assert "is not UTF-8; convert the file" in failure.reason


@pytest.mark.parametrize("declared", ["utf-8", "euc-jp", "unicode_escape", "nonsense", "utf-16"])
def test_html_that_declares_another_encoding_than_it_has_is_left_out(tmp_path, declared):
    (tmp_path / "page.html").write_bytes(f'<meta charset="{declared}"><p>Caf'.encode() + b"\xe9 \xff.")
    with pytest.raises(CorpusError, match=f"is not UTF-8, and the file cannot be read as '{declared}'") as caught:
        read_documents(tmp_path)
    assert "WINDOWS-1252" not in str(caught.value)
