"""Whether builds cost what `Index.estimate` says: calls and tokens of each recipe that asks a model.

    SIRE_DATA=... python benchmarks/estimates.py [SET ...]

300 passages of a set are built with a model that plays a script and counts. On MuSiQue it extracts what gpt-3.5-turbo
found in the same passages; elsewhere each sentence is a fact of the names in it. Other answers are the first sentences
of what they are made from. Input tokens are those of the messages; some servers count the JSON schema, too, so that
there are two figures.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sire_core import Document, Index
from sire_core.documents.chunker import SentenceChunker, chunk_document
from sire_core.files.readers import read_documents
from sire_core.models.answer_parsing import strict_json_schema
from sire_core.models.prompt_format import render
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import Completion, ModelRequest
from sire_core.testing.doubles import ScriptedCall, ScriptedModel, default_script

RECIPES = ("sirerag", "indexrag", "msrag", "smart", "iier")
PASSAGES = 300


def first_documents(folder: Path) -> list[Document]:
    """Documents of a set with about 300 passages."""
    chunker = SentenceChunker()
    chosen: list[Document] = []
    left = PASSAGES
    source = folder / "docs" if (folder / "docs").exists() else folder / "corpus.jsonl"
    for document in read_documents(source).documents[:: 1 if source.is_file() else 5]:
        left -= len(chunk_document(document, chunker))
        if left < 0:
            break
        chosen.append(document)
    return chosen


def recorded(folder: Path) -> dict[str, Mapping[str, Any]]:
    """What a real model extracted of passages, by their text."""
    file = folder / "extractions.jsonl"
    if not file.exists():
        return {}
    texts = {row["id"]: row["text"] for row in map(json.loads, (folder / "corpus.jsonl").open(encoding="utf-8"))}
    return {texts[row["id"]]: row for row in map(json.loads, file.open(encoding="utf-8"))}


def answer_of(row: Mapping[str, Any]) -> str:
    """A recorded extraction in our form: a fact for each triple."""
    triples = [[str(part) for part in triple] for triple in row["triples"] if len(triple) == 3]
    names = dict.fromkeys([*map(str, row["entities"]), *(end for head, _, tail in triples for end in (head, tail))])
    ids = {name: f"n{number}" for number, name in enumerate(names, 1)}
    facts = [
        {
            "text": f"{head} {relation} {tail}.",
            "entities": [ids[head], ids[tail]],
            "triples": [{"h": head, "p": relation, "t": tail, "strength": 5}],
        }
        for head, relation, tail in triples
    ]
    entities = [{"id": number, "name": name, "type": "Thing"} for name, number in ids.items()]
    record = {"entities": entities, "facts": facts, "keywords": list(names)[:5], "topic": "", "abstractiveness": "low"}
    return json.dumps(record, ensure_ascii=False)


def script_of(records: Mapping[str, Mapping[str, Any]]) -> Any:
    """A script that knows what was recorded."""

    def script(call: ScriptedCall) -> str:
        row = records.get(str(call.fields.get("passage")))
        asks_record = call.schema is not None and "facts" in call.schema.get("properties", {})
        return answer_of(row) if row and asks_record else default_script(call)

    return script


class CountingModel(ScriptedModel):
    """Counts the tokens of its messages as `estimate_tokens` does, and those of the schemas apart."""

    schema_tokens = 0

    async def send(self, request: ModelRequest) -> Completion:
        """See `ScriptedModel`."""
        messages = render(request.prompt)
        schema: Any = request.schema
        if schema is not None:
            self.schema_tokens += estimate_tokens(json.dumps(strict_json_schema(schema), separators=(",", ":")))
        read = estimate_tokens(messages.system) + estimate_tokens(messages.user)
        return replace(await super().send(request), input_tokens=read)


def compared(name: str, recipe: str, documents: Sequence[Document], script: Any) -> str:
    """A row: what was expected (median, range), what a build took, for calls, input and output tokens."""
    model = CountingModel(script)
    cells = [name, recipe]
    with Index(recipe=recipe, language_model=model) as index:
        expected = index.estimate(documents).total
        assert not model.log
        usage = index.build(documents).usage
        read = sum(stage.input_tokens for stage in usage.values())
        took = {
            "calls": [len(model.log)],
            "input_tokens": [read, read + model.schema_tokens],
            "output_tokens": [sum(stage.output_tokens for stage in usage.values())],
        }
    for kind, numbers in took.items():
        low, high = getattr(expected, kind)
        outside = "" if all(low <= number <= high for number in numbers) else " (outside)"
        counted = " or ".join(f"{number:,}" for number in dict.fromkeys(numbers))
        cells.append(f"{counted} of {expected.median()[kind]:,} ({low:,} to {high:,}){outside}")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print a table."""
    print("| set | recipe | calls | input tokens | output tokens |\n|---|---|--:|--:|--:|")
    for name in sys.argv[1:] or ("ops", "musique"):
        folder = Path(os.environ["SIRE_DATA"], name)
        documents, script = first_documents(folder), script_of(recorded(folder))
        for recipe in RECIPES:
            print(compared(name, recipe, documents, script), flush=True)


if __name__ == "__main__":
    main()
