"""`on_terminal`: the command line as a process on a terminal."""

import os
import subprocess
import sys

import pytest


def on_terminal(*words, columns, folder=None, code=0, count=int):
    """What the terminal shows, stderr, and what `count` said at every read."""
    pty = pytest.importorskip("pty", reason="terminals are a matter of Unix")
    main, side = pty.openpty()
    environment = {**os.environ, "PYTHONUTF8": "1", "TERM": "xterm-256color", "COLUMNS": str(columns)}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-c", "from sire_core.cli import main; main()", *map(str, words)]
    shown, counts = b"", []
    with subprocess.Popen(command, stdout=side, stderr=subprocess.PIPE, env=environment, cwd=folder) as process:
        os.close(side)
        while True:
            try:
                read = os.read(main, 4096)
            except OSError:  # how Linux reports the end of a terminal
                break
            if not read:
                break
            shown += read
            counts.append(count())
        errors = process.stderr.read().decode()
    os.close(main)
    assert process.returncode == code, errors
    return shown.decode().replace("\r\n", "\n"), errors, counts
