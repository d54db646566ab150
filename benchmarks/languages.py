"""Which passage comes first, in eight languages: `sire`, and BM25 with the language's stems (R@1 / R@2 / MRR@10).

Sets are folders of `SIRE_DATA/languages`. BM25 here shares no code with the package: words of letters and digits,
Snowball's stems where there are any, pairs of characters where words are written without spaces.

`--refused` indexes the paragraphs of every other article (five in a row are one), and asks every fourth question: how
many that these answer are refused or warned about, and how many about the other articles.

    python benchmarks/languages.py [--recipe NAME] [--questions N] [--refused] [LANGUAGE ...]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sire_core import Document, Index
from sire_core.search.unanswered import judge_hits
from sire_core.text.languages import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

DATA = Path(os.environ.get("SIRE_DATA", "../shared/data")) / "languages"
_NAMES = "ar:arabic de:german en:english es:spanish fr:french it:italian ru:russian tr:turkish"
STEMMERS = dict(pair.split(":") for pair in _NAMES.split())
UNSPACED = re.compile("([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+|[\u3040-\u30ff\u3400-\u9fff]+)")
K1, B = 1.5, 0.75
RANKS = 10
ARTICLE = 5  # Paragraphs of each article of XQuAD


def tokenizer(language: str, function_words: Collection[str] = ()) -> Callable[[str], list[str]]:
    """What cuts a text of a language into the terms of BM25, without some words."""
    import Stemmer

    stemmer = Stemmer.Stemmer(STEMMERS[language]) if language in STEMMERS else None

    def terms(text: str) -> list[str]:
        words = re.findall(r"[\w\u0300-\u036f\u0e31-\u0e4e]+", unicodedata.normalize("NFKC", text).lower())
        parts = [part for word in words for part in UNSPACED.split(word) if part and part not in function_words]
        spaced = [part for part in parts if not UNSPACED.fullmatch(part)]
        pairs = [p[i : i + 2] for p in parts if UNSPACED.fullmatch(p) for i in range(max(1, len(p) - 1))]
        return (stemmer.stemWords(spaced) if stemmer else spaced) + pairs

    return terms


def bm25(passages: Sequence[str], questions: Sequence[str], terms: Callable[[str], list[str]]) -> list[list[int]]:
    """Positions of the best passages of every question."""
    counts = [Counter(terms(passage)) for passage in passages]
    lengths = [sum(count.values()) for count in counts]
    mean = sum(lengths) / len(lengths)
    holders: dict[str, list[int]] = defaultdict(list)
    for position, count in enumerate(counts):
        for term in count:
            holders[term].append(position)
    ranked = []
    for question in questions:
        scores: Counter[int] = Counter()
        for term in set(terms(question)):
            had = holders.get(term, [])
            idf = math.log1p((len(passages) - len(had) + 0.5) / (len(had) + 0.5))
            for position in had:
                often = counts[position][term]
                scores[position] += idf * often / (often + K1 * (1 - B + B * lengths[position] / mean))
        ranked.append(sorted(scores, key=lambda position: (-scores[position], position))[:RANKS])
    return ranked


def measures(ranked: Sequence[Sequence[Any]], gold: Sequence[Any]) -> tuple[float, float, float]:
    """R@1, R@2 and MRR@10, 0..100."""
    places = [list(row).index(want) + 1 if want in row else 0 for row, want in zip(ranked, gold, strict=True)]
    shares = ([0 < place <= k for place in places] for k in (1, 2))
    first, second = (100.0 * sum(share) / len(places) for share in shares)
    return first, second, 100.0 * sum(1 / place for place in places if place) / len(places)


def lines(path: Path) -> list[dict[str, Any]]:
    """Read the objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def refusals(language: str) -> list[float]:
    """Percentages of answerable questions refused and warned about, and of questions about other articles."""
    corpus, questions = (lines(DATA / language / f"{name}.jsonl") for name in ("corpus", "questions"))
    indexed = {row["id"] for number, row in enumerate(corpus) if number // ARTICLE % 2 == 0}
    values = []
    with Index(chunker=None) as index:
        index.build([Document(row["id"], row["text"], title=row["title"]) for row in corpus if row["id"] in indexed])
        for is_there in (True, False):
            texts = [row["question"] for row in questions if (row["supporting"][0] in indexed) == is_there][::4]
            judged = [judge_hits(*pair) for pair in zip(texts, index.search_many(texts, RANKS), strict=True)]
            values.append(100 * fmean(not one.is_answered for one in judged))
            values.append(100 * fmean(bool(one.note) for one in judged))
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("languages", nargs="*")
    parser.add_argument("--recipe", default="sire")
    parser.add_argument("--questions", type=int, default=None, help="only the first so many")
    parser.add_argument("--refused", action="store_true", help="refusals and warnings instead of ranks")
    options = parser.parse_args()
    if options.refused:
        print("| language | refused | warned about | others refused | others warned about |\n|---|--:|--:|--:|--:|")
        for language in options.languages or sorted(folder.name for folder in DATA.iterdir() if folder.is_dir()):
            cells = (f"{value:.1f}" for value in refusals(language))
            print(f"| {LANGUAGES[language].title()} | {' | '.join(cells)} |", flush=True)
        return
    print(f"| language | BM25 with stems | `{options.recipe}` | R@1 against BM25 |\n|---|---|---|--:|")
    firsts = []
    for language in options.languages or sorted(folder.name for folder in DATA.iterdir() if folder.is_dir()):
        corpus, questions = (lines(DATA / language / f"{name}.jsonl") for name in ("corpus", "questions"))
        questions = questions[: options.questions]
        asked, gold = [q["question"] for q in questions], [q["supporting"][0] for q in questions]
        by_words = bm25([p["text"] for p in corpus], asked, tokenizer(language))
        baseline = measures([[corpus[position]["id"] for position in row] for row in by_words], gold)
        with Index(recipe=options.recipe, chunker=None) as index:
            index.build([Document(p["id"], p["text"], title=p["title"]) for p in corpus])
            hits = [[hit.doc_ids[0] for hit in index.search(question, RANKS)] for question in asked]
        own = measures(hits, gold)
        cells = (" / ".join(f"{value:.1f}" for value in row) for row in (baseline, own))
        print(f"| {LANGUAGES[language].title()} | {' | '.join(cells)} | {own[0] - baseline[0]:+.1f} |", flush=True)
        firsts.append((baseline[0], own[0]))
    before, after = (sum(values) / len(firsts) for values in zip(*firsts, strict=True))
    print(f"| mean of R@1 | {before:.1f} | {after:.1f} | {after - before:+.1f} |")


if __name__ == "__main__":
    main()
