"""A search leaves the threads of BLAS asleep: each waits for 20 ms after a product, which doubled a search's CPU time."""

import os
import sys

import pytest

from tests.support.command import run_python

BUILD = """
import sys
from sire_core import Document, Index

topics = "ferry lamp archive kettle harbour violin orchard glacier".split()
text = "The {} of town {} opened in {}. "
with Index(sys.argv[1]) as index:
    index.add([Document(f"d{n}", text.format(topics[n % 8], n, 1800 + n) * 8, title=f"Town {n}") for n in range(1000)])
"""
SEARCH = """
import os, sys, threading, time
from sire_core import Index

def ticks():
    python = {str(thread.native_id) for thread in threading.enumerate()}
    stats = [open(f"/proc/self/task/{task}/stat").read() for task in os.listdir("/proc/self/task") if task not in python]
    return sum(sum(map(int, stat.rsplit(")", 1)[1].split()[11:13])) for stat in stats)

with Index(sys.argv[1]) as index:
    index.context("Which ferry opened in 1840?", max_tokens=300)
    time.sleep(0.1)
    before = ticks()
    for at in range(30):
        index.search(f"Which harbour opened in {1850 + at}?")
        index.context(f"Which orchard opened in {1850 + at}?", max_tokens=300)
    print(ticks() - before)
"""


@pytest.mark.skipif(sys.platform != "linux" or (os.cpu_count() or 1) < 2, reason="counts the time of threads by /proc")
def test_searches_and_contexts_take_the_calling_thread_only(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    run_python(BUILD, tmp_path)
    done = run_python(SEARCH, tmp_path, env=environment)
    assert int(done.stdout) < 5  # hundredths of a second
