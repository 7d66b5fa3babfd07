"""A program ends with its code after its exit handlers, and whatever its threads do."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import atexit, sys, threading
from server.process_end import end_process
threading.Thread(target=threading.Event().wait).start()  # a normal end would wait for it
atexit.register(print, "registered")
sys.stdout.write("written, ")
end_process({code})
"""


@pytest.mark.parametrize("code", [0, 1, 255])
def test_a_program_ends_with_its_code_after_its_handlers(code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(code=code)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (code, "written, registered\n", "")


def test_output_that_cannot_be_written_is_no_error() -> None:
    script = (
        "import sys; from server.process_end import end_process; sys.stdout.close()\nend_process(0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
