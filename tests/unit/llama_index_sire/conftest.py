"""LlamaIndex's global settings as a fresh process has them, and indexes of the demo corpus."""

import pytest

from llama_index_sire import SireRetriever
from support.llama_index_models import as_llama_index
from support.llama_index_settings import fresh_settings  # noqa: F401 - a fixture


@pytest.fixture
def documents():
    return as_llama_index()


@pytest.fixture(scope="session")
def index_of():
    """An in-memory index of the demo corpus by recipe; built once, not to be changed."""
    built = {}

    def index(recipe="sirerag"):
        if recipe not in built:
            built[recipe] = SireRetriever.from_documents(as_llama_index(), recipe=recipe).index
        return built[recipe]

    return index
