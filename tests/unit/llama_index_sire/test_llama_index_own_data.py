"""What users of LlamaIndex put in comes back as it was, and existing indexes are opened, not replaced."""

import copy
import json
import pickle

import pytest
from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter, SentenceWindowNodeParser
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import Document, MetadataMode, NodeRelationship, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from salt_lantern import QUESTION, TEXTS

from llama_index_sire import SireRetriever
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


def test_documents_that_are_cut_here_know_their_places():
    text = " ".join(f"Sentence number {n} speaks of the harbour." for n in range(200))
    found = SireRetriever.from_documents(
        [Document(text=text, id_="long", metadata={"file_name": "long.md"})], recipe="flat", similarity_top_k=9
    ).retrieve("harbour")
    assert len(found) > 2
    for hit in found:
        node = hit.node
        assert text[node.start_char_idx : node.end_char_idx] == node.text
        assert node.ref_doc_id == "long"
        assert node.metadata["file_name"] == "long.md"


async def test_an_evaluator_finds_the_splitters_ids():
    nodes = split()
    retriever = SireRetriever.from_documents(nodes, similarity_top_k=3)
    evaluator = RetrieverEvaluator.from_metric_names(["mrr", "hit_rate"], retriever=retriever)
    born = next(node.node_id for node in nodes if "born in Varn Harbour" in node.text)
    result = await evaluator.aevaluate("Where was Petra Quillon born?", [born])
    assert result.metric_vals_dict == {"mrr": 1.0, "hit_rate": 1.0}


def test_sections_of_markdown_stay_in_the_metadata():
    page = "# Heron\n\n## Production\n\nIt runs on the cluster green.\n\n## People\n\nMira Solano manages it.\n"
    nodes = MarkdownNodeParser().get_nodes_from_documents([Document(text=page, id_="heron.md")])
    found = SireRetriever.from_documents(nodes, recipe="flat", similarity_top_k=5).retrieve("Who manages Heron?")
    paths = {hit.node.node_id: hit.node.metadata["header_path"] for hit in found}
    assert paths == {node.node_id: node.metadata["header_path"] for node in nodes}
    assert "/Heron/" in paths.values()


def test_windows_of_sentences_can_take_the_place_of_texts():
    parser = SentenceWindowNodeParser.from_defaults(window_size=1)
    retriever = SireRetriever.from_documents(parser.get_nodes_from_documents(documents()), similarity_top_k=2)
    found = retriever.retrieve("Where was Petra Quillon born?")
    windows = MetadataReplacementPostProcessor(target_metadata_key="window").postprocess_nodes(copy.deepcopy(found))
    assert [hit.node.get_content(MetadataMode.NONE) for hit in windows] == [hit.metadata["window"] for hit in found]
    assert found[0].node.text.strip() == "Petra Quillon was born in Varn Harbour."
    assert windows[0].node.text.strip() == "Petra Quillon was born in Varn Harbour.  She was a painter before."


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


def test_units_have_what_their_passages_agree_on():
    found = SireRetriever.from_documents(split(), recipe="sirerag", returns="units", similarity_top_k=50).retrieve(
        QUESTION
    )
    mixed = [hit.node for hit in found if len(json.loads(hit.node.metadata["sire_doc_ids"])) > 1]
    assert mixed
    for node in mixed:
        assert "file_name" not in node.metadata
        assert len(json.loads(node.metadata["sire_differing"])["file_name"]) > 1
        assert "sire_node" not in node.metadata["sire_differing"]


# --- constructors never delete --------------------------------------------------------------------------------------


def names(retriever):
    return sorted(document.id for document in retriever.index.documents())


def test_from_documents_adds_to_an_index_that_is_there(tmp_path):
    place = tmp_path / "i"
    first = SireRetriever.from_documents(documents(), persist_dir=place, similarity_top_k=2)
    assert names(first) == ["film", "person", "town"]
    more = [Document(text="A new text.", id_="new"), Document(text="Another film.", id_="film")]
    again = SireRetriever.from_documents(more, persist_dir=place)
    assert names(again) == ["film", "new", "person", "town"]
    assert names(SireRetriever.from_documents([], persist_dir=place)) == names(again)
    again.replace_all(more)
    assert names(SireRetriever.from_persist_dir(place)) == ["film", "new"]
    assert SireRetriever.from_documents(documents(), persist_dir=place, top_k=3).similarity_top_k == 3
    assert SireRetriever.from_persist_dir(place).similarity_top_k == 3


def test_damaged_settings_are_an_error_that_says_what_to_do(tmp_path):
    retriever = SireRetriever.from_documents(documents(), persist_dir=tmp_path / "i", recipe="flat", top_k=3)
    retriever.index.save(tmp_path / "copy")
    assert SireRetriever.from_persist_dir(tmp_path / "copy").similarity_top_k == 3, "a backup takes them along"
    settings = tmp_path / "i" / "llama_index.json"
    settings.write_text(settings.read_text().replace("3", "4", 1))
    with pytest.raises(StorageError, match="give similarity_top_k and recipe again"):
        SireRetriever.from_persist_dir(tmp_path / "i")
    assert [finding.file for finding in check_folder(tmp_path / "i")] == ["llama_index.json"]


def test_documents_change_in_llama_indexs_words():
    retriever = SireRetriever.from_documents(documents(), recipe="flat", similarity_top_k=20)
    changed = [*documents()[:2], Document(text="Varn Harbour has no pier.", id_="town"), Document(text="N.", id_="n")]
    assert retriever.refresh_ref_docs(changed) == [False, False, True, True]
    retriever.delete_ref_doc("n", delete_from_docstore=True)
    retriever.insert_nodes([TextNode(text="A loose node.", id_="loose")])
    assert names(retriever) == ["film", "loose", "person", "town"]
    assert "loose" in {hit.node.node_id for hit in retriever.retrieve("loose node")}
    retriever.update_ref_doc(Document(text="Gone to sea.", id_="person"))
    assert "Gone to sea." in {hit.node.text for hit in retriever.retrieve("sea")}


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


def test_persisting_again_removes_the_old_copy_only(tmp_path):
    retriever = SireRetriever.from_documents(documents(), recipe="flat")
    copy, other = tmp_path / "copy", tmp_path / "copy.new"
    retriever.persist(copy)
    other.mkdir()
    for mine in (copy / "docstore.json", other / "notes.txt"):
        mine.write_text("Mine.")
    retriever.insert(Document(text="A new text.", id_="new"))
    retriever.persist(copy)
    assert names(SireRetriever.from_persist_dir(copy)) == ["film", "new", "person", "town"]
    assert (copy / "docstore.json").read_text() == (other / "notes.txt").read_text() == "Mine."
    assert sorted(found.name for found in tmp_path.iterdir()) == ["copy", "copy.new"]


# --- words ----------------------------------------------------------------------------------------------------------


def test_words_of_other_classes_mean_the_same(tmp_path, capsys):
    made = SireRetriever.from_documents(
        documents(), embedder="lexical", path=tmp_path / "i", top_k=2, recipe="flat", show_progress=True
    )
    assert len(made.retrieve(QUESTION)) == 2
    assert "embedding: 100%" in capsys.readouterr().err
    cut = SireRetriever.from_documents(
        documents(), transformations=[SentenceSplitter(chunk_size=30, chunk_overlap=0)], recipe="flat", top_k=50
    )
    assert len(cut.retrieve(QUESTION)) == len(split())
    titled = SireRetriever.from_documents([Document(text="x", metadata={"name": "N"})], title_key="name")
    assert titled.index.documents()[0].title == "N"
    with pytest.raises(TypeError, match=r"SireRetriever.from_documents\(\) has no argument 'embed_modl'; did you mean"):
        SireRetriever.from_documents(documents(), embed_modl=None)
    with pytest.raises(TypeError, match=r"from_persist_dir\(\) has no argument 'nothing_like_it'"):
        SireRetriever.from_persist_dir(tmp_path / "i", nothing_like_it=1)


def test_another_recipe_of_the_folder_and_other_settings(tmp_path):
    for recipe in ("raptor", "pagerank"):
        SireRetriever.from_documents(documents(), recipe=recipe, persist_dir=tmp_path / "i").index.close()
    raptor, pagerank = (SireRetriever.from_persist_dir(tmp_path / "i", recipe=name) for name in ("raptor", "pagerank"))
    other = raptor.as_retriever(recipe="pagerank", similarity_top_k=2)
    assert [h.score for h in other.retrieve(QUESTION)] == [h.score for h in pagerank.retrieve(QUESTION)][:2]
    narrowed = raptor.as_retriever(filters={"file_name": "film.md"}).as_retriever(filters={"file_name": "town.md"})
    assert narrowed.retrieve(QUESTION) == []


def test_retrievers_can_be_copied_and_sent_to_other_processes(tmp_path):
    retriever = SireRetriever.from_documents(documents(), persist_dir=tmp_path / "i", similarity_top_k=3)
    expected = [hit.node.node_id for hit in retriever.retrieve(QUESTION)]
    for again in (pickle.loads(pickle.dumps(retriever)), copy.deepcopy(retriever)):
        assert [hit.node.node_id for hit in again.retrieve(QUESTION)] == expected


# --- the user's own store -------------------------------------------------------------------------------------------


def test_a_store_with_ids_of_its_own_is_refused():
    class Numbers(SimpleVectorStore):
        def add(self, nodes, **kwargs):
            super().add(nodes, **kwargs)
            return [str(number) for number in range(len(nodes))]

    with pytest.raises(ConfigurationError, match="Numbers gives its entries ids of its own"):
        SireRetriever.from_documents(documents(), vector_store=Numbers())


def test_local_models_as_llama_index_names_them():
    from llama_index_sire.opening import resolve_embed_model

    assert resolve_embed_model("local:BAAI/bge-small-en-v1.5") == "st:BAAI/bge-small-en-v1.5"
    with pytest.raises(ConfigurationError, match="'local' names no model"):
        SireRetriever.from_documents(documents(), embed_model="local")
    with pytest.raises(ConfigurationError, match="no model folder at /no/such/folder"):
        SireRetriever.from_documents(documents(), embed_model="local:/no/such/folder")
