"""Running async code from sync code."""

import asyncio
import contextvars
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import traceback

import pytest

from sire_core.errors import SireError
from sire_core.models.sync import run_sync

TENANT = contextvars.ContextVar("tenant", default="nobody")


async def double(x):
    await asyncio.sleep(0)
    return 2 * x


def run_script(script, **options):
    # On a busy machine asyncio's debug mode says how long a step took; that is no warning about us.
    quiet = "import logging\nlogging.getLogger('asyncio').addFilter(lambda record: 'took' not in record.msg)\n"
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", quiet + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


def test_exception_keeps_its_traceback_and_leaves_no_cycle():
    async def fail():
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone") as caught:
        run_sync(fail())
    assert "fail" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()])
def test_exceptions_that_are_no_errors_reach_the_caller_and_the_loop_lives_on(error):
    async def fail():
        await asyncio.sleep(0)
        raise error

    with pytest.raises(type(error)):
        run_sync(fail())
    assert run_sync(double(1)) == 2


async def test_works_inside_a_running_loop_like_a_notebook():
    assert run_sync(double(3)) == 6


def test_fifty_threads_at_once_overlap_on_one_loop():
    inside = 0
    everyone = asyncio.Event()

    async def count(i):
        nonlocal inside
        inside += 1
        if inside == 50:
            everyone.set()
        await everyone.wait()
        return i

    results = [None] * 50

    def call(i):
        results[i] = run_sync(count(i))

    threads = [threading.Thread(target=call, args=(i,)) for i in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert results == list(range(50))


def test_reentry_raises_and_leaves_no_coroutine_behind(recwarn):
    async def outer():
        return run_sync(double(1))

    with pytest.raises(SireError, match="use the async method"):
        run_sync(outer())
    gc.collect()
    assert [w for w in recwarn if "never awaited" in str(w.message)] == []
    assert run_sync(double(5)) == 10


def test_a_worker_of_the_loop_may_call_back():
    """A framework's sync object, called in a worker, may use our sync face again."""

    async def outer(depth):
        if depth == 0:
            return 1
        return 1 + await asyncio.to_thread(lambda: run_sync(outer(depth - 1)))

    async def many():
        return await asyncio.gather(*(outer(2) for _ in range(20)))

    assert run_sync(many()) == [3] * 20


def test_context_variables_are_copied_in_and_not_out():
    async def read_and_write():
        seen = TENANT.get()
        TENANT.set("changed inside")
        await asyncio.sleep(0)
        return seen, await asyncio.to_thread(TENANT.get)

    token = TENANT.set("alice")
    try:
        assert run_sync(read_and_write()) == ("alice", "changed inside")
        assert TENANT.get() == "alice"
    finally:
        TENANT.reset(token)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_ctrl_c_cancels_waits_for_cleanup_and_raises():
    done = run_script("""
        import asyncio, os, signal
        from sire_core.models.sync import run_sync
        log = []
        async def slow():
            try:
                os.kill(os.getpid(), signal.SIGINT)  # the main thread waits for us
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.1)
                log.append("cleaned up")
        async def quick():
            return "alive"
        run_sync(quick())
        try:
            run_sync(slow())
        except KeyboardInterrupt:
            log.append("interrupted")
        print(log, run_sync(quick()))
    """)
    assert done.stdout.strip() == "['cleaned up', 'interrupted'] alive", done.stderr
    assert done.stderr == ""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_interrupts_at_any_moment_never_hang():
    """Hundreds of interrupts, some before the loop has the call, some after it is done."""
    done = run_script("""
        import asyncio, signal
        from sire_core.models.sync import run_sync
        async def work(i):
            await asyncio.sleep(0)
            return i
        def interrupt(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, interrupt)
        outcomes = {"done": 0, "interrupted": 0}
        for i in range(400):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 + (i % 40) * 4e-6)
                try:
                    assert run_sync(work(i)) == i
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                outcomes["done"] += 1
            except KeyboardInterrupt:
                outcomes["interrupted"] += 1
        print(sum(outcomes.values()), outcomes["interrupted"] > 10, run_sync(work(7)))
    """)
    assert done.stdout.strip() == "400 True 7", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_gets_its_own_loop():
    done = run_script("""
        import asyncio, os, threading, warnings
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        from sire_core.models.sync import run_sync
        async def name():
            await asyncio.sleep(0)
            return threading.get_ident()
        parent = run_sync(name())
        child = os.fork()
        if child == 0:
            run_sync(name())
            os._exit(7)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), run_sync(name()) == parent)
    """)
    assert done.stdout.strip() == "7 True", done.stderr
    assert done.stderr == ""


def test_importing_it_does_not_load_asyncio():
    done = run_script("import sys, sire_core.models.sync; print('asyncio' in sys.modules)")
    assert done.stdout.strip() == "False"
