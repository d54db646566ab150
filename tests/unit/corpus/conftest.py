"""One process that reads the files of a module's tests, as it reads all files of a folder."""

import pytest

from sire_core.files.reading_process import one_process


@pytest.fixture(scope="module")
def one_reading_process():
    """For tests that read one file each: to start the process takes longer than to read."""
    with one_process():
        yield
