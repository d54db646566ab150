"""kill -9 in sync, reembed, a second recipe's build, forgetting and purging: before or after, and repeated to the end."""

import os
import random
import shutil
import signal
import sys
import time

import pytest

from sire_core import Document, Index
from sire_core.cli.app import app
from sire_core.data import demo_documents
from sire_core.errors import SireError
from sire_core.storage.check import check_folder
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, ScriptedModel

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")]
KILLS = int(os.environ.get("SIRE_KILLS", "25"))
QUESTION = "Who directed the film?"


def opened(folder, **settings):
    return Index(folder, embedder=HashEmbedder(), language_model=ScriptedModel(), chunker=None, **settings)


def build(folder):
    with opened(folder, recipe="sirerag") as index:
        index.build(demo_documents())


def sync(folder):
    with opened(folder) as index:
        index.build([*demo_documents()[3:], Document("new", "Petra Quillon moved to Lindle.")])


def second_recipe(folder):
    with opened(folder, recipe="indexrag") as index:
        index.update(demo_documents())


def reembed(folder):
    from typer.testing import CliRunner

    result = CliRunner().invoke(app, ["reembed", str(folder), "--embedder", "lexical"])
    if result.exit_code:
        raise SireError(result.output)


def reextract(folder):
    with opened(folder) as index:
        index.reextract([demo_documents()[1].id])


def purge(folder):
    with opened(folder) as index:
        index.delete([demo_documents()[2].id], missing_ok=True)
        index.purge()


def plain(folder):
    with Index(folder, recipe="sirerag", embedder=HashEmbedder(), chunker=None) as index:
        index.build(demo_documents())


ACTIONS = {"sync": sync, "second recipe": second_recipe, "reembed": reembed, "reextract": reextract, "purge": purge}


def forked(act, kill_after=None):
    """Run a function in a forked process; return its seconds, or None where it was killed."""
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException as error:  # noqa: BLE001 - a forked process must not go on as a test
            sys.stderr.write(repr(error))
        finally:
            os._exit(code)
    while kill_after is not None and time.monotonic() < began + kill_after:
        if os.waitpid(child, os.WNOHANG)[0]:
            return time.monotonic() - began
        time.sleep(0.0005)
    if kill_after is not None:
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert kill_after is not None or status == 0
    return time.monotonic() - began if status == 0 else None


def said_by(folder):
    """What the folder holds of every recipe, whatever the embedder."""
    found = {}
    for recipe in ("sirerag", "indexrag"):
        try:
            contents = read_contents(folder, recipe)
            found[recipe] = (sorted(contents.chunks), contents.said())
        except SireError:  # noqa: PERF203 - two of them
            found[recipe] = None
    return found


@pytest.mark.parametrize("name", ACTIONS)
def test_a_killed_change_is_before_or_after_it(tmp_path, name):
    act, rng = ACTIONS[name], random.Random(name)
    base, whole = tmp_path / "base", tmp_path / "whole" / "ix"
    forked(lambda: plain(base) if name == "reembed" else build(base))
    shutil.copytree(base, whole)
    took = forked(lambda: act(whole))
    before, after = said_by(base), said_by(whole)
    killed = 0
    for number in range(KILLS):
        folder = shutil.copytree(base, tmp_path / f"kill{number}" / "ix")
        killed += forked(lambda: act(folder), rng.uniform(0.1, 1.0) * took) is None  # noqa: B023 - used at once

        def look():
            with Index(folder, chunker=None, embedder=None if name == "reembed" else HashEmbedder()) as index:  # noqa: B023
                assert index.search(QUESTION, 5)
            assert check_folder(folder) == []  # noqa: B023

        if name != "reembed":
            forked(look)
        assert said_by(folder) in (before, after)
        forked(lambda: act(folder))  # noqa: B023 - repeated, it comes to its end
        assert said_by(folder) == after
        assert check_folder(folder) == []
        assert {path.name for path in folder.parent.iterdir()} == {"ix"}
        shutil.rmtree(folder.parent)
    assert killed >= KILLS // 4
