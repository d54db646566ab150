"""Search in several rounds, watch every step, get an answer with citations.

python examples/reasoning.py                      what plain vector search finds, and what a follow-up question adds
OPENAI_API_KEY=... python examples/reasoning.py   a model asks the follow-up and answers (OPENAI_BASE_URL: your server)
"""

import os

from sire_core import Index
from sire_core.data import demo_documents
from sire_core.models.openai.client import OpenAIChat
from sire_core.reason import Answer, AnswerPiece, ReasoningLimits, Retrieved, SubQuestion, Thought, iterate_sync, reason

QUESTION = "Where was the director of the film The Salt Lantern born?"
FOLLOW_UP = "Where was Petra Quillon born?"  # what a reader of the first passages asks next


def by_hand(index: Index) -> None:
    for query in (QUESTION, FOLLOW_UP):
        print(query)
        for number, hit in enumerate(index.search(query, 3), 1):
            print(f"  [{number}] {hit.unit.title}: {hit.unit.text[:70]}")
    print("Set OPENAI_API_KEY to have a model find the follow-up question and answer.")


def show(index: Index, model: OpenAIChat, strategy: str) -> None:
    print(f"\n{strategy}: {QUESTION}")
    limits = ReasoningLimits(max_calls=6, timeout=60)
    # In async code: `async for step in ircot(index, question, model=model, stream=True)`.
    for step in iterate_sync(reason(strategy, index, QUESTION, model=model, k=3, limits=limits, stream=True)):
        if isinstance(step, Thought | SubQuestion):
            print(f"  {type(step).__name__} {step.number}: {step.text}")
        elif isinstance(step, Retrieved):
            print(f"  found {len(step.hits)}, {step.new} of them for the first time; best: {step.hits[0].unit.title}")
        elif isinstance(step, AnswerPiece):
            print(f"  writes: {step.text!r}")
        elif isinstance(step, Answer):
            print(f"  Answer: {step.text} (stopped: {step.stop}; {step.usage.calls} calls)")
            for number in step.citations:
                print(f"    [{number}] {step.hits[number - 1].unit.title}")


def main() -> None:
    with Index(recipe="flat") as index:  # the default recipe finds both passages at once
        index.build(demo_documents())
        by_hand(index)
        if "OPENAI_API_KEY" in os.environ:
            model = OpenAIChat(os.environ.get("OPENAI_MODEL", "gpt-4o-mini"))
            show(index, model, "single")
            show(index, model, "ircot")


if __name__ == "__main__":
    main()
