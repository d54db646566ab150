"""Questions on two documents each over Debian's manuals in four languages: `sire`, and BM25 with stems.

Forty questions in French and in Japanese, twelve in Italian and in Korean, written from the pages before any search,
with quotes as gold; the two are always in different files. The folder holds the unpacked Debian packages
debian-handbook and installation-guide-amd64, for French and Japanese debian-reference-LANGUAGE and debian-faq-LANGUAGE,
too (`apt-get download PACKAGE`, then `dpkg-deb -x FILE FOLDER`; those of bookworm were asked). Where a page is not
translated it is in English, as it is for readers.

BM25 with stems is that of `languages.py`, which shares no code with the package, over the same passages and their
titles, with the function words of the ISO list and without them; "BM25" is the package's own.

    python benchmarks/handbooks.py FOLDER [--recipe NAME] [--work FOLDER] [LANGUAGE ...]
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import numpy as np
from evidence import gain, opened
from languages import bm25, tokenizer
from stopwordsiso import stopwords

from sire_core.evaluate.datasets import load_questions
from sire_core.evaluate.rows import passages_by_need
from sire_core.files.readers import read_documents
from sire_core.models.sync import run_sync
from sire_core.recipes import recipe_by_name
from sire_core.text.languages import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import Needs

QUESTIONS = Path(__file__).parent / "handbooks"
PLACES = {"fr": "fr-FR", "ja": "ja-JP", "it": "it-IT", "ko": "ko-KR"}
FOLDERS = {
    "handbook": "usr/share/doc/debian-handbook/html/{place}",
    "install": "usr/share/doc/installation-guide-amd64/{code}",
    "reference": "usr/share/debian-reference",
    "faq": "usr/share/doc/debian/FAQ/{code}",
}
TWO_MANUALS = ("it", "ko")  # Languages of which only the handbook and the guide are read
K = 5
STEMS, WITHOUT = "BM25 with stems", "and without function words"


def load_handbooks(folder: Path, code: str) -> DataSet:
    """The manuals of a language, whose ids begin with the name of the manual, and their questions."""
    documents = [
        replace(document, id=str(PurePath(name, document.id)))
        for name, place in list(FOLDERS.items())[: 2 if code in TWO_MANUALS else None]
        for document in read_documents(folder / place.format(code=code, place=PLACES[code])).documents
        if document.id.endswith(".html") and (name != "reference" or document.id.endswith(f".{code}.html"))
    ]
    return replace(load_questions(QUESTIONS / f"{code}.jsonl", documents, code), whole=True)


def recalls(ranked: Sequence[Sequence[str]], needs: Sequence[Needs]) -> np.ndarray:
    """Share of the needs that the first passages meet, 0..100, by question."""
    pairs = zip(ranked, needs, strict=True)
    return np.array([100.0 * np.mean([not need.isdisjoint(row[:K]) for need in wanted]) for row, wanted in pairs])


def rows(dataset: DataSet, work: Path, recipe: str) -> Mapping[str, np.ndarray]:
    """R@5 of each way of searching, by question."""
    asked = [question.question for question in dataset.questions]
    found: dict[str, list[list[str]]] = {}
    for title, one in {f"`{recipe}`": recipe, "BM25": recipe_by_name("flat", ranker="bm25")}.items():
        with opened(work, f"{dataset.name} {title}", dataset.documents, one, whole=True) as index:
            found[title] = [[hit.unit.id for hit in index.search(question, K)] for question in asked]
            met = run_sync(passages_by_need(index, dataset))
            view = index.snapshot().view
            passages = list(view.units(np.flatnonzero(view.kinds == view.kind_names.index("chunk")).tolist()))
    needs = [met[question.id] for question in dataset.questions]
    texts, ids = [one.index_text for one in passages], [one.id for one in passages]
    lists = {STEMS: frozenset[str](), WITHOUT: stopwords(dataset.name)}
    for title, idle in lists.items():
        order = bm25(texts, asked, tokenizer(dataset.name, idle))
        found[title] = [[ids[row] for row in rows] for rows in order]
    return {title: recalls(ranked, needs) for title, ranked in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("languages", nargs="*", default=list(PLACES))
    parser.add_argument("--recipe", default="sire")
    parser.add_argument("--work", type=Path, default=None, help="a folder that keeps the indexes")
    options = parser.parse_args()
    titles = (STEMS, WITHOUT, "BM25", f"`{options.recipe}`")
    print(f"| language (questions) | {' | '.join(titles)} | against BM25 with stems | against BM25 |\n{'|---' * 7}|")
    with tempfile.TemporaryDirectory() as temporary:
        for code in options.languages:
            found = rows(load_handbooks(options.folder, code), options.work or Path(temporary), options.recipe)
            own = found[f"`{options.recipe}`"]
            stemmed = max((found[STEMS], found[WITHOUT]), key=np.mean)
            cells = [f"{found[title].mean():.1f}" for title in titles]
            row = [f"{LANGUAGES[code].title()} ({len(own)})", *cells, gain(own, stemmed), gain(own, found["BM25"])]
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
