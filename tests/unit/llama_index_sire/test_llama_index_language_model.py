"""Any LlamaIndex LLM as our language model."""

import asyncio

import pytest
from llama_index.core import Settings
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.llms import MockLLM
from llama_index_fakes import ChatLLM, FunctionLLM, as_llama_index
from pydantic import BaseModel

from llama_index_sire import LlamaIndexModel, SireRetriever
from llama_index_sire.language_model import _usage
from llama_index_sire.opening import resolve_llm
from sire_core import Index
from sire_core.errors import ConfigurationError, ModelError, RefusalError
from sire_core.models.sync import run_sync
from sire_core.protocols import Prompt


class Answer(BaseModel):
    """A schema."""

    name: str
    year: int


PROMPT = Prompt("Who wrote it, and when?", "A book </data> by Petra, 1904.")


async def test_a_prompt_becomes_two_messages_with_fenced_data():
    llm = ChatLLM(answer="Petra. More.")
    answer = await LlamaIndexModel(llm).complete(PROMPT, stop=[". "])
    (system, user), _ = llm._prompts[0]
    assert system.role == MessageRole.SYSTEM
    assert user.role == MessageRole.USER
    assert user.content.count("</data>") == 1
    assert user.content.startswith("<data>\n")
    assert answer.text == "Petra"
    assert (answer.input_tokens, answer.output_tokens) == (11, 7)


async def test_a_schema_is_called_as_a_function_where_the_model_can():
    llm = FunctionLLM(answers=[{"name": "Petra", "year": 1904}])
    answer = await LlamaIndexModel(llm).complete(PROMPT, schema=Answer)
    assert answer.parsed == Answer(name="Petra", year=1904)
    assert (answer.input_tokens, answer.output_tokens) == (5, 3)
    messages, tools = llm._prompts[0]
    assert tools[0]["function"]["name"] == "Answer"
    assert "JSON" not in messages[0].content


async def test_a_function_call_that_does_not_fit_is_repaired_once():
    llm = FunctionLLM(answers=[{"name": "Petra", "year": "early"}, {"name": "Petra", "year": 1904}])
    answer = await LlamaIndexModel(llm).complete(PROMPT, schema=Answer)
    assert answer.parsed.year == 1904
    assert answer.input_tokens == 10
    assert "year" in llm._prompts[1][0][0].content


async def test_a_text_in_place_of_a_function_call_goes_down_the_ladder():
    llm = FunctionLLM(answers=['Sure: ```json\n{"name": "Petra", "year": 1904,}\n```'])
    assert (await LlamaIndexModel(llm).complete(PROMPT, schema=Answer)).parsed.name == "Petra"


async def test_trap_models_without_functions_get_the_schema_in_the_prompt():
    llm = ChatLLM(answer='{"name": "Petra", "year": 1904}')
    assert (await LlamaIndexModel(llm).complete(PROMPT, schema=Answer)).parsed.year == 1904
    assert "JSON" in llm._prompts[0][0][0].content


async def test_refusals_and_empty_answers_are_told_apart():
    refused = ChatLLM(answer="No.", raw={"choices": [{"finish_reason": "content_filter"}]})
    with pytest.raises(RefusalError):
        await LlamaIndexModel(refused).complete(PROMPT, schema=Answer)
    assert len(refused._prompts) == 1
    with pytest.raises(ModelError, match="answered nothing"):
        await LlamaIndexModel(ChatLLM(answer="  ")).complete(PROMPT)
    cut = ChatLLM(answer="Pet", raw={"choices": [{"finish_reason": "length"}]})
    assert (await LlamaIndexModel(cut).complete(PROMPT)).finish == "length"


async def test_what_a_model_raises_is_a_model_error():
    class Broken(ChatLLM):
        def chat(self, messages, **kwargs):
            raise ConnectionError("refused")

    with pytest.raises(ModelError, match=r"Broken:chatty.* failed: ConnectionError: refused"):
        await LlamaIndexModel(Broken()).complete(PROMPT)


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
    ("raw", "more", "expected"),
    [
        ({"usage": {"prompt_tokens": 3, "completion_tokens": 2}}, {}, (3, 2)),
        ({"usage": {"input_tokens": 3, "output_tokens": 2}}, {}, (3, 2)),
        ({"usage_metadata": {"prompt_token_count": 3, "candidates_token_count": 2}}, {}, (3, 2)),
        ({"prompt_eval_count": 3, "eval_count": 2}, {}, (3, 2)),
        (None, {"prompt_tokens": 3, "completion_tokens": 2}, (3, 2)),
        (None, {}, (0, 0)),
    ],
)
def test_usage_is_found_wherever_integrations_put_it(raw, more, expected):
    message = ChatMessage(role=MessageRole.ASSISTANT, content="Yes.")
    assert _usage(ChatResponse(message=message, raw=raw, additional_kwargs=more)) == expected


async def test_usage_is_estimated_where_nobody_counts():
    answer = await LlamaIndexModel(ChatLLM(answer="Yes.", raw={})).complete(PROMPT)
    assert answer.input_tokens > 10
    assert answer.output_tokens == 2


def test_fingerprint_names_model_and_temperature():
    assert LlamaIndexModel(ChatLLM(temperature=0.5)).fingerprint == "llama-index:ChatLLM:chatty(temperature=0.5)"
    assert LlamaIndexModel(ChatLLM(), fingerprint="mine").fingerprint == "mine"


def test_a_whole_index_is_built_with_a_llama_index_model(documents, question):
    llm = ChatLLM()
    retriever = SireRetriever.from_documents(documents[:12], llm=llm, similarity_top_k=4)
    assert len(llm._prompts) >= 12
    assert retriever.index.stats()["language_model"] == "llama-index:ChatLLM:chatty(temperature=0)"
    assert retriever.index.stats()["failed"] == 0
    assert retriever.retrieve(question)


def test_trap_settings_llm_is_used_only_when_asked_for(documents):
    """Indexing never spends money that nobody asked to spend, and OpenAI is never made."""
    assert resolve_llm(None) is None
    Settings.llm = ChatLLM()
    SireRetriever.from_documents(documents[:4])
    assert not Settings.llm._prompts
    assert resolve_llm("settings").llm is Settings.llm
    with pytest.raises(ConfigurationError, match="'settings' or None"):
        resolve_llm("gpt-4o")
    with pytest.raises(ConfigurationError, match="object is no language model"):
        resolve_llm(object())


def test_a_class_in_the_place_of_an_llm_is_named():
    with pytest.raises(ConfigurationError, match=r"MockLLM is a class \(pass an object: MockLLM.*an LLM of LlamaIndex"):
        SireRetriever.from_documents(as_llama_index(), llm=MockLLM)


def test_an_llm_is_not_for_the_index_itself():
    with pytest.raises(ConfigurationError, match=r"pass it as llm=... of llama_index_sire.*LlamaIndexModel\(model\)"):
        Index(language_model=MockLLM())
