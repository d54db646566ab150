"""What the package exports, and what it says where LlamaIndex is missing."""

import subprocess
import sys
from importlib.resources import files

import llama_index_sire

_BLOCKED = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("llama_index", "llama_index_instrumentation", "workflows"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.split(".")[0])

sys.meta_path.insert(0, Missing())
"""


def _run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


def test_all_names_exist_and_nothing_else_is_promised():
    assert llama_index_sire.__all__ == [
        "AnswerEvent",
        "AnswerPieceEvent",
        "IRCoTQueryEngine",
        "IntermediateAnswerEvent",
        "LlamaIndexEmbedder",
        "LlamaIndexModel",
        "ReasoningWorkflow",
        "RetrievedEvent",
        "SelfAskQueryEngine",
        "SingleQueryEngine",
        "SireMemoryBlock",
        "SireNodeParser",
        "SireRerank",
        "SireRetriever",
        "SubQuestionEvent",
        "ThoughtEvent",
        "VectorStoreMirror",
        "VectorStoreSource",
        "create_sire_answer_tool",
        "create_sire_tool",
        "over_vector_store",
        "to_documents",
        "to_filter",
    ]
    for name in llama_index_sire.__all__:
        assert getattr(llama_index_sire, name).__module__.startswith("llama_index_sire.")
        assert getattr(llama_index_sire, name).__doc__
    assert files("llama_index_sire").joinpath("py.typed").is_file()


def test_trap_missing_llama_index_gives_one_error_that_names_the_extra():
    done = _run(_BLOCKED + "import llama_index_sire")
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        'ImportError: llama_index_sire needs LlamaIndex: pip install "sire-rag[llama-index]"'
    )


def test_a_broken_llama_index_is_not_called_missing():
    broken = _BLOCKED.replace('("llama_index", "llama_index_instrumentation", "workflows")', '("dataclasses_json",)')
    done = _run(broken + "import llama_index_sire")
    assert done.returncode == 1
    assert "dataclasses_json" in done.stderr
    assert "sire-rag[llama-index]" not in done.stderr


def test_trap_neither_side_loads_the_other_and_settings_are_not_resolved_at_import():
    code = "import sys, {0}; print([m for m in sys.modules if m.split('.')[0] in {1!r}])"
    assert _run(code.format("sire_core", ("langchain_core", "llama_index"))).stdout.strip() == "[]"
    settings = "; from llama_index.core import Settings; print(Settings._llm, Settings._embed_model)"
    done = _run(code.format("llama_index_sire", ("langchain_core", "langchain")) + settings)
    assert done.stdout.split("\n")[:2] == ["[]", "None None"]
