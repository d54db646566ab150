"""A query engine that searches in several rounds: IRCoT in the place of a `RetrieverQueryEngine`.

python examples/llama_index_ircot.py                      the nodes of one search
OPENAI_API_KEY=... python examples/llama_index_ircot.py   a model thinks, searches again, answers (or OPENAI_BASE_URL)
"""

import os

from llama_index.core import Document

from llama_index_sire import IRCoTQueryEngine, SireRetriever
from sire_core.data import demo_documents
from sire_core.models.openai.client import OpenAIChat
from sire_core.reason import ReasoningLimits

QUESTION = "In which year did the author of the novel The Weather Clerk die?"

documents = [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
retriever = SireRetriever.from_documents(documents)  # any retriever of LlamaIndex's can stand here


def think(llm: OpenAIChat) -> None:
    # Before: engine = RetrieverQueryEngine.from_args(retriever, llm=...). Any LLM of LlamaIndex can stand here, too;
    # leave it out to use Settings.llm.
    engine = IRCoTQueryEngine(retriever, llm=llm, limits=ReasoningLimits(max_calls=6, timeout=60))
    response = engine.query(QUESTION)
    for step in response.metadata["steps"]:
        print(f"  {step['type']}: {step.get('text') or step.get('query')}")
    print("Answer:", response)  # with its sources; response.response is the answer alone
    print("Stopped because:", response.metadata["stop"])
    print("Spent:", response.metadata["usage"])

    # Streaming: the response is there at once, its steps arrive while the text is read.
    engine.streaming = True
    streamed = engine.query(QUESTION)
    print("Streamed:", "".join(streamed.response_gen), "after", len(streamed.metadata["steps"]), "steps")


def main() -> None:
    for found in retriever.retrieve(QUESTION):
        print(f"{found.score:.3f} {found.node.ref_doc_id:<16} {found.text[:80]}")
    if "OPENAI_API_KEY" in os.environ:
        think(OpenAIChat(os.environ.get("OPENAI_MODEL", "gpt-4o-mini")))
    else:
        print("Set OPENAI_API_KEY to see a model read them, search for what is missing, and answer.")


if __name__ == "__main__":
    main()
