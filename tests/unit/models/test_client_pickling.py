"""Models that are sent to another process: they work there, count on, and take no key along."""

import pickle

import pytest

from sire_core import Document, Index
from sire_core.errors import ConfigurationError, LimitExceededError
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.openai.embedder import OpenAIEmbedder
from sire_core.models.usage import UsageLimits
from sire_core.protocols import Prompt
from support.scripted_server import ScriptedServer

CORPUS = [Document("film", "The Long Tide was directed by Mira Vale."), Document("port", "Port Amber is a harbor.")]


async def test_an_index_with_a_model_and_an_embedder_works_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with ScriptedServer(lambda call: "0") as server:
        embedder = OpenAIEmbedder("scripted-embedder", base_url=server.base_url)
        model = OpenAIChat("m", base_url=server.base_url, api_key="sk-secret", limits=UsageLimits(max_calls=2))
        with Index(tmp_path / "ix", recipe="flat", language_model=model, embedder=embedder) as index:
            await index.abuild(CORPUS)
            expected = [hit.unit.id for hit in await index.asearch("Who directed it?")]
            await model.complete(Prompt("Say."))
            sent = pickle.dumps((index, embedder))
        assert b"sk-secret" not in sent
        monkeypatch.setenv("OPENAI_API_KEY", "sk-elsewhere")
        again, other = pickle.loads(sent)
        with again:
            assert [hit.unit.id for hit in await again.asearch("Who directed it?")] == expected
            assert (await again.language_model.complete(Prompt("Say."))).text == "0"
            with pytest.raises(LimitExceededError):  # one call was made before it was sent
                await again.language_model.complete(Prompt("Say."))
            await again.language_model.aclose()
            await other.aclose()
        await embedder.aclose()
        await model.aclose()


@pytest.mark.parametrize(
    "given",
    [
        {"api_key": "sk-own"},
        {"base_url": "http://user:sk-own@localhost:1/v1"},
        {"client_options": {"default_headers": {"x-key": "sk-own"}}},
        {"client_options": {"default_query": {"key": "sk-own"}}},
        {"client_options": {"webhook_secret": "sk-own"}},
    ],
)
@pytest.mark.parametrize("kind", [OpenAIChat, OpenAIEmbedder])
def test_a_key_of_its_own_is_not_sent(monkeypatch, kind, given):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="Set OPENAI_API_KEY in both processes"):
        pickle.dumps(kind("m", **{"base_url": "http://localhost:1/v1", **given}))
