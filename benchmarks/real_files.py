"""Reads files of other programs' test suites, and compares the words with those that other readers find.

    python benchmarks/real_files.py FOLDER                # a table by format; FOLDER is filled and used again
    python benchmarks/real_files.py FOLDER --worst N      # and the N files of each format that lose or add most
    python benchmarks/real_files.py FOLDER --kinds doc,xls
    python benchmarks/real_files.py FOLDER --held         # other files, which no reader was tuned on

`real_files.txt` and `real_files_held.txt` list the files: repositories with their commits, then digest, repository and
path of each file. None of them is part of this repository: git fetches them once, those of LibreOffice come from
Debian's source package (apt). Other readers are asked as far as they are installed: pdftotext, mutool, pandoc,
LibreOffice, antiword, catdoc, lynx, msgconvert, mshow (mblaze), odt2txt, trafilatura, and kreuzberg.

A word is lost if every other reader that finds words in the file has it more often than we do, and added if we have it
more often than each of them and than the file itself (of a mail, its decoded parts). Words that are only cut in another
way (`10^6`, hyphens), numbers with other decimals or leading zeros, and midnight count as equal; addresses, commands of
TeX and labels of mail headers do not count; lines at the edges of pages and slides count once. Menus of web pages are
left out on purpose: a word of a page is lost only if trafilatura, which leaves them out, too, keeps it. A cell that
repeats the one above, as merged cells do on purpose, does not count as added.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from email import message_from_bytes
from itertools import zip_longest
from pathlib import Path
from statistics import median
from typing import NamedTuple

LIST = Path(__file__).with_suffix(".txt")
HELD = LIST.with_stem("real_files_held")
OTHERS = (
    *("pdftotext", "mutool", "pandoc", "soffice", "antiword", "catdoc", "lynx", "msgconvert", "mshow", "odt2txt"),
    "trafilatura",
)
_WORD = re.compile(r"[^\W_]+")
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u2010\u00ad]\n\s*(?=[^\W\d_])")
_MARKS = re.compile(
    r"\[-- [^\[\]\n]*--\]|\[image(?:: [^\[\]\n]*)?\]"
    r"|\\[A-Za-z]+|!\[image\]\([^()\s]*\)|\]\([^()\s]*\)|\{[#.][^{}\n]*\}|\b(?:https?|ftp|mailto|file):\S+|\bwww\.\S+"
    r"|\b(?:Subject|From|To|B?cc|Date|Sent|Attachments?)\**:",
    re.IGNORECASE,
)
"""Commands of TeX, names of pictures, addresses and labels of headers, which readers write or leave out."""
_ONE_FORMAT = {"htm": "html", "xhtml": "html", "docm": "docx", "xlsm": "xlsx", "mhtml": "mht"}
_LOOKS_OF_NUMBERS = re.compile(r"(?<=\d)[.,]\d+|\b0?0:00(?::00)?\b|\b0+(?=\d)")
"""Decimals, midnight and leading zeros: some readers show a cell as it is stored, others as it looks."""
_FEW_WORDS = 3
_TEXT = "txt:Text (encoded):UTF8"
_ALL_SHEETS = "csv:Text - txt - csv (StarCalc):9,34,76,1,,0,false,true,false,false,false,-1"
_OFFICE = {
    **dict.fromkeys(("docx", "odt", "rtf", "doc"), _TEXT),
    **dict.fromkeys(("xlsx", "xls", "ods"), _ALL_SHEETS),
    **dict.fromkeys(("pptx", "ppt", "odp"), "pdf"),
}
_PANDOC = {kind: kind for kind in ("docx", "odt", "rtf", "epub", "fb2", "ipynb", "org", "rst", "opml")}
_ODT2TXT = "odt2txt --encoding=UTF-8 --width=-1 FILE"
_COMMANDS: Mapping[str, Sequence[str]] = {
    "pdf": ("pdftotext -q FILE -", "mutool draw -q -F txt FILE"),
    "doc": ("antiword -m UTF-8 -w 0 FILE", "catdoc -w -d utf-8 FILE"),
    "xls": ("xls2csv -d utf-8 FILE",),
    "ppt": ("catppt -d utf-8 FILE",),
    "html": (
        "lynx -dump -nolist -force_html -display_charset=utf-8 FILE",
        "trafilatura --recall",  # leaves out menus, as we do
    ),
    "eml": ("mshow -q FILE",),
    "msg": ("msgconvert --outfile - FILE",),
    **{kind: (f"pandoc -f {form} -t plain --wrap=none FILE",) for kind, form in {**_PANDOC, "tex": "latex"}.items()},
    **dict.fromkeys(("ods", "odp"), (_ODT2TXT,)),
    "odt": (_ODT2TXT, "pandoc -f odt -t plain --wrap=none FILE"),
}
"""Commands by format; one without a name of a file reads it from its standard input."""
_SECONDS, _BATCH = 60, 25
_FETCH_SECONDS, _FEW_PAGES = 900, 2
_PAGED = ("pdf", "pptx", "ppt", "odp")  # Formats that other readers give page by page
_MARKUP = (".xml", ".xhtml", ".html", ".htm", ".opf", ".ncx")
_INLINE = re.compile(r"w:(?:r|t|rPr|[bi])|a:[rt]|m:[rt]|text:span|b|i|em|strong|span|font|a|u|su[bp]|t")
"""Elements within words."""


class RealFile(NamedTuple):
    """A file of the list: the first letters of its SHA-256, its repository, and its path there."""

    digest: str
    source: str
    path: str

    @property
    def kind(self) -> str:
        """Its format."""
        suffix = self.path.rpartition(".")[2].lower()
        return _ONE_FORMAT.get(suffix, suffix)

    def stored(self, folder: Path) -> Path:
        """Its place in a folder."""
        return folder / "files" / f"{self.digest}.{self.path.rpartition('.')[2].lower()}"


class Reading(NamedTuple):
    """A file as we read it, beside other readers; without words of theirs both shares are 0.

    Attributes:
        error: Why it was refused; empty if it was not.
        others: How many words others find, by their names.
        lost, added: Words that we lack, and have beside theirs.
        share: Of those among all, the larger one.
    """

    file: RealFile
    error: str
    others: Mapping[str, int]
    lost: Mapping[str, int] = {}
    added: Mapping[str, int] = {}
    share: float = 0.0

    @property
    def is_lost(self) -> bool:
        """True if we refuse what another program reads; kreuzberg is our own second reader."""
        others = (number for name, number in self.others.items() if name != "kreuzberg")
        return bool(self.error) and max(others, default=0) > _FEW_WORDS


def listed_files(kinds: Iterable[str] = (), path: Path = LIST) -> tuple[dict[str, str], list[RealFile]]:
    """Commits of the repositories, and the files of some formats, or of all."""
    lines = [line.split(maxsplit=2) for line in path.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    files = [RealFile(*words) for words in lines if words[0] != "from"]
    chosen = set(kinds)
    return (
        {words[1]: words[2] for words in lines if words[0] == "from"},
        [file for file in files if not chosen or file.kind in chosen],
    )


def fetch_files(folder: Path, files: Sequence[RealFile], commits: Mapping[str, str]) -> None:
    """Fetch the files that a folder does not have yet.

    Raises:
        OSError: A repository cannot be reached, or a file is another one.
        subprocess.TimeoutExpired: A repository answers too slowly.
    """
    (folder / "files").mkdir(parents=True, exist_ok=True)
    missing: dict[str, list[RealFile]] = defaultdict(list)
    for file in files:
        if not file.stored(folder).exists():
            missing[file.source].append(file)
    for source, wanted in missing.items():
        read = _from_debian if source == "libreoffice" else _from_git
        for file, content in read(folder, commits[source], source, wanted):
            if not hashlib.sha256(content).hexdigest().startswith(file.digest):
                raise OSError(f"{source} has another file at {file.path}")
            file.stored(folder).write_bytes(content)


def _run(command: Sequence[str], seconds: float | None = None, given: bytes = b"") -> bytes:
    done = subprocess.run(command, input=given, capture_output=True, timeout=seconds, check=False)
    if done.returncode:
        raise OSError(f"{command[0]}: {done.stderr.decode('utf-8', 'replace')[-300:]}")
    return bytes(done.stdout)


def _from_git(folder: Path, commit: str, source: str, wanted: Sequence[RealFile]) -> Iterator[tuple[RealFile, bytes]]:
    clone = folder / "repositories" / source.replace("/", "+")
    if not clone.exists():
        _run(["git", "init", "-q", "--bare", str(clone)])
    _run(["git", "-C", str(clone), "fetch", "-q", "--depth=1", f"https://github.com/{source}", commit], _FETCH_SECONDS)
    for file in wanted:
        yield file, _run(["git", "-C", str(clone), "show", f"{commit}:{file.path}"])


def _from_debian(
    folder: Path, version: str, source: str, wanted: Sequence[RealFile]
) -> Iterator[tuple[RealFile, bytes]]:
    archive = folder / f"{source}_{version}.tar.xz"
    if not archive.exists():
        listing = _run(["apt-get", "source", "--print-uris", source]).decode()
        address = next(
            uri for uri in re.findall(r"'([^']+)'", listing) if uri.endswith(f"{source}_{version}.orig.tar.xz")
        )
        _run(["/usr/lib/apt/apt-helper", "download-file", address, str(archive)])
    by_path = {file.path: file for file in wanted}
    with tarfile.open(archive) as packed:
        for member in packed:
            file = by_path.get(member.name.partition("/")[2])
            if file is not None and (content := packed.extractfile(member)) is not None:
                yield file, content.read()


def ask_others(folder: Path, files: Sequence[RealFile]) -> None:
    """Ask every other reader that is installed for the text of each file, once; what it cannot read is empty."""
    texts = folder / "texts"
    texts.mkdir(exist_ok=True)
    for file in files:
        for command in _COMMANDS.get(file.kind, ()):
            name, *words = command.split()
            kept = texts / f"{file.digest}.{name}"
            if shutil.which(name) and not kept.exists():
                arguments = [str(file.stored(folder)) if word == "FILE" else word for word in words]
                given = b"" if "FILE" in words else file.stored(folder).read_bytes()
                content = b""
                with suppress(OSError, subprocess.TimeoutExpired):
                    content = _run([name, *arguments], _SECONDS, given)
                kept.write_bytes(content)
    if shutil.which("soffice"):
        _ask_office(folder, files)
    waiting = [file for file in files if not (texts / f"{file.digest}.kreuzberg").exists()]
    while waiting:  # a file may end the process, or hang it
        before = len(waiting)
        names = [str(part) for file in waiting for part in (file.stored(folder), texts / f"{file.digest}.kreuzberg")]
        with tempfile.TemporaryFile("w+") as pairs, suppress(OSError, subprocess.TimeoutExpired):
            pairs.write("\n".join(names))
            pairs.seek(0)
            command = [sys.executable, __file__, "--kreuzberg"]
            subprocess.run(command, stdin=pairs, capture_output=True, timeout=_SECONDS + before, check=False)
        waiting = [file for file in waiting if not (texts / f"{file.digest}.kreuzberg").exists()]
        if len(waiting) == before:
            break


def _ask_kreuzberg() -> None:
    """Write the text of each file of the standard input, whose next line names where to."""
    import resource

    from kreuzberg import ContentFilterConfig, ExtractionConfig, extract_file_sync

    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    everything = ContentFilterConfig(
        include_headers=True, include_footers=True, include_watermarks=True, strip_repeating_text=False
    )
    config = ExtractionConfig(output_format="markdown", content_filter=everything)
    names = sys.stdin.read().split("\n")
    for source, target in zip(names[::2], names[1::2], strict=True):
        Path(target).write_bytes(b"")
        with suppress(Exception):  # it has errors of its own
            Path(target).write_text(str(extract_file_sync(source, config=config).content), "utf-8", "replace")


def _ask_office(folder: Path, files: Sequence[RealFile]) -> None:
    waiting: dict[str, list[RealFile]] = defaultdict(list)
    for file in files:
        if file.kind in _OFFICE and not (folder / "texts" / f"{file.digest}.soffice").exists():
            waiting[_OFFICE[file.kind]].append(file)
    for form, wanted in waiting.items():
        batches = [wanted[start : start + _BATCH] for start in range(0, len(wanted), _BATCH)]
        for batch in (*batches, *([file] for file in wanted)):  # those that stopped a batch one by one
            left = [file for file in batch if not (folder / "texts" / f"{file.digest}.soffice").exists()]
            if left:
                _convert_office(folder, form, left, is_last=len(batch) == 1)


def _convert_office(folder: Path, form: str, files: Sequence[RealFile], *, is_last: bool) -> None:
    with tempfile.TemporaryDirectory() as made:
        profile = f"-env:UserInstallation=file://{folder.resolve()}/profile"
        command = ["soffice", profile, "--headless", "--convert-to", form, "--outdir", made]
        with suppress(OSError, subprocess.TimeoutExpired):
            _run([*command, *(str(file.stored(folder)) for file in files)], _SECONDS + 5 * len(files))
        for file in files:
            results = sorted(Path(made).glob(f"{file.digest}*"))
            content = b"\n".join(result.read_bytes() for result in results)
            if results and form == "pdf":
                content = _run(["pdftotext", "-q", str(results[0]), "-"])
            if results or is_last:
                (folder / "texts" / f"{file.digest}.soffice").write_bytes(content)


def read_ours(folder: Path, files: Sequence[RealFile]) -> Iterator[Reading]:
    """Read each file, and compare its words."""
    from sire_core.errors import CorpusError
    from sire_core.files.readers import read_documents
    from sire_core.files.reading_process import one_process

    with one_process():
        for file in files:
            texts = {}
            for kept in (folder / "texts").glob(f"{file.digest}.*"):
                is_mail = kept.suffix == ".msgconvert"
                text = _mail_text(kept.read_bytes()) if is_mail else kept.read_text("utf-8", "replace")
                if _WORD.search(_MARKS.sub(" ", text)):
                    texts[kept.suffix[1:]] = text
            counts = {name: len(_WORD.findall(_MARKS.sub(" ", text))) for name, text in texts.items()}
            try:
                documents = read_documents(file.stored(folder)).documents
            except CorpusError as error:
                yield Reading(file, str(error).partition(": ")[2], counts)
                continue
            body = "\n\n".join(document.text for document in documents)
            heads = "\n".join(f"{document.title}\n{list(document.metadata.values())}" for document in documents)
            yield _compared(file, body, heads, texts, counts, _content(file.stored(folder)))


def _compared(
    file: RealFile, body: str, heads: str, texts: Mapping[str, str], counts: Mapping[str, int], content: str
) -> Reading:
    plain = _plain if file.kind not in _PAGED else lambda text: _plain(_once_a_page(text))
    others = [_plain(text) if name == "kreuzberg" else plain(text) for name, text in texts.items()]
    if not others or file.kind == "xml":  # whose readers take names of elements for words
        return Reading(file, "", counts)
    with_heads, ours = _plain(f"{heads}\n{body}"), _plain(body)
    lost = _in_all(_more(other, with_heads) for other in others)
    once = _plain(_without_repeats_above(body))
    added = _in_all(_more(once, other) for other in (*others, _plain(content)))
    total = max(len(_WORD.findall(text)) for text in (*others, ours))
    return Reading(file, "", counts, lost, added, max(lost.total(), added.total()) / max(1, total))


def _plain(text: str) -> str:
    text = html.unescape(_MARKS.sub(" ", _LOOKS_OF_NUMBERS.sub("", text.replace("\f", "\n"))))
    plain = unicodedata.normalize("NFKC", text)
    return _HYPHEN.sub("", plain).replace("\u00ad", "").casefold()


def _once_a_page(text: str) -> str:
    """Lines at the edges of three pages or more once, without numbers of pages."""
    pages = [[line.strip() for line in page.split("\n") if line.strip()] for page in text.split("\f")]
    forms: Counter[str] = Counter()
    for page in pages:
        forms.update({re.sub(r"\d+", "0", line) for line in (*page[:3], *page[-3:])})
    seen: set[str] = set()
    lines = []
    for page in pages:
        for row, line in enumerate(page):
            form = re.sub(r"\d+", "0", line)
            is_edge = (row < 3 or row >= len(page) - 3) and (forms[form] > 2 or form == "0")
            if not (is_edge and (form in seen or (form == "0" and len(pages) > _FEW_PAGES))):
                lines.append(line)
            seen.add(form)
    return "\n".join(lines)


def _without_repeats_above(text: str) -> str:
    """Markdown whose tables have no cell that repeats the one above, as we write merged cells."""
    lines: list[str] = []
    above: list[str] = []
    for line in text.split("\n"):
        cells = line.split("|")
        repeats = (cell == before for cell, before in zip_longest(cells, above[: len(cells)]))
        lines.append("|".join("" if repeated else cell for cell, repeated in zip(cells, repeats, strict=True)))
        if line.strip("|- :"):
            above = cells if len(cells) > 1 else []
    return "\n".join(lines)


def _more(text: str, other: str) -> Counter[str]:
    """Words that a text has more often than another, however they are cut."""
    more = Counter(_WORD.findall(text)) - Counter(_WORD.findall(other))
    letters, others = ("".join(_WORD.findall(each)) for each in (text, other))
    differences = {word: min(number, letters.count(word) - others.count(word)) for word, number in more.items()}
    return Counter({word: number for word, number in differences.items() if number > 0})


def _in_all(counts: Iterator[Counter[str]]) -> Counter[str]:
    result = next(counts)
    for other in counts:
        result &= other
    return result


def _content(path: Path) -> str:
    """Everything that a file holds as text or in attributes, without what is deleted or said twice."""
    raw = path.read_bytes()
    if raw[:2] != b"PK":
        text = raw.decode("utf-8", "replace")
        if path.suffix == ".ipynb":
            with suppress(ValueError):
                text += "\n".join(_strings(json.loads(text)))
        if path.suffix in (".eml", ".mht", ".mhtml"):
            text += _mail_text(raw)
        return "" if b"\0" in raw[:4096] else f"{_without_tags(text)}\n{html.unescape(text)}"
    with suppress(zipfile.BadZipFile, OSError, NotImplementedError), zipfile.ZipFile(io.BytesIO(raw)) as archive:
        names = [name for name in archive.namelist() if name.lower().endswith(_MARKUP)]
        return "\n".join(_without_tags(archive.read(name).decode("utf-8", "replace")) for name in names)
    return ""


def _mail_text(raw: bytes) -> str:
    """Headers and decoded parts of a mail; the standard library leaves what is wrong with them to its caller."""
    message = message_from_bytes(raw)
    texts = []
    for part in message.walk():
        content = part.get_payload(decode=True)
        if isinstance(content, bytes):
            with suppress(LookupError):
                content = content.decode(part.get_content_charset("utf-8"), "replace")
            texts.append(content if isinstance(content, str) else content.decode("latin-1"))
    return "\n".join((*(str(value) for value in message.values()), *map(_without_tags, texts)))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(part)


def _without_tags(text: str) -> str:
    text = re.sub(r"<mc:Fallback.*?</mc:Fallback>|<w:(?:delText|instrText).*?</w:\w+>", "", text, flags=re.DOTALL)

    def written(tag: re.Match[str]) -> str:
        values = (value for pair in re.findall(r"\"([^\"]*)\"|'([^']*)'", tag[0]) for value in pair)
        return "" if _INLINE.fullmatch(tag[1]) else f" {' '.join(values)} "

    return html.unescape(re.sub(r"</?([\w:.-]+)[^<>]*>", written, text))


def compared_shares(readings: Iterable[Reading]) -> list[float]:
    """Shares of words lost or added in the files that others read, too, in order."""
    return sorted(one.share for one in readings if one.others and not one.error and one.file.kind != "xml")


def table(readings: Sequence[Reading]) -> Iterator[str]:
    """Lines of a table by format, and of all."""
    yield "| format | files | refused | that others read | compared | median % | p95 % | over 1 % |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    kinds: dict[str, list[Reading]] = defaultdict(list)
    for reading in readings:
        kinds[reading.file.kind].append(reading)
    for kind, rows in (*sorted(kinds.items()), ("all", list(readings))):
        shares = compared_shares(rows) or [0.0]
        cells = [len(rows), sum(bool(row.error) for row in rows), sum(row.is_lost for row in rows), len(shares)]
        middle, high = median(shares), shares[min(len(shares) - 1, int(0.95 * len(shares)))]
        over = sum(share > 0.01 for share in shares)
        yield f"| {kind} | {' | '.join(map(str, cells))} | {100 * middle:.1f} | {100 * high:.1f} | {over} |"


def worst(readings: Sequence[Reading], number: int) -> Iterator[str]:
    """The refused files that others read, and those of each format that lose or add most."""
    for reading in readings:
        if reading.is_lost:
            yield f"refused {reading.file.digest} {reading.file.path}: {reading.error[:100]} {dict(reading.others)}"
    shown: Counter[str] = Counter()
    for reading in sorted(readings, key=lambda one: -one.share):
        shown[reading.file.kind] += 1
        if reading.share > 0.01 and shown[reading.file.kind] <= number:
            yield f"{100 * reading.share:.1f} % {reading.file.digest} {reading.file.path} {dict(reading.others)}"
            yield f"    lost {' '.join(list(reading.lost)[:15])[:150]}"
            yield f"    added {' '.join(list(reading.added)[:15])[:150]}"


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == ["--kreuzberg"]:
        _ask_kreuzberg()
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--worst", type=int, default=0)
    parser.add_argument("--kinds", default="")
    parser.add_argument("--held", action="store_true")
    given = parser.parse_args()
    commits, files = listed_files(filter(None, given.kinds.split(",")), HELD if given.held else LIST)
    fetch_files(given.folder, files, commits)
    ask_others(given.folder, files)
    readings = list(read_ours(given.folder, files))
    print("\n".join((*table(readings), *worst(readings, given.worst))))


if __name__ == "__main__":
    main()
