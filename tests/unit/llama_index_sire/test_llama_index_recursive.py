"""Nodes that are more than a text come back as they were, and lead on to what stands behind them."""

import pytest
from llama_index.core.schema import Document, ImageNode, IndexNode, MediaResource, Node, TextNode

from llama_index_sire import SireRetriever
from sire_core.errors import CorpusError


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
