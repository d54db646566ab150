"""The adapters' tests with the lowest versions that pyproject.toml allows and with the latest, each in an environment
of its own: the bounds that we declare are the ones that work, and no framework needs the other one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
RUNNERS = ("pytest", "pytest-asyncio", "hypothesis")
LANGCHAIN = ("tests/unit/langchain_sire", "tests/unit/adapters")
LLAMA_INDEX = ("tests/unit/llama_index_sire", "tests/unit/adapters")
MCP = ("tests/unit/serve", "tests/integration/test_mcp_process.py", "tests/integration/test_server_matrix.py")
CASES = {
    "langchain": (
        ("langchain", "langgraph"),
        ("langchain-tests", "langchain-classic", "langchain-text-splitters", "langchain-openai"),
        LANGCHAIN,
    ),
    "llama-index": (("llama-index",), (), LLAMA_INDEX),
    "mcp": (("mcp", "cli", "openai"), (), MCP),
}
OTHER = {
    "langchain": ("llama_index_sire", 'llama_index_sire needs LlamaIndex: pip install "sire-rag[llama-index]"'),
    "llama-index": ("langchain_sire", 'langchain_sire needs LangChain: pip install "sire-rag[langchain]"'),
}


def lowest(extras):
    """`name==version` for every requirement of some extras that has a lower bound."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = []
    for extra in extras:
        (listed,) = re.findall(rf"^{extra} = \[(.*?)\]\s*(?:#.*)?$", text, re.MULTILINE)
        found += re.findall(r'"([a-z][a-z-]*(?:\[\w+\])?)>=([0-9.]+)', listed)
    return [f"{name}=={version}" for name, version in found]


def run(*command, cwd, timeout, **variables):
    env = {**os.environ, **variables}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False, env=env)


def word_lists(environment):
    """LlamaIndex 0.13 brings the word lists of NLTK, but does not look where they are: it downloads them."""
    return os.pathsep.join(map(str, environment.glob("env/**/llama_index/core/_static/nltk_cache")))


def test_the_lower_bounds_are_read():
    assert [found.split("==")[0] for found in lowest(("langchain", "langgraph"))] == [
        "langchain-core",
        "tqdm",
        "langgraph",
    ]
    assert [found.split("==")[0] for found in lowest(("llama-index",))] == ["llama-index-core"]
    assert [found.split("==")[0] for found in lowest(("openai",))] == ["openai[aiohttp]"]


@pytest.mark.parametrize("versions", ["lowest", "latest"])
@pytest.mark.parametrize("case", list(CASES))
def test_adapters_work_with(case, versions, tmp_path):
    extras, more, tests = CASES[case]
    made = run(sys.executable, "-m", "venv", "env", cwd=tmp_path, timeout=300)
    assert made.returncode == 0, made.stderr
    python = tmp_path / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    # What else the tests import, such as the framework's own suites, comes in any version that fits.
    pins = lowest(extras) if versions == "lowest" else []
    wanted = ["-e", f"{ROOT}[{','.join(extras)}]", *pins, *more, *RUNNERS]
    installed = run(python, "-m", "pip", "install", "--quiet", *wanted, cwd=tmp_path, timeout=1800)
    assert installed.returncode == 0, installed.stderr

    # Old releases warn about newer releases of what they use; our own warnings are errors in the other runs.
    options = ("-q", "-p", "no:cacheprovider", "-o", "filterwarnings=ignore")
    done = run(python, "-m", "pytest", *options, *tests, cwd=ROOT, timeout=1800, NLTK_DATA=word_lists(tmp_path))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "passed" in done.stdout
    if case in OTHER:
        package, message = OTHER[case]
        refused = run(python, "-c", f"import {package}", cwd=tmp_path, timeout=60)
        assert refused.stderr.strip().splitlines()[-1] == f"ImportError: {message}"
