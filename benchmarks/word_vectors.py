"""Makes `core/sire_core/data/word_vectors.npz`: what English words mean, learned from a sentence embedder.

A word's vector stands between two things that the embedder says: the vector of the word alone, and the vector that,
summed over the words of a sentence, comes nearest the sentence's (ridge regression towards the former). Its length is
that of the latter: words that say little are short. Words of one stem are one row, weighted by how often each occurs.
Rows are kept in 8 bits with a length each.

    python benchmarks/word_vectors.py MODEL_FOLDER SENTENCES.json

MODEL_FOLDER holds `model.onnx` and `tokenizer.json` of an English embedder with vectors at the first token; the shipped
file comes from bge-small-en-v1.5 (MIT licence). SENTENCES.json is a list of sentences: 140,000 of manual pages,
docstrings and documentation of installed packages, glosses of WordNet, and passages of the encyclopaedia pools of
SIRE_DATA; none of the documents that `left_out.py` judges. Takes 20 minutes of one core. Needs the extra `onnx`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import Stemmer
from scipy import sparse

from sire_core.models.word_vectors import FILE, WIDTH
from sire_core.text.words import split_words

WORD = re.compile("[a-z][a-z0-9]+")
LEAST = 2
"""Sentences that a word has to occur in, unless the tokenizer knows it whole."""
PULL = 5.0
"""Weight of the vector of the word alone in the regression."""
BATCH = 64


class Teacher:
    """A sentence embedder over onnxruntime."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(96)
        self._tokenizer.enable_padding()

    def whole_words(self) -> list[str]:
        """Words that are one token."""
        return [word for word in self._tokenizer.get_vocab() if word.isascii() and word.isalpha() and len(word) > 1]

    def embed(self, texts: list[str], *, mean: bool) -> np.ndarray:
        """Vectors of length 1, `[texts, width]`: the mean over the tokens or that of the first token."""
        found: list[np.ndarray] = []
        order = np.argsort([len(text) for text in texts], kind="stable")
        for start in range(0, len(texts), BATCH):
            encoded = self._tokenizer.encode_batch([texts[i] for i in order[start : start + BATCH]])
            ids = np.array([item.ids for item in encoded], dtype=np.int64)
            mask = np.array([item.attention_mask for item in encoded], dtype=np.int64)
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            tokens = self._session.run(None, given)[0]
            pooled = (tokens * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
            found.append(unit(pooled if mean else tokens[:, 0]))
        vectors = np.empty((len(texts), found[0].shape[1]), dtype=np.float32)
        vectors[order] = np.concatenate(found)
        return vectors


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(1e-9, np.linalg.norm(rows, axis=1, keepdims=True))


def word_counts(sentences: list[str], number: dict[str, int]) -> sparse.csr_matrix:
    """Damped counts over the square root of their sum, `[sentences, words]`."""
    rows, columns, values = [], [], []
    for row, sentence in enumerate(sentences):
        for word, count in Counter(split_words(sentence)).items():
            if word in number:
                rows.append(row)
                columns.append(number[word])
                values.append(1.0 + np.log(count))
    counts = sparse.csr_matrix((values, (rows, columns)), shape=(len(sentences), len(number)))
    return sparse.diags(1.0 / np.sqrt(np.maximum(1.0, np.asarray(counts.sum(axis=1)).ravel()))) @ counts


def regress(counts: sparse.csr_matrix, target: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """Ridge regression of `target` on `counts` towards a multiple of `alone`, by conjugate gradients."""
    summed = np.asarray(counts @ alone)
    start = alone * (summed * target).sum() / (summed**2).sum()
    squares = counts.T @ counts
    found = start.copy()
    left = np.asarray(counts.T @ target) + PULL * start - (squares @ found + PULL * found)
    step, size = left.copy(), (left**2).sum(axis=0)
    for _ in range(100):
        along = squares @ step + PULL * step
        length = size / np.maximum(1e-12, (step * along).sum(axis=0))
        found += length * step
        left -= length * along
        before, size = size, (left**2).sum(axis=0)
        step = left + size / np.maximum(1e-12, before) * step
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("sentences", type=Path)
    options = parser.parse_args()
    teacher = Teacher(options.model)
    sentences = json.loads(options.sentences.read_text("utf-8"))
    frequency = Counter(word for sentence in sentences for word in set(split_words(sentence)))
    common = {
        word for word, n in frequency.items() if n >= LEAST and word.isascii() and word.isalnum() and word[0].isalpha()
    }
    words = sorted(word for word in common | set(teacher.whole_words()) if 1 < len(word) < 25)
    meant = teacher.embed(sentences, mean=False)
    alone = teacher.embed(words, mean=True)
    meant, alone = meant - meant.mean(axis=0), unit(alone - alone.mean(axis=0))
    basis = np.linalg.svd(meant[::5], full_matrices=False)[2][:WIDTH].T
    meant, alone = meant @ basis, alone @ basis
    learned = regress(word_counts(sentences, {word: i for i, word in enumerate(words)}), meant, alone)
    lengths = np.linalg.norm(learned, axis=1, keepdims=True)
    vectors = unit(unit(learned) + unit(alone)) * lengths

    stems, stem_of = np.unique(Stemmer.Stemmer("english").stemWords(words), return_inverse=True)
    often = np.array([1.0 + frequency[word] for word in words])
    shares = sparse.csr_matrix((often, (stem_of, np.arange(len(words)))))
    merged = np.asarray(sparse.diags(1.0 / np.asarray(shares.sum(axis=1)).ravel()) @ shares @ vectors)
    largest = np.abs(merged).max(axis=1)
    codes = np.round(127.0 * merged / largest[:, None]).astype(np.int8)
    scales = (largest / 127.0 / np.median(lengths)).astype(np.float16)
    np.savez(FILE, stems=np.frombuffer("\n".join(stems).encode("ascii"), dtype=np.uint8), codes=codes, scales=scales)
    print(f"{len(words):,} words, {len(stems):,} stems, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
