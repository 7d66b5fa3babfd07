"""What is left behind is counted, and what belongs to other programs on the machine is not."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests.extras.ray.traces import new_traces, traces
from tests.ray_cluster import MARK

# Has the name of an actor of Ray, and a file in shared memory.
PROGRAM = """
import sys
with open("/dev/shm/" + sys.argv[1], "w"):
    print(flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("is_ours", [True, False])
def test_processes_and_files(is_ours: bool) -> None:
    environment: Mapping[str, str] = os.environ | ({} if is_ours else {MARK: "another"})
    before, file = traces(), f"of-tests-{secrets.token_hex(8)}"
    with subprocess.Popen(
        ["ray::Actor", "-c", PROGRAM, file], executable=sys.executable,
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            process.stdout.readline()
            found = new_traces(before)
            assert found == ({"files": {file}, "workers": {str(process.pid)}} if is_ours else {})
        finally:
            process.communicate()
            # A file that nobody has open any more was left behind.
            assert new_traces(before) == {"files": {file}}
            os.unlink(f"/dev/shm/{file}")
    assert new_traces(before) == {}
