"""Each framework alone, in a fresh environment: its adapter works, the other one says what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

SMOKE = {
    "langchain": """
from langchain_core.documents import Document
from langchain_sire import SireRetriever
documents = [Document(id="a", page_content="Ada wrote notes."), Document(id="b", page_content="Bees make honey.")]
found = SireRetriever.from_documents(documents, recipe="flat", k=1).invoke("Who makes honey?")
print([document.metadata["sire"]["doc_ids"] for document in found])
""",
    "llama-index": """
from llama_index.core.schema import Document
from llama_index_sire import SireRetriever
documents = [Document(id_="a", text="Ada wrote notes."), Document(id_="b", text="Bees make honey.")]
found = SireRetriever.from_documents(documents, recipe="flat", similarity_top_k=1).retrieve("Who makes honey?")
print([[node.node.ref_doc_id] for node in found])
""",
}
OTHER = {
    "langchain": ("llama_index_sire", 'llama_index_sire needs LlamaIndex: pip install "sire-rag[llama-index]"'),
    "llama-index": ("langchain_sire", 'langchain_sire needs LangChain: pip install "sire-rag[langchain]"'),
}


def run(*command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=900, check=False)


@pytest.mark.parametrize("extra", list(SMOKE))
def test_one_framework_alone(extra, tmp_path):
    made = run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    python = tmp_path / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    installed = run(python, "-m", "pip", "install", "--quiet", "-e", f"{ROOT}[{extra}]", cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr

    smoke = run(python, "-c", SMOKE[extra], cwd=tmp_path)
    assert smoke.returncode == 0, smoke.stderr
    assert smoke.stdout.strip() == "[['b']]"

    package, message = OTHER[extra]
    refused = run(python, "-c", f"import {package}", cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.strip().splitlines()[-1] == f"ImportError: {message}"
