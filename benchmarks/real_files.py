"""Reads files of other programs' test suites, and compares the words with those that other readers find.

    python benchmarks/real_files.py FOLDER             # a table by format; FOLDER is filled and used again
    python benchmarks/real_files.py FOLDER --worst N   # and the N files of each format that lose or add most

`tests/data/real_files.txt` lists the files: repositories with their commits, then digest, repository and path of each
file. None of them is part of this repository; they are fetched once by `git` (LibreOffice's by `apt`). Other readers
are asked as far as they are installed: pdftotext, mutool, pandoc, LibreOffice, antiword, catdoc, lynx, msgconvert.

A word is lost if every other reader that finds words in the file has it more often than we do, and added if we have it
more often than each of them. Words that are only cut in another way (`10^6`, hyphens) count as equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).resolve().parent.parent / "tests/data/real_files.txt"
_WORD = re.compile(r"[^\W_]+")
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u2010\u00ad]\n\s*(?=[^\W\d_])")
_DIGEST = 24
_SECONDS = 60
_BATCH = 25
_TEXTS = ("docx", "docm", "odt", "rtf", "doc")
_SHEETS = ("xlsx", "xlsm", "xls", "ods")
_SLIDES = ("pptx", "ppt", "odp")
_PANDOC = {
    **{kind: kind for kind in ("docx", "odt", "rtf", "epub", "fb2", "ipynb", "org", "rst", "opml")},
    "tex": "latex",
    "docm": "docx",
}
_COMMANDS: Mapping[str, Sequence[tuple[str, ...]]] = {
    "pdf": (("pdftotext", "-q", "FILE", "-"), ("mutool", "draw", "-q", "-F", "txt", "FILE")),
    "doc": (("antiword", "-m", "UTF-8", "-w", "0", "FILE"), ("catdoc", "-w", "-d", "utf-8", "FILE")),
    "xls": (("xls2csv", "-d", "utf-8", "FILE"),),
    "ppt": (("catppt", "-d", "utf-8", "FILE"),),
    "html": (("lynx", "-dump", "-nolist", "-force_html", "-display_charset=utf-8", "FILE"),),
    "msg": (("msgconvert", "--outfile", "-", "FILE"),),
    **{kind: (("pandoc", "-f", form, "-t", "plain", "--wrap=none", "FILE"),) for kind, form in _PANDOC.items()},
}
"""Other readers by format; LibreOffice is asked for the files of Office, too."""


@dataclass(frozen=True)
class RealFile:
    """A file of the list.

    Attributes:
        digest: The first letters of its SHA-256.
        source: Name of the repository.
        path: Path in the repository.
    """

    digest: str
    source: str
    path: str

    @property
    def kind(self) -> str:
        """Its suffix without a dot."""
        return (
            self.path.rpartition(".")[2]
            .lower()
            .replace("xhtml", "html")
            .replace("htm", "html")
            .replace("htmll", "html")
        )

    def stored(self, folder: Path) -> Path:
        """Its place in a folder."""
        return folder / "files" / f"{self.digest}.{self.path.rpartition('.')[2].lower()}"


def listed_files() -> tuple[dict[str, str], list[RealFile]]:
    """Commits of the repositories, and the files."""
    lines = [line.split(maxsplit=2) for line in LIST.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    return {words[1]: words[2] for words in lines if words[0] == "from"}, [
        RealFile(*words) for words in lines if words[0] != "from"
    ]
