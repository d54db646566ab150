"""Our documents beside those of other retrievers of LangChain: ensembles by text and by id, merging, compression."""

import pytest
from langchain_core.documents import Document
from langchain_core.documents.compressor import BaseDocumentCompressor

from langchain_sire import SireRetriever
from support.langchain_adapter import LangChain

retrievers = pytest.importorskip("langchain_classic.retrievers", reason="langchain-classic is a development dependency")
DOCUMENTS = [
    Document(id=name, page_content=text, metadata={"source": f"{name}.md", "tenant": tenant})
    for name, text, tenant in [
        ("petra", "Petra Quillon was born in Varn Harbour.", "a"),
        ("lantern", "The Salt Lantern is a film by Petra Quillon.", "a"),
        ("otto", "Otto Brack commanded a steamship.", "b"),
        ("lake", "Lake Lindle freezes in winter.", "b"),
    ]
]


class First(BaseDocumentCompressor):
    """Keeps the first document, copied as compressors do."""

    def compress_documents(self, documents, query, callbacks=None):
        return [documents[0].model_copy(deep=True)]


WORDS = LangChain.Words(given=DOCUMENTS, asked=[])


@pytest.fixture(scope="module")
def ours():
    return SireRetriever.from_documents(DOCUMENTS, recipe="flat", k=2)


@pytest.mark.parametrize("by", [None, "source"])
def test_an_ensemble_adds_the_scores_of_common_documents(ours, by):
    ensemble = retrievers.EnsembleRetriever(retrievers=[ours, WORDS], id_key=by)
    question = "Petra Quillon film"
    first, second = ours.invoke(question), WORDS.invoke(question)
    found = ensemble.invoke(question)
    names = [d.id for d in found]
    assert set(names) == {d.id for d in [*first, *second]}
    assert len(names) == len(set(names))
    common = {d.id for d in first} & {d.id for d in second}
    assert common
    assert set(names[: len(common)]) == common


def test_merged_and_compressed_documents_keep_what_they_are(ours):
    merger = retrievers.MergerRetriever(retrievers=[ours, WORDS])
    assert len(merger.invoke("Petra Quillon")) == 5
    (found,) = retrievers.ContextualCompressionRetriever(base_compressor=First(), base_retriever=ours).invoke("Petra")
    (given,) = [d for d in DOCUMENTS if d.id == found.id]
    assert {key: found.metadata[key] for key in given.metadata} == given.metadata
