"""Make an environment for every file of `requirements/`; what does not install is named in the table, with the reason.

    python benchmarks/peers/install.py [--only NAME...]

Every environment also has what our default embedder needs, so that all peers search over the same vectors.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLACE = ROOT / "build" / "peers"
EMBEDDER = ("numpy>=1.26", "scipy>=1.11", "scikit-learn>=1.4", "PyStemmer>=2.2", "bm25s>=0.2.6", "pydantic>=2.7,<3")


def install(requirements: Path) -> None:
    """One environment; the last words of pip are kept where it fails."""
    place = PLACE / requirements.stem
    if (place / "installed").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "-r", str(requirements), *EMBEDDER], check=False, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
    if done.returncode:
        (place / "failed").write_text("\n".join(said[:3]) + "\n")
        print(f"{requirements.stem}: not installed: {said[0] if said else done.returncode}")
        return
    (place / "failed").unlink(missing_ok=True)
    (place / "installed").touch()


def main() -> None:
    """Install all, or some."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[])
    given = parser.parse_args()
    for requirements in sorted((HERE / "requirements").glob("*.txt")):
        if not given.only or requirements.stem in given.only:
            install(requirements)


if __name__ == "__main__":
    main()
