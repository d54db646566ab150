"""What users of LlamaIndex put in comes back as it was; an index is used as theirs."""

import asyncio

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.retrievers import VectorIndexRetriever
from llama_index.core.schema import (
    Document,
    ImageNode,
    IndexNode,
    MediaResource,
    MetadataMode,
    Node,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
    TransformComponent,
)
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters, SimpleVectorStore
from salt_lantern import QUESTION, TEXTS

from llama_index_sire import SireRetriever
from sire_core import Index
from sire_core.errors import ConfigurationError, CorpusError, StorageError
from sire_core.storage.check import check_folder

pytestmark = pytest.mark.default_recipe


def documents():
    return [
        Document(text=text, id_=name, metadata={"file_name": f"{name}.md", "title": name.title()})
        for name, text in TEXTS.items()
    ]


def split():
    return SentenceSplitter(chunk_size=30, chunk_overlap=0).get_nodes_from_documents(documents())


@pytest.mark.quick(recipe=["sire", "sirerag"])
@pytest.mark.parametrize("recipe", ["sire", "iier", "raptor", "sirerag", "smart"])
def test_the_splitters_nodes_come_back_as_they_were(recipe):
    given = {node.node_id: node for node in split()}
    assert len(given) > 4
    found = SireRetriever.from_documents(list(given.values()), recipe=recipe, similarity_top_k=50).retrieve(QUESTION)
    assert {hit.node.node_id for hit in found} == set(given)
    for hit in found:
        node, before = hit.node, given[hit.node.node_id]
        assert node.get_content(MetadataMode.NONE) == before.text
        assert {k: v for k, v in node.metadata.items() if not k.startswith("sire_")} == before.metadata
        assert (node.start_char_idx, node.end_char_idx) == (before.start_char_idx, before.end_char_idx)
        assert node.ref_doc_id == before.ref_doc_id
        for kind in (NodeRelationship.SOURCE, NodeRelationship.PREVIOUS, NodeRelationship.NEXT):
            assert (kind in node.relationships) == (kind in before.relationships)
            if kind in before.relationships:
                # All but a copy of the other node's metadata.
                plain = before.relationships[kind].model_copy(update={"metadata": {}})
                assert node.relationships[kind] == plain
                assert plain.hash
        assert node.get_content(MetadataMode.LLM) == before.get_content(MetadataMode.LLM)
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)


def test_citations_name_the_users_files():
    retriever = SireRetriever.from_documents(split(), similarity_top_k=3)
    response = CitationQueryEngine.from_args(None, llm=MockLLM(), retriever=retriever).query(QUESTION)
    found = [hit.node.metadata["file_name"] for hit in retriever.retrieve(QUESTION)]
    assert [node.node.metadata["file_name"] for node in response.source_nodes] == found
    assert {"film.md", "person.md"} <= set(found)
    for number, source in enumerate(response.source_nodes, start=1):
        text = source.node.get_content(MetadataMode.NONE)
        assert text.startswith(f"Source {number}:\n")
        assert text.partition("\n")[2].strip() in TEXTS[source.node.metadata["title"].lower()]


def names(retriever):
    return sorted(document.id for document in retriever.index.documents())


def test_damaged_settings_are_an_error_that_says_what_to_do(tmp_path):
    retriever = SireRetriever.from_documents(documents(), persist_dir=tmp_path / "i", recipe="flat", top_k=3)
    retriever.index.save(tmp_path / "copy")
    assert SireRetriever.from_persist_dir(tmp_path / "copy").similarity_top_k == 3, "a backup takes them along"
    settings = tmp_path / "i" / "llama_index.json"
    settings.write_text(settings.read_text().replace("3", "4", 1))
    with pytest.raises(StorageError, match="give similarity_top_k and recipe again"):
        SireRetriever.from_persist_dir(tmp_path / "i")
    assert [finding.file for finding in check_folder(tmp_path / "i")] == ["llama_index.json"]


def test_one_id_for_two_things_is_an_error():
    with pytest.raises(CorpusError, match="'d'"):
        SireRetriever.from_documents([Document(text="One.", id_="d"), Document(text="Two.", id_="d")])
    with pytest.raises(CorpusError, match="have the id 'n'"):
        SireRetriever.from_documents([TextNode(text="One.", id_="n"), TextNode(text="Two.", id_="n")])
    with pytest.raises(CorpusError, match="whole and in pieces"):
        SireRetriever.from_documents([*documents(), *split()])


def test_persist_insert_persist(tmp_path):
    retriever = SireRetriever.from_documents(documents(), recipe="flat")
    retriever.persist(tmp_path / "copy")
    retriever.insert(Document(text="A new text.", id_="new"))
    retriever.persist(tmp_path / "copy")
    opened = SireRetriever.from_persist_dir(tmp_path / "copy")
    assert names(opened) == ["film", "new", "person", "town"]
    opened.delete_ref_doc("new")
    with pytest.raises(StorageError, match="was changed since"):
        retriever.persist(tmp_path / "copy")
    assert names(opened) == ["film", "person", "town"]


def test_a_store_with_ids_of_its_own_is_refused():
    class Numbers(SimpleVectorStore):
        def add(self, nodes, **kwargs):
            super().add(nodes, **kwargs)
            return [str(number) for number in range(len(nodes))]

    with pytest.raises(ConfigurationError, match="Numbers gives its entries ids of its own"):
        SireRetriever.from_documents(documents(), vector_store=Numbers())


def test_local_models_as_llama_index_names_them():
    with pytest.raises(ConfigurationError, match="'local' names no model"):
        SireRetriever.from_documents(documents(), embed_model="local")
    with pytest.raises(ConfigurationError, match="no model folder at /no/such/folder"):
        SireRetriever.from_documents(documents(), embed_model="local:/no/such/folder")


def untitled():
    return [Document(text=text, id_=name, metadata={"file_name": f"{name}.md"}) for name, text in TEXTS.items()]


def split_untitled():
    return SentenceSplitter(chunk_size=30, chunk_overlap=0).get_nodes_from_documents(untitled())


def ids(found):
    return {hit.node.node_id for hit in found}


def test_only_nodes_of_some_documents_and_only_some_nodes():
    nodes = split_untitled()
    theirs = VectorStoreIndex(nodes, embed_model=MockEmbedding(8))
    ours = SireRetriever.from_documents(nodes, similarity_top_k=50)
    everything = {"similarity_top_k": 50}
    some = {"node_ids": [nodes[0].node_id, nodes[-1].node_id]}
    expected = ids(VectorIndexRetriever(theirs, **some, **everything).retrieve(QUESTION))
    assert ids(ours.as_retriever(**some).retrieve(QUESTION)) == expected == set(some["node_ids"])
    # SimpleVectorStore leaves `doc_ids` to other stores.
    expected = {node.node_id for node in nodes if node.ref_doc_id != "person"}
    assert ids(ours.as_retriever(doc_ids=["film", "town"]).retrieve(QUESTION)) == expected
    for key in ("ref_doc_id", "doc_id", "document_id"):
        wanted = MetadataFilters(filters=[MetadataFilter(key=key, value=["film"], operator=FilterOperator.IN)])
        expected = ids(theirs.as_retriever(filters=wanted, **everything).retrieve(QUESTION))
        assert ids(ours.as_retriever(filters=wanted).retrieve(QUESTION)) == expected != set()
    engine = ours.as_query_engine(llm=MockLLM(max_tokens=1), doc_ids=["person"], similarity_top_k=1)
    assert [found.node.ref_doc_id for found in engine.query(QUESTION).source_nodes] == ["person"]
    narrowed = ours.as_retriever(doc_ids=["person"]).as_retriever(doc_ids=["person", "film"])
    assert {found.node.ref_doc_id for found in narrowed.retrieve(QUESTION)} == {"person"}
    assert ours.as_retriever(doc_ids=[]).retrieve(QUESTION) == []


def test_nodes_that_were_cut_here_have_ids_as_well():
    retriever = SireRetriever.from_documents(untitled(), similarity_top_k=9)
    first = retriever.retrieve(QUESTION)[0].node.node_id
    assert ids(retriever.as_retriever(node_ids=[first]).retrieve(QUESTION)) == {first}
    assert first in {node for info in retriever.ref_doc_info.values() for node in info.node_ids}


def test_documents_and_their_nodes_are_listed():
    nodes = split_untitled()
    assert SireRetriever.from_documents([]).ref_doc_info == {}
    info = SireRetriever.from_documents(nodes, recipe="flat").ref_doc_info
    theirs = VectorStoreIndex(nodes, embed_model=MockEmbedding(8)).ref_doc_info
    assert {name: found.node_ids for name, found in info.items()} == {n: t.node_ids for n, t in theirs.items()}
    assert info["film"].metadata == {"file_name": "film.md"}


async def test_nodes_are_deleted(caplog):
    nodes = split_untitled()
    assert [node.ref_doc_id for node in nodes] == ["film", "film", "person", "town"]
    retriever = SireRetriever.from_documents([*nodes, TextNode(id_="loose", text="A loose node.")], similarity_top_k=50)
    retriever.delete_nodes([nodes[0].node_id, "loose", "nobody"], delete_from_docstore=True)
    assert ids(retriever.retrieve(QUESTION)) == {node.node_id for node in nodes[1:]}
    assert "node_id nobody not found" in caplog.text
    await retriever.adelete_nodes([nodes[1].node_id])
    assert sorted(retriever.ref_doc_info) == ["person", "town"]
    whole = SireRetriever.from_documents(untitled(), recipe="flat")
    with pytest.raises(CorpusError, match=r"film was given whole.*Update the document.*or delete it"):
        whole.delete_nodes(whole.ref_doc_info["film"].node_ids)


def test_a_deleted_node_stays_away_while_its_document_is_the_same():
    cut = SireRetriever.from_documents(
        untitled(), transformations=[SentenceSplitter(chunk_size=30, chunk_overlap=0)], recipe="flat"
    )
    first, *others = cut.ref_doc_info["film"].node_ids
    cut.delete_nodes([first])
    assert cut.refresh_ref_docs(untitled()) == [False] * 3
    assert cut.ref_doc_info["film"].node_ids == others


def levels():
    """One document in three nodes, of which one is hidden from most."""
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")}
    marks = {"n1": "public", "n2": "public", "n3": "private"}
    return [TextNode(id_=n, text=f"Text {n}.", metadata={"level": m}, relationships=source) for n, m in marks.items()]


def limited(retriever, folder, **options):
    """A retriever over the same folder whose reader may see public nodes only."""
    return SireRetriever(Index(folder, allow="level=public", **options), transformations=retriever.transformations)


async def test_nodes_deleted_at_once_stay_deleted():
    nodes = levels()
    retriever = SireRetriever.from_documents(nodes, recipe="flat")
    await asyncio.gather(*(retriever.adelete_nodes([node.node_id]) for node in nodes[:2]))
    assert [hit.node.node_id for hit in await retriever.aretrieve("Text")] == ["n3"]
    await asyncio.gather(*(retriever.adelete_nodes(["n3"]) for _ in range(2)))
    assert retriever.ref_doc_info == {}


class ByLevel(TransformComponent):
    """Cuts a document as `levels` is."""

    def __call__(self, nodes, **kwargs):
        return [node for _ in nodes for node in levels()]


def test_an_unchanged_document_keeps_what_is_hidden(tmp_path):
    document = Document(text="Text.", id_="d")
    retriever = SireRetriever.from_documents(
        [document], persist_dir=tmp_path / "i", recipe="flat", transformations=[ByLevel()]
    )
    retriever.delete_nodes(["n2"])
    seen = limited(retriever, tmp_path / "i")
    assert seen.refresh(document).unchanged == 1
    assert seen.insert([document, document]).unchanged == 1
    assert seen.replace_all([document]).unchanged == 1
    assert retriever.ref_doc_info["d"].node_ids == ["n1", "n3"]
    with pytest.raises(CorpusError, match="Two different documents have the id 'd'"):
        seen.refresh([document, Document(text="Another.", id_="d")])
    with pytest.raises(CorpusError, match="whole and in pieces, too: d"):
        seen.refresh([document, *levels()])


def test_scores_of_one_scale_for_cut_offs(tmp_path):
    retriever = SireRetriever.from_documents(untitled(), similarity_top_k=3)
    found = retriever.retrieve(QUESTION)
    compared = retriever.as_retriever(scores="similarity").retrieve(QUESTION)
    assert [hit.node.node_id for hit in compared] == [hit.node.node_id for hit in found]
    assert all(0 < hit.score <= 1 for hit in compared)
    (same,) = retriever.as_retriever(scores="similarity", similarity_top_k=1).retrieve(TEXTS["town"])
    assert same.score > 0.8 > min(hit.score for hit in compared)
    near = SimilarityPostprocessor(similarity_cutoff=0.8)
    assert near.postprocess_nodes([same, *compared])[0].node.ref_doc_id == "town"
    engine = retriever.as_query_engine(llm=MockLLM(max_tokens=1), scores="similarity", node_postprocessors=[near])
    assert len(engine.query(QUESTION).source_nodes) < 3
    with pytest.raises(ConfigurationError, match="scores is one of recipe, similarity"):
        retriever.as_retriever(scores="cosine")


def test_texts_become_documents_and_come_back_by_their_ids(tmp_path):
    made = SireRetriever.from_texts(
        ["Salt is white.", "Iron is grey."],
        [{"kind": "food"}, {"kind": "metal"}],
        ids=["salt", "iron"],
        recipe="flat",
        persist_dir=tmp_path / "i",
    )
    iron, salt = made.get_by_ids(["iron", "salt", "nothing", "iron"])
    assert (iron.text, iron.metadata["kind"], iron.ref_doc_id) == ("Iron is grey.", "metal", "iron")
    assert made.get_by_ids(salt.node_id) == [salt]
    assert salt.hash == made.retrieve("white salt")[0].node.hash
    narrow = made.as_retriever(filters={"kind": "metal"})
    assert [node.text for node in narrow.get_by_ids(["salt", "iron"])] == ["Iron is grey."]
    again = SireRetriever.from_texts(["Salt is white."], recipe="flat").index.documents()[0].id
    assert again == SireRetriever.from_texts(["Salt is white."], recipe="flat").index.documents()[0].id
    with pytest.raises(CorpusError, match="There are 2 texts but 1 ids"):
        SireRetriever.from_texts(["a", "b"], ids=["a"])
    with pytest.raises(CorpusError, match="Expected a list of texts, not str"):
        SireRetriever.from_texts("a")


async def test_nodes_of_a_splitter_come_back_by_their_ids():
    nodes = SentenceSplitter(chunk_size=20, chunk_overlap=0).get_nodes_from_documents(
        [Document(text="One two three four five. Six seven eight nine ten. " * 5, id_="d")]
    )
    made = await SireRetriever.afrom_documents(nodes, recipe="flat")
    assert [node.node_id for node in await made.aget_by_ids([nodes[2].node_id])] == [nodes[2].node_id]
    assert [node.hash for node in await made.aget_by_ids("d")] == [node.hash for node in nodes]
    assert SireRetriever(Index()).get_by_ids(["d"]) == []


def test_nodes_keep_their_class_and_its_fields(tmp_path):
    index = IndexNode(id_="i", text="A summary of the manual.", index_id="manual", metadata={"page": 1})
    image = ImageNode(id_="p", text="A picture of the pier.", image_path="pier.png", image_url="https://a.example/p")
    plain = TextNode(id_="t", text="The harbour.")
    SireRetriever.from_documents([index, image, plain], persist_dir=tmp_path / "i", recipe="flat")
    retriever = SireRetriever.from_persist_dir(tmp_path / "i")
    found = {hit.node.node_id: hit.node for hit in retriever.retrieve("manual pier harbour")}
    assert [type(found[name]) for name in "ipt"] == [IndexNode, ImageNode, TextNode]
    assert (found["i"].index_id, found["i"].obj, found["i"].metadata["page"]) == ("manual", None, 1)
    assert (found["p"].image_path, found["p"].image_url) == (image.image_path, image.image_url)
    assert found["p"].image_mimetype == image.image_mimetype == "image/png"
    assert retriever.refresh([index, image, plain]).unchanged == 3


async def test_an_index_node_leads_to_what_stands_behind_it():
    manual = SireRetriever.from_documents([TextNode(id_="m", text="Turn the valve.")], recipe="flat")
    above = [IndexNode(id_="i", text="The manual of the valve.", index_id="manual"), TextNode(id_="t", text="A pier.")]
    retriever = SireRetriever.from_documents(above, recipe="flat", object_map={"manual": manual}, verbose=True)
    for each in (retriever, retriever.as_retriever(similarity_top_k=2), retriever.as_retriever(filters="node_id!=x")):
        assert {hit.node.node_id for hit in each.retrieve("valve")} == {"m", "t"}
        assert {hit.node.node_id for hit in await each.aretrieve("valve")} == {"m", "t"}
    pointing = IndexNode(text="", index_id="manual", obj=TextNode(id_="o", text="Another."))
    other = retriever.as_retriever(objects=[pointing], verbose=False)
    assert {hit.node.node_id for hit in other.retrieve("valve")} == {"o", "t"}


class Scored(TextNode):
    """A class that an index does not know."""

    quality: float = 0.5


def test_what_cannot_be_kept_is_refused():
    assert SireRetriever.from_documents([Scored(id_="s", text="As all are.")], recipe="flat").retrieve("all")
    for node, message in (
        (IndexNode(id_="i", text="A", index_id="x", obj=TextNode(text="B")), r"'i' refers to.*object_map={'x': "),
        (Scored(id_="s", text="A", quality=0.9), "'s' is a Scored, whose quality .* Put them into its metadata"),
        (
            Node(id_="n", text_resource=MediaResource(text="A"), image_resource=MediaResource(url="https://a.example")),
            "'n' is a Node, whose image_resource .* give a TextNode or IndexNode or ImageNode",
        ),
    ):
        with pytest.raises(CorpusError, match=message):
            SireRetriever.from_documents([Document(text="C"), node], recipe="flat")


def test_long_nodes_are_mentioned_with_what_splits_them(caplog):
    long = [TextNode(text="A sentence of a long text. " * 400, id_="long")]
    SireRetriever.from_documents(long, recipe="flat")
    assert "1 of 1 passage is longer than 8,000 characters" in caplog.text
    assert "transformations=[SentenceSplitter(chunk_size=512)]" in caplog.text
    caplog.clear()
    retriever = SireRetriever.from_documents(long, transformations=[SentenceSplitter(chunk_size=512)], recipe="flat")
    assert len(retriever.retrieve("a long text")) > 1
    assert not caplog.text


def test_files_are_replaced_as_a_whole(caplog):
    """Pages of a file that is shorter now take the place of all its old ones; nodes those of their document."""

    def pages(count, name="a.pdf"):
        texts = [f"Page {number} of {count} about piers." for number in range(count)]
        return [Document(id_=f"{name}#{n}", text=t, metadata={"file_path": name}) for n, t in enumerate(texts)]

    retriever = SireRetriever.from_documents([*pages(3), *pages(2, "b.pdf")], recipe="flat", similarity_top_k=9)
    retriever.refresh(pages(2))
    assert "keeps 1 other part of a.pdf beside those that were given now (a.pdf#2)" in caplog.text
    assert retriever.refresh_ref_docs(pages(2), replace_source=True) == [False, False]
    assert sorted(retriever.ref_doc_info) == ["a.pdf#0", "a.pdf#1", "b.pdf#0", "b.pdf#1"]
    options = {"transformations": [SentenceSplitter(chunk_size=20, chunk_overlap=0)], "recipe": "flat"}
    cut = SireRetriever.from_documents(pages(3), **options)
    report = cut.refresh([*pages(3)[:2], *pages(1, "b.pdf")], replace_source=True)
    assert (report.added, report.unchanged) == (1, 2)
    assert sorted(cut.ref_doc_info) == ["a.pdf#0", "a.pdf#1", "b.pdf#0"]


@pytest.mark.parametrize("same_id", [True, False])
def test_nodes_of_a_file_whose_document_has_another_id_are_beside_the_old_ones(caplog, same_id):
    """Nodes replace those of their document; loaded again without `filename_as_id`, a file is another document."""

    def nodes(name, text):
        document = Document(id_=name, text=text, metadata={"file_path": "a.md"})
        return SentenceSplitter(chunk_size=20, chunk_overlap=0).get_nodes_from_documents([document])

    text = "Petra was born in Varn Harbour. Otto commanded the Northern Wren. Mira works in the Porto office."
    retriever = SireRetriever.from_documents(nodes("first", text), recipe="flat", similarity_top_k=9)
    retriever.refresh(nodes("first" if same_id else "second", "Nobody works here."))
    assert len(retriever.retrieve("works")) == (1 if same_id else len(nodes("first", text)) + 1)
    assert ("1 other part of a.md beside those that were given now (first)" in caplog.text) != same_id


@pytest.mark.parametrize(
    ("built", "given", "expected"),
    [
        ({"max_tokens": 40}, {}, {"max_tokens": 40}),
        ({"max_tokens": 40}, {"max_tokens": None}, {}),
        ({"max_tokens": 40}, {"scores": "similarity"}, {"scores": "similarity"}),
        ({"scores": "similarity"}, {}, {"scores": "similarity"}),
        ({"scores": "similarity", "returns": "units"}, {"max_tokens": 9}, {"max_tokens": 9, "returns": "units"}),
    ],
)
def test_a_folder_stores_all_options_of_a_search(tmp_path, built, given, expected):
    SireRetriever.from_documents(untitled(), persist_dir=tmp_path, recipe="flat", **built).index.close()
    retriever = SireRetriever.from_persist_dir(tmp_path, **given)
    options = {name: getattr(retriever, name) for name in ("scores", "returns", "max_tokens", "similarity_top_k")}
    assert options == {
        "scores": "recipe",
        "returns": "passages",
        "max_tokens": None,
        "similarity_top_k": 10,
        **expected,
    }
