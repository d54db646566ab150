"""R@5 of follow-up questions, alone and with their history: python benchmarks/conversations.py DATA_SET.

The ids of the questions are CONVERSATION<::>TURN, the questions rewritten so that they stand alone. What a person
said is not in the data: names that an earlier turn has are replaced by "it", which gives a follow-up question.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from statistics import fmean

from sire_core import Index
from sire_core.evaluate.datasets import load_dataset
from sire_core.search.history import standalone_question

_NAME = re.compile(r"\w*[A-Z][\w-]*(?: [A-Z0-9][\w.-]*)*")
_HITS, _TURNS = 5, 3


def leaning(question: str, before: str) -> str:
    """The question with "it" in the place of names that were said before; its first letter stays."""
    names = {name for name in _NAME.findall(question[1:]) if len(name) > 1 and name.lower() in before.lower()}
    rest = question[1:]
    for name in sorted(names, key=lambda name: (-len(name), name)):
        rest = re.sub(rf"(?:\b(?:the|an?|my) )?\b{re.escape(name)}\b", "it", rest)
    return question[:1] + rest


def main(folder: str) -> None:
    """Print the mean R@5 of every way to search."""
    dataset = load_dataset(folder)
    conversations = defaultdict(list)
    for question in dataset.questions:
        conversations[question.id.partition("<::>")[0]].append(question)
    found: dict[str, list[float]] = defaultdict(list)
    with Index(recipe="sire") as index:
        index.build(dataset.documents)
        for turns in conversations.values():
            for number, turn in enumerate(turns[1:], 1):
                history = [each.question for each in turns[:number]]
                said = leaning(turn.question, " ".join(history))
                ways = {"rewritten": turn.question, "rewritten, history": standalone_question(turn.question, history)}
                if said != turn.question:
                    ways |= {
                        "of those with a name said before: rewritten": turn.question,
                        "alone": said,
                        "history": standalone_question(said, history),
                        f"last {_TURNS} turns and it": " ".join([*history[-_TURNS:], said]),
                    }
                for way, text in ways.items():
                    hits = {doc_id for hit in index.search(text, _HITS) for doc_id in hit.doc_ids}
                    found[way].append(100 * len(hits & set(turn.supporting)) / len(set(turn.supporting)))
    for way, shares in found.items():
        print(f"{way}: {fmean(shares):.1f} ({len(shares)} questions)")


if __name__ == "__main__":
    main(sys.argv[1])
