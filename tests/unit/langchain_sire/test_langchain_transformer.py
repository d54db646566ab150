"""`SireDocumentTransformer` and `pool_documents`: the flattened pool for any store."""

import json

import pytest
from langchain_core.documents import BaseDocumentTransformer

from langchain_sire import SireDocumentTransformer, pool_documents
from sire_core.errors import ConfigurationError, IndexMissingError
from sire_core.index import Index
from sire_core.types import to_uuid


@pytest.fixture
def documents(documents):
    """A part of the demo corpus is enough here."""
    return documents[:14]


def test_the_pool_is_passages_and_what_was_made_from_them(documents):
    transformer = SireDocumentTransformer("sirerag")
    assert isinstance(transformer, BaseDocumentTransformer)
    pool = transformer.transform_documents(documents)
    kinds = {kind: [d for d in pool if d.metadata["kind"] == kind] for kind in {d.metadata["kind"] for d in pool}}
    assert len(kinds["chunk"]) == len(documents)
    assert {"chunk", "sim_summary", "aggregate"} <= set(kinds)
    assert len({d.id for d in pool}) == len(pool)
    given = {d.id for d in documents}
    for document in pool:
        sources = json.loads(document.metadata["doc_ids"])
        assert sources
        assert set(sources) <= given
        assert document.metadata["doc_id"] == sources[0]
        assert to_uuid(document.metadata["unit_id"]) == document.id
        assert json.loads(document.metadata["chunk_ids"])


def test_kinds_can_be_chosen(documents):
    pool = SireDocumentTransformer("sirerag", kinds=("chunk", "aggregate")).transform_documents(documents)
    assert {d.metadata["kind"] for d in pool} == {"chunk", "aggregate"}
    with pytest.raises(ConfigurationError, match="no kinds summary; the kinds are chunk"):
        SireDocumentTransformer(kinds=["summary"])


async def test_it_can_be_awaited_and_refuses_unknown_arguments(documents):
    transformer = SireDocumentTransformer("flat")
    assert await transformer.atransform_documents(documents) == transformer.transform_documents(documents)
    with pytest.raises(ConfigurationError, match="not chunk_size"):
        transformer.transform_documents(documents, chunk_size=3)
    with pytest.raises(ConfigurationError, match="not chunk_size"):
        await transformer.atransform_documents(documents, chunk_size=3)


def test_an_index_of_the_users_own(documents):
    index = Index(recipe="flat")
    pool = SireDocumentTransformer(index=index).transform_documents(documents)
    assert pool_documents(index) == pool
    with pytest.raises(ConfigurationError, match="not both"):
        SireDocumentTransformer("flat", index=index)
    with pytest.raises(IndexMissingError):
        pool_documents(Index())
