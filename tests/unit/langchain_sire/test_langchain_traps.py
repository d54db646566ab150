"""Traps of the framework that belong to no single component."""

import ast
import sys
import time
from pathlib import Path

import pytest
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_scripted_chat import model

import langchain_sire
from langchain_sire import LangChainChat, SireDocumentTransformer, SireRetriever
from sire_core.index import Index
from sire_core.protocols import Prompt
from sire_core.testing.doubles import HashEmbedder

PACKAGE = Path(langchain_sire.__file__).parent
ALLOWED = {"langchain_core", "langgraph", "langchain_sire", "sire_core", "pydantic", "numpy", "typing_extensions"}


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]


def test_trap_adapters_rot_so_only_langchain_core_is_imported():
    """`langchain.retrievers` and `langchain_classic` come and go; nothing may lean on them, not even lazily.

    The middleware alone is made for `langchain`, and loads when it is asked for.
    """
    found = {path.name: set(_imports(path)) for path in PACKAGE.glob("*.py")}
    found["middleware.py"] -= {"langchain"}
    assert len(found) > 10
    wrong = {name: sorted(roots - ALLOWED - set(sys.stdlib_module_names)) for name, roots in found.items()}
    assert not {name: roots for name, roots in wrong.items() if roots}


@pytest.mark.parametrize("word", ["nest_asyncio", "get_event_loop(", "asyncio.run(", "pickle"])
def test_trap_event_loops_are_left_alone(word):
    assert not [path.name for path in PACKAGE.glob("*.py") if word in path.read_text(encoding="utf-8")]


async def test_trap_braces_in_questions_and_passages_are_text():
    """Templates would read them as variables; prompts are made by our own formatter."""
    chat = model("Petra {x}.")
    done = await LangChainChat(chat).complete(Prompt('Answer as {"a": 1} or {{b}}.', "A {passage} with {{braces}}."))
    system, user = (message.content for message in chat.log[0]["messages"])
    assert 'Answer as {"a": 1} or {{b}}.' in system
    assert "A {passage} with {{braces}}." in user
    assert done.text == "Petra {x}."


def test_braces_are_found_and_shown_as_they_are():
    retriever = SireRetriever.from_texts(["Use {name} in a template.", "Otto sang it."], recipe="flat", k=1)
    assert retriever.invoke("What is {name} in {{a}} template?")[0].page_content == "Use {name} in a template."


def test_trap_making_an_object_reads_nothing_writes_nothing_and_asks_nobody(tmp_path):
    """A constructor that indexes fails in every notebook and server."""

    class Refusing(HashEmbedder):
        async def embed(self, texts, kind="document"):
            raise AssertionError("a constructor embedded")

    chat = model(AssertionError("a constructor asked"))
    folder = tmp_path / "nothing"
    SireRetriever(index=Index(folder, embedder=Refusing(), language_model=LangChainChat(chat)))
    SireRetriever.open(folder, Refusing(), llm=chat)
    SireDocumentTransformer("raptor", embedding=Refusing(), llm=chat, path=folder)
    assert chat.log == []
    assert not folder.exists()


async def test_trap_the_rate_limiter_of_the_users_model_is_the_one_that_counts():
    limiter = InMemoryRateLimiter(requests_per_second=10, check_every_n_seconds=0.01, max_bucket_size=1)
    bridge = LangChainChat(model("x", rate_limiter=limiter))
    start = time.perf_counter()
    for _ in range(4):
        await bridge.complete(Prompt("Who?"))
    assert time.perf_counter() - start >= 0.25  # the fourth call waits for three tokens
