"""LangChain's `index()` and `aindex()` over our document index, and over a vector store that holds our pool."""

import json

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_sire import SireDocumentTransformer, SireRetriever, SireVectorStore
from sire_core import Index


def _doc(source, text):
    return Document(page_content=text, metadata={"source": source})


PETRA = _doc("a.txt", "Petra Quillon directed The Salt Lantern.")
LANTERN = _doc("b.txt", "The Salt Lantern was filmed by Petra Quillon in Varn Harbour.")
OTTO = _doc("c.txt", "Otto Brack commanded the Northern Wren.")


class Both:
    """Runs `index` or `aindex` with the arguments that all tests share."""

    def __init__(self, native, store):
        self.native = native
        self.store = store
        self.records = InMemoryRecordManager("test")
        self.records.create_schema()

    async def __call__(self, documents, cleanup=None, **more):
        more = {"cleanup": cleanup, "source_id_key": "source", "key_encoder": "blake2b", **more}
        if self.native:
            result = await aindex(documents, self.records, self.store, **more)
        else:
            result = index(documents, self.records, self.store, **more)
        return tuple(result[f"num_{what}"] for what in ("added", "updated", "skipped", "deleted"))


@pytest.fixture(params=[False, True], ids=["index", "aindex"])
def run(request):
    return Both(request.param, SireRetriever.open(recipe="sirerag", k=50))


def _texts(store):
    return {d.page_content for d in store.invoke("Who?") if d.metadata["sire"]["kind"] == "chunk"}


@pytest.mark.parametrize("door", [SireRetriever.open, SireVectorStore])
async def test_chunks_that_it_deletes_later_are_not_warned_of(run, door, caplog):
    """It gives the chunks of a file in batches, and deletes old ones after the new ones are added."""
    run.store = door(recipe="flat")
    for version in ("old", "new"):
        chunks = [_doc("a.txt", f"Chunk {number} of the {version} piers.") for number in range(5)]
        await run(chunks, "incremental", batch_size=2)
        retriever = getattr(run.store, "documents", run.store)
        assert len(retriever.invoke("piers", k=9)) == 5
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


async def test_cleanup_full_removes_what_is_not_given_and_what_was_made_from_it(run):
    await run([PETRA, LANTERN, OTTO], "full")

    def derived(question):
        run.store.flush()
        return SireRetriever(index=run.store.index, returns="units", k=50).invoke(question)

    mixed = [d for d in derived("Petra Quillon") if len(d.metadata["sire"]["doc_ids"]) > 1]
    assert mixed
    assert await run([OTTO], "full") == (0, 0, 1, 2)
    left = run.store.invoke("Petra Quillon") + derived("Petra Quillon")
    assert left
    assert not [d for d in left if "Petra" in d.page_content]


async def test_trap_metadata_that_is_not_json_is_refused(run):
    with pytest.raises(ValueError, match=r"JSON|json"):
        await run([Document(page_content="x", metadata={"source": "a", "score": np.float32(1)})])


async def test_trap_a_retrieved_document_is_json_and_can_be_indexed_again(run):
    await run([PETRA, OTTO], "full")
    again = run.store.invoke("Who?")
    assert json.dumps([d.metadata for d in again])
    other = Both(run.native, SireRetriever.open(recipe="flat"))
    assert (await other(again, "full", source_id_key=None))[0] == len(again)


async def test_a_folder_and_a_record_manager_agree_after_a_crash(run, tmp_path):
    run.store = SireRetriever.open(tmp_path / "i", recipe="flat", k=9)
    await run([PETRA, OTTO], "incremental")  # the process dies before the first search
    run.store = SireRetriever(index=Index(tmp_path / "i", recipe="flat", chunker=None), k=9)
    assert await run([PETRA, OTTO], "incremental") == (0, 0, 2, 0)
    assert _texts(run.store) == {PETRA.page_content, OTTO.page_content}


@pytest.mark.parametrize("native", [False, True], ids=["index", "aindex"])
async def test_trap_no_stale_summary_stays_in_the_users_vector_store(native):
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    run = Both(native, store)
    transformer = SireDocumentTransformer("sirerag")

    def pool(documents):
        given = [Document(id=d.metadata["source"], page_content=d.page_content, metadata=d.metadata) for d in documents]
        return list(transformer.transform_documents(given))

    first = pool([PETRA, LANTERN, OTTO])
    assert (await run(first, "full", source_id_key="unit_id"))[0] == len(first)
    assert await run(pool([PETRA, LANTERN, OTTO]), "full", source_id_key="unit_id") == (0, 0, len(first), 0)
    second = pool([PETRA, OTTO])
    added, _, skipped, deleted = await run(second, "full", source_id_key="unit_id")
    assert (added + skipped, deleted) == (len(second), len(first) - skipped)
    units = {d["metadata"]["unit_id"] for d in store.store.values()}
    assert units == {d.metadata["unit_id"] for d in second}
    assert not [d for d in store.store.values() if "filmed" in d["text"]]


@pytest.mark.quick(cleanup=["incremental", "full"])
@pytest.mark.parametrize("cleanup", [None, "incremental", "full", "scoped_full"])
@pytest.mark.parametrize("native", [False, True], ids=["index", "aindex"])
@pytest.mark.parametrize("make", [SireVectorStore, lambda: SireRetriever.open(recipe="sirerag", k=50)])
async def test_what_is_ours_is_indexed_with_every_cleanup(make, native, cleanup):
    run = Both(native, make())
    assert await run([PETRA, LANTERN, OTTO], cleanup) == (3, 0, 0, 0)
    changed = _doc("c.txt", "Otto Brack was born in Lindlemouth.")
    assert await run([PETRA, LANTERN, changed], cleanup) == (1, 0, 2, 0 if cleanup is None else 1)
    store = run.store.as_retriever(k=9) if make is SireVectorStore else run.store
    found = {document.page_content for document in store.invoke("Who?")}
    kept = {OTTO.page_content} if cleanup is None else set()
    assert found == {PETRA.page_content, LANTERN.page_content, changed.page_content, *kept}
