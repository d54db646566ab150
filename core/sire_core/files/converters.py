"""Converts a file of a format that a library reads to its title and Markdown; what ours cannot read, kreuzberg may."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from sire_core.errors import CorpusError
from sire_core.files.archive_limits import unpacked_size
from sire_core.files.conversion import Converted, ExpansionError, clean_lines, conversion, note
from sire_core.files.other_formats import SECOND_READER, read_other
from sire_core.files.reader_plugins import load_plugin, plugin_module
from sire_core.files.reading_signs import reading_warnings
from sire_core.text.words import clean_text
from sire_core.types import Document

_READERS = {
    ".pdf": ("pdf", "read_pdf"),
    ".doc": ("old_word", "read_doc"),
    ".ppt": ("old_slides", "read_ppt"),
    ".docx": ("word_files", "read_docx"),
    ".pptx": ("slides", "read_pptx"),
    ".xlsx": ("workbooks", "read_xlsx"),
    ".epub": ("xml_files", "read_epub"),
    **dict.fromkeys((".odt", ".odp", ".ods"), ("xml_files", "read_odt")),
    ".opml": ("xml_files", "read_opml"),
    ".xml": ("xml_files", "read_xml"),
    ".fb2": ("xml_files", "read_xml"),
    **dict.fromkeys((".mht", ".mhtml"), ("mail", "read_web_archive")),
    ".msg": ("mail", "read_outlook_mail"),
    ".ipynb": ("source_code", "read_notebook"),
}
"""Modules and functions that read a format."""
_LIBRARIES = {
    "pdf": ("pypdfium2",),
    **dict.fromkeys(("old_word", "old_slides", "mail"), ("olefile", "kreuzberg")),
    "word_files": ("docx",),
    "slides": ("pptx",),
    "workbooks": ("openpyxl", "lxml"),
    **dict.fromkeys(("xml_files", "source_code"), ()),
}
"""Packages that the modules above import; kreuzberg where none is named."""
_NEWER = {".doc": ".docx", ".rtf": ".docx", ".xls": ".xlsx", ".ppt": ".pptx", ".msg": ".eml"}
"""Formats that the programs of older ones save, too, and that are read with all that they hold."""
_BYTE_ORDER_MARK = re.compile(r"\A([\s|]*)\ufeff")
_UNDERLINE = re.compile(r"\n{3,}")
_LOCKED = re.compile(r"\b(?:password|encrypted)\b", re.IGNORECASE)
_Content = TypeVar("_Content")


def convert(
    path: Path, suffix: str, max_bytes: int, unlimited: Callable[[], AbstractContextManager[None]] = nullcontext
) -> Converted:
    """Convert a file that has the content of a suffix, whatever its name; `CorpusError` if that cannot be done.

    `max_bytes` is what it may unpack to, and the letters that its text may have; `unlimited` is a context without
    limits of memory, in which libraries are loaded.
    """
    with conversion(unpacked_size(path, max_bytes)) as running:
        try:
            with unlimited():
                _load_libraries(suffix)
            converted = _checked(with_extra(suffix, lambda: _by_our_reader(path, suffix)))
        except ExpansionError:
            raise
        except CorpusError as error:
            if suffix not in SECOND_READER or isinstance(error.__cause__, ImportError) or _LOCKED.search(str(error)):
                raise
            with unlimited():
                _load_libraries("")
            converted = _by_second_reader(path, suffix, error)
    if len(converted.text) > max_bytes:
        raise CorpusError(f"its text is longer than max_bytes={max_bytes:,}; raise max_bytes or split the file")
    return replace(converted, notes=tuple(running.notes))


def check_libraries(suffix: str) -> None:
    """Refuse a suffix whose libraries are not installed, without importing them."""
    for library in _libraries(suffix):
        if sys.modules.get(library, True) is None or find_spec(library) is None:
            with_extra(suffix, partial(import_module, library))


def _libraries(suffix: str) -> Sequence[str]:
    plugin = plugin_module(suffix)
    if plugin or suffix in (".mht", ".mhtml"):
        return (plugin,) if plugin else ()
    return _LIBRARIES.get(_READERS.get(suffix, ("", ""))[0], ("kreuzberg",))


def _load_libraries(suffix: str) -> None:
    """Load what a reader imports, as far as it is installed."""
    for library in _libraries(suffix):
        with suppress(ImportError):
            import_module(library)


def _by_our_reader(path: Path, suffix: str) -> Converted:
    if plugin_module(suffix):
        return Converted(*load_plugin(suffix)(path))
    module, name = _READERS.get(suffix, ("other_formats", "read_other"))
    read = getattr(import_module(f"sire_core.files.{module}"), name)
    result = read(path, suffix) if name == "read_other" else read(path)
    return result if isinstance(result, Converted) else Converted(*result)


def _checked(converted: Converted) -> Converted:
    """A conversion with clean text, which is not empty."""
    text = _BYTE_ORDER_MARK.sub(
        r"\1", clean_lines(converted.text)
    )  # Excel begins "CSV UTF-8" with one, and it stays in the first cell
    if not text.strip():
        raise CorpusError("holds no text; a scanned document needs text recognition first")
    return replace(converted, title=clean_text(converted.title), text=_UNDERLINE.sub("\n\n", text).strip())


def _by_second_reader(path: Path, suffix: str, error: CorpusError) -> Converted:
    """A conversion by kreuzberg, with a note; the first error where there is none, or it looks badly read."""
    try:
        converted = _checked(Converted(*read_other(path, suffix)))
    except Exception:  # noqa: BLE001 (the first error says more)
        raise error from None
    if reading_warnings(Document(path.name, converted.text)):
        raise error
    note(f"read by kreuzberg, which may lose more of it; our reader: {error}")
    return converted


def with_extra(suffix: str, read: Callable[[], _Content]) -> _Content:
    """Call a reader that needs the extra `files`."""
    try:
        return read()
    except ImportError as error:
        raise CorpusError(
            f'files of type {suffix} need the extra "files", as new as this version: pip install -U "sire-rag[files]"'
        ) from error
    except CorpusError:
        raise
    except Exception as error:  # every format has errors of its own; one bad file must not stop a folder
        advice = f"; save it as {_NEWER[suffix]} and read that" if suffix in _NEWER else ""
        words = " ".join(str(error).split())[:300].rstrip(".")
        raise CorpusError(f"cannot be converted: damaged, or no {suffix} file ({words}){advice}") from error
