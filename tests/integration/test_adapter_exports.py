"""What the packages export, load and say where a framework is missing or broken; each in a process of its own."""

import importlib.metadata
import importlib.util
import subprocess
import sys
from importlib import import_module
from importlib.resources import files

import pytest

NAMES = {
    "langchain_sire": (
        "EvidenceCompressor IRCoTRetriever LangChainChat LangChainEmbedder ReasoningChain ReasoningState SelfAskRetriever "
        "SireBackend SireDocumentTransformer SireEmbeddings SireLoader SireMiddleware SireParser SireRetriever SireTranslator SireVectorStore VectorStoreMirror "
        "VectorStoreSource create_ircot_chain create_ircot_graph create_self_ask_chain create_self_ask_graph create_sire_answer_tool create_sire_tool "
        "over_vector_store pool_documents question_of"
    ),
    "llama_index_sire": (
        "AnswerEvent AnswerPieceEvent ConversationRetriever EvidencePostprocessor IRCoTQueryEngine IntermediateAnswerEvent LlamaIndexEmbedder "
        "LlamaIndexModel "
        "ReasoningWorkflow RetrievedEvent SelfAskQueryEngine SingleQueryEngine SireEmbedding SireMemoryBlock SireNodeParser "
        "SireReader SireRerank SireRetriever SubQuestionEvent ThoughtEvent VectorStoreMirror VectorStoreSource "
        "create_sire_answer_tool create_sire_tool over_vector_store to_documents to_filter"
    ),
}
LANGCHAIN = ("langchain_core", "langchain", "langsmith")
LLAMA_INDEX = ("llama_index", "llama_index_instrumentation", "workflows")
GRAPH = (
    "from langchain_sire import SireRetriever, create_ircot_graph; from sire_core.index import Index; "
    "create_ircot_graph(SireRetriever(index=Index()))"
)
MISSING = 'ImportError: {} needs {}: pip install "sire-rag[{}]"'


def run(code, *missing, before=""):
    """Run code in a process where some packages are missing, after other code in the same process."""
    blocked = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.split(".")[0])

sys.meta_path.insert(0, Missing())
"""
    words = [sys.executable, "-c", before + blocked + code]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("package", NAMES)
def test_all_names_exist_and_nothing_else_is_promised(package):
    module = import_module(package)
    assert module.__all__ == NAMES[package].split()
    for name in module.__all__:
        assert getattr(module, name).__module__.startswith(f"{package}.")
        assert getattr(module, name).__doc__
    assert files(package).joinpath("py.typed").is_file()


@pytest.mark.parametrize(
    ("package", "missing", "named"),
    [
        ("langchain_sire", LANGCHAIN, ("LangChain", "langchain")),
        ("llama_index_sire", LLAMA_INDEX, ("LlamaIndex", "llama-index")),
    ],
)
def test_what_is_missing_gives_one_error_that_names_the_extra(package, missing, named):
    done = run(f"import {package}", *missing)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == MISSING.format(package, *named)


@pytest.mark.parametrize(
    ("package", "missing"), [("langchain_sire", ("jsonpatch", "tenacity")), ("llama_index_sire", ("dataclasses_json",))]
)
def test_a_broken_framework_is_not_called_missing(package, missing):
    done = run(f"import {package}", *missing)
    assert done.returncode == 1
    assert "No module named" in done.stderr
    assert "sire-rag[" not in done.stderr


def test_the_core_works_without_frameworks():
    code = (
        "from sire_core import Index, Document\n"
        "index = Index(recipe='flat'); index.build([Document('a', 'Petra wrote the song.')])\n"
        "print(index.search('Who wrote the song?', 1)[0].doc_ids)"
    )
    done = run(code, *LANGCHAIN, *LLAMA_INDEX)
    assert done.stdout.strip() == "('a',)", done.stderr


def others_of(package, *others):
    """Code that imports a package and prints which others came with it."""
    return f"import sys, {package}; print([name for name in sys.modules if name.split('.')[0] in {others!r}])"


def test_langchain_sire_loads_no_other_side_and_a_graph_names_its_extra():
    others = others_of("langchain_sire", "llama_index", "langchain", "langchain_openai", "langgraph")
    done = run(GRAPH, "langgraph", before=others)
    assert done.stdout == "[]\n", done.stderr
    assert done.stderr.strip().splitlines()[-1] == MISSING.format("A graph", "LangGraph", "langgraph")


def test_llama_index_sire_loads_no_other_side_and_no_default_model():
    settings = "from llama_index.core import Settings; print(Settings._llm, Settings._embed_model)"
    done = run(settings, before=others_of("llama_index_sire", "langchain_core", "langchain"))
    assert done.stdout == "[]\nNone None\n", done.stderr  # models are not resolved


def test_no_package_called_core_is_installed():
    listed = importlib.metadata.files("sire-rag") or []
    assert not [file for file in listed if file.parts[0] == "core"]
    assert importlib.util.find_spec("sire_core") is not None
