"""Runs a small program in a process of its own, to see what a library does with a file of a model.

Some libraries end their process, or never return, when a file is damaged. What a library does in
the trial's process it does not do in the server's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from runtime.foundation.running_task import check_task

_LOOK_SECONDS = 0.05  # between two looks at whether the step has been cancelled


@dataclasses.dataclass(frozen=True)
class TrialResult:
    """How a trial ended: "" if it succeeded, else its last line, a signal's name or "timeout"."""

    reason: str
    is_killed: bool  # by a signal, or because its time was over


def run_trial(
    program: str, arguments: Sequence[str], given: bytes = b"", seconds: float = 60.0
) -> TrialResult:
    """Run a Python program with arguments and standard input; wait until it ends.

    The program must write little to stderr. Raises the step's error if the step is cancelled.
    """
    command = [sys.executable, "-c", program, *arguments]
    with tempfile.TemporaryFile() as source:
        source.write(given)
        source.seek(0)
        with subprocess.Popen(
            command, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            end = time.monotonic() + seconds
            try:
                while process.poll() is None and time.monotonic() < end:
                    check_task()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_LOOK_SECONDS)
                is_late = process.poll() is None
            finally:
                process.kill()
            assert process.stderr is not None
            said = process.stderr.read(1 << 16).decode(errors="replace").strip().splitlines()
    if is_late:
        return TrialResult("timeout", True)
    if process.returncode < 0:
        return TrialResult(signal.Signals(-process.returncode).name, True)
    if process.returncode:
        return TrialResult(said[-1] if said else "no reason is known", False)
    return TrialResult("", False)
