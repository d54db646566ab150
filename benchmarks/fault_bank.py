"""Undo each past mend of `fault_bank.toml` in a copy: its tests must fail.

    python benchmarks/fault_bank.py                 # all faults; the exit code is 1 if one is missed
    python benchmarks/fault_bank.py storage files   # faults in these rooms, or of these commits
    python benchmarks/fault_bank.py --check         # only whether every undo fits the code of today, in a second

A fault is a commit that mended something and came with a test: a snippet of the code of today, and what stood in its
place. Where code changes, the snippet has to follow; a fault is removed only if what it breaks is gone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
BANK = Path(__file__).with_suffix(".toml")
SECONDS = 600
"""Time for the tests of one fault; a test that never ends has caught it, too."""


@dataclass(frozen=True)
class Edit:
    """A snippet of a file of today, and the snippet with the fault."""

    file: str
    today: str
    undone: str


@dataclass(frozen=True)
class Fault:
    """A past fault.

    Attributes:
        commit: The commit that mended it.
        about: What was wrong, as the message of that commit has it.
        edits: Snippets that mend it, each once in its file, and what stood there.
        tests: Tests that must fail, as pytest takes them.
    """

    commit: str
    about: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]

    @property
    def room(self) -> str:
        """Folder of the package, or the adapter."""
        parts = Path(self.edits[0].file).parts
        return parts[2].removesuffix(".py") if parts[0] == "core" else parts[0]


def read_bank(text: str) -> list[Fault]:
    """Read the faults of a file."""
    return [
        Fault(entry["commit"], entry["about"], tuple(Edit(**edit) for edit in entry["edits"]), tuple(entry["tests"]))
        for entry in tomllib.loads(text)["fault"]
    ]


def problem(fault: Fault, root: Path) -> str:
    """Return why a fault cannot be made in the code of today; empty if it can."""
    for edit in fault.edits:
        file = root / edit.file
        times = file.read_text(encoding="utf-8").count(edit.today) if file.is_file() else 0
        if times != 1:
            return f"a snippet occurs {times} times in {edit.file}"
    missing = [test for test in fault.tests if not (root / test.partition("::")[0]).is_file()]
    return f"there is no {missing[0]}" if missing else ""


def copy_tree(target: Path) -> None:
    """Copy the files of the repository, changed ones as they are."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in names.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def run_tests(root: Path, tests: tuple[str, ...]) -> int:
    """Return the exit code of pytest over tests of a copy: 0 all pass, 1 one fails."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "core"), str(root)])}
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return 1
    return done.returncode


def try_fault(fault: Fault, root: Path) -> str:
    """Make a fault in a copy, run its tests, and take it back; `caught`, `missed` or why it could not be tried."""
    if reason := problem(fault, root):
        return reason
    mended = {root / edit.file: (root / edit.file).read_text(encoding="utf-8") for edit in fault.edits}
    for edit in fault.edits:
        file = root / edit.file
        file.write_text(file.read_text(encoding="utf-8").replace(edit.today, edit.undone), encoding="utf-8")
    code = run_tests(root, fault.tests)
    for file, text in mended.items():
        file.write_text(text, encoding="utf-8")
    if code != 1:
        return "missed" if code == 0 else f"pytest ended with {code}"
    return "caught" if run_tests(root, fault.tests) == 0 else "its tests fail without it, too"


def main() -> None:
    """Try the faults that were chosen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chosen", nargs="*", metavar="ROOM_OR_COMMIT")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    faults = [
        fault
        for fault in read_bank(BANK.read_text(encoding="utf-8"))
        if not arguments.chosen or {fault.room, fault.commit} & set(arguments.chosen)
    ]
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        root = ROOT if arguments.check else Path(folder)
        if not arguments.check:
            copy_tree(root)
        for fault in faults:
            verdict = problem(fault, root) if arguments.check else try_fault(fault, root)
            verdicts.append(verdict or "fits")
            if verdict or not arguments.check:
                print(f"{verdicts[-1]:8} {fault.commit} {fault.room}: {fault.about}", flush=True)
    good = sum(verdict in ("caught", "fits") for verdict in verdicts)
    print(f"{good} of {len(verdicts)} {'fit the code of today' if arguments.check else 'caught'}")
    sys.exit(good < len(verdicts))


if __name__ == "__main__":
    main()
