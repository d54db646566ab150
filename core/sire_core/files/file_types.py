"""The type of a file by its content, where its name says another: pages named `.xls`, RTF named `.doc`."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from sire_core.errors import CorpusError
from sire_core.files.text_encodings import is_binary

_HEAD = 8192
_PDF_HEAD = 1024  # Readers look for the mark of a PDF in so many bytes
ENCRYPTED = "the file is encrypted; save it without its password to read it"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_STREAMS = {"WordDocument": ".doc", "Workbook": ".xls", "Book": ".xls", "PowerPoint Document": ".ppt"}
_MAIL_STREAM, _ENCRYPTED_STREAM = "__properties_version1.0", "EncryptedPackage"
_ZIP_FOLDERS = {"word": ".docx", "xl": ".xlsx", "ppt": ".pptx"}
_ZIP_KINDS = {
    "application/epub+zip": ".epub",
    "application/vnd.oasis.opendocument.text": ".odt",
    "application/vnd.oasis.opendocument.spreadsheet": ".ods",
    "application/vnd.oasis.opendocument.presentation": ".odp",
}
_TEXTS = (".doc", ".docx", ".odt", ".rtf", ".ppt", ".pptx", ".odp", ".pdf", ".epub", ".msg")
_TABLES = (".xls", ".xlsx", ".ods")
SAME_FORMATS = {
    **dict.fromkeys((".docm", ".dotx", ".dotm"), ".docx"),
    **dict.fromkeys((".xlsm", ".xltx", ".xltm"), ".xlsx"),
    **dict.fromkeys((".pptm", ".ppsx", ".ppsm", ".potx", ".potm"), ".pptx"),
    ".dot": ".doc",
    ".xlt": ".xls",
    ".pot": ".ppt",
    ".pps": ".ppt",
    ".ott": ".odt",
    ".otp": ".odp",
    ".ots": ".ods",
}
"""Suffixes of templates, shows and files with macros, which are read as documents."""
_XML_ROOTS = {"fictionbook": ".fb2", "opml": ".opml", "html": ".html"}
_PAGE = re.compile(rb"\s*(?:<!--[^<>]*-->\s*)?<(?:!doctype\s+html|html|head|body|table|div|meta)\b", re.IGNORECASE)
_XML = re.compile(rb"\s*<\?xml\b|\s*<[A-Za-z][\w:.-]*(?:\s+[\w:.-]+\s*=\s*[\"'][^\"'<>]*[\"'])*\s*/?>")
_ROOT = re.compile(r"<(?:[\w.-]+:)?([A-Za-z][\w.-]*)[\s/>]")
_MAIL = re.compile(rb"(?:[A-Za-z][\w-]{1,40}:[^\r\n]*\r?\n(?:[ \t][^\r\n]*\r?\n)*){2,}")
_ARCHIVE = re.compile(rb"(?:^|\n)(?:MIME-Version|Content-Type):", re.IGNORECASE)
_WIDE = (b"\xff\xfe", b"\xfe\xff")  # Byte order marks of UTF-16
_SECTOR, _ENTRY = 512, 128


def type_by_content(path: Path, suffix: str) -> str:
    """The suffix that belongs to the content of a file; that of its name where nothing speaks against it.

    `CorpusError` if the file is encrypted.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return suffix  # said when it is read
    if head[:2] == b"PK":
        return _archive_type(path) or suffix
    if head.startswith(_OLE):
        return _compound_type(path, suffix)
    if head.startswith(b"{\\rtf") or (suffix == ".rtf" and head.lstrip().startswith(b"{")):
        return ".rtf"
    if b"%PDF-" in head[:_PDF_HEAD] and (suffix == ".pdf" or head.startswith(b"%PDF-")):
        return ".pdf"
    return (
        suffix
        if suffix not in (*_TEXTS, *_TABLES) or (is_binary(head) and not head.startswith(_WIDE))
        else _text_type(head, suffix)
    )


def _text_type(head: bytes, suffix: str) -> str:
    """The type of a text that is named like a file of Office."""
    text = head.removeprefix(b"\xef\xbb\xbf")
    if head.startswith(_WIDE):
        text = head.decode("utf-16", "replace").encode()
    mail = _MAIL.match(text)
    if mail and _ARCHIVE.search(mail[0]):
        return ".mht" if b"multipart/related" in text else ".eml"
    if _XML.match(text) and not _PAGE.match(text):
        root = _ROOT.search(text.decode("utf-8", "replace"))
        return _XML_ROOTS.get(root[1].lower() if root else "", ".xml")
    if _PAGE.match(text) or b"<html" in text[:_PDF_HEAD].lower():
        return ".html"
    return ".csv" if suffix in _TABLES else ".txt"


def _archive_type(path: Path) -> str:
    """Suffix of an Office file, a book or an OpenDocument file by its members; empty for another archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
                kind = archive.read("mimetype").decode("latin-1").strip().partition("-template")[0]
                if kind in _ZIP_KINDS:
                    return _ZIP_KINDS[kind]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError):
        return ""
    folders = {name.replace("\\", "/").partition("/")[0].lower() for name in names}
    if "meta-inf" in folders and any(name.lower().endswith(".opf") for name in names):
        return ".epub"
    if not any(name.lower() in ("[content_types].xml", "_rels/.rels") for name in names):
        return ""
    return next((suffix for folder, suffix in _ZIP_FOLDERS.items() if folder in folders), "")


def _compound_type(path: Path, suffix: str) -> str:
    """Suffix of an old file of Office by the streams in its root; those of files in it do not count."""
    names = _stream_names(path)
    if _ENCRYPTED_STREAM in names:
        raise CorpusError(ENCRYPTED)
    if _MAIL_STREAM in names:
        return ".msg"
    types = [_OLE_STREAMS[name] for name in names if name in _OLE_STREAMS]
    return suffix if suffix in types or not types else types[0]


def _stream_names(path: Path) -> list[str]:
    """Names in the first sectors of the directory of a compound file."""
    try:
        with path.open("rb") as file:
            header = file.read(_SECTOR)
            size = 1 << min(12, max(9, int.from_bytes(header[30:32], "little")))
            file.seek((int.from_bytes(header[48:52], "little") + 1) * size)
            directory = file.read(4 * size)
    except (OSError, OverflowError, ValueError):
        return []
    names = []
    for start in range(0, len(directory) - _ENTRY + 1, _ENTRY):
        length = int.from_bytes(directory[start + 64 : start + 66], "little")
        if 2 <= length <= 64:
            names.append(directory[start : start + length - 2].decode("utf-16-le", "replace"))
    return names
