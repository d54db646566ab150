"""Manuals with questions that were written before any search: fourteen that newcomers brought, with twelve each.

Twelve manuals, most of them the same, have fourteen more, `NAME@own-words`, asked as people ask who do not know the
manual's words. A folder holds the unpacked Debian packages neutron-doc, ganeti-doc, cinder-doc, kicad-doc-en,
libvirt-doc, lilypond-doc-html, xen-doc, grass-doc, bind9-doc, python-django-doc, keystone-doc, zsh-doc, gimp-help-en,
postfix-doc and debian-handbook (`apt-get download PACKAGE`, then `dpkg-deb -x FILE FOLDER`; those of bookworm were
asked). The questions with their quotes are in `benchmarks/manuals`. See `left_out.py --manuals`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from sire_core.evaluate.datasets import load_questions
from sire_core.files.readers import read_documents

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet

QUESTIONS = Path(__file__).parent / "manuals"
# Where the pages of each package stand, and the folders below that are read
MANUALS: dict[str, tuple[str, tuple[str, ...]]] = {
    "neutron": ("usr/share/doc/neutron-doc/html", ("",)),
    "ganeti": ("usr/share/doc/ganeti/html", ("",)),
    "cinder": ("usr/share/doc", ("cinder-doc",)),
    "kicad": ("usr/share", ("doc/kicad",)),
    "libvirt": ("usr/share/doc/libvirt-doc/html", ("",)),
    "lilypond": ("usr/share/doc/lilypond/html/Documentation", ("extending", "learning", "notation", "usage")),
    "xen": ("usr/share/doc/xen/html", ("",)),
    "grass": ("usr/share/doc/grass-doc/html", ("",)),
    "bind9": ("usr/share/doc/bind9-doc", ("arm",)),
    "django": ("usr/share/doc/python-django-doc/html", ("",)),
    "keystone": ("usr/share/doc/keystone-doc/html", ("",)),
    "zsh": ("usr/share/doc/zsh-doc/html", ("",)),
    "gimp": ("usr/share/gimp/2.0/help/en", ("",)),
    "postfix": ("usr/share/doc/postfix/html", ("",)),
    "handbook": ("usr/share/doc/debian-handbook/html/en-US", ("",)),
}
LAST = ("bind9", "django", "keystone", "zsh")  # Those that came after the weights were learned
HALF_OWN_WORDS = ("gimp", "postfix")
"""Those that were asked about, for one half, as people ask who do not know a manual's words."""
EIGHT = ("neutron", "ganeti", "cinder", "kicad", "libvirt", "lilypond", "xen", "grass")
_ASKED_IN_OWN_WORDS = ("ganeti", *EIGHT[3:], "bind9", "django", "zsh", *HALF_OWN_WORDS, "handbook")
OWN_WORDS = tuple(f"{name}@own-words" for name in _ASKED_IN_OWN_WORDS)  # Sets of questions in people's own words


def load_manual(folder: Path, name: str) -> DataSet:
    """A manual: its pages, whose ids are paths below its own folder, and its questions, or those in own words."""
    root, parts = MANUALS[name.partition("@")[0]]
    documents = [
        replace(document, id=str(PurePath(part, document.id)))
        for part in parts
        for document in read_documents(folder / root / part).documents
    ]
    return replace(load_questions(QUESTIONS / f"{name.replace('@', '-')}.jsonl", documents, name), whole=True)
