"""Training examples for a smaller extractor, from what a model extracted (SiReRAG, section 5.4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sire_core.build.estimate import DryRunModel
from sire_core.errors import ConfigurationError
from sire_core.extraction.model import ModelExtractor
from sire_core.extraction.record import to_json
from sire_core.extraction.stage import missing_chunks
from sire_core.models.prompt_format import render
from sire_core.storage.index_files import IndexFiles

_BOOKS = ("schema", "hash", "model", "prompt", "status", "reason")
"""Of a record what a model does not write."""


def training_examples(
    folder: str | Path, *, documents: int | None = 10_000, seed: int = 0, recipe: str = ""
) -> Iterator[dict[str, Any]]:
    """Passages of an index with what its model extracted from them, as chats: the joint prompt and its answer."""
    import numpy as np

    files = IndexFiles(Path(folder))
    try:
        built = files.manifest().find(None, recipe)
        if "|extract/" not in built.extraction:
            raise ConfigurationError(
                f"{folder}: {built.name} was built from {built.extraction or 'no records'}, not by a model with one "
                "call per passage. Build it with --llm MODEL and without --native."
            )
        chunks = files.store.chunks()
        names = list(dict.fromkeys(chunk.doc_id for chunk in chunks))
        drawn = np.random.default_rng(seed).permutation(len(names))[:documents]
        wanted = {names[number] for number in drawn.tolist()}
        asker = ModelExtractor(DryRunModel())
        items = [item for item in missing_chunks(chunks, set()) if item.chunk.doc_id in wanted]
        records = files.calls.records(built.extraction, [item.chunk.hash for item in items])
        for item in items:
            record = records.get(item.chunk.hash)
            if record is None or record.status == "failed":
                continue
            prompt = render(asker.prompt(item))
            answer = {"entities": [], "facts": [], "keywords": [], "topic": "", "abstractiveness": "low"}
            answer |= {name: value for name, value in json.loads(to_json(record)).items() if name not in _BOOKS}
            texts = (prompt.system, prompt.user, json.dumps(answer, ensure_ascii=False))
            roles = ("system", "user", "assistant")
            yield {"messages": [{"role": r, "content": t} for r, t in zip(roles, texts, strict=True)]}
    finally:
        files.close()
