"""A process whose standard streams were closed by whoever started it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# Closes the descriptors that the arguments name and, as an interpreter that starts so, sets the
# streams to None; then tells what a first file gets, and writes to the streams.
_PROGRAM = """
import os, sys
told = os.dup(int(sys.argv[1]))
closed = [int(each) for each in sys.argv[2:]]
for descriptor in closed:
    os.close(descriptor)
    setattr(sys, ("stdin", "stdout", "stderr")[descriptor], None)
from server.starting.standard_streams import open_standard_streams
open_standard_streams()
first = os.open(os.devnull, os.O_RDONLY)
print("to standard output", flush=True)
print("to standard error", file=sys.stderr, flush=True)
inherited = [os.get_inheritable(descriptor) for descriptor in closed]
null = os.stat(os.devnull)
are_null = [os.path.samestat(os.fstat(descriptor), null) for descriptor in closed]
os.write(told, repr((first > 2, inherited, are_null)).encode())
"""


@pytest.mark.parametrize("closed", [(), (0,), (1,), (2,), (1, 2), (0, 1, 2)], ids=str)
def test_closed_streams_are_replaced_by_the_null_device(closed: tuple[int, ...]) -> None:
    receiver, sender = os.pipe()
    with open(receiver, "rb") as told:
        try:
            done = subprocess.run(
                [sys.executable, "-c", _PROGRAM, str(sender), *map(str, closed)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                pass_fds=[sender],
                text=True,
                check=True,
                timeout=60,
            )
        finally:
            os.close(sender)
        each = [True] * len(closed)
        assert told.read().decode() == repr((True, each, each))
    assert done.stdout == ("" if 1 in closed else "to standard output\n")
    assert done.stderr == ("" if 2 in closed else "to standard error\n")
