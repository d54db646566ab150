"""Mails (`.eml`, `.msg`): sender, recipients, date, text, and attachments that are text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple

from sire_core.documents.markdown_sections import with_comments_as_code
from sire_core.errors import CorpusError
from sire_core.files.html import html_to_markdown
from sire_core.files.source_files import check_readable, decode_as
from sire_core.text.words import clean_text

_SHOWN = ("from", "to", "cc", "date")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST = 10_000
"""Longest header that is parsed; parsing is not linear."""
_NOT_READ = "an attachment of type {} is not read; save it as a file"
_INLINE_PICTURE = re.compile(r"image\d+\.(?:png|jpe?g|gif)", re.IGNORECASE)
"""Names that Outlook gives to pictures within the text."""


@dataclass(frozen=True, slots=True)
class Mail:
    """Content of a mail.

    Attributes:
        title: Its subject.
        text: Sender, recipients and date, a line each; the text; then each attachment that is text, under a heading.
        fields: `from`, `to`, `cc` and `date` (ISO 8601), those that it has.
        unread: Names of what else it holds, and why it is not read.
    """

    title: str
    text: str
    fields: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[tuple[str, str], ...] = ()


class _Part(NamedTuple):
    name: str
    kind: str
    text: str | None


def read_mail(path: Path, max_bytes: int) -> Mail:
    """Read a mail. Of alternative forms of the text the plain one is taken; inline pictures are left out."""
    check_readable(path, max_bytes)
    try:
        message = message_from_bytes(path.read_bytes().removeprefix(_BYTE_ORDER_MARK))
        for part in message.walk():
            for name in [name for name, value in part.raw_items() if len(value) > _LONGEST]:
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


def read_outlook_mail(path: Path) -> Mail:
    """Read a mail as Outlook saves it. Attachments are not read, nor a text that is stored as HTML alone."""
    from kreuzberg import ExtractionConfig, extract_file_sync

    config = ExtractionConfig(output_format="plain")
    config.max_archive_depth = 0  # attachments: one of them may expand without end
    extracted = extract_file_sync(str(path), config=config)
    found: dict[str, Any] = dict(extracted.metadata)
    headers = {
        "subject": found.get("subject"),
        "from": found.get("from_email"),
        **{name: ", ".join(found.get(f"{name}_emails") or ()) for name in ("to", "cc")},
        "date": found.get("created_at"),
    }
    body = clean_text(extracted.content.partition("\n\n")[2]).replace("\r\n", "\n").replace("\r", "\n")
    names = [name for name in found.get("attachments") or () if not _INLINE_PICTURE.fullmatch(name)]
    unread = [(clean_text(name), _NOT_READ.format("unknown")) for name in names]
    if not body.strip():
        unread.append(("its text", "it has none, or only one in HTML; save it as .eml to read that"))
    lines = {name: " ".join(clean_text(words).split()) for name, words in headers.items() if words}
    return _mail(lines, [body], unread)


def _mail(headers: Mapping[str, str], sections: Sequence[str], unread: Sequence[tuple[str, str]]) -> Mail:
    return Mail(
        title=headers.get("subject", ""),
        text="\n\n".join(text.strip("\n") for text in (_header_lines(headers), *sections) if text),
        fields={name: _date(headers[name]) if name == "date" else headers[name] for name in _SHOWN if name in headers},
        unread=tuple(unread),
    )


def _headers(message: Message[Any, Any]) -> dict[str, str]:
    """The first non-empty header of each name, names in lower case."""
    headers: dict[str, str] = {}
    for name, value in message.raw_items():
        if name.lower() in ("subject", *_SHOWN) and (words := _words(str(value))):
            headers.setdefault(name.lower(), words)
    return {name: headers[name] for name in ("subject", *_SHOWN) if name in headers}


def _header_lines(headers: Mapping[str, str]) -> str:
    return "\n".join(f"{name.capitalize()}: {headers[name]}" for name in _SHOWN if name in headers)


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


def _parts(message: Message[Any, Any]) -> Iterator[_Part]:
    kind = message.get_content_type()
    payload: Any = message.get_payload()
    name = _words(message.get_filename() or "")
    if kind == "message/rfc822" and isinstance(payload, list):
        for forwarded in payload:
            headers = _headers(forwarded)
            yield _Part(headers.get("subject", "") or name, kind, _header_lines(headers))
            yield from _parts(forwarded)
    elif isinstance(payload, list) and kind.startswith("multipart/"):
        forms = [list(_parts(part)) for part in payload]
        if kind == "multipart/alternative":
            plain = (index for index, part in enumerate(payload) if part.get_content_type() == "text/plain")
            best = next((index for index in plain if any((part.text or "").strip() for part in forms[index])), None)
            best = len(forms) - 1 if best is None else best
            # An attachment can stand beside any form of the text; it is no form of it.
            forms = [
                form if index == best else [part for part in form if part.name and source.is_multipart()]
                for index, (form, source) in enumerate(zip(forms, payload, strict=True))
            ]
        for form in forms:
            yield from form
    elif kind.startswith("text/"):
        yield _Part(name, kind, _text(message, kind))
    elif not (kind.endswith("-signature") or (kind.startswith("image/") and message["Content-ID"])):
        yield _Part(name, kind, None)


def _text(part: Message[Any, Any], kind: str) -> str:
    raw = part.get_payload(decode=True)
    content = raw if isinstance(raw, bytes) else b""
    text = decode_as(content, part.get_content_charset() or "utf-8")
    text = clean_text(content.decode("utf-8", "replace") if text is None else text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return html_to_markdown(text)[1] if kind == "text/html" else with_comments_as_code(text)
