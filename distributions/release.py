"""Prepare a release: `make release VERSION=0.2.0` sets versions and the date, builds, and checks what is published.

Builds `sire-rag`, `langchain-sire` and `llama-index-retrievers-sire` into `dist/VERSION`, checks their metadata by
`twine`, and installs each from there into an empty environment, where it has to import and to run. Publishes nothing:
the last lines say how to. Without VERSION the version in the files is built and checked as it is.
"""

from __future__ import annotations

import argparse
import datetime as dt
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAIN = "sire-rag"
CHECKS = {
    "sire-rag": "from sire_core import Index",
    "langchain-sire": "from langchain_sire import SireRetriever",
    "llama-index-retrievers-sire": "from llama_index.retrievers.sire import SireRetriever",
}
"""What has to run in an environment that has one distribution, by its name."""
STATED_VERSION = re.compile(r'(?m)(?:(?<=^version = ")|(?<=^__version__ = ")|(?<=\]==))\d[^"]*(?=")')


def version_files(root: Path) -> list[Path]:
    """Files that state the version."""
    thin = (root / "distributions" / name / "pyproject.toml" for name in CHECKS if name != MAIN)
    return [root / "core/sire_core/version.py", root / "pyproject.toml", *thin]


def current_version(root: Path) -> str:
    """The version that all files state; refused where they differ."""
    stated = {version for path in version_files(root) for version in STATED_VERSION.findall(path.read_text())}
    if len(stated) != 1:
        raise SystemExit(f"The files state several versions: {', '.join(sorted(stated))}. Set one: VERSION=X.Y.Z.")
    return stated.pop()


def set_version(root: Path, version: str, day: dt.date) -> None:
    """Write a version everywhere, and its date into the changelog."""
    if not re.fullmatch(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?", version):
        raise SystemExit(f"{version!r} is no version to release. Write it as 0.2.0 or 0.2.0rc1.")
    changelog = root / "CHANGELOG.md"
    final = re.sub(r"(?:a|b|rc)\d+$", "", version)
    dated, count = re.subn(
        rf"(?m)^## {re.escape(final)} - (?:unreleased|\d{{4}}-\d\d-\d\d)$", f"## {final} - {day}", changelog.read_text()
    )
    if count != 1:
        raise SystemExit(f"CHANGELOG.md has no section '## {final} - unreleased'. Write what is new in {final} first.")
    changelog.write_text(dated)
    for path in version_files(root):
        path.write_text(STATED_VERSION.sub(version, path.read_text()))


def run(*command: str | Path, folder: Path = ROOT) -> None:
    """Run a command; stop at the first that fails."""
    print("$", *command, flush=True)
    if subprocess.run(list(map(str, command)), cwd=folder, check=False).returncode:
        raise SystemExit(f"Failed: {' '.join(map(str, command))}. Nothing was published.")


def build(root: Path, version: str) -> Path:
    """Build all distributions into `dist/VERSION`."""
    target = root / "dist" / version
    if target.exists():
        raise SystemExit(f"{target} exists. Delete it to build again.")
    for name in CHECKS:
        source = root if name == MAIN else root / "distributions" / name
        run(sys.executable, "-m", "build", "--outdir", target, source)
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(target.iterdir()))
    return target


def check(target: Path, version: str) -> None:
    """Install every distribution into an empty environment and use it there."""
    for name, code in CHECKS.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            python = folder / "environment" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
            run(sys.executable, "-m", "venv", folder / "environment")
            wanted = f"{name}[cli]=={version}" if name == MAIN else f"{name}=={version}"
            run(python, "-m", "pip", "install", "--quiet", "--find-links", target, wanted, folder=folder)
            run(python, "-c", code, folder=folder)
            if name == MAIN:
                run(python.with_name("sire"), "demo", folder=folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?")
    options = parser.parse_args()
    if options.version:
        set_version(ROOT, options.version, dt.datetime.now(tz=dt.timezone.utc).date())
    version = current_version(ROOT)
    target = build(ROOT, version)
    check(target, version)
    print(f"\n{target.relative_to(ROOT)} is checked. Commit the versions, then publish:")
    print(f"  git tag v{version} && git push --tags && {Path(sys.executable).name} -m twine upload {target}/*")


if __name__ == "__main__":
    main()
