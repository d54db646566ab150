"""What the tests of chains, retrievers and graphs share: a question of two hops and what a model says to it."""

from langchain_core.callbacks import BaseCallbackHandler

from langchain_sire import SireRetriever
from sire_core.protocols import Prompt, Recipe
from sire_core.recipes import flat

QUESTION = "In which year did the author of the novel The Weather Clerk die?"
FOLLOW_UP = "In which year did Ilse Marrable die?"

IRCOT = (
    f'{{"reasoning": "The Weather Clerk is a novel by Ilse Marrable.", "search": "{FOLLOW_UP}"}}',
    '{"reasoning": "Ilse Marrable died in 1931.", "search": "DONE"}',
    '{"answer": "In 1931", "citations": [1], "sufficient": true}',
)
SELF_ASK = (
    f"Follow up: {FOLLOW_UP}",
    "1931",
    "So the final answer is: 1931",
    '{"answer": "In 1931", "citations": [1], "sufficient": true}',
)


class AsksModel:
    """A ranker that asks the index's model for the question while it searches."""

    async def rank(self, query, n, view, where=None):
        answer = await view.language_model.complete(Prompt("Rewrite the question.", query))
        return await flat().ranker.rank(answer.text, n, view, where)


def asking(llm, texts, k):
    """A retriever whose searches ask `llm`."""
    return SireRetriever.from_texts(texts, recipe=Recipe("flat", "asks", "test", ranker=AsksModel()), llm=llm, k=k)


class Runs(BaseCallbackHandler):
    """Notes the kind, name and parent of every run, in the order in which they begin, and the documents found."""

    def __init__(self):
        self.begun, self.parents, self.ended, self.errors, self.found, self.metadata = [], {}, [], [], [], []

    def _start(self, kind, run_id, parent_run_id, name=""):
        self.begun.append((kind, name, run_id))
        self.parents[run_id] = parent_run_id

    def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, name="", **kwargs):
        self._start("chain", run_id, parent_run_id, name)

    def on_retriever_start(self, serialized, query, *, run_id, parent_run_id=None, metadata=None, **kwargs):
        self._start("search", run_id, parent_run_id, query)
        self.metadata.append(metadata)

    def on_chat_model_start(self, serialized, messages, *, run_id, parent_run_id=None, **kwargs):
        self._start("model", run_id, parent_run_id)

    def on_retriever_end(self, documents, *, run_id, **kwargs):
        self.ended.append(run_id)
        self.found.append(list(documents))

    def on_chain_end(self, outputs, *, run_id, **kwargs):
        self.ended.append(run_id)

    def on_retriever_error(self, error, *, run_id, **kwargs):
        self.errors.append(error)
        self.ended.append(run_id)

    def on_chain_error(self, error, *, run_id, **kwargs):
        self.errors.append(error)
        self.ended.append(run_id)

    @property
    def above_models(self):
        """What the calls of models are part of: the ids of runs."""
        return [self.parents[run_id] for kind, _, run_id in self.begun if kind == "model"]

    @property
    def searches(self):
        return [run_id for kind, _, run_id in self.begun if kind == "search"]

    @property
    def order(self):
        """What began, in order: searches with their question."""
        return [name if kind == "search" else kind for kind, name, _ in self.begun]
