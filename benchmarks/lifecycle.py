"""What a change costs beside a rebuild, and whether an index that grew answers as well as one that was built.

    python benchmarks/lifecycle.py [--data DIR] [--documents N] [--change N] [--parts NAME...] [--recipes NAME...]
        [--json FILE]

`cost`: CPU of the process, without a language model, the first question afterwards included. `calls`: requests to a
scripted model. Both for every recipe that is named. `growth`: 1,000 documents in slices of 100 and in one batch, asked
the questions whose gold passages are among them, with sirerag. `pairs`: how well a maintained tree keeps related
passages together, with raptor. All on 2WikiMultihopQA with the default embedder and documents as whole passages.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from sire_core import Document, Index  # noqa: E402 - numpy reads the number of threads when it is imported

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SIRE_DATA", ROOT.parent / "shared" / "data"))
QUESTION = "Who is the mother of the director of the film Polish-Russian War?"


def documents(data: Path, limit: int | None) -> list[Document]:
    """Documents of the benchmark corpus, whole passages."""
    from sire_core.evaluate.datasets import load_dataset

    return list(load_dataset(data / "2wikimultihopqa").documents[:limit])


def cost(given: list[Document], change: int, recipe: str) -> dict[str, dict[str, float]]:
    """CPU seconds of building, adding, deleting and rebuilding, each with the first question afterwards."""
    some = given[-change:]
    with tempfile.TemporaryDirectory() as place:
        with Index(Path(place, "warm"), recipe=recipe, chunker=None) as index:  # so that no step pays for imports
            index.build(given[:40])
            index.add(given[40:45])
            index.delete([given[3].id])
            index.search(QUESTION)
        with Index(Path(place, "grown"), recipe=recipe, chunker=None) as index:
            seconds = {
                "build": _timed(index, lambda: index.build(given[:-change])),
                f"add {change}": _timed(index, lambda: index.add(some)),
                f"delete {change}": _timed(index, lambda: index.delete([d.id for d in some])),
            }
            spread = given[: -change : (len(given) - change) // change][:change]
            seconds[f"delete {change} others"] = _timed(index, lambda: index.delete([d.id for d in spread]))
            seconds[f"add {change} back"] = _timed(index, lambda: index.add(spread))
        with Index(Path(place, "whole"), recipe=recipe, chunker=None) as index:
            seconds["rebuild"] = _timed(index, lambda: index.build(given))
    return {name: {"cpu": found, "percent": 100 * found / seconds["rebuild"]} for name, found in seconds.items()}


def calls(given: list[Document], change: int, recipe: str) -> dict[str, dict[str, float]]:
    """Requests to a scripted model of building, adding and deleting."""
    from sire_core.testing.doubles import ScriptedModel

    some = given[-change:]
    with Index(recipe=recipe, chunker=None, language_model=ScriptedModel()) as index:
        asked = {
            "build": index.build(given[:-change]).calls,
            f"add {change}": index.add(some).calls,
            f"delete {change}": index.delete([d.id for d in given[: change * 7 : 7]]).calls,
        }
    return {name: {"calls": found, "percent": 100 * found / max(1, asked["build"])} for name, found in asked.items()}


def growth(data: Path, size: int, slices: int) -> dict[str, float]:
    """Recall of an index that was fed in slices, and of one that was built at once.

    The documents are the gold passages of as many questions as fit, in corpus order; the index that grew got its
    embedder from the first slice and fitted it again whenever the corpus had doubled.
    """
    from sire_core.evaluate.datasets import load_dataset
    from sire_core.evaluate.retrieval import provenance_ranking, recall_at_k

    data_set = load_dataset(data / "2wikimultihopqa")
    chosen: set[str] = set()
    asked = []
    for question in data_set.questions:
        if len(chosen.union(question.supporting)) <= size:
            asked.append(question)
            chosen.update(question.supporting)
    others = [document.id for document in data_set.documents if document.id not in chosen]
    chosen.update(others[: size - len(chosen)])
    given = [document for document in data_set.documents if document.id in chosen]

    def recall(index: Index) -> float:
        found = [(index.search(q.question, 20, returns="units"), q.supporting) for q in asked]
        return 100 * fmean(recall_at_k(provenance_ranking(hits), gold, 5) for hits, gold in found)

    with Index(recipe="sirerag", chunker=None) as grown, Index(recipe="sirerag", chunker=None) as whole:
        start = time.process_time()
        for first in range(0, len(given), slices):
            grown.update(given[first : first + slices])
        middle = time.process_time()
        whole.build(given)
        end = time.process_time()
        return {
            "documents": len(given),
            "questions": len(asked),
            "recall@5 in slices": recall(grown),
            "recall@5 at once": recall(whole),
            "cpu in slices": middle - start,
            "cpu at once": end - middle,
        }


def pairs(given: list[Document], change: int) -> dict[str, float]:
    """Share of pairs of passages, of which one names the other's title, that a cluster of the similarity tree holds."""
    from sire_core.extraction.title_links import TitleLinker

    some = given[:: max(1, len(given) // change)][:change]
    late = {document.id for document in some}
    by_title: dict[str, str] = {}
    for document in given:
        by_title.setdefault(document.title, document.id)
    linker = TitleLinker(list(by_title))
    gold = {
        tuple(sorted((document.id, by_title[title])))
        for document in given
        for title in linker.mentions(document.text)
        if by_title[title] != document.id
    }

    def recall(index: Index) -> float:
        documents_of: dict[str, set[str]] = {}
        chunks = {c.id: c.doc_id for c in index._reader.files().store.chunks()}  # noqa: SLF001 - no public name
        for edge in index.view().edges():
            if edge.kind == "child" and edge.target in chunks:
                documents_of.setdefault(edge.source, set()).add(chunks[edge.target])
        together = [any(set(pair) <= found for found in documents_of.values()) for pair in gold]
        return 100 * sum(together) / len(together)

    with Index(recipe="raptor", chunker=None) as grown, Index(recipe="raptor", chunker=None) as whole:
        grown.build([document for document in given if document.id not in late])
        for first in range(0, len(some), 10):
            grown.add(some[first : first + 10])
        whole.build(given)
        return {
            "pairs": len(gold),
            "late": len(some),
            "recall maintained": recall(grown),
            "recall rebuilt": recall(whole),
        }


def _timed(index: Index, work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    index.search(QUESTION)
    return time.process_time() - start


def main() -> None:
    """Run the parts and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--documents", type=int, help="as many of the corpus; all unless given")
    parser.add_argument("--change", type=int, default=10, help="documents that come or go (default 10)")
    parser.add_argument("--recipes", nargs="+", default=["sirerag"])
    parser.add_argument("--parts", nargs="+", default=["cost", "calls", "growth", "pairs"])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    corpus = documents(given.data, given.documents)
    found: dict[str, Any] = {"documents": len(corpus)}
    for recipe in given.recipes:
        if "cost" in given.parts:
            spent = found.setdefault("cost", {})[recipe] = cost(corpus, given.change, recipe)
            if len(found["cost"]) == 1:
                _head(["recipe", "rebuild, CPU s", *(f"{name}, %" for name in list(spent)[1:-1])])
            percents = [f"{row['percent']:.1f}" for row in list(spent.values())[1:-1]]
            sys.stdout.write(f"| {recipe} | {spent['rebuild']['cpu']:.1f} | {' | '.join(percents)} |\n")
            sys.stdout.flush()
        if "calls" in given.parts:
            asked = found.setdefault("calls", {})[recipe] = calls(corpus, given.change, recipe)
            _head(["calls of a scripted model", recipe, "% of the build"])
            for name, row in asked.items():
                sys.stdout.write(f"| {name} | {row['calls']:,.0f} | {row['percent']:.1f} |\n")
    if "growth" in given.parts:
        found["growth"] = growth(given.data, 1000, 100)
        sys.stdout.write(json.dumps(found["growth"], indent=1) + "\n")
    if "pairs" in given.parts:
        found["pairs"] = pairs(corpus[:1500], 150)
        sys.stdout.write(json.dumps(found["pairs"], indent=1) + "\n")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


def _head(columns: list[str]) -> None:
    sys.stdout.write(f"\n| {' | '.join(columns)} |\n|---{'|--:' * (len(columns) - 1)}|\n")


if __name__ == "__main__":
    main()
