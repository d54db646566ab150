"""The demo corpus as LangChain documents, and one index per recipe."""

import pytest

from langchain_sire import SireRetriever
from support.langchain_demo import as_langchain


@pytest.fixture
def documents():
    return as_langchain()


@pytest.fixture(scope="session")
def index_of():
    """An in-memory index of the demo corpus by recipe; built once."""
    built = {}

    def index(recipe="sirerag"):
        if recipe not in built:
            built[recipe] = SireRetriever.from_documents(as_langchain(), recipe=recipe).index
        return built[recipe]

    return index
