"""Every test here runs over both adapters."""

import pytest

from sire_core.data import demo_documents
from support.adapters import ADAPTERS
from support.llama_index_settings import fresh_settings  # noqa: F401 - a fixture


@pytest.fixture(params=ADAPTERS, ids=lambda adapter: adapter.name)
def adapter(request):
    return request.param


@pytest.fixture
def documents(adapter):
    """The demo corpus, titles in the metadata."""
    return [adapter.document(d.id, d.text, title=d.title, **d.metadata) for d in demo_documents()]


@pytest.fixture(scope="session")
def indexes():
    return {}


@pytest.fixture
def index_of(adapter, documents, indexes):
    """An in-memory index of the demo corpus by recipe; built once, not to be changed."""

    def index(recipe="flat"):
        if (adapter.name, recipe) not in indexes:
            indexes[adapter.name, recipe] = adapter.Retriever.from_documents(documents, recipe=recipe).index
        return indexes[adapter.name, recipe]

    return index
