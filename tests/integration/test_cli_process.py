"""The command as a process: exit codes, signals, pipes, locales."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.command import run, run_python

SIRE = [sys.executable, "-m", "sire_core.cli"]


def sire(*words, **options):
    return subprocess.run([*SIRE, *map(str, words)], capture_output=True, check=False, timeout=600, **options)


def cpu_seconds(pid):
    """What a process used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    documents = [{"id": f"d{i}", "title": f"Žofie {i}", "text": f"Žofie {i} met Ada. " * 40} for i in range(30)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    run("index", folder / "corpus.jsonl", "--to", folder / "ix", "-r", "flat")
    return folder / "ix"


def test_help_loads_nothing_heavy():
    code = (
        "import sys; sys.argv = ['sire', '--help']\n"
        "from sire_core.cli import main\n"
        "try: main()\n"
        "except SystemExit as done: assert not done.code\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'faiss', 'torch', 'sqlite3', 'asyncio'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = run_python(code)
    assert "demo" in done.stdout


def test_without_typer_one_line_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None\nfrom sire_core.cli import main\nmain()"
    done = run_python(code, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert 'pip install "sire-rag[cli]"' in done.stderr


def test_the_demo_answers_without_a_key(tmp_path):
    environment = {name: value for name, value in os.environ.items() if "KEY" not in name}
    done = sire("demo", cwd=tmp_path, env=environment, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.count("\nQuestion ") == 3
    assert all(answer in done.stdout for answer in ("Hedda Sorrel", "1931", "Hale & Dunmore"))
    assert done.stdout.count("     why   ") >= 12
    assert not list(tmp_path.iterdir())


@pytest.mark.quick(flags=[["--json"]])
@pytest.mark.parametrize("flags", [["--json"], ["--explain"], []])
def test_a_reader_that_leaves_early_causes_no_noise(index, flags):
    command = [*SIRE, "query", str(index), "Ada", "-k", "30", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # before anything was written: every write fails
        errors = process.stderr.read()
    assert errors == b""
    assert process.returncode == 1


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_any_locale_can_print_any_text(index, encoding):
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    environment["PYTHONIOENCODING"] = encoding
    code = f"""
from sire_core.cli import main
for words in ([], ["--json"]):
    sys.argv = ["sire", "query", {str(index)!r}, "\\u017dofie", "-k", "1", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code
    print(flush=True)
"""
    people, scripts = run_python("import sys" + code, env=environment, encoding=encoding).stdout.split("\n\n[")
    assert ("Žofie" if encoding == "utf-8" else "\\u017dofie") in people
    assert json.loads("[" + scripts)[0]["title"].startswith("Žofie")


@pytest.mark.data
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads a process's CPU time")
@pytest.mark.quick(passages=[2000])
@pytest.mark.parametrize("passages", [2000, 6119])
def test_an_interrupted_build_is_resumed_by_the_same_command(tmp_path, sire_data, passages):
    import resource  # not on every system

    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    rows = (sire_data / "2wikimultihopqa" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("\n".join(rows[:passages]), encoding="utf-8")
    words = ["index", str(corpus), "--to", str(tmp_path / "ix"), "--recipe", "raptor"]
    with subprocess.Popen([*SIRE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and cpu_seconds(process.pid) < passages / 5000 + 0.8:  # workers have the most
            time.sleep(0.05)  # until it is in the middle of the build
        process.send_signal(signal.SIGINT)
        before = used() + cpu_seconds(process.pid)
        output, errors = process.communicate(timeout=600)
    assert process.returncode == 130, errors
    # It does not finish what it was at: a build takes tens of seconds from here, if it is large.
    assert used() - before < passages / 1000
    assert output == ""
    assert "Run the same command again to resume." in errors
    assert "Traceback" not in errors
    unfinished = sire("query", tmp_path / "ix", "Ada", text=True)
    assert unfinished.returncode == 1
    assert "the build did not finish" in unfinished.stderr
    resumed = sire(*words, "--json", text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["added"] == passages
    again = sire(*words, text=True)
    assert again.returncode == 0
    assert "Nothing changed" in again.stdout
