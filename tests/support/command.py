"""`run`: the command line inside the test's own process."""

import pytest


def run(*words, code=0, given=None):
    """The result of a command, which ends with this exit code and never with a traceback."""
    typer_testing = pytest.importorskip("typer.testing")
    from sire_core.cli.app import app

    result = typer_testing.CliRunner().invoke(app, [str(word) for word in words], input=given)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result
