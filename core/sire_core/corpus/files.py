"""Finds files and reads them as text or JSON; errors name the place and the remedy."""

from __future__ import annotations

import codecs
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from sire_core.algorithms.text import clean_text
from sire_core.errors import ConfigurationError, CorpusError

_WITHIN = 1024
"""Browsers look at this many bytes."""
_CONTENT = re.compile(r"""charset\s*=\s*["']?\s*([^\s"';]+)""", re.IGNORECASE)
_XML = re.compile(r"""xml\s[^>]*?\bencoding\s*=\s*["']([^"']+)""")

_LABELS = {
    "dos-874": "cp874",
    "iso-8859-8-e": "iso8859-8",
    "iso-8859-8-i": "iso8859-8",
    "windows-31j": "cp932",
    "windows-874": "cp874",
}
"""Encoding names of the web that Python does not know."""
_READ_AS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
}
"""Browsers read a declared encoding as one that extends it."""
_ENCODINGS = frozenset(
    [
        *_READ_AS.values(),
        *("big5", "big5hkscs", "cp866", "euc_jp", "iso2022_jp", "koi8-r", "koi8-u", "mac-cyrillic", "mac-roman"),
        *(f"cp{number}" for number in range(1250, 1259)),
        *(f"iso8859-{number}" for number in (*range(2, 9), 10, *range(13, 17))),
    ]
)

DEFAULT_MAX_BYTES = 512 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_UTF32_BOMS = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r\f\x1b")
_LOOKED_AT = 8192
DANGLING = "a link that points nowhere: the file that it names does not exist"
GENERATED = "made by a site generator"
"""How the reason begins for which a file of a folder is skipped that repeats pages or belongs to their looks."""
_INDEXES = re.compile(r"(?:searchindex\.js|search_index\.js(?:on)?|.+\.min\.js)")
_INDEX_PAGES = re.compile(r"(?:genindex(?:-.+)?|search|py-modindex)\.html")
_PAGES_TO_A_SCRIPT = 5
_PACKAGES = ("node_modules", "__pycache__", "site-packages")


def declared_encoding(raw: bytes) -> str:
    """Encoding that a page declares in a `meta` tag, else in the XML declaration; empty if none."""
    head = _Head()
    with suppress(AssertionError):  # of Python's parser, for markup that it does not know: nothing is read behind it
        head.feed(raw[:_WITHIN].decode("latin-1"))
    return head.meta or head.xml


def decode_as(raw: bytes, declared: str) -> str | None:
    """Decode a page that is not UTF-8 with its declared encoding; None if that is unknown or wrong."""
    label = declared.lower().removeprefix("x-")
    try:
        name = codecs.lookup(_LABELS.get(label, label)).name
        name = _READ_AS.get(name, name)
        if name not in _ENCODINGS:
            return None
        if name != "iso2022_jp":  # that one is ASCII with escapes, which reads as UTF-8, too
            with suppress(UnicodeDecodeError):
                return raw.decode("utf-8")
        return raw.decode(name)
    except (LookupError, ValueError):
        return None


class _Head(HTMLParser):
    """Reads the first declaration of each kind, outside of comments and scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.meta = self.xml = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta" or self.meta:
            return
        values = {name: value or "" for name, value in reversed(attrs)}
        self.meta = values.get("charset", "").strip()
        if not self.meta and values.get("http-equiv", "").strip().lower() == "content-type":
            charset = _CONTENT.search(values.get("content", ""))
            self.meta = charset[1] if charset else ""

    def handle_pi(self, data: str) -> None:
        encoding = _XML.match(data)
        if encoding and not self.xml:
            self.xml = encoding[1]


class SourceFile(NamedTuple):
    """A file to read.

    Attributes:
        path: Where it is.
        name: Its path below the folder that was given, with forward slashes; document ids start with it.
        is_given: Whether it was named itself, and not only its folder.
    """

    path: Path
    name: str
    is_given: bool = False


class FoundFiles(NamedTuple):
    """The files of some sources.

    Attributes:
        files: The files to read.
        unread: Files and folders that are left out, and why.
        folders: The folders that names are relative to, and what stands in front of the names of their files.
    """

    files: list[SourceFile]
    unread: list[tuple[SourceFile, str]]
    folders: dict[str, str]


class JsonLine(NamedTuple):
    """A line of a JSON Lines file: its number (from 1), and its value or the error."""

    number: int
    value: Any = None
    error: str = ""


def find_files(
    sources: Sequence[str | Path],
    roots: Mapping[str, str] | Sequence[str | Path] = (),
    is_document: Callable[[SourceFile], bool] = bool,
) -> FoundFiles:
    """List the files of the given files and folders.

    Where folders have documents of the same name, the names of all files begin with that of their folder, except for
    those of `roots`, whose names begin as noted.
    """
    paths = [Path(source) for source in sources]
    if not paths:
        raise CorpusError("No files or folders were given; name at least one.")
    # os.path answers False where pathlib raises: no permission, a NUL in the name.
    missing = [clean_text(str(path)) for path in paths if not os.path.exists(path)]  # noqa: PTH110 (see above)
    if missing:
        raise CorpusError(f"Not found, or not accessible: {', '.join(missing)}. Check what you typed.")
    files: list[SourceFile] = []
    unread: list[tuple[SourceFile, str]] = []
    noted = roots if isinstance(roots, Mapping) else dict.fromkeys(map(str, roots), "")
    prefixes = {os.path.realpath(folder): prefix for folder, prefix in noted.items()}
    fresh = {os.path.realpath(path) for path in paths if path.is_dir()} - prefixes.keys()
    folders = sorted({*prefixes, *fresh}, key=len)
    for path in paths:
        files_found = _walk(path, unread) if path.is_dir() else [SourceFile(path, clean_text(path.name), is_given=True)]
        if not files_found:
            unread.append((SourceFile(path, path.name), "the folder holds no files (hidden ones are skipped)"))
        files.extend(files_found)
    given = [file for file in reversed(files) if file.is_given]  # counts also where its folder is given, too
    unique = {os.path.realpath(file.path): file for file in (*reversed(files), *given)}
    files = [file for file in files if unique[os.path.realpath(file.path)] is file]
    places = {file: _place(file, folders) for file in (*files, *(file for file, _ in unread))}
    names = Counter(places[file][1] for file in files if is_document(file))
    is_shared = any(folder in fresh and names[name] > 1 for folder, name in places.values())
    prefixes |= {folder: _label(folder, folders) if is_shared else "" for folder in fresh}
    named = {
        file: file._replace(name=file_id(prefixes.get(folder, ""), name)) for file, (folder, name) in places.items()
    }
    return FoundFiles([named[file] for file in files], [(named[file], reason) for file, reason in unread], prefixes)


def file_id(prefix: str, name: str) -> str:
    """The id of a file by its path below a folder, and what stands in front of the ids of that folder."""
    return f"{prefix}/{name}" if prefix else name


def _place(file: SourceFile, folders: Sequence[str]) -> tuple[str, str]:
    """The first of some folders that contains the file, and its path below; of none an empty text and its name."""
    resolved = PurePath(os.path.realpath(file.path.parent), file.path.name)
    for folder in folders:
        if resolved.is_relative_to(folder):
            return folder, clean_text(resolved.relative_to(folder).as_posix())
    return "", file.name


def _label(folder: str, folders: Sequence[str]) -> str:
    """The end of a folder's path that no other folder has, as short as possible."""
    parts = PurePath(folder).parts
    ends = ("/".join(parts[-n:]) for n in range(1, len(parts)))
    return next((end for end in ends if sum(other.endswith(f"/{end}") for other in folders) == 1), folder)


def _walk(root: Path, unread: list[tuple[SourceFile, str]]) -> list[SourceFile]:
    def leave(path: Path, reason: str) -> None:
        unread.append((SourceFile(path, path.name), reason))

    def unreadable(error: OSError) -> None:
        leave(Path(str(error.filename)), f"cannot be listed: {error.strerror}")

    inside = os.path.realpath(root)
    files: list[SourceFile] = []
    for folder, subfolders, names in os.walk(root, onerror=unreadable):
        subfolders[:] = _subfolders(Path(folder), sorted(subfolders), leave)
        for name in sorted(names):
            if not name.startswith("."):
                path = Path(folder, name)
                if path.is_symlink() and path.exists() and not _is_inside(path, inside):
                    leave(path, "a link to a file outside of the folder; name it as a source to read it")
                    continue
                if _is_generated(root, path, names, subfolders):
                    leave(path, f"{GENERATED}; name the file as a source to read it")
                    continue
                files.append(SourceFile(path, clean_text(path.relative_to(root).as_posix())))
    return sorted(files, key=lambda file: file.name)


def _is_generated(root: Path, path: Path, names: Sequence[str], subfolders: Sequence[str]) -> bool:
    """Whether a file is a script or an index of a site, or the source of a page that is there, too."""
    parts = path.relative_to(root).parts
    if _INDEXES.fullmatch(path.name) or (path.suffix == ".js" and "_static" in parts):
        return True
    if path.suffix == ".js":  # few scripts among many pages are theirs
        scripts, pages = (sum(name.endswith(end) for name in names) for end in (".js", ".html"))
        return pages >= _PAGES_TO_A_SCRIPT * scripts
    if _INDEX_PAGES.fullmatch(path.name):
        return "_static" in subfolders or "searchindex.js" in names
    if "_sources" not in parts or path.suffix not in (".txt", ".rst", ".md"):
        return False
    place = parts.index("_sources")
    name = re.sub(r"(?:\.(?:txt|rst|md))+$", "", path.name)
    page = root.joinpath(*parts[:place], *parts[place + 1 : -1], name)
    return any(os.path.exists(f"{page}{suffix}") for suffix in (".html", "/index.html"))  # noqa: PTH110 (as above)


def _subfolders(folder: Path, subfolders: Sequence[str], leave: Callable[[Path, str], None]) -> list[str]:
    """Names of the subfolders to read; `leave` is called with the reason for others, except hidden ones."""
    followed = []
    for name in subfolders:
        path = Path(folder, name)
        if name.startswith("."):
            continue
        if name in _PACKAGES or os.path.exists(path / "pyvenv.cfg"):  # noqa: PTH110 (answers False without permission)
            leave(path, "a folder of installed packages; name it as a source to read it")
        elif path.is_symlink():
            leave(path, "a link to a folder; name it as a source to read it")
        else:
            followed.append(name)
    return followed


def _is_inside(path: Path, folder: str) -> bool:
    return PurePath(os.path.realpath(path)).is_relative_to(folder)


def is_dangling(path: Path) -> bool:
    """Whether a path is a link to a file that does not exist."""
    return path.is_symlink() and not os.path.exists(path)  # noqa: PTH110 (answers False without permission)


def check_readable(path: Path, max_bytes: int) -> None:
    """Refuse a file that cannot or should not be opened."""
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
        raise ConfigurationError(f"max_bytes must be a positive integer, not {max_bytes!r}.")
    try:
        size = path.stat().st_size
    except OSError as error:
        if is_dangling(path):
            raise CorpusError(DANGLING) from error
        raise CorpusError(f"cannot be read: {error.strerror}") from error
    if not path.is_file():
        raise CorpusError("not a regular file")
    if size == 0:
        raise CorpusError("the file is empty")
    if size > max_bytes:
        raise CorpusError(f"{size:,} bytes are above max_bytes={max_bytes:,}; raise max_bytes or split the file")


def read_text(path: Path, max_bytes: int = DEFAULT_MAX_BYTES, *, declares: bool = False) -> str:
    r"""Read a whole UTF-8 file, with or without a byte order mark, as clean text with `\n` line ends."""
    check_readable(path, max_bytes)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror}") from error
    marked = raw.startswith((_BOM, *_UTF16_BOMS, *_UTF32_BOMS))
    declared = declared_encoding(raw) if declares and not marked else ""
    text = decode_as(raw, declared) if declared else None
    text = clean_text(_decode(raw, 0, declared) if text is None else text).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise CorpusError("the file holds nothing but white space")
    return text


def json_lines(path: Path, max_bytes: int = DEFAULT_MAX_BYTES) -> Iterator[JsonLine]:
    """Read a JSON Lines file line by line; blank lines are skipped, a bad line is reported and reading goes on."""
    check_readable(path, max_bytes)
    offset = 0
    try:
        with path.open("rb") as handle:
            for number, raw in enumerate(handle, start=1):
                if number == 1 and raw.startswith((*_UTF16_BOMS, *_UTF32_BOMS)):
                    _decode(raw, 0)
                try:
                    text = _decode(raw, offset)
                    if text.strip():
                        yield JsonLine(number, parse_json(text))
                except CorpusError as error:
                    yield JsonLine(number, error=str(error))
                offset += len(raw)
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror}") from error


def parse_json(text: str) -> Any:
    """Parse JSON; the non-standard NaN and Infinity become null."""
    try:
        return json.loads(text, parse_constant=lambda _: None)
    except json.JSONDecodeError as error:
        position = f"line {error.lineno} column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise CorpusError(f"not valid JSON ({error.msg} at {position})") from error
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"not usable JSON ({error})") from error


def holds_text(path: Path) -> bool:
    """Whether a file begins like text, whatever its name."""
    with suppress(OSError), path.open("rb") as content:
        return not _is_binary(content.read(_LOOKED_AT))
    return False


def _is_binary(looked: bytes) -> bool:
    return b"\0" in looked or 50 * (len(looked) - len(looked.translate(None, _CONTROLS))) > len(looked)


def _decode(raw: bytes, offset: int, declared: str = "") -> str:
    """Decode a part of a file that starts at byte `offset`; `declared` is named in the error."""
    if offset == 0 and raw.startswith((*_UTF16_BOMS, *_UTF32_BOMS)):
        name = "UTF-32" if raw.startswith(_UTF32_BOMS) else "UTF-16"
        raise CorpusError(f"byte 0 is not UTF-8: the file is {name}; convert it (iconv -f {name} -t UTF-8)")
    skipped = len(_BOM) if offset == 0 and raw.startswith(_BOM) else 0
    try:
        return raw[skipped:].decode("utf-8")
    except UnicodeDecodeError as error:
        if _is_binary(raw[:_LOOKED_AT]):
            raise CorpusError(
                "the file is not text, despite its name; leave it out, or convert it (UTF-16 to UTF-8, too)"
            ) from error
        problem = f"byte {offset + skipped + error.start} is not UTF-8"
        if declared:
            raise CorpusError(
                f"{problem}, and the file cannot be read as {clean_text(declared)[:40]!r}, which it declares; "
                "convert it from its real encoding: iconv -f ENCODING -t UTF-8"
            ) from error
        raise CorpusError(f"{problem}; convert the file, for example with iconv -f WINDOWS-1252 -t UTF-8") from error
