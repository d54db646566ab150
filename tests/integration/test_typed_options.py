"""Options as typed keywords: what the `TypedDict`s declare is what the code takes, and editors list it.

That wrong keywords are refused is in `tests/typing`, which `make lint` checks with mypy.
"""

import inspect
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from llama_index.core import chat_engine
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.workflow import Workflow

import langchain_sire
import llama_index_sire
from langchain_sire import options as langchain_options
from llama_index_sire import options as llama_options
from sire_core import Index
from sire_core.index_options import IndexOptions
from sire_core.reason import IRCoTConfig, ReasoningLimits, SelfAskConfig
from sire_core.reason.options import AnyReasonerOptions, IRCoTOptions, ReasonerOptions, SelfAskOptions

ROOT = Path(__file__).parents[2]


def declared(options: type) -> dict[str, str]:
    """Types by name, as source."""
    return {key: getattr(kind, "__forward_arg__", kind) for key, kind in options.__annotations__.items()}


def taken(function, *without: str) -> dict[str, str]:
    """Keywords of a function with their types."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.annotation for p in parameters if p.name not in ("self", *without) and p.kind != p.VAR_KEYWORD}


def field_names(form: type) -> set[str]:
    return {"search_k" if field.name == "k" else field.name for field in fields(form)}


def test_arguments_of_an_index():
    assert declared(IndexOptions) == taken(Index.__init__, "path", "recipe", "language_model", "embedder")


def test_options_of_reasoning():
    shared = {"k", "on_model_error", *(field.name for field in fields(ReasoningLimits))}
    assert set(declared(ReasonerOptions)) == shared
    assert set(declared(IRCoTOptions)) == shared | field_names(IRCoTConfig)
    assert set(declared(SelfAskOptions)) == shared | field_names(SelfAskConfig)
    assert set(declared(AnyReasonerOptions)) == shared | field_names(IRCoTConfig) | field_names(SelfAskConfig)


def test_fields_of_langchains_retrievers():
    for form, kind in (
        (langchain_options.RetrieverFields, langchain_sire.SireRetriever),
        (langchain_options.ReasoningFields, langchain_sire.IRCoTRetriever),
    ):
        assert set(declared(form)) == set(kind.model_fields) - {"index"}


def test_fields_of_llamaindex_retrievers_and_engines():
    made = taken(llama_index_sire.SireRetriever.__init__, "index")
    assert declared(llama_options.ViewOptions) == made
    engine = taken(RetrieverQueryEngine.from_args, "retriever")
    of_search = {*declared(llama_options.SearchFields), "recipe"}
    assert set(declared(llama_options.QueryEngineOptions)) == set(engine) | of_search
    kinds = ("CondensePlusContextChatEngine", "ContextChatEngine", "CondenseQuestionChatEngine")
    chats = [taken(getattr(chat_engine, kind).from_defaults, "retriever", "query_engine") for kind in kinds]
    assert set(declared(llama_options.ChatEngineOptions)) == set(engine).union(of_search, *chats)
    assert set(declared(llama_options.WorkflowOptions)) < set(taken(Workflow.__init__))
    assert set(declared(llama_options.EngineOptions)) == set(
        taken(llama_index_sire.IRCoTQueryEngine.__init__, "source", "llm")
    )


@pytest.mark.quick(call=["lc.create_ircot_chain(", "li.SireRetriever.from_documents("])
@pytest.mark.parametrize(
    ("call", "listed"),
    [
        ("lc.SireRetriever(", "index k filter returns search_type search_kwargs title_key"),
        (
            "lc.SireRetriever.from_documents(",
            "documents embedding llm path k filter chunker allow ranker rerank limits",
        ),
        ("lc.SireRetriever.load(", "path embedding recipe k allow as_of"),
        ("lc.SireVectorStore(", "path provenance llm chunker"),
        ("lc.create_ircot_chain(", "retriever llm flavor search_k max_calls on_model_error"),
        ("li.SireRetriever(", "index similarity_top_k filters scores"),
        ("li.SireRetriever.from_documents(", "persist_dir embed_model similarity_top_k chunker ranker rerank ids"),
        ("li.SireRetriever.from_persist_dir(", "llm filters allow workers"),
    ],
)
def test_completion_lists_the_options(call, listed):
    jedi = pytest.importorskip("jedi")
    names = {"lc": langchain_sire, "li": llama_index_sire}
    completed = {name.name.rstrip("=") for name in jedi.Interpreter(call, [names]).complete(1, len(call))}
    assert not set(listed.split()) - completed


@pytest.mark.slow
def test_pyright_agrees_with_mypy(tmp_path):
    """In an environment of its own; basedpyright is pyright with its JavaScript in the wheel."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    programs = tmp_path / "env" / "bin"
    subprocess.run([programs / "pip", "install", "-q", "basedpyright"], check=True, timeout=300)
    configuration = {
        "include": [str(ROOT / "tests" / "typing")],
        "extraPaths": [str(ROOT / "core"), str(ROOT)],
        "typeCheckingMode": "standard",
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(configuration))
    command = [programs / "basedpyright", "-p", tmp_path, "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    report = json.loads(done.stdout)
    assert report["generalDiagnostics"] == []
    assert report["summary"]["filesAnalyzed"] == 2
