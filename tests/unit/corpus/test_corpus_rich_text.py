"""Deleted and moved words of an RTF file are left out, whatever stands around them; all others stay."""

import pytest

from sire_core.corpus.readers import read_documents

CASES = {
    r"a {\deleted gone {\b in it} \'fc\emdash\tab}b": "a b",
    r"a \deleted gone \deleted0 b": "a b",
    r"a {\deleted gone\plain  b}": "a b",
    r"a {\deleted gone\par}b": "a b",
    r"a {\deleted{\pict\pngblip 8950}{\field{\*\fldinst HYPERLINK x}{\fldrslt gone}}}b": "a b",
    r"a {\deleted{\pict\pngblip\bin3 }}{}}b C:\\deleted": r"a b C:\deleted",
    r"a {\mvf gone}{\mvt b}{\revised  c}": "a b c",
    r"a{\deleted {\*\footnote gone}}{\footnote\pard A note.} b": "a b [^1]: A note.",
    r"a{\*\atnid X}\chatn{\*\annotation\pard{\*\atnref 1}{\*\atndate 155} A comment.} b": "a b [^1]: A comment.",
    r"{\shp{\*\shpinst\shpleft1{\sp{\sn posh}{\sv 6}}{\shptxt In a box\par}}{\shprslt{\*\do{\dptxbxtext In a box}}}}b": "In a box b",
    r"\u-10179?\u-8704?, \uc0 \u55357\uc1 \u56832\'3f and \u8211?\~b": "😀, 😀 and –\xa0b",
    r"{\colortbl ;\red0 ;}the .env file \b !x\b0 ; {\field{\*\fldinst HYPERLINK x}{\fldrslt a .b}}": "the .env file **!x**; [a .b](x)",
    "{" * 500 + r"\deleted gone" + "}" * 600 + " b": "b",
}


@pytest.mark.parametrize("content", CASES)
def test_words_of_rich_text(tmp_path, content):
    pytest.importorskip("kreuzberg")
    (tmp_path / "a.rtf").write_text(rf"{{\rtf1\ansi {content}\par}}")
    (document,) = read_documents(tmp_path).documents
    assert " ".join(document.text.split(None)) == " ".join(CASES[content].split())
