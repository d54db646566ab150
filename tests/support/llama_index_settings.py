"""LlamaIndex's global settings as a fresh process has them."""

import pytest
from llama_index.core import Settings


@pytest.fixture(autouse=True)
def fresh_settings():
    before = Settings._llm, Settings._embed_model
    Settings._llm = Settings._embed_model = None
    yield
    Settings._llm, Settings._embed_model = before
