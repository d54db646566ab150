"""Memory, descriptors and threads of one process that searches and changes an index for a long time.

    python benchmarks/endurance.py [--searches 20000] [--updates 2000] [--documents 400] [--recipe sire]

Four threads call the `search` tool that agents have, beside one that updates, adds and deletes documents. What the
process holds is printed ten times; it must not grow once everything was used. Every search must find its document.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import tempfile
import threading
import time
from pathlib import Path

from sire_core import Document, Index
from sire_core.serve.tools import IndexTools

SEARCHERS, LINES = 4, 10
NAMES = ("Alba", "Bero", "Cleo", "Doro", "Edda", "Falk", "Gita", "Hugo")


def document(number: int, version: int) -> Document:
    """A document about a place of its own; its number stays, its words change with the version."""
    name = NAMES[number % len(NAMES)]
    text = f"{name} {number} keeps the mill of Lindle {number}. In version {version} it grinds {version % 97} sacks."
    return Document(f"d{number}", text, f"Mill {number}", {"group": number % 5})


def held() -> tuple[float, int, int]:
    """Resident memory in MB, open descriptors, threads."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
    return int(resident) / 1024, len([*Path("/proc/self/fd").iterdir()]), threading.active_count()


class Load:
    """Searches of several threads, as many as were asked for, and what they missed."""

    def __init__(self, index: Index, searches: int, documents: int) -> None:
        self.index, self.left, self.documents = index, searches, documents
        self.done = self.missed = 0
        self._lock = threading.Lock()

    def take(self) -> bool:
        """True if one more search is to be made."""
        with self._lock:
            self.left -= 1
            return self.left >= 0

    def search(self, seed: int) -> None:
        """Search for documents that no change removes, until enough was searched."""
        tools, rng = IndexTools(self.index), random.Random(seed)

        async def tell(_: str) -> None: ...

        while self.take():
            number = rng.randrange(self.documents)
            query = {"query": f"Who keeps the mill of Lindle {number}?", "k": 3}
            text = asyncio.run(tools.call("search", query, tell))
            with self._lock:
                self.done += 1
                self.missed += f"[d{number}]" not in text


def main() -> None:
    """Print a line of figures ten times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=20_000)
    parser.add_argument("--updates", type=int, default=2_000)
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--recipe", default="sire")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Index(Path(folder, "ix"), recipe=options.recipe) as index:
        index.build(document(number, 0) for number in range(options.documents))
        load = Load(index, options.searches, options.documents)
        threads = [threading.Thread(target=load.search, args=(seed,)) for seed in range(SEARCHERS)]
        for thread in threads:
            thread.start()
        print("updates  searches  missed  memory MB  descriptors  threads  CPU s")
        for update in range(1, options.updates + 1):
            number = update % options.documents
            index.update([document(number, update), document(options.documents + number % 7, update)])
            if update % 10 == 0:
                index.delete([f"d{options.documents + number % 7}"])
            if update % max(1, options.updates // LINES) == 0:
                gc.collect()
                memory, descriptors, running = held()
                print(
                    f"{update:7,} {load.done:9,} {load.missed:7,} {memory:10.0f} {descriptors:12} {running:8} "
                    f"{time.process_time():6.0f}",
                    flush=True,
                )
        for thread in threads:
            thread.join()
        print(f"{load.done:,} searches, {load.missed:,} missed; {held()}")


if __name__ == "__main__":
    main()
