"""What changes of an index cost: ten documents and one question, again and again, in CPU seconds.

    python benchmarks/changes.py FOLDER [--recipe NAME] [--data DIR] [--count N]

FOLDER is one that the steps `fit` and `build` of `benchmarks/growth.py` have filled, or has an `index`, an
`embedder.npz` and a `documents.jsonl` like it. The index is copied and opened: the first change is that of a process
that has just opened it, the others are of one that keeps it open.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from itertools import islice
from pathlib import Path

from growth import CHANGED, DATA, THREADS, fitted

os.environ.update(THREADS)


def main() -> None:
    """Change a copy, and print what every change took."""
    from generated import generated

    from sire_core import Index

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--recipe", default="sire")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--count", type=int, default=6)
    given = parser.parse_args()
    with (given.folder / "documents.jsonl").open("rb") as file:
        known = sum(1 for _ in file)
    documents = list(islice(generated(given.data, known + given.count * CHANGED), known, None))
    embedder = fitted(given.folder)
    print("| change | documents, CPU s | first question | both |\n|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(given.folder / "index", Path(place) / "index")
        with Index(Path(place) / "index", recipe=given.recipe, embedder=embedder, chunker=None) as index:
            index.search("Who directed it?")
            for number in range(given.count):
                start = time.process_time()
                index.add(documents[number * CHANGED : (number + 1) * CHANGED])
                changed = time.process_time()
                index.search("Who directed it?")
                asked = time.process_time()
                taken = (changed - start, asked - changed, asked - start)
                print(f"| {number + 1} | {' | '.join(f'{seconds:.2f}' for seconds in taken)} |", flush=True)


if __name__ == "__main__":
    main()
