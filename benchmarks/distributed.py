"""The same build by Ray tasks (ours), Ray Data and Daft: when each is ready, how long it builds, whether it is equal.

    python benchmarks/distributed.py [--data DIR] [--passages N...] [--recipe NAME] [--cpus N] [--seconds N]

Needs `pip install "sire-rag[ray]" "ray[data]" daft`. Every way is a `Runner` that `Index` is given, in a process and on
a cluster of its own on this machine; all get the same parts. "Ready" is a map over one part of nothing, which starts
workers; the build comes after it. A way that does not end within `--seconds` is named with what it printed last.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SIRE_DATA", ROOT.parent / "shared" / "data"))
WAYS = ("here, no engine", "Ray tasks", "Ray Data", "Daft on Ray", "Daft, its own runner")
PART = 128


def apply(function: Callable[[Any, Any], Any], shared: bytes, part: bytes) -> bytes:
    """One part, in a worker."""
    return pickle.dumps(function(pickle.loads(shared), pickle.loads(part)))


class Rows:
    """A runner whose engine maps rows of numbers and bytes: what Ray Data and Daft have in common."""

    part_size: int | None = PART

    async def map(
        self, function: Callable[[Any, Any], Any], shared: Any, parts: Sequence[Any]
    ) -> AsyncGenerator[tuple[int, Any], None]:
        """See `sire_core.protocols.Runner`."""
        import asyncio

        if not parts:
            return
        packed = [pickle.dumps(parts[number]) for number in range(len(parts))]
        results = iter(self.results(function, pickle.dumps(shared), packed))
        end = object()
        while (found := await asyncio.to_thread(next, results, end)) is not end:
            number, result = found  # type: ignore[misc]
            yield number, pickle.loads(result)

    def results(
        self, function: Callable[[Any, Any], Any], shared: bytes, parts: list[bytes]
    ) -> Iterator[tuple[int, bytes]]:
        """Number of a part and its pickled result."""
        raise NotImplementedError


class RayData(Rows):
    """`ray.data`: a block for every part."""

    def results(
        self, function: Callable[[Any, Any], Any], shared: bytes, parts: list[bytes]
    ) -> Iterator[tuple[int, bytes]]:
        """See `Rows`."""
        import ray

        held = ray.put(shared)

        def work(row: dict[str, Any]) -> dict[str, Any]:
            return {"number": row["number"], "result": apply(function, ray.get(held), row["part"])}

        rows = [{"number": number, "part": part} for number, part in enumerate(parts)]
        for row in ray.data.from_items(rows, override_num_blocks=len(rows)).map(work).iter_rows():
            yield row["number"], row["result"]


class Daft(Rows):
    """`daft`: a partition for every part where there is a cluster."""

    def __init__(self, cluster: bool) -> None:
        self._cluster = cluster

    def results(
        self, function: Callable[[Any, Any], Any], shared: bytes, parts: list[bytes]
    ) -> Iterator[tuple[int, bytes]]:
        """See `Rows`."""
        import daft

        @daft.func(return_dtype=daft.DataType.binary())
        def work(part: bytes) -> bytes:
            return apply(function, shared, part)

        rows = daft.from_pydict({"number": list(range(len(parts))), "part": parts})
        if self._cluster:
            rows = rows.into_partitions(len(parts))
        for row in rows.select(rows["number"], work(rows["part"]).alias("result")).iter_rows():
            yield row["number"], row["result"]


def nothing(shared: Any, part: Any) -> tuple[Any, Any]:
    """What starts the workers."""
    return shared, part


def one(way: str, given: argparse.Namespace, passages: int) -> dict[str, Any]:
    """One way, in this process."""
    from sire_core import Index
    from sire_core.changes.runners import RayRunner
    from sire_core.evaluate.datasets import load_dataset
    from sire_core.models.sync import run_sync
    from sire_core.testing.contracts import read_contents

    documents = load_dataset(given.data / "2wikimultihopqa").documents[:passages]
    start = time.monotonic()
    if "Ray" in way:
        import ray

        ray.init(address="local", num_cpus=given.cpus, include_dashboard=False, log_to_driver=False)
    if way == "Daft on Ray":
        import daft

        daft.set_runner_ray()
    makers: dict[str, Callable[[], Any]] = {
        "here, no engine": lambda: None,
        "Ray tasks": lambda: RayRunner(part_size=PART),
        "Ray Data": RayData,
        "Daft on Ray": lambda: Daft(cluster=True),
        "Daft, its own runner": lambda: Daft(cluster=False),
    }
    runner = makers[way]()

    async def ready() -> list[Any]:
        return [found async for found in runner.map(nothing, 0, [[1]])] if runner else []

    run_sync(ready())
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        with Index(place + "/index", recipe=given.recipe, chunker=None, runner=runner) as index:
            index.build(documents)
        taken = time.monotonic() - begun
        contents = hashlib.sha256(repr(read_contents(Path(place, "index"))).encode()).hexdigest()[:12]
    return {"ready": begun - start, "build": taken, "contents": contents}


def main() -> None:
    """Measure every way, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--passages", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--recipe", default="sirerag")
    parser.add_argument("--cpus", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        print(json.dumps(one(given.only, given, given.passages[0])), flush=True)
        os._exit(0)  # threads of an engine may not end by themselves
    print("| passages | way | ready, s | build, s | contents |\n|--:|---|--:|--:|---|")
    for passages in given.passages:
        for way in WAYS:
            command = [sys.executable, __file__, "--data", str(given.data), "--recipe", given.recipe]
            command += ["--cpus", str(given.cpus), "--passages", str(passages), "--only", way]
            with tempfile.TemporaryFile("w+") as errors:
                try:
                    done = subprocess.run(
                        command, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=given.seconds, check=False
                    )
                    last = done.stdout.strip().splitlines()
                except subprocess.TimeoutExpired:
                    last = []
                errors.seek(0)
                said = [line.strip() for line in errors if line.strip()]
            if last and last[-1].startswith("{"):
                row = json.loads(last[-1])
                cells = f"{row['ready']:.1f} | {row['build']:.1f} | {row['contents']}"
            else:
                cells = f"did not end: {' '.join(said[-1:])[:200]} | |"
            print(f"| {passages:,} | {way} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
