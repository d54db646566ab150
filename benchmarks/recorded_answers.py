"""Answers of models that stand in a file of lines beside the tables that were made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sire_core.storage.call_cache import CallStore


class RecordedAnswers(CallStore):
    """Answers by key in memory; new ones are appended to the file, whose lines are the arguments of `put_answer`."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            super().put_answer(**json.loads(line))
        self._lines = path.open("a", encoding="utf-8")

    def put_answer(self, key: str, answer: str, **others: Any) -> None:
        """Store an answer."""
        super().put_answer(key, answer, **others)
        tokens = {name: others.get(name, 0) for name in ("input_tokens", "output_tokens")}
        self._lines.write(json.dumps({"key": key, "answer": answer, **tokens}, ensure_ascii=False) + "\n")
        self._lines.flush()
