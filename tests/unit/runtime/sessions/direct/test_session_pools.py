"""The three kinds of inter-op pools: their threads, and the pool that runs a step."""

from __future__ import annotations

import concurrent.futures
import gc
import threading
import time
import weakref

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    InvalidArgumentError,
    KernelDef,
    NotFoundError,
    ResourceExhaustedError,
    RunRequest,
    SessionOptions,
    ThreadPool,
    global_thread_pools,
    new_session,
)
from runtime.foundation.priority_gate import gate
from runtime.sessions.direct.session_pools import make_session_pools, num_inter_op_threads
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.direct.thread_sessions import (
    not_folding,
    pools_of,
    run_thread,
    thread_session,
)
from tests.unit.runtime.sessions.graphs import X, direct_session, g1, queue_graph


def threads_named(prefix: str) -> int:
    return sum(thread.name.startswith(prefix) for thread in threading.enumerate())


def test_the_index_picks_the_pool_and_minus_one_the_caller() -> None:
    session, _ = thread_session(pools_of((2, "picked"), (1, "")))
    assert run_thread(session, 0) == "tf_picked"
    assert run_thread(session, 1) == "tf_Compute1"
    assert run_thread(session, -1) == threading.current_thread().name
    session.destroy()  # type: ignore[attr-defined]


@pytest.mark.parametrize("index", [2, -2, -3])
def test_an_index_that_no_pool_has(index: int) -> None:
    session = direct_session(g1(), pools_of((1, ""), (1, "")))
    with pytest.raises(InvalidArgumentError, match=f"^Invalid inter_op_thread_pool: {index}$"):
        session.run({"x": 1.0}, ["m"], (), pb.RunOptions(inter_op_thread_pool=index))
    session.destroy()


def test_a_session_without_a_list_has_one_pool() -> None:
    session = direct_session(g1())
    with pytest.raises(InvalidArgumentError, match="Invalid inter_op_thread_pool: 1"):
        session.run({"x": 1.0}, ["m"], (), pb.RunOptions(inter_op_thread_pool=1))


def test_sizes_of_listed_pools() -> None:
    config = pools_of((2, ""), (1, "sized"), (0, ""), inter_op_parallelism_threads=6)
    pools = make_session_pools(config)
    assert [pool.num_threads for pool in pools.pools] == [2, 1, 6]
    assert [pool.name for pool in pools.pools] == ["Compute0", "sized", "Compute2"]
    pools.shutdown()


def test_named_pools_are_shared_and_never_reconfigured() -> None:
    first = make_session_pools(pools_of((2, "shared")))
    assert make_session_pools(pools_of((2, "shared"))).pools == first.pools
    with pytest.raises(InvalidArgumentError) as caught:
        make_session_pools(pools_of((3, "shared")))
    assert caught.value.message == (
        "Pool shared configured previously with num_threads=2; "
        "cannot re-configure with num_threads=3"
    )


def test_configured_numbers_are_compared_not_real_ones() -> None:
    real = make_session_pools(pools_of((0, "default"))).pools[0].num_threads
    make_session_pools(pools_of((0, "default")))
    with pytest.raises(InvalidArgumentError, match="previously with num_threads=0"):
        make_session_pools(pools_of((real, "default")))


def test_a_refused_list_leaves_no_thread_behind() -> None:
    make_session_pools(pools_of((1, "taken")))
    before = threads_named("tf_Compute0")
    with pytest.raises(InvalidArgumentError, match="Pool taken"):
        direct_session(config=pools_of((3, ""), (2, "taken")))
    for thread in threading.enumerate():
        if thread.name == "tf_Compute0":
            thread.join(timeout=5)
    assert threads_named("tf_Compute0") <= before


def test_per_session_threads_end_with_the_session() -> None:
    config = pb.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=5)
    session = direct_session(g1(), config)
    (pool,) = session.thread_pools
    assert pool.num_threads == 5
    session.close()
    ran = threading.Event()
    pool.schedule(ran.set)  # close does not end the threads
    assert ran.wait(10)
    session.destroy()
    for thread in pool._threads:
        thread.join(timeout=10)
        assert not thread.is_alive()


def own_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "tf_Compute"]


def test_threads_end_with_a_session_that_is_dropped() -> None:
    config = pb.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=3)
    session = direct_session(g1(), config)
    assert session.run({"x": np.float32(1)}, ["m"]) == [2]
    threads = session.thread_pools[0]._threads
    del session
    gc.collect()
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_a_session_that_is_dropped_lives_until_its_step_has_ended() -> None:
    """Its pools end with it: a step that adds tasks to them would else be refused."""
    begun, go_on = threading.Event(), threading.Event()

    def block(text: np.ndarray) -> np.ndarray:
        begun.set()
        go_on.wait(10)
        return text

    graph = Graph()
    graph.add("StringUpper", graph.placeholder("string", "text"), name="upper")
    config = pb.ConfigProto(use_per_session_threads=True)
    session = new_session(SessionOptions(config=config, kernels=[KernelDef("StringUpper", block)]))
    session.create(graph.graph_def)
    future = session.run_async(RunRequest({"text": np.array(b"a", object)}, ["upper"]))
    assert begun.wait(10)
    alive, threads = weakref.ref(session), session.thread_pools[0]._threads  # type: ignore[attr-defined]
    del session
    gc.collect()
    assert alive() is not None
    go_on.set()
    assert future.result(10) == [b"a"]
    del future
    while alive() is not None:  # the pool's thread lets the step go after its result is there
        gc.collect()
        time.sleep(0.01)
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_a_session_that_cannot_be_made_leaves_no_thread_behind() -> None:
    config = pb.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=3)
    config.experimental.executor_type = "NO_SUCH"
    before = own_threads()
    with pytest.raises(NotFoundError, match="No executor factory registered"):
        direct_session(config=config)
    for thread in own_threads():
        if thread not in before:
            thread.join(timeout=10)
    assert own_threads() == before


def test_negative_parallelism_runs_in_the_caller() -> None:
    session, _ = thread_session(not_folding(pb.ConfigProto(inter_op_parallelism_threads=-1)))
    assert run_thread(session, 0) == threading.current_thread().name


@pytest.mark.parametrize(
    ("configured", "environment", "expected"),
    [(3, "7", 3), (0, "7", 7), (-1, "7", -1), (0, "-1", -1), (2, "-1", 2)],
)
def test_how_many_threads(
    configured: int, environment: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_NUM_INTEROP_THREADS", environment)
    config = pb.ConfigProto(inter_op_parallelism_threads=configured)
    assert num_inter_op_threads(config) == expected


def test_a_blocked_pool_does_not_hold_up_another() -> None:
    """TF: direct_session_test.cc (TestSessionInterOpThreads)."""
    blocked, go_on = threading.Event(), threading.Event()

    def block(_: object) -> np.ndarray:
        blocked.set()
        go_on.wait(30)
        return np.array(b"done", object)

    graph = Graph()
    graph.add("StringUpper", np.array(b"", object), name="block")
    graph.add("StringLower", np.array(b"X", object), name="quick")
    options = SessionOptions(
        config=pools_of((2, ""), (1, "")), kernels=[KernelDef("StringUpper", block)]
    )
    session = new_session(options)
    session.create(graph.graph_def)

    def on(index: int, fetch: str) -> RunRequest:
        return RunRequest({}, [fetch], options=pb.RunOptions(inter_op_thread_pool=index))

    low = session.run_async(on(1, "block"))
    assert blocked.wait(30)
    waiting = [session.run_async(on(1, "quick")) for _ in range(3)]
    for _ in range(4):
        assert session.run_async(on(0, "quick")).result(timeout=30)[0][()] == b"x"
    assert session.run_async(on(-1, "quick")).result(timeout=30)[0][()] == b"x"
    assert not any(future.done() for future in waiting)
    go_on.set()
    assert low.result(timeout=30)[0][()] == b"done"
    for future in waiting:
        assert future.result(timeout=30)[0][()] == b"x"


def test_a_full_queue_refuses() -> None:
    started, go_on = threading.Event(), threading.Event()
    pool = ThreadPool("full", 1, queue_size=1)
    pool.schedule(lambda: (started.set(), go_on.wait(30)))
    assert started.wait(30)
    pool.schedule(lambda: None)
    with pytest.raises(ResourceExhaustedError, match="The queue of thread pool full is full"):
        pool.schedule(lambda: None)
    go_on.set()
    pool.shutdown()
    for thread in pool._threads:
        thread.join(timeout=30)
    stats = pool.stats()
    assert (stats.completed, stats.queued, stats.running) == (2, 0, 0)


def test_global_pools_are_listed() -> None:
    pool = global_thread_pools.get_or_create("listed", 1, low_priority=True)
    assert pool in global_thread_pools.all()
    assert global_thread_pools.find("listed") is pool
    assert global_thread_pools.find("not there") is None


def test_a_step_that_waits_holds_no_thread_of_its_pool() -> None:
    config = pb.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=1)
    session = direct_session(queue_graph(), config)
    waiting = session.run_async(RunRequest({}, ["deq"]))
    session.run({"value": X}, [], ["enq"])
    assert waiting.result(timeout=30) == [3]
    session.destroy()


def test_a_low_priority_step_gives_way_before_it_completes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    completed: list[bool] = []  # whether the step had completed, each time it gave way
    session = direct_session(g1())
    futures: list[concurrent.futures.Future[list[np.ndarray]]] = []
    begun = threading.Event()

    def give_way() -> None:
        assert begun.wait(30)  # the future is known
        completed.append(futures[-1].done())

    monkeypatch.setattr(gate, "give_way", give_way)
    for pool in (ThreadPool("low", 1, low_priority=True), ThreadPool("usual", 1)):
        begun.clear()
        futures.append(session.run_async(RunRequest({"x": X}, ["m"], pool=pool)))
        begun.set()
        assert futures[-1].result(30)
        pool.shutdown()
    assert completed == [False, False]  # before it completes, and before it wakes its caller
    session.destroy()
