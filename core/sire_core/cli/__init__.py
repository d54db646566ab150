"""The `sire` command. Nothing heavier than the standard library is imported before a command runs."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

from sire_core.isolated import tune_own_process

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit: 0 done, 1 an error that was explained, 2 wrong usage, 130 interrupted."""
    if find_spec("typer") is None or find_spec("rich") is None:
        sys.stderr.write('The sire command needs typer and rich: pip install "sire-rag[cli]"\n')
        raise SystemExit(2)
    try:
        from sire_core.cli.app import app
        from sire_core.cli.output import prepare_streams

        prepare_streams()
        tune_own_process()
        app(prog_name="sire")
    except KeyboardInterrupt:
        _leave()
    except SystemExit as stopped:
        if stopped.code == _INTERRUPTED:
            _leave()
        raise


def _leave() -> None:
    """End at once: worker threads may be in the middle of a long computation, and an orderly exit waits for them."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_INTERRUPTED)
