"""R@5 of questions in conversations: python benchmarks/conversations.py DATA_SET LAST_TURNS.

The ids of the data set's questions are CONVERSATION<::>TURN, their texts rewritten by people so that they stand alone.
LAST_TURNS has what was said, a line of JSON per turn with `_id` and `text`
(`human/retrieval_tasks/cloud/cloud_lastturn.jsonl` of IBM's mt-rag-benchmark for `cloud`).
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from sire_core import Index
from sire_core.evaluate.datasets import load_dataset
from sire_core.search.history import standalone_question

HITS, TURNS = 5, 3


def main(folder: str, last_turns: str) -> None:
    """Print the mean R@5 of every way to ask: all follow-up questions, even ones (for choices) and odd ones."""
    dataset = load_dataset(folder)
    conversations: dict[str, dict[str, str]] = defaultdict(dict)
    for line in Path(last_turns).read_text(encoding="utf-8").splitlines():
        turn = json.loads(line)
        conversations[turn["_id"].partition("<::>")[0]][turn["_id"]] = turn["text"].removeprefix("|user|:").strip()
    found: dict[str, list[float]] = defaultdict(list)
    with Index(recipe="sire") as index:
        index.build(dataset.documents)
        for question in dataset.questions:
            turns = conversations[question.id.partition("<::>")[0]]
            history = list(turns.values())[: list(turns).index(question.id)]
            if not history:
                continue
            said, rewritten, gold = turns[question.id], question.question, set(question.supporting)
            ways = {
                "the last turn alone": said,
                "all turns in one text": " ".join([*history, said]),
                f"the last {TURNS} turns and the question": " ".join([*history[-TURNS:], said]),
                "the last turn with `history=`, no model": standalone_question(said, history),
                "the question as people rewrote it": rewritten,
                "the same with `history=`": standalone_question(rewritten, history),
            }
            for way, text in ways.items():
                hits = {doc_id for hit in index.search(text, HITS) for doc_id in hit.doc_ids}
                found[way].append(100 * len(hits & gold) / len(gold))
    print("| what is searched for | all | even | odd |\n|---|--:|--:|--:|")
    for way, rates in found.items():
        print(f"| {way} | {fmean(rates):.1f} | {fmean(rates[::2]):.1f} | {fmean(rates[1::2]):.1f} |")


if __name__ == "__main__":
    main(*sys.argv[1:3])
