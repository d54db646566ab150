"""The demo corpus as LangChain documents, and one index per recipe."""

import pytest
from langchain_core.documents import Document

from langchain_sire import SireRetriever
from sire_core.data import demo_documents, demo_questions


def as_langchain():
    return [Document(id=d.id, page_content=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]


@pytest.fixture
def documents():
    return as_langchain()


@pytest.fixture(scope="session")
def question():
    return demo_questions()[0].question


@pytest.fixture(scope="session")
def index_of():
    """An in-memory index of the demo corpus by recipe; built once."""
    built = {}

    def index(recipe="sirerag"):
        if recipe not in built:
            built[recipe] = SireRetriever.from_documents(as_langchain(), recipe=recipe).index
        return built[recipe]

    return index
