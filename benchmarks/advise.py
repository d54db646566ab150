"""How good the advice of `sire advise` is: the recipe that it recommends beside the best one, on people's questions.

    python benchmarks/advise.py [--data DIR] [--sets NAME...] [--passages 1000] [--json FILE]

Of every set a part: passages that some of its questions of the part `odd` need, and as many others by chance. `advise`
sees the passages alone; then every recipe that it may recommend is built from them and asked the set's own questions.
R@5 is of the passages that a search returns. Each set that has titles is taken with them and without.

Nothing of a set may have told `advise` which recipe it prefers when several find as much, so each set is left out in
turn: the order of preference is that of the recipes' mean R@5 on all the other sets. Weights of `sire` were learned on
even-numbered questions. `--json` keeps what was measured: the same command goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sire_core import Index
from sire_core.evaluate.advise import CANDIDATES, Measure, advise, recommend
from sire_core.evaluate.datasets import DataSet, load_dataset
from sire_core.evaluate.runner import EvalConfig, evaluate
from sire_core.models.sync import run_sync
from sire_core.recipes import recipe_by_name

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SIRE_DATA", ROOT.parent / "shared" / "data"))
SETS = ("2wikimultihopqa", "hotpotqa", "musique", "musique-more", "cloud")
POINTS = 2.0  # Within so many points of the best recipe advice is good
_CONFIG = EvalConfig(ks=(5,), budget=None, returns="passages")

Row = dict[str, Any]


def part(dataset: DataSet, passages: int, seed: int = 0) -> DataSet:
    """Passages that some questions of the part `odd` need, filled up by chance; a small set stays whole."""
    asked = dataset.part("odd")
    if len(dataset.documents) <= passages:
        return asked
    rng = np.random.default_rng(seed)
    kept: set[str] = set()
    questions = []
    for place in rng.permutation(len(asked.questions)):
        question = asked.questions[place]
        if question.supporting and len(kept.union(question.supporting)) <= passages / 2:
            kept.update(question.supporting)
            questions.append(question)
    others = [document.id for document in dataset.documents if document.id not in kept]
    kept.update(others[place] for place in rng.permutation(len(others))[: passages - len(kept)])
    documents = tuple(document for document in dataset.documents if document.id in kept)
    return replace(asked, documents=documents, questions=tuple(questions))


def measured(dataset: DataSet, embedder: str, n: int) -> Row:
    """What is advised for the passages of a set, and what every recipe finds of its own questions."""
    advice = advise(dataset.documents, embedder=embedder, passages=len(dataset.documents), n=n)
    found = {}
    with tempfile.TemporaryDirectory(prefix="sire-advise-") as folder:
        for candidate in CANDIDATES:
            recipe = recipe_by_name(candidate.recipe, **dict(candidate.settings))
            with Index(folder, recipe=recipe, embedder=embedder) as index:
                index.build(dataset.documents)
                row = run_sync(evaluate(index, dataset, _CONFIG))
                found[candidate.name] = round(row.recall_passages(5) or 0.0, 2)
    return {
        "passages": len(dataset.documents),
        "questions": len([question for question in dataset.questions if question.supporting]),
        "linked": round(advice.look.linked, 3),
        "advised": advice.recommended.name,
        "found": found,
        # How many of the two passages of each question that `advise` made: 0, 1 or 2.
        "own": {m.candidate.name: "".join(str(round(2 * share)) for share in m.shares) for m in advice.measures},
    }


def left_out(key: str, rows: Mapping[str, Row]) -> str:
    """What is advised when the order of preference is that of the other sets; a set is left out with all its texts."""
    others = [row["found"] for name, row in rows.items() if name.split(",")[0] != key.split(",", maxsplit=1)[0]]
    if not others or not rows[key]["own"]:  # too few questions could be made: the default is advised
        return str(rows[key]["advised"])
    order = sorted(CANDIDATES, key=lambda c: -float(np.mean([found[c.name] for found in others])))
    measures = []
    for candidate in order:
        shares = tuple(int(digit) / 2 for digit in rows[key]["own"][candidate.name])
        recall, both = 100 * float(np.mean(shares)), 100 * float(np.mean(np.equal(shares, 1)))
        measures.append(Measure(candidate, recall, both, units=0, build_s=0.0, query_ms=0.0, shares=shares))
    return recommend(measures).candidate.name


def table(rows: Mapping[str, Row]) -> str:
    """Markdown, with what is advised as it is and with each set left out."""
    columns = ["set", "questions", "passages that name another's subject", "advised", "it finds"]
    columns += ["advised, the set left out", "it finds", "best", "it finds", "hybrid search"]
    lines = [f"| {' | '.join(columns)} |", "|---|--:|--:|---|--:|---|--:|---|--:|--:|"]
    for key, row in rows.items():
        found, out = row["found"], left_out(key, rows)
        best = max(found, key=lambda name: found[name])
        cells = [key, row["questions"], f"{100 * row['linked']:.0f} %"]
        for name in (row["advised"], out, best):
            cells += [f"`{name}`", f"{found[name]:.1f}"]
        lines.append(f"| {' | '.join(map(str, cells))} | {found['flat --set ranker=hybrid']:.1f} |")
    good = sum(max(row["found"].values()) - row["found"][left_out(key, rows)] <= POINTS for key, row in rows.items())
    return "\n".join([*lines, f"\nWithin {POINTS:.0f} points of the best recipe: {good} of {len(rows)}."])


def texts_of(name: str, dataset: DataSet) -> dict[str, DataSet]:
    """A set with its titles and without, by the name of the row."""
    if not any(document.title for document in dataset.documents):
        return {f"{name}, no titles": dataset}
    return {f"{name}, titled": dataset, f"{name}, no titles": dataset.untitled()}


def kept_rows(file: Path | None, options: Mapping[str, Any]) -> dict[str, Row]:
    """Rows of an earlier run with the same options."""
    if file is None or not file.exists():
        return {}
    kept = json.loads(file.read_text(encoding="utf-8"))
    return dict(kept["rows"]) if kept["options"] == dict(options) else {}


def main(words: Sequence[str] | None = None) -> None:
    """Measure what is not measured yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets; default: SIRE_DATA")
    parser.add_argument("--sets", nargs="+", default=list(SETS), metavar="SET")
    parser.add_argument("--passages", type=int, default=1000, help="of each set; half of them are needed by questions")
    parser.add_argument("--own", type=int, default=100, help="how many questions `advise` makes")
    parser.add_argument("--embedder", default="lexical", help="as `sire index --embedder` takes it")
    parser.add_argument("--json", type=Path, help="keep what was measured here")
    given = parser.parse_args(words)
    options = {"passages": given.passages, "own": given.own, "embedder": given.embedder}
    rows = kept_rows(given.json, options)
    for name in given.sets:
        for key, dataset in texts_of(name, load_dataset(given.data / name)).items():
            if key not in rows:
                print(key, file=sys.stderr, flush=True)
                rows[key] = measured(part(dataset, given.passages), given.embedder, given.own)
                if given.json:
                    partial = given.json.with_suffix(".part")
                    partial.write_text(json.dumps({"options": options, "rows": rows}) + "\n", encoding="utf-8")
                    partial.replace(given.json)
    print(table(rows))


if __name__ == "__main__":
    main()
