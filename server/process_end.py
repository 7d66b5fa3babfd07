"""The end of a program whose native libraries may have threads that still run.

A normal end of the interpreter destroys the static objects of C++ libraries. If an engine compiles
a model at that moment, because the server is stopped while it loads, the library ends the process
with SIGABRT ("terminate called without an active exception").
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from typing import NoReturn


def end_process(code: int) -> NoReturn:
    """End the process with this exit code, after what is registered with `atexit`."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # it can't be written, or is closed
            stream.flush()
    os._exit(code)
