"""The life cycle of a session: which calls each state accepts, and how close ends steps."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    CancelledError,
    Code,
    DirectSession,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    RunRequest,
    RuntimeSession,
    SessionOptions,
    load_saved_model,
    new_session,
    reset,
)
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.resources.queues import Queue
from tests.saved_model_corpus import FIXTURES
from tests.unit.runtime.sessions.graphs import (
    X,
    direct_session,
    g1,
    graph_of,
    in_caller,
    neg,
    queue_graph,
)
from tests.unit.runtime.sessions.session_errors import error_of

MORE = graph_of(neg("more", "m"))
CALLS: dict[str, Callable[[DirectSession], object]] = {
    "create": lambda session: session.create(g1()),
    "extend": lambda session: session.extend(MORE),
    "run": lambda session: session.run({"x": X}, ["m"]),
    "make_callable": lambda session: session.make_callable(pb.CallableOptions(fetch=["a"])),
    "partial_run_setup": lambda session: session.partial_run_setup(["x"], ["m"]),
    "list_devices": lambda session: session.list_devices(),
    "close": lambda session: session.close(),
    "destroy": lambda session: session.destroy(),
    "reset": lambda session: reset(session.options.target),
}


def without_graph() -> DirectSession:
    return direct_session()


def created() -> DirectSession:
    return direct_session(g1())


def extended() -> DirectSession:
    session = created()
    session.extend(graph_of(neg("first", "n")))
    return session


def running() -> DirectSession:
    graph = queue_graph()
    graph.node.extend(g1().node)
    session = direct_session(graph)
    session.run_async(RunRequest({}, ["deq"]))
    return session


def closed() -> DirectSession:
    session = created()
    session.close()
    return session


def destroyed() -> DirectSession:
    session = created()
    session.destroy()
    return session


OK, INVALID, EXISTS, CANCELLED = (
    Code.OK,
    Code.INVALID_ARGUMENT,
    Code.ALREADY_EXISTS,
    Code.CANCELLED,
)


# For each state, the code of every call of CALLS, in its order.
MATRIX: list[tuple[Callable[[], DirectSession], tuple[Code, ...]]] = [
    (without_graph, (OK, INVALID, INVALID, INVALID, INVALID, OK, OK, OK, OK)),
    (created, (EXISTS, OK, OK, OK, OK, OK, OK, OK, OK)),
    (extended, (EXISTS, OK, OK, OK, OK, OK, OK, OK, OK)),
    (running, (EXISTS, OK, OK, OK, OK, OK, OK, OK, OK)),
    (closed, (CANCELLED,) * 6 + (OK, OK, OK)),
    (destroyed, (CANCELLED,) * 6 + (OK, OK, OK)),
]


def code_of(call: Callable[[DirectSession], object], session: DirectSession) -> Code:
    try:
        call(session)
    except OpError as error:
        return error.code
    return Code.OK


@pytest.mark.parametrize(("state", "codes"), MATRIX, ids=[state.__name__ for state, _ in MATRIX])
def test_every_call_in_every_state(
    state: Callable[[], DirectSession], codes: tuple[Code, ...]
) -> None:
    for (name, call), code in zip(CALLS.items(), codes, strict=True):
        session = state()
        assert code_of(call, session) is code, name
        session.destroy()


def test_an_extension_of_nothing_is_a_graph_of_nothing() -> None:
    """TF: Extend creates even from an empty graph, Create does not."""
    session = direct_session()
    session.extend(pb.GraphDef())
    with pytest.raises(OpError, match="Tensor m:0, specified in either feed_devices"):
        session.run({}, ["m"])
    with pytest.raises(OpError, match="A Graph has already been created for this session"):
        session.create(g1())


def test_a_refused_extension_twice_is_the_same_error_twice() -> None:
    session = direct_session(g1())
    for _ in range(2):
        with pytest.raises(OpError) as caught:
            session.extend(g1())
        assert caught.value.message == (
            "GraphDef argument to Extend includes node 'x', which was created by a previous call "
            "to Create or Extend in this session."
        )


@pytest.mark.parametrize("disabled", [False, True])
def test_a_static_graph_is_not_extended(disabled: bool) -> None:
    config = pb.ConfigProto()
    config.experimental.optimize_for_static_graph = True
    config.experimental.disable_optimize_for_static_graph = disabled
    session = direct_session(g1(), config)
    if disabled:
        session.extend(MORE)
        return
    with pytest.raises(FailedPreconditionError, match="optimize_for_static_graph"):
        session.extend(MORE)
    assert session.run({"x": X}, ["n"]) == [-6]


def test_a_finalized_session_runs_what_it_has_compiled() -> None:
    session = direct_session(g1())
    session.run({"x": X}, ["m"])
    handle = session.make_callable(pb.CallableOptions(feed=["x"], fetch=["n"]))
    session.finalize()
    assert session.run({"x": X}, ["m"]) == [6]
    assert session.run({"x:0": X}, ["m:0"]) == [6]
    assert session.run_callable(handle, [X]) == [-6]
    for call in (
        lambda: session.run({}, ["a"]),
        lambda: session.make_callable(pb.CallableOptions(fetch=["a"])),
        lambda: session.partial_run_setup(["x"], ["m"]),
        lambda: session.extend(MORE),
    ):
        with pytest.raises(FailedPreconditionError) as caught:
            call()
        assert caught.value.message == "Session has been finalized."


def test_reset_closes_every_session_of_the_process() -> None:
    session = direct_session(g1())
    reset("", ["some_container"])
    with pytest.raises(CancelledError, match=r"^Session has been closed\.$"):
        session.run({"x": X}, ["m"])
    assert direct_session(g1()).run({"x": X}, ["m"]) == [6]


def test_closing_one_session_of_a_graph_leaves_the_others() -> None:
    bundle = load_saved_model(SessionOptions(), None, str(FIXTURES / "half_plus_two"), {"serve"})
    first, _ = bundle.open_session(SessionOptions())
    second, _ = bundle.open_session(SessionOptions())
    first.close()
    name = bundle.signatures["serving_default"]
    feeds = {name.inputs["x"].name: np.array([[2]], np.float32)}
    assert second.run(feeds, [name.outputs["y"].name])[0].tolist() == [[3]]


def test_destroy_lets_go_of_resources() -> None:
    session = direct_session(queue_graph())
    session.run({"value": X}, [], ["enq"])
    assert list(session.resources)
    session.destroy()
    assert not list(session.resources)


def test_the_handle_is_the_session_s_own() -> None:
    first, second = direct_session(), direct_session()
    assert first.session_handle.startswith("direct")
    assert first.session_handle != second.session_handle


def test_runs_before_a_graph() -> None:
    session = direct_session()
    for call, text in (
        (lambda: session.run({}, ["m"]), "Session was not created with a graph before Run()!"),
        (
            lambda: session.partial_run_setup([], ["m"]),
            "Session was not created with a graph before PRunSetup()!",
        ),
    ):
        error = error_of(call)
        assert (error.code, error.message) == (Code.INVALID_ARGUMENT, text)


def test_close_cancels_what_waits_and_refuses_the_rest() -> None:
    session = direct_session(queue_graph())
    waiting = [session.run_async(RunRequest({}, ["deq"])) for _ in range(3)]
    session.close()
    for future in waiting:
        with pytest.raises(CancelledError) as cancelled:
            future.result(timeout=30)
        assert cancelled.value.message in (
            "Dequeue operation was cancelled\n\t [[{{node deq}}]]",
            "Run call was cancelled",  # no thread of the pool had started it
        )
    session.close()
    for call in (
        lambda: session.run({}, ["size"]),
        lambda: session.extend(g1()),
        lambda: session.create(g1()),
        lambda: session.partial_run_setup([], ["size"]),
        lambda: session.make_callable(pb.CallableOptions(fetch=["size"])),
        lambda: session.run_callable(1, []),
        lambda: session.list_devices(),
    ):
        error = error_of(call)
        assert (error.code, error.message) == (Code.CANCELLED, "Session has been closed.")


@pytest.mark.parametrize(
    ("filled", "targets", "verb"), [(0, "deq", "Dequeue"), (2, "enq", "Enqueue")]
)
@pytest.mark.parametrize("index", [0, -1])
def test_a_queue_operation_that_waits_says_that_it_was_cancelled(
    filled: int, targets: str, verb: str, index: int
) -> None:
    session = direct_session(queue_graph())
    for _ in range(filled):
        session.run({"value": X}, [], ["enq"])
    options = pb.RunOptions(inter_op_thread_pool=index)
    request = RunRequest({"value": X}, [], [targets], options=options)
    session.run_async(RunRequest({}, ["size"])).result(30)
    with concurrent.futures.ThreadPoolExecutor() as callers:
        waiting = callers.submit(lambda: session.run_async(request).result())
        (queue,) = (each for _, _, each in session.resources if isinstance(each, Queue))
        while not (queue._dequeues or queue._enqueues):
            time.sleep(0)  # lets other threads run
        time.sleep(0.1)  # the step begins to wait just after its operation is in the line
        session.close()
        with pytest.raises(CancelledError) as cancelled:
            waiting.result(timeout=30)
    assert cancelled.value.message == (
        f"{verb} operation was cancelled\n\t [[{{{{node {targets}}}}}]]"
    )


def test_a_step_that_does_not_wait_hears_that_its_run_was_cancelled() -> None:
    entered, left = threading.Event(), threading.Event()

    def slow(x: object) -> object:
        entered.set()
        left.wait(30)
        return x

    kernel = KernelDef("Neg", slow, {"T": (DataType.FLOAT,)})
    session = new_session(SessionOptions(kernels=[kernel]))
    session.create(g1())
    running = session.run_async(RunRequest({"x": X}, ["n"]))
    assert entered.wait(30)
    session.close()
    with pytest.raises(CancelledError) as cancelled:
        running.result(timeout=30)
    assert cancelled.value.message == "Run call was cancelled"
    left.set()


@pytest.mark.parametrize("runs_before", [0, 3])
def test_a_step_in_the_callers_thread_notices_that_its_session_closes(runs_before: int) -> None:
    closing: list[RuntimeSession] = []

    def kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        for each in closing:
            each.close()
        return np.multiply(x, y)

    made = KernelDef("Mul", kernel, {"T": (DataType.FLOAT,)})
    session = new_session(SessionOptions(kernels=[made]))
    session.create(g1())
    for _ in range(runs_before):
        assert session.run({"x": X}, ["n"], (), in_caller()) == [-6]
    closing.append(session)
    with pytest.raises(CancelledError) as cancelled:
        session.run({"x": X}, ["n"], (), in_caller())
    assert cancelled.value.message == "Run call was cancelled"
    with pytest.raises(CancelledError, match=r"^Session has been closed\.$"):
        session.run({"x": X}, ["n"], (), in_caller())


def test_steps_in_the_callers_thread_leave_nothing_in_the_session() -> None:
    session = direct_session(g1())
    for _ in range(3):
        assert session.run({"x": X}, ["n"], (), in_caller()) == [-6]
        with pytest.raises(InvalidArgumentError, match="Expects arg"):
            session.run({"x": np.int32(3)}, ["n"], (), in_caller())
    assert not session._cancellation._callbacks
