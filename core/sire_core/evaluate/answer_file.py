"""`AnswerFile`: answers of models in a file of lines."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from sire_core.errors import ConfigurationError


class AnswerFile:
    """Answers by the digest of everything that was asked; an `AnswerStore` for `CachedModel`.

    A line is `{"key", "answer", "input_tokens", "output_tokens"}`; no prompt and no passage is written. Every answer is
    on disk before the next question is asked. A last line that was cut off is asked for again. The first answer makes
    the file.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._answers: dict[str, tuple[str, int, int]] = {}
        self._file: IO[str] | None = None
        try:
            self._whole = self._read()
            if self._path.exists():
                self._open()
            elif not os.access(self._path.absolute().parent, os.W_OK):
                raise PermissionError("its folder is missing or not writable")
        except OSError as error:
            reason = error.strerror or error
            raise ConfigurationError(f"{path} cannot store answers ({reason}); name a file you may write.") from error

    def _open(self) -> IO[str]:
        if self._file is None:
            self._file = self._path.open("a", encoding="utf-8")
            if not self._whole:
                self._file.write("\n")
        return self._file

    def _read(self) -> bool:
        """Take over what is there; whether it ends with a whole line."""
        if not self._path.exists():
            return True
        # A run that was killed may have written half of a letter, which must not cost the lines before.
        text = self._path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                tokens = int(row.get("input_tokens", 0)), int(row.get("output_tokens", 0))
                self._answers[str(row["key"])] = str(row["answer"]), *tokens
            except (ValueError, KeyError, TypeError) as error:
                if line.startswith('{"key"'):  # a run that was killed wrote half of it
                    continue
                message = f"{self._path}:{number} is not a recorded answer; name another file."
                raise ConfigurationError(message) from error
        return not text or text.endswith("\n")

    def answer(self, key: str) -> tuple[str, int, int] | None:
        """A recorded answer, with the tokens of its prompt and its own."""
        return self._answers.get(key)

    def put_answer(
        self,
        key: str,
        answer: str,
        *,
        sources: Sequence[str] = (),  # noqa: ARG002 - part of the protocol; questions have no passages to be purged by
        stage: str = "",  # noqa: ARG002 - as above
        input_tokens: int = 0,
        output_tokens: int = 0,
    ) -> None:
        """Record an answer."""
        row = {"key": key, "answer": answer, "input_tokens": input_tokens, "output_tokens": output_tokens}
        with self._lock:
            self._answers[key] = answer, input_tokens, output_tokens
            file = self._open()
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
