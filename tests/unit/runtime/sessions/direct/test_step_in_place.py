"""Steps known to be brief run in the thread that waits for them, in place of the pool's."""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    CancelledError,
    DirectSession,
    KernelDef,
    RunRequest,
    SessionOptions,
    ThreadPool,
    global_thread_pools,
    new_session,
)
from runtime.executors import adaptive, step
from runtime.foundation.task_trace import TaskEvent, set_task_tracer
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.direct.thread_sessions import pools_of
from tests.unit.runtime.sessions.graphs import X, direct_session, g1, in_caller, queue_graph

SECONDS = 30  # to wait for a thread
Kernel = Callable[[object], object]


class Steps:
    """Runs steps, and says where tasks of pools began: "here", in this thread, or "pool"."""

    def __init__(self) -> None:
        self._caller = threading.get_ident()
        self.began: list[str] = []
        self.at_begin: Callable[[], object] = lambda: None

    def trace(self, event: TaskEvent, _: int, __: str) -> None:
        if event is TaskEvent.BEGUN:
            self.began.append("here" if threading.get_ident() == self._caller else "pool")
            self.at_begin()

    def where(self, run: Callable[[], object]) -> list[str]:
        """Return where the tasks of a run began."""
        self.began.clear()
        run()
        return list(self.began)


@pytest.fixture
def steps() -> Iterator[Steps]:
    traced = Steps()
    set_task_tracer(traced.trace)
    yield traced
    set_task_tracer(None)


@pytest.fixture(autouse=True)
def _however_busy_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "BRIEF_SECONDS", math.inf)


def own_pool(threads: int = 1) -> pb.ConfigProto:
    return pb.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=threads)


def brief_session(config: pb.ConfigProto | None = None) -> DirectSession:
    """A session of g1 whose step `m` has run."""
    session = direct_session(g1(), config or own_pool())
    assert session.run({"x": X}, ["m"]) == [6]
    return session


def hooked_session(kernel: Kernel, threads: int = 1) -> DirectSession:
    """A session whose Neg is `kernel`, which counts as a built-in one."""
    made = KernelDef("Neg", kernel, {"T": (DataType.FLOAT,)})
    session = new_session(SessionOptions(config=own_pool(threads), kernels=[made]))
    assert isinstance(session, DirectSession)
    session.create(g1())
    session.options.kernels = ()
    return session


def test_the_first_run_is_the_pools_and_later_ones_are_the_callers(steps: Steps) -> None:
    session = direct_session(g1(), own_pool())
    seen = [steps.where(lambda: session.run({"x": X}, ["m"])) for _ in range(3)]
    assert seen == [["pool"], ["here"], ["here"]]
    (pool,) = session.thread_pools
    stats = pool.stats()
    assert (stats.queued, stats.running, stats.completed) == (0, 0, 3)
    session.destroy()


@pytest.mark.parametrize("fetches", [["m"], ["n", "m"], ["m", "m"], ["m:0", "n", "m"], []])
def test_values_are_in_the_order_of_the_fetches(steps: Steps, fetches: list[str]) -> None:
    session = direct_session(g1(), own_pool())
    expected = [{"m": 6, "n": -6}[each[0]] for each in fetches]
    for options in (pb.RunOptions(), pb.RunOptions(), in_caller()):
        assert session.run({"x": X}, fetches, ["n"], options) == expected
    assert steps.began == ["pool", "here"]
    session.destroy()


def test_a_callable_runs_in_its_caller_too(steps: Steps) -> None:
    session = brief_session()
    handle = session.make_callable(pb.CallableOptions(feed=["x"], fetch=["m"]))
    assert steps.where(lambda: session.run_callable(handle, [X])) == ["here"]
    assert session.run_callable(handle, [X]) == [6]
    session.destroy()


@pytest.mark.parametrize(
    "request_of",
    [
        lambda: {"options": pb.RunOptions(timeout_in_ms=30_000)},
        lambda: {
            "options": pb.RunOptions(trace_level=pb.RunOptions.FULL_TRACE),
            "metadata": pb.RunMetadata(),
        },
        lambda: {"feeds": {"x": np.ones(1000, np.float32)}},
        lambda: {"feeds": {"x": [3.0]}},
    ],
    ids=["a time limit", "a trace", "larger feeds", "feeds of an unknown size"],
)
def test_what_may_take_longer_is_the_pools(steps: Steps, request_of: Callable[[], dict]) -> None:
    session = brief_session()
    given = {"feeds": {"x": X}} | request_of()
    assert steps.where(lambda: session.run(fetches=["m"], **given)) == ["pool"]
    session.destroy()


def test_a_configured_time_limit_is_kept_by_the_pool(steps: Steps) -> None:
    session = brief_session(pb.ConfigProto(operation_timeout_in_ms=30_000))
    assert steps.where(lambda: session.run({"x": X}, ["m"])) == ["pool"]


def test_a_step_that_took_long_is_the_pools(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    session = brief_session()
    with monkeypatch.context() as patched:
        patched.setattr(step, "BRIEF_SECONDS", 0.0)
        assert steps.where(lambda: session.run({"x": X}, ["m"])) == ["here"]
    assert steps.where(lambda: session.run({"x": X}, ["m"])) == ["pool"]
    assert steps.where(lambda: session.run({"x": X}, ["m"])) == ["here"]
    session.destroy()


def test_a_step_that_may_wait_is_the_pools(steps: Steps) -> None:
    session = direct_session(queue_graph(), own_pool())
    for _ in range(2):
        assert steps.where(lambda: session.run({}, ["size"])) == ["pool"]
    session.destroy()


def test_kernels_of_the_sessions_own_are_the_pools(steps: Steps) -> None:
    kernel = KernelDef("Neg", lambda x: x, {"T": (DataType.FLOAT,)})
    session = new_session(SessionOptions(config=own_pool(), kernels=[kernel]))
    session.create(g1())
    for _ in range(2):
        assert steps.where(lambda: session.run({"x": X}, ["n"])) == ["pool"]
    session.destroy()  # type: ignore[attr-defined]


def test_a_low_priority_pool_and_the_caller_are_as_they_were(steps: Steps) -> None:
    global_thread_pools.get_or_create("brief_low", 1, low_priority=True)
    session = brief_session(pools_of((1, ""), (1, "brief_low")))
    low = pb.RunOptions(inter_op_thread_pool=1)
    assert steps.where(lambda: session.run({"x": X}, ["m"], (), low)) == ["pool"]
    assert steps.where(lambda: session.run({"x": X}, ["m"], (), in_caller())) == []
    session.destroy()


def test_steps_that_nobody_waits_for_are_the_pools(steps: Steps) -> None:
    session = brief_session()

    def start() -> None:
        assert session.run_async(RunRequest({"x": X}, ["m"])).result(SECONDS) == [6]

    assert steps.where(start) == ["pool"]

    async def in_loop() -> None:
        assert session.run({"x": X}, ["m"]) == [6]

    assert steps.where(lambda: asyncio.run(in_loop())) == ["pool"]
    session.destroy()


def test_a_step_inside_a_step_is_the_pools(steps: Steps) -> None:
    inner: list[DirectSession] = []
    seen = []

    def kernel(x: object) -> object:
        if inner:
            seen.append(inner[0].run({"x": X}, ["m"])[0])
        return x

    session = hooked_session(kernel, threads=2)
    session.run({"x": X}, ["m"])
    session.run({"x": X}, ["n"])
    inner.append(session)
    assert steps.where(lambda: session.run({"x": X}, ["n"])) == ["here", "pool"]
    assert seen == [6]
    session.destroy()


def test_a_pool_that_is_taken_runs_it_later(steps: Steps) -> None:
    session = brief_session()
    (pool,) = session.thread_pools
    begun, go_on = threading.Event(), threading.Event()
    pool.schedule(lambda: (begun.set(), go_on.wait(SECONDS)))
    assert begun.wait(SECONDS)
    with concurrent.futures.ThreadPoolExecutor(1) as callers:
        running = callers.submit(session.run, {"x": X}, ["m"])
        while not pool.queued:
            threading.Event().wait(0.001)
        go_on.set()
        assert running.result(SECONDS) == [6]
    assert steps.where(lambda: session.run({"x": X}, ["m"])) == ["here"]
    session.destroy()


def test_a_session_that_closes_before_it_begins(steps: Steps) -> None:
    session = brief_session()
    steps.at_begin = session.close
    with pytest.raises(CancelledError, match=r"^Run call was cancelled$"):
        session.run({"x": X}, ["m"])
    assert steps.began[-1] == "here"
    with pytest.raises(CancelledError, match=r"^Session has been closed"):
        session.run({"x": X}, ["m"])
    session.destroy()


@pytest.mark.parametrize("end", ["close", "destroy"])
def test_a_session_that_closes_while_it_runs(end: str) -> None:
    begun, go_on = threading.Event(), threading.Event()
    blocks: list[None] = []

    def kernel(x: object) -> object:
        if blocks:
            begun.set()
            assert go_on.wait(SECONDS)
        return x

    session = hooked_session(kernel)
    (pool,) = session.thread_pools
    session.run({"x": X}, ["n"])
    blocks.append(None)
    pool_ended = threading.Event()
    pool.at_shutdown(pool_ended.set)
    with concurrent.futures.ThreadPoolExecutor(1) as callers:
        running = callers.submit(session.run, {"x": X}, ["n"])
        assert begun.wait(SECONDS)
        getattr(session, end)()
        assert (pool.stats().running, pool.stats().stuck) == (1, 1)
        assert not pool_ended.is_set()
        go_on.set()
        with pytest.raises(CancelledError, match=r"^Run call was cancelled$"):
            running.result(SECONDS)
    session.destroy()
    assert pool_ended.wait(SECONDS)
    assert pool.stats().running == 0


def test_an_interrupt_ends_the_step_and_frees_its_place(steps: Steps) -> None:
    errors: list[BaseException] = []

    def kernel(x: object) -> object:
        if errors:
            raise errors.pop()
        return x

    session = hooked_session(kernel)
    session.run({"x": X}, ["n"])
    errors.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        session.run({"x": X}, ["n"])
    assert steps.began[-1] == "here"
    assert not session._cancellation._callbacks  # the step has left the session
    assert steps.where(lambda: session.run({"x": X}, ["n"])) == ["here"]
    session.destroy()


def test_a_step_with_parallel_branches_is_the_pools(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptive, "_MIN_SECONDS", 0.0)
    monkeypatch.setattr(adaptive, "_NODE_SECONDS", 0.0)
    monkeypatch.setattr(adaptive, "_MIN_GAIN", 0.0)
    graph = Graph()
    x = graph.placeholder("float32", "x")
    left = graph.add("MatMul", x, x, name="left")[0]
    right = graph.add("MatMul", x, x, name="right", transpose_a=True)[0]
    graph.add("AddV2", left, right, name="sum")
    session = direct_session(graph.graph_def, own_pool(2), clusters="off")
    x_value = np.ones((2, 2), np.float32)
    for _ in range(4):
        session.run({"x": x_value}, ["sum:0"])
    (executor,) = session.executor_cache.executors.values()
    assert executor.uses_threads

    def run() -> None:
        np.testing.assert_array_equal(session.run({"x": x_value}, ["sum:0"])[0], 4 * x_value)

    where = steps.where(run)
    assert len(where) > 1
    assert set(where) == {"pool"}
    session.destroy()


def test_a_variable_that_grows_makes_it_the_pools(steps: Steps) -> None:
    graph = Graph()
    handle = graph.add("VarHandleOp", name="v", dtype=DataType.FLOAT, shape=None, shared_name="v")[
        0
    ]
    value = graph.placeholder("float32", "value")
    graph.add("AssignVariableOp", handle, value, name="assign", dtype=DataType.FLOAT)
    read = graph.add("ReadVariableOp", handle, name="read", dtype=DataType.FLOAT)[0]
    graph.add("Neg", read, name="neg")
    session = direct_session(graph.graph_def, own_pool())
    session.run({"value": np.ones(2, np.float32)}, [], ["assign"])
    session.run({}, ["neg"])
    assert steps.where(lambda: session.run({}, ["neg"])) == ["here"]
    session.run({"value": np.ones(200, np.float32)}, [], ["assign"])
    assert steps.where(lambda: session.run({}, ["neg"])) == ["pool"]
    assert steps.where(lambda: session.run({}, ["neg"])) == ["here"]
    session.destroy()


def test_many_callers_of_one_pool_get_their_own_results() -> None:
    session = brief_session(own_pool(2))
    pool: ThreadPool = session.thread_pools[0]

    def call(number: int) -> None:
        for each in range(100):
            value = np.float32(number * 100 + each)
            assert session.run({"x": value}, ["m"]) == [2 * value]

    with concurrent.futures.ThreadPoolExecutor(6) as callers:
        for done in [callers.submit(call, number) for number in range(6)]:
            done.result(SECONDS)
    stats = pool.stats()
    assert (stats.completed, stats.running, stats.queued) == (601, 0, 0)
    session.destroy()
