"""Numbers of threads before a session, with it, after close and after destroy.

The first session sets the size of the pool of the process, so these tests start a process.
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

import protos as pb
from runtime.api import DirectSession, InvalidArgumentError, SessionOptions, new_session
from runtime.foundation.intra_op_pool import thread_width
from tests.unit.runtime.sessions.direct.thread_sessions import pools_of, run_thread, thread_session
from tests.unit.runtime.sessions.graphs import X, direct_session, g1

ROOT = pathlib.Path(__file__).parents[5]
SECONDS = 30  # to wait for a thread that ends


def threads() -> dict[str, int]:
    """The number of threads of each pool, by its name."""
    names = [thread.name for thread in threading.enumerate()]
    return dict(collections.Counter(name for name in names if name.startswith("tf_")))


def opened(**config: object) -> DirectSession:
    session = direct_session(g1(), pb.ConfigProto(**config))  # type: ignore[arg-type]
    assert session.run({"x": X}, ["m"]) == [6]
    return session


def join_pools(session: DirectSession) -> None:
    for pool in session.thread_pools:
        for thread in pool._threads:
            thread.join(SECONDS)


def observe_widths() -> list[int]:
    """The number of threads for one kernel, in the caller and on pools of sessions."""
    opened(intra_op_parallelism_threads=4)
    opened(intra_op_parallelism_threads=9)
    own = opened(use_per_session_threads=True, intra_op_parallelism_threads=3)
    listed = direct_session(g1(), pools_of((2, ""), intra_op_parallelism_threads=5))
    return [thread_width(), *(each.thread_pools[0].intra_op_threads for each in (own, listed))]


def observe() -> dict[str, dict[str, int]]:
    """The threads at each moment in the life of a process, by moment and name of the pool."""
    seen = {"before": threads()}
    opened(inter_op_parallelism_threads=3, intra_op_parallelism_threads=4)
    seen["first"] = threads()
    opened(inter_op_parallelism_threads=7, intra_op_parallelism_threads=9)
    seen["second"] = threads()
    own = opened(use_per_session_threads=True, inter_op_parallelism_threads=5)
    seen["own"] = threads()
    own.close()
    seen["own closed"] = threads()
    own.destroy()
    join_pools(own)
    seen["own destroyed"] = threads()
    caller = opened(inter_op_parallelism_threads=-1)
    seen["caller"] = threads()
    caller.destroy()
    seen["caller destroyed"] = threads()
    listed = pools_of(
        (2, ""), (1, "lowprio"), (0, ""), inter_op_parallelism_threads=6, use_per_session_threads=1
    )
    session = direct_session(g1(), listed)
    seen["listed"] = threads()
    session.destroy()
    for pool in session.thread_pools:
        if pool.name != "lowprio":
            for thread in pool._threads:
                thread.join(SECONDS)
    seen["listed destroyed"] = threads()
    return seen


GLOBAL = {"tf_Compute": 3}
NAMED = {"tf_lowprio": 1}
EXPECTED = {
    "before": {},
    "first": GLOBAL,
    "second": GLOBAL,
    "own": {"tf_Compute": 8},
    "own closed": {"tf_Compute": 8},
    "own destroyed": GLOBAL,
    "caller": GLOBAL,
    "caller destroyed": GLOBAL,
    "listed": GLOBAL | NAMED | {"tf_Compute0": 2, "tf_Compute2": 6},
    "listed destroyed": GLOBAL | NAMED,
}


@pytest.fixture(scope="module")
def observed() -> dict[str, dict[str, int]]:
    """The result of `observe` in a new process."""
    code = f"import json; from {__name__} import observe; print(json.dumps(observe()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    result: dict[str, dict[str, int]] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("moment", EXPECTED)
def test_threads_by_moment(observed: dict[str, dict[str, int]], moment: str) -> None:
    assert observed[moment] == EXPECTED[moment]


def test_the_first_session_sets_the_width_of_kernels() -> None:
    """Later sessions set the width of their own pools; helpers start when a kernel needs them."""
    code = f"from {__name__} import observe_widths; assert observe_widths() == [4, 3, 5]"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_first_session_decides_for_the_environment_too() -> None:
    """The environment variable is read once; it sets where sessions without a size run."""
    code = f"from {__name__} import process_wide; process_wide()"
    environment = os.environ | {"TF_NUM_INTEROP_THREADS": "-1"}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)


def process_wide() -> None:
    """Sessions without a size run in the caller; those with one on the process's pool."""
    plain, _ = thread_session(pb.ConfigProto())
    sized, _ = thread_session(pb.ConfigProto(inter_op_parallelism_threads=2))
    assert run_thread(plain, 0) == threading.current_thread().name
    assert run_thread(sized, 0) == "tf_Compute"


def test_one_name_twice_in_a_list_is_one_pool() -> None:
    session = new_session(SessionOptions(config=pools_of((2, "twice"), (2, "twice"))))
    assert isinstance(session, DirectSession)
    first, second = session.thread_pools
    assert first is second
    with pytest.raises(InvalidArgumentError, match="Pool thrice configured previously"):
        new_session(SessionOptions(config=pools_of((1, "thrice"), (2, "thrice"))))


def test_a_bad_index_is_noticed_when_the_step_runs() -> None:
    session = direct_session(g1(), pools_of((1, "")))
    options = pb.CallableOptions(feed=["x"], fetch=["m"])
    options.run_options.inter_op_thread_pool = 7
    handle = session.make_callable(options)
    with pytest.raises(InvalidArgumentError, match=r"^Invalid inter_op_thread_pool: 7$"):
        session.run_callable(handle, [X])
    session.destroy()


@pytest.mark.parametrize("index", [0, -1])
def test_a_session_without_a_list_accepts_its_pool_and_the_caller(index: int) -> None:
    session = direct_session(g1())
    options = pb.RunOptions(inter_op_thread_pool=index)
    assert session.run({"x": X}, ["m"], (), options) == [6]


def test_several_devices_may_run_in_the_caller() -> None:
    graph = g1()
    graph.node[-1].device = "/device:CPU:1"
    session = direct_session(graph, pb.ConfigProto(device_count={"CPU": 2}))
    options = pb.RunOptions(inter_op_thread_pool=-1)
    assert session.run({"x": X}, ["n"], (), options) == [-6]


def test_the_run_handler_pool_is_accepted() -> None:
    options = pb.RunOptions()
    options.experimental.use_run_handler_pool = True
    options.experimental.run_handler_pool_options.priority = 1
    assert direct_session(g1()).run({"x": X}, ["m"], (), options) == [6]
