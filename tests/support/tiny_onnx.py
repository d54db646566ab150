"""Models in the ONNX format that are small enough to be made in a test (packages `onnx` and `tokenizers`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray

__all__ = ["write_tiny_cross_encoder", "write_tiny_embedder"]

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def write_tiny_cross_encoder(folder: Path, worth: Mapping[str, float], *, max_length: int = 512) -> Path:
    """Write a cross-encoder whose score is the sum of what the words of a pair are worth."""
    from onnx import helper

    rows = np.array([0.0] * len(_SPECIAL) + list(worth.values()), dtype=np.float32)[:, None]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["words"]),
        helper.make_node("ReduceSum", ["words", "axis"], ["logits"], keepdims=0),
    ]
    constants = {"table": rows, "axis": np.array([1], dtype=np.int64)}
    _write(folder, list(worth), max_length, nodes, constants, ("logits", ["batch", 1]))
    return folder


def write_tiny_embedder(folder: Path, words: Mapping[str, Sequence[float]], *, max_length: int = 512) -> Path:
    """Write an embedder with two layers: vectors of words, then `tanh` of twice their value."""
    from onnx import helper

    width = len(next(iter(words.values())))
    rows: FloatArray = np.array([[0.0] * width] * 2 + [[1.0] * width] * 2 + [*map(list, words.values())], np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["found"]),
        helper.make_node("MatMul", ["found", "weights"], ["mixed"]),
        helper.make_node("Tanh", ["mixed"], ["last_hidden_state"]),
    ]
    constants = {"table": rows, "weights": 2 * np.eye(width, dtype=np.float32)}
    _write(folder, list(words), max_length, nodes, constants, ("last_hidden_state", ["batch", "sequence", width]))
    (folder / "config.json").write_text(json.dumps({"hidden_size": width}), encoding="utf-8")
    return folder


def _write(
    folder: Path,
    words: Sequence[str],
    max_length: int,
    nodes: Sequence[Any],
    constants: Mapping[str, Any],
    output: tuple[str, list[Any]],
) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    folder.mkdir(parents=True)
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info(output[0], TensorProto.FLOAT, output[1])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "model.onnx"))
    _tokenizer(words).save(str(folder / "tokenizer.json"))
    settings = json.dumps({"model_max_length": max_length})
    (folder / "tokenizer_config.json").write_text(settings, encoding="utf-8")


def _tokenizer(words: Sequence[str]) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate((*_SPECIAL, *words))}, "[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer
