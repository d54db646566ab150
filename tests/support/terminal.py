"""The command line on a terminal, inside the test's own process."""

import io
import os
import sys
import threading

import pytest


def _end(words):
    from sire_core.cli.app import app

    with pytest.raises(SystemExit) as ended:
        app([str(word) for word in words], prog_name="sire")
    return ended.value.code or 0


def on_terminal(*words, columns, folder=None, code=0, count=int):
    """What the terminal shows, stderr, and what `count` said at every read."""
    pty = pytest.importorskip("pty", reason="terminals are a matter of Unix")
    main, side = pty.openpty()
    shown, counts = [], []

    def look():
        try:
            while read := os.read(main, 4096):
                shown.append(read)
                counts.append(count())
        except OSError:  # how Linux reports the end of a terminal
            pass

    reader = threading.Thread(target=look)
    reader.start()
    try:
        with pytest.MonkeyPatch.context() as patch, os.fdopen(side, "w", encoding="utf-8") as terminal:
            patch.setenv("TERM", "xterm-256color")
            patch.setenv("COLUMNS", str(columns))
            patch.delenv("NO_COLOR", raising=False)
            patch.chdir(folder or ".")
            patch.setattr(sys, "stdout", terminal)
            patch.setattr(sys, "stderr", io.StringIO())
            assert _end(words) == code, sys.stderr.getvalue()
            errors = sys.stderr.getvalue()
    finally:
        reader.join()
        os.close(main)
    return b"".join(shown).decode().replace("\r\n", "\n"), errors, counts


def asked_at_terminal(answer, *words):
    """The exit code and stderr of a command of a person who types this answer."""
    pty = pytest.importorskip("pty", reason="terminals are a matter of Unix")
    main, side = pty.openpty()
    try:
        os.write(main, answer.encode())
        with pytest.MonkeyPatch.context() as patch, os.fdopen(side, encoding="utf-8") as terminal:
            patch.setattr(sys, "stdin", terminal)
            patch.setattr(sys, "stdout", io.StringIO())
            patch.setattr(sys, "stderr", io.StringIO())
            return _end(words), sys.stderr.getvalue()
    finally:
        os.close(main)
