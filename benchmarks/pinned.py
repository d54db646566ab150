"""Everything that a change of structure must not change, as one JSON file.

Builds every recipe over the demo corpus, 300 passages of 2wikimultihopqa and 300 of musique-more, in memory and without
a model. Records unit ids, texts, provenance, edges, ranks, scores, paths and the rows of `sire eval --json`.

    python benchmarks/pinned.py before.json
    python benchmarks/pinned.py after.json --against before.json   # lists what differs; exit code 1 if anything does
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sire_core import Document, Index
from sire_core.data import demo_documents

DATA = Path(os.environ.get("SIRE_DATA", "../shared/data"))
RECIPES = (
    "flat",
    "raptor",
    "sirerag",
    "indexrag",
    "msrag",
    "iier",
    "smart",
    "pagerank",
    "hipporag2",
    "linearrag",
    "sire",
)
SETS = ("2wikimultihopqa", "musique-more")
PASSAGES, QUESTIONS = 300, 12
TIMES = ("build_s", "query_p50_ms", "search_s", "elapsed_s")
DEMO_QUESTIONS = (
    "Who was the mother of the captain who commanded the steamship Northern Wren on her last voyage?",
    "In which year did the author of the novel The Weather Clerk die?",
    "Where was the director of The Salt Lantern born?",
)


def lines(path: Path) -> list[dict[str, Any]]:
    """Read the objects of a JSONL file."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def sample(name: str) -> tuple[list[Document], list[str]]:
    """Return 300 passages of a set, the gold passages of the first questions among them, and these questions."""
    questions = lines(DATA / name / "questions.jsonl")[:QUESTIONS]
    gold = {passage for question in questions for passage in question["supporting"]}
    passages = lines(DATA / name / "corpus.jsonl")
    chosen = [p for p in passages if p["id"] in gold]
    chosen += [p for p in passages if p["id"] not in gold][: PASSAGES - len(chosen)]
    documents = [Document(p["id"], p["text"], title=p["title"]) for p in chosen]
    return documents, [question["question"] for question in questions]


def pin(documents: list[Document], questions: list[str], recipe: str) -> dict[str, Any]:
    """Build and query one recipe; return what must stay."""
    with Index(recipe=recipe, chunker=None) as index:
        index.build(documents)
        view = index.view()
        units = view.units(range(view.size))
        hits = [
            [
                [hit.unit.id, f"{hit.score:.5f}", [[step.step, list(step.ids), step.note] for step in hit.path]]
                for hit in index.search(question, 10, returns=returns)
            ]
            for question in questions
            for returns in ("passages", "units")
        ]
        return {
            "units": digest([repr(unit) for unit in units]),
            "vectors": digest([f"{value:.4f}" for value in view.matrix[:, 0].tolist()]),
            "edges": digest(sorted(repr(edge) for edge in view.edges())),
            "stats": {k: v for k, v in index.stats().items() if k in ("units", "kinds", "documents", "passages")},
            "hits": hits,
        }


def digest(values: list[str]) -> str:
    """Return the number of some texts and a hash of them."""
    return f"{len(values)}:{hashlib.blake2b(chr(10).join(values).encode(), digest_size=12).hexdigest()}"


def evaluate(name: str, documents: list[Document]) -> list[dict[str, Any]]:
    """Return the rows of `sire eval --json` over a sample, without times."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / name
        directory.mkdir()
        texts = [json.dumps({"id": d.id, "title": d.title, "text": d.text}) for d in documents]
        (directory / "corpus.jsonl").write_text("\n".join(texts), encoding="utf-8")
        questions = (DATA / name / "questions.jsonl").read_text(encoding="utf-8").splitlines()[:QUESTIONS]
        (directory / "questions.jsonl").write_text("\n".join(questions), encoding="utf-8")
        recipes = [argument for recipe in RECIPES for argument in ("-r", recipe)]
        out = Path(folder) / "rows.json"
        command = [str(Path(sys.executable).with_name("sire")), "eval", str(directory), *recipes, "--json", str(out)]
        subprocess.run(command, check=True, capture_output=True)
        return [{k: v for k, v in row.items() if k not in TIMES} for row in json.loads(out.read_text("utf-8"))]


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """Return where two results differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted({*before, *after})
        return [d for key in keys for d in differences(before.get(key), after.get(key), f"{path}/{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [d for n, (one, other) in enumerate(pairs) for d in differences(one, other, f"{path}/{n}")]
    return [] if before == after else [f"{path}: {str(before)[:80]} -> {str(after)[:80]}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--against", type=Path)
    arguments = parser.parse_args()
    corpora = {"demo": (list(demo_documents()), list(DEMO_QUESTIONS)), **{name: sample(name) for name in SETS}}
    result: dict[str, Any] = {
        name: {recipe: pin(documents, questions, recipe) for recipe in RECIPES}
        for name, (documents, questions) in corpora.items()
    }
    result["eval"] = {name: evaluate(name, corpora[name][0]) for name in SETS}
    arguments.out.write_text(json.dumps(result, indent=1), encoding="utf-8")
    if arguments.against:
        found = differences(json.loads(arguments.against.read_text("utf-8")), result)
        print("\n".join(found[:40]) or "no difference")
        sys.exit(bool(found))


if __name__ == "__main__":
    main()
