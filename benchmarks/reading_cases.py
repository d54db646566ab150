"""Checks that small files which lose text in other readers are read with all of their words.

    python benchmarks/reading_cases.py            # the files of SIRE_DATA/reading that are read wrongly, and why
    python benchmarks/reading_cases.py FOLDER     # other files, with an `expected.jsonl` of the same form

Each line of `expected.jsonl` names a file, and the words that its text must and must not have: `a|b` is one of both,
white space and bars of tables count as one blank, and a superscript may be `10^6`, `10⁶` or `10<sup>6</sup>`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_ALTERNATIVES = re.compile(r"(?<=[^\s|])\|(?=[^\s|])")
_FOLDED = re.compile(r"[\s|]+")
_POWER = re.compile(r"\^(\d+)")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def holds(text: str, words: str) -> bool:
    """Whether a text has some words, in any of their forms."""
    folded = _FOLDED.sub(" ", text)
    forms = [form for choice in _ALTERNATIVES.split(words) for form in _forms(choice)]
    return any(_FOLDED.sub(" ", form).strip() in folded for form in forms)


def _forms(words: str) -> tuple[str, ...]:
    powers = _POWER.sub(lambda match: match[1].translate(_RAISED), words)
    return words, powers, _POWER.sub(r"<sup>\1</sup>", words)


def problems(folder: Path, case: Mapping[str, Any]) -> Iterator[str]:
    """Failures of a file, words that it lost, and words that it must not have."""
    from sire_core.errors import CorpusError
    from sire_core.files.readers import read_documents

    try:
        loaded = read_documents(folder / case["file"])
    except CorpusError as error:
        yield f"refused: {error}"
        return
    text = "\n\n".join(f"{document.title}\n\n{document.text}" for document in loaded)
    yield from (f"no {words!r}" for words in case["must"] if not holds(text, words))
    yield from (f"has {words!r}" for words in case["must_not"] if holds(text, words))


def main() -> int:
    """Print the files that are read wrongly; the exit status says whether there are any."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(os.environ["SIRE_DATA"]) / "reading")
    cases = [json.loads(line) for line in (folder / "expected.jsonl").read_text(encoding="utf-8").splitlines()]
    wrong = {case["file"]: found for case in cases if (found := list(problems(folder, case)))}
    for name, found in wrong.items():
        print(f"{name}: {'; '.join(found)}")
    print(f"{len(cases) - len(wrong)} of {len(cases)} files are read right.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
