"""Corpora that nobody planned for: many tiny documents, one huge one, equal passages, one entity everywhere.

    python benchmarks/load.py [--share 1.0] [--recipes flat sirerag ...] [--shapes tiny long ...] [--limit SECONDS]

Every recipe builds each corpus at a quarter of its size and at its size, in a process of its own, with the default
embedder and without a model; then a document is added and a question asked. `growth` is the exponent between the two
sizes: 1 is linear, 2 quadratic. Time is CPU time, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECIPES = ("flat", "sirerag", "pagerank", "iier", "indexrag", "msrag", "smart", "sire")
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
ENDS = (" ", " ", " ", " ", "\n\n")
QUESTION = "Where did Person12 Kovac meet Bela Veld?"


def tiny(size: int) -> list[Any]:
    """Documents of one sentence."""
    from sire_core.types import Document

    texts = (f"Person{i} Kovac met Bela{i % 97} Veld in Town{i % 503}." for i in range(size))
    return [Document(f"d{i}", text, title=f"Note {i}") for i, text in enumerate(texts)]


def long(size: int) -> list[Any]:
    """One document of so many bytes, of sentences with names, in paragraphs."""
    from sire_core.types import Document

    rng = random.Random(0)
    words = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("a", "e", "io", "u") for c in ("n", "rel", "ta", "mos")]
    parts: list[str] = []
    length = 0
    while length < size:
        name = f"Person{rng.randrange(size // 2000)} Kovac"
        text = f"{name} met Bela{rng.randrange(97)} Veld in Town{rng.randrange(503)}. "
        text += f"It {' '.join(rng.choices(words, k=24))}.{rng.choice(ENDS)}"
        parts.append(text)
        length += len(text)
    return [Document("long", "".join(parts), title="One long document")]


def equal(size: int) -> list[Any]:
    """Documents with the same words."""
    from sire_core.types import Document

    text = "Alma Kovac met Boris Veld in Ceuta. Alma Kovac founded the Drava mill in 1931."
    return [Document(f"d{i}", text, title="Note") for i in range(size)]


def entity(size: int) -> list[Any]:
    """Documents about different things that all name one town and one person."""
    from sire_core.types import Document

    texts = (f"Ceuta has the Item{i} mill. Alma Kovac sold Item{i} to Person{i} Veld in Ceuta." for i in range(size))
    return [Document(f"d{i}", text, title=f"Item{i}") for i, text in enumerate(texts)]


SHAPES: dict[str, tuple[Callable[[int], list[Any]], int, str]] = {
    "tiny": (tiny, 20_000, "20,000 documents of a sentence"),
    "long": (long, 20_000_000, "one document of 20 MB"),
    "equal": (equal, 5_000, "5,000 equal passages"),
    "entity": (entity, 5_000, "one entity in 5,000 documents"),
}


def cpu() -> float:
    """Seconds that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(recipe: str, shape: str, size: int) -> dict[str, float]:
    """Build, add, search; in this process."""
    from sire_core import Index
    from sire_core.types import Document

    documents = SHAPES[shape][0](size)
    with Index(recipe=recipe) as index:
        start = cpu()
        index.build(documents)
        built = cpu()
        index.add([Document("late", "Person12 Kovac met Bela12 Veld in Izola.", title="Late")])
        added = cpu()
        index.search(QUESTION, 5)
        searched = cpu()
        pool = index.stats()["units"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"build": built - start, "add": added - built, "search": searched - added, "pool": pool, "peak": peak}


def run(recipe: str, shape: str, size: int, limit: int) -> dict[str, float] | None:
    """The same in a process of its own; None when it takes more CPU time than is allowed."""
    words = [sys.executable, __file__, "--one", recipe, shape, str(size)]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **THREADS},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
    )
    if done.returncode:
        sys.stderr.write(f"{recipe} {shape} {size}: exit code {done.returncode}\n{done.stderr[-500:]}\n")
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def row(recipe: str, shape: str, share: float, limit: int) -> str:
    """A line of the table."""
    size = int(SHAPES[shape][1] * share)
    small = run(recipe, shape, size // 4, limit)
    large = run(recipe, shape, size, limit) if small else None
    if small is None or large is None:
        return f"| {shape} | {recipe} | {size:,} | over {limit} | | | | | |"
    growth = math.log(large["build"] / small["build"], 4)
    return (
        f"| {shape} | {recipe} | {size:,} | {large['build']:.1f} | {growth:.2f} | {large['add']:.2f} | "
        f"{large['search']:.2f} | {large['pool']:,.0f} | {large['peak']:,.0f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0, help="of the sizes")
    parser.add_argument("--recipes", nargs="*", default=RECIPES)
    parser.add_argument("--shapes", nargs="*", default=tuple(SHAPES))
    parser.add_argument("--limit", type=int, default=600, help="CPU seconds of a build")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        sys.stdout.write(json.dumps(measure(given.one[0], given.one[1], int(given.one[2]))) + "\n")
        return
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "core"))
    head = "| corpus | recipe | size | build, CPU s | growth | add one, s | first search, s | pool | peak MB |"
    sys.stdout.write(f"{head}\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n")
    for shape in given.shapes:
        for recipe in given.recipes:
            sys.stdout.write(row(recipe, shape, given.share, given.limit) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
