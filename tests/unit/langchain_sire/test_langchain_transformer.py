"""`SireDocumentTransformer` and `pool_documents`: the flattened pool for any store."""

import json

import pytest
from langchain_core.documents import BaseDocumentTransformer, Document

from langchain_sire import SireDocumentTransformer
from sire_core.errors import ConfigurationError
from sire_core.testing.doubles import HashEmbedder
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


def test_trap_tenants_derived_units_claim_only_what_all_their_passages_share():
    texts = [("a", "Petra Quillon wrote The Salt Lantern."), ("b", "Petra Quillon was born in Varn Harbour.")]
    documents = [Document(id=t, page_content=x, metadata={"tenant": t, "lang": "en"}) for t, x in texts]
    pool = SireDocumentTransformer("sirerag").transform_documents(documents)
    mixed = [d for d in pool if len(json.loads(d.metadata["doc_ids"])) > 1]
    assert mixed
    assert all("tenant" not in d.metadata and d.metadata["lang"] == "en" for d in mixed)
    assert {d.metadata["tenant"] for d in pool if d.metadata["kind"] == "chunk"} == {"a", "b"}


def test_kinds_can_be_chosen(documents):
    pool = SireDocumentTransformer("sirerag", kinds=("chunk", "aggregate")).transform_documents(documents)
    assert {d.metadata["kind"] for d in pool} == {"chunk", "aggregate"}
    with pytest.raises(ConfigurationError, match="no kinds summary; the kinds are chunk"):
        SireDocumentTransformer(kinds=["summary"])


def test_a_second_call_pays_for_the_change_only_and_lists_no_stale_unit(documents, tmp_path):
    embedded = []

    class Counting(HashEmbedder):
        async def embed(self, texts, kind="document"):
            embedded.append(len(texts))
            return await super().embed(texts, kind)

    transformer = SireDocumentTransformer("flat", embedding=Counting(), path=tmp_path / "i")
    first = transformer.transform_documents(documents)
    embedded.clear()
    changed = [*documents[1:], Document(id="new", page_content="A new passage.")]
    second = transformer.transform_documents(changed)
    assert sum(embedded) == 1
    assert {d.id for d in first} - {d.id for d in second} == {first[0].id}
    assert len(second) == len(first)


async def test_it_can_be_awaited_and_refuses_unknown_arguments(documents):
    transformer = SireDocumentTransformer("flat")
    assert await transformer.atransform_documents(documents) == transformer.transform_documents(documents)
    with pytest.raises(ConfigurationError, match="not chunk_size"):
        transformer.transform_documents(documents, chunk_size=3)
    with pytest.raises(ConfigurationError, match="not chunk_size"):
        await transformer.atransform_documents(documents, chunk_size=3)
