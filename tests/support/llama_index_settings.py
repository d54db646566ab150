"""LlamaIndex's global settings as a fresh process has them."""

import importlib.util

import pytest


@pytest.fixture(autouse=True)
def fresh_settings():
    if importlib.util.find_spec("llama_index") is None:  # LangChain's adapter is tested without it, too
        yield
        return
    from llama_index.core import Settings

    before = Settings._llm, Settings._embed_model
    Settings._llm = Settings._embed_model = None
    yield
    Settings._llm, Settings._embed_model = before
