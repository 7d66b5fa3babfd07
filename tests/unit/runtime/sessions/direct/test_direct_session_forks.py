"""Sessions in a process that was forked from one with sessions.

pytest's own process is not forked: it has threads of which nothing is known here.
"""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import os
import numpy as np
import protos as pb
from runtime.api import (
    DeadlineExceededError, FailedPreconditionError, RunRequest, SessionOptions, ThreadPool,
    new_session,
)
from runtime.foundation.priority_gate import gate
from tests.conformance.case import Graph

graph = Graph()
graph.add("Neg", graph.placeholder("float32", "x"), name="n")
queue = graph.add("FIFOQueueV2", name="queue", component_types=["float32"])[0]
graph.add("QueueDequeueV2", queue, name="next", component_types=["float32"])

def opened():
    session = new_session(SessionOptions())
    session.create(graph.graph_def)
    return session

def run(session):
    return session.run_async(RunRequest({"x": np.float32(3)}, ["n"])).result(30)

inherited = opened()
in_time = pb.RunOptions(timeout_in_ms=100)

def late(session):
    try:
        session.run({}, ["next"], (), in_time)
    except DeadlineExceededError as error:
        return error.message

assert run(inherited) == [-3]
assert late(inherited)
parent = os.getpid()
waiting = inherited.run_async(RunRequest({}, ["next"]))
child = os.fork()
if not child:
    try:
        try:
            run(inherited)
        except FailedPreconditionError as error:
            assert error.message == (
                f"The threads of pool Compute are in process {parent}, from which this one was "
                "forked; open sessions after the fork"
            ), error.message
        else:
            os._exit(1)
        in_caller = pb.RunOptions(inter_op_thread_pool=-1)
        assert inherited.run({"x": np.float32(3)}, ["n"], (), in_caller) == [-3]
        own = opened()
        assert run(own) == [-3]
        assert late(own)
        inherited.close()
        # The gate does not wait for steps that were pending at the fork.
        low = ThreadPool("low", 1, low_priority=True)
        session = opened()
        for _ in range(4):
            session.run_async(RunRequest({"x": np.float32(3)}, ["n"], pool=low)).result(30)
        assert gate.pending == 0
        own.close()
        os._exit(0)
    finally:
        os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert run(inherited) == [-3]
inherited.close()
"""


def test_a_fork_opens_sessions_of_its_own() -> None:
    """A step of an inherited session would wait for ever for a thread of its pool."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _PROGRAM],  # Python 3.12 warns
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
