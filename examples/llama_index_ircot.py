"""A query engine that searches in several rounds: IRCoT in the place of a `RetrieverQueryEngine`.

Runs offline: the demo corpus, and a script in the place of the LLM. Put `OpenAI("gpt-4o-mini")`, `Ollama(...)` or any
other LLM of LlamaIndex in its place, or leave `llm` out and set `Settings.llm`.
"""

from llama_index.core import Document

from llama_index_sire import IRCoTQueryEngine, SireRetriever
from sire_core.data import demo_documents
from sire_core.reason import ReasoningLimits
from sire_core.testing.scripted_model import ScriptedModel

documents = [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
question = "Where was the director of the film The Salt Lantern born?"
script = ScriptedModel(
    [
        '{"reasoning": "The Salt Lantern was directed by Petra Quillon.", "search": "Where was Petra Quillon born?"}',
        '{"reasoning": "Petra Quillon was born in Varn Harbour.", "search": "DONE"}',
        '{"answer": "Varn Harbour [1]", "citations": [1], "sufficient": true}',
    ]
    * 2
)

retriever = SireRetriever.from_documents(documents, recipe="sirerag", similarity_top_k=5)
# Before: engine = RetrieverQueryEngine.from_args(retriever, llm=...)
engine = IRCoTQueryEngine(retriever, llm=script, limits=ReasoningLimits(max_calls=6, timeout=60))

response = engine.query(question)
print("Answer:", response)
for number, found in enumerate(response.source_nodes, 1):
    print(f"  [{number}] {found.metadata['sire_doc_ids'][:60]}")
print("Stopped because:", response.metadata["stop"])
print("Spent:", response.metadata["usage"])
for step in response.metadata["steps"]:
    print(f"  {step['type']}: {step.get('text') or step.get('query')}")

# Streaming: the response is there at once, its steps arrive while the text is read.
engine.streaming = True
streamed = engine.query(question)
print("Streamed:", "".join(streamed.response_gen), "after", len(streamed.metadata["steps"]), "steps")
