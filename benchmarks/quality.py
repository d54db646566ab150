"""Retrieval quality of every set without a language model, for `docs/results/`. `make benchmark-quality` runs it.

    python benchmarks/quality.py                                  # everything: some hours on two cores
    python benchmarks/quality.py --sets musique --recipes sire    # a part

Sets are those of SIRE_DATA, each with titles, without, and with titles as the first line of the text; `firms/md` has a
folder of documents in each format. The part `odd` of the questions is asked: weights were learned on `even`; the part
`test` is for `release.py`. Stars are corrected for all differences of the table (Holm). Each row is a JSON file of the
work folder, so that a run that was interrupted goes on; a row that was made with other options or by other code is
made again. A second run prints the same table, times aside.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.atomic_files import replacing
from sire_core.evaluate import DataSet, Experiment, load_dataset, load_questions
from sire_core.evaluate.bootstrap import SIGNIFICANCE, holm, randomization_p
from sire_core.evaluate.datasets import PARTS
from sire_core.files.readers import read_documents

if TYPE_CHECKING:
    from numpy.typing import NDArray

SETS = ("2wikimultihopqa", "hotpotqa", "musique", "musique-more", "cloud")
RECIPES = ("bm25", "dense", "hybrid", "pagerank", "iier", "sirerag", "sire")
BASELINES = ("bm25", "dense", "hybrid")
HEADS = {"bm25": "BM25", "dense": "vectors"}
VARIANTS = ("titled", "untitled", "titles in text")

Found = dict[tuple[str, str, str], dict[str, Any]]


def load(data: Path, name: str) -> DataSet:
    """A set; of documents in a folder per format the questions stand beside these, and name them without ending."""
    questions = (data / name).parent / "questions.jsonl"
    if "/" not in name or not questions.is_file():
        return load_dataset(data / name)
    read = read_documents(data / name)
    documents = [replace(document, id=str(PurePath(document.id).with_suffix(""))) for document in read.documents]
    return replace(load_questions(questions, documents, name), whole=True)


def variants_of(dataset: DataSet) -> dict[str, DataSet]:
    """The set with its titles in the three places; only as it is where it has none."""
    if dataset.whole or not any(document.title for document in dataset.documents):
        return {"untitled": dataset}
    return {
        "titled": dataset,
        "untitled": dataset.untitled(),
        "titles in text": dataset.with_titles_in_text(),
    }


class Work:
    """Finished rows in a folder, and the vectors that rows under way share."""

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        self.folder = folder
        self._options = dict(options)

    def row(self, *key: str) -> dict[str, Any] | None:
        """A finished row; None when it is missing or was made with other options."""
        try:
            kept = json.loads(self._file(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return kept["row"] if kept["options"] == self._options else None

    def keep(self, row: Mapping[str, Any], *key: str) -> None:
        """Write a finished row, whole or not at all."""
        file = self._file(key)
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as partial:
            partial.write_text(json.dumps({"options": self._options, "row": row}, indent=1), encoding="utf-8")

    def index(self, name: str, variant: str) -> Path:
        """Folder of the indexes of a variant: `flat`, which has the vectors, and a copy of it under way."""
        return self.folder / "index" / _plain(f"{name}.{variant}")

    def _file(self, key: Sequence[str]) -> Path:
        return self.folder / "rows" / f"{_plain('.'.join(key))}.json"


def _plain(name: str) -> str:
    return name.replace(" ", "-")


def measure(options: argparse.Namespace, recipes: Sequence[str], work: Work) -> Found:
    """Every row, from the work folder or made now."""
    found: Found = {}
    for name in options.sets:
        variants = variants_of(load(options.data, name))
        chosen = [variant for variant in variants if variant in options.variants] or list(variants)
        for variant in chosen:
            asked = variants[variant].part(options.questions)
            for recipe in recipes:
                row = work.row(name, variant, recipe)
                if row is None:
                    row = _make(name, variant, recipe, asked, options.embedder, work)
                found[name, variant, recipe] = row
            shutil.rmtree(work.index(name, variant), ignore_errors=True)
    return found


def _make(name: str, variant: str, recipe: str, dataset: DataSet, embedder: str, work: Work) -> dict[str, Any]:
    """Build and ask a recipe; the baselines are asked beside it, for the interval, and kept if they are new."""
    print(f"{dataset.name}: {recipe}", file=sys.stderr, flush=True)
    base = work.index(name, variant)
    place = base / "flat"
    if recipe not in BASELINES:
        if not place.exists():
            _make(name, variant, BASELINES[0], dataset, embedder, work)
        place = base / recipe  # a copy of the vectors: what a recipe costs does not depend on those before it
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(base / "flat", place)
    recipes = [] if recipe in BASELINES else [recipe]
    made = Experiment(dataset, recipes, folder=place, embedder=embedder).run()
    rows = {row.setup.recipe: row.as_json() for row in made}
    for label in (*BASELINES, recipe):
        if work.row(name, variant, label) is None:
            work.keep(rows[label], name, variant, label)
    if place != base / "flat":
        shutil.rmtree(place)
    return rows[recipe]


def show(found: Found, recipes: Sequence[str]) -> None:
    """Markdown: one table of R@5 over everything, then one of all metrics per set and variant."""
    places = list(dict.fromkeys((name, variant) for name, variant, _ in found))
    ordered = [recipe for recipe in RECIPES if recipe in recipes] + [r for r in recipes if r not in RECIPES]
    print("\n### R@5 of passages; in brackets the difference to hybrid search and its 95 % interval\n")
    heads = [HEADS.get(recipe, recipe if recipe in BASELINES else f"`{recipe}`") for recipe in ordered]
    print(f"| set | texts | questions | {' | '.join(heads)} |\n|---|---|--:|{'--:|' * len(heads)}")
    compared = [key for key in found if key[2] != "hybrid"]
    p_values = holm([randomization_p(_differences(found[key], found[key[0], key[1], "hybrid"])) for key in compared])
    sure = {key for key, p in zip(compared, p_values, strict=True) if p < SIGNIFICANCE}
    for name, variant in places:
        cells = [
            _short(found[key], "*" if key in sure else "") for recipe in ordered for key in [(name, variant, recipe)]
        ]
        print(f"| {name} | {variant} | {found[name, variant, 'hybrid']['questions']} | {' | '.join(cells)} |")
    print(f"\n*: more than chance at 5 %, {len(compared)} comparisons (paired randomisation, Holm)")
    for name, variant in places:
        _show_all(name, variant, {recipe: found[name, variant, recipe] for recipe in ordered})


def _differences(row: Mapping[str, Any], other: Mapping[str, Any]) -> NDArray[np.float64]:
    """Differences of R@5 by question."""
    ours, theirs = ({result["id"]: result["recall"]["5"] for result in each["results"]} for each in (row, other))
    return np.array([ours[name] - theirs[name] for name, value in ours.items() if value is not None])


def _short(row: Mapping[str, Any], star: str) -> str:
    interval = row["interval"]
    value = f"{row['recall_passages']['5']:.1f}"
    if interval is None:
        return value
    return f"{value} ({interval['difference']:+.1f} [{interval['low']:.1f}, {interval['high']:.1f}]{star})"


def _show_all(name: str, variant: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
    hops = sorted({hop for row in rows.values() for hop in row["by_hops"] if hop != "0"})
    columns = ["pool", "R@2", "R@5", "R@10", "R@20", "all@5", "nDCG@10", "MRR", "R@5 prov", "R@5 literal", "R@1500"]
    columns += ["answer@1500", *(f"R@5 {hop} hops" for hop in hops), "build s", "p50 ms"]
    print(f"\n### {name}, {variant}\n\n| recipe | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}")
    for recipe, row in rows.items():
        values = [*(row["recall_passages"][k] for k in ("2", "5", "10", "20")), row["all"]["5"], row["ndcg"]["10"]]
        values += [row["mrr"], row["recall"]["5"], row["recall_literal"]["5"], row["recall_at_budget"]]
        values += [row["answer_in_context"], *(row["by_hops"].get(hop) for hop in hops), row["build_s"]]
        cells = ["-" if value is None else f"{value:.1f}" for value in (*values, row["query_p50_ms"])]
        print(f"| {recipe} | {row['pool']:,} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parents[1]
    default = Path(os.environ.get("SIRE_DATA") or root.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default, help="folder of the sets; default: SIRE_DATA")
    parser.add_argument("--sets", nargs="+", default=list(SETS), metavar="SET")
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), metavar="RECIPE")
    parser.add_argument("--questions", default="odd", choices=PARTS)
    parser.add_argument(
        "--variants",
        nargs="+",
        default=list(VARIANTS),
        choices=VARIANTS,
        help="a set that has none of these is measured as it is",
    )
    parser.add_argument("--embedder", default="lexical", help="as `sire index --embedder` takes it")
    parser.add_argument("--work", type=Path, default=root / "build" / "quality", help="where finished rows are kept")
    options = parser.parse_args()
    missing = [name for name in options.sets if not (options.data / name).is_dir()]
    if missing:
        parser.error(f"{options.data} has no {', '.join(missing)}: set SIRE_DATA or --data to the folder of the sets")
    recipes = list(dict.fromkeys((*BASELINES, *options.recipes)))
    commands = (["git", "rev-parse", "HEAD"], ["git", "diff", "HEAD", "--", "core"])
    state = b"".join(subprocess.run(words, cwd=root, capture_output=True, check=False).stdout for words in commands)
    code = hashlib.sha256(state).hexdigest()
    work = Work(options.work, {"embedder": options.embedder, "questions": options.questions, "code": code})
    print(f"    {' '.join(['python benchmarks/quality.py', *sys.argv[1:]])}")
    show(measure(options, recipes, work), recipes)


if __name__ == "__main__":
    main()
