"""Mails (`.eml`, `.msg`) and web archives (`.mht`): sender, recipients, date, text, and attachments that are text."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple

from sire_core.documents.markdown_sections import with_comments_as_code
from sire_core.errors import CorpusError
from sire_core.files.conversion import Converted, clean_lines, spend
from sire_core.files.html import html_to_markdown
from sire_core.files.source_files import VALUE_SHARE, check_readable, declared_encoding, decode_any
from sire_core.text.words import clean_text

_SHOWN_HEADERS = ("from", "reply-to", "to", "cc", "bcc", "date")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MAX_HEADER_LETTERS = 10_000  # Longest header that is parsed; parsing is not linear
_OUTLOOK_PAGES = ("__substg1.0_1013001F", "__substg1.0_10130102")
"""Streams with the body as HTML, in UTF-16 and as bytes."""
_OUTLOOK_HEADERS = "__substg1.0_007D001F"
_NOT_READ = "an attachment of type {} is not read; save it as a file"
_LOOKS = ("text/css", "text/javascript", "text/x-amp-html")
"""Types of parts that hold no text of a mail, or the same once more."""
_TEXTS = (".txt", ".md", ".csv", ".log", ".html", ".htm", ".rst", ".text")
_PAGE = re.compile(rb"\s*(?:<!doctype html|<html\b)", re.IGNORECASE)
_MAIL_WORD = re.compile(r"[^\W_]+")
_ADDRESS = re.compile(r"\]\([^()\s]*\)|<?https?://\S+")
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]{40,}")
_BOUNDARY = re.compile(r"^--([^\r\n\"]{1,70}?)[ \t]*\r?\n(?=[A-Za-z-]{2,40}:|\r?\n)", re.MULTILINE)
_INLINE_PICTURE = re.compile(r"image\d+\.(?:png|jpe?g|gif)", re.IGNORECASE)
"""Names that Outlook gives to pictures within the text."""


class _Part(NamedTuple):
    """A part of a mail: the name of an attachment, its type, its text if that is read, and the title of a page."""

    name: str
    kind: str
    text: str | None
    title: str = ""
    is_attached: bool = False


def read_mail(path: Path, max_bytes: int) -> Converted:
    """Read a mail. Of alternative forms of the text the plain one is taken; inline pictures are left out."""
    check_readable(path, max_bytes, VALUE_SHARE)
    try:
        message = message_from_bytes(_without_zeros(path.read_bytes()))
        for part in message.walk():
            for name in [name for name, value in part.raw_items() if len(value) > _MAX_HEADER_LETTERS]:
                del part[name]
        headers = _headers(message)
        parts = list(_parts(message))
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror}") from error
    except (MessageError, LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CorpusError(f"cannot be read as a mail: {' '.join(str(error).split())[:300]}") from error
    if not headers:
        raise CorpusError("not a mail: it has none of the headers From, To, Date and Subject")
    read = [part for part in parts if part.text is not None and part.text.strip()]
    sections = [f"## {part.name}\n\n{part.text}" if part.name else f"{part.text}" for part in read]
    unread = [(part.name or "without a name", _NOT_READ.format(part.kind)) for part in parts if part.text is None]
    return _mail(headers, sections, unread)


def _without_zeros(raw: bytes) -> bytes:
    """A mail that somebody saved in UTF-16 as UTF-8; another one as it is."""
    if b"\0" not in raw[:4]:
        return raw.removeprefix(_BYTE_ORDER_MARK)
    is_marked = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    name = "utf-16" if is_marked else "utf-16-le" if raw[1:2] == b"\0" else "utf-16-be"
    return raw.decode(name, "replace").encode()


def read_outlook_mail(path: Path) -> Converted:
    """Read a mail as Outlook saves it. Attachments are not read."""
    from kreuzberg import ExtractionConfig, extract_file_sync

    config = ExtractionConfig(output_format="plain")
    config.max_archive_depth = 0  # attachments: one of them may expand without end
    extracted = extract_file_sync(str(path), config=config)
    metadata: dict[str, Any] = dict(extracted.metadata)
    headers = {
        "subject": metadata.get("subject"),
        "from": metadata.get("from_email"),
        "reply-to": _outlook_headers(path).get("reply-to"),
        **{name: ", ".join(metadata.get(f"{name}_emails") or ()) for name in ("to", "cc", "bcc")},
        "date": metadata.get("created_at"),
    }
    body = clean_lines(extracted.content.partition("\n\n")[2])
    names = [name for name in metadata.get("attachments") or () if not _INLINE_PICTURE.fullmatch(name)]
    unread = [(clean_text(name), _NOT_READ.format("unknown")) for name in names]
    body = body if body.strip() else _outlook_page(path)
    if not body.strip():
        unread.append(("its text", "it has none, or only one in RTF; save it as .eml to read that"))
    lines = {name: " ".join(clean_text(words).split()) for name, words in headers.items() if words}
    return _mail(lines, [body], unread)


def _outlook_headers(path: Path) -> dict[str, str]:
    """Headers with which a mail came, as Outlook keeps them."""
    import olefile

    with olefile.OleFileIO(str(path)) as container:
        raw = container.openstream(_OUTLOOK_HEADERS).read() if container.exists(_OUTLOOK_HEADERS) else b""
    with suppress(MessageError, ValueError, RecursionError):
        return _headers(message_from_bytes(raw.decode("utf-16-le", "replace").encode()))
    return {}


def _outlook_page(path: Path) -> str:
    """The text of a mail of Outlook that is stored as HTML alone."""
    import olefile

    with olefile.OleFileIO(str(path)) as container:
        pages = {name[-4:]: container.openstream(name).read() for name in _OUTLOOK_PAGES if container.exists(name)}
    for kind, raw in pages.items():
        page = raw.decode("utf-16-le", "replace") if kind == "001F" else decode_any(raw, declared_encoding(raw))
        return html_to_markdown(page)[1]
    return ""


def _mail(headers: Mapping[str, str], sections: Sequence[str], unread: Sequence[tuple[str, str]]) -> Converted:
    return Converted(
        title=headers.get("subject", ""),
        text="\n\n".join(text.strip("\n") for text in (_header_lines(headers), *sections) if text),
        fields={
            name.replace("-", "_"): _date(headers[name]) if name == "date" else headers[name]
            for name in _SHOWN_HEADERS
            if name in headers
        },
        unread=tuple(unread),
    )


def _headers(message: Message[Any, Any]) -> dict[str, str]:
    """The first non-empty header of each name, names in lower case."""
    headers: dict[str, str] = {}
    for name, value in message.raw_items():
        is_short = len(value) <= _MAX_HEADER_LETTERS
        if is_short and name.lower() in ("subject", *_SHOWN_HEADERS) and (words := _words(str(value))):
            headers.setdefault(name.lower(), words)
    return {name: headers[name] for name in ("subject", *_SHOWN_HEADERS) if name in headers}


def _header_lines(headers: Mapping[str, str]) -> str:
    return "\n".join(f"{name.title()}: {headers[name]}" for name in _SHOWN_HEADERS if name in headers)


def _words(value: str) -> str:
    """Words of a header, also if it is UTF-8 without declaration."""
    plain = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    with suppress(MessageError, LookupError, ValueError):  # what only looks like an encoded word stays as it is
        plain = str(make_header(decode_header(plain)))
    return " ".join(clean_text(plain).split())


def _date(value: str) -> str:
    try:
        return parsedate_to_datetime(value).isoformat()
    except (ValueError, TypeError, OverflowError):  # no date, or of no year that there is
        return value


def read_web_archive(path: Path) -> tuple[str, str]:
    """Title and Markdown of a page that a browser has saved with its pictures."""
    return _web_archive(path.read_bytes())


def web_archive_text(raw: bytes) -> str:
    """Markdown of the pages in a web archive."""
    return _web_archive(raw)[1]


def _web_archive(raw: bytes) -> tuple[str, str]:
    message = message_from_bytes(raw.removeprefix(_BYTE_ORDER_MARK))
    pages = [part for part in _parts(message) if part.text and part.text.strip()]
    title = next((part.title for part in pages if part.title), "") or _words(str(message["Subject"] or ""))
    return title, "\n\n".join(part.text or "" for part in pages)


def _parts(message: Message[Any, Any]) -> Iterator[_Part]:
    kind = message.get_content_type()
    payload: Any = message.get_payload()
    name = _words(message.get_filename() or "")
    if kind == "message/rfc822" and isinstance(payload, list):
        for forwarded in map(_decoded, payload):
            headers = _headers(forwarded)
            yield _Part(headers.get("subject", "") or name, kind, _header_lines(headers))
            yield from _parts(forwarded)
    elif isinstance(payload, list) and kind.startswith("multipart/"):
        forms = [list(_parts(part)) for part in payload]
        for form in _best_forms(payload, forms) if kind == "multipart/alternative" else forms:
            yield from form
    elif kind.startswith("multipart/"):
        yield from _parts_at_other_boundary(str(payload))
    elif kind in _LOOKS:
        return
    elif kind.startswith("text/") or (kind == "application/octet-stream" and name.lower().endswith(_TEXTS)):
        yield _text_part(name, kind, message)
    elif not (kind.endswith("-signature") or (kind.startswith("image/") and message["Content-ID"])):
        yield _Part(name, kind, None)


def _decoded(forwarded: Message[Any, Any]) -> Message[Any, Any]:
    """A forwarded mail; the content of one that is encoded as a whole."""
    payload: Any = forwarded.get_payload()
    if forwarded.keys() or not isinstance(payload, str) or not _BASE64.fullmatch(payload):
        return forwarded
    return message_from_bytes(b64decode(payload))


def _best_forms(parts: Sequence[Message[Any, Any]], forms: list[list[_Part]]) -> list[list[_Part]]:
    """One of the alternative forms of a text: the plain one, unless it has less than half of the words of another.

    An attachment can stand beside any form of the text; it is no form of it.
    """
    words = [
        set(
            _MAIL_WORD.findall(
                _ADDRESS.sub(" ", " ".join(part.text or "" for part in form if not part.is_attached)).lower()
            )
        )
        for form in forms
    ]
    filled = [index for index, word in enumerate(words) if word]
    plain = next((index for index in filled if parts[index].get_content_type() == "text/plain"), None)
    richest = max(filled, key=lambda index: (len(words[index]), index), default=len(forms) - 1)
    is_enough = plain is not None and 2 * len(words[plain] & words[richest]) >= len(words[richest])
    best = plain if is_enough else richest
    return [
        form if index == best else [part for part in form if part.name and source.is_multipart()]
        for index, (form, source) in enumerate(zip(forms, parts, strict=True))
    ]


def _parts_at_other_boundary(payload: str) -> Iterator[_Part]:
    """Parts of a text in which the boundary that the header names does not occur."""
    boundary = _BOUNDARY.search(payload)
    raw = payload.encode("utf-8", "surrogateescape")
    if boundary is None:
        if payload.strip():
            yield _text_part("", "text/plain", message_from_bytes(b"\n" + raw))
        return
    header = f'Content-Type: multipart/mixed; boundary="{boundary[1]}"\n\n'
    message = message_from_bytes(header.encode("utf-8", "surrogateescape") + raw)
    if isinstance(message.get_payload(), list):
        yield from _parts(message)


def _text_part(name: str, kind: str, part: Message[Any, Any]) -> _Part:
    raw = part.get_payload(decode=True)
    content = raw if isinstance(raw, bytes) else b""
    is_attached = part.get_content_disposition() == "attachment"
    is_page = kind == "text/html" or name.lower().endswith((".html", ".htm")) or _PAGE.match(content) is not None
    declared = part.get_content_charset() or ""
    text = decode_any(content, (declared and _usable(declared)) or (declared_encoding(content) if is_page else ""))
    text = clean_lines(text)
    if is_page:
        title, text = html_to_markdown(text)
        return _Part(name, kind, spend(text), title, is_attached)
    if str(part.get_param("format") or "").lower() == "flowed":
        text = _unflowed(text, delete_blank=str(part.get_param("delsp") or "").lower() == "yes")
    return _Part(name, kind, spend(with_comments_as_code(text)), is_attached=is_attached)


def _usable(charset: str) -> str:
    """A charset that says something; mails without letters outside of ASCII say so."""
    return "" if charset.lower() in ("us-ascii", "ascii", "unknown-8bit", "default", "x-unknown") else charset


def _unflowed(text: str, *, delete_blank: bool) -> str:
    """Paragraphs of a text in which a line that ends in a blank goes on in the next (RFC 3676)."""
    paragraphs: list[list[str]] = []
    depth_before, goes_on = -1, False
    for line in text.split("\n"):
        words = line.lstrip(">")
        depth = len(line) - len(words)
        words = words.removeprefix(" ")
        if goes_on and depth == depth_before and words != "-- ":
            paragraphs[-1].append(words)
        else:
            paragraphs.append([f"{'>' * depth} {words}" if depth else words])
        goes_on = words.endswith(" ") and words != "-- "
        if goes_on and delete_blank:
            paragraphs[-1][-1] = paragraphs[-1][-1][:-1]
        depth_before = depth
    return "\n".join("".join(lines) for lines in paragraphs)
