"""`examples/apps/*_library.py`, run on folders that change, with every class that they show."""

import gc
import json
import runpy
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms.mock import MockLLM
from llama_index.core.schema import NodeWithScore

from support.listening_llm import ListeningLLM

pytest.importorskip("langchain.agents", reason="langchain is a development dependency")
pytest.importorskip("langchain_classic", reason="langchain-classic is a development dependency")
pytestmark = [
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince211"),
    # LlamaIndex's `Memory` never closes the connection of its store; it is collected here, not in another test.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def collected():
    yield
    gc.collect()


APPS = Path(__file__).parents[2] / "examples" / "apps"
FILES = {
    "petra.md": "# Petra Quillon\n\nPetra Quillon was born in Varn Harbour.\n\n## Films\n\nShe directed The Salt Lantern.",
    "otto.md": "# Otto Brack\n\nOtto Brack commanded a steamship on Lake Lindle.",
}
QUESTION = "Where was Petra Quillon born?"


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def app(name):
    return runpy.run_path(str(APPS / f"{name}.py"))


class Answering(GenericFakeChatModel):
    def bind_tools(self, tools, **kwargs):
        return self


def test_langchain(folder, tmp_path_factory):
    library = app("langchain_library")["Library"](folder, tmp_path_factory.mktemp("store") / "i")
    assert library.sync()["num_added"] == 3
    found = library.ensemble(DeterministicFakeEmbedding(size=16)).invoke(QUESTION)
    assert len({d.page_content for d in found}) == len(found) == 3
    model = Answering(messages=iter([AIMessage("In Varn Harbour [petra.md].")]))
    state = library.agent(model).invoke({"messages": [{"role": "user", "content": QUESTION}]})
    assert "petra.md" in {d.metadata["source"] for d in state["sire_documents"]}
    replies = [{"reasoning": "So.", "search": "DONE"}, {"answer": "Varn Harbour", "citations": [1], "sufficient": True}]
    chain = library.chain(GenericFakeChatModel(messages=iter([AIMessage(json.dumps(reply)) for reply in replies])))
    assert chain.invoke(QUESTION)["answer"].startswith("Varn Harbour")
    (folder / "otto.md").unlink()
    (folder / "petra.md").write_text("# Petra Quillon\n\nNothing is known.")
    assert library.sync()["num_deleted"] == 3
    other = app("langchain_library")["SireRetriever"].open(library.documents.index.path, k=9)
    assert [d.page_content for d in other.invoke("Otto Brack Petra Quillon")] == [
        "# Petra Quillon  \nNothing is known."
    ]


class Reversed(BaseRetriever):
    def __init__(self, nodes):
        self._nodes = nodes
        super().__init__()

    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=node, score=1.0) for node in reversed(self._nodes)]


async def test_llama_index(folder, tmp_path_factory):
    make = app("llama_index_library")["Library"]
    store = tmp_path_factory.mktemp("store") / "i"
    library = make(folder, store)
    nodes = library.nodes()
    fusion = library.fusion(Reversed(nodes), MockLLM())
    found = fusion.retrieve(QUESTION)
    assert len({n.node_id for n in found}) == len(found) == len(nodes)
    assert all(
        n.score > 1 / 61 for n in found if n.node_id in {f.node_id for f in library.retriever.retrieve(QUESTION)}
    )
    assert library.router(Reversed(nodes), MockLLM()) is not None
    assert len(library.chat(MockLLM(max_tokens=8)).chat(QUESTION).source_nodes) > 0
    llm = ListeningLLM(seen=[])
    assert "Varn Harbour" in await library.answer(llm, QUESTION)
    assert '"document": "petra.md"' in llm.seen[0]
    (folder / "petra.md").write_text("# Petra Quillon\n\nNothing is known.")
    texts = {n.node.get_content() for n in make(folder, store).retriever.retrieve("Petra Quillon")}
    assert any("Nothing is known" in text for text in texts)
    assert not any("Varn Harbour" in text for text in texts)


@pytest.mark.parametrize("name", ["langchain_library", "llama_index_library"])
def test_they_run_as_their_users_run_them(folder, name, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [name, str(folder), QUESTION])

    def run():
        runpy.run_path(str(APPS / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    assert "[petra.md]" in run()
    (folder / "petra.md").unlink()
    (folder / "new.md").write_text("# Varn Harbour\n\nA town where Maren Holt was born.")
    out = run()
    assert "[new.md]" in out
    assert "[petra.md]" not in out
