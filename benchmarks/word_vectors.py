"""Makes `core/sire_core/data/word_vectors.npz`: what English words mean, learned from a sentence embedder.

Every piece of the embedder's vocabulary gets a vector of 128 numbers such that the sum over the pieces of a passage has
the direction of the embedder's vector of it, reduced to its leading directions. It begins with what the embedder says
of the piece alone; the less often a piece occurs, the longer it is at first. Rows are kept in 8 bits with a scale each.
The words of the passages are kept beside them, one for each stem, by which English is told from other languages.

    python benchmarks/word_vectors.py MODEL_FOLDER TEXTS.json ...

MODEL_FOLDER holds `model.onnx` and `tokenizer.json` of an English embedder with vectors at the first token; the shipped
file comes from bge-small-en-v1.5 (MIT licence). TEXTS.json is a list of passages, whose vectors are kept beside it; the
shipped file comes from the encyclopaedia pools of SIRE_DATA, manual pages of Debian, the books of OpenStax, and glosses
of WordNet and FOLDOC: none of the documents that `left_out.py` judges. Two hours of one core for the embedder, a minute
for the rest. Needs the extra `onnx`, and torch.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import onnxruntime
import Stemmer
import torch
from tokenizers import Tokenizer
from torch.nn import functional

from sire_core.models.word_vectors import FILE, INNER, WIDTH
from sire_core.text.words import split_words

PIECE = re.compile(f"(?:{INNER})?[a-z0-9]+")
WORD = re.compile("[a-z][a-z0-9]{1,23}")
LEAST = 3  # Passages that a word has to occur in
COMMON = 1e-3  # Share of all pieces from which on a piece counts less than half
PASSES, STEP, BATCH = 4, 3e-3, 256


class Teacher:
    """A sentence embedder over onnxruntime."""

    def __init__(self, folder: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(512)

    def embed(self, rows: list[list[int]], *, mean: bool) -> np.ndarray:
        """Vectors of length 1 of token ids, `[rows, width]`: the mean over the tokens or that of the first token."""
        vectors: list[np.ndarray] = []
        order = np.argsort([len(row) for row in rows], kind="stable")
        for start in range(0, len(rows), 32):
            batch = [rows[i] for i in order[start : start + 32]]
            mask = np.arange(max(map(len, batch)))[None, :] < np.array([len(row) for row in batch])[:, None]
            ids = np.zeros(mask.shape, dtype=np.int64)
            ids[mask] = np.concatenate(batch)
            given = {"input_ids": ids, "attention_mask": mask.astype(np.int64), "token_type_ids": np.zeros_like(ids)}
            tokens = self._session.run(None, given)[0]
            vectors.append(unit((tokens * mask[:, :, None]).sum(axis=1) if mean else tokens[:, 0]))
        return np.concatenate(vectors)[np.argsort(order)]

    def passages(self, file: Path) -> tuple[list[list[int]], np.ndarray]:
        """Token ids of the passages of a file, and their vectors, which are kept beside it."""
        rows = [item.ids for item in self.tokenizer.encode_batch(json.loads(file.read_text("utf-8")))]
        kept = file.with_suffix(".npy")
        if not kept.exists():
            np.save(kept, self.embed(rows, mean=False))
        return rows, np.load(kept).astype(np.float32)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(1e-9, np.linalg.norm(rows, axis=1, keepdims=True))


def learn(passages: list[list[int]], target: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Vectors of pieces, `[pieces, WIDTH]`, whose sums have the direction of `target`, beginning with `start`."""
    share = np.bincount(np.concatenate(passages), minlength=len(start)) / sum(map(len, passages))
    weights = torch.tensor(start * (COMMON / (COMMON + share))[:, None], dtype=torch.float32)
    table = torch.nn.EmbeddingBag.from_pretrained(weights, freeze=False, mode="sum")
    optimizer = torch.optim.Adam(table.parameters(), lr=STEP)
    steps = PASSES * -(-len(passages) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, STEP, total_steps=steps, pct_start=0.1)
    for seed in range(PASSES):
        for batch in np.array_split(np.random.default_rng(seed).permutation(len(passages)), steps // PASSES):
            rows = [torch.tensor(passages[i]) for i in batch]
            starts = torch.tensor(np.cumsum([0, *map(len, rows[:-1])]))
            cosines = functional.cosine_similarity(table(torch.cat(rows), starts), torch.tensor(target[batch]))
            optimizer.zero_grad()
            (1 - cosines).mean().backward()
            optimizer.step()
            schedule.step()
    return table.weight.detach().numpy()


def common_words(files: list[Path]) -> list[str]:
    """The commonest word of every stem, those that most passages have first."""
    passages = Counter(
        word for file in files for text in json.loads(file.read_text("utf-8")) for word in set(split_words(text))
    )
    words = [word for word, count in passages.most_common() if count >= LEAST and WORD.fullmatch(word)]
    by_stem: dict[str, str] = {}
    for word, stem in zip(words, Stemmer.Stemmer("english").stemWords(words), strict=True):
        by_stem.setdefault(stem, word)
    return list(by_stem.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path, nargs="+")
    options = parser.parse_args()
    torch.manual_seed(0)
    teacher = Teacher(options.model)
    vocabulary = teacher.tokenizer.get_vocab()
    read = [teacher.passages(file) for file in options.texts]
    passages = [row[1:-1] or row for rows, _ in read for row in rows]
    meant = np.concatenate([vectors for _, vectors in read])
    first, last = (teacher.tokenizer.encode("").ids[i] for i in (0, 1))
    alone = teacher.embed([[first, number, last] for number in range(len(vocabulary))], mean=True)
    meant -= meant.mean(axis=0)
    basis = np.linalg.svd(meant[np.random.default_rng(0).permutation(len(meant))[:8000]], full_matrices=False)[2]
    reduced = meant @ basis[:WIDTH].T
    learned = learn(passages, reduced, unit((alone - alone.mean(axis=0)) @ basis[:WIDTH].T))

    pieces = sorted((piece for piece in vocabulary if PIECE.fullmatch(piece)), key=vocabulary.__getitem__)
    vectors = learned[[vocabulary[piece] for piece in pieces]]
    largest = np.abs(vectors).max(axis=1)
    words = common_words(options.texts)
    np.savez(
        FILE,
        words=np.frombuffer("\n".join(words).encode("ascii"), dtype=np.uint8),
        pieces=np.frombuffer("\n".join(pieces).encode("ascii"), dtype=np.uint8),
        codes=np.round(127.0 * vectors / largest[:, None]).astype(np.int8),
        scales=(largest / 127.0 / np.median(largest)).astype(np.float16),
    )
    print(f"{len(words):,} words, {len(pieces):,} pieces, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
