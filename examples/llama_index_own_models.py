"""Your own LlamaIndex models under a recipe: any `BaseEmbedding` embeds, any `LLM` extracts and summarizes.

Here both are small stand-ins, so that the example runs offline; put `OpenAIEmbedding()`, `HuggingFaceEmbedding(...)`,
`OpenAI(...)`, `Ollama(...)` in their places. Caches, rate limits and callbacks of your models keep working.
"""

from llama_index.core import Document, Settings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.llms import MockLLM

from llama_index_sire import SireRetriever
from sire_core.data import demo_documents


class LetterEmbedding(BaseEmbedding):
    """Counts letters."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


documents = [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
calls = LlamaDebugHandler(print_trace_on_end=False)

Settings.embed_model = LetterEmbedding(model_name="letters")  # used where no embed_model is passed
llm = MockLLM(max_tokens=12, callback_manager=CallbackManager([calls]))  # never used without being passed: calls cost

retriever = SireRetriever.from_documents(documents, recipe="raptor", llm=llm, similarity_top_k=3)
stats = retriever.index.stats()
print("embedder:", stats["embedder"], "| language model:", stats["language_model"])
print(stats["kinds"]["sim_summary"], "summaries;", len(calls.get_event_pairs("llm")), "LLM events in the user's trace")
for found in retriever.retrieve("Who built the lighthouse?"):
    print(f"{found.score:.3f}  {found.metadata['sire_kind']:11}  {found.text[:60]!r}")
