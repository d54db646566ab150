"""R@5 on eight manuals that newcomers brought, twelve questions each, written before any search.

    python benchmarks/manuals_tried.py FOLDER [NAME ...]

FOLDER holds the unpacked Debian packages neutron-doc, ganeti-doc, cinder-doc, kicad-doc-en, libvirt-doc,
lilypond-doc-html, xen-doc and grass-doc (`apt-get download PACKAGE`, then `dpkg-deb -x FILE FOLDER`; those of bookworm
were asked). The questions with their quotes are in `benchmarks/manuals`. The share of steps in `left_out.py` was chosen
on the first six, so they are no fresh set; see docs/results/documents.md.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import numpy as np
from left_out import BASELINES, CONFIG

from sire_core.corpus.readers import read_documents
from sire_core.evaluate import Experiment
from sire_core.evaluate.datasets import load_questions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sire_core.types import Document

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
}


def documents_of(folder: Path, parts: Sequence[str]) -> list[Document]:
    """What is read of parts of a folder; ids are paths below the folder."""
    return [
        replace(document, id=str(PurePath(part, document.id)))
        for part in parts
        for document in read_documents(folder / part).documents
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=MANUALS)
    options = parser.parse_args()
    print(f"| manual | {' | '.join(BASELINES)} | sire |\n|---|{'--:|' * (len(BASELINES) + 1)}")
    every: list[np.ndarray] = []
    for name in options.names:
        root, parts = MANUALS[name]
        documents = documents_of(options.folder / root, parts)
        dataset = load_questions(QUESTIONS / f"{name}.jsonl", documents, name)
        rows = Experiment(replace(dataset, whole=True), recipes=["sire"], baselines=BASELINES, config=CONFIG).run()
        found = np.array([[100.0 * result.recall_passages(5) for result in row.results] for row in rows])
        every.append(found)
        print(f"| {name} | {' | '.join(f'{mean:.1f}' for mean in found.mean(axis=1))} |", flush=True)
    print(f"| all | {' | '.join(f'{mean:.1f}' for mean in np.concatenate(every, axis=1).mean(axis=1))} |")


if __name__ == "__main__":
    main()
