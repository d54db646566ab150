"""Search in several rounds, watch every step, get an answer with citations. Offline: a scripted server plays the model.

python examples/reasoning.py
"""

import json

from sire_core import Index
from sire_core.data import demo_documents
from sire_core.models.openai.client import OpenAIChat
from sire_core.reason import Answer, AnswerPiece, ReasoningLimits, Retrieved, SubQuestion, Thought, iterate_sync, reason
from sire_core.testing.scripted_server import ScriptedServer
from sire_core.testing.scripts import ScriptedCall

QUESTION = "Where was the director of the film The Salt Lantern born?"


def play(call: ScriptedCall) -> str:
    """What a real model would answer here: one thought, one more search, then the answer."""
    passages = {passage["title"]: passage["number"] for passage in call.fields["passages"]}
    if "citations" in call.instructions:
        cited = [passages[title] for title in ("The Salt Lantern", "Petra Quillon") if title in passages]
        known = "Petra Quillon" in passages
        text = "Varn Harbour" if known else "insufficient evidence"
        return json.dumps({"answer": text, "citations": cited, "sufficient": known})
    if "reasoning" in call.fields:
        return json.dumps({"reasoning": "She was born in Varn Harbour.", "search": "DONE"})
    return json.dumps({"reasoning": "Petra Quillon directed it.", "search": "Where was Petra Quillon born?"})


def show(index: Index, model: OpenAIChat, strategy: str) -> None:
    print(f"\n{strategy}: {QUESTION}")
    limits = ReasoningLimits(max_calls=6, timeout=60)
    # In async code: `async for step in ircot(index, question, model=model, stream=True)`.
    for step in iterate_sync(reason(strategy, index, QUESTION, model=model, k=4, limits=limits, stream=True)):
        if isinstance(step, Thought | SubQuestion):
            print(f"  {type(step).__name__} {step.number}: {step.text}")
        elif isinstance(step, Retrieved):
            print(f"  found {len(step.hits)}, {step.new} of them new; best: {step.hits[0].unit.title}")
        elif isinstance(step, AnswerPiece):
            print(f"  writes: {step.text!r}")
        elif isinstance(step, Answer):
            print(f"  Answer: {step.text} (stopped: {step.stop}; {step.usage.calls} calls)")
            for number in step.citations:
                print(f"    [{number}] {step.hits[number - 1].unit.title}")


def main() -> None:
    with Index(recipe="flat") as index, ScriptedServer(play) as server:
        index.build(demo_documents())
        # With the real service: OpenAIChat("gpt-4o-mini"), the key in OPENAI_API_KEY.
        model = OpenAIChat("scripted", base_url=server.base_url, api_key="none")
        show(index, model, "single")
        show(index, model, "ircot")


if __name__ == "__main__":
    main()
