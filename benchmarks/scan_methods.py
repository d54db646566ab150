"""What `benchmarks/scan.py` compares: indexes over codes, with the efforts and depths at which they are asked.

- SQ8: every number of a vector as a byte (faiss.IndexScalarQuantizer; "uniform" has one range for all); SQ4: four bits.
- PQ: products of 4-bit codes for two numbers each, summed in registers (faiss.IndexPQFastScan).
- RaBitQ: the sign of every number (faiss.IndexRaBitQFastScan).
- PRQ: additive codes, four bits each, of parts of a vector (faiss.IndexProductResidualQuantizerFastScan).
- IVF: the same codes in `cells`, of which `effort` are read.
- HNSW: a graph of neighbors over codes, walked with a list of `effort` candidates; usearch: another library's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import faiss
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

TRAINED_ON = 20_000
BLOCK = 50_000
IP = faiss.METRIC_INNER_PRODUCT
SQ = faiss.ScalarQuantizer


class Searched(Protocol):
    """What a process that searches needs."""

    def find(self, question: Floats, depth: int, effort: int) -> NDArray[np.int64]:
        """Positions of the best `depth` rows as codes tell them."""


@dataclass(frozen=True)
class Method:
    """A way to build, and the (effort, depth) pairs to ask with.

    Attributes:
        name: In the table.
        make: Makes an empty index of some dimension.
        asked: Pairs of effort (cells read, candidates of a graph) and rows ranked again.
        most: Not built for more rows.
        scale: Numbers are multiplied by this, where codes are whole numbers as they are.
    """

    name: str
    make: Callable[[int], Any]
    asked: tuple[tuple[int, int], ...]
    most: int = 10**9
    scale: float = 1.0

    def build(self, matrix: Floats, path: Path) -> None:
        """Index the rows and write the file."""
        index = self.make(matrix.shape[1])
        rows = len(matrix)
        if self.name.startswith("usearch"):
            index.add(np.arange(rows), matrix, threads=1)
            index.save(str(path))
            return
        cells = getattr(index, "nlist", 0)
        sample = np.sort(np.random.default_rng(1).choice(rows, min(rows, max(TRAINED_ON, 40 * cells)), replace=False))
        index.train(matrix[sample] * np.float32(self.scale))
        for at in range(0, rows, BLOCK):
            index.add(matrix[at : at + BLOCK] * np.float32(self.scale))
        faiss.write_index(index, str(path))

    def open(self, dimension: int, path: Path) -> Searched:
        """Open the file."""
        if self.name.startswith("usearch"):
            index = self.make(dimension)
            index.load(str(path))
            return Graph(index)
        return Codes(faiss.read_index(str(path)), self.scale)


class Codes:
    """An index of faiss."""

    def __init__(self, index: Any, scale: float) -> None:
        self._index = index
        self._scale = np.float32(scale)

    def find(self, question: Floats, depth: int, effort: int) -> NDArray[np.int64]:
        """Positions of the best `depth` rows as codes tell them."""
        if hasattr(self._index, "nprobe"):
            self._index.nprobe = effort
        elif hasattr(self._index, "hnsw"):
            self._index.hnsw.efSearch = max(effort, depth)
        found: NDArray[np.int64] = self._index.search(question[None] * self._scale, depth)[1][0]
        return found[found >= 0]


class Graph:
    """An index of usearch."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def find(self, question: Floats, depth: int, effort: int) -> NDArray[np.int64]:
        """Positions of the best `depth` rows as codes tell them."""
        self._index.expansion_search = max(effort, depth)
        return np.asarray(self._index.search(question, depth, threads=1).keys, dtype=np.int64)


def _fast(d: int, cells: int) -> Any:
    return faiss.IndexIVFPQFastScan(faiss.IndexFlatIP(d), d, cells, d // 2, 4, IP)


def _usearch(dtype: str) -> Callable[[int], Any]:
    def make(d: int) -> Any:
        from usearch.index import Index

        return Index(ndim=d, metric="ip", dtype=dtype, connectivity=16, expansion_add=64)

    return make


def _prq(d: int) -> Any:
    without_norms = faiss.AdditiveQuantizer.ST_LUT_nonorm
    return faiss.IndexProductResidualQuantizerFastScan(d, d // 8, 4, 4, IP, without_norms)


def methods(rows: int) -> Iterator[Method]:
    """All that are compared."""
    cells = max(64, 1 << round(np.log2(rows**0.5)))
    few, some, many = (max(1, cells // part) for part in (64, 32, 16))
    most, half = max(1, cells // 8), cells // 4
    near = ((few, 400), (some, 400), (many, 400), (most, 400), (half, 400), (half, 1000), (cells, 1000))
    yield Method("SQ8", lambda d: faiss.IndexScalarQuantizer(d, SQ.QT_8bit, IP), ((0, 20),))
    yield Method("SQ8 uniform", lambda d: faiss.IndexScalarQuantizer(d, SQ.QT_8bit_uniform, IP), ((0, 20),))
    direct = SQ.QT_8bit_direct_signed
    yield Method("SQ8 direct", lambda d: faiss.IndexScalarQuantizer(d, direct, IP), ((0, 20),), scale=400)
    yield Method("SQ4", lambda d: faiss.IndexScalarQuantizer(d, SQ.QT_4bit, IP), ((0, 40),))
    yield Method("PQ", lambda d: faiss.IndexPQFastScan(d, d // 2, 4, IP), ((0, 100), (0, 400), (0, 1000)))
    yield Method("PQ, half the codes", lambda d: faiss.IndexPQFastScan(d, d // 4, 4, IP), ((0, 400), (0, 1000)))
    yield Method("RaBitQ", lambda d: faiss.IndexRaBitQFastScan(d, IP), ((0, 400), (0, 1000)))
    yield Method("PRQ", _prq, ((0, 400),), most=100_000)
    yield Method(f"IVF {cells}, PQ", lambda d: _fast(d, cells), near)
    yield Method(
        f"IVF {cells}, RaBitQ",
        lambda d: faiss.IndexIVFRaBitQFastScan(faiss.IndexFlatIP(d), d, cells, IP),
        ((many, 400), (most, 400), (most, 1000)),
    )
    yield Method(
        f"IVF {cells}, SQ8",
        lambda d: faiss.IndexIVFScalarQuantizer(faiss.IndexFlatIP(d), d, cells, SQ.QT_8bit, IP),
        ((some, 20), (many, 20), (most, 20)),
    )
    yield Method("HNSW 16, SQ8", lambda d: _hnsw(faiss.IndexHNSWSQ(d, SQ.QT_8bit, 16, IP)), WALKS, most=100_000)
    yield Method("HNSW 16, SQ4", lambda d: _hnsw(faiss.IndexHNSWSQ(d, SQ.QT_4bit, 16, IP)), WALKS, most=100_000)
    yield Method("HNSW 16, PQ", lambda d: _hnsw(faiss.IndexHNSWPQ(d, d // 4, 16, 8, IP)), WALKS, most=100_000)
    yield Method("HNSW 16", lambda d: _hnsw(faiss.IndexHNSWFlat(d, 16, IP)), WALKS, most=100_000)
    yield Method("usearch, f16", _usearch("f16"), WALKS, most=100_000)
    yield Method("usearch, i8", _usearch("i8"), WALKS, most=100_000)


WALKS = ((64, 40), (128, 40), (256, 40))


def _hnsw(index: Any) -> Any:
    index.hnsw.efConstruction = 64
    return index
