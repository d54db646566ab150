"""LangChain's own standard suites: retrievers for every recipe, document indexes, the tool."""

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.integration_tests.indexer import AsyncDocumentIndexTestSuite, DocumentIndexerTestSuite
from langchain_tests.unit_tests import ToolsUnitTests

from langchain_sire import SireRetriever, create_sire_tool, over_vector_store, pool_documents
from sire_core import Index, recipes
from sire_core.data import demo_documents

_INDEXES: dict[str, Index] = {}


def _index(recipe):
    if recipe not in _INDEXES:
        _INDEXES[recipe] = Index(recipe=recipe)
        _INDEXES[recipe].build(demo_documents())
    return _INDEXES[recipe]


def _suite(recipe):
    """The retriever suite for a recipe; `BaseStandardTests` allows no overriding of tests, properties only."""
    properties = {
        "retriever_constructor": property(lambda _: SireRetriever),
        "retriever_constructor_params": property(lambda _: {"index": _index(recipe)}),
        "retriever_query_example": property(lambda _: "Who commanded the Northern Wren?"),
    }
    suite = type(f"TestRetriever_{recipe}", (RetrieversIntegrationTests,), properties)
    return suite if recipe in ("msrag", "sire", "sirerag") else pytest.mark.slow(suite)


for _recipe in sorted(recipes.REGISTRY):
    globals()[f"TestRetriever_{_recipe}"] = _suite(_recipe)


class TestRetrieverOverVectorStore(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self):
        return SireRetriever

    @property
    def retriever_constructor_params(self):
        store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
        index = Index(recipe=over_vector_store("raptor", store))
        index.build(demo_documents())
        store.add_documents(pool_documents(index))
        return {"index": index}

    @property
    def retriever_query_example(self):
        return "Who commanded the Northern Wren?"


class TestDocumentIndexInFolder(DocumentIndexerTestSuite):
    @pytest.fixture
    def index(self, tmp_path):
        index = SireRetriever.open(tmp_path / "index", recipe="flat")
        yield index
        index.index.close()


class TestAsyncDocumentIndex(AsyncDocumentIndexTestSuite):
    @pytest.fixture
    async def index(self):
        return SireRetriever.open()


class _Flushing(SireRetriever):
    """Indexes at once, so that the suite sees what is stored rather than what waits."""

    def upsert(self, items, /, **kwargs):
        response = super().upsert(items, **kwargs)
        self.flush()
        return response

    def delete(self, ids=None, **kwargs):
        response = super().delete(ids, **kwargs)
        self.flush()
        return response


class TestDocumentIndexThatIsFlushed(DocumentIndexerTestSuite):
    @pytest.fixture
    def index(self, tmp_path):
        index = _Flushing.open(tmp_path / "index")
        yield index
        index.index.close()


class TestTool(ToolsUnitTests):
    @property
    def tool_constructor(self):
        return create_sire_tool(_index("flat"))

    @property
    def tool_invoke_params_example(self):
        return {"query": "Who commanded the Northern Wren?", "k": 2, "filter": {"kind": "person"}}


class TestToolOfRetriever(ToolsUnitTests):
    @property
    def tool_constructor(self):
        return create_sire_tool(SireRetriever(index=_index("sirerag")), "atlas", "About the islands.")

    @property
    def tool_invoke_params_example(self):
        return {"query": "Who commanded the Northern Wren?"}


class TestToolWithItsIndex(ToolsIntegrationTests):
    @property
    def tool_constructor(self):
        return create_sire_tool(_index("flat"))

    @property
    def tool_invoke_params_example(self):
        return {"query": "Who commanded the Northern Wren?", "filter": "kind=person"}
