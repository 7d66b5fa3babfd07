"""All threads use one heap, of which freed memory is returned when a model has been unloaded."""

from __future__ import annotations

import ctypes
import os
import pathlib
import platform
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[4]
_ALLOCATE_IN_THREADS = """
import ctypes, sys, threading
from runtime.foundation.kept_memory import keep_freed_memory
keep_freed_memory()
library = ctypes.CDLL(None)  # without the interpreter's lock, so that threads allocate together
library.malloc.restype = ctypes.c_void_p
together = threading.Barrier(8)
def work():
    together.wait()
    library.malloc(100_000)
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
library.fdopen.restype = ctypes.c_void_p
output = ctypes.c_void_p(library.fdopen(1, b"w"))
library.malloc_info(0, output)
library.fflush(output)
"""

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not hasattr(ctypes.CDLL(None), "malloc_info"),
    reason="the C library is not glibc",
)


def heaps(**environment: str) -> int:
    """The number of heaps of a process that has configured them and allocated in threads."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", _ALLOCATE_IN_THREADS],
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return len(re.findall("<heap ", done.stdout))


def test_threads_share_one_heap() -> None:
    assert heaps() == 1


def test_the_environment_goes_first() -> None:
    assert heaps(MALLOC_ARENA_MAX="4") == 4
