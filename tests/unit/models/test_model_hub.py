"""Models that are loaded by name: what is on this machine is not looked for elsewhere, what is nowhere fails at once."""

import sys
from types import SimpleNamespace

import pytest

from sire_core.errors import ConfigurationError
from sire_core.models.embedders import resolve_embedder
from sire_core.untrusted_settings import UntrustedText


class NotFoundError(Exception):
    """The hub's answer to a name that it does not know."""


@pytest.fixture
def loaded(monkeypatch):
    """A hub and a library that note what they are asked for; the caller says what they have."""
    asked = []

    class Api:
        def model_info(self, name, timeout):
            assert timeout <= 10
            asked.append(name)
            if hub.away:
                raise OSError("Name or service not known")
            if name not in hub.there:
                raise NotFoundError(name)

    def load(name, device=None, **options):
        hub.loaded.append((name, options))
        raise RuntimeError("far enough")

    hub = SimpleNamespace(there=(), cached=(), away=False, asked=asked, loaded=[])
    known = lambda name, file: f"/cache/{name}/{file}" if name in hub.cached else None  # noqa: E731
    errors = SimpleNamespace(RepositoryNotFoundError=NotFoundError)
    fake = SimpleNamespace(HfApi=Api, try_to_load_from_cache=known, errors=errors)
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=load))
    return hub


@pytest.mark.parametrize(
    ("name", "places"), [("org/typo", ["org/typo"]), ("typo", ["sentence-transformers/typo", "typo"])]
)
async def test_a_name_that_the_hub_does_not_know(loaded, name, places):
    with pytest.raises(ConfigurationError, match=f"The hub has no model {name}, or it is private"):
        await resolve_embedder(f"st:{name}").embed(["x"])
    assert (loaded.asked, loaded.loaded) == (places, [])


async def test_without_network_one_question_is_enough(loaded):
    loaded.away = True
    with pytest.raises(ConfigurationError, match=r"typo is not on this machine, and the hub cannot be asked .*network"):
        await resolve_embedder("st:typo").embed(["x"])
    assert (len(loaded.asked), loaded.loaded) == (1, [])


async def test_what_is_on_this_machine_needs_no_network(loaded):
    loaded.away, loaded.cached = True, ("sentence-transformers/all-MiniLM-L6-v2",)
    with pytest.raises(ConfigurationError, match="far enough"):
        await resolve_embedder("st:all-MiniLM-L6-v2").embed(["x"])
    assert (loaded.asked, loaded.loaded) == ([], [("all-MiniLM-L6-v2", {"local_files_only": True})])


async def test_what_the_hub_knows_is_downloaded(loaded):
    loaded.there = ("org/model",)
    with pytest.raises(ConfigurationError, match="far enough"):
        await resolve_embedder("st:org/model").embed(["x"])
    assert loaded.loaded == [("org/model", {})]


async def test_what_only_an_index_names_is_not_downloaded(loaded):
    loaded.there, loaded.cached = ("org/model", "org/other"), ("org/other",)
    with pytest.raises(ConfigurationError, match=r"not on this machine.*--embedder st:NAME"):
        await resolve_embedder(UntrustedText("st:org/model")).embed(["x"])
    with pytest.raises(ConfigurationError, match="far enough"):
        await resolve_embedder(UntrustedText("st:org/other")).embed(["x"])
    assert (loaded.asked, loaded.loaded) == ([], [("org/other", {"local_files_only": True})])
