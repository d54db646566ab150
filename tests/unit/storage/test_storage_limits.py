"""A process without file descriptors, and a file system without locks: said as what they are."""

import shutil
import subprocess

import pytest

FEW = """
    import os, resource, sys
    from sire_core.errors import StorageError
    from sire_core.index import Index
    from sire_core.recipes import flat
    from sire_core.testing.hash_embedder import HashEmbedder
    index = Index(sys.argv[1], recipe="raptor", embedder=HashEmbedder())
    index.search("Who lives in Drava 3?")
    index.delete(["d4"])  # so that all modules are there
    index.close()
    held = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    try:
        index.delete(["d0"]) if sys.argv[2] == "delete" else getattr(index, sys.argv[2])(*sys.argv[3:])
    except StorageError as error:
        print(error)
    for number in held:
        os.close(number)
    print(len(index.documents()))
"""


@pytest.mark.parametrize("action", [["search", "Who lives in Drava 3?"], ["documents"], ["stats"], ["delete"]])
def test_a_process_without_file_descriptors_is_told_so(folder, run, action):
    found = run(FEW, folder, *action)
    assert found.returncode == 0, found.stderr
    assert "too many open files" in found.stdout
    assert "ulimit -n" in found.stdout
    assert found.stdout.rstrip().endswith("4")


NO_LOCKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
static int refused(int command) { return command == F_SETLK || command == F_SETLKW || command == 37; }
#define WRAP(NAME) int NAME(int file, int command, ...) { \
    va_list list; va_start(list, command); void *value = va_arg(list, void *); va_end(list); \
    if (refused(command)) { errno = ENOLCK; return -1; } \
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, #NAME); return real(file, command, value); }
WRAP(fcntl)
WRAP(fcntl64)
"""


@pytest.mark.slow  # SQLite waits half a minute, since it takes this for a lock of somebody else
def test_a_file_system_without_locks_is_told_so(folder, run, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "locks.c").write_text(NO_LOCKS)
    made = [compiler, "-shared", "-fPIC", "-O1", "-o", tmp_path / "locks.so", tmp_path / "locks.c", "-ldl"]
    if subprocess.run(made, capture_output=True, check=False).returncode:
        pytest.skip("the compiler makes no shared library")
    script = """
        import sys
        from sire_core.errors import StorageError
        from sire_core.index import Index
        from sire_core.testing.hash_embedder import HashEmbedder
        for act in (lambda index: index.delete(["d3"]), lambda index: index.documents()):
            try:
                act(Index(sys.argv[1], recipe="raptor", embedder=HashEmbedder()))
            except StorageError as error:
                print(error)
    """
    import os

    found = run(script, folder, env={**os.environ, "LD_PRELOAD": str(tmp_path / "locks.so")})
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert len(lines) == 2
    assert all("file system" in line and "locks" in line for line in lines)
