"""Counts that may only fall, in `ceilings.toml`."""

import re
import sys
from pathlib import Path

FILE = Path(__file__).with_name("ceilings.toml")
SHOWN = 12


def read(section, text=None):
    text = FILE.read_text(encoding="utf-8") if text is None else text
    body = re.search(rf"^\[{section}\]\n(.*?)(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: int(count) for name, count in re.findall(r"^(\w+) = (\d+)", body[1] if body else "", re.MULTILINE)}


def lowered(section, counts, text):
    head, found, rest = text.partition(f"[{section}]\n")
    body, _, tail = rest.partition("\n[")
    for name, ceiling in read(section, text).items():
        body = re.sub(rf"^{name} = \d+", f"{name} = {min(ceiling, counts[name])}", body, flags=re.MULTILINE)
    return head + found + body + (f"\n[{tail}" if tail else "")


def report(section, findings, *, lower=False, show=()):
    """Print what is above its ceiling, and return the exit code.

    Args:
        section: Section of the file.
        findings: By check, a line for each thing that counts.
        lower: Whether to write counts that have fallen.
        show: Checks whose findings are printed in any case.
    """
    text = FILE.read_text(encoding="utf-8")
    ceilings = read(section, text)
    failed = 0
    for name, lines in findings.items():
        count, ceiling = len(lines), ceilings.get(name, 0)
        if count > ceiling or name in show:
            failed += count > ceiling
            shown = lines if name in show else lines[:SHOWN]
            listed = "".join(f"\n  {line}" for line in shown)
            sys.stdout.write(f"{section}.{name}: {count}, at most {ceiling} are allowed.{listed}\n")
            if len(shown) < count:
                sys.stdout.write(f"  ... ({Path(sys.argv[0]).name} {name} lists all)\n")
    fallen = [name for name, lines in findings.items() if len(lines) < ceilings.get(name, 0)]
    if lower:
        counts = {name: len(lines) for name, lines in findings.items()}
        FILE.write_text(lowered(section, counts, text), encoding="utf-8")
    elif fallen:
        sys.stdout.write(f"{section}: {', '.join(fallen)} can be lowered ({Path(sys.argv[0]).name} --lower).\n")
    return int(failed > 0)
