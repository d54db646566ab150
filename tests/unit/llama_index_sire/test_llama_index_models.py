"""Models of LlamaIndex as ours."""

import asyncio

import numpy as np
import pytest
from llama_index.core import MockEmbedding, Settings
from llama_index.core.schema import Document as LlamaDocument
from llama_index.core.schema import QueryBundle
from pydantic import BaseModel

from llama_index_sire import LlamaIndexEmbedder, LlamaIndexModel, SireRetriever
from llama_index_sire.embedding import known_query
from sire_core.errors import ConfigurationError, ModelError, RefusalError
from sire_core.models.sync import run_sync
from sire_core.protocols import Prompt
from support.llama_index_models import ChatLLM, FunctionLLM, WordEmbedding


async def test_texts_in_place_of_the_question_are_averaged():
    """HyDE puts hypothetical answers into `custom_embedding_strs`."""
    embedder = LlamaIndexEmbedder(WordEmbedding())
    with known_query(QueryBundle("one", custom_embedding_strs=["a b", "c"])):
        found = await embedder.embed(["one"], "query")
    assert np.allclose(found[0], (await embedder.embed(["a b", "c"], "query")).mean(axis=0))


def test_fingerprints_name_what_changes_vectors():
    named = MockEmbedding(embed_dim=8, model_name="mock")
    assert LlamaIndexEmbedder(named).fingerprint == "llama-index:MockEmbedding:mock(embed_dim=8)"
    one, other = WordEmbedding(model_name="a"), WordEmbedding(model_name="a", embed_batch_size=3)
    assert LlamaIndexEmbedder(one).fingerprint == LlamaIndexEmbedder(other).fingerprint
    assert LlamaIndexEmbedder(one, fingerprint="mine").fingerprint == "mine"
    assert LlamaIndexEmbedder(MockEmbedding(embed_dim=8)).dimension == 8


def test_mock_embedding_passes_with_a_warning_and_another_model_of_one_vector_does_not(caplog):
    """Users' own tests take `MockEmbedding`, which gives every text one vector; a broken server does the same."""
    towns = "Oslo Riga Turin Gent Cork Bonn Lviv Brno Graz Nice Bari Faro".split()
    given = [LlamaDocument(text=f"The lighthouse of {town} stands on a cliff.", doc_id=town) for town in towns]
    retriever = SireRetriever.from_documents(given, embed_model=MockEmbedding(8), recipe="sire")
    assert retriever.retrieve("Where does the lighthouse of Lviv stand?")[0].node.ref_doc_id == "Lviv"
    assert [record.message[:13] for record in caplog.records].count("MockEmbedding") == 1

    class Broken(WordEmbedding):
        def _get_text_embedding(self, text):
            return [0.1] * 8

        _get_query_embedding = _get_text_embedding

    with pytest.raises(ModelError, match="same vector for 12 different texts"):
        SireRetriever.from_documents(given, embed_model=Broken())


def test_trap_settings_are_resolved_late_and_openai_is_never_made(documents):
    """`Settings.embed_model` and `Settings.llm` with nothing set try to import OpenAI's integrations."""

    def embedder(**options):
        made = SireRetriever.from_documents(documents[:2], recipe="flat", **options)
        return made.index.stats()["embedder"]

    assert embedder().startswith("lexical")
    assert Settings._embed_model is Settings._llm is None
    Settings.embed_model = WordEmbedding(model_name="global")
    assert embedder() == LlamaIndexEmbedder(Settings.embed_model).fingerprint
    assert embedder(embed_model="lexical").startswith("lexical")


class Answer(BaseModel):
    """A schema."""

    name: str
    year: int


PROMPT = Prompt("Who wrote it, and when?", "A book </data> by Petra, 1904.")


async def test_refusals_and_empty_answers_are_told_apart():
    refused = ChatLLM(answer="No.", raw={"choices": [{"finish_reason": "content_filter"}]})
    with pytest.raises(RefusalError):
        await LlamaIndexModel(refused).complete(PROMPT, schema=Answer)
    assert len(refused._prompts) == 1
    with pytest.raises(ModelError, match="answered nothing"):
        await LlamaIndexModel(ChatLLM(answer="  ")).complete(PROMPT)
    cut = ChatLLM(answer="Pet", raw={"choices": [{"finish_reason": "length"}]})
    assert (await LlamaIndexModel(cut).complete(PROMPT)).finish == "length"


async def test_the_answer_limit_is_passed_where_the_model_knows_it():
    class Limited(ChatLLM):
        max_tokens: int | None = None

    known, unknown = Limited(answer="Yes."), ChatLLM(answer="Yes.")
    await LlamaIndexModel(known).complete(PROMPT, max_tokens=50)
    await LlamaIndexModel(unknown).complete(PROMPT, max_tokens=50)
    assert known._prompts[0][1] == {"max_tokens": 50}
    assert unknown._prompts[0][1] == {}


async def test_async_only_models_work_from_sync_code_too():
    class AsyncOnly(FunctionLLM):
        def chat(self, messages, **kwargs):
            raise NotImplementedError

    model = LlamaIndexModel(AsyncOnly(answers=["Yes.", "Yes."]))
    assert (await model.complete(PROMPT)).text == "Yes."
    assert (await asyncio.to_thread(run_sync, model.complete(PROMPT))).text == "Yes."


@pytest.mark.parametrize(
    "raw",
    [
        {"usage": {"prompt_tokens": 3, "completion_tokens": 2}},
        {"usage": {"input_tokens": 3, "output_tokens": 2}},
        {"usage_metadata": {"prompt_token_count": 3, "candidates_token_count": 2}},
        {"prompt_eval_count": 3, "eval_count": 2},
    ],
)
async def test_usage_is_found_wherever_integrations_put_it(raw):
    done = await LlamaIndexModel(ChatLLM(answer="Yes.", raw=raw)).complete(PROMPT)
    assert (done.input_tokens, done.output_tokens) == (3, 2)


def test_fingerprint_names_model_and_temperature():
    assert LlamaIndexModel(ChatLLM(temperature=0.5)).fingerprint == "llama-index:ChatLLM:chatty(temperature=0.5)"
    assert LlamaIndexModel(ChatLLM(), fingerprint="mine").fingerprint == "mine"


def test_trap_settings_llm_is_used_only_when_asked_for(documents):
    """Indexing never spends money that nobody asked to spend, and OpenAI is never made."""
    Settings.llm = ChatLLM()
    SireRetriever.from_documents(documents[:4])
    assert not Settings.llm._prompts
    SireRetriever.from_documents(documents[:4], llm="settings")
    assert Settings.llm._prompts
    for wrong, words in (("gpt-4o", "'settings' or None"), (object(), "object is no language model")):
        with pytest.raises(ConfigurationError, match=words):
            SireRetriever.from_documents(documents[:4], llm=wrong)
