"""Nothing in the folder that is indexed, or in the current one, is executed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.pdf import one_line_pdf

MODULES = (
    *("json", "re", "zlib", "numpy", "encodings", "site", "sitecustomize", "usercustomize", "subprocess", "threading"),
    *("ctypes", "pypdfium2", "pypdfium2_raw", "pydantic", "faiss", "typer", "rich", "yaml", "lxml", "docutils"),
    *("kreuzberg", "onnxruntime", "tokenizers", "langchain_core", "sire_plugin"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with documents, and modules that leave a trace when they are imported."""
    docs = tmp_path / "stranger-docs"
    trace = f"open({str(tmp_path / 'executed')!r}, 'a').write(__name__)\n"
    for name in MODULES:
        docs.mkdir(exist_ok=True)
        (docs / f"{name}.py").write_text(trace)
    for package in ("sire_core", "langchain_sire", "llama_index_sire"):
        (docs / package / "corpus").mkdir(parents=True)
        (docs / package / "__init__.py").write_text(trace)
        (docs / package / "corpus" / "__init__.py").write_text(trace)
    (docs / "evil.pth").write_text("import json\n")
    (docs / "lease.pdf").write_bytes(one_line_pdf("Leases end at noon in Ostend."))
    (docs / "rent.md").write_text("# Rent\n\nRent in Ostend is paid on Mondays.\n")
    return docs


def run(folder: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path[1:])))}
    environment |= {"SECRET_KEY": "sk-secret", "PWD": str(folder)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    assert not (folder.parent / "executed").exists(), (folder.parent / "executed").read_text()
    return done.stdout


def test_no_command_runs_code_of_the_current_folder(folder: Path) -> None:
    sire = shutil.which("sire", path=str(Path(sys.executable).parent))
    assert sire is not None
    index = "../ix"
    run(folder, sire, "index", ".", "--to", index)
    commands = (
        ("query", index, "When do leases end?"),
        ("ask", index, "When do leases end?"),
        ("add", index, "lease.pdf"),
        ("update", index, "lease.pdf"),
        ("sync", ".", "--to", index),
        ("stats", index),
        ("documents", index),
        ("check", index),
        ("recipes",),
        ("estimate", ".", "--llm", "openai:gpt-4o-mini"),
        ("advise", "."),
        ("backup", index, "../copy"),
        ("delete", index, "rent.md"),
    )
    script = folder.parent / "commands.py"  # one process for all: what takes long is to start it
    script.write_text(
        f"import sys\nfrom sire_core.cli import main\nfor words in {commands!r}:\n    sys.argv = ['sire', *words]\n"
        "    try:\n        main()\n    except SystemExit as end:\n        assert not end.code, words\n    print(words[0])\n"
    )
    told = run(folder, sys.executable, str(script))
    assert "Ostend" in told
    assert {words[0] for words in commands} <= set(told.splitlines())


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads the environment of another process")
def test_the_process_that_parses_sees_no_key_of_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sire_core.files.readers import read_documents

    psutil = pytest.importorskip("psutil")
    monkeypatch.setenv("SECRET_KEY", "sk-secret")
    monkeypatch.chdir(folder)
    seen: list[tuple[str, dict[str, str], list[str]]] = []
    before = {child.pid for child in psutil.Process().children()}

    def look(*_: object) -> None:
        children = [child for child in psutil.Process().children() if child.pid not in before]
        seen.extend((child.cwd(), child.environ(), child.cmdline()) for child in children)

    read_documents(folder / "lease.pdf", progress=look)
    ((current, environment, command),) = seen
    assert Path(current) != folder
    assert "-I" in command
    assert not {"SECRET_KEY", "PYTHONPATH", "HOME", "PATH"} & set(environment)
