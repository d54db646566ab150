"""Temporary folders of runs that were killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from sire_core.evaluate import experiment


@pytest.mark.skipif(os.name == "nt", reason="kills are signals here")
def test_the_folder_of_a_killed_run_is_removed_by_the_next_and_no_other(tmp_path, monkeypatch):
    script = (
        "import sys, time\nfrom sire_core.evaluate.experiment import temporary_folder\n"
        "with temporary_folder(None) as folder:\n    folder.mkdir()\n    print(folder, flush=True)\n    time.sleep(600)"
    )
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    runs = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    with runs[0], runs[1]:
        folders = [tmp_path / os.path.relpath(run.stdout.readline().strip(), tmp_path) for run in runs]
        runs[0].send_signal(signal.SIGKILL)
        runs[0].wait()
        for folder in folders:
            os.utime(folder.parent / "in-use.lock", (time.time() - 3600,) * 2)
        with experiment.temporary_folder(None) as own:
            assert [folder.exists() for folder in folders] == [False, True]
            own.mkdir()
        assert not own.exists()
        runs[1].kill()
