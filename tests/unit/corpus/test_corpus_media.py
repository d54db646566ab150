"""Tables and images of Markdown as passages of their own."""

import base64

import pytest

from sire_core import Document, Index
from sire_core.documents.chunker import chunk_document
from sire_core.documents.media import MediaPart, describe_images, media_parts, split_media
from sire_core.errors import ConfigurationError, ModelError
from sire_core.extend import media_of
from sire_core.models.caching import CachedModel
from sire_core.models.openai.client import OpenAIChat
from sire_core.papers.iier.chain_graph import ChainGraph
from sire_core.protocols import Completion
from sire_core.recipes import iier
from sire_core.storage.call_cache import CallStore
from sire_core.testing.doubles import HashEmbedder
from support.scripted_server import ScriptedServer

TABLE = "| pier | built |\n|------|:-----:|\n| north | 1884 |\n| south | 1901 |"
TEXT = (
    f"# Piers\n\nThe piers of Port Amber.\n\n{TABLE}\n\nSee the map.\n\n![A map of the piers](maps/piers.png)\n\nMore."
)
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
)


class Seer:
    """A vision model."""

    fingerprint = "seer"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.prompts = []

    async def complete(self, prompt, *, schema=None, stop=(), max_tokens=None, temperature=0.0):
        self.prompts.append(prompt)
        answer = self.answers.pop(0) if self.answers else "The map shows two piers."
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer)


def kinds(text):
    return [(block.kind, block.text) for block in media_parts(text)]


def test_prose_tables_and_images_come_in_the_order_of_the_text():
    assert [block.kind for block in media_parts(TEXT)] == ["text", "table", "text", "image", "text"]
    assert list(media_parts(TEXT))[1].text == TABLE
    assert list(media_parts(TEXT))[3] == MediaPart("image", "A map of the piers", "maps/piers.png")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a | b\n--|--\n1 | 2\nafter", [("table", "a | b\n--|--\n1 | 2"), ("text", "after")]),
        ("a | b\n--|--|--\n1 | 2", [("text", "a | b\n--|--|--\n1 | 2")]),
        ("a \\| b | c\n--|--\n1 | 2", [("table", "a \\| b | c\n--|--\n1 | 2")]),
        ("```\n| a |\n|---|\n![x](y)\n```", [("text", "```\n| a |\n|---|\n![x](y)\n```")]),
        ("```\n| a |\n|---|", [("text", "```\n| a |\n|---|")]),
        ("yes or no\n---\n", [("text", "yes or no\n---")]),
        ("See ![the map](m.png) here.\nAnd on.\n\nNext.", [
            ("text", "See the map here.\nAnd on."), ("image", "the map"), ("text", "Next."),
        ]),
        ('![](a.png "Title")', [("image", "Title")]),
        ("![](<a.png>)", [("image", "")]),
        ("", []),
        (" \n\n", []),
        ("![not an image](a b c)", [("text", "![not an image](a b c)")]),
    ],
)  # fmt: skip
def test_what_is_a_table_or_an_image(text, expected):
    assert kinds(text) == expected


def test_tables_and_images_are_passages_that_refer_to_the_object():
    found = split_media([Document("piers.md", TEXT, "Piers", {"lang": "en"}), Document("plain", "No table.")])
    first, second = found.documents
    assert second == Document("plain", "No table.")
    chunks = chunk_document(first)
    assert [media_of(chunk.id, chunk.metadata) and media_of(chunk.id, chunk.metadata)["kind"] for chunk in chunks] == [
        None, "table", None, "image", None,
    ]  # fmt: skip
    assert chunks[1].text == TABLE
    assert chunks[3].text == "Image: A map of the piers"
    image = media_of(chunks[3].id, chunks[3].metadata)
    assert image["reference"] == "maps/piers.png"
    assert image["described_by"] == "alt text"
    assert first.metadata["lang"] == "en"
    assert (found.tables, found.images, found.described) == (1, 1, 0)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "docs" / "maps").mkdir(parents=True)
    (tmp_path / "docs" / "maps" / "piers.png").write_bytes(PIXEL)
    (tmp_path / "secret.png").write_bytes(PIXEL)
    return tmp_path / "docs"


async def test_a_vision_model_describes_images(folder):
    model = Seer()
    found = await describe_images([Document("piers.md", TEXT, "Piers")], model, folder)
    assert (found.described, found.failures) == (1, ())
    assert found.documents[0].chunks[3] == "Image: A map of the piers\nThe map shows two piers."
    assert found.documents[0].metadata["media"][1]["described_by"] == "model"
    (prompt,) = model.prompts
    assert prompt.images == (PIXEL,)
    assert "A map of the piers" in prompt.data


async def test_an_image_that_stands_twice_is_described_once(folder):
    model = Seer()
    twice = Document("a.md", "![one](maps/piers.png)\n\n![two](maps/piers.png)")
    found = await describe_images([twice], model, folder)
    assert len(model.prompts) == 1
    assert found.described == 2


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("missing.png", "no such file"),
        ("../secret.png", "outside of"),
        ("https://example.org/a.png", "not a file"),
        ("data:image/png;base64,AAAA", "not a file"),
        ("maps", "no such file"),
    ],
)
async def test_what_cannot_be_read_keeps_its_alternative_text(folder, reference, reason):
    model = Seer()
    found = await describe_images([Document("sub/a.md", f"![alt]({reference})")], model, folder)
    assert found.documents[0].chunks == ("Image: alt",)
    (failure,) = found.failures
    assert failure.where == f"sub/a.md: {reference}"
    assert reason in failure.reason
    assert model.prompts == []


async def test_a_failed_call_keeps_the_alternative_text_and_is_reported(folder):
    documents = [Document("a.md", "![alt](maps/piers.png)"), Document("b.md", "![alt](maps/piers.png)")]
    found = await describe_images(documents, Seer(ModelError("busy")), folder, workers=1)
    assert [failure.reason for failure in found.failures] == ["busy"]
    assert found.described == 1


async def test_over_http_an_image_is_sent_once_and_its_description_kept(folder, tmp_path):
    said = "Two piers, of 1884 and 1901."
    documents = [Document("piers.md", TEXT, "Piers")]
    store = CallStore(tmp_path / "captions.sqlite")
    with ScriptedServer(lambda _: said) as server:
        client = {"base_url": server.base_url, "api_key": "k"}
        async with OpenAIChat("m", vision=True, **client) as model:
            first = await describe_images(documents, CachedModel(model, store), folder)
            again = await describe_images(documents, CachedModel(model, store), folder)
        assert len(server.log) == 1
        assert base64.b64encode(PIXEL).decode() in str(server.log[0].call.body)
        async with OpenAIChat("m", **client) as blind:
            with pytest.raises(ConfigurationError, match="vision=True"):
                await describe_images(documents, blind, folder)
    store.close()
    assert first == again
    assert first.documents[0].chunks[3].endswith(said)


def test_a_multimodal_document_is_linked_in_its_order_and_counted(folder):
    found = split_media([Document("piers.md", TEXT, "Piers")])
    with Index(recipe=iier(use_sim=False, use_kw=False), embedder=HashEmbedder()) as index:
        index.build(found.documents)
        graph = ChainGraph.of(index.view())
        assert [graph.neighbors[graph.indptr[i] : graph.indptr[i + 1]].tolist() for i in range(5)] == [
            [1], [0, 2], [1, 3], [2, 4], [3],
        ]  # fmt: skip
        assert index.stats()["media"] == {"text": 3, "table": 1, "image": 1, "images not described by a model": 1}
        assert index.stats()["interactions"]["structural"] == 4
        table = index.search("piers built north 1884", 1)[0]
        assert media_of(table.unit.id, table.unit.metadata)["kind"] == "table"
        assert index.documents()[0].metadata["media"][1]["reference"] == "maps/piers.png"
