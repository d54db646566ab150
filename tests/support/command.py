"""`run`: the command line inside the test's own process; `run_python`: Python in another."""

import subprocess
import sys
import textwrap
from functools import cache

import pytest


@cache
def runner():
    """A runner that makes the commands of an application once; typer makes all of them anew for each run."""
    testing = pytest.importorskip("typer.testing")
    testing._get_command = cache(testing._get_command)
    return testing.CliRunner()


def run(*words, code=0, given=None, **options):
    """The result of a command, which ends with this exit code and never with a traceback."""
    pytest.importorskip("typer")
    from sire_core.cli.app import app

    result = runner().invoke(app, [str(word) for word in words], input=given, **options)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def run_python(script, *arguments, flags=(), check=True, prefix=(), **options):
    """Python in a process of its own, with its output as text; with `check` it has to end well.

    `prefix` are words before the command.
    """
    command = [*prefix, sys.executable, *flags, "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **{"timeout": 120, **options})
    assert done.returncode == 0 or not check, done.stderr
    return done
