"""What the package exports, and what it says where LangChain is missing."""

import importlib.metadata
import importlib.util
import subprocess
import sys

import langchain_sire

_BLOCKED = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("langchain_core", "langchain", "langsmith"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.split(".")[0])

sys.meta_path.insert(0, Missing())
"""


def _run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


def test_all_names_exist_and_nothing_else_is_promised():
    assert sorted(langchain_sire.__all__) == [
        "IRCoTRetriever",
        "LangChainChat",
        "LangChainEmbedder",
        "ReasoningChain",
        "ReasoningState",
        "SelfAskRetriever",
        "SireDocumentIndex",
        "SireDocumentTransformer",
        "SireRetriever",
        "SireVectorStore",
        "VectorStoreMirror",
        "VectorStoreSource",
        "create_ircot_chain",
        "create_ircot_graph",
        "create_self_ask_chain",
        "create_self_ask_graph",
        "create_sire_answer_tool",
        "create_sire_tool",
        "over_vector_store",
        "pool_documents",
    ]
    for name in langchain_sire.__all__:
        assert getattr(langchain_sire, name).__module__.startswith("langchain_sire.")
        assert getattr(langchain_sire, name).__doc__


def test_trap_missing_langchain_gives_one_error_that_names_the_extra():
    done = _run(_BLOCKED + "import langchain_sire")
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        'ImportError: langchain_sire needs LangChain: pip install "sire-rag[langchain]"'
    )


def test_trap_core_works_without_langchain():
    code = _BLOCKED + (
        "from sire_core import Index, Document\n"
        "index = Index(recipe='flat'); index.build([Document('a', 'Petra wrote the song.')])\n"
        "print(index.search('Who wrote the song?', 1)[0].doc_ids)"
    )
    done = _run(code)
    assert done.stdout.strip() == "('a',)", done.stderr


def test_trap_neither_side_loads_the_other():
    code = "import sys, {0}; print([m for m in sys.modules if m.split('.')[0] in {1!r}])"
    assert _run(code.format("sire_core", ("langchain_core", "llama_index"))).stdout.strip() == "[]"
    assert (
        _run(
            code.format("langchain_sire", ("llama_index", "langchain", "langchain_openai", "langgraph"))
        ).stdout.strip()
        == "[]"
    )


def test_missing_langgraph_gives_one_error_that_names_the_extra():
    code = _BLOCKED.replace('("langchain_core", "langchain", "langsmith")', '("langgraph",)') + (
        "from langchain_sire import SireRetriever, create_ircot_graph\n"
        "from sire_core.index import Index\n"
        "create_ircot_graph(SireRetriever(index=Index()))"
    )
    done = _run(code)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        'ImportError: A graph needs LangGraph: pip install "sire-rag[langgraph]"'
    )


def test_a_broken_langchain_is_not_called_missing():
    broken = _BLOCKED.replace('("langchain_core", "langchain", "langsmith")', '("jsonpatch", "tenacity")')
    done = _run(broken + "import langchain_sire")
    assert done.returncode == 1
    assert "sire-rag[langchain]" not in done.stderr


def test_trap_no_package_called_core_is_installed():
    files = importlib.metadata.files("sire-rag") or []
    assert not [file for file in files if file.parts[0] == "core"]
    assert importlib.util.find_spec("sire_core") is not None


def test_typed_marker_is_there():
    assert (importlib.util.find_spec("langchain_sire").submodule_search_locations[0]) is not None
    from importlib.resources import files

    assert files("langchain_sire").joinpath("py.typed").is_file()
