"""Speed and memory of indexing, loading, searching and importing, as ratios of one run.

    python benchmarks/index_speed.py [--data DIR] [--quick] [--json FILE]
    python benchmarks/index_speed.py --real [--sets chunks,ops,web] [--data DIR] [--json FILE]

Embedding is measured apart: the first build records the vectors of every text, the second one reads them back, and only
the second is timed. Each step runs in a process of its own, on one thread.

`--real` indexes what users have (chunks of LangChain's splitter, folders of files, web pages) from texts in memory to
the first answer, in one process and in two, beside what else a user would build. CPU counts all processes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SIRE_DATA", ROOT.parent / "shared" / "data"))
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Recorder:
    """An embedder that remembers what it was asked, or answers from what was remembered."""

    spec = ""

    def __init__(self, inner: Any = None, remembered: dict[str, np.ndarray] | None = None) -> None:
        self.inner = inner
        self.remembered = remembered if remembered is not None else {}
        self.dimension = inner.dimension if inner else len(next(iter(self.remembered.values())))
        self.fingerprint = "recorded"

    async def embed(self, texts: Sequence[str], kind: str = "document") -> np.ndarray:
        """Ask and remember, or remember."""
        if self.inner is not None:
            vectors = await self.inner.embed(texts, kind)
            self.remembered.update(zip(texts, vectors, strict=True))
            return vectors
        return np.stack([self.remembered[text] for text in texts])


def documents(data: Path, limit: int | None) -> list[Any]:
    from sire_core.files.readers import read_documents

    return list(read_documents([data / "2wikimultihopqa" / "corpus.jsonl"]).documents)[:limit]


def record(folder: Path, data: Path, limit: int | None) -> None:
    """Build once and write down every vector."""
    from sire_core import Index
    from sire_core.models.lexical_embedder import LexicalEmbedder

    given = documents(data, limit)
    recorder = Recorder(LexicalEmbedder().fit([f"{d.title}\n{d.text}" for d in given]))
    Index(folder / "first", recipe="sirerag", embedder=recorder).build(given)
    texts = list(recorder.remembered)
    np.save(folder / "vectors.npy", np.stack([recorder.remembered[t] for t in texts]))
    (folder / "texts.json").write_text(json.dumps(texts))


def build(folder: Path, data: Path, limit: int | None) -> dict[str, float]:
    """Build with remembered vectors; CPU and memory of everything but embedding."""
    from sire_core import Index

    given = documents(data, limit)
    vectors = np.load(folder / "vectors.npy")
    remembered = dict(zip(json.loads((folder / "texts.json").read_text()), vectors, strict=True))
    start = time.process_time()
    report = Index(folder / "index", recipe="sirerag", embedder=Recorder(remembered=remembered)).build(given)
    cpu = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"passages": len(given), "cpu": cpu, "peak_mb": peak, **{f"wall {k}": v for k, v in report.seconds.items()}}


def _matrix(folder: Path) -> Any:
    """Vectors of the pool."""
    from sire_core.storage.array_file import ARRAYS_FILE, map_arrays

    return map_arrays(next((folder / "index" / "derived").glob(f"*/{ARRAYS_FILE}")))["matrix"]


def load(folder: Path) -> dict[str, float]:
    """Open an index and read its first hit's worth of pool, against `np.load` of the same vectors."""
    from sire_core.reader import Reader  # noqa: F401 - importing is not loading
    from sire_core.storage.index_files import IndexFiles

    np.save(folder / "vectors.npy", _matrix(folder))

    def ours() -> None:
        library = IndexFiles(folder / "index")
        manifest = library.manifest()
        library.pools.get(library.store, manifest.recipes[-1], manifest.generation)
        library.close()

    return {"np.load": best(lambda: np.load(folder / "vectors.npy"), 15), "open": best(ours, 15)}


def search(folder: Path) -> dict[str, float]:
    """Search p50 against one raw scan of the same matrix, question vectors known."""
    from sire_core import Index

    matrix = _matrix(folder)
    rng = np.random.default_rng(0)
    questions = {f"question {i}": matrix[j] for i, j in enumerate(rng.integers(0, len(matrix), 200))}
    index = Index(folder / "index", embedder=Recorder(remembered=questions))
    same = index.view().matrix
    found: list[float] = []
    raw: list[float] = []
    for question, vector in questions.items():  # side by side, so that both see the same machine
        found.append(timed(lambda q=question: index.search(q, 10)))
        raw.append(timed(lambda v=vector: same @ v))
    return {
        "units": len(matrix),
        "dimension": matrix.shape[1],
        "scan": float(np.median(raw)),
        "search": float(np.median(found)),
    }


def imports() -> dict[str, float]:
    """Import time against numpy's, each in a fresh process."""

    def fresh(code: str) -> float:
        return best(lambda: subprocess.run([sys.executable, "-c", code], check=True), 7)

    empty = fresh("pass")
    ours = fresh("from sire_core import Index; from sire_core.recipes import sirerag")
    return {"numpy": fresh("import numpy") - empty, "sire_core": ours - empty}


def split_texts(data: Path) -> list[str]:
    """Chunks of 1,000 characters of 2.8 MB of documentation, by LangChain's splitter."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    paths = [*sorted((data / "ops" / "docs").rglob("*.md")), *sorted((data / "frameworks" / "docs").rglob("*.*"))]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in paths]
    room, kept = SPLIT_LETTERS, list[str]()
    for text in texts[::2] + texts[1::2]:  # of both sets
        if len(text) <= room:
            kept.append(text)
            room -= len(text)
    return [part for text in kept for part in RecursiveCharacterTextSplitter(chunk_size=1000).split_text(text)]


def real_documents(name: str, data: Path) -> list[Any]:
    """Documents of a real set."""
    from sire_core import Document
    from sire_core.files.readers import read_documents

    if name == "chunks":
        return [Document(f"c{number}", text) for number, text in enumerate(split_texts(data))]
    place = data / name
    return list(read_documents([place / "docs" if (place / "docs").is_dir() else place / "corpus.jsonl"]).documents)


def index_here(documents: Sequence[Any], folder: Path, runner: str) -> None:
    """Build with the default recipe, documents of one chunk as they are, and ask a question."""
    from sire_core import Index

    with Index(folder, runner=runner) as index:
        index.build(documents)
        index.search(QUESTION)


def passages_of(documents: Sequence[Any]) -> list[str]:
    """Texts of the passages that this package would cut."""
    from sire_core.documents.chunker import SentenceChunker, chunk_document

    return [chunk.text for document in documents for chunk in chunk_document(document, SentenceChunker())]


def words_by_bm25s(texts: Sequence[str], folder: Path) -> None:
    """bm25s with stemmer and stop words, written to files."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    ranker = bm25s.BM25()
    ranker.index(bm25s.tokenize(list(texts), stemmer=stemmer, stopwords="en", show_progress=False), show_progress=False)
    ranker.save(folder)
    ranker.retrieve(bm25s.tokenize([QUESTION], stemmer=stemmer, show_progress=False), k=5, show_progress=False)


def static_vectors(texts: Sequence[str], folder: Path) -> None:
    """Means of the static word vectors that ship here (model2vec: of parts of words), in a flat FAISS index."""
    import faiss

    from sire_core.models.lexical_embedder import count_words, keys_of_stems, stem_keys
    from sire_core.models.word_vectors import word_vectors

    folder.mkdir(exist_ok=True)
    (counts, columns, ends), words = count_words(texts)
    from scipy import sparse

    weights = sparse.csr_matrix((counts, columns, ends), shape=(len(texts), len(words)))
    vectors = np.asarray(weights @ word_vectors(stem_keys(words), keys_of_stems), dtype=np.float32)
    faiss.normalize_L2(vectors)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    faiss.write_index(index, str(folder / "vectors.faiss"))
    index.search(vectors[:1], 5)


def words_by_langchain(texts: Sequence[str], folder: Path) -> None:
    """LangChain's BM25Retriever, which stays in memory."""
    from langchain_community.retrievers import BM25Retriever

    folder.mkdir(exist_ok=True)
    BM25Retriever.from_texts(list(texts)).invoke(QUESTION)


def words_and_vectors(texts: Sequence[str], folder: Path) -> None:
    """bm25s and static vectors side by side."""
    words_by_bm25s(texts, folder)
    static_vectors(texts, folder)


REAL_ROWS: dict[str, Callable[[Sequence[Any], Path], None]] = {
    "sire, one process": lambda documents, folder: index_here(documents, folder, "local"),
    "sire, two processes": lambda documents, folder: index_here(documents, folder, "processes:2"),
    "bm25s": lambda documents, folder: words_by_bm25s(passages_of(documents), folder),
    "bm25s + static vectors": lambda documents, folder: words_and_vectors(passages_of(documents), folder),
    "BM25Retriever of LangChain": lambda documents, folder: words_by_langchain(passages_of(documents), folder),
}
QUESTION = "How is a request retried after a timeout?"
SPLIT_LETTERS = 2_800_000


def real(row: str, name: str, data: Path, folder: Path) -> dict[str, float]:
    """Measure one row over a real set: CPU of all processes, wall clock, peak memory, disk."""
    given = real_documents(name, data)
    before, began = os.times(), time.perf_counter()
    memory = Memory()
    try:
        REAL_ROWS[row](given, folder / "index")
    except ImportError as error:
        return {"missing": str(error)}  # type: ignore[dict-item] # a row that cannot be run here
    wall, after, peak = time.perf_counter() - began, os.times(), memory.peak()
    files = [path.stat().st_size for path in (folder / "index").rglob("*") if path.is_file()]
    letters = sum(len(document.text) for document in given)
    return {
        "MB of text": letters / 1e6,
        "CPU s": sum(after[:4]) - sum(before[:4]) - memory.cpu,
        "wall s": wall,
        "peak MB": peak,
        "MB before": memory.before,
        "MB on disk": sum(files) / 1e6,
        "load": os.getloadavg()[0],
    }


class Memory:
    """Peak of the memory that this process and its children hold together, sampled ten times a second.

    Attributes:
        before: MB held at the start.
        cpu: CPU seconds of the sampling itself, which grow with the wall clock; set by `peak`.
    """

    def __init__(self) -> None:
        self.before, self.cpu = self._held(), 0.0
        self._peak, self._ends = self.before, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def peak(self) -> float:
        """Stop; return the peak in MB."""
        self._ends.set()
        self._thread.join()
        return self._peak

    def _watch(self) -> None:
        while not self._ends.wait(0.1):
            self._peak = max(self._peak, self._held())
        self.cpu = time.thread_time()

    @staticmethod
    def _held() -> float:
        """MB of this process and its children; memory that they share counts once."""
        pids = [str(os.getpid())]
        for path in Path("/proc/self/task").glob("*/children"):
            with suppress(OSError):
                pids += path.read_text().split()
        held = 0
        for pid in pids:
            with suppress(OSError):  # it has ended
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
                held += int(re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[1])  # type: ignore[index] # always there
        return held / 1024


def print_real(sets: Sequence[str], data: Path, json_file: Path | None) -> None:
    """Run and print all rows over some real sets, each in a process of its own."""
    results: dict[str, dict[str, dict[str, float]]] = {}
    columns = ("CPU s", "wall s", "peak MB", "MB before", "MB on disk", "load")
    print(f"| set | way | {' | '.join(columns)} |\n|---|---|{'--:|' * len(columns)}")
    for name in sets:
        for row in REAL_ROWS:
            with tempfile.TemporaryDirectory() as folder:
                measured = step(f"real/{name}/{row}", Path(folder), data, None)
            results.setdefault(name, {})[row] = measured
            cells = [f"{measured[column]:,.1f}" if column in measured else "-" for column in columns]
            print(f"| {name} | {row} | {' | '.join(cells)} |", flush=True)
    if json_file:
        json_file.write_text(json.dumps(results, indent=1))


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def best(call: Callable[[], object], repeats: int) -> float:
    return min(timed(call) for _ in range(repeats))


def step(name: str, folder: Path, data: Path, limit: int | None) -> dict[str, float]:
    """Run one step in a process of its own."""
    command = [sys.executable, __file__, "--step", name, "--folder", str(folder), "--data", str(data)]
    command += ["--limit", str(limit)] if limit else []
    output = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **THREADS}).stdout
    return dict(json.loads(output or "{}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="the first 1,500 passages only")
    parser.add_argument("--real", action="store_true", help="what users have, beside what else they would build")
    parser.add_argument("--sets", default="chunks,ops,web", help="sets of --real")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--step")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--limit", type=int)
    args = parser.parse_args()
    if args.real:
        print_real(args.sets.split(","), args.data, args.json)
        return
    if args.step and args.step.startswith("real/"):
        _, name, row = args.step.split("/", 2)
        print(json.dumps(real(row, name, args.data, args.folder)))
        return
    if args.step:
        steps: dict[str, Callable[[], Any]] = {
            "record": lambda: record(args.folder, args.data, args.limit),
            "build": lambda: build(args.folder, args.data, args.limit),
            "load": lambda: load(args.folder),
            "search": lambda: search(args.folder),
            "imports": imports,
        }
        print(json.dumps(steps[args.step]() or {}))
        return
    limit = 1500 if args.quick else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        step("record", folder, args.data, limit)
        built = step("build", folder, args.data, limit)
        loaded = step("load", folder, args.data, limit)
        searched = step("search", folder, args.data, limit)
        imported = step("imports", folder, args.data, limit)
    per_thousand = 1000 * built["cpu"] / built["passages"]
    rows = [
        ("extraction + organizing + storing, CPU s per 1,000 passages", per_thousand, 4.0),
        ("peak memory of the build, MB", built["peak_mb"], 1000.0),
        ("opening the index / np.load of its vectors", loaded["open"] / loaded["np.load"], 20.0),
        ("search p50 / one raw scan", searched["search"] / searched["scan"], 1.3),
        ("import / import numpy", imported["sire_core"] / imported["numpy"], 1.5),
    ]
    print(
        f"{built['passages']:.0f} passages, {searched['units']:.0f} units x {searched['dimension']:.0f}, one thread\n"
    )
    print("| what | measured | goal, at most |\n|---|---|---|")
    for what, value, goal in rows:
        print(f"| {what} | {value:.2f} | {goal:g} |")
    if args.json:
        details = {"build": built, "load": loaded, "search": searched, "import": imported}
        args.json.write_text(json.dumps({"rows": [list(row) for row in rows], **details}, indent=1))


if __name__ == "__main__":
    main()
