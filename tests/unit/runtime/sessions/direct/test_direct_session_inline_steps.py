"""Which steps run in the caller's thread: those that took less than 0.4 ms, failed or not."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    DirectSession,
    InternalError,
    InvalidArgumentError,
    OpError,
    RunRequest,
    ThreadPool,
)
from runtime.executors import step as executor_step
from runtime.executors.adaptive import AdaptiveExecutor
from runtime.executors.clustered import ClusteredExecutor
from runtime.executors.duration_estimate import (
    MOST_GROWTH,
    MOST_WAITING_SECONDS,
    SMALL_SIZE,
)
from runtime.executors.step import Executor
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from runtime.sessions.direct import prepared_step
from runtime.sessions.direct.executor_cache import CompiledStep
from runtime.sessions.direct.prepared_step import StepPreparer
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import X, direct_session, g1, node

QUICK, SLOW = 0.0001, 0.004


class Clock:
    """A clock by which a step works `seconds` and, in a pool, waits `waits` for a processor."""

    def __init__(self) -> None:
        self.seconds = QUICK
        self.waits = 0.0
        self._now = self._worked = 0.0
        self._is_running = False

    def __call__(self) -> float:
        if self._is_running:
            self._worked += self.seconds
            self._now += self.seconds + self.waits
        self._is_running = not self._is_running
        return self._now

    def worked(self) -> float:
        """Return the processor time of the thread."""
        return self._worked


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(prepared_step, "_now", made)
    monkeypatch.setattr(executor_step, "_now", made)
    monkeypatch.setattr(prepared_step, "_processor_time", made.worked)
    monkeypatch.setattr(executor_step, "_processor_time", made.worked)
    return made


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> list[RunRequest]:
    """The requests that ran in the caller's thread."""
    seen: list[RunRequest] = []
    run_here = StepPreparer.run_here

    def noting(self: StepPreparer, request: RunRequest, *arguments: Any) -> list[Any]:
        seen.append(request)
        return run_here(self, request, *arguments)

    monkeypatch.setattr(StepPreparer, "run_here", noting)
    return seen


@pytest.fixture
def low_pool() -> Iterator[ThreadPool]:
    pool = ThreadPool("low", 1, low_priority=True)
    yield pool
    pool.shutdown()


def request(**changes: Any) -> RunRequest:
    return RunRequest(**({"feeds": {"x": X}, "fetches": ["m"]} | changes))


def run(session: DirectSession, step: RunRequest | None = None) -> list[Any]:
    """Run as the server does: in the caller's thread if the session finds the step short."""
    step = step or request()
    values = session.run_if_short(step)
    return session.run_async(step).result(30) if values is None else values


def run_callable(session: DirectSession) -> Callable[[], list[Any]]:
    handle = session.make_callable(pb.CallableOptions(feed=["x:0"], fetch=["m:0"]))
    return lambda: run(session, session.callable(handle).request([X], None))


def executor_of(session: DirectSession, step: RunRequest | None = None) -> Executor:
    return session._graph.compiled(step or request()).executor


@pytest.mark.parametrize("way", ["run", "callable"])
def test_a_short_step_runs_in_the_caller_until_it_turns_slow(
    way: str, clock: Clock, inline: list[RunRequest]
) -> None:
    session = direct_session(g1())
    step = run_callable(session) if way == "callable" else lambda: run(session)
    step()
    assert not inline  # the step has not been measured yet
    for _ in range(5):
        assert step() == [6]
    assert len(inline) == 5
    clock.seconds = SLOW
    step()
    assert len(inline) == 6  # with the run that was slow
    clock.seconds = QUICK
    for _ in range(20):
        step()
    assert len(inline) == 6
    for _ in range(20):
        step()
    assert len(inline) > 6


@pytest.mark.parametrize(("waits", "is_kept"), [(SLOW, True), (2 * MOST_WAITING_SECONDS, False)])
def test_a_step_that_waited_for_a_processor_in_the_caller_stays_there(
    waits: float, is_kept: bool, clock: Clock, inline: list[RunRequest]
) -> None:
    session = direct_session(g1())
    for _ in range(5):
        run(session)
    before = len(inline)
    clock.waits = waits  # while others are busy; longer waits are for locks
    run(session)
    clock.waits = 0.0
    run(session)
    assert len(inline) == before + 1 + is_kept


def test_a_step_that_waits_for_others_of_its_pool_runs_in_the_caller_again(
    clock: Clock, inline: list[RunRequest]
) -> None:
    session = direct_session(g1())
    for _ in range(3):
        run(session)
    clock.seconds = SLOW
    run(session)
    before = len(inline)
    clock.seconds, clock.waits = QUICK, SLOW
    for _ in range(40):
        session.run_async(request()).result(30)
    assert len(inline) == before
    run(session)
    assert len(inline) == before + 1


def test_slow_first_runs_do_not_keep_a_step_from_the_caller(
    clock: Clock, inline: list[RunRequest]
) -> None:
    session = direct_session(g1())
    clock.seconds = 1.0
    run(session)
    run(session)
    clock.seconds = QUICK
    run(session)
    assert not inline
    run(session)
    assert len(inline) == 1


class Elsewhere(Executor):
    """An executor that works in other threads: `run_async` returns before `done` is called."""

    may_block = False

    def __init__(self, graph: Any) -> None:
        super().__init__(graph)
        self.done: list[Callable[..., None]] = []

    def run(self, *_: Any) -> list[Any]:
        raise AssertionError("not in this test")

    def run_async(self, step: Any, arguments: Any, done: Callable[..., None]) -> None:
        self.done.append(done)


def test_a_step_is_measured_until_it_is_done(clock: Clock) -> None:
    session = direct_session(g1())
    compiled = session._graph.compiled(request())
    elsewhere = Elsewhere(compiled.executor.graph)
    found = CompiledStep(elsewhere, compiled.sorted_key, compiled.feeds, compiled.feed_types, (0,))
    prepared = session._prepare(request(compiled=found), session._cancellation, None)
    ended: concurrent.futures.Future[Any] = concurrent.futures.Future()
    prepared.start(None, lambda values, error: ended.set_result(values))
    assert elsewhere.duration.seconds > 1e9
    clock.seconds = SLOW
    elsewhere.done[0]([6], None)
    assert ended.result(0) == [6]
    assert (elsewhere.duration.seconds, elsewhere.last_seconds) == pytest.approx((SLOW, SLOW))


def test_a_step_whose_branches_go_to_other_threads_never_runs_in_the_caller(
    clock: Clock, inline: list[RunRequest]
) -> None:
    """In a pool it takes as long as its longest branch, in the caller's thread as all branches."""
    graph = Graph()
    x = graph.placeholder("float32", "x")
    first = graph.add("MatMul", x, x, name="first")
    second = graph.add("MatMul", x, x, name="second", transpose_a=True)
    graph.add("AddV2", first, second, name="m")
    session = direct_session(graph.graph_def, clusters="off")
    step = request(feeds={"x": np.ones((2, 2), np.float32)})
    executor = executor_of(session, step)
    plain = executor._plain if isinstance(executor, ClusteredExecutor) else executor
    assert isinstance(plain, AdaptiveExecutor)
    plain._decide({node: 1.0 for node in executor.graph.nodes if node.op == "MatMul"})
    for _ in range(5):
        run(session, step)
    assert executor.duration.seconds < 0.0002
    assert not inline


def test_a_step_that_fails_at_once_does_not_look_short(
    clock: Clock, inline: list[RunRequest]
) -> None:
    graph = Graph()
    graph.add("AddV2", graph.placeholder("float32", "x"), np.zeros(3, np.float32), name="m")
    session = direct_session(graph.graph_def)
    clock.seconds = SLOW
    for _ in range(3):
        run(session)
    clock.seconds = QUICK
    for _ in range(100):
        with pytest.raises(OpError):
            run(session, request(feeds={"x": np.ones(2, np.float32)}))
    run(session)
    assert not inline


def test_a_step_that_fails_slowly_in_the_caller_counts(
    clock: Clock, inline: list[RunRequest]
) -> None:
    graph = Graph()
    graph.add("AddV2", graph.placeholder("float32", "x"), np.zeros(3, np.float32), name="m")
    session = direct_session(graph.graph_def)
    run(session)
    clock.seconds = SLOW
    with pytest.raises(OpError):
        run(session, request(feeds={"x": np.ones(2, np.float32)}))
    assert len(inline) == 1
    run(session)
    assert len(inline) == 1


def test_low_priority_steps_say_nothing_about_others(
    clock: Clock, inline: list[RunRequest], low_pool: ThreadPool
) -> None:
    """They wait for normal steps, and their child processes have the lowest priority."""
    session = direct_session(g1())
    for _ in range(3):
        run(session)
    clock.seconds = SLOW
    session.run_async(request(pool=low_pool)).result(30)
    clock.seconds = QUICK
    seen = len(inline)
    run(session)
    assert len(inline) == seen + 1


def test_a_fault_of_ours_in_the_caller_is_the_futures(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = direct_session(g1())
    for _ in range(3):
        run(session)

    def fault(*_: Any) -> list[Any]:
        raise RuntimeError("a fault")

    monkeypatch.setattr(executor_of(session), "run", fault)
    with pytest.raises(InternalError, match=r"^RuntimeError: a fault$"):
        run(session)


def call_of_function_with_switch() -> pb.GraphDef:
    """`checked` is x, through a function with v1 control flow that fails unless x is finite."""
    graph = Graph()
    x = graph.placeholder("float32", "x")
    condition = graph.placeholder("bool", "condition")
    body = pb.FunctionDef()
    body.signature.name = "body"
    body.signature.input_arg.add(name="x", type=pb.DT_FLOAT)
    body.signature.input_arg.add(name="side", type=pb.DT_BOOL)
    body.signature.output_arg.add(name="y", type=pb.DT_FLOAT)
    value, side = ("x", DataType.FLOAT), ("side", DataType.BOOL)
    body.node_def.append(node("Switch", "switch", value, side))
    live = ("switch:output_true:0", DataType.FLOAT)
    body.node_def.append(node("CheckNumerics", "check", live, message="not finite"))
    dead = ("switch:output_false:0", DataType.FLOAT)
    body.node_def.append(node("Merge", "merge", [dead, ("check:output:0", DataType.FLOAT)]))
    body.ret["y"] = "merge:output:0"
    graph.graph_def.library.function.append(body)
    call, types = NameAttrList("body"), [DataType.FLOAT]
    graph.add(
        "If", condition, [x, condition], then_branch=call, else_branch=call, Tout=types,
        name="checked",
    )  # fmt: skip
    return graph.graph_def


def test_a_step_that_calls_a_function_never_runs_in_the_caller(
    clock: Clock, inline: list[RunRequest]
) -> None:
    """A condition or the number of iterations may make the next run take any time."""
    session = direct_session(call_of_function_with_switch())

    def checked(x: np.float32) -> RunRequest:
        return RunRequest({"x": x, "condition": np.bool_(True)}, ["checked"])

    for _ in range(4):
        assert run(session, checked(X)) == [3]
    with pytest.raises(InvalidArgumentError, match="not finite : Tensor had Inf values"):
        run(session, checked(np.float32(np.inf)))
    short = session.short_step(["x", "condition"], ["checked"])
    assert short is not None
    assert short.run([np.array(X), np.array(True)]) is None
    assert inline == []


def test_a_step_whose_feed_says_how_much_to_do_never_runs_in_the_caller(
    clock: Clock, inline: list[RunRequest]
) -> None:
    graph = Graph()
    dims = graph.placeholder(DataType.INT32, "dims")
    graph.add("Fill", dims, np.float32(1), name="filled")
    session = direct_session(graph.graph_def)
    for _ in range(4):
        run(session, RunRequest({"dims": np.int32([2])}, ["filled"]))
    assert inline == []


def test_larger_feeds_than_those_of_short_runs_do_not_run_in_the_caller(
    clock: Clock, inline: list[RunRequest]
) -> None:
    graph = Graph()
    graph.add("Neg", graph.placeholder(DataType.FLOAT, "x"), name="m")
    session = direct_session(graph.graph_def)

    def runs_inline(size: int) -> bool:
        before = len(inline)
        run(session, request(feeds={"x": np.ones(size, np.float32)}))
        return len(inline) > before

    for _ in range(4):
        runs_inline(1)
    assert runs_inline(1)
    assert runs_inline(SMALL_SIZE)
    assert not runs_inline(1_000_000)
    assert runs_inline(1_000_000)  # it was short
    assert runs_inline(MOST_GROWTH * 1_000_000)
    clock.seconds = SLOW
    assert not runs_inline(100_000_000)
    clock.seconds = QUICK
    for _ in range(100):
        runs_inline(1)
    assert runs_inline(1)
    assert not runs_inline(100_000_000)  # short runs of small feeds say nothing about it


def test_a_variable_of_another_shape_is_measured_first(
    clock: Clock, inline: list[RunRequest]
) -> None:
    graph = Graph()
    x = graph.placeholder(DataType.FLOAT, "x")
    handle = graph.add("VarHandleOp", dtype=DataType.FLOAT, shape=None, name="v")[0]
    graph.add("AssignVariableOp", handle, x, name="assign")
    value = graph.add("ReadVariableOp", handle, dtype=DataType.FLOAT, name="read")[0]
    graph.add("Add", value, x, name="m")
    session = direct_session(graph.graph_def)

    def assign(size: int) -> None:
        session.run({"x": np.ones(size, np.float32)}, [], ["assign"])

    def runs_inline() -> bool:
        before = len(inline)
        run(session, request(feeds={"x": np.ones(1, np.float32)}))
        return len(inline) > before

    assign(3)
    for _ in range(4):
        runs_inline()
    assert runs_inline()
    assign(3)
    assert runs_inline()
    assign(1000)
    assert not runs_inline()
    assert runs_inline()


def test_a_step_in_the_caller_leaves_nothing_in_its_session(inline: list[RunRequest]) -> None:
    session = direct_session(g1())
    executor_of(session).duration.note(QUICK)
    assert run(session) == [6]
    assert len(inline) == 1
    assert not session._cancellation._callbacks
