"""Signs that a text was read badly: bytes and markup in the place of words, letters without words, lost lines."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence

from sire_core.documents.document_names import cited_names
from sire_core.documents.markdown_writing import ELEMENTS
from sire_core.text.pluralize import count, some
from sire_core.types import Document

_LOOKED_AT = 200_000  # Number of characters that are checked
_ENOUGH = 200
_LONG_LINE = 20_000
_NAMED = 3
_LETTERS = re.compile(r"[^\W\d_]+")
_SYMBOLS = re.compile("[\u2200-\u23ff\u2460-\u24ff\u2600-\u27bf\u2900-\u2bff\ue000-\uf8ff]")
_DRAWN_SIGNS = re.compile(r"[\u2190-\u21ff\u2500-\u25ff|+]|([!-/:-@\[-`{-~])(?: ?\1){2,}")
"""Characters of diagrams, rules and contents, no letters read badly: arrows, boxes, shapes, rows of one mark."""
_LETTER = re.compile(r"(?<!\S)[A-Za-z](?!\S)")
_CONTROL = re.compile("[\x01-\x08\x0e-\x1a]")
_LEFT_TAG = re.compile(
    rf"</?(?:{ELEMENTS}|html|head|body|title|meta|link|script|style|form|input|button)\b[^<>]*>", re.IGNORECASE
)
"""Tags of HTML: XML stands in manuals as an example."""


def warn_of_bad_reading(documents: Iterable[Document], reader: str) -> None:
    """Warn once, naming them, of documents that an app of a framework has read badly; `reader` is ours for it."""
    warned = {document.id: (document, signs) for document in documents if (signs := reading_warnings(document))}
    if not warned:
        return
    names = dict.fromkeys(name for one, _ in warned.values() for name in cited_names([one.id], one.metadata, {}))
    reasons = ", ".join(dict.fromkeys(sign for _, signs in warned.values() for sign in signs))
    look = count(len(warned), "document looks", "documents look")
    warnings.warn(
        f"{look} badly read ({reasons}): {some(list(names), _NAMED)}. Searches find little in such texts. Read the "
        "files with sire_core.files.readers.read_documents(folder), and give from_documents what it returns; or "
        f"with {reader}.",
        stacklevel=2,
    )


def reading_warnings(document: Document) -> Sequence[str]:
    """Signs that a document was read badly, for people."""
    text = (document.text or "\n\n".join(passage.text for passage in document.passages))[:_LOOKED_AT]
    text = _DRAWN_SIGNS.sub("", text)
    dense = "".join(text.split())
    if len(dense) < _ENOUGH:
        return ()
    signs: list[str] = []
    words = _LETTERS.findall(text)
    if text.count("\ufffd") * 200 > len(dense):
        signs.append("characters that could not be decoded")
    if 100 * len(_CONTROL.findall(dense)) > len(dense):
        signs.append("bytes that are no text")
    if 4 * sum(map(len, _LEFT_TAG.findall(text))) > len(text):
        signs.append("HTML tags")
    if 2 * sum(map(len, words)) < len(dense) and 5 * sum(map(str.isalnum, dense)) < 3 * len(dense):
        signs.append("few letters")
    if 20 * len(_SYMBOLS.findall(dense)) > len(dense):
        signs.append("symbols in the place of letters")
    if 2 * len(_LETTER.findall(text)) > len(words):
        signs.append("most words broken into letters")
    elif 5 * sum(len(word) > 40 and word.isascii() for word in words) > len(words):
        signs.append("words without spaces between them")
    if max(map(len, text.split("\n"))) > _LONG_LINE:
        signs.append("one giant line")
    return signs
